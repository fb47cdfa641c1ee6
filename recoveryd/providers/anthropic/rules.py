"""What an Anthropic provider refuses: a request's turns in, violations out, each naming its kind and its part.

Source of the rules: the provider's own error texts, and its documentation of extended thinking (the assistant
message in front of tool results must start with thinking while thinking is on, and must hold none while it is off).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from recoveryd.core import (
    Block,
    CallLimits,
    Claims,
    Json,
    Kind,
    Limit,
    Refused,
    Request,
    Turn,
    Violation,
    from_base64,
    kind_info,
    media_of,
)
from recoveryd.providers.anthropic.block_rules import check_blocks
from recoveryd.providers.anthropic.endpoint import OWN_LIMITS
from recoveryd.providers.anthropic.media import sources
from recoveryd.providers.media_limits import (
    LEAST_BASE64,
    Media,
    believed,
    claimed_fault,
    new_of,
    not_answered,
    too_many,
    unreadable,
)

# Whose sentences of a signature mean that of thinking ("": it was told without words). Others sign calls as well: no
# thinking of Claude's answers what they say.
_SPEAK_OF_THINKING = ("", "Anthropic", "several")
_IN_RESULT = re.compile(r"tool_result\.content[.\[](\d+)")


def check(request: Request, claims: Claims, limits: CallLimits = OWN_LIMITS) -> list[Violation]:
    """List what breaks Anthropic's rules in a request, in its order; what the client can't send at all comes first."""
    found = [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            found += calls_without_result(index, turn, turns[index + 1] if index + 1 < len(turns) else None)
            found += _final_block(index, turn)
        else:
            found += _results(index, turn, turns[index - 1] if index else None)
        found += _content(index, turn, last=index == len(turns) - 1)
        found += _accused(index, turn, claims)
    if turns and turns[0].role != "user":
        found.append(Violation(Kind.ROLE_ORDER, 0, None, "the first message is not the user's"))
    found += check_blocks(turns, limits, claims.image_bytes)
    found += _rejected_thinking(turns, claims)
    found += _open_loop(turns, claims.thinking)
    return sorted(found, key=lambda v: v.turn)


def claims(refused: Refused, request: Request, named: Block | None) -> Claims:
    """Tell what an error of Anthropic's accuses: the thinking block that it names and all behind it; all there is when
    it names none that can be found. Of thinking without words, or behind others, just that.

    Of too many images, or documents, the oldest. Or the image or document that it names, where nothing can be found to
    be wrong with it: damaged further in, say. And how large an image may be there. Of a tool that is not found, the
    others of its MCP server, too: the next refusal would name the next of them.
    """
    if refused.kind is Kind.TOOL_NOT_FOUND:
        return Claims(tools=_gone_tools(refused, request))
    if kind_info(refused.kind).signature:
        if refused.said_by not in _SPEAK_OF_THINKING:
            return Claims()
        if alone := _blank_thinking(refused, request) or _late_thinking(refused, request):
            return Claims(accused=frozenset(b.part_id for b in alone), alone=True)
        thinking = [block for block in request.blocks() if block.is_thinking]
        first = _first_rejected(refused, request, thinking, named)
        return Claims(accused=frozenset(b.part_id for b in thinking[first:]))
    if refused.kind is not Kind.MEDIA_REJECTED:
        return Claims()
    if refused.over is Limit.NUMBER:
        sort = "document" if refused.sort == "document" else "image"
        held = [(b, source) for b in request.blocks() for source in sources(b.body, sort)]
        return Claims(media=frozenset(media_of(*one) for one in too_many(refused, held)), over=refused.over)
    told = Claims(image_bytes=_most_bytes(refused))
    found = [v.block for v in check(request, told) if v.kind is refused.kind and v.block]
    unknown = [named] if named is not None and named.part_id not in {block.part_id for block in found} else []
    placed = [(block, source) for block in unknown for source in _named_media(refused, block.body)]
    held = [(b, source) for b in request.blocks() for source in sources(b.body, refused.sort)] if placed else []
    placed = [*believed(refused, request, placed, held, found)]
    meant = placed if found else _meant(refused, request, placed)
    return replace(told, media=frozenset(media_of(*one) for one in meant), over=refused.over)


def _first_rejected(refused: Refused, request: Request, thinking: Sequence[Block], named: Block | None) -> int:
    """Return the index of the first thinking that an error rejects: of what it names, or of what has a signature that
    is nobody's, if that stands before it: the provider names the first, so another stood at the place. Where neither
    tells, a plugin has moved the places: the first that the model has not answered, where all have a signature and the
    session tells which model answered. Else 0.

    Where there is no signature at all, that tells nothing: OpenCode 1.1 and 1.2 send OpenRouter each thought so (seen),
    and may go on all the same.
    """
    place = named.part_id if named is not None else None
    known = next((at for at, block in enumerate(thinking) if block.part_id == place), None)
    if known is not None and not _is_signed(thinking[known]):
        return known
    torn = next((at for at, block in enumerate(thinking) if _seal(block) and not _is_signed(block)), None)
    told = [at for at in (known, torn) if at is not None]
    if refused.position is None:
        return 0
    if not told and request.models_told and all(map(_is_signed, thinking)):
        new = new_of(request, [(block, block.body) for block in thinking])  # the last ones
        told = [len(thinking) - len(new)] if new else []
    return min(told, default=0)


def _is_signed(thinking: Block) -> bool:
    """Whether what signs thinking, or hides it, is the base64 that each of Anthropic's is."""
    seal = _seal(thinking)
    return isinstance(seal, str) and seal != "" and from_base64(seal) is not None


