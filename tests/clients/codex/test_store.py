"""The store of Codex's threads: found, looked at from the end, and written over in place."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config, find_stores, json_lines
from recoveryd.clients.codex import rollout_paths, thread
from recoveryd.clients.codex.client import Codex
from recoveryd.clients.codex.editor import CodexEditor
from recoveryd.clients.codex.settings import CodexSettings
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.codex.wire import CodexWire
from recoveryd.clients.store import SessionStatus, stored_images
from recoveryd.core import Change, ConflictError, Edit, Marks, NotFoundError, StoreError, failpoint
from tests.support.rollouts import NOT_VERIFIED, THREAD, Rollout, message, threads

OTHER = "01a201b9-82b1-7263-872f-20dfb3075cd4"


@pytest.fixture
def rollout(tmp_path: Path) -> Rollout:
    return Rollout(tmp_path / ".codex")


@pytest.fixture
def store(rollout: Rollout) -> CodexThreads:
    return threads(rollout.home)


def aside(store: CodexThreads, name: str = THREAD) -> list[Change]:
    """All reasoning of a thread taken out."""
    session = store.load(name)
    blocks = [block for block in CodexWire().stored(session).blocks() if block.type == "reasoning"]
    return store.changes(session, CodexEditor(session, Marks("r1", 0)).set_aside(blocks, "x"))


@pytest.mark.parametrize(("closed", "live"), [("", True), ("folder", True), ("file", True), ("folder, file", False)])
def test_a_store_is_not_live_where_neither_its_folder_nor_a_file_may_be_written_to(
    rollout: Rollout, store: CodexThreads, monkeypatch: pytest.MonkeyPatch, closed: str, live: bool
) -> None:
    """A rollout is written in place: no folder is needed for that. One file of many is told where it is refused."""
    rollout.healthy()
    access, shut = os.access, {"folder": store.root, "file": rollout.path}
    may_not = {str(path) for name, path in shut.items() if name in closed}
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (mode & os.W_OK and str(path) in may_not) and access(path, mode)
    )
    assert store.live() == (
        None
        if live
        else f"{store.root} can't be written to: check its owner and mode, and that its disk is not read-only."
    )


# Found


def test_homes_are_codex_home_or_its_usual_place_and_those_configured(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert rollout_paths.homes(env) == [tmp_path / ".codex"]
    assert rollout_paths.homes({**env, "CODEX_HOME": "/a"}, [Path("/b"), Path("/a")]) == [Path("/a"), Path("/b")]
    assert rollout_paths.homes({**env, "CODEX_HOME": "relative"}) == [tmp_path / ".codex"]
    assert rollout_paths.there(env) == []


def test_threads_are_found_by_day_and_in_the_archive(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    archived = Rollout(rollout.home, OTHER)
    archived.healthy()
    (rollout.home / "archived_sessions").mkdir()
    archived.path.rename(rollout.home / "archived_sessions" / archived.path.name)
    for other in (
        "notes.txt",
        "rollout-2026-11-22T05-27-44-.._x.jsonl",
        f"rollout-{THREAD}.jsonl",
    ):
        (rollout.path.parent / other).write_text("x")
    assert sorted(store.session_ids()) == [THREAD, OTHER]
    assert (store.has(THREAD), store.has(OTHER), store.has("ses_1"), store.has("../x")) == (True, True, False, False)
    assert store.load(OTHER).id == OTHER
    assert store.about(THREAD).title == "do it"
    assert store.about(THREAD).directory == "/p"


def test_a_title_is_the_words_beside_a_picture(rollout: Rollout, store: CodexThreads) -> None:
    """0.169.0 writes marks around each picture, before the words; a note of ours may stand in its place."""
    begin, end, asked = '<image name=[Image #1] path="/p/a.png">', "</image>", "what is this?"
    texts = ("[image removed: the provider refused it]", end, begin.replace("1", "2"), end, asked)
    rollout.asks(begin, *({"type": "input_text", "text": text} for text in texts))
    assert store.about(THREAD).title == "what is this?"


def test_threads_on_another_disk_belong_to_the_home_that_their_link_is_in(rollout: Rollout, tmp_path: Path) -> None:
    rollout.stuck()
    (rollout.home / "archived_sessions").mkdir()
    archived = Rollout(rollout.home, OTHER)
    archived.healthy()
    archived.path.rename(rollout.home / "archived_sessions" / archived.path.name)
    (rollout.home / "sessions").rename(tmp_path / "disk")
    (rollout.home / "sessions").symlink_to(tmp_path / "disk")
    store = threads(rollout.home)
    assert (store.id, sorted(store.session_ids())) == (str(tmp_path / "disk"), [THREAD, OTHER])
    rollout.asks("more")
    with rollout.open():
        assert store.opened(THREAD) is not None
        assert store.look(THREAD).running
    changes = aside(store)
    store.apply(changes)
    assert b'"other"' in (tmp_path / "disk" / rollout.path.relative_to(rollout.home / "sessions")).read_bytes()


def test_a_thread_that_two_homes_share_is_open_by_the_client_of_either(rollout: Rollout, tmp_path: Path) -> None:
    rollout.stuck()
    other = tmp_path / "other"
    other.mkdir()
    (other / "sessions").symlink_to(rollout.home / "sessions")
    config = Config(codex=CodexSettings(homes=(other,)))
    [store] = [s for s in find_stores(config, {"HOME": str(tmp_path)}) if isinstance(s, CodexThreads)]
    assert store.homes == (rollout.home, other)
    with rollout.open():
        assert store.opened(THREAD) is not None
    rollout.home = other
    with rollout.open():
        assert store.opened(THREAD) is not None
    assert store.opened(THREAD) is None


def test_a_write_touches_its_thread_and_nothing_else_touches_any(rollout: Rollout, store: CodexThreads) -> None:
    name = rollout.path.name
    assert list(store.touched(("2026", "11", "22", name))) == [THREAD]
    for other in (("2026", "notes.txt"), ("2026", "11", "22", "x", name), (f"{name}.tmp",)):
        assert list(store.touched(other)) == []


def test_a_thread_is_fresh_until_it_is_remembered_and_again_when_it_grows(
    rollout: Rollout, store: CodexThreads
) -> None:
    known = dict(store.fresh({}, 0))
    assert list(known) == [THREAD]
    assert list(store.fresh(known, 0)) == []
    rollout.healthy()
    assert [name for name, _ in store.fresh(known, 0)] == [THREAD]
    rollout.path.unlink()
    assert list(store.fresh(known, 0)) == [(THREAD, "")]


def test_a_thread_that_goes_on_in_another_file_is_followed_there(rollout: Rollout, store: CodexThreads) -> None:
    """As once its user took turns back: what is stuck in the file before is sent no more."""
    rollout.stuck()
    assert store.look(THREAD).failure is not None
    newer = Rollout(rollout.home, name=f"2026-11-22T06-00-00-{THREAD}_{OTHER}", meta={"history_base": {"x": 1}})
    newer.healthy()
    with pytest.raises(StoreError, match="goes on from another file"):
        store.load(THREAD)
    again = threads(rollout.home)
    assert again.has(THREAD)
    last = Rollout(rollout.home, name=f"2026-11-22T07-00-00-{THREAD}_{OTHER}", meta={"history_base": {"x": 1}})
    last.healthy()
    assert list(again.touched(("2026", "11", "22", last.path.name))) == [THREAD]
    assert again.stamp(THREAD).newest_mtime_ns == last.path.stat().st_mtime_ns
    assert list(again.touched(("2026", "11", "22", rollout.path.name))) == [THREAD]
    assert again.stamp(THREAD).newest_mtime_ns == last.path.stat().st_mtime_ns


def state(home: Path, path: Path | str, table: str = "threads (id TEXT PRIMARY KEY, rollout_path TEXT)") -> Path:
    """The client's database, which says that the thread is in this file."""
    where = home / "state_5.sqlite"
    with closing(sqlite3.connect(where)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"CREATE TABLE {table}")
        if "rollout_path" in table:
            db.execute("INSERT INTO threads VALUES (?, ?)", (THREAD, str(path)))
    return where


