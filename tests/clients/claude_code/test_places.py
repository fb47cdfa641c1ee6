"""Where transcripts lie oddly: behind a symlink, in two homes, in two files, in a file that is replaced meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from recoveryd.clients import Config, find_stores
from recoveryd.clients.claude_code.client import ClaudeCode
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.store import Store, all_written, untouched
from recoveryd.core import Change, ConflictError, Edit, NotFoundError, StoreError, failpoint
from tests.crash_matrix import child
from tests.support.transcript import Transcript, call, dump, text


def made() -> Transcript:
    transcript = Transcript(cwd="/p")
    transcript.user("question")
    transcript.assistant(call(call_id="call:1"))
    transcript.assistant(text("done"))
    return transcript


def stores(home: Path, *more: Path) -> list[Store]:
    config = Config(claude_code=ClaudeCodeSettings(config_dirs=more))
    return [store for store in find_stores(config, {"HOME": str(home)}) if store.client == "claude_code"]


def renamed(store: Store, session: str) -> list[Change]:
    """The changes by which its call gets another id."""
    read = store.load(session)
    [part] = [part for message in read.messages for part in message.parts if part.type == "tool_use"]
    return store.changes(read, [Edit(part.message_id, part.id, {**(part.data or {}), "id": "call_1"}, "mend_call")])


def planned(home: Path) -> tuple[Transcript, Path, Store, list[Change]]:
    """A session, its file and store, and changes of it that are not made yet."""
    session = made()
    path = session.write(home / ".claude" / "projects")
    [store] = stores(home)
    return session, path, store, renamed(store, session.session)


def test_a_home_behind_a_symlink_is_one_store_at_its_real_place(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "claude"
    (real / "projects").mkdir(parents=True)
    (tmp_path / ".claude").symlink_to(real)
    session = made()
    path = session.write(real / "projects")
    [store] = stores(tmp_path, real)
    assert (store.id, store.live()) == (str(real / "projects"), None)
    changes = renamed(store, session.session)
    store.apply(changes)
    assert b'"call_1"' in path.read_bytes() and (tmp_path / ".claude").is_symlink()
    store.apply([change.reversed() for change in changes])
    assert path.read_bytes() == session.raw()


def test_projects_behind_a_symlink_are_found_and_a_project_that_leads_elsewhere_is_not(tmp_path: Path) -> None:
    session, other = made(), made()
    session.write(tmp_path / "disk")
    other.write(tmp_path / "elsewhere")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "-linked").symlink_to(tmp_path / "elsewhere" / "-p")
    [store] = stores(tmp_path)
    assert list(store.session_ids()) == [session.session]
    link, there = tmp_path / "disk" / "-linked", tmp_path / "elsewhere" / "-p"
    (tmp_path / "disk" / "-renamed").symlink_to("-p")
    client = ClaudeCode(ClaudeCodeSettings())
    told = client.passed_over(store, [store])
    assert told is not None and f"{link} (to {there})" in told.message and "-renamed" not in told.message
    assert f"rm {link} && mv {there} {link}" in told.hint
    (tmp_path / "works").mkdir()
    (tmp_path / "works" / "projects").symlink_to(tmp_path / "elsewhere")
    assert client.passed_over(store, stores(tmp_path, tmp_path / "works")) is None, "another store has them"
    assert [(check.code, check.level) for check in client.check_stores([(store, store.generation())], 0)] == [
        ("store", "warn")
    ]
    notes = tmp_path / ".claude" / "sessions"
    notes.mkdir()
    (notes / f"{os.getpid()}.json").write_text(json.dumps({"sessionId": session.session, "startedAt": 1}))
    assert isinstance(store, ClaudeCodeTranscripts) and store.opened(session.session) is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "projects").symlink_to(tmp_path / "disk")
    notes.rename(tmp_path / "other" / "sessions")  # of a client whose home shares these sessions
    [store] = stores(tmp_path, tmp_path / "other")
    assert isinstance(store, ClaudeCodeTranscripts) and store.opened(session.session) is not None


def test_a_session_that_two_homes_have_is_written_in_the_one_that_is_meant(tmp_path: Path) -> None:
    session = made()
    paths = [session.write(tmp_path / home / "projects") for home in (".claude", "work")]
    mine, works = stores(tmp_path, tmp_path / "work")
    works.apply(renamed(works, session.session))
    assert [b'"call_1"' in path.read_bytes() for path in paths] == [False, True]
    assert mine.load(session.session).parent is None and paths[0].read_bytes() == session.raw()


def test_lines_that_a_resumed_session_took_over_are_written_in_its_own_file_alone(tmp_path: Path) -> None:
    """Older versions copy the history into the file of a new session, under the same ids."""
    old = made()
    first = old.write(tmp_path / ".claude" / "projects")
    new = made()
    new.lines = [*old.lines]
    second = new.write(tmp_path / ".claude" / "projects")
    [store] = stores(tmp_path)
    store.apply(renamed(store, new.session))
    assert (b'"call_1"' in second.read_bytes(), first.read_bytes() == old.raw()) == (True, True)


@pytest.mark.parametrize("step", ["create", "sync", "compare"])
def test_a_file_that_is_replaced_while_it_is_written_over_is_a_conflict_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    session, path, store, changes = planned(tmp_path)
    session.user("by another program")

    def reach(name: str) -> None:
        if name == step:
            path.with_name("new").write_bytes(session.raw())
            path.with_name("new").rename(path)

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(ConflictError, match="was replaced"):
        store.apply(changes)
    assert path.read_bytes() == session.raw() and list(path.parent.iterdir()) == [path]


def test_a_file_that_is_cut_off_while_it_is_read_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, path, store, changes = planned(tmp_path)
    left = session.raw()[:-40]

    def reach(name: str) -> None:
        if name == "write":
            path.write_bytes(left)

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(ConflictError, match="the client wrote since"):
        store.apply(changes)
    assert path.read_bytes() == left and list(path.parent.iterdir()) == [path]


def moved(path: Path, project: str = "-other") -> Path:
    """The file, after its client moved it to another project's folder (`/cd`, 2.1.330)."""
    place = path.parents[1] / project / path.name
    place.parent.mkdir(exist_ok=True)
    return path.rename(place)


