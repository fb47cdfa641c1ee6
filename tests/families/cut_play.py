"""`python -m tests.families.cut_play [--version V] [--family F] [--way W] [--later]`: answers that broke off, played.

On the real client, all families in one: a turn breaks off, the next prompt goes to the strict fake of its family. What
that refuses is to be healed by `recoveryd scan --repair`, and taken back exactly; what it takes keeps every byte, and
`scan` tells nothing of it. Prints a line a case that is not so, and the sums.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.client import Client, PromptResult
from tests.e2e.crowd import Records, records
from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.install import NEWEST, TESTED, ensure
from tests.e2e.kilo import Kilo
from tests.families.cut import DOORS, WAYS, Cut, Cutting, cuts

KILO = "kilo"
VERSIONS = (*TESTED["opencode"], KILO)
NEW = (NEWEST, KILO)
_AT_ONCE = 8
_STORED_S = 1.0  # until a client has stored what it was sent
_ROUNDS = 3  # as many repairs as there may be
_SOME = 40  # commands by one process, which has a minute
_OF_ONE_CLIENT = 100  # sessions, which one look goes through
_HUNG_S = 20.0  # until its user stops a client that does not hear that the connection has gone
_PATIENCE_S = 120.0


@dataclass(repr=False)
class Broken:
    """A session whose first turn broke off: its prompts since, what was stored, and what recoveryd makes of it."""

    cut: Cut
    session: str
    mark: str
    reached: threading.Event
    heard: bool = True  # whether the answer really broke off
    refused: list[str | None] = field(default_factory=list)  # of each prompt since; None: it was answered
    before: Records = field(default_factory=dict)  # of any repair
    repaired: Records = field(default_factory=dict)
    after: Records = field(default_factory=dict)  # all prompts
    undone: Records = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    told: str = ""  # what `scan` says in the end

    @property
    def stuck(self) -> bool:
        """Whether the prompt behind the broken turn was refused."""
        return self.refused[0] is not None

    @property
    def problem(self) -> str:
        """What is not as it should be; "" where all is."""
        outcomes = [entry["outcome"] for entry in self.entries]
        found = {
            "the answer did not break off": not self.heard,
            "`scan` tells it as stuck": bool(self.told),
            "it does not go on": self.refused[-1] is not None,
            "it was taken, and there is a recovery": not self.stuck and bool(outcomes),
            "it was taken, and changed": not self.stuck and _lost(self.before, self.after),
            "a refusal was not healed": outcomes != ["healed"] * (len(self.refused) - 1),
            "it was not taken back": any(self.codes) or _lost(self._to_come_back, self.undone),
        }
        return ", ".join(words for words, so in found.items() if so)

    @property
    def _to_come_back(self) -> Records:
        """What was stored, but for what the client itself has deleted: Kilo, a failed answer without a part."""
        deleted = self.repaired.keys() - self.after.keys()
        return {key: content for key, content in self.before.items() if key not in deleted}

    def tell(self) -> str:
        """What became of it, in a line."""
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        return f"{self.cut} ({self.session}): {self.problem}; refused {self.refused}; history {said}; {self.told}"


def is_slow(version: str, cut: Cut) -> bool:
    """Whether a client tries again what OpenRouter refuses, for 70 s, or waits for the network until it is stopped."""
    return (version in NEW and cut.family == "openrouter") or (version == KILO and cut.way == "torn")


def _lost(before: Records, now: Records) -> bool:
    return any(now.get(key) != content for key, content in before.items())


@dataclass(repr=False)
class Stage:
    """A running client that knows all these families, a fake of each, and recoveryd's commands on its store."""

    client: Client
    fakes: dict[str, Cutting]
    recoveryd: Daemon  # which is not started

    def records(self, broken: Broken) -> Records:
        """What is stored of a session."""
        return records(self.client, broken.session)

    def begin(self, broken: Broken) -> None:
        """The turn that breaks off."""
        asked: dict[str, Any] = {"model": dict(DOORS[broken.cut.family].ids)}
        words = f"do it {broken.mark}"
        if broken.cut.way == "aborted":
            self.client.prompt_async(broken.session, words, thinking=True, **asked)
            broken.heard = broken.reached.wait(_PATIENCE_S)
            time.sleep(_STORED_S)
            self._stop(broken)
            return
        try:
            self.client.prompt(broken.session, words, True, _HUNG_S, **asked)
        except TimeoutError:
            self._stop(broken)
        broken.heard = broken.reached.is_set()

    def prompt(self, broken: Broken) -> str | None:
        """The next prompt: why it was refused, None where it was answered."""
        model = dict(DOORS[broken.cut.family].ids)
        result = self.client.prompt(broken.session, "go on", thinking=True, timeout=_PATIENCE_S, model=model)
        return _why(result)

    def _stop(self, broken: Broken) -> None:
        self.client.abort(broken.session)
        self.client.wait_idle(broken.session)

    def scan(self, *options: str) -> dict[str, str]:
        """What `scan` tells of each session that is stuck, or was."""
        done = self.recoveryd.run("scan", "--json", *options)
        assert done.returncode in (0, 1), done.stderr
        said = json.loads(done.stdout)
        named = [(name, one) for name in ("stuck", "healed", "elsewhere", "ignored") for one in said[name]]
        return {str(one["session"]): f"{name}: {one['kind']} {one['reason']}" for name, one in named}


