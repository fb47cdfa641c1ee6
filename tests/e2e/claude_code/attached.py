"""Images and documents that Claude Code attaches: of files (`@file`), of a notebook, of a prompt that waited."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

from tests.e2e.media import png
from tests.support.transcript import Line, Transcript, call, text

_DONE = text("done")


def _data(number: int) -> str:
    return base64.b64encode(png(3, 3 + number)).decode()


def pasted(number: int) -> Line:
    """An image as a prompt holds it."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _data(number)}}


def document(**fields: object) -> Line:
    """A PDF as a prompt of the SDK's holds it."""
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF-1.4 spec").decode()}
    return {"type": "document", "source": source, "title": "spec", **fields}


def attach(t: Transcript, attachment: Line) -> str:
    return t.add({"type": "attachment", "attachment": attachment, "renderedRole": "user"})


def image_file(t: Transcript, number: int) -> str:
    """`@shot.png`"""
    sides = {"originalWidth": 3, "originalHeight": 3, "displayWidth": 3, "displayHeight": 3}
    file = {"base64": _data(number), "type": "image/png", "originalSize": 99, "dimensions": sides}
    named = {"filename": f"{t.cwd}/shot{number}.png", "displayPath": f"shot{number}.png"}
    return attach(t, {"type": "file", **named, "content": {"type": "image", "file": file}})


def notebook(t: Transcript, *numbers: int) -> str:
    """`@plots.ipynb`, with words beside the first plot."""
    plots = [
        {"output_type": "display_data", "text": "" if place else "<Figure>", "image": image}
        for place, number in enumerate(numbers)
        for image in [{"image_data": _data(number), "media_type": "image/png"}]
    ]
    ran = [{"output_type": "stream", "text": "hey\n"}, *plots]
    cell = {"cellType": "code", "source": "plot()", "execution_count": 1, "cell_id": "a", "language": "python"}
    file = {"filePath": f"{t.cwd}/plots.ipynb", "cells": [{**cell, "outputs": ran}]}
    named = {"filename": f"{t.cwd}/plots.ipynb", "displayPath": "plots.ipynb"}
    return attach(t, {"type": "file", **named, "content": {"type": "notebook", "file": file}})


def queued(t: Transcript, *media: Line, **fields: object) -> str:
    """A prompt that its user sent while a tool ran."""
    prompt = [text("and this"), *media]
    human = {"commandMode": "prompt", "origin": {"kind": "human"}, "humanTurn": True}
    return attach(t, {"type": "queued_command", "prompt": prompt, **human, **fields})


def _files(t: Transcript) -> None:
    t.user("look at @shot0.png and @shot1.png")
    image_file(t, 0)
    image_file(t, 1)
    t.assistant(text("a"))
    t.user([text("and this, @shot2.png"), pasted(3)])
    image_file(t, 2)
    t.assistant(_DONE)


def _notebook(t: Transcript) -> None:
    t.user("look at @plots.ipynb and @shot0.png")
    notebook(t, 1, 2)
    image_file(t, 0)
    t.assistant(_DONE)


def _queued(t: Transcript, *, cut_off: bool = False) -> None:
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    queued(t, pasted(0))
    if not cut_off:
        t.assistant(_DONE)


def _queued_files(t: Transcript, **fields: object) -> None:
    """Two prompts that waited, each with a file, before one that did not."""
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    for number in (0, 2):
        queued(t, pasted(number), **fields)
        image_file(t, number + 1)
    t.user([text("[Request interrupted by user]")])
    t.user([text("and this, @shot5.png"), pasted(4)])
    image_file(t, 5)
    t.assistant(_DONE)


def _queued_documents(t: Transcript) -> None:
    """The last of them stands in no prompt of the user's own; that image is sent, and no document."""
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    queued(t, document(context=None, citations={"enabled": True}, extra=1), pasted(0))
    queued(t, document(source={"type": "url", "url": "http://127.0.0.1:9/gone.pdf"}))
    queued(t, pasted(1), document(), renderedByBatchHead=True)
    queued(t, document(), pasted(2), origin={"kind": "coordinator"})
    t.assistant(_DONE)


def _behind_refusal(t: Transcript) -> None:
    t.user("one @shot0.png")
    image_file(t, 0)
    t.refused("messages.1: x")
    t.user("two @shot1.png")
    image_file(t, 1)
    t.assistant(_DONE)


def _unanswered(t: Transcript) -> None:
    t.user("one @shot0.png")
    image_file(t, 0)
    t.user("two @shot1.png")
    image_file(t, 1)


def _behind_command(t: Transcript) -> None:
    t.assistant(text("a"))
    t.add({"type": "system", "subtype": "local_command", "content": "<command-name>/cost</command-name>"})
    t.add({"type": "system", "subtype": "local_command", "content": "<local-command-stdout>$1</local-command-stdout>"})
    t.user("one @shot0.png")
    image_file(t, 0)
    t.assistant(_DONE)


ATTACHED: Mapping[str, Callable[[Transcript], object]] = {
    "attached-files": _files,
    "attached-notebook": _notebook,
    "attached-queued": _queued,
    "attached-queued-cut-off": partial(_queued, cut_off=True),
    "attached-queued-files": _queued_files,
    "attached-queued-files-of-no-turn": partial(_queued_files, humanTurn=None),
    "attached-queued-documents": _queued_documents,
    "attached-behind-refusal": _behind_refusal,
    "attached-unanswered": _unanswered,
    "attached-behind-command": _behind_command,
}


def too_many(t: Transcript, most: int) -> None:
    """Four images more than the provider takes, in each way that they are attached: the oldest are."""
    numbers = count()
    t.user("look at @shot0.png and @plots.ipynb")
    image_file(t, next(numbers))
    notebook(t, next(numbers), next(numbers))
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    queued(t, pasted(next(numbers)), pasted(next(numbers)))
    t.assistant(text("b"))
    for number in range(5, most + 4):
        t.user(f"@shot{number}.png")
        image_file(t, number)
        t.assistant(text("c"))
    t.user("and now?")
    t.assistant(_DONE)