def test_records_of_a_session_that_was_moved_are_found_and_put_back_where_it_is(tmp_path: Path) -> None:
    session, path, store, changes = planned(tmp_path)
    store.apply(changes)
    there = moved(path)
    assert all_written(store, changes)
    back = [change.reversed() for change in changes]
    store.apply(back)
    assert there.read_bytes() == session.raw() and not path.exists()
    assert untouched(store, changes) and list(there.parent.iterdir()) == [there]


def test_a_project_that_was_renamed_and_left_a_symlink_is_where_that_leads(tmp_path: Path) -> None:
    session, path, store, changes = planned(tmp_path)
    store.apply(changes)
    path.parent.rename(path.parents[1] / "-new")
    path.parent.symlink_to("-new")
    assert (all_written(store, changes), store.clean(changes)) == (True, 0)
    store.apply([change.reversed() for change in changes])
    assert (path.parents[1] / "-new" / path.name).read_bytes() == session.raw()


def test_a_subagents_records_are_looked_for_below_the_same_session_alone(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    parent, side = made(), made()
    own = parent.write(projects).with_suffix("") / "subagents" / "agent-a1.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(side.raw())
    [store] = stores(tmp_path)
    changes = renamed(store, "agent-a1")
    store.apply(changes)
    written = own.read_bytes()
    other = projects / "-q" / made().session / "subagents" / "agent-a1.jsonl"
    other.parent.mkdir(parents=True)
    own.rename(other)
    assert store.read_all([change.key for change in changes]) == [None], "it is another session's"
    with pytest.raises(NotFoundError):
        store.apply([change.reversed() for change in changes])
    assert other.read_bytes() == written
    mine = projects / "-q" / parent.session / "subagents" / "agent-a1.jsonl"
    mine.parent.mkdir(parents=True)
    other.rename(mine)
    store.apply([change.reversed() for change in changes])
    assert mine.read_bytes() == side.raw()


def test_nothing_is_written_where_it_is_not_known_which_of_two_files_is_meant(tmp_path: Path) -> None:
    session, path, store, changes = planned(tmp_path)
    store.apply(changes)
    written = path.read_bytes()
    one = moved(path, "-one")
    two = one.parents[1] / "-two" / one.name
    two.parent.mkdir()
    two.write_bytes(written)
    back = [change.reversed() for change in changes]
    for asked in (lambda: store.apply(back), lambda: store.clean(changes), lambda: store.read(changes[0].key)):
        with pytest.raises(StoreError, match=r"not known which is it now: .*/-one/.* and .*/-two/"):
            asked()
    assert one.read_bytes() == two.read_bytes() == written
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(written)
    store.apply(back)
    assert path.read_bytes() == session.raw() and one.read_bytes() == two.read_bytes() == written, "it was that one"


@pytest.mark.parametrize("step", range(8))
def test_what_a_kill_left_behind_goes_and_a_line_is_taken_over_also_where_the_file_was_moved_since(
    tmp_path: Path, step: int
) -> None:
    session, path, store, changes = planned(tmp_path)
    late = dump({"type": "user", "uuid": "late", "message": {"role": "user", "content": "late"}})

    def work() -> None:
        store.apply(changes)

    def at_step(number: int, name: str) -> None:
        if name == "rename":
            path.with_name(path.name).open("ab").write(late)  # by a client that had opened it, right before
        child.kill_at(step)(number, name)

    ended = child.run(work, at_step)
    there = moved(path)
    relocated = dump({"type": "relocated", "relocatedCwd": "/other", "sessionId": session.session})
    with there.open("ab") as file:
        file.write(relocated)
    store.clean(changes)
    left = [found for found in path.parents[1].rglob("*") if found.is_file()]
    assert left == [there], ended.steps
    now = there.read_bytes()
    assert now.count(late) == ("rename" in ended.steps) and now.count(relocated) == 1
    store.apply([change.reversed() for change in changes] if all_written(store, changes) else [])
    assert there.read_bytes().replace(late, b"").replace(relocated, b"") == session.raw()
