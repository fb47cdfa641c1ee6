"""What an error of the Responses API says that its rules can't tell from the items alone.

Whether something encrypted can be read, only its issuer knows: of what is refused so, all goes at once, for a piece of
it, or half of it, is refused like all of it. What the rules find in one item they find in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from recoveryd.core import Block, Claims, Json, Kind, Limit, Refused, Request, media_of
from recoveryd.providers.media_limits import Media, believed, new_of, not_answered, only_new, too_large, too_many
from recoveryd.providers.openai import media
from recoveryd.providers.openai.items import (
    ENCRYPTED,
    LONGEST_ARGUMENTS,
    NEED_AN_ID,
    OUTPUT_OF,
    OUTPUTS,
    TAKEN_BY_ALL,
    id_fault,
    is_lonely,
    is_odd_search,
    is_spare,
    text_field,
)
from recoveryd.providers.openai.media import images, sources

_VALUE = re.compile(r"[a-z]+(?:_[a-z]+)*")  # the type of an item; ids have digits
_ROOM = 16 * 1024  # bytes that are left for the prompts to come


def claims(refused: Refused, request: Request, named: Block | None) -> Claims:
    """Tell what an error of OpenAI's says of a request; `named` is the item at `refused.position`, as the request had
    it. Which reasoning has what it needs behind it is noted, for a repair may take that away; but not where the model
    went on behind some that lacks it, and the error is not of that: who does so wants none.
    """
    told = _told(refused, request, named)
    items = list(request.blocks())
    lonely = [item.type == "reasoning" and is_lonely(items, at) for at, item in enumerate(items)]
    followed = [at for at, item in enumerate(items) if item.type == "reasoning" and not lonely[at]]
    went_on = items[: max(followed, default=0)]
    if any(alone and item.part_id not in told.accused for item, alone in zip(went_on, lonely, strict=False)):
        return told
    return replace(told, followed=_parts(items[at] for at in followed))


def _told(refused: Refused, request: Request, named: Block | None) -> Claims:
    """Return what the error itself tells."""
    blocks = [block for block in request.blocks() if block.part_id]
    match refused.kind:
        case Kind.REASONING_ITEM:
            return _with_ids(_of_items(refused, request, blocks, named), refused, blocks)
        case Kind.FOREIGN_ITEM:
            return _with_ids(_foreign(refused, request, blocks, named), refused, blocks)
        case Kind.TOOL_CALL_INVALID:
            return _with_ids(_call(refused, blocks), refused, blocks)
        case Kind.MEDIA_REJECTED:
            images_meant = _images(refused, request, blocks, named) if refused.sort in ("image", "") else ()
            return Claims(media=frozenset(media_of(*one) for one in images_meant), over=refused.over)
    return Claims()


def _with_ids(told: Claims, refused: Refused, blocks: list[Block]) -> Claims:
    """Add the ids that are another provider's to what an error says of items: who asks a gateway that gives ids of its
    own is refused nothing for them.
    """
    foreign = [block for block in blocks if id_fault(block.body)] if refused.by_error else []
    return replace(told, fields=told.fields | _fields(foreign, "id"))


def _of_items(refused: Refused, request: Request, blocks: list[Block], named: Block | None) -> Claims:
    """Return what an error says about reasoning and ids. What is said of one item holds for all that are like it, and
    who says one of these sentences says the others too: all that stands against them goes with it.
    """
    said, place = refused.said, named.part_id if named is not None else None
    if "connection" in said:
        return Claims(fields=_fields(blocks, "id"))
    if "duplicate item" in said:
        return Claims(fields=_fields(_repeated(blocks), "id"))
    if "expected an id" in said or refused.field == "id":
        foreign = [block for block in blocks if id_fault(block.body)]
        # A place that may count from further on only tells where no id is visibly wrong.
        there = [] if foreign and refused.continued else [block for block in blocks if block.part_id == place]
        return Claims(fields=_fields([*foreign, *there], "id"))
    if "required reasoning item" in said or "item with id" in said or "not persisted" in said:
        return Claims(fields=_fields([b for b in blocks if b.body.get("id") in refused.names], "id"))
    of_form = any(words in said for words in ("provided without", "following item", "content: array"))
    unread = [] if of_form else _unreadable(refused, request, blocks, named)
    items = list(request.blocks())
    bare = [block for block in blocks if block.type == "reasoning" and not block.body.get("encrypted_content")]
    if refused.continued and refused.field == "encrypted_content" and not (of_form or unread or bare):
        return Claims()  # which is meant is not told: what else stands against the others would go in its place
    lonely = [block for at, block in enumerate(items) if is_lonely(items, at) and block.part_id]
    written = [block for block in blocks if block.type == "reasoning" and block.body.get("content")]
    other = _parts([*unread, *bare])
    alone = _parts(lonely)
    return Claims(accused=other | alone, fields=_fields(written, "content"), lonely=alone - other)


def _unreadable(refused: Refused, request: Request, blocks: list[Block], named: Block | None) -> list[Block]:
    """List the encrypted items that the error speaks of: all reasoning, or else what an agent said; a summary of what
    was compacted only if it is named, or nothing is and nothing else is left, for it is all that the model knows of
    what came before. What is named and not there, a client sent that had it in memory.
    """
    agents = [b for b in blocks if b.type == "agent_message" and any(_sealed(b.body))]
    if any(_is_named(block.body, name) for block in agents for name in refused.names):
        return agents
    encrypted = [block for block in blocks if block.type in ENCRYPTED]
    if refused.field:  # that is not there, or another part of it
        meant = _encrypted_at(refused, request, encrypted, named)
        return [block for block in meant if _may_be_said(refused, block)]
    reasoning = [block for block in encrypted if block.type == "reasoning"]
    compacted = [block for block in encrypted if block.is_summary]
    spoken = [block for block in compacted if any(_is_named(block.body, name) for name in refused.names)]
    named_one = any("..." in name for name in refused.names)
    return [*reasoning, *spoken] or ([] if named_one else agents or compacted)


def _encrypted_at(
    refused: Refused, request: Request, encrypted: Sequence[Block], named: Block | None
) -> Sequence[Block]:
    """Return the encrypted item at the place of an error. Where that may count from further on, it is the one that the
    error names besides, else told only where no other may be meant.
    """
    if not refused.continued or refused.position is None:
        return [block for block in encrypted if named is not None and block.part_id == named.part_id]
    there = {block.part_id for block in request.may_be_behind(*refused.position)}
    spoken = [block for block in encrypted if any(_is_named(block.body, name) for name in refused.names)]
    meant = spoken or [block for block in encrypted if block.part_id in there]
    return meant if len(meant) == 1 else ()


def _may_be_said(refused: Refused, item: Block) -> bool:
    """Whether an error may speak of this reasoning or summary: what is missing is not there, and a summary has no other
    field that is read. Else another item stood in its place.
    """
    lacks = "missing" in refused.said or "empty" in refused.said
    if refused.field != "encrypted_content":
        return item.type == "reasoning"
    return not (lacks and item.body.get("encrypted_content"))


def _is_named(body: Json, name: str) -> bool:
    """Whether a name of an error means this item: its id, whole or cut in the middle, or the ends of its content."""
    first, dots, last = name.partition("...")
    last = last.lstrip(".")
    whole = text_field(body, "id"), *_sealed(body)
    if not dots:
        return name in whole
    return any(len(one) > len(first + last) and one.startswith(first) and one.endswith(last) for one in whole)


def _sealed(body: Json) -> Iterator[str]:
    """Return what of an item is encrypted: a field of it, or of what it holds."""
    content = body.get("content")
    for one in (body, *(content if isinstance(content, list) else ())):
        if isinstance(one, dict) and text_field(one, "encrypted_content"):
            yield text_field(one, "encrypted_content")


def _foreign(refused: Refused, request: Request, blocks: list[Block], named: Block | None) -> Claims:
    """Find an item, or a field of it, that is not known: all of its type, with the outputs of those that are calls."""
    if refused.field == "id" and "missing" in refused.said:
        return Claims(accused=_parts(b for b in blocks if b.type in NEED_AN_ID and not b.body.get("id")))
    if refused.field == "id":
        return Claims(fields=_fields([b for b in blocks if id_fault(b.body)], "id"))
    if "unknown parameter" in refused.said:
        if refused.position is not None and refused.position[1] is not None:  # a field of what the item holds
            return Claims()
        return Claims(fields=_fields([b for b in blocks if is_spare(b.body, refused.field)], refused.field))
    said = {block.type for block in blocks if block.type in refused.names}
    types = (said or _types_at(refused, request, named)) - TAKEN_BY_ALL
    alike = [block for block in blocks if block.type in types]
    calls = {text_field(block.body, "call_id") for block in alike} - {""}
    paired = OUTPUT_OF.keys() | OUTPUTS
    whole = [b for b in blocks if b in alike or (b.type in paired and text_field(b.body, "call_id") in calls)]
    summaries = [block for block in whole if block.is_summary]  # whoever made them can read them: they stay
    return Claims(accused=_parts(b for b in whole if not b.is_summary), fields=_fields(summaries, "type"))


def _types_at(refused: Refused, request: Request, named: Block | None) -> set[str]:
    """Return the type of the item at the place of an error. Where that may count from further on, it is told only where
    all that may be meant, and that not everybody takes, is of one type: a call's output goes with its call.
    """
    if any(_VALUE.fullmatch(name) for name in refused.names):
        return set()  # that of none that is known: another item stood there
    if not refused.continued or refused.position is None:
        return {named.type} if named is not None else set()
    found = {block.type for block in request.may_be_behind(*refused.position)} - TAKEN_BY_ALL
    found -= {OUTPUT_OF.get(kind) for kind in found}
    return found if len(found) == 1 else set()


def _call(refused: Refused, blocks: list[Block]) -> Claims:
    """Ids and names are found by the rules; how long a name or an input may be, and what may be looked up, not all
    agree on.
    """
    if refused.field.startswith("action") or "open_page" in refused.said:
        return Claims(accused=_parts(b for b in blocks if is_odd_search(b.body)))
    if refused.field in ("arguments", "input"):
        long = [b for b in blocks if len(text_field(b.body, refused.field)) > LONGEST_ARGUMENTS]
        return Claims(fields=_fields(long, refused.field))
    return Claims(longest_name=refused.longest_name)


def _images(
    refused: Refused, request: Request, blocks: list[Block], named: Block | None
) -> Iterator[tuple[Block, Json]]:
    """Choose the images that are meant: the one that is named; what the rules find; the oldest, so many as are too many
    or too many bytes; of one too large, as `too_large` says; or else all that no answer stands behind, unless the words
    may mean none.

    Where a place is named and none that may be meant stands there, another is meant only if there is no third, or it is
    the only new one and the session tells which model answered.
    """
    held = [(block, part) for block in blocks for _, part in _pictures(block.body)]
    if refused.over is Limit.REQUEST:
        yield from _heavy(_excess(refused, request), held)
        return
    many = too_many(refused, held)
    if many or refused.over is Limit.NUMBER:  # where it is not told by how many, none of them is at fault
        yield from many
        return
    if refused.position is not None:
        placed = list(_at_place(named, refused.position[1])) if named is not None else []
        faulty = [block for block, part in held if media.media_fault(part)]
        meant = list(believed(refused, request, placed, held, faulty))
        if any(media.is_misnamed(part) for _, part in meant):
            meant = [one for one in held if one in meant or media.is_misnamed(one[1])]
        if meant or len(held) > 1:
            alone = request.models_told and refused.over is None and not (faulty or refused.of_none)
            yield from meant or (only_new(request, new_of(request, held)) if alone else ())
            return
    if refused.over is not None:
        yield from too_large(refused, request, held, media.part_bytes)
        return
    unanswered = () if refused.of_none else not_answered(request, held)
    if not any(media.media_fault(source) for block in blocks for source in sources(block.body)):
        yield from [one for one in unanswered if media.is_doubtful(one[1])] or unanswered


def _at_place(item: Block, place: int | None) -> Iterator[tuple[Block, Json]]:
    """Go through the images of an item at a place of its content, or all; of a prompt's parts each is an item."""
    alone = place is None or len(item.body.get("content") or ()) == 1
    return ((item, part) for at, part in _pictures(item.body) if alone or at == place)


