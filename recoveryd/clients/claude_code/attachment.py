"""Images and documents in the lines that Claude Code puts behind a prompt: of files that it names (`@file`: images
alone), or of a prompt that came while a turn was under way. Pure.

Each is sent as a block; a text in its place as the file's, or the prompt's (2.1.330,
tests/e2e/claude_code/test_wire.py and test_heal.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from recoveryd.core import Json, Message

QUEUED = "queued_command"
_OF_DOCUMENT = ("type", "source", "title", "context", "citations")  # what is sent of one
# Models that are sent no message of the client's own in mid-conversation, so that prompts which waited stay where they
# are: all before Opus 4.8 (2.1.332).
_IN_PLACE = re.compile(r"claude-3|-(opus|sonnet|haiku)-4(?!-[89])")
# Its place in what is attached, an image or document as it is sent, and what puts words there.
_Held = tuple[int, Json, Callable[[str], None]]


def media(attachment: object) -> dict[int, Json]:
    """Return the images and documents of an attachment, as blocks, in the order in which they are sent, by their
    places: these stay where words take the place of one, for two may be the same.
    """
    return {place: block for place, block, _ in _held(attachment)}


def put_words(attachment: object, words: Mapping[int, str]) -> None:
    """Put words in the place of images and documents, by their places as in `media`."""
    for place, _, put in list(_held(attachment)):
        if place in words:
            put(words[place])


def in_sent_order(messages: Iterable[Message], model: str) -> list[Message]:
    """Put what is attached to a prompt before it: a file also before prompts that waited, which are attached, too,
    where the model that is asked has those last.
    """
    return _ordered(messages, in_place=_IN_PLACE.search(model) is not None)


def in_place(messages: Iterable[Message]) -> list[Message]:
    """Put what is attached to a prompt before it, and leave prompts that waited where they are."""
    return _ordered(messages, in_place=True)


def _ordered(messages: Iterable[Message], *, in_place: bool) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        at = len(found)
        while message.data.get("attached") and at and _goes_before(message, found[at - 1], in_place=in_place):
            at -= 1
        found.insert(at, message)
    return found


def _goes_before(attached: Message, other: Message, *, in_place: bool) -> bool:
    if other.data.get("attached"):
        return "added" in attached.data and bool(other.data.get("waited")) and not in_place
    return other.role == "user" and not any(part.type == "tool_result" for part in other.parts)


def _held(attachment: object) -> Iterator[_Held]:
    if not isinstance(attachment, dict):
        return
    if attachment.get("type") == QUEUED:
        yield from _prompt(attachment)
    content = attachment.get("content")
    if attachment.get("type") != "file" or not isinstance(content, dict) or not isinstance(content.get("file"), dict):
        return
    file = content["file"]
    if content.get("type") == "image":
        yield from _image(0, file.get("type"), file.get("base64"), partial(_as_text_file, attachment))
    if content.get("type") == "notebook":
        for place, output in enumerate(_outputs(file)):
            image = output.get("image")
            if isinstance(image, dict):
                yield from _image(place, image.get("media_type"), image.get("image_data"), partial(_say, output))


def _prompt(attachment: Json) -> Iterator[_Held]:
    blocks = attachment.get("prompt")
    if not isinstance(blocks, list) or attachment.get("renderedByBatchHead"):  # what another one tells in its place
        return
    for index, block in enumerate(blocks):
        sent = _sent(block, attachment) if isinstance(block, dict) and isinstance(block.get("source"), dict) else None
        if sent is not None:
            yield index, sent, partial(_as_text, blocks, index)


def _sent(block: Json, prompt: Json) -> Json | None:
    """Make a block of a prompt as it is sent; None where it is not: documents are sent of the user's own prompts."""
    if block.get("type") == "image":
        return block
    origin = prompt.get("origin")
    own = isinstance(origin, dict) and origin.get("kind") == "human" and prompt.get("isMeta") is not True
    if block.get("type") != "document" or not own:
        return None
    return {name: block[name] for name in _OF_DOCUMENT if block.get(name) is not None}


def _outputs(file: Json) -> Iterator[dict[str, Any]]:
    """List what the cells of a notebook gave."""
    cells = file.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, dict):
                yield output


def _image(place: int, media_type: object, data: object, put: Callable[[str], None]) -> Iterator[_Held]:
    if isinstance(media_type, str) and isinstance(data, str):
        yield place, {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}, put


def _as_text_file(attachment: dict[str, Any], words: str) -> None:
    """Make a text of one line of an image's file, as the client writes that of a text."""
    file = {"filePath": attachment.get("filename"), "content": words, "numLines": 1, "startLine": 1, "totalLines": 1}
    attachment["content"] = {"type": "text", "file": file}


def _say(output: dict[str, Any], words: str) -> None:
    del output["image"]
    said = output.get("text")
    output["text"] = f"{said}\n{words}" if isinstance(said, str) and said else words


def _as_text(blocks: list[Any], index: int, words: str) -> None:
    blocks[index] = {"type": "text", "text": words}
