"""What the newest lines of a transcript tell: refused, answered, prompted since. Each byte is looked at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from recoveryd.clients import json_lines
from recoveryd.clients.claude_code import error_record, transcript
from recoveryd.clients.claude_code.transcript_line import CHAINED, COMPACTED, SENT, Line, model_asked, text_of
from recoveryd.clients.store import SessionStatus
from recoveryd.core import Failure, Json

PROVIDER = "anthropic"
_WENT_BACK = b'{"type":"last-prompt"'
_MOVED = b'{"type":"relocated"'
# Noted behind the prompt of a user who stopped one before, or went back by `/rewind`: the newest line counts (2.1.330).
_NEWEST = "00000000-0000-0000-0000-000000000000"
_TAIL = 1 << 16  # bytes at its end in which the client notes its title again (2.1.330), and looks for it
_BACK = 64 * 1024 * 1024  # bytes at the end of a transcript in which a request is looked for


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The line that its user goes on from; "": from before the first one."""

    uuid: str


@dataclass(frozen=True, slots=True)
class _Moved:
    """The folder that a session was moved to."""

    directory: str


_Event: TypeAlias = Line | _Leaf | _Moved | str


@dataclass(frozen=True, slots=True)
class TranscriptStatus:
    """What is known of the status of a transcript's session up to the byte `end` of the file with the number `inode`.
    Times: milliseconds since the epoch.
    """

    inode: int
    end: int = 0
    mark: bytes = b""  # of what stands before `end`
    failures: tuple[Failure, ...] = ()  # the newest first, with nothing answered in between
    since: set[str] = field(default_factory=set)  # the lines that go on from the newest failure; it only grows
    newest: str = ""  # the line before `end`
    taken_back: bool = False  # its user went back to before the failures
    copied: bool = False  # the failures are those of the session that this one was made from
    prompt: str = ""  # the newest of the user, if nothing came of it yet
    answered: int = 0
    working: int = 0  # when the prompt or the step came that its turn has not ended with; 0: none
    model: str = ""  # that answered last; that was asked since, unless the answer was renamed
    directory: str = ""  # of the newest line that names one: where its shell stood
    moved: str = ""  # to which its user moved it last: the client notes that again with each turn
    renamed: bool = False  # another name was asked for than the one it answered by, or that is not told

    def look(self, *, open_now: bool) -> SessionStatus:
        """Return it as the store tells it; `open_now`: a client has the session, so a turn without an end may be under
        way.
        """
        found = SessionStatus(
            failure=self.failures[0] if self.failures else None,
            running=self.working if open_now else 0,
            newest_user=self.prompt or None,
            last_answer=self.answered,
            silent=open_now and bool(self.prompt and self.working),
            earlier=self.failures[1:],
            asked=(PROVIDER, self.model),
            directories=tuple(filter(None, (self.directory, self.moved))),
        )
        if not (self.taken_back or self.copied):
            return found
        return replace(found, kept=replace(found, failure=None, earlier=()), copied=self.copied)


def read_on(fd: int, store: str, session: str, known: TranscriptStatus | None, *, side: bool) -> TranscriptStatus:
    """Read a transcript to its end: on from what is `known`, or back from there to the last answer. OSError.

    `side`: it is a subagent's own transcript; in another one the lines of subagents are passed over.
    """
    found = os.fstat(fd)
    if known is not None and not json_lines.grew(fd, found, known):
        known = None
    if known is not None and known.end == found.st_size:
        return known
    status = known or TranscriptStatus(found.st_ino)
    enough = _settles if known is None else None
    told, end = json_lines.read_back(fd, status.end, found.st_size, partial(_event, fd, side), enough)
    for event in told:
        status = _with(status, event, store, session)
    return replace(status, end=end, mark=json_lines.mark(fd, end))


def sent_before(fd: int, message: str, ms: int) -> bool:
    """Whether who was refused with a line, `message`, had sent the session before `ms`, and was not answered since: it
    has it in memory as it was. A request names the one before it of its process, the first one none; a line names the
    one that it goes on from, which is none that another process wrote meanwhile (2.1.330). OSError.
    """
    failed, base, parent = False, "", ""
    for data in _telling(fd):
        if not failed:
            failed, parent = data.get("uuid") == message, text_of(data, "parentUuid")
            continue
        early = 0 < json_lines.line_time(data.get("timestamp")) < ms
        if data.get("type") == "api-request":
            if base in ("", data.get("id")):
                base = text_of(data, "base")
                if early or not base:
                    return early
            elif early:
                return False
        elif parent and data.get("uuid") == parent:
            if data.get("type") == "assistant" and (not base or not (early or error_record.is_refusal(data))):
                return False  # it was refused without a request, or answered
            parent = text_of(data, "parentUuid")
            if not (early or parent):
                return False  # it was made shorter since
    return False


def titles(fd: int, size: int) -> list[bytes]:
    """List the lines at the end of a transcript that tell its title, the last one last. OSError."""
    places = json_lines.backward(fd, max(0, size - _TAIL), size)
    lines = (place.read(fd) for place in places)
    return [line for line in lines if transcript.is_title(line)][::-1]


