"""What came of all recoveries as metrics: text that is both OpenMetrics and what node_exporter reads. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from recoveryd.core import Outcome, __version__
from recoveryd.ledger import EndedRecovery

FIRST = "# HELP recoveryd_recoveries "  # how a file of ours begins
DURABLE_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)  # seconds
# Only gauges and a histogram: of the other types the two formats have other names.
_RECOVERIES = "Recoveries in the ledger by what became of them; one that is undone moves to that outcome."
_DURABLE = "From the start of a repair until it was on the disk."
_STUCK = "Sessions that are stuck and need their user."
_VERSION = "The version of recoveryd."


Titles = Callable[[str], str]  # what people call the client of a store, by the store's id
# How many sessions of a store, by its id, need their user. None: it can't be read, so nobody knows.
Stuck = Mapping[str, int | None]


def metrics(ended: Iterable[EndedRecovery], stuck: Stuck, titles: Titles) -> str:
    """Write the metrics as a text, with a line for each series."""
    known = [(titles(one.store), one) for one in ended]
    clients = sorted({client for client, _ in known})
    lines = [*_head("recoveries", "gauge", _RECOVERIES)]
    counts = Counter((client, one.kind or "unknown", one.outcome.value) for client, one in known)
    for (client, kind, outcome), count in sorted(counts.items()):
        lines.append(_series("recoveries", {"client": client, "kind": kind, "outcome": outcome}, count))
    lines += _head("durable_seconds", "histogram", _DURABLE, "seconds")
    for client in clients:
        took = [one.seconds for name, one in known if name == client and _repaired(one) and one.seconds is not None]
        lines += _histogram("durable_seconds", client, took)
    lines += _head("stuck_sessions", "gauge", _STUCK)
    waiting = stuck_by_client(stuck, titles)
    lines += [_series("stuck_sessions", {"client": client}, count) for client, count in sorted(waiting.items())]
    lines += [*_head("version", "gauge", _VERSION), _series("version", {"version": __version__}, 1), "# EOF"]
    return "".join(f"{line}\n" for line in lines)


def stuck_by_client(stuck: Stuck, titles: Titles) -> dict[str, int]:
    """Count for each client the sessions that need their user. Of one with a store that can't be read there is no
    number: 0 would be an all-clear.
    """
    unknown = {titles(store) for store, count in stuck.items() if count is None}
    found: Counter[str] = Counter()
    for store, count in stuck.items():
        found[titles(store)] += count or 0
    return {client: count for client, count in found.items() if client not in unknown}


def _repaired(one: EndedRecovery) -> bool:
    return one.outcome is not Outcome.FAILED


def _head(name: str, kind: str, help: str, unit: str = "") -> Iterator[str]:
    yield f"# HELP recoveryd_{name} {help}"
    yield f"# TYPE recoveryd_{name} {kind}"
    if unit:
        yield f"# UNIT recoveryd_{name} {unit}"


def _histogram(name: str, client: str, values: list[float]) -> Iterator[str]:
    for bound in DURABLE_BOUNDS:
        count = sum(value <= bound for value in values)
        yield _series(f"{name}_bucket", {"client": client, "le": str(bound)}, count)
    yield _series(f"{name}_bucket", {"client": client, "le": "+Inf"}, len(values))
    yield _series(f"{name}_sum", {"client": client}, round(sum(values), 6))
    yield _series(f"{name}_count", {"client": client}, len(values))


def _series(name: str, labels: Mapping[str, str], value: float) -> str:
    told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"recoveryd_{name}{{{told}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
