"""One cell of the matrix: something that ends at a step, a start after it, and what is there then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from recoveryd.core.errors import RecoverydError
from tests.crash_matrix import child, work
from tests.crash_matrix.places import Place, Records, TranscriptPlace

ACTIONS = ("repair", "confirm", "undo", "undo --force")
# kill: SIGKILL; +client: the client writes before the next start; +kill: that start is killed at every step, too;
# +move: the client moves the session to another folder before the next start;
# error: the disk fails once; broken: it fails from this step on, and works when it is tried again
ENDS = ("kill", "kill+client", "kill+kill", "kill+move", "error", "broken")
THEIRS = "the client wrote this"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is done about a session with such faults ("one", "many", "long") in a store, and how it is made to end."""

    store: str
    faults: str
    action: str
    end: str

    def __str__(self) -> str:
        faults = {"one": "one fault", "many": "many faults"}.get(self.faults, self.faults)
        return f"{self.store}, {faults}, {self.action}, {self.end}"


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of a session: `found` after the start, as `ledger` has it, and what came `then`.

    `wrong` is what must not be; "" when all is well.
    """

    step: int
    name: str
    found: str
    ledger: str
    then: str
    wrong: str

    def data(self) -> dict[str, Any]:
        return asdict(self)


class Bench:
    """Carries out the cells of one scenario in a place of its own."""

    def __init__(self, scenario: Scenario, place: Place) -> None:
        self._scenario = scenario
        self._place = place
        place.start()
        self._session = place.plant(scenario.faults)
        self._broken = place.records()
        place.save()
        child.run(partial(work.heal, place, self._session))
        changes = work.entries(place, self._session)[0].changes
        # What the client writes to: a part, best one that is there before and after, then one that was there before.
        parts = [change for change in changes if not change.key.startswith("message/")]
        self._touched = max(
            parts, key=lambda c: (c.before is not None and c.after is not None, bool(c.before), c.key)
        ).key
        self._foreign: Records = {}  # what the client wrote into it since
        if scenario.action == "repair":
            place.reset()
        elif scenario.action in ("confirm", "undo --force"):
            self._foreign = {self._touched: place.write(self._touched, " \n")}
        self._before = place.records()
        place.save()

    def cells(self, every: int = 1) -> list[Cell]:
        """A cell for each step, or for every so many."""
        whole = child.run(self._act)
        assert self._place.records() != self._before, f"{self._scenario} changes nothing"
        return [self._cell(step, name) for step, name in list(enumerate(whole.steps))[::every]]

    def _act(self) -> object:
        action = self._scenario.action
        if action == "repair":
            return work.heal(self._place, self._session)
        if action == "confirm":
            return work.confirm(self._place, self._session)
        return work.take_back(self._place, self._session, force=action == "undo --force")

    def _cell(self, step: int, name: str) -> Cell:
        self._place.reset()
        theirs: Records = {}
        if self._scenario.end in ("error", "broken"):
            self._faulty(step)
        else:
            ended = child.run(self._act, child.kill_at(step))
            assert ended.signal, f"step {step} was not reached again"
            if self._scenario.end == "kill+client":
                theirs = {self._touched: self._place.write(self._touched, THEIRS)}
            if self._scenario.end == "kill+kill":
                self._killed_starts()
            if self._scenario.end == "kill+move":
                self._moved(partial(work.start, self._place))
            else:
                child.run(partial(work.start, self._place))
        return self._judged(step, name, theirs)

    def _moved(self, doing: Callable[[], object]) -> None:
        """Do something while the session is in another folder; then it comes back, since records are known by that."""
        assert isinstance(self._place, TranscriptPlace)
        folder = self._touched.partition("/")[0]
        self._place.move(self._session)
        child.run(doing)
        self._place.move(self._session, folder)

    def _killed_starts(self) -> None:
        """A start that is killed at its first step, the next at its second, and so on, until one comes through."""
        step = 0
        while child.run(partial(work.start, self._place), child.kill_at(step)).signal:
            step += 1

    def _faulty(self, at: int) -> None:
        """The disk fails in the middle; what was asked for is asked for again in the same process once it works."""
        once = self._scenario.end == "error"
        failing = True

        def at_step(number: int, name: str) -> None:
            if failing and (number == at or (number > at and not once)):
                child.fail(name, self._place.name)

        def twice() -> None:
            nonlocal failing
            with work.opened(self._place) as ledger:
                worker = work.Worker(self._place, ledger)
                worker.attend(self._session)
                failing = False
                worker.attend(self._session)

        def tolerant() -> None:
            with suppress(RecoverydError):
                self._act()

        child.run(twice if self._scenario.action == "repair" else tolerant, at_step)
        if self._scenario.action != "repair":
            child.run(partial(work.start, self._place))

    def _judged(self, step: int, name: str, theirs: Records) -> Cell:
        now, entries = self._place.records(), work.entries(self._place, self._session)
        states = self._states(now, entries, theirs)
        # Where the client wrote over the only difference, the ledger decides.
        found = min(states, key=lambda state: bool(self._untrue(state, entries)), default="")
        wrong = [] if found else [f"the session is a mixture: {_unlike(now, self._before)}"]
        wrong += self._untrue(found, entries) + self._lost(now, entries, theirs) + self._place.strays()
        child.run(partial(work.heal, self._place, self._session, 2))
        healed = self._place.records()
        then = "left" if healed == now else "healed"
        if found == "as it was" and self._scenario.action == "repair" and then == "left" and not theirs:
            wrong.append("it is not healed afterwards")
        wrong += self._undone(theirs)
        return Cell(step, name, found, " ".join(entry.outcome for entry in entries), then, "; ".join(wrong))

    def _states(self, now: Records, entries: list[work.Kept], theirs: Records) -> list[str]:
        """Which of the states it may have been left in this is, but for what the client wrote since."""
        known = {"as it was": self._before, "taken back": {**self._broken, **self._foreign}}
        if self._scenario.action.startswith("undo"):
            known = {"still healed": self._before, "undone": self._broken}
        elif entries:
            images = {change.key: change.after for change in entries[0].changes}
            known["healed"] = {key: raw for key, raw in {**self._broken, **images}.items() if raw is not None}
        return [name for name, records in known.items() if now == {**records, **theirs}]

    def _untrue(self, found: str, entries: list[work.Kept]) -> list[str]:
        """Where the ledger says anything else than what is there."""
        said = entries[-1].outcome if entries else ""  # newer ones are those of forced undos
        true = {
            "as it was": ("", "failed", "conflict"),
            "taken back": ("failed", "conflict"),
            "still healed": ("healed",),
            "undone": ("undone", "conflict"),
            "healed": ("healed",),
        }.get(found, ())
        if self._scenario.action == "confirm" and found == "as it was":
            true = ("healed",)
        if self._scenario.end in ("error", "broken") and self._scenario.action == "repair":
            true = ("healed",) if found == "healed" else ()
        wrote = self._scenario.end == "kill+client" or bool(self._foreign)
        if "conflict" in true and not wrote and said == "conflict":
            true = ()
        wrong = [] if said in true else [f"{found}, and the ledger says {said!r}"]
        return wrong + [f"{entry.outcome} is left" for entry in entries if entry.outcome in ("pending", "undoing")]

    def _lost(self, now: Records, entries: list[work.Kept], theirs: Records) -> list[str]:
        """What the client stored last, and is neither in the store nor in the ledger."""
        kept = {(c.key, image) for entry in entries for c in entry.changes for image in (c.before, c.after)}
        stored = {**self._broken, **self._foreign, **theirs}
        return [f"{key} is lost" for key, raw in stored.items() if now.get(key) != raw and (key, raw) not in kept]

    def _undone(self, theirs: Records) -> list[str]:
        """All that stands is taken back: the session is what the client made of it, to the byte."""
        versions = [self._broken, self._foreign, theirs]
        refused = child.run(partial(work.take_back, self._place, self._session)).result
        if refused and (self._foreign or theirs):
            refused = child.run(partial(work.take_back, self._place, self._session, force=True)).result
        now, entries = self._place.records(), work.entries(self._place, self._session)
        wrong = [f"undo: {reason}" for reason in refused]
        whole = [key for key in self._broken if key not in now] + [*now]
        other = [key for key in whole if not any(now.get(key) == version.get(key, b"") for version in versions)]
        wrong += [f"after the undo {key} is not as the client wrote it" for key in other]
        return wrong + self._lost(now, entries, theirs) + self._place.strays()


def _unlike(now: Records, then: Records) -> str:
    return ", ".join(sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key)))
