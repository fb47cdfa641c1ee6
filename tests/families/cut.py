"""Answers that break off: each place of a stream, each way, of each family; a strict fake that does it."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.families.cut_steps import Speech
from tests.families.cut_streams import speech
from tests.families.fake import TOKENS, Fake, Handler
from tests.families.table import ANTHROPIC, FAMILIES

# One door of each provider of the client: two models of one would need two addresses for it. Azure's is not here: 1.1
# asks it by chat completions where it has no catalog, as in these tests.
_NOT = ("openrouter-kimi", "litellm", "ministral", "gemini-2", "azure")
DOORS = {"anthropic": ANTHROPIC} | {name: one for name, one in FAMILIES.items() if name not in _NOT}
# The connection ends as after a whole answer, or as one that is lost; an error comes in the stream; its user stops it.
WAYS = ("closed", "torn", "failed", "aborted")
_THOUGHT = ("thinking_begun", "thinking", "thinking_signed")
_SAID = ("text_begun", "text", "text_ended")
_CALLED = ("call_begun", "call_half", "call_done")
_MARK = re.compile(rb"<cut (\d+)>")
_HELD_S = 60


def _places() -> dict[str, tuple[str, ...]]:
    """What has come of an answer where it breaks off, as steps; by the name of the place."""
    found: dict[str, tuple[str, ...]] = {"headers": (), "begun": ("begun",)}
    found |= {f"thought-{n}": ("begun", *_THOUGHT[:n]) for n in (1, 2, 3)}
    found["thought-unsigned"] = ("begun", "thinking_begun", "thinking", "thinking_ended")
    for name, before in (("", ("begun",)), ("thought+", ("begun", *_THOUGHT))):
        steps = {f"text-{n}": _SAID[:n] for n in (1, 2, 3)} | {f"call-{n}": _CALLED[:n] for n in (1, 2, 3)}
        steps |= {"blank": ("text_begun", "blank"), "blank-ended": ("text_begun", "blank", "text_ended")}
        steps |= {f"text+call-{n}": (*_SAID, *_CALLED[:n]) for n in (1, 2, 3)}
        steps |= {f"calls-{n}": (*_CALLED, *_CALLED[:n]) for n in (1, 2, 3)}
        steps |= {"finished": (*_SAID, "stop"), "finished-call": (*_CALLED, "calls")}
        found |= {f"{name}{place}": (*before, *some) for place, some in steps.items()}
    return found


PLACES = _places()


@dataclass(frozen=True)
class Cut:
    """Where and how the answer of a family breaks off; `later`: that behind a call and its result, not the first."""

    family: str
    place: str
    way: str
    later: bool = False

    def __str__(self) -> str:
        return f"{self.family} {self.place} {self.way}{' later' if self.later else ''}"


def cuts(family: str, ways: Sequence[str] = WAYS, *, later: bool = False) -> list[Cut]:
    """All of a family, but for the places that are another one there: it has no such step."""
    different: dict[tuple[str, ...], str] = {}
    for place, steps in PLACES.items():
        answer = speech(family, "m")
        different.setdefault(tuple(step for step in steps if _sent(answer, (step,))), place)
    return [Cut(family, place, way, later) for place in different.values() for way in ways]


def _sent(answer: Speech, steps: Sequence[str]) -> bytes:
    """What a provider sends for these steps of an answer."""
    return b"".join(answer.finished(step) if step in ("stop", "calls") else getattr(answer, step)() for step in steps)


class _Handler(Handler):
    api: Cutting

    def do_POST(self) -> None:
        """Break off where this answer is to, and answer else."""
        if self.path == TOKENS:
            super().do_POST()
            return
        raw = self.body()
        number = _number(raw)
        cut = self.api.due(number)
        if cut is None:
            self.send(*self.api.answer(raw))
            return
        self.send_response(200)
        self.send_header("Content-Type", self.api.speech().content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self._write(_sent(self.api.speech(), PLACES[cut.place]))
        self.api.reached[number].set()
        self.close_connection = True
        self._end(cut.way)

    def _end(self, way: str) -> None:
        match way:
            case "aborted":
                self.connection.settimeout(_HELD_S)
                self.connection.recv(1)  # until the client hangs up
            case "torn":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.shutdown(socket.SHUT_RDWR)
            case "failed":
                self._write(self.api.speech().failed("Internal server error"))
                self.wfile.write(b"0\r\n\r\n")
            case _:
                self.wfile.write(b"0\r\n\r\n")

    def _write(self, sent: bytes) -> None:
        if sent:
            self.wfile.write(f"{len(sent):x}\r\n".encode() + sent + b"\r\n")
            self.wfile.flush()


def _number(raw: bytes) -> int:
    """Which planned answer a request asks for; 0: none, or a title."""
    marks = _MARK.findall(raw)
    return int(marks[-1]) if marks and b"title generator" not in raw else 0


@dataclass
class Cutting(Fake):
    """A family's strict fake. What is planned for a prompt that bears a mark breaks off once."""

    handler = _Handler

    reached: dict[int, threading.Event] = field(default_factory=dict)
    _planned: dict[int, Cut] = field(default_factory=dict)
    _calls: dict[int, int] = field(default_factory=dict)  # that come before

    def plan(self, number: int, cut: Cut) -> str:
        """Break an answer off; returns the mark for its prompt."""
        self._planned[number], self._calls[number], self.reached[number] = cut, int(cut.later), threading.Event()
        return f"<cut {number}>"

    def due(self, number: int) -> Cut | None:
        """What is to break off now."""
        with self._lock:
            return None if self._calls.get(number, 0) else self._planned.pop(number, None)

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """A whole answer: a call where one is to come first."""
        number = _number(raw)
        with self._lock:
            first = self._calls.get(number, 0) > 0
            self._calls[number] = 0
        status, kind, content = super().answer(raw)
        if status == 200 and first:
            content = _sent(self.speech(), ("begun", *_THOUGHT, *_CALLED, "calls", "ended"))
        return status, kind, content

    def speech(self) -> Speech:
        """An answer that is still to be given."""
        return speech(self.family, DOORS[self.family].model)