def test_a_thread_that_the_client_has_in_another_file_is_named_and_left_alone(
    rollout: Rollout, store: CodexThreads
) -> None:
    rollout.stuck()
    other = rollout.home / f"rollout-2026-11-20T00-00-00-{THREAD}.jsonl"
    other.write_bytes(rollout.bytes())
    state(rollout.home, other)
    beside = sorted(rollout.home.iterdir())
    with pytest.raises(StoreError, match=rf"left alone: Codex's own database says that the thread is in {other}\."):
        store.load(THREAD)
    assert sorted(rollout.home.iterdir()) == beside


@pytest.mark.parametrize("how", ["same", "linked", "gone", "unknown", "locked", "damaged", "schema", "older", "nul"])
def test_a_database_of_the_client_that_says_nothing_else_does_not_matter(
    rollout: Rollout, store: CodexThreads, how: str
) -> None:
    rollout.stuck()
    other = rollout.home / "other.jsonl"
    other.write_bytes(b"")
    (rollout.home / "link.jsonl").symlink_to(rollout.path)
    said: dict[str, Path | str] = {
        "same": rollout.path,
        "linked": rollout.home / "link.jsonl",
        "gone": rollout.home / "gone",
        "nul": "a\0b",
    }
    table = {"table": "threads (id TEXT PRIMARY KEY, path TEXT)"} if how == "schema" else {}
    where = state(rollout.home, said.get(how, other), **table)
    if how == "damaged":
        where.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    if how == "older":
        newer = where.with_name("state_12.sqlite")
        newer.write_bytes(b"")
    with closing(sqlite3.connect(where, isolation_level=None)) as db:
        if how == "locked":
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
        if how == "unknown":
            db.execute("DELETE FROM threads")
        assert store.load(THREAD).id == THREAD


