"""What the provider demands of messages, texts and tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.e2e.signing import Block, Message

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}")


def each_block(messages: list[Message]) -> Iterator[tuple[int, int, Block]]:
    """Every block with the index of its message and its own."""
    for at, message in enumerate(messages):
        for index, block in enumerate(message["content"]):
            yield at, index, block


def tool_calls(messages: list[Message]) -> str | None:
    """An id, a name or an input that no tool call may have."""
    seen: set[str] = set()
    for at, index, block in each_block(messages):
        path = f"messages.{at}.content.{index}"
        if block.get("type") == "tool_result" and not _ID.fullmatch(str(block.get("tool_use_id"))):
            return f"{path}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if block.get("type") != "tool_use":
            continue
        if not _ID.fullmatch(str(block.get("id"))):
            return f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not _NAME.fullmatch(str(block.get("name"))):
            return f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"
        if not isinstance(block.get("input"), dict):
            return f"{path}.tool_use.input: Input should be a valid dictionary"
        if block["id"] in seen:
            return f"{path}: `tool_use` ids must be unique"
        seen.add(block["id"])
    return None


def empty(messages: list[Message]) -> str | None:
    """A message without content, or a blank text."""
    for at, message in enumerate(messages):
        last = at == len(messages) - 1 and message["role"] == "assistant"
        if not message["content"] and not last:
            words = "all messages must have non-empty content except for the optional final assistant message"
            return f"messages.{at}: {words}"
    for at, index, block in each_block(messages):
        path = f"messages.{at}.content.{index}"
        nested = block.get("content") if block.get("type") == "tool_result" else None
        inner = nested if isinstance(nested, list) else []
        texts = [(path, block), *((f"{path}.tool_result.content.{n}", item) for n, item in enumerate(inner))]
        if fault := next((said for where, item in texts if (said := _blank(where, item))), None):
            return fault
    return None


def _blank(path: str, block: Block) -> str | None:
    words = block.get("text") if block.get("type") == "text" else "no text"
    if words == "":
        return "messages: text content blocks must be non-empty"
    return None if str(words).strip() else f"{path}.text: text content blocks must contain non-whitespace text"


def role_order(messages: list[Message]) -> str | None:
    """A conversation that does not begin with the user."""
    if not messages:
        return "messages: at least one message is required"
    return None if messages[0]["role"] == "user" else 'messages: first message must use the "user" role'


def prefill(messages: list[Message], allowed: bool) -> str | None:
    """A conversation that ends with the assistant, where that is refused."""
    if allowed or messages[-1]["role"] != "assistant":
        return None
    return "This model does not support assistant message prefill. The conversation must end with a user message."


def trailing(messages: list[Message]) -> str | None:
    """A last assistant text that ends in white space."""
    last = messages[-1]
    text = last["content"][-1].get("text", "") if last["role"] == "assistant" and last["content"] else ""
    return "messages: final assistant content cannot end with trailing whitespace" if text != text.rstrip() else None


def missing(messages: list[Message]) -> str | None:
    """A tool call whose result does not come right behind it."""
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        content = message["content"]
        others = [n for n, block in enumerate(content) if block.get("type") != "tool_use"]
        follower = messages[at + 1]["content"] if at + 1 < len(messages) else []
        results = [block.get("tool_use_id") for block in follower if block.get("type") == "tool_result"]
        lost = [
            str(block["id"])
            for n, block in enumerate(content)
            if block.get("type") == "tool_use" and (n < max(others, default=-1) or block["id"] not in results)
        ]
        if lost:
            return (
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(lost)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        calls = any(block.get("type") == "tool_use" for block in content)
        if calls and any(block.get("type") != "tool_result" for block in follower[: len(results)]):
            return (
                f"messages.{at + 1}: Did not find {len(results)} `tool_result` block(s) at the beginning of this "
                "message. Messages following `tool_use` blocks must begin with a matching number of "
                "`tool_result` blocks."
            )
    return None


def orphans(messages: list[Message]) -> str | None:
    """A result whose call is not in the message before."""
    for at, index, block in each_block(messages):
        if block.get("type") != "tool_result":
            continue
        before = messages[at - 1]["content"] if at and messages[at - 1]["role"] == "assistant" else []
        if block.get("tool_use_id") not in [b.get("id") for b in before if b.get("type") == "tool_use"]:
            return (
                f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block.get('tool_use_id')}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message."
            )
    return None
