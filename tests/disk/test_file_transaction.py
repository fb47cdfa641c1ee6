"""Edits of a JSON tree: all of them or none, whatever goes wrong in the middle."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients import store
from recoveryd.core import failpoint
from recoveryd.core.errors import ConflictError, DiskError, StoreError
from recoveryd.core.model import Change, Edit
from tests.support.examples import examples
from tests.support.json_tree import NOW, SES, Tree, name


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "opencode" / "storage")


os_open = os.open


def test_changes_are_written_like_the_client_writes(tree: Tree) -> None:
    asked, _ = tree.small()
    (tree.root / "part" / asked / "prt_1.json").chmod(0o640)
    session = tree.store.load(SES)
    after = {"type": "text", "text": 'é\ud800\n"', "n": 1, "empty": {}, "list": []}
    new, old = tree.store.changes(session, [Edit(asked, "prt_1z", after, "x"), Edit(asked, "prt_1", None, "x")])
    assert new.key == f"part/{asked}/prt_1z.json"
    assert new.before is None
    assert (
        new.after
        == (
            f'{{\n  "id": "prt_1z",\n  "sessionID": "{SES}",\n  "messageID": "{asked}",\n  "type": "text",\n'
            '  "text": "é\\ud800\\n\\"",\n  "n": 1,\n  "empty": {},\n  "list": []\n}'
        ).encode()
    )
    assert (old.after, old.mode) == (None, 0o640)
    assert old.before == session.messages[0].parts[0].raw


def test_a_new_part_gets_the_mode_of_its_message(tree: Tree) -> None:
    asked, _ = tree.small()
    (tree.root / "message" / SES / f"{asked}.json").chmod(0o604)
    [change] = tree.store.changes(tree.store.load(SES), [Edit(asked, "prt_9", {"type": "text"}, "x")])
    tree.store.apply([change])
    assert stat.S_IMODE((tree.root / change.key).stat().st_mode) == 0o604


def test_edits_of_messages_and_of_parts_in_new_ones(tree: Tree) -> None:
    asked, answered = tree.small()
    session = tree.store.load(SES)
    new = name(NOW - 95)
    edits = [
        Edit(new, None, {"role": "user"}, "x"),
        Edit(new, "prt_5", {"type": "text"}, "x"),
        Edit(asked, None, None, "x"),
    ]
    changes = tree.store.changes(session, edits)
    assert [c.key for c in changes] == [
        f"message/{SES}/{new}.json",
        f"part/{new}/prt_5.json",
        f"message/{SES}/{asked}.json",
    ]
    tree.store.apply(changes)
    assert [(m.id, len(m.parts)) for m in tree.store.load(SES).messages] == [(new, 1), (answered, 1)]
    assert tree.store.load(SES).messages[0].data == {"id": new, "sessionID": SES, "role": "user"}


def test_a_write_of_the_client_in_the_middle_is_kept_and_the_rest_taken_back(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)
    theirs = b'{"client": "was here"}'
    before = {**tree.files(), changes[1].key: theirs}
    steps: list[str] = []

    def step(now: str) -> None:
        steps.append(now)
        if steps.count("compare") == 2:
            (tree.root / changes[1].key).write_bytes(theirs)

    monkeypatch.setattr(failpoint, "reach", step)
    with pytest.raises(ConflictError, match=r"prt_2\.json"):
        tree.store.apply(changes)
    assert tree.files() == before


def test_mode_is_kept_and_the_state_is_told(tree: Tree) -> None:
    asked, _ = tree.small()
    path = tree.root / "part" / asked / "prt_1.json"
    path.chmod(0o604)
    [change] = tree.store.changes(tree.store.load(SES), [Edit(asked, "prt_1", {"a": 1}, "x")])
    assert store.stored_images(tree.store, [change])[0] == "before"
    tree.store.apply([change])
    assert store.stored_images(tree.store, [change])[0] == "after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    path.write_text("other")
    assert store.stored_images(tree.store, [change])[0] == "other"


def test_a_part_folder_is_made_and_goes_again_with_the_undo(tree: Tree) -> None:
    asked = tree.say("user", NOW)
    before = tree.files()
    changes = tree.store.changes(tree.store.load(SES), [Edit(asked, "prt_1", {"type": "text"}, "x")])
    tree.store.apply(changes)
    assert (tree.root / "part" / asked / "prt_1.json").exists()
    assert stat.S_IMODE((tree.root / "part" / asked).stat().st_mode) == stat.S_IMODE(
        (tree.root / "part").stat().st_mode
    )
    tree.store.apply([change.reversed() for change in reversed(changes)])
    assert tree.files() == before
    assert not (tree.root / "part" / asked).exists()


def _three(tree: Tree, asked: str, answered: str) -> list[Change]:
    """One record replaced, one set aside, one added in a folder that is not there."""
    empty = tree.say("user", NOW - 50)
    edits = [
        Edit(asked, "prt_1", {"a": 1}, "x"),
        Edit(answered, "prt_2", None, "x"),
        Edit(empty, "prt_3", {"type": "text"}, "x"),
    ]
    return tree.store.changes(tree.store.load(SES), edits)


class Faulty:
    """An `os` function that fails once, at the call with this number; opening to read does not count."""

    def __init__(self, real: Callable[..., Any], fail_at: int, number: int) -> None:
        self.real, self.fail_at, self.number = real, fail_at, number
        self.calls = 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.real is not os_open or args[1] & os.O_CREAT:
            self.calls += 1
            if self.calls == self.fail_at:
                raise OSError(self.number, os.strerror(self.number))
        return self.real(*args, **options)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename", "unlink", "mkdir", "fchmod"])
def test_a_fault_at_any_call_leaves_everything_as_it_was(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)
    before = tree.files()
    fail_at = 0
    while True:
        fail_at += 1
        with monkeypatch.context() as patch:
            faulty = Faulty(getattr(os, call), fail_at, number)
            patch.setattr(os, call, faulty)
            if faulty_apply(tree, changes) is None:
                break
        assert tree.files() == before
        assert not (tree.root / changes[2].key).parent.exists()
    assert faulty.calls < fail_at
    assert fail_at > 1


def faulty_apply(tree: Tree, changes: list[Change]) -> StoreError | None:
    try:
        tree.store.apply(changes)
    except StoreError as error:
        assert str(tree.root) in error.message
        return error
    return None


def test_a_full_disk_is_told_in_words(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=r"Can't write .*prt_1\.json: the disk is full") as caught:
        tree.store.apply(changes)
    assert "Free some space" in caught.value.hint


def test_what_can_not_be_put_back_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)
    seen: list[str] = []

    def step(now: str) -> None:
        seen.append(now)
        if seen.count("compare") >= 2:
            raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(failpoint, "reach", step)
    with pytest.raises(StoreError, match=r"could not be put back: .*prt_1\.json"):
        tree.store.apply(changes)


def test_what_was_only_prepared_is_not_told_as_lost(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that is read-only by the time of the first rename: no record changed, and the rest is cleaned up
    once that is possible."""
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)
    before = tree.files()

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:

        def rename(*_: object, **__: object) -> None:
            patch.setattr(os, "unlink", read_only)
            read_only()

        patch.setattr(os, "rename", rename)
        with pytest.raises(DiskError, match="read-only") as caught:
            tree.store.apply(changes)
    assert "put back" not in caught.value.message
    assert before.items() <= tree.files().items()
    assert tree.store.clean(changes) > 0
    assert tree.files() == before


