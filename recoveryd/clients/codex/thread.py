"""A thread out of its rollout: a prompt and an answer for each turn, and in them what is sent again.

A part is an item of the conversation: a line of its own, or one of those that a compaction put in the place of all
before it. What stands before the last compaction is not sent any more, and not kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recoveryd.clients import json_lines
from recoveryd.clients.codex import rollout_lines
from recoveryd.clients.codex.item_forms import CONFIGURATION, OF_THE_CLIENT, history_is_read
from recoveryd.clients.codex.newest_turn import prompt_of, turn_begun
from recoveryd.clients.codex.rollout_lines import first_line_fault
from recoveryd.clients.codex.thread_head import Resume, instead, instead_of_fork, opens, text_of
from recoveryd.clients.json_lines import Line
from recoveryd.core import FormError, Json, Message, Part, Session, StoreError

# Types of parts that are no items: the first line, a compaction, a rollback, the last line where it is damaged.
META, COMPACTED, ROLLED_BACK, LAST = "rollout_meta", "rollout_compacted", "rollout_rolled_back", "rollout_last"
_LAST_PLACE = 999_999  # of LAST in its line, behind all items
_INPUT = frozenset({"user", "developer", "system"})
_OUTPUTS = ("_output",)
MAX_THREAD = 256 * 1024 * 1024  # bytes of all lines that are kept


def part_id(offset: int, index: int | None = None) -> str:
    """Make the id of a part of a thread: the line at a byte, or an item in it; ids sort in the order of the file."""
    return f"{offset:013d}" if index is None else f"{offset:013d}-{index:06d}"


def place(part: str) -> tuple[int, int | None]:
    """Cut the id of a part of Codex's thread: the byte of its line, and its place in that. ValueError."""
    offset, _, index = part.partition("-")
    return int(offset), int(index) if index else None


def in_history(part: str) -> bool:
    """Whether the part of this id is an item of a compaction's history."""
    return place(part)[1] is not None


@dataclass(slots=True)
class _Turn:
    id: str
    started: int
    input: list[Part] = field(default_factory=list)
    output: list[Part] = field(default_factory=list)
    asked: bool = False  # a person did, in words of theirs
    completed: int = 0
    aborted: bool = False
    error: Any = None
    spoke: bool = False
    review: bool = False  # a `/review`: another thread was asked, and has its error
    by_exec: bool = False  # asked by `codex exec`: a process that reads the thread, and ends with the turn


