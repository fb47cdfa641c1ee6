"""What the system around a store does to it, in this process: nothing is lost, and it is healed once it has passed."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import stat
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import recoveryd.daemon.daemon as daemon_module
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core import failpoint
from recoveryd.core.model import Outcome
from recoveryd.diagnose import Context
from recoveryd.diagnose.triage import Next, Triage
from recoveryd.heal.recovery import Recovery
from tests.crash_matrix import child, work
from tests.crash_matrix.places import EMPTY, PLACES, JsonPlace, Place, SqlitePlace
from tests.support.build import Planted, SessionBuilder
from tests.support.cases import case, case_of
from tests.support.parts import api_error, text
from tests.support.running import running, until

pytestmark = pytest.mark.live

NOBODY = 65534
DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work.alone(monkeypatch.setattr)


@pytest.fixture(params=sorted(PLACES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = PLACES[request.param](tmp_path)
    made.start()
    return made


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps a moment apart instead of a minute."""
    monkeypatch.setattr(daemon_module, "SWEEP_S", 0.1)


@pytest.mark.parametrize("place", ["json", "sqlite"], indirect=True)
@pytest.mark.parametrize("many", ["one", "many"])
def test_a_permission_taken_away_between_the_look_and_the_write(place: Place, many: str) -> None:
    """As nobody, whom permissions bind: not a byte is touched, and the next look after they are back heals."""
    session = place.plant(many)
    work.heal(place, session)  # all code is loaded by now: nobody may not read it
    place.start()
    session = place.plant(many)
    before = place.records()
    places = [path for path in place.data.rglob("*") if path.is_dir() and "part" in path.parts]
    places = places or [place.data, place.data / "opencode.db"]
    if os.geteuid() == 0:
        for path in (place.home.parent, *place.home.parent.parents[:3]):  # of pytest, and one more a worker
            path.chmod(path.stat().st_mode | stat.S_IXOTH)
        for path in (place.home, *place.home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in places}

    def forbid(_: int, name: str) -> None:
        if name == "ledger committed" and not forbidden:
            forbidden.append(name)
            for path, mode in modes.items():
                path.chmod(mode & 0o555)

    forbidden: list[str] = []

    def nobodys() -> tuple[str, bool, str, list[str]]:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        with work.opened(place) as ledger:
            worker = work.Worker(place, ledger)
            first = worker.attend(session)
            for path, mode in modes.items():
                path.chmod(mode)
            untouched = place.records() == before
            second = worker.attend(session)
            return first, untouched, second, [entry.outcome.value for entry in ledger.history(9)]

    assert child.run(nobodys, forbid).result == ("open", True, "done", ["healed"])


def test_a_clock_that_jumps_back_after_the_failure(place: Place) -> None:
    """By an hour, with files and rows from the future then: healed, undone, and the next failure healed as well."""
    session = place.plant("many")
    for path in place.data.rglob("*.json"):
        os.utime(path, (time.time() + 3600, time.time() + 3600))
    now = time.time() - 3600
    with work.opened(place) as ledger:
        recovery = Recovery(Context(ledger, work.CONFIG, place.state, clock=lambda: now))
        triage = Triage(recovery.context, lambda *_: None)
        while (verdict := triage.judge(place.store, session)).next is Next.AGAIN and verdict.wait:
            time.sleep(verdict.wait)
        assert verdict.next is Next.RECOVER and verdict.diagnosis is not None and verdict.kind is not None
        event = recovery.attempt(case(place.store, verdict.diagnosis.failure, verdict.kind)).event
        assert event.outcome is Outcome.HEALED
        assert recovery.confirm(case_of(place.store, verdict.diagnosis.failure, event)).event.outcome is Outcome.HEALED
        assert triage.judge(place.store, session).next is Next.NOTHING
    assert work.take_back(place, session) == []


@pytest.mark.parametrize("version", ["1.2.1", "1.18.33"])
def test_a_clock_that_jumps_back_hides_no_row(tmp_path: Path, version: str) -> None:
    """What is made after the jump is older than the last look: still told, by the first look that there is."""
    clock = [time.time()]
    place = SqlitePlace(tmp_path)
    place.version = version
    place.start()
    place.store = OpencodeSqlite(place.path, clock=lambda: clock[0])
    first = place.plant("one")
    since = int((clock[0] - 86_400) * 1000)
    assert list(place.store.fresh({}, since)) == [(first, "")]
    clock[0] -= 7200
    later = SessionBuilder(int(clock[0] * 1000), seed=8)
    later.user("go")
    later.assistant("fine")
    place.write_planted(later.planted())
    assert later.session["id"] in [session for session, _ in place.store.fresh({}, since)]


