"""The SQLite store, on databases with the tables of 1.2.1 and 1.18.33: reading, finding, what is in the way."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.find import Config, find_stores
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite import cursor, reader
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.edits import edited
from recoveryd.core.errors import BusyStoreError, StoreError
from recoveryd.core.model import Change, Edit
from recoveryd.disk.sqlite import Database
from tests.support.database import NEW, OLD, SCHEMAS, Base
from tests.support.json_tree import NOW, SES, name


@pytest.fixture(params=list(SCHEMAS))
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    return Base(tmp_path / "opencode" / "opencode.db", request.param)


@pytest.fixture
def new(tmp_path: Path) -> Base:
    return Base(tmp_path / "opencode" / "opencode.db", NEW)


def test_the_database_and_its_wal_are_watched(new: Base) -> None:
    store: Store = new.store
    assert store.watch_files == (new.path, new.path.with_name("opencode.db-wal"))
    assert store.lock_path == store.watch_path == new.path.parent


def test_the_tables_tell_what_the_client_sends(tmp_path: Path) -> None:
    assert [Base(tmp_path / v / "opencode.db", v).store.forms() for v in (OLD, NEW)] == [("paged",), ("new",)]


def test_a_session_is_loaded_with_the_columns_of_its_rows(base: Base) -> None:
    base.small()
    base.session("ses_1", parent_id="ses_0", revert='{"messageID":"msg_1"}')
    assert base.rows()["message"] == []  # OR REPLACE took the messages along
    asked, answered = base.small()
    early = base.message({"role": "user", "time": {"created": NOW - 200}}, NOW - 200, identifier="msg_zzz")
    base.part(answered, "prt_10", {"type": "unheard-of", "extra": {"kept": [1]}})
    session = base.store.load(SES)
    assert [(m.id, m.at) for m in session.messages] == [(early, NOW - 200), (asked, NOW - 100), (answered, NOW - 90)]
    ids = {"id": "prt_10", "sessionID": SES, "messageID": answered}
    assert session.messages[2].parts[0].data == {**ids, "type": "unheard-of", "extra": {"kept": [1]}}
    assert session.messages[0].data == {"id": early, "sessionID": SES, "role": "user", "time": {"created": NOW - 200}}
    assert session.revert == {"messageID": "msg_1"}
    assert base.beside() == []


def test_places_in_the_table_are_read_where_the_client_orders_by_them(base: Base) -> None:
    """Those of one millisecond: what a repair puts in comes last, as in memory."""
    base.session()
    made = [base.message({"role": "user", "time": {"created": NOW}}, NOW, identifier=f"msg_{n}") for n in (2, 1, 3)]
    session = base.store.load(SES)
    rows = {message.id: message.row for message in session.messages}
    told = base.store.forms() == ("paged",)
    assert rows == {one: number if told else 0 for number, one in enumerate(made, 1)}
    after = {"id": "msg_0", "sessionID": SES, "role": "user", "time": {"created": NOW}}
    edits = [Edit("msg_0", None, after, "placeholder"), Edit("msg_3", None, {**after, "id": "msg_3"}, "placeholder")]
    base.store.apply(base.store.changes(session, edits))
    ours = [(message.id, message.row if told else 0) for message in edited(session, edits).messages]
    assert [(message.id, message.row) for message in base.store.load(SES).messages] == ours


def test_places_do_not_count_where_an_index_orders_by_ids(tmp_path: Path) -> None:
    """As the databases of later 1.2 and 1.3 have one, before there are events."""
    base = Base(tmp_path / "opencode.db", OLD)
    base.small()
    assert {bool(message.row) for message in base.store.load(SES).messages} == {True}
    base.run("CREATE INDEX by_time ON message (session_id, time_created, id)")
    assert {bool(message.row) for message in base.store.load(SES).messages} == {False}
    assert base.store.forms() == ("paged",)


def test_the_columns_tell_the_ids_whatever_the_json_says(new: Base) -> None:
    asked = new.message('{"id":"msg_other","role":"user"}', NOW)
    new.part(asked, "prt_1", '{"id":"prt_other","messageID":"msg_x","type":"text"}')
    [message] = new.store.load(SES).messages
    assert message.data == {"id": asked, "sessionID": SES, "role": "user"}
    assert message.parts[0].data == {"id": "prt_1", "sessionID": SES, "messageID": asked, "type": "text"}


def test_a_part_that_is_no_text_is_kept_exactly(new: Base) -> None:
    _, answered = new.small()
    new.part(answered, "prt_bad", b"\x00\xff")  # a BLOB
    before = new.rows()
    part = new.store.load(SES).part("prt_bad")
    assert part is not None
    assert part.data is None
    changes = new.store.changes(new.store.load(SES), [Edit(answered, "prt_bad", {"type": "text"}, "x")])
    new.store.apply(changes)
    assert new.rows() != before
    new.store.apply([change.reversed() for change in changes])
    assert new.rows() == before


@pytest.mark.parametrize(("revert", "read"), [("null", True), ("{", False), ("[]", False)])
def test_a_broken_revert_is_named_for_the_client_is_about_to_delete(new: Base, revert: str, read: bool) -> None:
    new.session(revert=revert)
    new.small()
    if read:
        assert new.store.load(SES).revert is None
    else:
        with pytest.raises(StoreError, match="revert of session ses_1"):
            new.store.load(SES)


def test_a_row_with_values_of_another_kind_is_named(new: Base) -> None:
    asked, _ = new.small()
    new.run("UPDATE part SET time_created = 'soon' WHERE id = 'prt_1'")
    with pytest.raises(StoreError, match="'prt_1' in part whose time_created"):
        new.store.load(SES)
    assert asked


def test_a_session_without_messages_is_one(new: Base) -> None:
    new.session("ses_empty")
    assert new.store.load("ses_empty").messages == ()


def test_all_sessions_with_messages_are_listed_in_pages(new: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE", 3)
    wanted = [f"ses_{number:02}" for number in range(7)]
    for number, session in enumerate(wanted):
        new.say("user", NOW + number, session=session)
    new.session("ses_empty")
    assert list(new.store.session_ids()) == wanted


def test_a_stamp_changes_with_every_write_and_only_then(base: Base) -> None:
    _, answered = base.small()
    seen = [base.store.stamp(SES)]
    assert base.store.stamp(SES) == seen[0]
    for statement in (
        "UPDATE part SET time_updated = time_updated + 1 WHERE id = 'prt_1'",
        f"UPDATE message SET time_updated = {NOW + 5} WHERE id = '{answered}'",
        "DELETE FROM part WHERE id = 'prt_1'",
        "UPDATE session SET title = 'x'",
        f"UPDATE session SET time_updated = {NOW + 9}",
    ):
        base.run(statement)
        seen.append(base.store.stamp(SES))
    assert len({stamp.fingerprint for stamp in seen}) == len(seen)
    assert seen[-1].newest_mtime_ns == (NOW + 9) * 1_000_000


def fill(base: Base) -> None:
    with base.client() as db:
        db.execute("BEGIN")
        for number in range(40):
            session = f"ses_{number:03}"
            columns = "id, project_id, slug, directory, title, version, time_created, time_updated"
            db.execute(f"INSERT INTO session ({columns}) VALUES (?, 'global', '', '', '', '', 0, 0)", (session,))
            for place in range(20):
                message = name(NOW + number, place)
                db.execute("INSERT INTO message VALUES (?, ?, 0, 0, '{}')", (message, session))
                rows_ = [(f"prt_{number}_{place}_{part}", message, session) for part in range(5)]
                db.executemany("INSERT INTO part VALUES (?, ?, ?, 0, 0, '{}')", rows_)
        db.execute("COMMIT")


def test_no_query_goes_through_a_whole_table(base: Base) -> None:
    base.small()
    queries = [reader.MESSAGES, reader.PARTS, reader.PARTS_OF, reader.NEWEST, reader.ABOUT]
    queries += [*reader.STAMPS, reader.SESSIONS, cursor.IN_RANGE, cursor.BY_ID]
    queries += ["SELECT id FROM part WHERE message_id = ? LIMIT 1", cursor.DATA]
    if base.store.forms() == ("new",):
        queries += [cursor.LAST_EVENT, cursor.EVENT_AT, cursor.EVENTS_SINCE]
    for number, query in enumerate([*queries, *queries]):
        if number == len(queries):
            fill(base)  # once the planner has learned what is in the tables, too
            base.run("ANALYZE")
        plan = [row[-1] for row in base.run(f"EXPLAIN QUERY PLAN {query}", *["x"] * query.count("?"))]
        assert plan
        assert not [step for step in plan if step.startswith("SCAN")], (query, plan)


def test_reading_leaves_nothing_behind_and_sees_what_is_only_in_the_wal(new: Base) -> None:
    new.small()
    assert new.beside() == []
    with new.client() as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE session SET title = 'in the wal'")
        assert new.store.load(SES).title == "in the wal"
        assert new.beside() == ["opencode.db-shm", "opencode.db-wal"]
    new.store.load(SES)
    list(new.store.fresh({}, 0))
    assert new.beside() == []


def test_what_comes_in_while_it_is_read_is_read_again(new: Base) -> None:
    new.small()
    seen: list[str] = []
    client: list[sqlite3.Connection] = []

    def work(db: sqlite3.Connection) -> str:
        title = str(db.execute("SELECT title FROM session").fetchone()[0])
        if not seen:
            client.append(sqlite3.connect(new.path, isolation_level=None))
            client[0].execute("UPDATE session SET title = 'newer'")
        seen.append(title)
        return title

    assert Database(new.path).read(work) == "newer"
    assert seen == ["A title", "newer"]
    client[0].close()


def test_a_writer_never_holds_up_a_reader(new: Base) -> None:
    new.small()
    with new.client() as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE session SET title = 'unseen'")
        started = time.monotonic()
        assert new.store.load(SES).title == "A title"
        assert [s for s, _ in new.store.fresh({}, 0)] == [SES]
        assert time.monotonic() - started < 0.1
        db.execute("ROLLBACK")


def test_a_locked_database_is_said_to_be_busy_and_later_it_works(new: Base) -> None:
    asked, _ = new.small()
    [change] = new.store.changes(new.store.load(SES), [Edit(asked, "prt_1", {"type": "text", "text": "x"}, "x")])
    before = new.rows()
    with new.client() as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyStoreError, match="locked by another program") as caught:
            new.store.apply([change])
        assert (caught.value.exit_code, caught.value.hint) == (
            75,
            "Try again in a moment.",
        )  # an undo, nobody tries again
        db.execute("ROLLBACK")
    assert new.rows() == before
    held = sqlite3.connect(new.path, isolation_level=None, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, held.close)
    release.start()
    OpencodeSqlite(new.path).apply([change])
    release.join()
    assert new.rows() != before


def test_an_exclusively_locked_database_is_busy_to_readers_too(new: Base) -> None:
    new.small()
    with new.client() as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")
        for use in (lambda: new.store.load(SES), new.store.live, lambda: list(new.store.fresh({}, 0))):
            with pytest.raises(BusyStoreError):
                use()
    assert new.store.load(SES).id == SES
    assert new.beside() == []


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.with_name("real.db").write_bytes(b"")
    path.symlink_to(path.with_name("real.db"))


def _other(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a)")


def test_an_empty_file_is_no_store_yet(tmp_path: Path) -> None:
    store = OpencodeSqlite(tmp_path / "opencode.db")
    store.root.touch()
    assert not store.exists() and "not there yet" in (store.live() or "")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_folder, "is a folder"),
        (_link, "is a symlink"),
        (os.mkfifo, "is a named pipe"),
        (_other, "it has no table message"),
        (lambda path: path.write_bytes(b"no database, though as long as a header would be" * 9), "no SQLite database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\1" * 5000), "it"),
    ],
)
def test_what_is_no_database_is_said_and_left_alone(tmp_path: Path, make: Callable[[Path], Any], said: str) -> None:
    store = OpencodeSqlite(tmp_path / "opencode.db")
    make(tmp_path / "opencode.db")
    assert store.exists()
    assert said in (store.live() or "")
    change = Change("part/prt_1", None, b"{}")
    for use in (store.load, store.stamp, store.look, lambda _: store.apply([change]), lambda _: store.read(change.key)):
        with pytest.raises(StoreError):
            use(SES)
    for listed in (store.session_ids, lambda: store.fresh({}, 0)):
        with pytest.raises(StoreError):
            list(listed())


def test_a_damaged_database_is_said_and_left_alone(new: Base) -> None:
    asked, _ = new.small()
    for number in range(200):
        new.part(asked, f"prt_x{number}", {"type": "text", "text": "x" * 1000})
    raw = bytearray(new.path.read_bytes())
    raw[4096 * 30 :] = b"\xa5" * (len(raw) - 4096 * 30)
    new.path.write_bytes(raw)
    with pytest.raises(StoreError, match=r"Can't read .*: it is damaged") as caught:
        new.store.load(SES)
    assert "recover" in caught.value.hint
    assert new.path.read_bytes() == raw


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE part ADD COLUMN extra text", "its table part has other columns"),
        ("ALTER TABLE message RENAME COLUMN data TO body", "its table message has other columns"),
        ("ALTER TABLE session DROP COLUMN revert", "its table session has other columns"),
        ("DROP TABLE part", "it has no table part"),
    ],
)
def test_tables_of_an_unknown_version_are_refused(new: Base, change: str, said: str) -> None:
    asked, _ = new.small()
    changes = new.store.changes(new.store.load(SES), [Edit(asked, "prt_1", {"type": "text", "text": "x"}, "x")])
    new.run(change)
    before = new.path.read_bytes()
    assert said in (new.store.live() or "")
    for use in (lambda: new.store.load(SES), lambda: new.store.apply(changes), lambda: list(new.store.fresh({}, 0))):
        with pytest.raises(StoreError, match=said):
            use()
    assert new.path.read_bytes() == before


def test_opencode_2_is_recognised_and_not_edited(new: Base) -> None:
    asked, _ = new.small()
    changes = new.store.changes(new.store.load(SES), [Edit(asked, "prt_1", {"type": "text", "text": "x"}, "x")])
    new.run("CREATE TABLE session_v2 (id text PRIMARY KEY)")
    before = new.rows()
    assert "OpenCode 2" in (new.store.live() or "")
    with pytest.raises(StoreError, match="OpenCode 2"):
        list(new.store.fresh({}, 0))
    with pytest.raises(StoreError, match="OpenCode 2"):
        new.store.apply(changes)
    assert new.rows() == before


def test_the_tables_are_looked_at_again_inside_the_transaction(new: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, _ = new.small()
    changes = new.store.changes(new.store.load(SES), [Edit(asked, "prt_1", {"type": "text", "text": "x"}, "x")])
    monkeypatch.setattr(new.store, "live", lambda: None)
    new.run("CREATE TABLE session_v2 (id text PRIMARY KEY)")
    before = new.rows()
    with pytest.raises(StoreError, match="OpenCode 2"):
        new.store.apply(changes)
    assert new.rows() == before


def test_a_database_that_is_not_there_is_named(new: Base) -> None:
    with pytest.raises(StoreError, match=r"none\.db is not there"):
        OpencodeSqlite(new.path.with_name("none.db")).load(SES)


def test_a_wal_that_vanishes_is_no_trouble(new: Base) -> None:
    new.small()
    copy = new.path.with_name("copy.db")
    with new.client() as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE session SET title = 'in the wal'")
        for end in ("", "-wal"):
            shutil.copy(f"{new.path}{end}", f"{copy}{end}")
    store = OpencodeSqlite(copy, clock=lambda: NOW / 1000)
    assert store.load(SES).title == "in the wal"
    assert [s for s, _ in store.fresh({}, 0)] == [SES]
    Path(f"{copy}-wal").unlink()
    Path(f"{copy}-shm").unlink()
    assert store.load(SES).title == "A title"
    assert list(store.fresh({}, 0)) is not None
    assert store.live() is None


def test_databases_are_found_where_the_client_keeps_them_each_once(tmp_path: Path) -> None:
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    copies = ("opencode-backup.db", "opencode copy.db", "opencode.db.bak", "opencode-2026-08-14.db")
    for file in ("opencode-beta.db", "opencode-beta.db-wal", "other.db", "opencode.json", *copies):
        (data / file).touch()
    (tmp_path / "link.db").symlink_to(data / "opencode-beta.db")
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path), "OPENCODE_DB": "mine.db"}
    extra, named_ones = (
        (tmp_path / "more" / "storage", tmp_path / "more"),
        (tmp_path / "link.db", tmp_path / "named.db"),
    )
    found = find_stores(Config(opencode=OpencodeSettings(data_dirs=extra, databases=named_ones)), env)
    databases = [store.root for store in found if isinstance(store, OpencodeSqlite)]
    own = [data / "mine.db", data / "opencode.db", data / "opencode-beta.db"]
    assert databases == [*own, tmp_path / "more" / "opencode.db", tmp_path / "named.db"]
    trees = [store.root for store in found if isinstance(store, OpencodeFiles)]
    assert trees == [data / "storage", tmp_path / "more" / "storage"]
    for named, count in ((":memory:", 0), (str(tmp_path / "abs.db"), 1), ("", 0)):
        again = [s.root for s in find_stores(Config(), {**env, "OPENCODE_DB": named})]
        assert [tmp_path / "abs.db"] * count == [root for root in again if root == tmp_path / "abs.db"]
        assert data / "opencode.db" in again
        assert not any(root.name == ":memory:" for root in again)


def test_a_store_that_is_reached_by_two_paths_is_one(tmp_path: Path) -> None:
    base = Base(tmp_path / "data" / "opencode" / "opencode.db")
    (tmp_path / "mounted.db").hardlink_to(base.path)  # as a bind mount would
    found = find_stores(
        Config(opencode=OpencodeSettings(databases=(tmp_path / "mounted.db",))),
        {"XDG_DATA_HOME": str(tmp_path / "data")},
    )
    assert [store.root for store in found if store.exists()] == [base.path]


def test_writes_to_the_wal_and_the_database_touch_all_sessions(new: Base) -> None:
    for file, touched in (("opencode.db-wal", [None]), ("opencode.db", [None]), ("opencode.db-shm", []), ("log", [])):
        assert list(new.store.touched((file,))) == touched
    assert list(new.store.touched(("log", "opencode.db"))) == []


def test_of_a_damaged_database_it_says_which_program_to_quit(base: Base) -> None:
    base.path.write_bytes(base.path.read_bytes()[:100] + b"\xff" * 5000)
    with pytest.raises(StoreError) as caught:
        list(base.store.session_ids())
    assert "Quit OpenCode" in caught.value.hint
