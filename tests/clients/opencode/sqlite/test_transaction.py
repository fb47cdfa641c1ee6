"""Edits of a database: all of them or none, only on what was read, and back again to the very row."""

from __future__ import annotations

import json
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients import store
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.core import failpoint
from recoveryd.core.errors import ConflictError, StoreError
from recoveryd.core.model import Change, Edit
from tests.support.database import NEW, SCHEMAS, Base, text
from tests.support.examples import examples
from tests.support.json_tree import NOW, SES, name

EARLIER = NOW - 3_600_000


@pytest.fixture(params=list(SCHEMAS))
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    return Base(tmp_path / "opencode.db", request.param)


def back(changes: Sequence[Change]) -> list[Change]:
    return [change.reversed() for change in reversed(changes)]


def edits(db: Base, asked: str, answered: str) -> list[Change]:
    """A part replaced, one set aside, one added, a message added with its part, one set aside with its own."""
    doomed = db.say("user", NOW - 70)
    db.part(doomed, "prt_3")
    db.part(doomed, "prt_4", text(b"\xff"))
    new = name(NOW - 95)
    return db.store.changes(
        db.store.load(SES),
        [
            Edit(doomed, None, None, "x"),
            Edit(asked, "prt_1", {"type": "text", "text": "other"}, "x"),
            Edit(answered, "prt_2", None, "x"),
            Edit(answered, "prt_2z", {"type": "text", "text": "new"}, "x"),
            Edit(new, None, {"role": "user", "time": {"created": NOW - 95}}, "x"),
            Edit(new, "prt_9", {"type": "text", "text": "said"}, "x"),
        ],
    )


def test_changes_are_written_like_the_client_writes(db: Base) -> None:
    asked, _ = db.small()
    db.run("UPDATE part SET time_created = ?, time_updated = ?", EARLIER, EARLIER)
    session = db.store.load(SES)
    after = {"id": "prt_x", "sessionID": "x", "messageID": "x", "type": "text", "text": 'é\ud800\n"', "n": 1, "e": {}}
    old, new = db.store.changes(session, [Edit(asked, "prt_1", after, "x"), Edit(asked, "prt_1z", after, "x")])
    data = '{"type":"text","text":"é\\ud800\\n\\"","n":1,"e":{}}'
    row = {"id": "prt_1", "message_id": asked, "session_id": SES, "time_created": EARLIER, "time_updated": NOW}
    assert json.loads(old.after or b"") == {**row, "data": data}
    assert json.loads(new.after or b"") == {**row, "id": "prt_1z", "time_created": NOW, "data": data}
    assert (old.key, new.key, old.mode, new.before) == ("part/prt_1", "part/prt_1z", None, None)
    assert (old.before, old.before) == (session.messages[0].parts[0].raw, db.store.read(old.key))
    db.store.apply([old, new])
    assert db.run("SELECT data, typeof(data) FROM part WHERE id LIKE 'prt_1%'") == [(data, "text")] * 2


def test_a_new_message_has_the_time_that_it_says(db: Base) -> None:
    db.small()
    edit = Edit(name(NOW - 95), None, {"role": "user", "time": {"created": NOW - 95}}, "x")
    [change] = db.store.changes(db.store.load(SES), [edit])
    db.store.apply([change])
    assert db.run("SELECT time_created, time_updated FROM message WHERE id = ?", edit.message_id) == [(NOW - 95, NOW)]
    assert [message.at for message in db.store.load(SES).messages] == [NOW - 100, NOW - 95, NOW - 90]


def test_a_set_is_written_and_taken_back_to_the_very_row(db: Base) -> None:
    asked, answered = db.small()
    changes = edits(db, asked, answered)
    before = db.rows()
    db.store.apply(changes)
    assert store.all_written(db.store, changes)
    assert [(m.id, [p.id for p in m.parts]) for m in db.store.load(SES).messages] == [
        (asked, ["prt_1"]),
        (name(NOW - 95), ["prt_9"]),
        (answered, ["prt_2z"]),
    ]
    db.store.apply(back(changes))
    assert db.rows() == before
    assert set(store.stored_images(db.store, changes)) == {"before"}
    assert db.beside() == []


