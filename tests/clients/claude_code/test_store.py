"""The transcripts of Claude Code as a store: found, read on, written over line by line, taken over after a crash."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from recoveryd.clients import Config
from recoveryd.clients.claude_code import line_file, running
from recoveryd.clients.claude_code.client import ClaudeCode
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.store import About, SessionStatus, all_written, untouched
from recoveryd.core import BusyStoreError, Change, ConflictError, Edit, NotFoundError, StoreError, failpoint
from recoveryd.diagnose import Context, Next, Triage, diagnose
from recoveryd.ledger import Ledger
from recoveryd.providers.find import provider_of
from tests.support.transcript import Transcript, call, dump, text

CWD = "/home/me/project"
LATE = dump({"type": "user", "uuid": "late", "message": {"role": "user", "content": "late"}})


@pytest.fixture
def store(tmp_path: Path) -> ClaudeCodeTranscripts:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return ClaudeCodeTranscripts(tmp_path / ".claude" / "projects")


def session(store: ClaudeCodeTranscripts, *, refused: bool = True) -> tuple[Transcript, Path]:
    made = Transcript(cwd=CWD)
    made.user("question")
    made.assistant(text("a"), call(call_id="call:1"))
    made.result("call:1")
    made.assistant(text("done"))
    if refused:
        made.user("next")
        made.refused("messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    return made, made.write(store.root)


def changes(store: ClaudeCodeTranscripts, made: Transcript) -> list[Change]:
    read = store.load(made.session)
    calls = [p for m in read.messages for p in m.parts if p.type in ("tool_use", "tool_result")]
    edits = [
        Edit(
            part.message_id, part.id, {**(part.data or {}), key: "call_1", "recoveryd": {"recovery": "r1"}}, "mend_call"
        )
        for part, key in zip(calls, ("id", "tool_use_id"), strict=True)
    ]
    return store.changes(read, edits)


def test_a_file_that_goes_away_while_all_are_looked_at_hides_no_other(store: ClaudeCodeTranscripts) -> None:
    made = [session(store) for _ in range(3)]
    fresh = store.fresh({}, 0)
    first, _ = next(fresh)
    gone, kept = [(one, path) for one, path in made if one.session != first]
    gone[1].unlink()
    assert [name for name, _ in fresh] == [kept[0].session]


def test_a_transcript_that_another_machine_wrote_over_is_read_anew(store: ClaudeCodeTranscripts) -> None:
    """It is longer, has the same number, and goes on from before the refusal."""
    made, path = session(store)
    assert store.look(made.session).failure is not None
    other = Transcript(made.session, cwd=CWD)
    other.user("question")
    other.assistant(text("done on another machine"))
    other.user("more " * 2000)
    assert len(other.raw()) > path.stat().st_size
    path.write_bytes(other.raw())
    look = store.look(made.session)
    assert look.failure is None
    assert look == ClaudeCodeTranscripts(store.root).look(made.session)


def test_a_refusal_is_found_and_the_answer_before_it(store: ClaudeCodeTranscripts) -> None:
    made, _ = session(store)
    look = store.look(made.session)
    assert look.failure is not None and look.failure.message == made.last
    assert look.failure.error.status == 400 and look.failure.error.answered
    assert "String should match" in look.failure.error.texts[0]
    assert not look.newer
    made.user("again")
    made.write(store.root)
    assert store.look(made.session).newest_user == made.last
    made.assistant(text("an answer"))
    made.write(store.root)
    answered = store.look(made.session)
    assert (answered.failure, answered.newest_user) == (None, None) and answered.last_answer > 0


@pytest.mark.parametrize(
    ("served", "whose"),
    [("glm-4.6", None), ("deepseek-chat", None), ("kat-coder-pro-v1", None), ("claude-opus-4-5", "anthropic")],
)
def test_who_answered_tells_the_maker_and_not_the_name_that_was_asked_for(
    store: ClaudeCodeTranscripts, served: str, whose: str | None
) -> None:
    """ANTHROPIC_BASE_URL may lead to another maker, who takes Claude's names for models of its own."""
    made = Transcript(cwd=CWD)
    for prompt in ("question", "next"):
        made.user(prompt)
        made.asks("claude-opus-4-5")
        if prompt == "question":
            made.assistant(text("done"))
            made.by(served, "claude-opus-4-5")
    made.refused("messages.1.content.0: Invalid `signature` in `thinking` block")
    made.write(store.root)
    failure = store.look(made.session).failure
    assert failure is not None and failure.model == served
    next_one = ClaudeCode(ClaudeCodeSettings()).next_failure(store.load(made.session))
    assert next_one is not None and next_one.model == served
    for one in (failure, next_one):
        found = provider_of(one)
        assert (found and found.name) == whose


