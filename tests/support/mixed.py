"""Sessions with up to five faults at once, of all kinds that are repaired, among healthy turns of every sort."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.e2e.signing import is_redacted, redacted
from tests.shapes import BROKEN, Shape, is_old
from tests.shapes.registry import OPEN_KINDS
from tests.support.build import SessionBuilder
from tests.support.generate import FAULTS, HEALTHY, LATER, START, Fault, Generated, Turns, Where, soup
from tests.support.planted import Planted

MOST = 5
_SOUPS = 0.15  # of the sessions: any parts in any order


def catalogue(version: str) -> dict[str, list[Fault]]:
    """The faults of every repairable kind, as far as this version of the client shows them in time."""
    by_kind: dict[str, list[Fault]] = {}
    shapes = {shape.turns: shape for shape in BROKEN if is_old(version) or shape.newer != "slow"}
    for fault in (*FAULTS, *LATER, *(_fault(shape) for shape in shapes.values())):
        by_kind.setdefault(fault.kind, []).append(fault)
    return by_kind


def _fault(shape: Shape) -> Fault:
    where: Where = "first" if shape.kind == "role_order" else "last" if shape.kind in OPEN_KINDS else "any"
    return Fault(str(shape.kind), where, _plainly(shape.turns))


def _plainly(turns: Callable[[SessionBuilder], None]) -> Turns:
    return lambda session, rng: turns(session)


def mixed(rng: random.Random, of: dict[str, list[Fault]]) -> Generated:
    """A session with one to five of these faults; some may do no harm where they came to stand."""
    while True:
        made = soup(rng, wild=rng.random() < 0.5) if rng.random() < _SOUPS else _faulty(rng, of)
        if not pending(made.planted):
            return Generated(_unique(made.planted), made.faults, made.thinking)


def _faulty(rng: random.Random, of: dict[str, list[Fault]]) -> Generated:
    session = SessionBuilder(START, seed=rng.getrandbits(32), title="mixed")
    chosen = _choose(rng, of, rng.randint(1, MOST))
    middle = [fault.turns for fault in chosen if fault.where == "any"]
    middle += [rng.choice(HEALTHY) for _ in range(rng.randint(0, 4))]
    rng.shuffle(middle)
    first, last = ([fault.turns for fault in chosen if fault.where == where] for where in ("first", "last"))
    for turns in (*first, *middle, *last):
        turns(session, rng)
    # A client that can't read a part while it takes back what is reverted stores nothing at all of the prompt.
    if rng.random() < 0.03 and not session.raw:
        session.session["revert"] = {"messageID": rng.choice(session.messages)["id"]}
    return Generated(session.planted(), tuple(fault.kind for fault in chosen), rng.random() < 0.5)


def _choose(rng: random.Random, of: dict[str, list[Fault]], number: int) -> Sequence[Fault]:
    """So many faults, each of any kind; only one of them can stand at the beginning, and one at the end."""
    chosen: list[Fault] = []
    while len(chosen) < number:
        fault = rng.choice(of[rng.choice(sorted(of))])
        if fault.where == "any" or all(fault.where != other.where for other in chosen):
            chosen.append(fault)
    return chosen


def pending(planted: Planted) -> bool:
    """Whether the client begins with a compaction or a subtask of before, and not with the prompt."""
    target = planted.session.get("revert", {}).get("messageID")
    ids = [message["id"] for message in planted.messages]
    for message in reversed(planted.messages[: ids.index(target) if target else None]):
        if message["role"] == "assistant" and message.get("finish"):
            return False
        if any(part["type"] in ("compaction", "subtask") for part in planted.parts[message["id"]]):
            return True
    return False


def _unique(planted: Planted) -> Planted:
    """A provider that binds its thinking knows a block by its signature, or by its data: no two are the same."""
    for part in (part for parts in planted.parts.values() for part in parts if part["type"] == "reasoning"):
        metadata = part.get("metadata")
        marks = metadata.get("anthropic") if isinstance(metadata, dict) else None
        if isinstance(marks, dict) and is_redacted(marks.get("redactedData")):
            marks["redactedData"] = redacted(part["id"])
    return planted