def _why(result: PromptResult) -> str | None:
    if result.info is None:
        return f"no answer: {result.status} {result.error}"
    return None if result.error is None else str((result.error.get("data") or {}).get("message"))


@contextmanager
def staged(root: Path, version: str, names: Iterable[str]) -> Iterator[Stage]:
    """The client of a version, or Kilo, before a fake of each family; all below `root`."""
    with ExitStack() as stack:
        fakes = {name: stack.enter_context(Cutting(name)) for name in names}
        configs = [DOORS[name].config(fake.address) for name, fake in fakes.items()]
        providers = {key: value for config in configs for key, value in config["provider"].items()}
        config = {**configs[0], "provider": providers}
        login = next(iter(fakes.values())).google_login(root / "google")
        home = root / "client"
        if version == KILO:
            client: Client = Kilo(home, "", config=config, env=login)
        else:
            client = Client(ensure(version), home, "", config=config, env=login)
        # recoveryd has settings of its own, and reads those of the project.
        own = "kilo.json" if version == KILO else "opencode.json"
        (client.directory / own).write_text(json.dumps({"provider": providers}))
        stack.enter_context(client)
        client.call("GET", "/session")
        settings = "".join(DOORS[name].settings for name in fakes)
        yield Stage(client, fakes, Daemon(root / "recoveryd", home / "data", config=settings + CONFIG))


def all_played(root: Path, version: str, names: Iterable[str], chosen: Sequence[Cut]) -> list[Broken]:
    """Play any number of cases, with a new client and a new store for each hundred."""
    made: list[Broken] = []
    for start in range(0, len(chosen), _OF_ONE_CLIENT):
        with staged(root / str(start), version, names) as stage:
            made += played(stage, chosen[start : start + _OF_ONE_CLIENT])
    return made


def played(stage: Stage, chosen: Sequence[Cut]) -> list[Broken]:
    """Go the whole way with each: broken off, prompted, healed, prompted on, taken back."""
    made = []
    for number, cut in enumerate(chosen, 1):
        fake, session = stage.fakes[cut.family], stage.client.new_session(str(cut))["id"]
        made.append(Broken(cut, session, fake.plan(number, cut), fake.reached[number]))
    stage.client.prompt(stage.client.new_session()["id"])  # the first prompt of a server may take seconds
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(stage.begin, made))
        _prompt(pool, stage, made)
        time.sleep(_STORED_S)
        for one in made:
            one.before = stage.records(one)
        for _ in range(_ROUNDS):
            waiting = [one for one in made if one.refused[-1] is not None]
            if waiting:
                stage.scan("--repair", "--yes")
                for one in waiting:
                    one.repaired = stage.records(one)
                _prompt(pool, stage, waiting)
    told, history = stage.scan(), stage.recoveryd.by_session()
    for one in made:
        one.told, one.entries, one.after = told.get(one.session, ""), history.get(one.session, []), stage.records(one)
    _undo(stage, made)
    return made


def _prompt(pool: ThreadPoolExecutor, stage: Stage, some: Sequence[Broken]) -> None:
    for one, refused in zip(some, pool.map(stage.prompt, some), strict=True):
        one.refused.append(refused)


def _undo(stage: Stage, made: Sequence[Broken]) -> None:
    """Each recovery, the newest of a session first; by force, for the model has answered since."""
    made_back = [(one, entry["id"]) for one in made for entry in one.entries if entry["outcome"] == "healed"]
    for start in range(0, len(made_back), _SOME):
        some = made_back[start : start + _SOME]
        codes = stage.recoveryd.codes([["undo", name, "--force"] for _, name in some])
        for (one, _), code in zip(some, codes, strict=True):
            one.codes.append(code)
    for one in made:
        one.undone = stage.records(one)


def main() -> None:
    """Play what is asked for, some hundred cases a client at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", choices=VERSIONS, help=f"one or more; {NEWEST} by default")
    parser.add_argument("--family", action="append", choices=DOORS, help="one or more; all by default")
    parser.add_argument("--way", action="append", choices=WAYS, help="one or more; all by default")
    parser.add_argument("--later", action="store_true", help="break off the answer behind a call, not the first")
    parser.add_argument("--every", type=int, default=1, help="only every so many cases")
    chosen = parser.parse_args()
    for version in chosen.version or [NEWEST]:
        sums: Counter[str] = Counter()
        for name in chosen.family or DOORS:
            every = cuts(name, chosen.way or WAYS, later=chosen.later)[:: chosen.every]
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
                made = all_played(Path(root), version, [name], every)
            for one in made:
                sums["bad" if one.problem else "healed" if one.stuck else "taken"] += 1
                if one.problem:
                    print(f"{version} {one.tell()}", flush=True)
        print(f"{version}: {dict(sums)}", flush=True)


if __name__ == "__main__":
    main()
