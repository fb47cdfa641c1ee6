"""What an Anthropic provider refuses of a single block: ids, names and inputs of calls, half characters, media."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from recoveryd.core import HALF, Block, CallLimits, Kind, Turn, Violation
from recoveryd.providers.anthropic.media import MANY, MAX_REQUEST, fault, sources

OWN_LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_-]"), longest_name=200)


def check_blocks(turns: Sequence[Turn], limits: CallLimits) -> Iterator[Violation]:
    """List the violations that each stand in one block, whatever stands around it."""
    seen: set[str] = set()
    media = [source for turn in turns for block in turn.blocks for source in sources(block.body)]
    excess = max(0, len(media) - MANY)
    heaviest = max(media, key=_weight, default=None) if sum(map(_weight, media)) > MAX_REQUEST else None
    for index, turn in enumerate(turns):
        for block in turn.blocks:
            reason = _call(block, seen, limits)
            if reason is not None:
                yield Violation(Kind.TOOL_CALL_INVALID, index, block, reason)
            if half_character(block.body):
                yield Violation(Kind.INVALID_UNICODE, index, block, "it holds half a character (a lone surrogate)")
            for source in sources(block.body):
                problem = fault(source, many=excess > 0)
                if problem is None and source is heaviest:
                    problem = "the images of the conversation have more than 32 MB together"
                if problem is not None:
                    too_many = excess if fault(source, many=False) is None and source is not heaviest else 0
                    yield Violation(Kind.MEDIA_REJECTED, index, block, problem, excess=too_many)
                    break


def _call(block: Block, seen: set[str], limits: CallLimits) -> str | None:
    if block.type != "tool_use":
        return None
    call_id, body = block.body["id"], block.body
    doubled = call_id in seen
    seen.add(call_id)
    if not call_id or limits.illegal.search(call_id):
        return "a tool call has an empty id or one with illegal characters"
    if limits.longest_id is not None and len(call_id) > limits.longest_id:
        return "the id of a tool call is too long"
    name = body["name"]
    if not name or limits.illegal.search(name) or len(name) > limits.longest_name:
        return "a tool call has an empty or too long name, or one with illegal characters"
    if not isinstance(body.get("input"), Mapping):
        return "the input of a tool call is no object"
    return "two tool calls have the same id" if doubled else None


def half_character(value: object) -> bool:
    """Whether a lone surrogate is anywhere in `value`, also in its keys."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if not item.isascii() and HALF.search(item):
                return True
        elif isinstance(item, Mapping):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
    return False


def _weight(source: Mapping[str, object]) -> int:
    return len(str(source.get("data", ""))) if source.get("type") == "base64" else 0
