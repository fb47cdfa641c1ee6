"""The blocks of one answer in the order in which Claude Code sends them, and those that it keeps. Pure.

It keeps two thinkings apart that one thing stands between: measured on 2.1.330 and 2.1.332.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from recoveryd.core import Block

THINKING = ("thinking", "redacted_thinking")  # to this client; "reasoning" is a block that it does not know
_BETWEEN_THINKING = re.compile("tc+t")
_REMOVED = "[Tool use removed]"


def calls_last(blocks: list[Block]) -> list[Block]:
    """Put the calls of an answer behind all else, but where calls alone stand between two thinkings: then nothing is
    moved. The client does so with each line that it joins.
    """
    sorts = "".join("c" if b.type == "tool_use" else "t" if b.type in THINKING else "." for b in blocks)
    return blocks if _BETWEEN_THINKING.search(sorts) else sorted(blocks, key=lambda block: block.type == "tool_use")


def kept_calls(blocks: Sequence[Block], seen: set[str]) -> Iterator[Block]:
    """Keep each call once, by its id, and those of the provider's own tools only where their result stands.

    A text takes the place of one that goes from right between two thinkings.
    """
    ended = {key(b.body.get("tool_use_id")) for b in blocks if b.type.endswith("_tool_result")}
    for at, block in enumerate(blocks):
        name = key(block.body.get("id"))
        if block.type == "tool_use":
            kept = name not in seen
            seen.add(name)
        else:
            kept = block.type not in ("server_tool_use", "mcp_tool_use") or name in ended
        if kept:
            yield block
        elif at and [b.type in THINKING for b in blocks[at - 1 : at + 2]] == [True, False, True]:
            yield answered(_REMOVED, block.message_id)


def answered(words: str, message: str) -> Block:
    """Make a text that the client puts in the place of the model's."""
    return Block({"type": "text", "text": words, "citations": []}, message, "")


def key(value: object) -> str:
    """Return an id as the client compares it, whatever it is."""
    return json.dumps(value, sort_keys=True)