def test_a_message_that_goes_takes_its_parts_along_each_with_its_image(db: Base) -> None:
    asked, answered = db.small()
    db.part(answered, "prt_3")
    before = db.rows()
    edit = [Edit(answered, "prt_3", {"type": "text"}, "x"), Edit(answered, None, None, "x")]
    changes = db.store.changes(db.store.load(SES), edit)
    assert {c.key: c.after for c in changes} == {
        "part/prt_2": None,
        "part/prt_3": None,
        f"message/{answered}": None,
    }
    assert changes[-1].key == f"message/{answered}"
    db.store.apply(changes)
    assert [m.id for m in db.store.load(SES).messages] == [asked]
    db.store.apply(back(changes))
    assert db.rows() == before


@pytest.mark.parametrize(
    "write",
    [
        "UPDATE part SET data = '{}' WHERE id = 'prt_2'",
        "UPDATE part SET time_updated = 7 WHERE id = 'prt_2'",
        "DELETE FROM part WHERE id = 'prt_2'",
        "DELETE FROM session",
    ],
)
def test_what_the_client_wrote_since_is_a_conflict_and_nothing_is_touched(db: Base, write: str) -> None:
    asked, answered = db.small()
    changes = edits(db, asked, answered)
    db.run(write)
    before = db.rows()
    with pytest.raises(ConflictError, match="the client wrote since"):
        db.store.apply(changes)
    assert db.rows() == before


def test_a_record_that_is_there_by_now_and_one_whose_message_went_are_conflicts(db: Base) -> None:
    asked, answered = db.small()
    one = db.store.changes(db.store.load(SES), [Edit(answered, "prt_7", {"type": "text"}, "x")])
    db.part(asked, "prt_7")
    with pytest.raises(ConflictError, match="part/prt_7"):
        db.store.apply(one)
    db.run("DELETE FROM part WHERE id = 'prt_7'")
    db.run("DELETE FROM message WHERE id = ?", answered)
    before = db.rows()
    with pytest.raises(ConflictError, match="FOREIGN KEY"):
        db.store.apply(one)
    assert db.rows() == before


def test_a_message_of_ours_with_parts_of_the_client_is_not_taken_away(db: Base) -> None:
    db.small()
    new = name(NOW - 10)
    changes = db.store.changes(db.store.load(SES), [Edit(new, None, {"role": "user"}, "x")])
    db.store.apply(changes)
    db.part(new, "prt_theirs")
    before = db.rows()
    with pytest.raises(ConflictError, match="has parts that are not ours"):
        db.store.apply(back(changes))
    assert db.rows() == before


def test_one_record_twice_and_an_image_of_another_are_refused(db: Base) -> None:
    asked, _ = db.small()
    [change] = db.store.changes(db.store.load(SES), [Edit(asked, "prt_7", {"type": "text"}, "x")])
    before = db.rows()
    for bad, said in (
        ([change, replace(change, before=b"x")], "twice"),
        ([replace(change, key="part/prt_8")], "another record"),
        ([replace(change, key="message/prt_7")], "can't be read"),
        ([replace(change, after=b"{}")], "can't be read"),
        ([replace(change, after=b"\xff{")], "can't be read"),
        ([replace(change, after=(change.after or b"").replace(b"part", b"p", 0)[:-1] + b',"x":1}')], "can't be read"),
        ([replace(change, after=(change.after or b"").replace(str(NOW).encode(), b'"now"'))], "unexpected type"),
    ):
        with pytest.raises(StoreError, match=said):
            db.store.apply(bad)
    assert db.rows() == before


