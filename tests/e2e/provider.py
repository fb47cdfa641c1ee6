"""A strict fake provider on loopback: it refuses what the real one refuses, and answers the rest with a stream."""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.e2e import replies
from tests.e2e.replies import Reply
from tests.e2e.signing import Block
from tests.e2e.strict import Refusal, Strict, merged
from tests.e2e.tokens import count
from tests.support.fake_api import ApiHandler, FakeApi


@dataclass(frozen=True)
class Request:
    """What the client asked. `body` is None if it is no JSON object; `refused` holds the provider's words."""

    body: dict[str, Any] | None
    raw: bytes
    refused: str | None
    kind: str | None
    is_title: bool
    status: int


@dataclass(frozen=True)
class Forced:
    """A refusal out of turn. `raw` replaces the whole body, `message` only the words of the usual error."""

    message: str = "forced"
    status: int = 400
    raw: bytes | None = None
    error: str = "invalid_request_error"

    def payload(self) -> bytes:
        """The body of the answer."""
        if self.raw is not None:
            return self.raw
        return json.dumps({"type": "error", "error": {"type": self.error, "message": self.message}}).encode()


class _Handler(ApiHandler):
    api: Provider

    def do_POST(self) -> None:
        """Answer `POST /v1/messages`; anything else is not found."""
        raw = self.body()
        if not self.path.startswith("/v1/messages"):
            self.send(404, "application/json", b"{}")
            return
        status, content, model = self.api.answer(raw)
        if isinstance(content, bytes):
            self.send(status, "application/json", content)
        else:
            self._stream(content, model)

    def _stream(self, reply: Reply, model: str) -> None:
        if reply.hold is None:
            self.send(200, "text/event-stream", b"".join(replies.events(reply, model)))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for event in replies.events(reply, model):
                self.wfile.write(event)
        except OSError:
            # The client hung up while the stream was held: an abort, which is what a held reply is for.
            self.close_connection = True


class Provider(FakeApi):
    """The fake provider as a context manager; it listens on a free port of 127.0.0.1 while it is open.

    `script` holds replies (a `Reply` or its blocks) for the next accepted requests, titles apart; once it is empty the
    answer is "ok N", behind a signed thinking block where thinking is on. `lenient` accepts everything.
    """

    handler = _Handler

    def __init__(
        self, *, prefill: bool = False, bound: bool = False, lenient: bool = False, limit: int | None = None
    ) -> None:
        self.strict = Strict(prefill=prefill, bound=bound, limit=limit)
        self.lenient = lenient
        self.script: deque[Reply | list[Block]] = deque()
        self._forced: deque[Forced] = deque()
        self._judge: Callable[[dict[str, Any]], Forced | None] | None = None
        self._choose: Callable[[dict[str, Any]], Reply | None] | None = None
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self._count = itertools.count(1)

    @property
    def requests(self) -> list[Request]:
        """Every request so far, titles too, oldest first (a copy)."""
        with self._lock:
            return list(self._requests)

    @property
    def main(self) -> list[Request]:
        """The requests that carry a conversation: all but those for a title."""
        return [request for request in self.requests if not request.is_title]

    def clear(self) -> None:
        """Forget the requests so far; what is forced, scripted or bound stays."""
        with self._lock:
            self._requests.clear()

    def force(self, message: str = "forced", *, times: int = 1, status: int = 400, raw: bytes | None = None) -> None:
        """Refuse the next `times` requests (titles apart) whatever they hold."""
        with self._lock:
            self._forced.extend([Forced(message, status, raw)] * times)

    def unforce(self) -> None:
        """Take back what is forced and has not been used."""
        with self._lock:
            self._forced.clear()

    def force_when(self, judge: Callable[[dict[str, Any]], Forced | None] | None) -> None:
        """Ask this function of every parsed request (titles apart) before the rules; None takes it away."""
        with self._lock:
            self._judge = judge

    def reply_when(self, choose: Callable[[dict[str, Any]], Reply | None] | None) -> None:
        """Ask this function for the answer to an accepted request; None leaves it to `script` and the usual one."""
        with self._lock:
            self._choose = choose

    def learn(self, body: dict[str, Any]) -> None:
        """Bind the thinking of a conversation as if it had been issued for it (matters with `bound` only)."""
        with self._lock:
            self.strict.bindings.learn(body, merged(body["messages"]))

    def answer(self, raw: bytes) -> tuple[int, bytes | Reply, str]:
        """Judge one request and note it: status, an error's body or the reply, and the model asked for."""
        with self._lock:
            body, refusal = self.strict.check(raw)
            title = body is not None and _is_title(body)
            forced = None if title else self._next_forced(body)
            if forced is None and refusal is not None and not title and not self.lenient:
                forced = Forced(refusal.message, 413 if refusal.message.startswith("Request exceeds") else 400)
            self._requests.append(_request(body, raw, forced, refusal, title))
            if forced is not None:
                return forced.status, forced.payload(), ""
            reply = self._reply(body or {}, title)
        return 200, reply, str((body or {}).get("model"))

    def _next_forced(self, body: dict[str, Any] | None) -> Forced | None:
        if self._forced:
            return self._forced.popleft()
        return self._judge(body) if self._judge and body is not None else None

    def _reply(self, body: dict[str, Any], title: bool) -> Reply:
        if title:
            return Reply([replies.text("A title")])
        chosen = self._choose(body) if self._choose else None
        if chosen is not None:
            reply = chosen
        elif self.script:
            scripted = self.script.popleft()
            reply = scripted if isinstance(scripted, Reply) else Reply(scripted)
        else:
            number = next(self._count)
            on = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
            thought = [replies.thinking(f"thinking about {number}")] if on else []
            reply = Reply([*thought, replies.text(f"ok {number}")])
        if self.strict.bound:
            self.strict.bindings.bind(body, merged(body["messages"]), reply.blocks)
        if self.strict.limit is not None and body:
            spent = {"input_tokens": 10, "cache_read_input_tokens": max(0, count(body) - 10), "output_tokens": 5}
            reply = replace(reply, usage=spent)
        return reply


def _request(
    body: dict[str, Any] | None, raw: bytes, forced: Forced | None, refusal: Refusal | None, title: bool
) -> Request:
    own = forced is not None and refusal is not None and forced.message == refusal.message
    refused = None if forced is None else forced.message if forced.raw is None else forced.raw.decode(errors="replace")
    return Request(
        body, raw, refused, refusal.kind if own and refusal else None, title, forced.status if forced else 200
    )


def _is_title(body: dict[str, Any]) -> bool:
    return not body.get("tools") and "title generator" in json.dumps(body.get("system") or "")