class _Reader:
    """Puts a thread together, line by line."""

    def __init__(self, path: str, resume: Resume) -> None:
        self._path, self._resume = path, resume
        self.meta: Json = {}
        self.first: Part | None = None
        self.turns: list[_Turn] = []
        self._weight = 0
        self._newest = 0
        self._unsure = ""  # where the last compaction stands, if it has a form that is not known
        self._last: Line | None = None
        self._number: int | None = None  # the newest that a line has
        self._review = ""  # the newest turn that is a review
        self._about: dict[str, object] = {}  # the thread as a whole

    def read(self, line: Line) -> None:
        self._last = line
        number = rollout_lines.number(line.raw)
        self._number = self._number if number is None else number
        if not line.offset:
            self._begin(line)
            return
        told = rollout_lines.types(line.raw[: json_lines.HEAD])
        if told is not None and told[0] == "event_msg" and told[1] not in _READ:
            return
        data = rollout_lines.parse(line.raw)
        if data is None:
            return  # the client passes over it
        payload = rollout_lines.payload(data)
        match data.get("type"):
            case "session_meta":
                what = f"{self._path} has two session_meta lines"
                raise FormError(f"{what}: no such thread is repaired; {instead(self.meta, self._resume)}.")
            case "response_item":
                self._keep(line)
                self._item(line, payload)
            case "compacted":
                self._keep(line)
                self._compacted(line, payload)
            case "turn_context":
                self._about |= {key: payload.get(key) for key in ("comp_hash", "model")}
            case "event_msg":
                self._event(line, payload, json_lines.line_time(data.get("timestamp")))

    def _keep(self, line: Line) -> None:
        self._weight += len(line.raw)
        if self._weight > MAX_THREAD:
            raise StoreError(
                f"{self._path} is too large: more than {MAX_THREAD:,} bytes of it are sent with each prompt."
            )

    def _begin(self, line: Line) -> None:
        """Read the first line, which says whose the file is; with anything before its brace the client does not open
        it.
        """
        fault = first_line_fault(line.raw)
        data = rollout_lines.parse(rollout_lines.tidied(line.raw)) or {}
        if data.get("type") != "session_meta":
            raise StoreError(f"{self._path} does not begin with a session_meta line; it is left alone.")
        self.meta = rollout_lines.payload(data)
        if self.meta.get("history_base"):
            what = f"{self._path} goes on from another file (it is a fork, or turns were taken back)"
            shorter = "if it is too long, `/compact` it, else " if opens(self.meta) else ""
            raise FormError(f"{what}: no such thread is repaired; {shorter}{instead_of_fork(self.meta, self._resume)}.")
        about = {key: self.meta.get(key) for key in ("base_instructions", "model_provider", "cli_version")}
        self._about = {"type": META, "fault": fault, **about}
        self._ordinals = "ordinal" in data
        self.first = Part(part_id(0), "", self._about, line.raw)

    def end(self) -> None:
        """Check the last compaction, and the last line: it must be numbered where the first is, or the client does not
        open the thread. StoreError.
        """
        if self._unsure:
            what = f"has a compaction of an unknown form{self._unsure}"
            raise FormError(f"{self._path} {what}: no such thread is repaired; {instead(self.meta, self._resume)}.")
        last, number = self._last, self._number
        data = rollout_lines.parse(last.raw) if last is not None and last.offset and self._ordinals else None
        if last is not None and data is not None and "ordinal" not in data and number is not None:
            said = {"type": LAST, "fault": "Codex does not open it: its last line has no number", "ordinal": number + 1}
            self._turn(last).output.append(Part(part_id(last.offset, _LAST_PLACE), "", said, last.raw))

    def _turn(self, line: Line) -> _Turn:
        if not self.turns:
            self.turns.append(_Turn(f"before_{line.offset}", 0))
        return self.turns[-1]

    def _item(self, line: Line, payload: Json) -> None:
        part = Part(part_id(line.offset), "", payload, line.raw)
        turn = self._turn(line)
        if part.type == CONFIGURATION:
            self._about["configured"] = self._about.get("model")
        if part.type in OF_THE_CLIENT or (part.type == "message" and text_of(payload, "role") in _INPUT):
            turn.input.append(part)
        else:
            turn.output.append(part)
            turn.spoke = turn.spoke or not part.type.endswith(_OUTPUTS)

    def _compacted(self, line: Line, payload: Json) -> None:
        """Begin anew at a compaction: what came before it is not sent any more."""
        history = payload.get("replacement_history")
        read = history is None or history_is_read(payload)
        self._unsure = "" if read else self._unsure if read is False else f" (at byte {line.offset:,})"
        if not read:
            return  # the client passes over it
        for turn in self.turns if isinstance(history, list) else ():
            turn.input.clear()
            turn.output.clear()
        self._weight = len(line.raw) if isinstance(history, list) else self._weight
        said: dict[str, object] = {"type": COMPACTED, "message": payload.get("message")}
        said["replaces"] = isinstance(history, list)
        turn = self._turn(line)
        turn.spoke, output = True, turn.output  # a model was asked for it
        output.append(Part(part_id(line.offset), "", said, line.raw))
        for index, item in enumerate(history if isinstance(history, list) else ()):
            data = item if isinstance(item, dict) else None
            output.append(Part(part_id(line.offset, index), "", data, line.raw))

    def _event(self, line: Line, payload: Json, at: int) -> None:
        kind = payload.get("type")
        self._newest = at = at or self._newest  # a line whose time can't be read has that of the one before
        if kind == "task_started":
            asked = payload.get("turn_attribution")
            by_exec = isinstance(asked, Mapping) and asked.get("turn_trigger") == "exec"
            begun = turn_begun(payload, self._review)
            if not begun or begun != self._review:
                self.turns.append(_Turn(begun or f"turn_{line.offset}", at, by_exec=by_exec))
        elif kind == "thread_rolled_back":
            said = {"type": ROLLED_BACK, "num_turns": payload.get("num_turns")}
            self._turn(line).output.append(Part(part_id(line.offset), "", said, line.raw))
        elif kind == "task_complete":
            turn = self._turn(line)
            turn.completed, turn.error = at, None if turn.review else payload.get("error")
            turn.spoke = turn.spoke or bool(payload.get("last_agent_message"))
        elif kind == "turn_aborted":
            turn = self._turn(line)
            turn.completed, turn.aborted = at, True
        elif kind in ("user_message", "item_completed"):
            item = payload.get("item")
            what = item.get("type") if isinstance(item, Mapping) else None
            self._turn(line).asked |= kind == "user_message" or what == "UserMessage"
            if what == "EnteredReviewMode":
                self._review = text_of(payload, "turn_id")
                self.turns.append(_Turn(self._review, at, review=True))