KILL = """
import os, pickle, sys
from pathlib import Path
from recoveryd.core import failpoint
from recoveryd.disk import file_transaction
root, at, changes = Path(sys.argv[1]), int(sys.argv[2]), pickle.loads(sys.stdin.buffer.read())
count = 0
def step(name):
    global count
    count += 1
    if count == at:
        os._exit(9)
failpoint.reach = step
file_transaction.write_files(root, changes)
"""


@pytest.mark.slow
def test_after_a_kill_every_file_is_whole_and_the_rest_can_be_finished(tree: Tree, tmp_path: Path) -> None:
    asked, answered = tree.small()
    changes = _three(tree, asked, answered)
    before = tree.files()
    for at in (2, 5, 6, 7, 8, 9, 10, 11):
        command = [sys.executable, "-c", KILL, str(tree.root), str(at)]
        ended = subprocess.run(command, input=pickle.dumps(changes), timeout=30, check=False, cwd=Path.cwd())
        assert ended.returncode == 9
        states = store.stored_images(tree.store, changes)
        assert "other" not in states
        done = [change.reversed() for change, now in zip(changes, states, strict=True) if now == "after"]
        tree.store.apply(done)
        tree.store.clean(changes)
        assert tree.files() == before


def test_clean_takes_our_temporary_files_only(tree: Tree) -> None:
    asked, _ = tree.small()
    folder = tree.root / "part" / asked
    (folder / ".recoveryd-prt_1.json").write_text("half")
    (folder / ".other").write_text("x")
    (folder / ".recoveryd-folder").mkdir()
    (folder / ".recoveryd-link").symlink_to(folder / "prt_1.json")
    assert (
        tree.store.clean([Change(key, None, None) for key in (f"part/{asked}/prt_1.json", "part/msg_none/prt_1.json")])
        == 1
    )
    assert sorted(p.name for p in folder.iterdir()) == [".other", ".recoveryd-folder", ".recoveryd-link", "prt_1.json"]


def test_a_record_with_the_longest_name_there_is_can_be_written_and_put_back(tree: Tree) -> None:
    """The name of what is put beside it may be no longer than 255 bytes either."""
    asked, _ = tree.small()
    key = f"part/{asked}/{'x' * 250}.json"
    tree.put(key, b"{}")
    before = tree.files()
    for after in (b'{"a":1}', None):
        change = Change(key, b"{}", after, 0o644)
        tree.store.apply([change])
        assert tree.store.read(key) == after
        tree.store.apply([change.reversed()])
        assert tree.files() == before


contents = st.one_of(st.none(), st.binary(max_size=40))


@examples(60)
@given(st.lists(st.tuples(st.sampled_from("ab"), contents, contents), min_size=1, max_size=6))
def test_apply_and_its_reverse_restore_every_byte(tmp_path_factory: Any, images: list[tuple[str, Any, Any]]) -> None:
    tree = Tree(tmp_path_factory.mktemp("t") / "opencode" / "storage")
    changes = []
    for number, (folder, old, new) in enumerate(images):
        change = Change(f"part/msg_{folder}/prt_{number}.json", old, new, 0o644)
        changes.append(change)
        if old is not None:
            tree.put(change.key, old)
    before = tree.files()
    tree.store.apply(changes)
    assert tree.files() == {c.key: c.after for c in changes if c.after is not None}
    tree.store.apply([change.reversed() for change in reversed(changes)])
    assert tree.files() == before
