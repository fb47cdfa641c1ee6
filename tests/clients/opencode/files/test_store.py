"""The JSON-tree store, on real files: finding it, reading it, and all that may lie in the way."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import javascript
from recoveryd.clients.opencode import generations, records
from recoveryd.clients.opencode.files import reader
from recoveryd.clients.opencode.files.store import find_stores
from recoveryd.core.errors import StoreError
from recoveryd.core.model import Change, Edit
from recoveryd.disk import tree as reading
from tests.support.database import Base
from tests.support.json_tree import ABORTED, NOW, SES, Tree, message, name


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "opencode" / "storage")


def test_a_session_is_loaded_with_the_very_bytes_of_its_files(tree: Tree) -> None:
    asked, answered = tree.small()
    tree.part(answered, "prt_1Z", {"id": "prt_1Z", "type": "unheard-of", "extra": {"kept": [1]}})
    tree.part(answered, "prt_bad", b"\xff\xfe")
    about = {"id": SES, "title": "A title", "directory": "/p", "parentID": "ses_0", "revert": {"messageID": asked}}
    tree.put(f"session/global/{SES}.json", about)
    session = tree.store.load(SES)
    assert session.messages[1].parts[0].data == {"id": "prt_1Z", "type": "unheard-of", "extra": {"kept": [1]}}
    assert session.messages[0].parts[0].raw == (tree.root / "part" / asked / "prt_1.json").read_bytes()
    assert session.messages[0].raw == (tree.root / "message" / SES / f"{asked}.json").read_bytes()
    assert session.messages[1].parts[2].raw == tree.store.read(f"part/{answered}/prt_bad.json") == b"\xff\xfe"
    assert session.revert == {"messageID": asked}


def test_a_session_without_its_session_file_has_no_title(tree: Tree) -> None:
    tree.small()
    assert tree.store.load(SES).title == ""


def test_both_folder_depths_are_found(tree: Tree) -> None:
    tree.small()
    tree.put(f"message/project/ses_deep/{name(NOW)}.json", message(name(NOW), "user", NOW))
    assert sorted(tree.store.session_ids()) == [SES, "ses_deep"]
    deep = tree.store.load("ses_deep")
    assert [m.id for m in deep.messages] == [name(NOW)]
    [change] = tree.store.changes(deep, [Edit(name(NOW), None, {"role": "user"}, "x")])
    assert change.key == f"message/project/ses_deep/{name(NOW)}.json"
    assert tree.store.look("ses_deep").newest_user == name(NOW)
    assert tree.store.stamp("ses_deep").newest_mtime_ns > 0


def test_a_half_written_message_is_read_again(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "RETRY_S", 0.1)
    asked, _ = tree.small()
    path = tree.root / "message" / SES / f"{asked}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    writer = threading.Timer(0.025, path.write_bytes, [whole])
    writer.start()
    session = tree.store.load(SES)
    writer.join()
    assert session.messages[0].raw == whole


def test_a_broken_session_file_is_named_for_it_may_hide_a_revert(tree: Tree) -> None:
    tree.small()
    tree.put(f"session/global/{SES}.json", b"{")
    with pytest.raises(StoreError, match=rf"global/{SES}\.json is no JSON object"):
        tree.store.load(SES)


def test_a_record_of_very_many_values_is_refused_before_it_is_parsed(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three bytes of a file may take a hundred of memory."""
    monkeypatch.setattr(records, "MAX_RECORD", 1_000_000)
    _, answered = tree.small()
    tree.part(answered, "prt_flat", b'{"type":"text","text":"' + b"a" * 100_000 + b'"}')
    assert tree.store.load(SES).part("prt_flat") is not None
    tree.part(answered, "prt_wide", b'{"type":"text","a":[' + b"[]," * 33_000 + b"[]]}")
    with pytest.raises(StoreError, match=r"prt_wide\.json holds too many values"):
        tree.store.load(SES)


def test_texts_with_letters_that_take_more_weigh_more() -> None:
    assert javascript.weight_in_memory(b"a" * 100) == 100
    assert javascript.weight_in_memory(b"[1,2]") == 5 + 2 * 32
    assert javascript.weight_in_memory("aaa😀".encode()) == 4 * 7


@pytest.mark.parametrize("type_", [[], {}, None, 5, True])
def test_an_aborted_message_whose_part_has_an_odd_type_is_looked_at(tree: Tree, type_: object) -> None:
    answered = tree.say("assistant", NOW - 90, **ABORTED)
    tree.part(answered, "prt_odd", {"id": "prt_odd", "messageID": answered, "type": type_})
    assert tree.store.look(SES).last_answer


