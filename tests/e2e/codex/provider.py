"""The fake Responses API on loopback: it refuses what the real one refuses, and answers the rest with a stream."""

from __future__ import annotations

import itertools
import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.codex.sealed import seal
from tests.e2e.codex.strict import Fault, Strict
from tests.support.fake_api import ApiHandler, FakeApi

Item = dict[str, Any]
_ids = itertools.count(1)


@dataclass(frozen=True)
class Asked:
    """One request: what the client sent, and the words of the refusal; None: it was accepted."""

    thread: str
    body: Item
    refused: str | None
    size: int


class _Handler(ApiHandler):
    api: Provider

    def do_GET(self) -> None:
        """Nothing is listed here."""
        self.send(404, "application/json", b"{}")

    def do_POST(self) -> None:
        """Answer `POST /v1/responses`."""
        raw = self.body()
        status, content = self.api.answer(str(self.headers.get("thread-id")), raw)
        if isinstance(content, bytes):
            self.send(status, "text/event-stream" if status == 200 else "application/json", content)
        else:
            self.send(status, "text/event-stream", stream(content))


class Provider(FakeApi):
    """The fake API as a context manager, on a free port of 127.0.0.1. `door` holds the rules.

    `script(thread)` holds lists of items for the next accepted requests of a thread; once it is empty the answer is
    "ok N" behind sealed reasoning. `doors` are of threads that have another provider; `spell` turns a refusal of a
    thread into the body of the answer, as a gateway may; of those `in_stream` it comes once the answer has begun.
    `force` is asked first: a refusal whatever the rules say.
    """

    handler = _Handler

    def __init__(self, door: Strict | None = None, *, lenient: bool = False) -> None:
        self.door = door or Strict()
        self.lenient = lenient
        self.doors: dict[str, Strict] = {}
        self.spell: dict[str, Callable[[Fault], bytes]] = {}
        self.in_stream: set[str] = set()
        self.force: Callable[[str, Item], Fault | None] = lambda thread, body: None
        self._scripts: dict[str, deque[list[Item]]] = defaultdict(deque)
        self._asked: list[Asked] = []
        self._lock = threading.Lock()
        self._count = itertools.count(1)

    def asked(self, thread: str) -> list[Asked]:
        """The requests of a thread, the oldest first."""
        with self._lock:
            return [one for one in self._asked if one.thread == thread]

    def script(self, thread: str) -> deque[list[Item]]:
        """What is answered next in a thread; "" is any whose id is not known yet."""
        return self._scripts[thread]

    def answer(self, thread: str, raw: bytes) -> tuple[int, bytes | list[Item]]:
        """Judge a request and note it: the status, and the body of an error or the items of the answer."""
        body = json.loads(raw)
        with self._lock:
            fault = self.force(thread, body)
            if fault is None and not self.lenient:
                fault = self.doors.get(thread, self.door).judge(body, len(raw))
            self._asked.append(Asked(thread, body, None if fault is None else fault.message, len(raw)))
            if fault is not None and thread in self.in_stream:
                return 200, _failed(fault)
            if fault is not None:
                return fault.status, self.spell.get(thread, _spelled)(fault)
            scripted = self._scripts[thread] or self._scripts[""]
            return 200, scripted.popleft() if scripted else [thought(), words(f"ok {next(self._count)}")]


def _spelled(fault: Fault) -> bytes:
    return json.dumps(fault.body(), indent=2).encode()


def _failed(fault: Fault) -> bytes:
    """A refusal that comes once the answer has begun."""
    error = {"code": fault.code or "invalid_request_error", "message": fault.message}
    created = {"type": "response.created", "response": {"id": _id("resp")}}
    failed = {"type": "response.failed", "response": {"id": _id("resp"), "status": "failed", "error": error}}
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in (created, failed))


def words(text: str) -> Item:
    """Words of the model."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}


def thought(text: str = "thinking") -> Item:
    """Reasoning of the model."""
    summary = [{"type": "summary_text", "text": text}]
    return {"type": "reasoning", "id": _id("rs"), "summary": summary, "encrypted_content": seal()}


def call(name: str, **arguments: Any) -> Item:
    """A tool call; the client runs it and comes back with the output."""
    item = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": name}
    return {**item, "arguments": json.dumps(arguments)}


def _id(kind: str) -> str:
    return f"{kind}_{next(_ids):048x}"


def stream(items: list[Item]) -> bytes:
    """The answer as the events of a stream."""
    answer = _id("resp")
    usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None}
    events: list[tuple[str, Item]] = [("response.created", {"response": {"id": answer}})]
    for index, item in enumerate(items):
        events.append(("response.output_item.added", {"output_index": index, "item": item}))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    done = {"id": answer, "usage": {**usage, "total_tokens": 15}, "output": items}
    events.append(("response.completed", {"response": done}))
    return "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n" for kind, more in events).encode()