@pytest.mark.parametrize("fault", [sqlite3.OperationalError("disk I/O error"), OSError(5, "x"), KeyboardInterrupt()])
def test_a_fault_between_any_two_statements_leaves_everything_as_it_was(
    db: Base, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    asked, answered = db.small()
    changes = edits(db, asked, answered)
    before = db.rows()
    names: list[str] = []
    monkeypatch.setattr(failpoint, "reach", names.append)
    db.store.apply(changes)
    db.store.apply(back(changes))
    assert names[: len(names) // 2] == ["begin", *["compare"] * 8, *["write"] * 7, "commit", "committed"]
    for at in range(len(names) // 2 - 1):
        count = iter(range(99))

        def step(_: str, at: int = at, count: Any = count) -> None:
            if next(count) == at:
                raise fault

        monkeypatch.setattr(failpoint, "reach", step)
        with pytest.raises((StoreError, KeyboardInterrupt, OSError)):
            db.store.apply(changes)
        assert db.rows() == before
        assert db.beside() == []


KILL = """
import os, pickle, signal, sys
from pathlib import Path
from recoveryd.core import failpoint
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
at, changes = int(sys.argv[2]), pickle.loads(sys.stdin.buffer.read())
def step(name):
    global at
    at -= 1
    if at < 0:
        os.kill(os.getpid(), signal.SIGKILL)
failpoint.reach = step
OpencodeSqlite(Path(sys.argv[1])).apply(changes)
"""


@pytest.mark.slow
def test_after_a_kill_between_any_two_statements_it_is_all_or_nothing(tmp_path: Path) -> None:
    db = Base(tmp_path / "opencode.db", NEW)
    changes = edits(db, *db.small())
    before = db.rows()
    ended = 0
    for at in range(18):
        command = [sys.executable, "-c", KILL, str(db.path), str(at)]
        killed = subprocess.run(command, input=pickle.dumps(changes), timeout=30, check=False, cwd=Path.cwd())
        assert killed.returncode == -signal.SIGKILL
        states = set(store.stored_images(db.store, changes))
        assert states == ({"after"} if at == 17 else {"before"})
        ended += states == {"after"}
    db.store.apply(back(changes))
    assert db.rows() == before
    assert ended == 1


# What no row that was read can be: ids and times are checked before.
contents = st.one_of(st.binary(max_size=30), st.binary(max_size=30).map(text), st.just(text(b'{"type":"text"}')))
times = st.integers(-(2**63), 2**63 - 1)
row = st.tuples(contents, times, times)


@examples(80)
@given(st.lists(st.tuples(st.booleans(), st.none() | row, st.none() | row), min_size=1, max_size=6))
def test_apply_and_its_reverse_restore_every_row(tmp_path_factory: Any, images: list[tuple[bool, Any, Any]]) -> None:
    db = Base(tmp_path_factory.mktemp("db") / "opencode.db")
    asked, answered = db.small()
    changes = []
    for number, (first, old, new) in enumerate(images):
        ids = {"id": f"prt_x{number}", "message_id": asked if first else answered, "session_id": SES}
        before, after = (_image(ids, values) for values in (old, new))
        changes.append(Change(f"part/{ids['id']}", before, after))
        if old is not None:
            db.part(ids["message_id"], ids["id"], old[0], time_created=old[1], time_updated=old[2])
    before_all = db.rows()
    assert [db.store.read(change.key) for change in changes] == [change.before for change in changes]
    db.store.apply(changes)
    assert [db.store.read(change.key) for change in changes] == [change.after for change in changes]
    db.store.apply(back(changes))
    assert db.rows() == before_all


def _image(ids: dict[str, str], values: Any) -> bytes | None:
    if values is None:
        return None
    data, created, updated = values
    said = data if type(data) is bytes else bytes(data).decode("utf-8", "surrogateescape")
    image = rows.row_image({**ids, "time_created": created, "time_updated": updated, "data": said})
    assert rows.row_of_image("part", image)["data"] == said
    return image
