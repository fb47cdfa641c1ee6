"""A client that writes, breaks and goes on, and a daemon that is killed, started, cheated by the disk and undone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recoveryd.core import failpoint
from recoveryd.core.errors import RecoverydError
from recoveryd.core.model import Change
from tests.crash_matrix import child, work
from tests.crash_matrix.places import EMPTY, FAULTS, JsonPlace, Place, Records, SqlitePlace
from tests.support.build import Planted, SessionBuilder
from tests.support.examples import FULL
from tests.support.parts import api_error, text, tool

pytestmark = pytest.mark.slow  # generated like those of tests/fuzz, with a kill at any step
EXAMPLES = int(os.environ.get("TEST_RECOVERYD_EXAMPLES", "15" if FULL else "4"))
STEPS = 60  # more than most recoveries have: a kill that comes too late is none

which = st.integers(0, 99)
step = st.integers(0, STEPS)
said = st.sampled_from(["words of the client", " \n", "more words"])


class Machine(RuleBasedStateMachine):
    """Any order of events on one store; what must hold is looked at whenever nothing is cut off."""

    made: type[Place]

    @initialize()
    def _begin(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="recoveryd-machine-", dir=memory if memory.is_dir() else None))
        self.place = self.made(self.folder.resolve())
        self.place.start()
        self.sessions: list[SessionBuilder] = []
        self.theirs: Records = {}  # what the client stored last, by key
        self.ever: set[tuple[str, bytes]] = set()  # all that it ever stored
        self.writes: dict[str, int] = {}  # when it did, counted in writes
        self.count = 0
        self.standing: dict[str, int] = {}  # the heals that were seen, and how many writes came before
        self.since = 0  # how many writes there were before what is done now
        self.cut_off = False
        self.went_on: set[str] = set()  # sessions that were answered on what was cut off: it stays, until it is undone
        self._session(SessionBuilder(int(time.time() * 1000) - 300_000, seed=len(self.sessions)))

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            try:
                self._finish()
            finally:
                shutil.rmtree(self.folder)

    def _finish(self) -> None:
        """In the end all is taken back, by force where the client wrote since: nothing of ours is left."""
        self.restart()
        self.check()
        for builder in self.sessions:
            self.undo_all(builder)
        self.check()
        assert self.place.records() == {**self.place.records(), **self._undone()}

    def undo_all(self, builder: SessionBuilder) -> None:
        work.take_back(self.place, builder.session["id"])
        work.take_back(self.place, builder.session["id"], force=True)

    def _undone(self) -> Records:
        """Of what the client stored last, all that nothing of ours stands on."""
        images = {c.key for b in self.sessions for e in work.entries(self.place, b.session["id"]) for c in e.changes}
        return {key: raw for key, raw in self.theirs.items() if key not in images}

    # What the client does

    @precondition(lambda self: len(self.sessions) < 3)
    @rule(faults=st.sampled_from(sorted(FAULTS)))
    def another_session(self, faults: str) -> None:
        builder = SessionBuilder(int(time.time() * 1000) - 300_000, seed=len(self.sessions))
        FAULTS[faults](builder)
        builder.failed("continue", api_error(EMPTY, 400))
        self._session(builder)

    @rule(at=which)
    def answers(self, at: int) -> None:
        """A healthy turn."""
        builder = self._pick(at)
        self._says(builder, lambda: (builder.user("go on"), builder.assistant("fine")))
        if self.cut_off:
            self.went_on.add(self._id(at))

    @rule(at=which, calls=st.booleans())
    def breaks(self, at: int, calls: bool) -> None:
        """A turn that no provider takes, and the refusal of the next."""
        builder = self._pick(at)
        content = [tool(), text("behind"), text(" ")] if calls else [text(" ")]

        def turns() -> None:
            builder.user("go on")
            builder.assistant(*content)
            builder.failed("continue", api_error(EMPTY, 400))

        self._says(builder, turns)

    @rule(at=which, part=which, words=said)
    def writes_over(self, at: int, part: int, words: str) -> None:
        """Any text part, ours or its own, at any time: also between a kill and the next start."""
        self._write(self._text(self._pick(at), part), words)

    # What the daemon does

    @precondition(lambda self: not self.cut_off)
    @rule(at=which)
    def heals(self, at: int) -> None:
        self._do(partial(work.heal, self.place, self._id(at)))

    @rule(at=which, step=step)
    def is_killed_while_it_heals(self, at: int, step: int) -> None:
        ended = child.run(partial(work.heal, self.place, self._id(at)), child.kill_at(step))
        self.cut_off |= ended.signal != 0

    @rule(at=which, step=step, force=st.booleans())
    def is_killed_while_it_undoes(self, at: int, step: int, force: bool) -> None:
        undo = partial(work.take_back, self.place, self._id(at), force=force)
        self.cut_off |= child.run(undo, child.kill_at(step)).signal != 0

    @precondition(lambda self: self.cut_off)
    @rule(step=step)
    def is_killed_while_it_starts(self, step: int) -> None:
        self.cut_off = child.run(partial(work.start, self.place), child.kill_at(step)).signal != 0

    @rule()
    def restart(self) -> None:
        self.since = self.count
        child.run(partial(work.start, self.place))
        self.cut_off = False

    @precondition(lambda self: not self.cut_off)
    @rule(at=which, force=st.booleans())
    def undoes(self, at: int, force: bool) -> None:
        self._do(partial(work.take_back, self.place, self._id(at), force=force))

    @precondition(lambda self: not self.cut_off)
    @rule(at=which, step=step, lasts=st.booleans())
    def is_failed_by_the_disk(self, at: int, step: int, lasts: bool) -> None:
        """Once, or from then on; then it works again."""

        def fail(number: int, name: str) -> None:
            if number == step or (lasts and number > step):
                child.fail(name, self.place.name)

        self._do(partial(work.heal, self.place, self._id(at)), fail)
        self._do(partial(work.heal, self.place, self._id(at)))

    @precondition(lambda self: not self.cut_off)
    @rule(at=which, step=step, part=which, words=said)
    def heals_while_the_client_writes(self, at: int, step: int, part: int, words: str) -> None:
        """Between any two steps. Not between the look at a file and its renaming: files have no compare-and-swap."""
        key = self._text(self._pick(at), part)
        written = False

        def write(number: int, name: str) -> None:
            nonlocal written
            if number >= step and not written and name not in ("rename", "unlink"):
                with suppress(sqlite3.OperationalError):  # while we write, it waits
                    self._write(key, words, patience=0)
                    written = True

        self._do(partial(work.heal, self.place, self._id(at)), write)

    # What must hold

    @invariant()
    def check(self) -> None:
        if not hasattr(self, "place") or self.cut_off:
            return
        now = self.place.records()
        assert self.place.strays() == []
        found = [(b.session["id"], e) for b in self.sessions for e in work.entries(self.place, b.session["id"])]
        images = {(c.key, image) for _, e in found for c in e.changes for image in (c.before, c.after)}
        lost = [key for key, raw in self.theirs.items() if now.get(key) != raw and (key, raw) not in images]
        assert not lost, f"{lost} is neither in the store nor in the ledger"
        heals = [e for _, e in found if e.outcome == "healed"]
        stays = [e for session, e in found if e.outcome == "conflict" and session in self.went_on]
        ours = {(c.key, c.after) for e in (*heals, *stays) for c in e.changes}
        ours |= {(c.key, c.before) for _, e in found if e.outcome == "undone" for c in e.changes if c.before is None}
        foreign = [item for item in now.items() if item not in self.ever and item not in ours]
        gone = [key for key in self.theirs if key not in now and (key, None) not in ours]
        assert not foreign + gone, f"{foreign + gone} is neither the client's nor of a repair that stands"
        self._whole(now, heals)

    def _whole(self, now: Records, heals: list[work.Kept]) -> None:
        """Of each repair that stands every record stands, but for what was written since."""
        newer: set[str] = set()
        for kept in heals:
            before = self.standing.setdefault(kept.id, self.since)
            half = [c.key for c in kept.changes if now.get(c.key) != c.after and not self._since(c, before, newer)]
            assert not half, f"{half} is not as the repair left it"
            newer |= {change.key for change in kept.changes}

    def _since(self, change: Change, before: int, newer: set[str]) -> bool:
        return change.key in newer or self.writes.get(change.key, 0) > before

    # How

    def _do(self, job: Callable[[], Any], at_step: child.AtStep | None = None) -> None:
        """In this process, as other threads of it would be seen by the client's writes."""
        self.since, numbers = self.count, iter(range(10**6))
        with pytest.MonkeyPatch.context() as patch, suppress(RecoverydError):
            if at_step is not None:
                patch.setattr(failpoint, "reach", lambda name: at_step(next(numbers), name))
            job()

    def _session(self, builder: SessionBuilder) -> None:
        if not builder.messages:
            builder.user("hello")
            builder.assistant("hello")
        self.sessions.append(builder)
        self._stored(lambda: self.place.write_planted(builder.planted()))

    def _says(self, builder: SessionBuilder, turns: Callable[[], object]) -> None:
        known = {message["id"] for message in builder.messages}
        turns()
        whole = builder.planted()
        new = [message for message in whole.messages if message["id"] not in known]
        parts = {message["id"]: whole.parts[message["id"]] for message in new}
        self._stored(lambda: self.place.write_planted(Planted(whole.session, new, parts)))

    def _write(self, key: str, words: str, patience: float = 5) -> None:
        self._stored(lambda: self.place.write(key, words, patience))

    def _stored(self, write: Callable[[], object]) -> None:
        before = self.place.records()
        write()
        self.count += 1
        for key, raw in self.place.records().items():
            if before.get(key) != raw:
                self.theirs[key], self.writes[key] = raw, self.count
                self.ever.add((key, raw))

    def _pick(self, at: int) -> SessionBuilder:
        return self.sessions[at % len(self.sessions)]

    def _id(self, at: int) -> str:
        return str(self._pick(at).session["id"])

    def _text(self, builder: SessionBuilder, at: int) -> str:
        session = self.place.store.load(builder.session["id"])
        texts = [part for message in session.messages for part in message.parts if part.type == "text"]
        return self.place.key(texts[at % len(texts)])


class JsonMachine(Machine):
    made = JsonPlace


class SqliteMachine(Machine):
    made = SqlitePlace


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work.alone(monkeypatch.setattr)


TestJson = pytest.mark.timeout(60 + 20 * EXAMPLES)(JsonMachine.TestCase)
TestSqlite = pytest.mark.timeout(60 + 20 * EXAMPLES)(SqliteMachine.TestCase)
TestJson.settings = TestSqlite.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=16, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_what_is_cut_off_before_an_answer_stays_until_it_is_undone() -> None:
    """The model answered on what is there: a start leaves it, half a repair too, and an undo takes it back."""
    ended = set()
    for step in range(8, 14):  # somewhere among them one of the two files is written
        machine = JsonMachine()
        machine._begin()
        machine.breaks(at=0, calls=True)
        machine.is_killed_while_it_heals(at=0, step=step)
        assert machine.cut_off
        machine.answers(at=0)
        machine.restart()
        machine.check()
        ended |= {entry.outcome for entry in work.entries(machine.place, machine._id(0))}
        machine.teardown()
    assert ended == {"failed", "conflict", "healed"}
