"""Stores whose sessions are a growing file of lines each, with the client at work in them: see `tests.support.kept`."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pytest

from recoveryd.clients import json_lines
from recoveryd.clients.claude_code import transcript
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.codex import rollout_lines, thread
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.store import About, Store
from recoveryd.core.model import Change, Json, Message
from tests.support.json_tree import NOW, SES
from tests.support.kept import Kept, Raw
from tests.support.rollouts import NOT_VERIFIED
from tests.support.transcript import project, stamp

CWD = "/p"
_ROOM = b" " * 200  # behind a line: what is written over it may be longer
_NO_RECORDS = (b"", b'{"torn', b"[]", b"7", b"null", b'"words"', b'{"a":NaN}', b"\xff\xfe", b"\xef\xbb\xbf\0{}")


class _Growing(Kept, Protocol):
    """What they have in common: files, to whose ends lines come."""

    adds: bool = False
    spoken: frozenset[str] = frozenset({"reasoning", "text"})
    broken: Sequence[Raw] = ()
    odd: Sequence[Raw] = ()
    root: Path

    @abstractmethod
    def path(self, session: str) -> Path:
        """The file of a session."""

    @abstractmethod
    def _line(self, session: str, ms: int, line: Json) -> None:
        """Append a line."""

    def broken_message(self, ms: int) -> str:
        raise AssertionError("the client passes over it")

    def ordered(self, ids: Sequence[str]) -> Sequence[str]:
        return list(ids)

    def content(self) -> Mapping[str, Any]:
        files = (p for p in self.root.rglob("*") if p.is_file() and not p.name.startswith("."))
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def left(self) -> list[str]:
        return sorted(path.name for path in self.root.rglob(".*"))

    def file(self, owner: str, label: str) -> Path:
        return self.path(SES)

    def is_now(self, ns: int) -> bool:
        """A write of ours leaves the time that the client's newest write gave the file."""
        return ns == self.ms * 1_000_000

    def _append(self, path: Path, raw: bytes) -> None:
        self._put(path, (path.read_bytes() if path.exists() else b"") + raw)

    def _put(self, path: Path, raw: bytes) -> None:
        """A file gets another content, later than all before; it stays the same file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(raw)
            file.truncate()
        self.ms += 1
        os.utime(path, ns=(self.ms * 10**6, self.ms * 10**6))


def _refuse(patch: pytest.MonkeyPatch, which: int) -> None:
    """The system does not let a file be opened in this way."""
    real = os.open

    def opening(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & which == which:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    patch.setattr(os, "open", opening)


def _no_access(patch: pytest.MonkeyPatch, path: Path) -> None:
    patch.setattr(os, "access", lambda where, how: Path(where) != path)


class Threads(_Growing):
    """The rollouts of Codex. A turn is a prompt and its answer; a line keeps its length for ever."""

    aside: Json | None = MappingProxyType({"type": "ghost_snapshot"})
    asked = ("openai", "gpt-5.2")
    readable = (
        (b'{"type":"unheard-of","t":"a\\u0000b"}', {"type": "unheard-of", "t": "a\0b"}),
        (b'{"type":"unheard-of","n":1e5}', {"type": "unheard-of", "n": 1e5}),
    )
    passed_over = (*_NO_RECORDS, b'{"type":"response_item","payload":{"type":"message","half":"\\ud800"}}')
    bad_keys = (
        *("../x", "line/x/0000000000001", "line/01a201b9-0000-7000-8000-000000000001/1", "x", ""),
        "line/01a201b9-0000-7000-8000-000000000001/0000000000001/../x",
    )
    named = ""
    too_large = ("has a line of more than 4,000 bytes", "is too large: more than 5,100 bytes of it are sent")

    def __init__(self, folder: Path) -> None:
        self.ms = NOW
        self.root = folder / ".codex"
        (self.root / "sessions").mkdir(parents=True)
        self.store = CodexThreads(self.root / "sessions")
        self._about: dict[str, tuple[str, str]] = {}
        self._lines: dict[str, list[tuple[str, str, int]]] = {}  # the label of a part, its turn, the line's length
        self._turn: dict[str, str] = {}  # that runs

    def id(self, label: str) -> str:
        for lines in self._lines.values():
            offset = 0
            for name, _, length in lines:
                if name == label:
                    return thread.part_id(offset)
                offset += length
        if label.startswith("prt_"):
            return thread.part_id(10**9 + zlib.crc32(label.encode()))
        return f"01a201b9-0000-7000-8000-{zlib.crc32(label.encode()):012x}"

    def path(self, session: str) -> Path:
        folder = self.root / "sessions" / "2026" / "11" / "22"
        return folder / f"rollout-2026-11-22T05-27-44-{self.id(session)}.jsonl"

    def session(self, session: str, title: str, directory: str, parent: str) -> About:
        self._about[session] = title, directory
        if not self.path(session).exists():
            self._put(self.path(session), b"")
        return About(title, directory)

    def asks(self, ms: int, session: str = SES) -> str:
        turn = self._starts(ms, session)
        title = self._about.get(session, ("", ""))[0]
        if title and not any(label == "title" for label, _, _ in self._lines[session]):
            self._item(session, ms, _prompt(title), "title")
        said = {"type": "UserMessage", "id": "x", "content": []}
        self._event(session, ms, "item_completed", turn_id=turn, item=said)
        return f"prompt-{turn}"

    def answers(self, ms: int, session: str = SES) -> str:
        turn = self._turn.get(session) or self._starts(ms, session)
        self._item(session, ms, _answer("an answer"))
        self._event(session, ms + 5, "task_complete", turn_id=turn, last_agent_message="an answer")
        return self._turn.pop(session)

    def calls(self, ms: int, session: str = SES) -> str:
        turn = self._turn.get(session) or self._starts(ms, session)
        self._item(session, ms, {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "call_1"})
        return turn

    def runs(self, ms: int, session: str = SES) -> str:
        lock = self.root / "thread-writer-locks" / f"{self.id(session)}.lock"
        lock.parent.mkdir(exist_ok=True)
        fcntl.flock(os.open(lock, os.O_CREAT | os.O_WRONLY), fcntl.LOCK_EX)  # held as long as the tests run
        return self._starts(ms, session)

    def is_refused(self, ms: int, session: str = SES) -> str:
        turn = self._turn.get(session) or self._starts(ms, session)
        error = {"message": NOT_VERIFIED, "codex_error_info": "other"}
        self._event(session, ms, "task_complete", turn_id=turn, last_agent_message=None, error=error)
        return self._turn.pop(session)

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> None:
        turn = self._starts(ms, session)
        for kind in kinds:
            if kind != "step-start":
                self._item(session, ms, _answer("half") if kind == "text" else {"type": "reasoning", "summary": []})
        self._event(session, ms, "turn_aborted", turn_id=turn, reason="interrupted")
        self._turn.pop(session)

    def part(self, owner: str, label: str, raw: Raw | None = None, session: str = SES) -> None:
        mine = owner.startswith("prompt-")
        said = raw or json.dumps(_prompt("hello") if mine else _answer("hello")).encode()
        written = b'{"timestamp":"2026-11-22T05:27:44.584Z","type":"response_item","payload":' + said + b"}" + _ROOM
        turn, path, lines = owner.removeprefix("prompt-"), self.path(session), self._lines[session]
        last = max(at for at, (_, of, _) in enumerate(lines) if of == turn) + 1
        offset = sum(length for _, _, length in lines[:last])
        old = path.read_bytes()
        lines.insert(last, (label, turn, len(written) + 1))
        self._put(path, old[:offset] + written + b"\n" + old[offset:])

    def writes(self, owner: str) -> Sequence[Callable[[], object]]:
        return (lambda: self.part(owner, "prt_9"), lambda: self.calls(self.ms), lambda: self.asks(self.ms))

    def rewrites(self, owner: str, label: str) -> None:
        at, length = self._place(label)
        raw = self.path(SES).read_bytes()
        line = json.dumps({"type": "response_item", "payload": _answer("was here")}).encode()
        self._put(self.path(SES), raw[:at] + line.ljust(length - 1) + raw[at + length - 1 :])

    def removes(self, owner: str, label: str) -> None:
        at, length = self._place(label)
        raw = self.path(SES).read_bytes()
        self._put(self.path(SES), raw[:at] + raw[at + length :])

    def messages(self, session: str = SES) -> Sequence[Message]:
        """Without the first line, and the empty answers of turns of which nothing has come."""
        planted = {self.id(label) for label, _, _ in self._lines[session] if label.startswith("prt_")}
        loaded = self.store.load(self.id(session)).messages
        found = (replace(m, parts=tuple(part for part in m.parts if part.id in planted)) for m in loaded)
        return [m for m in found if m.role == "user" or m.completed or m.parts]

    def key(self, owner: str, label: str) -> str:
        return f"line/{self.id(SES)}/{self.id(label)}"

    def called(self, owner: str, label: str) -> str:
        return f"(at byte {self._place(label)[0]:,})"

    def record(self, owner: str, label: str) -> bytes | None:
        part = self.store.load(self.id(SES)).part(self.id(label))
        return part.raw if part else None

    def said(self, data: Json) -> Json:
        return data

    def other_layout(self, owner: str, label: str) -> Raw:
        return b'{ "a" : 1 , "type" : "message", "role" : "user", "content" : [ ] }'

    def words(self, words: str) -> Json:
        return _prompt(words)

    def line(self, raw: Raw) -> None:
        self._append(self.path(SES), raw + b"\n")
        self._lines[SES].append(("", self._lines[SES][-1][1], len(raw) + 1))

    def cut_off(self, change: Change) -> int:
        assert change.before and change.after
        at, length = (
            int(change.key.rpartition("/")[2]),
            next(n for n, both in enumerate(zip(change.before, change.after, strict=True), 1) if len({*both}) > 1),
        )
        raw = self.path(SES).read_bytes()
        self._put(self.path(SES), raw[:at] + change.after[:length] + raw[at + length :])
        return 1

    def foreign(self, owner: str) -> None:
        self.path(SES).with_name("notes.jsonl").write_bytes(b"x")
        self._event(SES, self.ms, "unheard_of")

    def limited(self, patch: pytest.MonkeyPatch, record: int, session: int) -> Store:
        patch.setattr(json_lines, "MAX_LINE", record)
        patch.setattr(thread, "MAX_THREAD", session)
        return CodexThreads(self.root / "sessions")

    def absent(self, folder: Path) -> Store:
        return CodexThreads(folder / "sessions")

    def protect(self, number: int, patch: pytest.MonkeyPatch) -> str:
        """A line is written over where it stands: the folder need not be written to."""
        if number:
            _refuse(patch, os.O_RDWR)
            return ""
        _no_access(patch, self.store.root)
        return "sessions can't be read"

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        real = rollout_lines.parse

        def parse(raw: bytes) -> dict[str, Any] | None:
            line = real(raw)
            found.append(str(rollout_lines.payload(line or {}).get("turn_id")))
            return line

        patch.setattr(rollout_lines, "parse", parse)
        return found

    def _starts(self, ms: int, session: str) -> str:
        if not self._lines.get(session):
            directory = self._about.get(session, ("", CWD))[1]
            meta = {"id": self.id(session), "cwd": directory, "cli_version": "0.169.0", "model_provider": "openai"}
            self._line(session, ms, {"type": "session_meta", "payload": meta})
        turn = f"01a201b9-1111-7000-8000-{ms % 10**12:012d}"
        self._turn[session] = turn
        self._event(session, ms, "task_started", turn_id=turn)
        self._line(session, ms, {"type": "turn_context", "payload": {"turn_id": turn, "model": "gpt-5.2"}})
        return turn

    def _event(self, session: str, ms: int, kind: str, **fields: Any) -> None:
        self._line(session, ms, {"type": "event_msg", "payload": {"type": kind, **fields}})

    def _item(self, session: str, ms: int, item: Json, label: str = "") -> None:
        self._line(session, ms, {"type": "response_item", "payload": item}, label)

    def _line(self, session: str, ms: int, line: Json, label: str = "") -> None:
        raw = json.dumps({"timestamp": stamp(ms), **line}, separators=(",", ":")).encode() + b"\n"
        lines = self._lines.setdefault(session, [])
        turn = self._turn.get(session) or (lines[-1][1] if lines else "")
        self._append(self.path(session), raw)
        lines.append((label, turn, len(raw)))

    def _place(self, label: str) -> tuple[int, int]:
        """Where the line of a part begins, and how long it is."""
        return int(self.id(label)), next(length for name, _, length in self._lines[SES] if name == label)


def _prompt(words: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def _answer(words: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


class Transcripts(_Growing):
    """The transcripts of Claude Code. A line is a message, and a part one of its blocks."""

    aside = None
    asked = ("anthropic", "claude-opus-5-5")
    readable = (
        (b'{"type":"text","text":"a\xffb"}', {"type": "text", "text": "a\ufffdb"}),
        (b'{"type":"text","text":"a\\u0000b"}', {"type": "text", "text": "a\0b"}),
        (b'{"type":"x","n":' + b"9" * 5000 + b',"m":1}', {"type": "x", "n": float("inf"), "m": 1}),
    )
    passed_over = (*_NO_RECORDS, b'\xef\xbb\xbf{"type":"user","uuid":"u","message":{"role":"user","content":"x"}}')
    bad_keys = (
        *("../x.jsonl#u", "p/../../x.jsonl#u", "/etc/x.jsonl#u", "p/x.jsonl", "p/x.json#u", "p/.x.jsonl#u"),
        *("x.jsonl#u", "p//x.jsonl#u", "p/x.jsonl#", "", "p/s/other/x.jsonl#u"),
    )
    named = r"Line \d of .*jsonl"
    too_large = ("has a line of more than 4,000 bytes", "too large: its conversation may take 5,100 bytes of memory")

    def __init__(self, folder: Path) -> None:
        self.ms = NOW
        self.root = folder / ".claude"
        (self.root / "projects").mkdir(parents=True)
        self.store = ClaudeCodeTranscripts(self.root / "projects")
        self._about: dict[str, tuple[str, str]] = {}  # folder and parent
        self._last: dict[str, str] = {}
        self._parts: dict[str, str] = {}

    def id(self, label: str) -> str:
        if label in self._parts:
            return self._parts[label]
        made = str(uuid.uuid5(uuid.NAMESPACE_OID, label))
        return transcript.part_id(made, 0) if label.startswith("prt_") else made

    def path(self, session: str) -> Path:
        directory, parent = self._about.get(session, (CWD, ""))
        folder = self.root / "projects" / project(directory)
        folder = folder / self.id(parent) / "subagents" if parent else folder
        return folder / f"{self.id(session)}.jsonl"

    def session(self, session: str, title: str, directory: str, parent: str) -> About:
        self._about[session] = directory or CWD, parent
        self._put(self.path(session), b"")
        if title:
            self._line(session, self.ms, {"type": "custom-title", "customTitle": title, "sessionId": self.id(session)})
        return About(title, directory, self.id(parent) if parent else None)

    def asks(self, ms: int, session: str = SES) -> str:
        return self._says(session, ms, "user", [])

    def answers(self, ms: int, session: str = SES) -> str:
        return self._says(session, ms + 5, "assistant", [_text("an answer")])

    def calls(self, ms: int, session: str = SES) -> str:
        return self._says(session, ms, "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}])

    def runs(self, ms: int, session: str = SES) -> str:
        """Nothing of an answer is stored before it is there."""
        notes = self.root / "sessions"
        notes.mkdir(exist_ok=True)
        start = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
        note = {"sessionId": self.id(session), "startedAt": ms, "procStart": start}
        (notes / f"{os.getpid()}.json").write_text(json.dumps(note))
        return ""

    def is_refused(self, ms: int, session: str = SES) -> str:
        if session not in self._last:
            self.answers(ms - 50, session)  # by which the model is known
        error = {"isApiErrorMessage": True, "apiErrorStatus": 400, "apiErrorType": "invalid_request_error"}
        return self._says(session, ms, "assistant", [_text("API Error: 400 no")], "<synthetic>", **error)

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> None:
        for kind in kinds:
            if kind != "step-start":
                block = _text("half") if kind == "text" else {"type": "thinking", "thinking": "hm", "signature": "s"}
                self._says(session, ms, "assistant", [block])
        self._says(session, ms, "user", [_text("[Request interrupted by user]")])

    def part(self, owner: str, label: str, raw: Raw | None = None, session: str = SES) -> None:
        block = raw or json.dumps(_text("hello")).encode()

        def added(line: bytes) -> bytes:
            blocks = json.loads(line.decode("utf-8", "replace"), parse_int=float)["message"]["content"]
            self._parts[label] = transcript.part_id(owner, len(blocks))
            start, end = line.index(b'"content":['), line.rindex(b"]")
            assert start < end
            return line[:end] + (b"," if blocks else b"") + block + line[end:]

        self._rewrite(owner, added, session)

    def writes(self, owner: str) -> Sequence[Callable[[], object]]:
        renamed = {"type": "custom-title", "customTitle": "x"}
        return (
            lambda: self.part(owner, "prt_9"),
            lambda: self.removes(owner, "prt_2"),
            lambda: self.asks(self.ms),
            lambda: self._line(SES, self.ms, renamed),
        )

    def rewrites(self, owner: str, label: str) -> None:
        self._rewrite(owner, lambda line: line.replace(b"hello", b"was here").replace(b"other", b"was here"))

    def removes(self, owner: str, label: str) -> None:
        self._rewrite(owner, lambda _: b"")

    def messages(self, session: str = SES) -> Sequence[Message]:
        """Without what they say by themselves."""
        planted = set(self._parts.values())
        loaded = self.store.load(self.id(session)).messages
        return [replace(m, parts=tuple(part for part in m.parts if part.id in planted)) for m in loaded]

    def key(self, owner: str, label: str) -> str:
        line = owner if label in self._parts else str(uuid.uuid5(uuid.NAMESPACE_OID, owner + label))
        return f"{self.path(SES).relative_to(self.store.root)}#{line}"

    def called(self, owner: str, label: str) -> str:
        return f"Line {owner}"

    def record(self, owner: str, label: str) -> bytes | None:
        return next(m.raw for m in self.store.load(self.id(SES)).messages if m.id == owner)

    def said(self, data: Json) -> Json:
        found: Json = data["message"]["content"][-1] if "message" in data else data
        return found

    def line(self, raw: Raw) -> None:
        self._append(self.path(SES), raw + b"\n")

    def other_layout(self, owner: str, label: str) -> Raw:
        return b'{ "a" : 1 }'

    def words(self, words: str) -> Json:
        return _text(words)

    def cut_off(self, change: Change) -> int:
        file = self.path(SES)
        file.with_name(f".recoveryd-{file.stem}").write_bytes(b"half")
        os.link(file, file.with_name(f".recoveryd-old-{file.stat().st_size}-{file.stem}"))
        return 2

    def foreign(self, owner: str) -> None:
        path = self.path(SES)
        for name in (".hidden.jsonl", "notes.txt", f"{path.name}.bak"):
            path.with_name(name).write_bytes(b"x")
        self._line(SES, self.ms, {"type": "mode", "mode": "normal"})
        self._line(SES, self.ms, {"type": "file-history-snapshot", "uuid": "u"})
        path.with_name(".hidden.jsonl").unlink()  # it would be `left`

    def limited(self, patch: pytest.MonkeyPatch, record: int, session: int) -> Store:
        patch.setattr(json_lines, "MAX_LINE", record)
        return ClaudeCodeTranscripts(self.root / "projects", max_session=session)

    def absent(self, folder: Path) -> Store:
        return ClaudeCodeTranscripts(folder / "projects")

    def protect(self, number: int, patch: pytest.MonkeyPatch) -> str:
        """A new file comes beside the old one: it is the folder that has to be written to."""
        if number:
            _refuse(patch, os.O_CREAT | os.O_EXCL)
            return ""
        _no_access(patch, self.store.root)
        return "projects can't be written to"

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        real = transcript.parse

        def parse(raw: bytes) -> dict[str, Any] | None:
            line = real(raw)
            found.append(str((line or {}).get("uuid")))
            return line

        patch.setattr(transcript, "parse", parse)
        return found

    def _says(self, session: str, ms: int, role: str, blocks: Sequence[Json], model: str = "", **fields: Any) -> str:
        directory, parent = self._about.get(session, (CWD, ""))
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session} {ms} {role} {len(self._last)} {fields} {blocks}"))
        mine = {"id": f"msg_{name[:8]}", "model": model or self.asked[1]} if role == "assistant" else {}
        line = {
            "parentUuid": self._last.get(session),
            "isSidechain": bool(parent),
            "type": role,
            "uuid": name,
            "cwd": directory,
            "sessionId": self.id(parent or session),
            **fields,
            "message": {"role": role, **mine, "content": list(blocks)},
        }
        self._last[session] = name
        self._line(session, ms, line)
        return name

    def _line(self, session: str, ms: int, line: Json) -> None:
        """The content of a message stands last in it."""
        raw = json.dumps({**line, "timestamp": stamp(ms)}, separators=(",", ":"), ensure_ascii=False)
        self._append(self.path(session), raw.encode() + b"\n")

    def _rewrite(self, owner: str, change: Callable[[bytes], bytes], session: str = SES) -> None:
        lines = self.path(session).read_bytes().splitlines(keepends=True)
        self._put(
            self.path(session), b"".join(change(raw) if f'"uuid":"{owner}"'.encode() in raw else raw for raw in lines)
        )


def _text(words: str) -> Json:
    return {"type": "text", "text": words}
