"""Images in the lines that Claude Code puts behind a prompt: of files that it names (`@file`), or of a prompt that came
while a turn was under way. Pure.

Each is sent as an image; a text in its place as the file's, or the prompt's (2.1.330,
tests/e2e/claude_code/test_wire.py and test_heal.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from recoveryd.core import Json

QUEUED = "queued_command"
_Held = tuple[Json, Callable[[str], None]]  # an image as it is sent, and what puts words in its place


def images(attachment: object) -> list[Json]:
    """List the images of an attachment, as blocks, in the order in which they are sent."""
    return [image for image, _ in _held(attachment)]


def put_words(attachment: object, words: Mapping[int, str]) -> None:
    """Put words in the place of images, by their number in `images`."""
    for number, (_, put) in enumerate(list(_held(attachment))):
        if number in words:
            put(words[number])


def _held(attachment: object) -> Iterator[_Held]:
    if not isinstance(attachment, dict):
        return
    if attachment.get("type") == QUEUED:
        yield from _prompt(attachment.get("prompt"))
    content = attachment.get("content")
    if attachment.get("type") != "file" or not isinstance(content, dict) or not isinstance(content.get("file"), dict):
        return
    file = content["file"]
    if content.get("type") == "image":
        yield from _image(file.get("type"), file.get("base64"), partial(_as_text_file, attachment))
    if content.get("type") == "notebook":
        for output in _outputs(file):
            image = output["image"]
            yield from _image(image.get("media_type"), image.get("image_data"), partial(_say, output))


def _prompt(blocks: object) -> Iterator[_Held]:
    if not isinstance(blocks, list):
        return
    for index, block in enumerate(blocks):
        if isinstance(block, dict) and block.get("type") == "image" and isinstance(block.get("source"), dict):
            yield block, partial(_as_text, blocks, index)


def _outputs(file: Json) -> Iterator[dict[str, Any]]:
    """List what the cells of a notebook gave that is an image."""
    cells = file.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, dict) and isinstance(output.get("image"), dict):
                yield output


def _image(media_type: object, data: object, put: Callable[[str], None]) -> Iterator[_Held]:
    if isinstance(media_type, str) and isinstance(data, str):
        yield {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}, put


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
