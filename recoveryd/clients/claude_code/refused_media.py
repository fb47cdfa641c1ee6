"""Which images and documents Claude Code leaves out of every request behind a refusal of such. Pure.

The line about a refusal names none of them. The client takes those of the nearest line before it that holds any (or of
the results that the line names), also sound ones; and where sides were too long, all images with longer ones (2.1.330
and 2.1.332, tests/e2e/claude_code/test_wire.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from recoveryd.clients.claude_code.attachment import in_place
from recoveryd.core import Json, Message, Session, from_base64, pixels

_BOTH = frozenset({"image", "document"})
_IMAGE, _DOCUMENT = frozenset({"image"}), frozenset({"document"})
_PLACED = re.compile(
    r"messages[.[]\d+[\].]+content[.[]\d+[\].]+(?:tool_result[.[]content[.[]\d+[\].]+)?(image|document|pdf)"
)
_CAPABILITY = re.compile(r"capability_rejected: (image_block|document_block|media_budget)(?![A-Za-z0-9_:.-])")
_OF_IMAGES = (
    "could not process image",
    "image exceeds",
    "image dimensions exceed",
    "image does not match the provided media type",
    "image cannot be empty",
    "exceeds api limit",
    "images exceed the api limit",
    "unable to resize image",
    "unable to compress image",
    "image file is empty",
)
_OF_DOCUMENTS = (
    "could not process pdf",
    "pdf pages",
    "the pdf specified was not valid",
    "the pdf specified is password protected",
    "pdf cannot be empty",
    "does not support pdf input",
    "does not support pdfs",
)
# Its own words, where it kept none of the refusal's that it reads: with what it says in a terminal, or elsewhere.
_SAID = {
    f"{words} {way_on}": kinds
    for words, kinds, ways_on in (
        (
            "PDF too large (max 100 pages, 20MB).",
            _DOCUMENT,
            (
                "Try reading the file a different way (e.g., extract text with pdftotext).",
                "Double press esc to go back and try again, or use pdftotext to convert to text first.",
            ),
        ),
        (
            "PDF is password protected.",
            _DOCUMENT,
            (
                "Try using a CLI tool to extract or convert the PDF.",
                "Please double press esc to edit your message and try again.",
            ),
        ),
        (
            "The PDF file was not valid.",
            _DOCUMENT,
            (
                "Try converting it to text first (e.g., pdftotext).",
                "Double press esc to go back and try again with a different file.",
            ),
        ),
        (
            "Image was too large.",
            _IMAGE,
            (
                "Try resizing the image or using a different approach.",
                "Double press esc to go back and try again with a smaller image.",
            ),
        ),
        (
            "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request "
            "over the limit.",
            _BOTH,
            (
                "Remove older images or compact the conversation.",
                "Run /compact, or double press esc to go back and remove attachments.",
            ),
        ),
        (
            "API Error: an image in the conversation could not be processed and was removed.",
            _IMAGE,
            (
                "Re-read the file with a different approach if you still need it.",
                "Double press esc to edit your message, or re-read the file if you still need it.",
            ),
        ),
        (
            "API Error: a document in the conversation could not be processed and was removed.",
            _DOCUMENT,
            (
                "Re-read the file with a different approach if you still need it.",
                "Double press esc to edit your message, or re-read the file if you still need it.",
            ),
        ),
        (
            "API Error: this model does not accept PDF documents, so a PDF in the conversation was removed.",
            _DOCUMENT,
            (
                "Ask Claude to read specific pages of the file instead (they are sent as images), or switch to a model "
                "that reads PDFs.",
            ),
        ),
    )
    for way_on in ways_on
}
_SIDES = re.compile(r"base64\.data: (At least one of the image dimensions exceed max allowed size[^:]*: (\d+) pixels)")
_GONE = {"type": "text", "text": "(media removed \N{EM DASH} rejected by API)"}  # in a result that had nothing else
_TOO_LONG = (
    "[Image removed: the API could not process this image ({}). The file may be unsupported or corrupt; do not retry "
    "reading it. If you need to inspect it, use a shell command instead.]"
)


@dataclass(slots=True)
class _LeftOut:
    """What is left out of a message: `kinds`, and images with longer sides than `limit` (for `why`). `since`: the run
    of refusals that took a kind; 0 where an older client recorded it.
    """

    kinds: set[str] = field(default_factory=set)
    limit: int = 0
    why: str = ""
    since: dict[str, int] = field(default_factory=dict)


def without_refused(messages: Sequence[Message], session: Session) -> list[Message]:
    """Leave out of `messages`, which are those of the session in the order of the request, what the client does."""
    left = _left_out(in_place(session.messages))
    found = (_sent(message, left.get(message.id)) for message in messages)
    return [message for message in found if message is not None]


def _left_out(messages: Sequence[Message]) -> dict[str, _LeftOut]:
    left = [_LeftOut() for _ in messages]
    run = 0
    for at, message in enumerate(messages):
        if not _refused(message):
            continue
        run += not (at and _refused(messages[at - 1]) and not _between(message))
        line = message.error or {}
        kinds, sides = _kinds(line), _SIDES.search(_details(line))
        if kinds and sides is not None:
            for one in left[:at]:
                if not one.limit or int(sides[2]) < one.limit:
                    one.limit, one.why = int(sides[2]), sides[1]
        elif kinds:
            _take(messages[: at + 1], left, kinds, run)
    return {message.id: one for message, one in zip(messages, left, strict=True) if one.kinds or one.limit}


def _refused(message: Message) -> bool:
    return message.error is not None and message.data.get("made_up") is True


def _details(line: Json) -> str:
    found = line.get("errorDetails")
    return found if isinstance(found, str) else ""


def _kinds(line: Json) -> frozenset[str]:
    """Tell what a refusal takes, by its words; by the client's own where it kept none that it reads."""
    details = _details(line)
    if details and not details.startswith("{"):
        found = _of_words(details)
        if found:
            return found
    message = line.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    first = content[0] if isinstance(content, list) and content else None
    said = first.get("text") if isinstance(first, Mapping) and first.get("type") == "text" else None
    return _SAID.get(said, frozenset()) if isinstance(said, str) else frozenset()