_READ = frozenset(
    {"task_started", "task_complete", "turn_aborted", "thread_rolled_back", "user_message", "item_completed"}
)


def assemble(store: str, thread: str, path: str, title: str, lines: Iterable[Line], resume: Resume) -> Session:
    """Make a thread's session of the lines of a rollout. StoreError where it is not safe to say what the client makes
    of them.
    """
    reader = _Reader(path, resume)
    for line in lines:
        reader.read(line)
    reader.end()
    if reader.first is None:
        raise StoreError(f"{path} does not begin with a session_meta line; it is left alone.")
    own = reader.meta.get("id")
    if own != thread:
        said = own if isinstance(own, str) and len(own) < 60 else "another"
        raise StoreError(f"{path} says that it is of thread {said!r}, and its name says {thread}; it is left alone.")
    messages = [Message("meta", {"role": "meta"}, _owned("meta", [reader.first]), b"", 1)]
    for turn in reader.turns:
        messages += [replace(message, at=len(messages) + n) for n, message in enumerate(_messages(turn), 1)]
    return Session(store, thread, tuple(messages), title, text_of(reader.meta, "cwd"))


def about_thread(session: Session) -> Json:
    """Return what a thread's own lines say of it: its provider, its model, its first words; empty where none does."""
    return next((part.data or {} for message in session.messages for part in message.parts if part.type == META), {})


def _messages(turn: _Turn) -> list[Message]:
    """Make a prompt and its answer, in what messages have in common."""
    found = []
    prompt = prompt_of(turn.id)
    if turn.input or turn.asked:
        data: dict[str, Any] = {"role": "user", "time": {"created": turn.started}}
        found.append(Message(prompt, data, _owned(prompt, turn.input), b""))
    answered: dict[str, Any] = {"role": "assistant", "parentID": prompt, "time": {"created": turn.started + 1}}
    if turn.completed:
        answered["time"]["completed"] = turn.completed
    if turn.error:
        answered["error"] = turn.error if isinstance(turn.error, dict) else {"message": str(turn.error)}
    if turn.aborted:
        answered["aborted"] = True
    if turn.by_exec:
        answered["exec"] = True
    if turn.review or (turn.completed and not turn.spoke and not turn.error and not turn.aborted):
        answered["shell"] = True  # no model was asked for an answer to what this thread holds
    output = turn.output
    if turn.error and output:  # the request that failed held them: what is refused is an empty answer behind them
        steps = f"steps-{turn.id}"
        data = {**answered, "time": {**answered["time"]}}
        del data["error"]
        found.append(Message(steps, data, _owned(steps, output), b""))
        answered["time"]["created"] += 1
        output = []
    found.append(Message(turn.id, answered, _owned(turn.id, output), b""))
    return found


def _owned(message: str, parts: list[Part]) -> tuple[Part, ...]:
    return tuple(Part(part.id, message, part.data, part.raw) for part in parts)