def _seal(thinking: Block) -> object:
    return thinking.body.get("signature" if thinking.type == "thinking" else "data")


def _blank_thinking(refused: Refused, request: Request) -> Sequence[Block]:
    """List the thinking that has no words, where an error speaks of such: that of white space, or else that of nothing,
    which is taken where it was kept back and its signature is good.
    """
    thinking = [(b, b.body.get("data" if "data" in refused.said else "thinking")) for b in request.blocks()]
    if "field required" in refused.said:
        sort = "redacted_thinking" if "data" in refused.said else "thinking"
        return [block for block, words in thinking if block.type == sort and words is None]
    if "must contain" not in refused.said:
        return ()
    said = [(block, words) for block, words in thinking if block.type == "thinking" and not str(words or "").strip()]
    return [block for block, words in said if words] or [block for block, _ in said]


def _late_thinking(refused: Refused, request: Request) -> Sequence[Block]:
    """List the thinking of answers that do not begin with any, where an error speaks of such."""
    if "any thinking blocks" not in refused.said:
        return ()
    late = (turn for turn in request.turns if turn.role == "assistant" and turn.blocks)
    return [block for turn in late if not turn.blocks[0].is_thinking for block in turn.blocks if block.is_thinking]


def _gone_tools(refused: Refused, request: Request) -> frozenset[str]:
    found = frozenset(name for block in request.blocks() for name in _found_tools(block))
    gone = found.intersection(refused.names)
    servers = {_server(name) for name in gone} - {""}
    return gone | {name for name in found if _server(name) in servers}


def _most_bytes(refused: Refused) -> int:
    """Tell what one image may have where an error says that it is too large: as it says, or what the least takes."""
    if refused.sort != "image" or refused.over not in (Limit.BYTES, Limit.SIZE):
        return 0
    return refused.limit or (0 if refused.position is not None else LEAST_BASE64)


def _named_media(refused: Refused, body: Json) -> Iterator[Json]:
    """Go through the images and documents of a block that an error names, of the sort that it speaks of: of a tool's
    result the one at its place there, or all where it tells none.
    """
    place, content = _IN_RESULT.match(refused.field), body.get("content")
    if not isinstance(content, list):
        return sources(body, refused.sort) if place is None else iter(())
    if place is not None:
        return sources({"content": content[int(place[1]) :][:1]}, refused.sort)
    return sources(body, refused.sort) if not refused.field else iter(())  # a field that no result has


def _meant(refused: Refused, request: Request, placed: Sequence[Media]) -> Sequence[Media]:
    """List what stands at the place that an error names, or else as `unreadable` says; or what the provider was to
    fetch itself and could not: what is named, or of that sort at the place, or all that no answer stands behind where
    the error tells neither, or there is only one.
    """
    sort = {"unable to download the file": "url"}.get(refused.said, "file" if "not found" in refused.said else "")
    held = [(b, source) for b in request.blocks() for source in sources(b.body, refused.sort)]
    if not sort:
        return placed or unreadable(refused, request, held)
    there = [(b, source) for b, source in held if source.get("type") == sort]
    named = [(b, source) for b, source in there if {source.get("url"), source.get("file_id")} & set(refused.names)]
    found = named or [(b, source) for b, source in placed if source.get("type") == sort]
    if found or len(there) == 1:
        return found or there
    return not_answered(request, there) if refused.position is None else ()


def calls_without_result(index: int, turn: Turn, following: Turn | None) -> Iterator[Violation]:
    """List, by Anthropic's rules, the calls of an answer that `following` holds no result for, and what stands behind a
    call in its step.
    """
    answered = _results_at_start(following)
    called = False
    for block in turn.blocks:
        if block.type == "tool_use":
            called = True
            if _name(block.body.get("id")) not in answered:
                yield Violation(Kind.TOOL_RESULT_MISSING, index, block, "a tool call has no result in the next message")
        elif called:
            reason = f"{_noun(block)} stands behind a tool call in one step, so the result does not follow the call"
            yield Violation(Kind.TOOL_RESULT_MISSING, index, block, reason)