def test_symlinks_are_not_followed(tree: Tree, tmp_path: Path) -> None:
    asked, answered = tree.small()
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "prt_9.json"
    secret.write_text('{"secret": 1}')
    (tree.root / "part" / answered / "prt_9.json").symlink_to(secret)
    with pytest.raises(StoreError, match=r"prt_9\.json is a symlink"):
        tree.store.load(SES)
    with pytest.raises(StoreError, match="is a symlink"):
        tree.store.apply([Change(f"part/{answered}/prt_9.json", secret.read_bytes(), b"{}")])
    (tree.root / "message" / "ses_link").symlink_to(tree.root / "message" / SES)
    assert list(tree.store.session_ids()) == [SES]
    with pytest.raises(StoreError, match="ses_link is a symlink"):
        tree.store.load("ses_link")
    (tree.root / "part" / "msg_link").symlink_to(outside)
    with pytest.raises(StoreError, match="msg_link is a symlink"):
        tree.store.read("part/msg_link/prt_9.json")
    assert secret.read_text() == '{"secret": 1}'
    assert asked


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", [Path.mkdir, _fifo, _socket])
def test_what_is_no_file_is_named_and_never_waited_for(tree: Tree, make: Callable[[Path], None]) -> None:
    _, answered = tree.small()
    make(tree.root / "part" / answered / "prt_odd.json")
    with pytest.raises(StoreError, match=r"prt_odd\.json is .* where a file should be"):
        tree.store.load(SES)
    (tree.root / "part" / answered / "prt_odd.json").rename(tree.root / "message" / SES / f"{name(NOW)}.json")
    for read in (tree.store.load, tree.store.look):
        with pytest.raises(StoreError, match="where a file should be"):
            read(SES)


def test_a_file_where_a_folder_should_be_is_named(tree: Tree) -> None:
    asked = tree.say("user", NOW)
    tree.put(f"part/{asked}", b"x")
    with pytest.raises(StoreError, match=f"{asked} is a file, where a folder should be"):
        tree.store.load(SES)


def test_a_file_that_vanishes_while_read_is_not_there(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answered = tree.small()
    doomed = tree.part(answered, "prt_gone")
    real = reading.read

    def read(fd: int, file: str, *rest: Any) -> bytes:
        if file == "prt_gone.json":
            doomed.unlink(missing_ok=True)
        return real(fd, file, *rest)

    monkeypatch.setattr(reading, "read", read)
    assert [p.id for p in tree.store.load(SES).messages[1].parts] == ["prt_2"]


def test_stores_are_found_where_the_client_keeps_them_each_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data" / "opencode")
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}
    extra = [tmp_path / "link", tmp_path / "link" / "storage", tmp_path / "other"]
    found = find_stores(extra, env)
    assert [s.root for s in found] == [tmp_path / "data" / "opencode" / "storage", tmp_path / "other" / "storage"]
    assert not found[0].exists()
    found[0].root.mkdir(parents=True)
    assert found[0].exists()
    [home] = find_stores([], {"XDG_DATA_HOME": "relative", "HOME": str(tmp_path)})
    assert home.root == tmp_path / ".local" / "share" / "opencode" / "storage"


@pytest.mark.parametrize("database", ["opencode.db", "opencode-beta.db"])
def test_a_tree_beside_a_database_is_dead(tree: Tree, database: str) -> None:
    asked, _ = tree.small()
    changes = tree.store.changes(tree.store.load(SES), [Edit(asked, "prt_1", {"a": 1}, "x")])
    Base(tree.root.parent / database).small()  # that session
    assert database in (tree.store.live() or "")
    before = tree.files()
    with pytest.raises(StoreError, match="dead"):
        tree.store.apply(changes)
    assert tree.files() == before


def test_only_a_database_that_the_client_went_over_to_makes_a_tree_dead(tree: Tree) -> None:
    tree.small()
    folder = tree.root.parent
    Base(folder / "opencode-backup.db")  # a copy
    (folder / "opencode-dev.db").touch()  # no store
    tried = Base(folder / "opencode-local.db")
    os.utime(tried.path, (1, 1))  # of a channel that was tried before the tree was last written to
    assert (tree.store.live(), tree.store.generation()) == (None, generations.JSON)
    tried.say("user", NOW - 100)
    assert (tree.store.live(), tree.store.generation()) == (None, generations.JSON), (
        "used beside it, for other sessions"
    )
    tried.say("assistant", NOW - 90)
    assert "opencode-local.db" in (tree.store.live() or "")
    tried.path.unlink()
    (folder / "opencode.db").write_bytes(b"SQLite format 3\0, and then damaged")
    assert tree.store.generation() is generations.JSON_DEAD, "in doubt"


def test_a_store_whose_parts_are_elsewhere_is_not_live(tree: Tree) -> None:
    (tree.root / "part").rename(tree.root / "elsewhere")
    (tree.root / "part").symlink_to(tree.root / "elsewhere")
    assert "is a symlink" in (tree.store.live() or "")


def test_files_that_are_no_records_are_named_as_the_client_trips_over_them(tree: Tree) -> None:
    _, answered = tree.small()
    assert tree.store.strangers(SES) == []
    tree.put(f"part/{answered}/.hidden", b"x")  # passed over by the client
    foreign = [f"message/{SES}/notes.txt", f"part/{answered}/prt_2.json.bak"]
    for key in foreign:
        tree.put(key, b"x")
    assert tree.store.strangers(SES) == foreign