def test_names_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    """255 bytes with their suffix: written and taken back like any other, though a temporary name is longer."""
    place = JsonPlace(tmp_path)
    place.start()
    builder = SessionBuilder(int(time.time() * 1000) - 60_000)
    builder.user("go")
    message = builder.assistant(text(" "), bare=True)
    part = builder.parts[message["id"]][0]
    part["id"] = part["id"].ljust(250, "x")
    builder.failed("continue", api_error(EMPTY, 400))
    place.write_planted(builder.planted())
    before = place.records()
    assert max(len(Path(key).name) for key in before) == 255
    session = builder.session["id"]
    assert work.heal(place, session) == "done"
    [kept] = work.entries(place, session)
    assert (kept.outcome, len(kept.changes), len(Path(kept.changes[0].key).name)) == ("healed", 1, 255)
    assert place.records() != before
    assert work.take_back(place, session) == []
    assert (place.records(), place.strays()) == (before, [])


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_database_that_another_program_holds(tmp_path: Path, often: None, how: str, journal: str) -> None:
    """For much longer than is waited for (here a tenth of a second, else two): nothing is recorded meanwhile, and the
    session is healed when it is let go."""
    place = SqlitePlace(tmp_path)
    place.start()
    place.store = OpencodeSqlite(place.path, busy_s=0.1)
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {journal}")
        session = place.plant("many")
        before = place.records()
        other.execute(f"BEGIN {how}")
        with running(tmp_path / "d", place.store) as daemon:
            daemon.sweeps()
            until(lambda: daemon.history() == [], "what is begun is forgotten again")
            assert daemon.events == []
            other.execute("ROLLBACK")
            assert place.records() == before
            until(lambda: daemon.events)
    assert [(event.session, event.outcome) for event in daemon.events] == [(session, Outcome.HEALED)]
    assert [entry.outcome for entry in daemon.history()] == [Outcome.HEALED]


class Writer:
    """A client that says something new and writes over an old answer, as fast as it can, in a session of its own."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._builder = SessionBuilder(int(time.time() * 1000) - 600_000, seed=seed)
        self.theirs: dict[str, bytes] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.error: BaseException | None = None

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def _work(self) -> None:
        try:
            while not self._ended.is_set():
                known = len(self._builder.messages)
                self._builder.user("more")
                self._builder.assistant("said")
                whole = self._builder.planted()
                new = whole.messages[known:]
                parts = {message["id"]: whole.parts[message["id"]] for message in new}
                self._place.write_planted(Planted(whole.session, new, parts))
                part = parts[new[-1]["id"]][1]
                key = f"part/{part['id']}"
                key = key if self._place.name == "sqlite" else f"part/{part['messageID']}/{part['id']}.json"
                self.theirs[key] = self._place.write(key, f"said {known}")
                time.sleep(0.005)
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize("place", ["json", "sqlite"], indirect=True)  # one Codex alone writes a thread: it locks it
def test_two_clients_that_write_at_once(place: Place, tmp_path: Path, often: None) -> None:
    """While five sessions get stuck and are healed, once each: every word of both clients is there in the end."""
    with running(tmp_path / "d", place.store) as daemon, Writer(place, 101) as one, Writer(place, 102) as two:
        stuck = []
        for seed in range(5):
            stuck.append(place.plant("many", seed=seed))
            time.sleep(0.2)
        until(lambda: len(daemon.events) == len(stuck))
        time.sleep(0.3)
    assert one.error is None and two.error is None
    assert min(len(one.theirs), len(two.theirs)) > 5
    assert sorted((e.session, e.outcome) for e in daemon.events) == sorted((s, Outcome.HEALED) for s in stuck)
    now = place.records()
    assert [key for key, raw in {**one.theirs, **two.theirs}.items() if now.get(key) != raw] == []
    assert place.strays() == []


def test_a_disk_that_fails_is_told_once_and_tried_again(
    place: Place, tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For many sweeps of a daemon: one notice, one event, one call of on_abort; then it is healed, as one entry."""
    failing = [True]

    def reach(name: str) -> None:
        if failing and name in ("create", "write", "write line"):
            child.fail("write", place.name)

    monkeypatch.setattr(failpoint, "reach", reach)
    session = place.plant("one")
    with running(tmp_path / "d", place.store) as daemon:
        until(lambda: daemon.events)
        daemon.sweeps()
        assert [event.outcome for event in daemon.events] == [Outcome.FAILED]
        assert "the disk reports an error" in daemon.events[0].detail
        failing.clear()
        until(lambda: len(daemon.events) == 2)
    assert daemon.events[1].outcome is Outcome.HEALED
    assert daemon.aborted == [session]
    assert [entry.outcome for entry in daemon.history()] == [Outcome.HEALED]