def _results(index: int, turn: Turn, previous: Turn | None) -> Iterator[Violation]:
    called = {_name(b.body.get("id")) for b in previous.blocks if b.type == "tool_use"} if previous else set()
    for block in turn.blocks:
        if block.type == "tool_result" and _name(block.body.get("tool_use_id")) not in called:
            yield Violation(Kind.TOOL_RESULT_ORPHAN, index, block, "a tool result has no call in the message before")


def _results_at_start(turn: Turn | None) -> set[str]:
    ids: set[str] = set()
    for block in turn.blocks if turn is not None and turn.role == "user" else ():
        if block.type != "tool_result":
            break
        ids.add(_name(block.body.get("tool_use_id")))
    return ids


def _name(identifier: object) -> str:
    """Return an id as text, whatever stands there."""
    return identifier if isinstance(identifier, str) else repr(identifier)


def _final_block(index: int, turn: Turn) -> Iterator[Violation]:
    if turn.blocks and turn.blocks[-1].is_thinking:
        yield Violation(Kind.THINKING_FINAL_BLOCK, index, turn.blocks[-1], "an assistant message ends in thinking")


def _content(index: int, turn: Turn, *, last: bool) -> Iterator[Violation]:
    if not turn.blocks and not (last and turn.role == "assistant"):
        yield Violation(Kind.EMPTY_CONTENT, index, None, "a message has no content")
    for block in turn.blocks:
        texts = [block.body] if block.type == "text" else _nested(block.body)
        if texts and any(not text["text"].strip() for text in texts if isinstance(text.get("text"), str)):
            yield Violation(Kind.EMPTY_CONTENT, index, block, "a text holds nothing but white space")


def _nested(body: Json) -> Sequence[Json]:
    content = body.get("content")
    items = content if isinstance(content, list) else ()
    return [item for item in items if isinstance(item, Mapping) and item.get("type") == "text"]


def _accused(index: int, turn: Turn, claims: Claims) -> Iterator[Violation]:
    for block in turn.blocks if claims.media or claims.unfinished or claims.tools else ():
        meant = tuple((source, _why(source, claims)) for source in sources(block.body) if claims.means(block, source))
        if meant:
            yield Violation(Kind.MEDIA_REJECTED, index, block, meant[0][1], media=meant)
        if block.part_id in claims.unfinished and block.unfinished:
            yield Violation(Kind.TOOL_RESULT_MISSING, index, block, "the provider names this call: it has no result")
        for name in sorted(claims.tools.intersection(_found_tools(block))):
            reason = "a search for tools had found one that the provider does not find"
            yield Violation(Kind.TOOL_NOT_FOUND, index, block, reason, field=f"content.tool_references.{name}")


def _found_tools(block: Block) -> Sequence[str]:
    """List the tools that a search of the provider's own had found."""
    content = block.body.get("content")
    found = content.get("tool_references") if isinstance(content, Mapping) else None
    return [_name(one.get("tool_name")) for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _server(tool: str) -> str:
    """Return how all tools of its MCP server begin ("mcp__github__"); "" for a tool of the client's own."""
    return tool.rpartition("__")[0] if tool.startswith("mcp__") else ""


def _why(source: Json, claims: Claims) -> str:
    unread = claims.over is None and source.get("type") in ("url", "file")
    return "the provider can't fetch it" if unread else claimed_fault(claims)


def _rejected_thinking(turns: Sequence[Turn], claims: Claims) -> Iterator[Violation]:
    """Find the first block that is accused: what stands behind it goes with it."""
    for index, turn in enumerate(turns if claims.accused else ()):
        for block in turn.blocks:
            if block.part_id in claims.accused and block.is_thinking:
                reason = "the provider rejects this thinking block, or one before it"
                yield Violation(Kind.THINKING_SIGNATURE_INVALID, index, block, reason)
                return


def _open_loop(turns: Sequence[Turn], thinking: Collection[bool]) -> Iterator[Violation]:
    index = next((i for i in range(len(turns) - 1, -1, -1) if turns[i].role == "assistant"), None)
    if index is None:
        return
    blocks = turns[index].blocks
    if not blocks or not (index == len(turns) - 1 or any(b.type == "tool_use" for b in blocks)):
        return
    if True in thinking and not blocks[0].is_thinking:
        reason = "with thinking on, the open turn must begin with a thinking block"
        yield Violation(Kind.THINKING_BLOCK_ORDER, index, blocks[0], reason)
    held = next((b for b in blocks if b.is_thinking), None)
    if False in thinking and held is not None:
        reason = "with thinking off, the open turn must not hold thinking"
        yield Violation(Kind.THINKING_DISABLED_VIOLATION, index, held, reason)


def _noun(block: Block) -> str:
    return {"text": "text", "thinking": "thinking", "redacted_thinking": "thinking"}.get(block.type, block.type)
