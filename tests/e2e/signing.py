"""How the fake provider signs thinking: a scheme of its own, so that nothing real is forged.

A signature belongs to its text (`sig-<hash of the text>-<salt>`), and is in base64, as the real ones are. The salt
makes every block's signature unique, which is what lets a provider with bound thinking recognise a block it has seen
before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
import re
from typing import Any, Literal, NamedTuple

_SIGNATURE = re.compile(rb"sig-[0-9a-f]{32}(?:-([A-Za-z0-9_]+))?")
_salts = itertools.count(1)

Block = dict[str, Any]
Message = dict[str, Any]


def sign(text: str, salt: str = "") -> str:
    """The signature of a thinking text; the same text and salt always give the same one. `sign("")` is valid."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return _sealed(f"sig-{digest}-{salt}" if salt else f"sig-{digest}")


def sign_once(text: str) -> str:
    """A signature that no other block has: needed wherever the provider runs with `bound=True`."""
    return sign(text, f"n{next(_salts)}")


def redacted(name: str = "x") -> str:
    """The data of a redacted thinking block that the provider takes for its own."""
    return _sealed(f"red-{name}")


def is_redacted(data: object) -> bool:
    """Whether the data of a redacted thinking block is the provider's own."""
    return _opened(data).startswith(b"red-")


def is_signature(data: object) -> bool:
    """Whether something is a signature of the provider's, whatever it signs."""
    return _SIGNATURE.fullmatch(_opened(data)) is not None


def verdict(text: str, signature: object) -> Literal["valid", "other text", "garbage"]:
    """Whether a signature signs this text, signs another one, or is none of the provider's at all."""
    match = _SIGNATURE.fullmatch(_opened(signature))
    if match is None:
        return "garbage"
    return "valid" if sign(text, (match.group(1) or b"").decode()) == signature else "other text"


def _sealed(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


def _opened(seal: object) -> bytes:
    """What is in a signature, or in data; nothing where that is no base64."""
    try:
        return base64.b64decode(seal, validate=True) if isinstance(seal, str) else b""
    except (binascii.Error, ValueError):
        return b""


class Bindings:
    """What stood before each thinking block when the provider first saw it.

    A block stays valid while all that stands before it but thinking is unchanged, and the thinking kept before it is
    an unbroken run of the original: so thinking may go from the start, from the end, or altogether; none may come back,
    and an edit anywhere invalidates every thinking block behind it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Binding] = {}

    def learn(self, body: dict[str, Any], messages: list[Message]) -> None:
        """Bind every block not seen before to what stands before it in this request."""
        for _, _, signature, binding in _walk(body, messages):
            self._seen.setdefault(signature, binding)

    def bind(self, body: dict[str, Any], messages: list[Message], reply: list[Block]) -> None:
        """Bind the thinking of a reply to the request that it answers."""
        self.learn(body, [*messages, {"role": "assistant", "content": reply}])

    def broken(self, body: dict[str, Any], messages: list[Message]) -> tuple[int, int] | None:
        """The first block (message, content) that no longer follows what it was bound to."""
        for at, index, signature, now in _walk(body, messages):
            bound = self._seen.get(signature, now)
            removed = now.previous is None or now.previous == bound.previous
            if now.prefix != bound.prefix or not removed or now.thoughts > bound.thoughts:
                return at, index
        return None


class _Binding(NamedTuple):
    """What stands before a block: a hash of all but thinking, the thinking right before it, and how many there are."""

    prefix: str
    previous: str | None
    thoughts: int


def _walk(body: dict[str, Any], messages: list[Message]) -> list[tuple[int, int, str, _Binding]]:
    state = hashlib.sha256(_canonical([_texts(body.get("system")), body.get("tools")]))
    found: list[tuple[int, int, str, _Binding]] = []
    previous: str | None = None
    for at, message in enumerate(messages):
        for index, block in enumerate(message["content"]):
            if block.get("type") in ("thinking", "redacted_thinking"):
                signature = str(block.get("signature") or block.get("data"))
                found.append((at, index, signature, _Binding(state.hexdigest(), previous, len(found))))
                previous = signature
            else:
                state.update(_canonical([message["role"], _plain(block)]))
    return found


def _texts(system: object) -> list[str]:
    if isinstance(system, str):
        return [system]
    return [str(block.get("text")) for block in system] if isinstance(system, list) else []


def _plain(value: Any) -> Any:
    """The value without what is no part of the conversation: cache marks, and the two spellings of a text."""
    if isinstance(value, dict):
        kept = {key: _plain(item) for key, item in value.items() if key != "cache_control"}
        if kept.get("type") == "tool_result" and isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _canonical(value: Any) -> bytes:
    return json.dumps(_plain(value), sort_keys=True).encode()