KIMI, CLAUDE, DATED = "kimi-k2-turbo-preview", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929"


@pytest.mark.parametrize("tells", [Transcript.asks, Transcript.told_model])
@pytest.mark.parametrize("on_from_before", [True, False])
@pytest.mark.parametrize(
    ("served", "asked", "then", "model"),
    [
        (KIMI, KIMI, CLAUDE, CLAUDE),
        ("moonshotai/kimi-k2", "moonshotai/kimi-k2", CLAUDE, CLAUDE),
        (KIMI, CLAUDE, "claude-haiku-4-5", KIMI),  # the same maker may well take that name, too
        (KIMI, "", CLAUDE, KIMI),  # an older client does not tell what was asked for
        (DATED, CLAUDE, KIMI, KIMI),
        (CLAUDE, f"{CLAUDE}[1m]", KIMI, KIMI),
        (DATED, f"us.anthropic.{DATED}-v1:0", KIMI, KIMI),
    ],
)
def test_who_is_asked_since_is_a_new_choice_where_the_answer_came_by_its_own_name(
    store: ClaudeCodeTranscripts,
    served: str,
    asked: str,
    then: str,
    model: str,
    tells: Callable[[Transcript, str], object],
    *,
    on_from_before: bool,
) -> None:
    """Of a compaction of its own that is refused, the client notes no request: what it attaches tells."""
    made = Transcript(cwd=CWD)
    made.user("question")
    made.asks(asked or CLAUDE)
    made.assistant(text("done"))
    made.by(served, asked)
    made.write(store.root)
    if on_from_before:
        assert store.look(made.session).asked == ("anthropic", served)
    made.user("next")
    tells(made, then)
    made.write(store.root)
    unanswered = ClaudeCode(ClaudeCodeSettings()).next_failure(store.load(made.session))
    assert unanswered is not None and unanswered.model == model
    made.refused("messages.1.content.0: Invalid `signature` in `thinking` block")
    made.write(store.root)
    look = store.look(made.session)
    assert look.failure is not None and look.failure.model == model and look.asked == ("anthropic", model)
    made.user("again")
    tells(made, asked or CLAUDE)  # back again
    made.write(store.root)
    assert store.look(made.session).asked[1] == (served if model == served else asked)


def test_what_the_client_mended_by_itself_is_no_refusal(store: ClaudeCodeTranscripts) -> None:
    made, _ = session(store, refused=False)
    made.user("next")
    made.refused("an image in the conversation could not be processed and was removed.", apiError="media_removed")
    made.assistant(text("goes on"))
    made.write(store.root)
    assert store.look(made.session).failure is None


