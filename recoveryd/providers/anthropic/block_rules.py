"""What an Anthropic provider refuses of a single block: ids, names and inputs of calls, half characters, media."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from recoveryd.core import Block, CallLimits, Json, Kind, Turn, Violation, half_character
from recoveryd.providers.anthropic import schema
from recoveryd.providers.anthropic.media import MANY, MAX_BASE64, MAX_REQUEST, media_fault, sources

_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
# What Anthropic's own servers carry out; its newer tools end alike.
_SERVER_NAME = re.compile(r"web_search|web_fetch|advisor|(?:\w+_)?code_execution|tool_search_tool_(?:regex|bm25)")

_TOO_HEAVY = "the images of the conversation have more than 32 MB together"


def check_blocks(turns: Sequence[Turn], limits: CallLimits, image_bytes: int = 0) -> Iterator[Violation]:
    """List the violations of Anthropic's rules that each stand in one block, whatever stands around it."""
    seen: set[str] = set()
    media = [source for turn in turns for block in turn.blocks for source in sources(block.body)]
    excess = max(0, len([one for one in media if one.get("media_type") != "application/pdf"]) - MANY)
    heaviest = max(media, key=_weight, default=None) if sum(map(_weight, media)) > MAX_REQUEST else None
    for index, turn in enumerate(turns):
        yield from _server_results(index, turn)
        for block in turn.blocks:
            reason = call_fault(block, seen, limits)
            if reason is not None:
                yield Violation(Kind.TOOL_CALL_INVALID, index, block, reason)
            for field, why in schema.schema_faults(block.body):
                yield Violation(Kind.FOREIGN_ITEM, index, block, why, field=field)
            if half_character(block.body):
                yield Violation(Kind.INVALID_UNICODE, index, block, "it holds half a character (a lone surrogate)")
            if media:
                yield from _refused_media(index, block, excess, heaviest, image_bytes or MAX_BASE64)


def _refused_media(index: int, block: Block, excess: int, heaviest: Json | None, most: int) -> Iterator[Violation]:
    """Find what of a block is refused in any request, or else what is only too large among so many."""
    faults = [(source, media_fault(source, many=excess > 0, most=most)) for source in sources(block.body)]
    refused = [(source, why or _TOO_HEAVY) for source, why in faults if why or source is heaviest]
    alone = [one for one in refused if not excess or one[0] is heaviest or media_fault(one[0], many=False, most=most)]
    if refused:
        meant = tuple(alone or refused)
        yield Violation(Kind.MEDIA_REJECTED, index, block, meant[0][1], excess=0 if alone else excess, media=meant)


def _server_results(index: int, turn: Turn) -> Iterator[Violation]:
    """Check that what a server's tool gave back stands behind its call, in the same message."""
    called: set[object] = set()
    for block in turn.blocks:
        if block.type == "server_tool_use":
            called.add(str(block.body.get("id")))
        elif _of_server(block) and str(block.body.get("tool_use_id")) not in called:
            # Of one whose id is none of Anthropic's, that is what the provider says.
            legal = _SERVER_ID.fullmatch(str(block.body.get("tool_use_id")))
            kind = Kind.FOREIGN_ITEM if legal else Kind.TOOL_CALL_INVALID
            yield Violation(kind, index, block, "the result of a server's tool has no call before it")


def _of_server(block: Block) -> bool:
    """Whether it is what a server's tool gave back."""
    return block.type.endswith("_tool_result") and not block.type.startswith("mcp_")


def call_fault(block: Block, seen: set[str], limits: CallLimits) -> str | None:
    """Say what Anthropic refuses of a tool call's block, as half a sentence, or None; `seen` are the ids of those
    before it.
    """
    body = block.body
    server = block.type == "server_tool_use"
    if not (server or block.type in ("tool_use", "mcp_tool_use")):
        return None
    call_id = body.get("id")
    reason = _id_fault(call_id, server, limits)
    if reason is not None:
        return reason
    doubled = call_id in seen
    seen.add(str(call_id))
    if block.type != "mcp_tool_use" and not _legal_name(body.get("name"), server, limits):
        return "a tool call has an empty or too long name, one with illegal characters, or one that no server knows"
    if not isinstance(body.get("input"), Mapping):
        return "the input of a tool call is no object"
    return "two tool calls have the same id" if doubled else None


def _id_fault(call_id: object, server: bool, limits: CallLimits) -> str | None:
    if not isinstance(call_id, str) or not call_id or limits.illegal_in_id.search(call_id):
        return "a tool call has no id, an empty one or one with illegal characters"
    if server:
        return None if _SERVER_ID.fullmatch(call_id) else "the id of a server's tool call is none of Anthropic's"
    if limits.longest_id is not None and len(call_id) > limits.longest_id:
        return "the id of a tool call is too long"
    return None


def _legal_name(name: object, server: bool, limits: CallLimits) -> bool:
    if not isinstance(name, str) or not name:
        return False
    if server:
        return _SERVER_NAME.fullmatch(name) is not None
    return not limits.illegal.search(name) and len(name) <= limits.longest_name


def _weight(source: Mapping[str, object]) -> int:
    return len(str(source.get("data", ""))) if source.get("type") == "base64" else 0
