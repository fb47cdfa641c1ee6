"""What a user wants gone from the ledger is gone from the file; what an older recoveryd wrote is brought forward."""

from __future__ import annotations

import multiprocessing
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recoveryd.core.errors import BusyError, LedgerError, NotFoundError, RefusedError
from recoveryd.core.model import Change, Kind, Outcome
from recoveryd.ledger import schema
from recoveryd.ledger.ledger import SCHEMA_VERSION, Handled, Ledger, Record
from recoveryd.ledger.peek import damage, peek
from recoveryd.ledger.schema import bring_forward
from recoveryd.ledger.seen_and_resumed import SeenSessions
from recoveryd.ledger.upkeep import FORGOTTEN, Upkeep
from tests.ledger.test_ledger import DAY, HARMLESS, LOSSY, Clock, begin, failure, heal

FIRST = (Path(__file__).parents[1] / "data" / "ledger_schema_1.sql").read_text(encoding="utf-8")
SECRET = "correct horse battery staple"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "state" / "ledger.db", clock) as made:
        yield made


def secret(n: int = 0) -> Change:
    words = f'{{"id":"prt_{n}","type":"text","text":"{SECRET} {n} {"x" * 3000}"}}'.encode()
    return Change(f"part/{n}", words, words.replace(b"correct", b"legible"))


def large(n: int) -> Change:
    """Images of 600 kB."""
    return Change(f"part/{n}", b"a" * 300_000, b"b" * 300_000)


def on_disk(folder: Path, text: str) -> list[str]:
    """The files of the folder that hold a text."""
    return sorted(file.name for file in folder.iterdir() if text.encode() in file.read_bytes())