def compacts(made: Transcript) -> None:
    """Its user has the session compacted, which the provider took; as the client writes it."""
    behind = made.last
    made.add({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": behind, "parentUuid": None})
    made.user("This session is being continued from a previous conversation.", isCompactSummary=True)
    commands(made)


def commands(made: Transcript) -> None:
    made.user("Caveat", isMeta=True)
    made.user("<command-name>/exit</command-name>")
    made.user("<local-command-stdout>Bye!</local-command-stdout>")


def clears(made: Transcript) -> None:
    """What `/clear` begins a new session with: nothing else is in it until it is prompted."""
    made.user("Caveat", isMeta=True)
    made.user("<command-name>/clear</command-name>\n  <command-message>clear</command-message>")
    made.add({"type": "system", "subtype": "local_command", "content": "<local-command-stdout></local-command-stdout>"})


def shell(made: Transcript) -> None:
    made.user("<bash-input>ls</bash-input>")
    made.user("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>")


def stops(made: Transcript) -> None:
    made.user("again")
    made.user([text("[Request interrupted by user]")])


def resumes(made: Transcript) -> None:
    """A client that was killed in a turn, and started again: it writes so with the next prompt."""
    made.user("again")
    made.no_response()


@pytest.mark.parametrize("goes_on", [compacts, commands, clears, shell, stops, resumes])
@pytest.mark.parametrize("refused", [True, False])
def test_what_no_model_was_asked_for_is_no_prompt_that_waits_and_a_compaction_ends_a_refusal(
    store: ClaudeCodeTranscripts, tmp_path: Path, goes_on: Callable[[Transcript], None], refused: bool
) -> None:
    made, _ = session(store, refused=refused)
    if not refused:
        made.assistant(text("done"))
    goes_on(made)
    made.write(store.root)
    look = store.look(made.session)
    assert (bool(look.failure), look.newest_user) == (refused and goes_on is not compacts, None)
    with Ledger(tmp_path / "ledger.db") as ledger:
        found = diagnose(Context(ledger, Config(), tmp_path), store, made.session)
        assert bool(found) is bool(look.failure)


def test_only_what_was_appended_is_read(store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch) -> None:
    made, path = session(store, refused=False)
    filler = dump({"type": "attachment", "uuid": "u", "pad": "x" * 1_000_000})
    path.write_bytes(filler * 5 + path.read_bytes())
    read: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, offset: int) -> bytes:
        found = real(fd, size, offset)
        read.append(len(found))
        return found

    monkeypatch.setattr(os, "pread", pread)
    store.look(made.session)
    assert sum(read) < 200_000  # back to the last answer, not the five megabytes before it
    read.clear()
    with path.open("ab") as file:
        made.lines.clear()
        made.user("more")
        made.refused("messages.1: x")
        file.write(made.raw())
    assert store.look(made.session).failure is not None
    assert sum(read) < 10_000


def test_lines_are_written_over_and_all_else_stays_byte_for_byte(store: ClaudeCodeTranscripts) -> None:
    made, path = session(store)
    path.write_bytes(path.read_bytes() + b'{"type":"user","torn')
    path.chmod(0o640)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    before = path.read_bytes()
    todo = changes(store, made)
    assert len(todo) == 2
    store.apply(todo)
    after = path.read_bytes()
    old, new = before.split(b"\n"), after.split(b"\n")
    assert [n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b] == [2, 3]
    assert json.loads(new[2])["recoveryd"] == {"recovery": "r1"}
    assert json.loads(new[2])["message"]["content"][0] == call(call_id="call_1")
    assert (path.stat().st_mode & 0o777, path.stat().st_mtime) == (0o640, 1_700_000_000)
    assert all_written(store, todo) and list(path.parent.iterdir()) == [path]
    store.apply([change.reversed() for change in todo])
    assert path.read_bytes() == before and untouched(store, todo)


def test_what_changed_since_it_was_read_is_left_alone(store: ClaudeCodeTranscripts) -> None:
    made, path = session(store)
    todo = changes(store, made)
    changed = path.read_bytes().replace(b'"call:1"', b'"call:2"', 1)
    path.write_bytes(changed)
    with pytest.raises(ConflictError, match="not what was read"):
        store.apply(todo)
    assert path.read_bytes() == changed and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["create", "write", "compare", "link", "rename", "folder"])