def written(fd: int) -> tuple[int, str]:
    """Tell when the newest line of the conversation was written, in milliseconds since the epoch, and in which folder
    its client worked then; 0 and "" where no line tells. OSError.
    """
    moved = ""
    for data in _telling(fd):
        moved = moved or text_of(data, "relocatedCwd")
        at = json_lines.line_time(data.get("timestamp"))
        if at:
            return at, moved or text_of(data, "cwd")
    return 0, moved


def _telling(fd: int) -> Iterator[Json]:
    """Read the lines that are worth it, the newest first. OSError."""
    size = os.fstat(fd).st_size
    for place in json_lines.backward(fd, max(0, size - _BACK), size):
        if _tells(place.head):
            yield transcript.parse(place.read(fd)) or {}


def _tells(head: bytes) -> bool:
    """Whether a line is worth reading: those of the conversation, those that name the model, and those that
    tell where its user went back to, or moved it.
    """
    return not head.startswith(b'{"type":"') or head.startswith(
        (transcript.REQUEST, _WENT_BACK, _MOVED, b'{"type":"user"', b'{"type":"assistant"')
    )


def _event(fd: int, side: bool, place: json_lines.Place) -> _Event | None:
    """Read a line of the conversation, where its user went back to or moved it, or the model that a request went to.
    OSError.
    """
    if not _tells(place.head):
        return None
    data = transcript.parse(place.read(fd))
    if data is None:
        return None
    if data.get("type") == "api-request":
        return model_asked(data) or None
    if data.get("type") == "last-prompt":
        leaf = data.get("leafUuid")
        return _Leaf(leaf if isinstance(leaf, str) else "") if data.get("explicit") is True else None
    if data.get("type") == "relocated":
        return _Moved(text_of(data, "relocatedCwd"))
    kind, uuid = text_of(data, "type"), data.get("uuid")
    if kind not in CHAINED or not isinstance(uuid, str):
        return None
    if (data.get("isSidechain") is True) is not side and not side:
        return None
    told = kind in SENT or data.get("subtype") == COMPACTED or (kind == "attachment" and model_asked(data))
    # Of the others there may be many.
    return Line(uuid, data if told else {"type": kind}, b"", place.offset, text_of(data, "parentUuid"))


def _settles(told: list[_Event]) -> bool:
    """Whether nothing before the last of `told` (they come from the end) matters any more: it was answered there."""
    event = told[-1]
    return (
        isinstance(event, Line) and event.type == "assistant" and not (event.refused or event.made_up) and _ends(event)
    )


def _ends(line: Line) -> bool:
    """Whether an answer ends here: it says something, and calls nothing."""
    content = line.message.get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return "tool_use" not in kinds and line.message.get("stop_reason") != "tool_use" and "text" in kinds


def _with(status: TranscriptStatus, event: _Event, store: str, session: str) -> TranscriptStatus:
    """Return what is known with one more line."""
    if isinstance(event, _Leaf):
        leaf = status.newest if event.uuid == _NEWEST else event.uuid
        return replace(status, taken_back=bool(status.failures) and leaf not in status.since)
    if isinstance(event, _Moved):
        return replace(status, moved=event.directory or status.moved)
    if isinstance(event, Line):
        if event.parent in status.since:
            status.since.add(event.uuid)  # shared with what was known before: a copy for each line would take long
        status = replace(status, newest=event.uuid, directory=text_of(event.data, "cwd") or status.directory)
    found = _told(status, event, store, session)
    return found if found.failures else replace(found, since=set(), taken_back=False, copied=False)


def _asking(status: TranscriptStatus, model: str) -> TranscriptStatus:
    """Return what is known once this model is asked; "" where a line tells of none."""
    # Others serve models of their own under Claude's names: who answered knows better.
    return replace(status, model=model) if model and not status.renamed else status


def _told(status: TranscriptStatus, event: Line | str, store: str, session: str) -> TranscriptStatus:
    """Return what is known with one more line of the conversation, or the model of a request."""
    if isinstance(event, str):
        return _asking(status, event)
    if event.data.get("subtype") == COMPACTED:
        # A model took the history, and what is sent from now on is another one.
        return replace(status, failures=(), prompt="")
    if event.type not in SENT:
        return _asking(status, model_asked(event.data))
    if event.type == "user":
        if event.answers:
            return replace(status, working=event.ms)
        if event.added:
            return status
        if event.by_client:  # a command that no model was asked with, or its user stopped it: no prompt waits
            return replace(status, prompt="", working=0)
        return replace(status, prompt=event.uuid, working=event.ms)
    if error_record.is_refusal(event.data):
        error = error_record.read(event.data)
        failure = Failure(store, session, event.uuid, event.ms, error, PROVIDER, status.model)
        before = () if status.taken_back or (status.copied and not event.copied) else status.failures
        told = replace(status, failures=(failure, *before), taken_back=False, copied=event.copied)
        return replace(told, since={event.uuid}, prompt="", working=0)
    if event.refused:
        return status
    if event.made_up:  # nothing comes of the prompt before it any more
        return replace(status, prompt="", working=0)
    if event.model:
        status = replace(status, model=event.model, renamed=not event.by_own_name)
    if _ends(event):
        return replace(status, failures=(), prompt="", working=0, answered=event.ms)
    return replace(status, failures=(), prompt="", working=event.ms)