# What is stuck


def test_a_refused_turn_is_the_failure_and_an_answer_clears_it(rollout: Rollout, store: CodexThreads) -> None:
    turn = rollout.stuck()
    look = store.look(THREAD)
    assert look.failure is not None
    assert (look.failure.message, look.failure.session, look.failure.store) == (turn, THREAD, store.id)
    assert (look.failure.provider, look.failure.model, look.failure.protocol) == (
        "openai",
        "gpt-5.2",
        "openai.responses",
    )
    assert (look.failure.time, look.running, look.newest_user, look.newer) == (rollout.ms, 0, None, False)
    rollout.healthy()
    asked = ("openai", "gpt-5.2")
    assert store.look(THREAD) == SessionStatus(last_answer=rollout.ms, asked=asked, directories=("/p",))
    assert threads(rollout.home).look(THREAD).failure is None, "read from the end"


def test_the_folder_of_the_newest_turn_is_told(rollout: Rollout, store: CodexThreads) -> None:
    """`codex resume` from another folder: it may be ignored."""
    rollout.stuck()
    rollout.line("turn_context", {"turn_id": "t", "cwd": "/other", "model": "gpt-5.2"})
    assert (store.about(THREAD).directory, store.look(THREAD).directories) == ("/p", ("/other",))
    rollout.event("thread_settings_applied", thread_settings={"cwd": "/third"})
    assert store.look(THREAD).directories == ("/third",), (
        "a compaction that fails before its turn leaves no turn_context"
    )


@pytest.mark.parametrize("kind", ["configuration_update", "additional_tools"])
def test_what_the_client_tells_the_model_is_no_step_of_it(rollout: Rollout, store: CodexThreads, kind: str) -> None:
    """0.169.0 stores both within a turn, behind or before its prompt."""
    first = rollout.stuck()
    rollout.asks("once more")
    told = {"type": kind, "role": "developer", "tools": [], "reasoning": {"effort": "low"}}
    rollout.item(told)
    second = rollout.is_refused()
    rollout.asks("and again")
    rollout.item(told)
    rollout.event("turn_aborted", turn_id=rollout.turn, reason="interrupted")
    look = store.look(THREAD)
    assert look.failure is not None and look.failure.message == second
    assert [failure.message for failure in look.earlier] == [first]
    assert f"steps-{second}" not in [one.id for one in store.load(THREAD).messages]


def test_what_the_model_said_in_a_refused_turn_makes_older_failures_old(rollout: Rollout, store: CodexThreads) -> None:
    first = rollout.stuck()
    rollout.asks("once more")
    second = rollout.is_refused()
    assert [failure.message for failure in store.look(THREAD).earlier] == [first]
    rollout.asks("and again")
    rollout.calls()
    third = rollout.is_refused()
    look = store.look(THREAD)
    assert (look.failure and look.failure.message, look.earlier) == (third, ())
    assert second != third
    assert threads(rollout.home).look(THREAD) == look