def test_a_line_that_comes_at_any_step_is_kept(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made, path = session(store)
    todo = changes(store, made)
    reached: list[str] = []
    held: list[IO[bytes]] = []

    def reach(name: str) -> None:
        if name == "link":
            held.append(path.open("ab"))  # a client that opened the old file, and writes to it once it is replaced
        if name == step and not reached:
            reached.append(name)
            with path.open("ab") as file:
                file.write(LATE)
        if name == "folder":
            for opened in held:
                opened.write(LATE.replace(b"late", b"last"))
                opened.close()

    monkeypatch.setattr(failpoint, "reach", reach)
    store.apply(todo)
    assert reached == [step]
    raw = path.read_bytes()
    assert raw.count(LATE) == 1 and raw.count(LATE.replace(b"late", b"last")) == 1
    assert all_written(store, todo)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="only Linux tells who has a file open")
@pytest.mark.parametrize("step", ["", "rename"])
def test_a_client_that_opened_the_file_and_is_slow_to_write_loses_nothing(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made, path = session(store)
    todo = changes(store, made)
    slow: list[threading.Timer] = []

    def write(file: IO[bytes]) -> None:
        file.write(LATE)
        file.close()

    def reach(name: str) -> None:
        if name == step:
            slow.append(threading.Timer(0.15, write, [path.open("ab")]))
            slow[0].start()

    monkeypatch.setattr(failpoint, "reach", reach)
    reach("")  # before it is begun, or between the last look and the replacement
    store.apply(todo)
    slow[0].join()
    assert path.read_bytes().count(LATE) == 1
    assert all_written(store, todo)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="only Linux tells who has a file open")
def test_a_file_that_a_program_keeps_open_to_write_is_mended_once_it_is_closed(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = session(store)
    todo, before = changes(store, made), path.read_bytes()
    monkeypatch.setattr(line_file, "_WRITERS_S", 0.01)
    with path.open("ab"), pytest.raises(BusyStoreError, match="is open in a program"):  # it passes: no conflict
        store.apply(todo)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    store.apply(todo)
    assert all_written(store, todo)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="only Linux tells who has a file open")
