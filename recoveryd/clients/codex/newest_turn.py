"""What the end of a rollout tells: refused, running, answered. Each byte of it is looked at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from recoveryd.clients import json_lines
from recoveryd.clients.codex import error_record, rollout_lines
from recoveryd.clients.codex.item_forms import OF_THE_CLIENT
from recoveryd.clients.json_lines import Place
from recoveryd.clients.store import SessionStatus
from recoveryd.core import Failure, Json, words

PROTOCOL = "openai.responses"
_EVENTS = words("task_started task_complete turn_aborted user_message thread_settings_applied thread_rolled_back")
_INPUT = frozenset({"message", "function_call_output", "custom_tool_call_output", "tool_search_output"})
_ITEMS = {b'"item":{"type":"UserMessage"': "prompt", b'"item":{"type":"EnteredReviewMode"': "review"}
_WITHOUT_INNER = re.compile(rb'"type": ?"(turn_context|compacted)"')
_LARGE = 1 << 20  # bytes of an event's line that is still read


@dataclass(frozen=True, slots=True)
class NewestTurns:
    """What is known of a rollout's newest turns, up to the byte `end` of the file of this number. Times are
    milliseconds since the epoch.
    """

    inode: int
    end: int = 0
    mark: bytes = b""  # of what stands before `end`
    turn: str = ""  # that runs, by its id
    review: str = ""  # the newest turn that is a `/review`: another thread has its history, and its error
    running: int = 0  # when that began
    spoke: bool = False  # the model said something in it
    prompt: str = ""  # the newest of the user, if nothing came of it yet
    answered: int = 0
    failures: tuple[Failure, ...] = ()  # the newest first, with nothing answered in between
    asked: tuple[str, str] = ("", "")
    directory: str = ""  # of the newest turn

    def look(self, *, open_now: bool) -> SessionStatus:
        """Return it as a store tells it; `open_now`: a client has the thread, so a turn without an end may be under
        way.
        """
        failure = self.failures[0] if self.failures else None
        running = self.running if open_now else 0
        return SessionStatus(
            failure=failure,
            running=running,
            newest_user=self.prompt or None,
            last_answer=self.answered,
            silent=bool(running) and not self.spoke,
            earlier=self.failures[1:],
            asked=self.asked,
            directories=(self.directory,) if self.directory else (),
        )

    def of(self, provider: str) -> NewestTurns:
        """Return the same of a thread whose settings named no provider since its beginning."""
        failures = tuple(replace(one, provider=one.provider or provider) for one in self.failures)
        return replace(self, failures=failures, asked=(provider, self.asked[1]))


@dataclass(slots=True)
class _Seen:
    """An event of the file, or that the model spoke."""

    offset: int
    kind: str
    at: int = 0
    data: Json = field(default_factory=dict)


def read_on(fd: int, store: str, thread: str, known: NewestTurns | None) -> NewestTurns:
    """Read a rollout to its end: from where `known` ends, else only back to the last answer. OSError."""
    found = os.fstat(fd)
    if known is not None and not json_lines.grew(fd, found, known):
        known = None
    if known is not None and known.end == found.st_size:
        return known
    turns = known or NewestTurns(found.st_ino)
    enough = _settles if known is None else None
    seen, end = json_lines.read_back(fd, turns.end, found.st_size, partial(_seen, fd), enough)
    for event in seen:
        turns = _with(turns, event, store, thread)
    return replace(turns, end=end, mark=json_lines.mark(fd, end))


def _seen(fd: int, place: Place) -> _Seen | None:
    """Return what a line tells; None for most of them, which are not even read whole."""
    told = rollout_lines.types(place.head)
    if told is None:  # written by another program, or of a type without a type inside
        found = _WITHOUT_INNER.search(place.head, 0, 120)
        told = (found[1].decode() if found else "", "")
    outer, inner = told
    if outer == "response_item":
        if inner != "message":
            return None if inner in _INPUT or inner in OF_THE_CLIENT else _Seen(place.offset, "spoke")
        if b'"role":"assistant"' in place.head:
            return _Seen(place.offset, "spoke")
        return None
    if outer == "compacted":  # a model took the history, and what is sent from now on is another one
        return _Seen(place.offset, "spoke")
    if outer == "turn_context" or (outer == "event_msg" and inner in _EVENTS):
        return _whole(fd, place, inner or outer)
    if outer == "event_msg" and inner == "item_completed":
        kind = next((kind for item, kind in _ITEMS.items() if item in place.head), None)
        return _whole(fd, place, kind) if kind else None
    return None


def _whole(fd: int, place: Place, kind: str) -> _Seen:
    """Return what a line tells that is read whole, unless it is too large to be."""
    raw = place.read(fd) if place.end - place.offset <= _LARGE else b""
    line = rollout_lines.parse(raw) or {}
    return _Seen(place.offset, kind, json_lines.line_time(line.get("timestamp")), rollout_lines.payload(line))


def _settles(seen: list[_Seen]) -> bool:
    """Whether nothing before the last of `seen` (they come from the end) matters any more: it was answered there."""
    last = seen[-1]
    if last.kind == "task_complete":
        return not last.data.get("error") and bool(last.data.get("last_agent_message"))
    if last.kind != "task_started":
        return False
    spoke = False
    for event in reversed(seen[:-1]):  # in the order of the file
        spoke = spoke or event.kind == "spoke"
        if event.kind in ("task_complete", "turn_aborted", "task_started"):
            begun = last.data.get("turn_id")
            own = event.data.get("turn_id", begun) == begun  # else a reviewer began, and the review ends
            return spoke and own and event.kind != "task_started" and not event.data.get("error")
    return False


def _with(turns: NewestTurns, event: _Seen, store: str, thread: str) -> NewestTurns:
    """Return what is known with one more event."""
    data = event.data
    if turns.review and turns.turn == turns.review and event.kind in ("prompt", "user_message", "spoke"):
        return turns
    match event.kind:
        case "review":
            return replace(turns, turn=_text(data, "turn_id"), review=_text(data, "turn_id"), spoke=False)
        case "task_started":
            turn = turn_begun(data, turns.review)
            return replace(turns, turn=turn, running=event.at or 1, spoke=False)
        case "turn_context":
            asked = turns.asked[0], _text(data, "model") or turns.asked[1]
            return replace(turns, asked=asked, directory=_text(data, "cwd") or turns.directory)
        case "thread_settings_applied":
            settings = data.get("thread_settings")
            settings = settings if isinstance(settings, Mapping) else {}
            provider, model = _text(settings, "model_provider_id"), _text(settings, "model")
            asked, directory = (provider or turns.asked[0], model or turns.asked[1]), _text(settings, "cwd")
            return replace(
                turns, asked=asked, directory=directory or turns.directory
            )  # a compaction before it may fail
        case "prompt" | "user_message":
            return replace(turns, prompt=prompt_of(_text(data, "turn_id") or turns.turn) or turns.prompt)
        case "spoke":
            return replace(turns, spoke=True, failures=())  # what was asked was taken
        case "thread_rolled_back":  # what was refused is sent no more; if more is wrong, the next prompt tells
            return replace(turns, failures=(), prompt="")
        case "turn_aborted":
            ended = replace(turns, turn="", running=0, spoke=False)
            return replace(ended, failures=(), answered=event.at, prompt="") if turns.spoke else ended
        case "task_complete":
            return _completed(turns, event, store, thread)
    return turns


def _completed(turns: NewestTurns, event: _Seen, store: str, thread: str) -> NewestTurns:
    error = event.data.get("error")
    ended = replace(turns, turn="", running=0, spoke=False, prompt="")
    if turns.review and _text(event.data, "turn_id") == turns.review:
        return replace(ended, prompt=turns.prompt)
    if not error:
        took = turns.spoke or bool(event.data.get("last_agent_message"))
        # What no model was asked for (a command of the user, say) settles nothing.
        return replace(ended, failures=(), answered=event.at) if took else replace(ended, prompt=turns.prompt)
    provider, model = turns.asked
    failure = Failure(
        store,
        thread,
        _text(event.data, "turn_id") or turns.turn or f"turn_{event.offset}",
        event.at,
        error_record.read(error),
        provider,
        model,
        PROTOCOL,
    )
    return replace(ended, failures=(failure, *(() if turns.spoke else turns.failures)))


def turn_begun(data: Json, review: str) -> str:
    """Return the id of the turn that a `task_started` is of: a reviewer's is part of the `review` that asked for it
    (0.169.0).
    """
    asked = data.get("turn_attribution")
    parent = _text(asked, "parent_turn_id") if isinstance(asked, Mapping) else ""
    return review if review and parent == review else _text(data, "turn_id")


def prompt_of(turn: str) -> str:
    """Return the id of the message that asked for Codex's newest turn."""
    return f"prompt-{turn}" if turn else ""


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def is_damaged(fd: int, path: str, *, most: int) -> bool:
    """Whether a rollout's first line, or its last of no more than `most` bytes, keeps Codex from opening it."""
    first = json_lines.line_at(fd, 0, path)
    last = next(json_lines.backward(fd, 0, os.fstat(fd).st_size), None)
    if first is None or last is None:
        return False
    if rollout_lines.first_line_fault(first):
        return True
    if not last.offset or b'"ordinal":' in last.head or last.end - last.offset > most:
        return False
    end = rollout_lines.parse(last.read(fd))
    return end is not None and rollout_lines.last_line_fault(rollout_lines.parse(first) or {}, end)