def _of_words(details: str) -> frozenset[str]:
    lower = details.lower()
    rejected = {match[1] for match in _CAPABILITY.finditer(details)}
    if "request_too_large" in details or "too much media" in lower or "media_budget" in rejected:
        return _BOTH
    if rejected:
        return _IMAGE if "image_block" in rejected else _DOCUMENT
    placed = _PLACED.search(details)
    if placed is not None:
        return _IMAGE if placed[1] == "image" else _DOCUMENT
    if any(words in lower for words in _OF_IMAGES):
        return _IMAGE
    return _DOCUMENT if any(words in lower for words in _OF_DOCUMENTS) else frozenset()


def _take(messages: Sequence[Message], left: Sequence[_LeftOut], kinds: frozenset[str], run: int) -> None:
    """Take the media of the results that the refusal, the last of `messages`, names; of none, those of the nearest line
    that has any which no earlier refusal took. An older client's refusal takes them of what it was an answer to, alone.
    """
    line = messages[-1].error or {}
    distinct, named = line.get("healsDistinctCarrier") is True, line.get("refusedToolUseIds")
    before = range(len(messages) - 2, -1, -1)
    results = [at for at in before if isinstance(named, list) and _gives(messages[at], named)]
    if [at for at in results if _took(messages[at], left[at], kinds, run, distinct=distinct)]:
        return
    attached = False
    for at in before:
        message, between = messages[at], _between(messages[at + 1])
        attached |= "attachment" in between  # it stands behind a result, or an answer, and before a prompt
        ends = between - {"attachment"} or (attached and (message.role == "assistant" or _results(message)))
        if (ends and not distinct) or _took(message, left[at], kinds, run, distinct=distinct):
            return
        if not distinct and not (_refused(message) or _results(message) or message.data.get("meta") is True):
            return


def _between(message: Message) -> set[str]:
    """Name the types of lines between a message and the one before it."""
    found = message.data.get("behind")
    return set(found) if isinstance(found, list) else set()


def _took(message: Message, left: _LeftOut, kinds: frozenset[str], run: int, *, distinct: bool) -> bool:
    held = {kind for part in message.parts for kind in _held(part.data)} & kinds
    if message.role != "user" or (not distinct and message.data.get("attached")):
        return False
    if distinct:
        held = {kind for kind in held if left.since.get(kind, run) == run}
    elif held:
        held = set(kinds)
    left.kinds |= held
    for kind in held:
        left.since.setdefault(kind, run if distinct else 0)
    return bool(held)


def _held(block: object) -> Iterator[str]:
    kind = _type(block)
    if kind in _BOTH:
        yield kind
    content = block.get("content") if kind == "tool_result" and isinstance(block, Mapping) else None
    yield from {_type(item) for item in content} & _BOTH if isinstance(content, list) else ()


def _gives(message: Message, calls: Sequence[object]) -> bool:
    return any((part.data or {}).get("tool_use_id") in calls for part in message.parts if part.type == "tool_result")


def _results(message: Message) -> bool:
    return any(part.type == "tool_result" for part in message.parts)


def _sent(message: Message, left: _LeftOut | None) -> Message | None:
    """Return a message as it is sent; None where nothing of it is left."""
    if message.role != "user" or left is None:
        return message
    kept = (part for part in message.parts if _type(part.data) not in left.kinds)
    parts = tuple(replace(part, data=_shown(part.data, left)) for part in kept)
    return replace(message, parts=parts) if parts or not message.parts else None


def _shown(block: Json | None, left: _LeftOut) -> Json | None:
    put = partial(_worded, left=left)
    if block is None or _type(block) != "tool_result" or not isinstance(block.get("content"), list):
        return None if block is None else put(block)
    content = block["content"]
    kept = [item for item in content if _type(item) not in left.kinds]
    if len(kept) < len(content):
        kept = kept or [_GONE]
    return {**block, "content": [put(item) for item in kept]}


def _worded(block: Any, left: _LeftOut) -> Any:
    """Put words in the place of an image with a side that is too long."""
    source = block.get("source") if _type(block) == "image" else None
    data = source.get("data") if isinstance(source, Mapping) and source.get("type") == "base64" else None
    raw = from_base64(data) if left.limit and isinstance(data, str) else None
    size = pixels(raw) if raw is not None else None
    if size is None or max(size) <= left.limit:
        return block
    return {"type": "text", "text": _TOO_LONG.format(left.why)}


def _type(block: object) -> str:
    return str(block.get("type")) if isinstance(block, Mapping) else ""
