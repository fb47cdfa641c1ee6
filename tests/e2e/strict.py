"""The rules of the fake provider: which requests it refuses, in the words of the real one.

Written from the provider's behaviour alone and apart from the product's own rules: two checkers with one
implementation would share their mistakes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e import content_rules, schema_rules, thinking_rules
from tests.e2e.media import media_fault
from tests.e2e.signing import Bindings, Message
from tests.e2e.tokens import TOO_LARGE, TOO_LONG, too_long

MAX_REQUEST = 32 * 1024 * 1024
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused: the kind's name, and the provider's words."""

    kind: str
    message: str


@dataclass
class Strict:
    """A provider's temper: `prefill` allows a last assistant message, `bound` ties thinking to what is before it.

    `limit`: the tokens that its model takes, and `words` what it says of more (`tests.e2e.tokens`). `max_bytes`: of a
    request, where a proxy or another provider takes fewer; `of_bytes` is what it says of more.
    """

    prefill: bool = False
    bound: bool = False
    limit: int | None = None
    words: str = TOO_LONG
    max_bytes: int = MAX_REQUEST
    of_bytes: str = TOO_LARGE
    bindings: Bindings = field(default_factory=Bindings)

    def check(self, raw: bytes) -> tuple[dict[str, Any] | None, Refusal | None]:
        """The parsed body (None if it is no JSON object) and the first rule that it breaks (None if accepted)."""
        if len(raw) > self.max_bytes:
            return None, Refusal("media_rejected", self.of_bytes.format(asked=len(raw), limit=self.max_bytes))
        body, message = _parse(raw)
        if body is None:
            return None, Refusal("invalid_unicode", message)
        if message:
            self._learn(body)
            return None, Refusal("invalid_unicode", message)
        return body, self.judge(body)

    def judge(self, body: dict[str, Any]) -> Refusal | None:
        """The first rule that a parsed body breaks, or None if the provider accepts it."""
        fault = schema_rules.schema(body.get("messages"))
        if fault is not None:
            return Refusal(_kind_of(fault), fault)
        messages = merged(body["messages"])
        mode = (body.get("thinking") or {}).get("type")
        on = mode in ("enabled", "adaptive")
        self._learn(body)
        rules: list[tuple[str, Callable[[], str | None]]] = [
            ("context_overflow", lambda: too_long(body, self.limit, self.words) if self.limit else None),
            ("tool_call_invalid", lambda: content_rules.tool_calls(messages)),
            ("tool_call_invalid", lambda: schema_rules.server_pairs(messages)),
            ("empty_content", lambda: content_rules.empty(messages)),
            ("role_order", lambda: content_rules.role_order(messages)),
            ("assistant_prefill", lambda: content_rules.prefill(messages, self.prefill)),
            ("trailing_whitespace", lambda: content_rules.trailing(messages)),
            ("tool_result_missing", lambda: content_rules.missing(messages)),
            ("tool_result_orphan", lambda: content_rules.orphans(messages)),
            ("thinking_final_block", lambda: thinking_rules.final_block(messages)),
            ("thinking_block_order", lambda: thinking_rules.order(messages) if mode == "enabled" else None),
            ("thinking_disabled_violation", lambda: None if on else thinking_rules.disabled(messages)),
            ("thinking_block_modified", lambda: thinking_rules.signatures(messages, modified=True)),
            ("thinking_signature_invalid", lambda: thinking_rules.signatures(messages, modified=False)),
            ("thinking_signature_invalid", lambda: self._unbound(body, messages)),
            ("media_rejected", lambda: media_fault(messages)),
        ]
        return next((Refusal(kind, words) for kind, rule in rules if (words := rule())), None)

    def _learn(self, body: dict[str, Any]) -> None:
        """What is refused is bound as well: nothing before its thinking may be changed to have it accepted."""
        if self.bound:
            self.bindings.learn(body, merged(body.get("messages") or []))

    def _unbound(self, body: dict[str, Any], messages: list[Message]) -> str | None:
        asked = (body.get("thinking") or {}).get("block_binding") or {}
        if asked.get("prefix_mismatch_behavior") == "drop_block":
            return None
        place = self.bindings.broken(body, messages) if self.bound else None
        if place is None:
            return None
        return (
            f"messages.{place[0]}.content.{place[1]}: Invalid `signature` in `thinking` block. The block is bound to a "
            "different conversation. Remove the block, or set "
            '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )


def _kind_of(fault: str) -> str:
    """The kind of what the schema refuses."""
    if re.search(
        r"\.(tool_use|tool_result|server_tool_use|\w+_tool_result|mcp_tool_use)\.(id|name|input|tool_use_id):", fault
    ):
        return "tool_call_invalid"
    if re.search(r"\.(image|document)\.source", fault):
        return "media_rejected"
    return "thinking_signature_invalid" if ".thinking.signature" in fault else "foreign_item"


def merged(messages: list[Message]) -> list[Message]:
    """Neighbours of one role as one message, every content a list of blocks: what the rules speak of."""
    result: list[Message] = []
    for message in (message for message in messages if message.get("role") != "system"):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
        if content == "":
            blocks = []
        if result and blocks and result[-1]["content"] and result[-1]["role"] == message.get("role"):
            result[-1]["content"].extend(blocks)
        else:
            result.append({"role": message.get("role"), "content": blocks})
    return result


def _parse(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        text = raw.decode("utf-8")
        body = json.loads(text)
    except ValueError as error:
        return None, f"The request body is not valid JSON: {error}"
    at = _lone_surrogate(text)
    if at is not None:
        return (body if isinstance(body, dict) else None), (
            f"The request body is not valid JSON: no low surrogate in string: line 1 column {at + 1} (char {at})"
        )
    return (body, "") if isinstance(body, dict) else (None, "The request body is not valid JSON: not an object")


def _lone_surrogate(text: str) -> int | None:
    """Where a `\\uD8xx` stands without its other half, as an offset into the raw body."""
    waiting: int | None = None
    for match in _ESCAPE.finditer(text):
        code = int(match.group(1), 16) if match.group(1) else 0
        follows = waiting is not None and match.start() == waiting + 6
        if waiting is not None and not (follows and 0xDC00 <= code <= 0xDFFF):
            return waiting
        if waiting is None and 0xDC00 <= code <= 0xDFFF:
            return match.start()
        waiting = match.start() if 0xD800 <= code <= 0xDBFF else None
    return waiting