def test_a_turn_runs_while_a_client_has_the_thread(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    turn = rollout.asks("more")
    with rollout.open():
        look = store.look(THREAD)
        assert look.running
        assert look.silent
        rollout.calls()
        assert not store.look(THREAD).silent
    look = store.look(THREAD)
    assert (look.running, look.newest_user) == (0, f"prompt-{turn}")


def test_a_turn_that_was_stopped_is_no_failure_and_clears_one_only_if_the_model_spoke(
    rollout: Rollout, store: CodexThreads
) -> None:
    rollout.stuck()
    rollout.asks("x")
    rollout.event("turn_aborted", turn_id=rollout.turn, reason="interrupted")
    assert store.look(THREAD).failure is not None
    rollout.asks("y")
    rollout.calls()
    rollout.event("turn_aborted", turn_id=rollout.turn, reason="interrupted")
    assert store.look(THREAD).failure is None


def test_a_command_of_the_user_is_no_answer(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    rollout.event("task_started", turn_id="t9")
    rollout.event("task_complete", turn_id="t9", last_agent_message=None)
    assert store.look(THREAD).failure is not None


REFUSED = {"message": NOT_VERIFIED, "codex_error_info": "other"}


@pytest.mark.parametrize("known", [True, False])
def test_what_a_reviewer_is_refused_is_not_refused_of_the_thread_that_asked(
    rollout: Rollout, store: CodexThreads, known: bool
) -> None:
    """0.169.0 has `/review` made by a thread of its own, and writes its error into both."""
    rollout.healthy()
    assert not known or store.look(THREAD).failure is None
    rollout.reviews()
    rollout.is_reviewed(error=REFUSED)
    look = store.look(THREAD)
    assert (look.failure, look.earlier, look.newest_user, look.running) == (None, (), None, 0)
    assert all(one.error is None for one in store.load(THREAD).messages)
    rollout.asks("again")
    turn = rollout.is_refused()
    look = store.look(THREAD)
    assert look.failure is not None and (look.failure.message, look.earlier) == (turn, ())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("ends", ["answered", "refused", "aborted", "killed"])
def test_a_review_settles_nothing_of_a_thread_that_is_refused(
    rollout: Rollout, store: CodexThreads, ends: str, known: bool
) -> None:
    turn = rollout.stuck()
    assert not known or store.look(THREAD).failure
    review = rollout.reviews()
    with rollout.open():
        look = store.look(THREAD)
        assert look.running and look.silent and look.newer
    if ends == "aborted":
        rollout.item(message("assistant", "Review was interrupted."))
        rollout.event("turn_aborted", turn_id=review, reason="interrupted")
    elif ends != "killed":
        rollout.is_reviewed(**({"error": REFUSED} if ends == "refused" else {}))
    for look in (store.look(THREAD), threads(rollout.home).look(THREAD)):
        assert look.failure is not None and (look.failure.message, look.newer, look.earlier) == (turn, False, ())
    session = store.load(THREAD)
    assert [one.id for one in session.messages if one.error is not None] == [turn]
    assert [one.id for one in session.messages if one.data.get("shell")] == [review]
    rollout.healthy()
    assert store.look(THREAD).failure is None


def compacts(rollout: Rollout) -> None:
    """Its user has the thread compacted, which a provider took; as the client writes it without words of a model."""
    rollout.turn = "01a201b9-0000-7000-8000-00000000c0de"
    rollout.event("task_started", turn_id=rollout.turn)
    kept = [message("user", "do it"), {"type": "compaction", "encrypted_content": "gNEW"}]
    rollout.compacted(kept)
    rollout.event("task_complete", turn_id=rollout.turn, last_agent_message=None)


def takes_back(rollout: Rollout) -> None:
    rollout.event("thread_rolled_back", num_turns=1)


@pytest.mark.parametrize("goes_on", [compacts, takes_back])
@pytest.mark.parametrize("known", [True, False])
def test_a_refusal_is_over_once_its_user_compacted_the_thread_or_took_the_turn_back(
    rollout: Rollout, store: CodexThreads, goes_on: Callable[[Rollout], None], known: bool
) -> None:
    rollout.stuck()
    assert not known or store.look(THREAD).failure
    goes_on(rollout)
    look = store.look(THREAD)
    assert (look.failure, look.earlier, look.newest_user) == (None, (), None)
    rollout.asks("more")
    rollout.is_refused()
    look = store.look(THREAD)
    assert look.failure is not None and look.earlier == ()


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that is read from now on."""
    found: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, at: int) -> bytes:
        read = real(fd, size, at)
        found.append(len(read))
        return read

    monkeypatch.setattr(os, "pread", pread)
    return found


def test_of_a_long_rollout_the_end_is_read_and_then_what_is_new(
    rollout: Rollout, store: CodexThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout.asks()
    for _ in range(40):
        rollout.calls(output="x" * 100_000)
    rollout.answers()
    rollout.stuck()
    assert rollout.path.stat().st_size > 4_000_000
    found = reads(monkeypatch)
    assert store.look(THREAD).failure is not None
    assert sum(found) < 1_000_000
    found.clear()
    assert store.look(THREAD).failure is not None
    assert sum(found) == 0
    rollout.healthy()
    found.clear()
    assert store.look(THREAD).failure is None
    assert sum(found) < 20_000


def test_a_rollout_that_another_machine_wrote_over_is_read_anew(
    rollout: Rollout, store: CodexThreads, tmp_path: Path
) -> None:
    """It is longer, has the same number, and goes on from before the refusal."""
    rollout.healthy()
    before = rollout.bytes()
    rollout.stuck()
    assert store.look(THREAD).failure is not None
    other = Rollout(tmp_path / "other")
    other.path.write_bytes(before)
    other.healthy()
    other.asks("more " * 2000)
    assert len(other.bytes()) > len(rollout.bytes())
    rollout.path.write_bytes(other.bytes())
    look = store.look(THREAD)
    assert look.failure is None
    assert look == threads(rollout.home).look(THREAD)


def test_a_line_that_is_still_being_written_is_read_once_it_is_whole(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    whole = rollout.bytes()
    end = whole.rstrip(b"\n").rfind(b"\n") + 1
    rollout.path.write_bytes(whole[: end + 50])
    assert store.look(THREAD).failure is None
    with rollout.path.open("ab") as file:
        file.write(whole[end + 50 :])
    assert store.look(THREAD).failure is not None


# What is read


def test_a_refused_turn_is_an_empty_answer_behind_what_was_sent(rollout: Rollout, store: CodexThreads) -> None:
    rollout.asks()
    rollout.calls()
    turn = rollout.is_refused()
    session = store.load(THREAD)
    assert [(m.id, m.role, len(m.parts)) for m in session.messages] == [
        ("meta", "meta", 1),
        (f"prompt-{turn}", "user", 1),
        (f"steps-{turn}", "assistant", 2),
        (turn, "assistant", 0),
    ]
    assert session.messages[-1].error is not None
    assert session.newest == session.messages[-1]
    assert all(part.raw == store.read(f"line/{THREAD}/{part.id}") for m in session.messages[1:] for part in m.parts)


def test_what_a_compaction_replaced_is_not_kept(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    history = [message("user", "do it"), {"type": "compaction", "encrypted_content": "gAAAA"}]
    rollout.compacted(history)
    rollout.healthy()
    session = store.load(THREAD)
    types = [block.type for block in CodexWire().stored(session).blocks()]
    turn = ["message", "reasoning", "function_call", "function_call_output", "message"]
    assert types == ["message", "message", "compaction", *turn]
    assert len([m for m in session.messages if m.role == "user"]) == 2


BROKEN: dict[str, tuple[Callable[[Rollout], object], str]] = {
    "no first line": (lambda r: r.path.write_bytes(r.bytes().split(b"\n", 1)[1]), "does not begin with a session_meta"),
    "all NULs": (lambda r: r.path.write_bytes(b"\0" * 5000), "does not begin with a session_meta"),
    "cut first line": (lambda r: r.path.write_bytes(r.bytes()[:40] + r.bytes()[400:]), "does not begin"),
    "not UTF-8": (lambda r: r.path.write_bytes(b"\xff\xfe" + r.bytes()), "does not begin with a session_meta"),
    "empty": (lambda r: r.path.write_bytes(b""), "does not begin with a session_meta"),
    "two metas": (lambda r: r.line("session_meta", {"id": THREAD}), "two session_meta lines"),
    "a path for an id": (lambda r: Rollout(r.home, meta={"id": "../../etc/passwd"}), "'../../etc/passwd'"),
    "a fork": (lambda r: Rollout(r.home, meta={"history_base": {"thread_id": OTHER}}), "from another file"),
    "turns taken back": (lambda r: _segment(r), "from another file"),
    "a link": (lambda r: _link(r.path), "is a symlink"),
    "a folder": (lambda r: _instead(r.path, Path.mkdir), "a folder"),
    "a pipe": (lambda r: _instead(r.path, os.mkfifo), "a named pipe"),
}


def _segment(rollout: Rollout) -> None:
    """A file that the client goes on in once turns were taken back; the older one stays."""
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 3, "end_byte_offset": 900}
    newer = Rollout(rollout.home, meta={"history_base": base}, name=f"2026-11-22T05-27-45-{THREAD}_{OTHER}")
    newer.stuck()


def _link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _instead(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize("what", BROKEN)
def test_what_can_not_be_told_for_sure_is_named_and_left_alone(
    rollout: Rollout, store: CodexThreads, what: str
) -> None:
    rollout.stuck()
    put, said = BROKEN[what]
    put(rollout)
    with pytest.raises((StoreError, NotFoundError), match=said):
        store.load(THREAD)


def test_lines_that_the_client_passes_over_are_passed_over(rollout: Rollout, store: CodexThreads) -> None:
    rollout.raw(b"garbage\n\n\xff\xfe\n[1]\n" + b"\0" * 100 + b"\n")
    rollout.item({"type": "other"})
    rollout.stuck()
    assert store.look(THREAD).failure is not None
    assert len(aside(store)) == 1


def test_ordinals_that_jump_do_not_matter(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    rollout.path.write_bytes(rollout.bytes().replace(b'"ordinal":5,', b'"ordinal":99,'))
    assert len(aside(store)) == 1


def test_a_line_too_long_to_be_read_is_named(
    rollout: Rollout, store: CodexThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 2_000_000)
    rollout.asks("x" * 4_000_000)
    rollout.is_refused()
    with pytest.raises(StoreError, match="a line of more than 2,000,000 bytes"):
        store.load(THREAD)


def test_a_thread_too_large_to_be_sent_is_named(
    rollout: Rollout, store: CodexThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout.stuck()
    monkeypatch.setattr(thread, "MAX_THREAD", 500)
    with pytest.raises(StoreError, match="too large"):
        store.load(THREAD)


def test_a_file_that_is_archived_while_it_is_read_is_written_where_it_is_then(
    rollout: Rollout, store: CodexThreads
) -> None:
    rollout.stuck()
    changes = aside(store)
    (rollout.home / "archived_sessions").mkdir()
    there = rollout.path.rename(rollout.home / "archived_sessions" / rollout.path.name)
    store.apply(changes)
    assert b'{"type":"ghost_snapshot"}' in there.read_bytes()
    assert stored_images(store, changes) == ["after"]


# What is written


def test_a_line_is_written_over_in_its_length_and_taken_back_to_the_very_bytes(
    rollout: Rollout, store: CodexThreads
) -> None:
    rollout.stuck()
    before, status = rollout.bytes(), rollout.path.stat()
    changes = aside(store)
    [change] = changes
    store.apply(changes)
    after, now = rollout.bytes(), rollout.path.stat()
    assert (now.st_ino, now.st_size) == (status.st_ino, status.st_size)
    at = int(change.key.rpartition("/")[2])
    assert change.before is not None
    end = at + len(change.before)
    assert (after[:at], after[end:]) == (before[:at], before[end:])
    assert json.loads(after[at:end])["payload"] == {"type": "ghost_snapshot"}
    assert stored_images(store, changes) == ["after"]
    store.apply([change.reversed()])
    assert rollout.bytes() == before


def test_what_the_client_appended_meanwhile_stays(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    changes = aside(store)
    with rollout.path.open("ab") as client:
        client.write(b'{"timestamp":"x"}\n')
        client.flush()
        store.apply(changes)
        client.write(b'{"timestamp":"y"}\n')
    assert rollout.bytes().endswith(b'{"timestamp":"x"}\n{"timestamp":"y"}\n')
    assert stored_images(store, changes) == ["after"]


def test_what_was_changed_meanwhile_is_a_conflict_and_nothing_is_written(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    rollout.stuck()
    changes = aside(store)
    assert len(changes) == 2
    before = rollout.bytes().replace(changes[1].before or b"", (changes[1].before or b"").replace(b"gAAAA", b"gBBBB"))
    rollout.path.write_bytes(before)
    with pytest.raises(ConflictError, match="the client wrote since"):
        store.apply(changes)
    assert rollout.bytes() == before


def test_what_does_not_fit_is_refused_and_never_shifted(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    session = store.load(THREAD)
    part = session.messages[1].parts[0]
    longer = Edit(part.message_id, part.id, message("user", "x" * 5000), "x")
    with pytest.raises(StoreError, match="is too long"):
        store.changes(session, [longer])
    with pytest.raises(StoreError, match="can't be written in another length"):
        store.apply([Change(f"line/{THREAD}/{part.id}", part.raw, b"{}")])


@pytest.mark.parametrize("key", ["", "line/x/1", f"line/{THREAD}/1", f"line/../{THREAD}/0000000000001", "part/p"])
def test_keys_from_elsewhere_are_checked(rollout: Rollout, store: CodexThreads, key: str) -> None:
    rollout.stuck()
    for use in (store.read, lambda k: store.apply([Change(k, b"", b"")]), lambda k: store.clean([Change(k, b"", b"")])):
        with pytest.raises(StoreError, match="no record of this store"):
            use(key)


def test_a_fault_at_any_step_leaves_all_or_nothing(
    rollout: Rollout, store: CodexThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout.healthy()
    rollout.stuck()
    before, changes, steps = rollout.bytes(), aside(store), list[str]()
    monkeypatch.setattr(failpoint, "reach", steps.append)
    store.apply(changes)
    assert steps == ["write line", "write line", "sync lines"]
    store.apply([change.reversed() for change in changes])
    for number in range(3):
        left = iter(range(number))

        def step(_: str, left: Any = left) -> None:
            if next(left, None) is None:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(failpoint, "reach", step)
        with pytest.raises(StoreError, match="disk is full"):
            store.apply(changes)
        monkeypatch.setattr(failpoint, "reach", lambda _: None)
        assert rollout.bytes() == before


@pytest.mark.parametrize("cut", [1, 5, 120, 300])
def test_a_line_that_a_crash_left_half_written_is_taken_back(rollout: Rollout, store: CodexThreads, cut: int) -> None:
    rollout.stuck()
    before, [change] = rollout.bytes(), aside(store)
    assert change.after is not None
    at = int(change.key.rpartition("/")[2])
    for half in (change.after[:cut] + (change.before or b"")[cut:], (change.before or b"")[:cut] + change.after[cut:]):
        with rollout.path.open("r+b") as file:
            file.seek(at)
            file.write(half)
        expected = int(half not in (change.before, change.after))
        assert store.clean([change]) == expected
        assert stored_images(store, [change]) in (["before"], ["after"])
        assert store.clean([change]) == 0
        store.apply([change.reversed()] if stored_images(store, [change]) == ["after"] else [])
        assert rollout.bytes() == before


def test_a_line_that_somebody_else_wrote_is_not_taken_back(rollout: Rollout, store: CodexThreads) -> None:
    rollout.stuck()
    [change] = aside(store)
    rollout.path.write_bytes(rollout.bytes().replace(b"gAAAA", b"g////"))
    now = rollout.bytes()
    assert store.clean([change]) == 0
    assert rollout.bytes() == now


# What keeps the client from opening it


@pytest.mark.parametrize("damage", [b"\xef\xbb\xbf", b"\0\0\0"])
def test_bytes_before_the_first_line_become_spaces(rollout: Rollout, store: CodexThreads, damage: bytes) -> None:
    rollout.healthy()
    assert not store.unreadable(THREAD)
    rollout.path.write_bytes(damage + rollout.bytes())
    before = rollout.bytes()
    assert store.unreadable(THREAD)
    _mend(store)
    assert rollout.bytes() == b"   " + before[3:]
    assert not store.unreadable(THREAD)


def test_a_last_line_without_its_number_gets_it(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    lines = rollout.bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    number = last.pop("ordinal")
    lines[-1] = json.dumps(last, separators=(",", ":")).encode() + b"\n"
    rollout.path.write_bytes(b"".join(lines))
    size = rollout.path.stat().st_size
    assert store.unreadable(THREAD)
    _mend(store)
    assert rollout.path.stat().st_size == size
    mended = json.loads(rollout.bytes().splitlines()[-1])
    assert mended["ordinal"] == number
    assert mended["payload"]["last_agent_message"] == "done"
    assert not store.unreadable(THREAD)


def test_the_last_of_several_lines_without_a_number_gets_the_next_one(rollout: Rollout, store: CodexThreads) -> None:
    """0.169.0 opens the thread then; without it, it never does."""
    rollout.healthy()
    lines = rollout.bytes().splitlines(keepends=True)
    number = json.loads(lines[-1])["ordinal"]
    for text in ("one", "two", "and many words more"):
        line = {"timestamp": "2026-11-22T05:30:00.000Z", "type": "event_msg", "payload": {"type": "x", "text": text}}
        rollout.raw(json.dumps(line, separators=(",", ":")).encode() + b" " * 20 + b"\n")
    size = rollout.path.stat().st_size
    assert store.unreadable(THREAD)
    _mend(store)
    assert rollout.path.stat().st_size == size
    assert [json.loads(line).get("ordinal") for line in rollout.bytes().splitlines()][-3:] == [None, None, number + 1]
    assert not store.unreadable(THREAD)


@pytest.mark.parametrize("case", ["the first alone has one", "all sorted", "the one before sorted"])
def test_a_last_line_gets_its_number_by_any_line_that_has_one(rollout: Rollout, store: CodexThreads, case: str) -> None:
    """The first line's is 0. A tool may have written keys in an order of its own."""
    rollout.healthy()
    lines = [json.loads(line) for line in rollout.bytes().splitlines()]
    number = lines[-1].pop("ordinal")
    if case == "the first alone has one":
        number = 1
        for line in lines[1:-1]:
            del line["ordinal"]
    elif case == "all sorted":
        lines = [dict(sorted(line.items())) for line in lines]
    else:
        lines[-2] = dict(sorted(lines[-2].items()))
    rollout.path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert store.unreadable(THREAD)
    _mend(store)
    assert json.loads(rollout.bytes().splitlines()[-1])["ordinal"] == number
    assert not store.unreadable(THREAD)


def _mend(store: CodexThreads) -> None:
    session = store.load(THREAD)
    [stuck] = CodexWire().build(session).unsendable
    edits = CodexEditor(session, Marks("r1", 0)).mend_unsendable(stuck.part_id, stuck.fault, stuck.reason, "")
    store.apply(store.changes(session, edits))


def test_a_turn_whose_time_can_not_be_read_stays_behind_those_before_it(rollout: Rollout, store: CodexThreads) -> None:
    rollout.healthy()
    rollout.stuck()
    lines = rollout.bytes().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if b'"task_started"' in line)
    rollout.path.write_bytes(b"".join([*lines[:at], lines[at].replace(b'"2026-11', b'"2026:11'), *lines[at + 1 :]]))
    failed, *before = reversed(store.load(THREAD).messages)
    assert failed.error and all(message.by_time < failed.by_time for message in before)


@pytest.mark.parametrize("deep", [1, 2, 3])
def test_a_folder_of_threads_that_is_a_symlink_out_of_the_store_is_told(tmp_path: Path, deep: int) -> None:
    """Behind one Codex goes on, and writes new threads (0.171.0)."""
    rollout = Rollout(tmp_path / ".codex")
    rollout.healthy()
    found, client = threads(rollout.home), Codex(CodexSettings())
    assert list(found.session_ids()) and client.passed_over(found, [found]) is None
    link = tmp_path.joinpath(*rollout.path.relative_to(tmp_path).parts[: 2 + deep])
    there = link.rename(tmp_path / "elsewhere")
    link.symlink_to(there)
    told = client.passed_over(found, [found])
    assert list(found.session_ids()) == [] and told is not None and f"{link} (to {there})" in told.message
    assert f"rm {link} && mv {there} {link} && ln -s {link} {there}" in told.hint, (
        "it goes by the real path from then on"
    )
    assert rollout_paths.leading_out(found.root, [there.parent]) == [], "another store has it"
    checks = client.check_stores([(found, found.generation())], 0)
    assert [(check.code, check.level) for check in checks] == [("store", "warn")]
    (there / "left").mkdir()
    for path in (*there.rglob("*.jsonl"),):
        path.unlink()
    assert client.passed_over(found, [found]) is None, "no thread is behind it"