def _pictures(body: Json) -> Iterator[tuple[int, Json]]:
    if body.get("type") == "image_generation_call" and body.get("result"):
        yield 0, body
    yield from images(body)


def _excess(refused: Refused, request: Request) -> int | None:
    """Return the bytes that have to go; None where the error does not tell the size."""
    return (refused.sent or media.request_size(request)) - refused.limit if refused.limit else None


def _heavy(over: int | None, held: Sequence[Media]) -> Sequence[Media]:
    """Choose the oldest of `held` that have so many bytes together, and some room for what comes; all, where it is not
    told how many; none, where all of them have fewer.
    """
    if over is None:
        return held
    gone, chosen = 0, []
    for block, part in held:
        if gone < over + _ROOM:
            chosen.append((block, part))
            gone += media.part_bytes(part)
    return chosen if gone >= over else ()


def _repeated(blocks: list[Block]) -> list[Block]:
    """List the items whose id an earlier one has."""
    seen: set[object] = set()
    found = []
    for block in blocks:
        own = block.body.get("id")
        if own and own in seen:
            found.append(block)
        seen.add(own)
    return found


def _parts(blocks: Iterable[Block]) -> frozenset[str]:
    return frozenset(block.part_id for block in blocks)


def _fields(blocks: Iterable[Block], field: str) -> frozenset[tuple[str, str]]:
    return frozenset((block.part_id, field) for block in blocks if block.body.get(field))
