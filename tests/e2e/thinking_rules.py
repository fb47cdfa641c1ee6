"""What the provider demands of thinking blocks: where they stand, and that they are its own."""

from __future__ import annotations

from tests.e2e.content_rules import each_block
from tests.e2e.signing import Block, Message, is_redacted, verdict

_THINKING = ("thinking", "redacted_thinking")


def final_block(messages: list[Message]) -> str | None:
    """An assistant message that ends in thinking."""
    for at, message in enumerate(messages):
        if message["role"] == "assistant" and message["content"] and message["content"][-1].get("type") in _THINKING:
            return f"messages.{at}: The final block in an assistant message cannot be `thinking`."
    return None


def _open_turn(messages: list[Message]) -> tuple[int, list[Block]] | None:
    """The last assistant message where the order rules hold for it: it has tool calls, or ends the request."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "assistant":
            content = messages[at]["content"]
            calls = any(block.get("type") == "tool_use" for block in content)
            return (at, content) if content and (calls or at == len(messages) - 1) else None
    return None


def order(messages: list[Message]) -> str | None:
    """Thinking on: an open turn that does not begin with thinking."""
    turn = _open_turn(messages)
    if turn is None or turn[1][0].get("type") in _THINKING:
        return None
    return (
        f"messages.{turn[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        f"`{turn[1][0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
        "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult "
        "our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    )


def disabled(messages: list[Message]) -> str | None:
    """Thinking off: an open turn that holds thinking."""
    turn = _open_turn(messages)
    for index, block in enumerate(turn[1] if turn else []):
        if turn and block.get("type") in _THINKING:
            return (
                f"messages.{turn[0]}.content.{index}.type: Expected `text`, but found `{block['type']}`. When "
                "`thinking` is disabled, an `assistant` message in the final position cannot contain `thinking`. To "
                "use thinking blocks, enable `thinking` in your request."
            )
    return None


def signatures(messages: list[Message], *, modified: bool) -> str | None:
    """A block that was changed (`modified`), or whose signature is not its own."""
    latest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for at, index, block in each_block(messages):
        path = f"messages.{at}.content.{index}"
        words = _signature_fault(path, block, at == latest)
        if words and modified == ("cannot be modified" in words):
            return words
    return None


def _signature_fault(path: str, block: Block, latest: bool) -> str | None:
    if block.get("type") == "redacted_thinking":
        own = is_redacted(block.get("data"))
        return None if own else f"{path}: Invalid `data` in `redacted_thinking` block"
    if block.get("type") != "thinking":
        return None
    text = block.get("thinking")
    if "signature" not in block:
        return f"{path}.thinking.signature: Field required"
    if not isinstance(text, str) or (text and not text.strip()):
        return f"{path}.thinking: each thinking block must contain non-whitespace thinking"
    judged = verdict(text, block["signature"])
    if judged == "other text" and latest:
        return (
            f"{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
            "These blocks must remain as they were in the original response."
        )
    return None if judged == "valid" else f"{path}: Invalid `signature` in `thinking` block"