def old_ledger(path: Path) -> Path:
    """A ledger as the first recoveryd made it."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FIRST)
    return path


class TestForget:
    def test_all_that_a_session_said_is_gone_from_every_file(self, ledger: Ledger) -> None:
        folder = ledger.file.path.parent
        for n in range(30):
            heal(ledger, failure(f"msg_{n}", "ses_1"), [secret(n)])
        other = heal(ledger, failure("msg_1", "ses_2"), [HARMLESS])
        assert on_disk(folder, SECRET), "the test looks where it is"
        with closing(sqlite3.connect(ledger.file.path)):  # who has it open and reads nothing is in nobody's way
            gone = Upkeep(ledger).forget("ses_1")
        assert len(gone) == 30
        for text in (SECRET, "legible horse"):
            assert on_disk(folder, text) == []
        assert [e.title for e in ledger.history(99, "ses_1")] == [""] * 30
        assert {e.detail for e in ledger.history(99, "ses_1")} == {FORGOTTEN}
        assert ledger.changes(other) == [HARMLESS]

    def test_what_was_handled_stays_handled(self, ledger: Ledger) -> None:
        heal(ledger)
        Upkeep(ledger).forget("ses_1")
        assert ledger.handled("st", "ses_1", "msg_1") == Handled(Outcome.HEALED, "s1", 1)
        assert len(ledger.tries("st", "ses_1", 0)) == 1

    def test_what_an_older_recoveryd_deleted_without_wiping_is_gone_too(self, ledger: Ledger) -> None:
        ledger.file.db.execute("PRAGMA secure_delete = OFF")
        name = heal(ledger, failure("msg_1", "ses_1"), [secret()])
        heal(ledger, failure("msg_2", "ses_1"))
        ledger.file.db.execute("DELETE FROM image WHERE seq = (SELECT seq FROM recovery WHERE id = ?)", (name,))
        assert on_disk(ledger.file.path.parent, SECRET)
        Upkeep(ledger).forget("ses_1")
        assert on_disk(ledger.file.path.parent, SECRET) == []

    def test_a_session_that_is_not_there(self, ledger: Ledger) -> None:
        with pytest.raises(NotFoundError, match="nothing of a session ses_9"):
            Upkeep(ledger).forget("ses_9")

    def test_what_a_crash_cut_off_needs_its_images(self, ledger: Ledger) -> None:
        heal(ledger)
        name = begin(ledger, failure("msg_2"))
        with pytest.raises(RefusedError, match=f"{name} of this session"):
            Upkeep(ledger).forget("ses_1")
        assert ledger.changes(name) == [HARMLESS]

    def test_a_reader_in_the_way_is_said(self, ledger: Ledger) -> None:
        heal(ledger, changes=[secret()])
        ledger.file.db.execute("PRAGMA busy_timeout = 10")
        with closing(sqlite3.connect(ledger.file.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM image").fetchone()
            with pytest.raises(BusyError, match="its bytes may still be in the file"):
                Upkeep(ledger).forget("ses_1")
        Upkeep(ledger).forget("ses_1")
        assert on_disk(ledger.file.path.parent, SECRET) == []


class TestLimits:
    def test_content_that_exists_nowhere_else_goes_only_when_it_is_asked_for(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        plain, lossy = heal(ledger, failure("msg_1")), heal(ledger, failure("msg_2"), [LOSSY], sole=True)
        now = clock.now + 31 * DAY
        assert [h.entry.id for h in Upkeep(ledger).beyond(30, 200, now)] == [plain]
        assert [h.entry.id for h in Upkeep(ledger).beyond(30, 200, now, all_content=True)] == [plain, lossy]
        assert Upkeep(ledger).beyond(30, 200, clock.now + DAY, all_content=True) == []
        Upkeep(ledger).clear([plain, lossy])
        assert ledger.changes(lossy) == []
        assert on_disk(ledger.file.path.parent, "words of the user") == []

    def test_what_goes_by_itself_is_not_among_what_stays_beyond_the_limits(self, ledger: Ledger, clock: Clock) -> None:
        sizes = [heal(ledger, failure(f"msg_{n}"), [large(n)], sole=n == 1) for n in range(4)]
        upkeep, now = Upkeep(ledger), clock.now + DAY
        every = upkeep.beyond(30, 1, now, all_content=True)
        assert len(every) == 3 and upkeep.beyond(30, 1, now) != []
        gone = [held.entry.id for held in upkeep.beyond(30, 1, now)]
        assert upkeep.kept_beyond(30, 1, now, gone) == 1 and sizes[1] not in gone
        upkeep.clear(gone)
        assert upkeep.kept_beyond(30, 1, now, gone) == upkeep.kept_beyond(30, 1, now, []) == 1
        assert upkeep.kept_beyond(30, 2, now, []) == 0 and upkeep.kept_beyond(0, 2, now, []) == 1

    def test_what_is_held_and_how_much(self, ledger: Ledger) -> None:
        name = heal(ledger, failure(), [HARMLESS, LOSSY])
        heal(ledger, failure("msg_2", "ses_2"))
        [held] = Upkeep(ledger).held("ses_1")
        assert (held.entry.id, held.images) == (name, 2)
        assert held.size == sum(len(i or b"") for c in (HARMLESS, LOSSY) for i in (c.before, c.after))
        assert len(Upkeep(ledger).held()) == 2

    def test_the_seconds_of_the_repair_stay_those_of_the_first_writing(self, ledger: Ledger) -> None:
        name = begin(ledger)
        ledger.finish(name, Outcome.HEALED, "d", seconds=0.25)
        ledger.rewrite(Record(name, failure(), "", None, "d", changes=(HARMLESS,)))
        ledger.finish(name, Outcome.HEALED, "d", seconds=9.0)
        ledger.mark(name, Outcome.UNDONE)
        assert [(e.kind, e.outcome, e.seconds) for e in Upkeep(ledger).ended()] == [
            (Kind.TOOL_RESULT_MISSING, Outcome.UNDONE, 0.25)
        ]


class TestOlder:
    def test_nothing_of_it_is_lost_and_no_copy_stays(self, tmp_path: Path) -> None:
        path = old_ledger(tmp_path / "ledger.db")
        with Ledger(path) as ledger:
            assert [e.id for e in ledger.history(9)] == ["r2222bbbb", "r1111aaaa"]
            assert ledger.history(9)[0].title == "Second \ud83d"
            assert ledger.changes("r1111aaaa") == [Change("part/a", b'{"text":" "}', b'{"text":"x"}', 0o644)]
            assert ledger.handled("/s", "ses_1", "msg_1") == Handled(Outcome.HEALED, "s", 1)
            assert SeenSessions(ledger.file).remembered("/s") == {"ses_1": "1:2"}
            assert heal(ledger)
        assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]

    def test_it_becomes_what_a_new_one_is(self, tmp_path: Path) -> None:
        def columns(path: Path) -> dict[str, list[object]]:
            with closing(sqlite3.connect(path)) as db:
                tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                pragmas = ("user_version", "application_id", "auto_vacuum", "journal_mode")
                facts = {name: db.execute(f"PRAGMA {name}").fetchall() for name in pragmas}
                return {t: db.execute(f"PRAGMA table_info({t})").fetchall() for t in tables} | facts

        Ledger(old_ledger(tmp_path / "old.db")).close()
        Ledger(tmp_path / "new.db").close()
        assert columns(tmp_path / "old.db") == columns(tmp_path / "new.db")

    def test_a_step_that_fails_leaves_it_as_it_was_with_a_private_copy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = old_ledger(tmp_path / "ledger.db")
        before = _dump(path)
        steps = (schema._STEPS[0], (*schema._STEPS[1], "ALTER TABLE elsewhere ADD COLUMN x"))
        with monkeypatch.context() as patched:
            patched.setattr(schema, "_STEPS", steps)
            with pytest.raises(LedgerError, match="no such table"):
                Ledger(path)
        assert _dump(path) == before
        copy = tmp_path / "ledger.db.schema-1"
        assert _dump(copy) == before and stat.S_IMODE(copy.stat().st_mode) == 0o600
        Ledger(path).close()
        assert not copy.exists()

    def test_no_room_for_the_copy_is_said_and_nothing_is_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = old_ledger(tmp_path / "ledger.db")
        before = _dump(path)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(schema, "_copy", full)
            with pytest.raises(LedgerError, match="No space left"):
                Ledger(path)
        assert _dump(path) == before

    @pytest.mark.live
    def test_many_processes_may_bring_it_forward_at_once(self, tmp_path: Path) -> None:
        path = old_ledger(tmp_path / "ledger.db")
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=_open_once, args=(path,)) for _ in range(6)]
        for child in children:
            child.start()
        for child in children:
            child.join(15)
        assert [child.exitcode for child in children] == [0] * 6
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
            bring_forward(db, path)  # nothing left to do
        assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]

    def test_it_is_only_read_as_it_is(self, tmp_path: Path) -> None:
        path = old_ledger(tmp_path / "ledger.db")
        before = path.read_bytes()
        ended = peek(path, lambda ledger: Upkeep(ledger).ended()) or []
        assert [(e.outcome, e.seconds) for e in ended] == [(Outcome.HEALED, None), (Outcome.NOT_UNDERSTOOD, None)]
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


class TestPeek:
    def test_it_leaves_no_trace_and_sees_what_another_process_has_just_written(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        assert peek(path, lambda ledger: len(ledger.history(9))) is None
        assert list(tmp_path.iterdir()) == []
        child = multiprocessing.get_context("spawn").Process(target=_heal_once, args=(path,))
        child.start()
        child.join(30)
        names = sorted(file.name for file in tmp_path.iterdir())
        assert peek(path, lambda ledger: len(ledger.history(9))) == 1
        assert damage(path) == ""
        assert sorted(file.name for file in tmp_path.iterdir()) == names == ["ledger.db"]

    def test_one_of_a_newer_recoveryd_is_named_so(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        Ledger(path).close()
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
        with pytest.raises(LedgerError, match="newer recoveryd"):
            peek(path, lambda ledger: None)

    def test_damage_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        with Ledger(path) as ledger:
            for n in range(50):
                heal(ledger, failure(f"msg_{n}"), [secret(n)])
        raw = bytearray(path.read_bytes())
        raw[4096 * 5 : 4096 * 9] = b"\xaa" * (4096 * 4)
        path.write_bytes(raw)
        try:
            assert damage(path)
        except LedgerError as error:
            assert "damaged" in error.message


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


def _open_once(path: Path) -> None:
    Ledger(path).close()


def _heal_once(path: Path) -> None:
    with Ledger(path) as ledger:
        heal(ledger)


def test_originals_kept_while_the_clock_was_behind_are_as_young_as_those_before_them(
    ledger: Ledger, clock: Clock
) -> None:
    heal(ledger, failure("msg_1"), [HARMLESS])
    upkeep, right = Upkeep(ledger), clock.now
    assert upkeep.prune(30, 200, right + 31 * DAY) == 1
    clock.now = 0
    behind = heal(ledger, failure("msg_2"), [HARMLESS])
    assert upkeep.prune(30, 200, right + 29 * DAY) == 0 and ledger.changes(behind)
    assert upkeep.prune(30, 200, right + 31 * DAY) == 1
