"""Where transcripts lie oddly: behind a symlink, in two homes, in two files, in a file that is replaced meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from recoveryd.clients import Config, find_stores
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.store import Store
from recoveryd.core import Change, ConflictError, Edit, failpoint
from tests.support.transcript import Transcript, call, text


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
    session = made()
    path = session.write(tmp_path / ".claude" / "projects")
    [store] = stores(tmp_path)
    changes = renamed(store, session.session)
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
    session = made()
    path = session.write(tmp_path / ".claude" / "projects")
    [store] = stores(tmp_path)
    changes = renamed(store, session.session)
    left = session.raw()[:-40]

    def reach(name: str) -> None:
        if name == "write":
            path.write_bytes(left)

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(ConflictError, match="the client wrote since"):
        store.apply(changes)
    assert path.read_bytes() == left and list(path.parent.iterdir()) == [path]