def test_a_ledger_that_fails_when_the_repair_stands_is_no_failure(
    place: Place, tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is written, and it can't be said: the next sweep says it, instead of planning upon the repair."""
    session = place.plant("one")
    steps: list[str] = []

    def reach(name: str) -> None:
        steps.append(name)
        if steps[-2:] == ["read back", "ledger begin"] and steps.count("read back") == 1:
            child.fail(name, place.name)

    monkeypatch.setattr(failpoint, "reach", reach)
    with running(tmp_path / "d", place.store) as daemon:
        until(lambda: daemon.events)
    assert "read back" in steps
    assert [(event.session, event.outcome) for event in daemon.events] == [(session, Outcome.HEALED)]
    assert [entry.outcome for entry in daemon.history()] == [Outcome.HEALED]


def test_half_a_repair_that_can_not_be_taken_back_now_is_never_repaired_upon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails in the middle and goes on failing: each attempt ends at once, and the first one after it heals."""
    place = JsonPlace(tmp_path)
    place.start()
    session = place.plant("many")
    before = place.records()
    failing = [True]
    renames: list[str] = []

    def reach(name: str) -> None:
        renames.extend([name] if name == "rename" else [])
        if failing and len(renames) > 2 and not name.startswith("ledger"):
            child.fail(name, place.name)

    monkeypatch.setattr(failpoint, "reach", reach)
    with work.opened(place) as ledger:
        worker = work.Worker(place, ledger)
        assert worker.attend(session) == "open"
        half = place.records()
        assert half != before, "it was to be cut off in the middle"
        assert worker.attend(session) == "open"
        assert place.records() == half
        assert [entry.outcome for entry in ledger.history(9)] == [Outcome.PENDING]
        failing.clear()
        assert worker.attend(session) == "done"
        assert [entry.outcome for entry in ledger.history(9)] == [Outcome.HEALED]
    assert work.take_back(place, session) == []
    assert place.records() == before


def test_half_a_repair_that_a_start_can_not_take_back_waits_for_the_disk(
    tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first sweep after the disk works again takes it back, and then it is made anew."""
    place = JsonPlace(tmp_path)
    place.start()
    session = place.plant("many")
    before = place.records()
    seen: list[str] = []

    def kill(_: int, name: str) -> None:
        seen.append(name)
        if seen.count("rename") > 2:
            os.kill(os.getpid(), signal.SIGKILL)

    assert child.run(partial(work.heal, place, session), kill).signal
    half = place.records()
    assert half != before
    failing = [True]

    def reach(name: str) -> None:
        if failing and not name.startswith("ledger"):
            child.fail(name, place.name)

    monkeypatch.setattr(failpoint, "reach", reach)
    with running(place.home, place.store) as daemon:
        daemon.sweeps()
        assert place.records() == half
        failing.clear()
        until(lambda: daemon.events and daemon.events[-1].outcome is Outcome.HEALED)
    assert work.take_back(place, session) == []
    assert place.records() == before


@pytest.mark.parametrize("what", ["full", "read-only", "read-only since"])
def test_a_disk_that_lets_nothing_be_written_uses_up_no_recovery(place: Place, what: str) -> None:
    """However often a daemon is started on it: nothing is recorded that was never written."""
    number, code = (errno.ENOSPC, sqlite3.SQLITE_FULL) if what == "full" else (errno.EROFS, sqlite3.SQLITE_READONLY)
    steps = ("rename", "commit", "sync lines") if what == "read-only since" else ("create", "begin", "write line")

    def fail(_: int, name: str) -> None:
        if name in steps:
            error = sqlite3.OperationalError(what)
            error.sqlite_errorcode = code
            raise error if place.name in ("sqlite", "kilo") else OSError(number, what)

    session = place.plant("many")
    before = place.records()
    for _ in range(4):
        assert child.run(partial(work.heal, place, session), fail).result == "open"
        assert (work.entries(place, session), place.records(), place.strays()) == ([], before, [])
        child.run(partial(work.start, place), fail)
    assert work.heal(place, session) == "done"
    assert [entry.outcome for entry in work.entries(place, session)] == ["healed"]