@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EINVAL, errno.EACCES])  # NFS and SMB, others, not the owner
def test_a_file_system_that_gives_no_lease_keeps_nobody_from_a_repair(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    made, path = session(store)
    todo = changes(store, made)
    real = fcntl.fcntl

    def refuse(file: int, command: int, given: int = 0) -> int:
        if command == fcntl.F_SETLEASE:
            raise OSError(number, os.strerror(number))
        return real(file, command, given)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    store.apply(todo)
    assert all_written(store, todo) and list(path.parent.iterdir()) == [path]


class _KilledError(BaseException):
    pass


@pytest.mark.parametrize(
    "step", ["create", "write", "sync", "compare", "link", "rename", "folder", "take over", "unlink"]
)
def test_a_crash_at_any_step_leaves_all_or_nothing_and_no_line_is_lost(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made, path = session(store)
    todo = changes(store, made)
    before = path.read_bytes()
    late = dump({"type": "user", "uuid": "late"})
    real = os.unlink

    def reach(name: str) -> None:
        if name == "compare":
            with path.open("ab") as file:
                file.write(late)
        if name == step:
            monkeypatch.setattr(os, "unlink", lambda *_, **__: None)  # a process that is gone tidies nothing up
            raise _KilledError

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(_KilledError):
        store.apply(todo)
    monkeypatch.setattr(os, "unlink", real)
    monkeypatch.setattr(failpoint, "reach", lambda _: None)
    assert all_written(store, todo) or untouched(store, todo)
    store.clean(todo)
    assert list(path.parent.iterdir()) == [path]
    raw = path.read_bytes()
    assert raw.count(late) == (0 if step in ("create", "write", "sync") else 1)
    assert untouched(store, todo) or raw != before
    assert list(store.session_ids()) == [made.session]


@pytest.mark.parametrize("step", ["create", "write", "sync", "compare", "link", "rename"])
def test_a_disk_that_fails_before_the_new_file_is_there_leaves_nothing_behind(
    store: ClaudeCodeTranscripts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made, path = session(store)
    todo = changes(store, made)
    before = path.read_bytes()

    def reach(name: str) -> None:
        if name == step:
            raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(StoreError):
        store.apply(todo)
    assert list(path.parent.iterdir()) == [path] and path.read_bytes() == before


def test_a_session_is_where_it_was_written_to_last(store: ClaudeCodeTranscripts) -> None:
    made, path = session(store)
    made.cwd = "/home/me/elsewhere"
    moved = made.write(store.root)
    os.utime(path, ns=(1, 1))
    assert list(store.session_ids()) == [made.session]
    (change,) = {change.key.partition("#")[0] for change in changes(store, made)}
    assert change == f"{moved.parent.name}/{moved.name}"


def test_subagents_have_transcripts_of_their_own(store: ClaudeCodeTranscripts) -> None:
    made, path = session(store)
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    side = Transcript(made.session, cwd=CWD)
    side.user("do it", isSidechain=True)
    side.refused("messages.1: x", isSidechain=True)
    (folder / "agent-a1.jsonl").write_bytes(side.raw())
    assert set(store.session_ids()) == {made.session, "agent-a1"}
    assert store.about("agent-a1").parent == made.session
    assert store.look("agent-a1").failure is not None
    assert [m.role for m in store.load("agent-a1").messages] == ["user", "assistant"]
    assert list(store.touched((path.parent.name, made.session, "subagents", "agent-a1.jsonl"))) == ["agent-a1"]
    assert list(store.touched((path.parent.name, path.name))) == [made.session]
    run = folder / "workflows" / "wf_1a2b-3c"
    run.mkdir(parents=True)
    (run / "agent-b2.jsonl").write_bytes(side.raw())
    (run / "journal.jsonl").write_bytes(b'{"type":"started"}\n')
    assert set(store.session_ids()) == {made.session, "agent-a1", "agent-b2"}
    assert (store.about("agent-b2").parent, store.look("agent-b2").failure is not None) == (made.session, True)
    names = (path.parent.name, made.session, "subagents", "workflows", run.name)
    assert list(store.touched((*names, "agent-b2.jsonl"))) == ["agent-b2"]
    assert list(store.touched((*names, "journal.jsonl"))) == []
    for other in (("a.jsonl",), ("p", ".x.jsonl"), ("p", "s", "tool-results", "x.txt"), ("p", "s", "other", "x.jsonl")):
        assert list(store.touched(other)) == []


@pytest.mark.parametrize("name", ["{}-backup", "{}_old", "{}1", "agent-{:.8}", "notes", "{:.8}"])
def test_a_name_that_the_client_makes_no_session_of_is_none(store: ClaudeCodeTranscripts, name: str) -> None:
    """What `claude --resume` says of it: no valid session ID, and `--continue` passes it over (2.1.332)."""
    made, path = session(store)
    copy = path.with_name(f"{name.format(made.session)}.jsonl")
    copy.write_bytes(path.read_bytes())
    beside = copy.with_suffix("") / "subagents" / "agent-a1.jsonl"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(path.read_bytes())
    assert list(store.session_ids()) == [made.session] == list(store.written_since(0))
    assert [found for found, _ in store.fresh({}, 0)] == [made.session]
    assert not store.has(copy.stem) and not store.has("agent-a1")
    for file in (copy, beside):
        assert list(store.touched(file.relative_to(store.root).parts)) == []


def test_a_session_may_be_spelled_in_capitals(store: ClaudeCodeTranscripts) -> None:
    """It is gone on with by that name (2.1.332)."""
    made, path = session(store)
    named = path.rename(path.with_name(f"{made.session.upper()}.jsonl"))
    assert list(store.session_ids()) == [named.stem] == list(store.touched(named.relative_to(store.root).parts))


def _link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


BAD: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a folder": _folder,
    "a pipe": _pipe,
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_regular_file_is_left_alone_with_a_reason(store: ClaudeCodeTranscripts, bad: str) -> None:
    made, path = session(store)
    todo = changes(store, made)
    BAD[bad](path)
    for read in (lambda: store.look(made.session), lambda: store.load(made.session), lambda: store.apply(todo)):
        with pytest.raises((StoreError, NotFoundError)):
            read()


@pytest.mark.parametrize(
    "raw", [b"", b"\0" * 4096, b"\xff\xfe\n" * 9, b"[" * 100_000 + b"\n", b'null\n7\n"x"\n[]\n', b"\n\n"]
)
def test_bytes_that_are_no_transcript_are_no_session_that_is_stuck(store: ClaudeCodeTranscripts, raw: bytes) -> None:
    made, path = session(store)
    path.write_bytes(raw)
    assert store.look(made.session) == SessionStatus(asked=("anthropic", ""))
    assert store.load(made.session).messages == ()
    assert store.about(made.session).title == ""


def test_a_file_that_is_too_large_is_left_alone(store: ClaudeCodeTranscripts) -> None:
    made, _ = session(store)
    small = ClaudeCodeTranscripts(store.root, max_file=100)
    with pytest.raises(StoreError, match="too large: at most 100 bytes"):
        small.load(made.session)


def test_one_id_on_two_lines_is_left_alone(store: ClaudeCodeTranscripts) -> None:
    made, path = session(store)
    todo = changes(store, made)
    raw = path.read_bytes()
    path.write_bytes(raw + raw.split(b"\n")[2] + b"\n")
    with pytest.raises(StoreError, match="Two lines"):
        store.apply(todo)


@pytest.mark.parametrize(
    "key", ["../x.jsonl#u", "p/../../x.jsonl#u", "/etc/x.jsonl#u", "p/x.jsonl", "p/x.json#u", "p/.x.jsonl#u"]
)
def test_a_key_leads_nowhere_else(store: ClaudeCodeTranscripts, key: str) -> None:
    with pytest.raises(StoreError):
        store.read(key)


def test_which_client_has_a_session_open_is_told_by_processes_that_run(store: ClaudeCodeTranscripts) -> None:
    notes = store.home / "sessions"
    notes.mkdir()
    start = Path(f"/proc/{os.getpid()}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    note = {"sessionId": "s1", "startedAt": 5000, "procStart": start}
    (notes / f"{os.getpid()}.json").write_text(json.dumps(note))
    (notes / "999999999.json").write_text(json.dumps({**note, "startedAt": 1000}))
    (notes / f"{os.getppid()}.json").write_text("{")
    assert running.open_since(store.home, "s1") == 5.0
    assert running.open_since(store.home, "s2") is None
    (notes / f"{os.getpid()}.json").write_text(json.dumps({**note, "procStart": "1"}))
    assert running.open_since(store.home, "s1") is None


def test_a_client_that_was_killed_and_that_nobody_reaped_has_no_session_open(store: ClaudeCodeTranscripts) -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        start = Path(f"/proc/{child.pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
        (store.home / "sessions").mkdir()
        note = {"sessionId": "s1", "startedAt": 5000, "procStart": start}
        (store.home / "sessions" / f"{child.pid}.json").write_text(json.dumps(note))
        assert running.open_since(store.home, "s1") is None


@pytest.mark.parametrize("name", ["²", "٣", "-1", "0", "9" * 10, "9" * 25])
def test_a_note_that_no_process_can_have_tells_nothing(store: ClaudeCodeTranscripts, name: str) -> None:
    (store.home / "sessions").mkdir()
    (store.home / "sessions" / f"{name}.json").write_text('{"sessionId": "s1", "startedAt": 1}')
    assert running.open_since(store.home, "s1") is None


def test_a_note_may_tell_any_time(store: ClaudeCodeTranscripts) -> None:
    (store.home / "sessions").mkdir()
    file = store.home / "sessions" / f"{os.getpid()}.json"
    file.write_text(json.dumps({"sessionId": "s1", "startedAt": 10**400}))
    assert running.open_since(store.home, "s1") == 0.0


@pytest.mark.parametrize("odd", [{}, [], ["user"], None, 1])
def test_a_line_whose_type_is_no_text_is_passed_over(store: ClaudeCodeTranscripts, odd: object) -> None:
    made, path = session(store)
    made.user("odd")
    made.line(-1)["type"] = odd
    path.write_bytes(made.raw())
    look = store.look(made.session)
    assert look.failure is not None and not look.newer
    assert store.load(made.session).messages[-1].error is not None


def test_a_prompt_is_under_way_while_a_client_has_the_session_and_until_it_is_interrupted(
    store: ClaudeCodeTranscripts, tmp_path: Path
) -> None:
    """The client notes nothing between the prompt and the first words of its answer: no edit may come between."""
    made, path = session(store)
    made.user("again")
    at = made.ms
    made.write(store.root)
    os.utime(path, (0, 0))
    assert store.look(made.session).running == 0
    note = store.home / "sessions" / f"{os.getpid()}.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"sessionId": made.session, "startedAt": 5000}))
    assert store.look(made.session).running == at
    with Ledger(tmp_path / "ledger.db") as ledger:
        context = Context(ledger, Config(lookback_hours=1e6), tmp_path)
        assert Triage(context, lambda *_: None).judge(store, made.session).next is Next.AGAIN
        made.user([text("[Request interrupted by user]")])
        made.write(store.root)
        os.utime(path, (0, 0))
        assert store.look(made.session).running == 0
        assert Triage(context, lambda *_: None).judge(store, made.session).next is Next.RECOVER
    note.unlink()


def test_random_damage_never_gets_out_and_no_other_byte_is_written(store: ClaudeCodeTranscripts) -> None:
    """Lines cut, doubled and garbled: what is read is an answer or a clear error, a write changes its own lines."""
    for seed in range(150):
        dice = random.Random(seed)
        made, path = session(store)
        raw = bytearray(path.read_bytes())
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(raw))
            how = dice.randrange(4)
            if how == 0:
                del raw[at : at + dice.randrange(1, 200)]
            elif how == 1:
                raw[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9)))
            elif how == 2:
                raw[at:at] = raw[max(0, at - dice.randrange(400)) : at]
            else:
                raw[at] ^= 1 << dice.randrange(8)
        path.write_bytes(bytes(raw))
        store.look(made.session)
        try:
            todo = changes(store, made)
        except (StoreError, ValueError):
            continue
        try:
            store.apply(todo)
        except StoreError:
            assert path.read_bytes() == raw
        else:
            store.apply([change.reversed() for change in todo])
            assert path.read_bytes() == raw
        assert list(path.parent.glob(".*")) == []
        path.unlink()


def test_a_session_is_called_by_its_title_else_by_what_was_asked_first(store: ClaudeCodeTranscripts) -> None:
    made = Transcript(cwd=CWD)
    made.user("Caveat: told by the client", isMeta=True)
    made.user("<command-name>/clear</command-name>")
    made.user("<bash-input>ls</bash-input>")
    made.assistant(call(call_id="toolu_1"))
    made.result("toolu_1")
    made.user(" \n")
    made.user([text("[#4] list\nthe files " + "x" * 100)])
    made.user("and more")
    made.write(store.root)
    title = store.about(made.session).title
    assert title.startswith("[#4] list the files x") and len(title) == 60
    assert store.load(made.session).title == title
    made.event({"type": "summary", "summary": "Files", "leafUuid": made.last})
    made.write(store.root)
    assert store.load(made.session).title == store.about(made.session).title == "Files"


def test_a_large_session_is_called_by_the_title_at_its_end(store: ClaudeCodeTranscripts) -> None:
    """As its client's own list calls it, and also one that was looked at before it was named."""
    made = Transcript(cwd=CWD)
    made.user("first words")
    made.event({"type": "api-request-shape", "shape": "x" * 300_000})
    made.user("later words")
    made.write(store.root)
    assert store.about(made.session) == About("first words", CWD)
    for title in ("my name for it", "another"):
        made.event({"type": "custom-title", "customTitle": title, "sessionId": made.session})
        made.event({"type": "ai-title", "aiTitle": "The model's", "sessionId": made.session})
        made.user("more words " * 1_000)
        made.write(store.root)
        assert store.about(made.session) == About(title, CWD)
