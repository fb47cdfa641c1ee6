"""Sessions whose images or documents Claude Code leaves out: they were refused, or stood nearest to what was."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.e2e.claude_code.attached import document, image_file, notebook, pasted, queued
from tests.support.transcript import Line, Transcript, call, text

IMAGE = "Could not process image"
PDF = "Could not process PDF"
BUDGET = "Too much media: 0 document pages + 24 images > 20"
SIDES = (
    "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for "
    "many-image requests: 9 pixels"
)
REFUSALS = {
    "image": IMAGE,
    "pdf": PDF,
    "budget": BUDGET,
    "place": "messages.2.content.1.tool_result.content.0.image.source.base64: x",
    "place-document": "messages[2].content[1].document.source: x",
    "pages": "A maximum of 100 PDF pages may be provided.",
    "password": "The PDF specified is password protected.",
    "no-pdf": "this model does not support PDF input",
    "request": "request_too_large: 413 too many bytes",
    "capability": "x capability_rejected: image_block y",
    "capability-budget": "x capability_rejected: media_budget",
    "capability-other": "x capability_rejected: image_blocks",
    "sides": SIDES,
    "other": "too many images and documents: 24 + 0 > 20",
}


REMINDER: Line = {"type": "attachment", "attachment": {"type": "todo_reminder", "content": [], "itemCount": 0}}
INFORMED: Line = {"type": "system", "subtype": "informational", "content": "x", "level": "info"}
UNSENT: Mapping[str, Line] = {
    "informed": INFORMED,
    "api-error": {
        "type": "system",
        "subtype": "api_error",
        "level": "error",
        "error": {"status": 529},
        "retryAttempt": 1,
    },
    "duration": {"type": "system", "subtype": "turn_duration", "durationMs": 1},
    "progress": {"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}, "toolUseID": "t1"},
    "hook": {"type": "attachment", "attachment": {"type": "hook_success", "hookEvent": "Stop", "content": "x"}},
}


def left_out(t: Transcript, words: str, *, distinct: bool = True, **fields: Any) -> str:
    """The line about a refusal by which media is left out. `distinct`: as newer clients record it."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    told: Line = {"errorDetails": f"400 {json.dumps(error)}", **({"healsDistinctCarrier": True} if distinct else {})}
    return t.refused(words, **{**told, **fields})


def _media(t: Transcript) -> None:
    """Two images, one that a tool gave, then a large image and a document."""
    t.assistant(text("a"))
    t.user([text("one"), pasted(0), pasted(9)])
    t.assistant(text("b"), call(call_id="t1"))
    t.result("t1", [pasted(1)])
    t.assistant(text("c"))
    t.user([text("two"), document(), pasted(10)])
    t.assistant(text("d"))


def _refused(t: Transcript, words: str, *, times: int = 1, distinct: bool = True) -> None:
    _media(t)
    for number in range(times):
        t.user(f"prompt {number}")
        left_out(t, words, distinct=distinct)
    t.user("on")
    t.assistant(text("done"))


def _newest(t: Transcript, *, distinct: bool = True) -> None:
    """It is the last line."""
    _media(t)
    t.user([text("three"), pasted(2)])
    left_out(t, IMAGE, distinct=distinct)


def _one_run(t: Transcript, between: Line | None = None) -> None:
    """Two refusals with nothing between them take the same; the image alone was all of its prompt."""
    _media(t)
    t.user([pasted(2)])
    left_out(t, IMAGE)
    if between is not None:
        t.add(between)
    left_out(t, IMAGE)
    t.user("on")
    t.assistant(text("done"))


def _old_prompt(t: Transcript, *, between: Callable[[Transcript], object] | None = None) -> None:
    """An older client's, right behind the prompt that it refused."""
    _media(t)
    t.user([text("three"), pasted(2)])
    if between is not None:
        between(t)
    left_out(t, IMAGE, distinct=False)
    t.user("on")
    t.assistant(text("done"))


def _old_then_new(t: Transcript) -> None:
    _old_prompt(t)
    left_out(t, IMAGE)
    t.user("and on")
    t.assistant(text("done"))


def _old_results(t: Transcript, *, middle: bool = False) -> None:
    """An older client's, behind the results of two calls: the first holds the image."""
    t.user([text("one"), pasted(0)])
    t.assistant(text("b"), call(call_id="t1"), call(call_id="t2"))
    t.result("t1", [text("out"), pasted(1)])
    t.result("t2")
    if middle:
        t.user("hint", isMeta=True)
    left_out(t, IMAGE, distinct=False)
    t.user("on")
    t.assistant(text("done"))


def _named(t: Transcript, *, known: bool = True) -> None:
    """The refusal names the results that hold it."""
    _media(t)
    t.user([text("three"), pasted(2)])
    left_out(t, IMAGE, refusedToolUseIds=["t1" if known else "t9"])
    t.assistant(text("done"))


def _in_error(t: Transcript) -> None:
    t.user([text("one"), pasted(0)])
    t.assistant(text("b"), call(call_id="t1"))
    t.result("t1", [text("failed"), pasted(1)], is_error=True)
    left_out(t, IMAGE)
    t.user("on")
    t.assistant(text("done"))


def _attached(t: Transcript, put: Callable[[Transcript], object], *, times: int = 1) -> None:
    """To a prompt that holds an image, too."""
    t.user([text("zero"), pasted(4)])
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    t.assistant(text("b"))
    t.user([text("one"), pasted(0)])
    put(t)
    for number in range(times):
        left_out(t, IMAGE)
        t.user(f"on {number}")
    t.assistant(text("done"))


def _two_files(t: Transcript) -> None:
    image_file(t, 2)
    image_file(t, 3)


def _queued(t: Transcript, words: str, *, times: int = 1, file: bool = False, distinct: bool = True) -> None:
    t.user([text("one"), pasted(0)])
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1", [text("out"), pasted(1)])
    queued(t, pasted(2), document())
    if file:
        image_file(t, 3)
    for number in range(times):
        left_out(t, words, distinct=distinct)
        t.user(f"on {number}")
    t.assistant(text("done"))


def _reminded(t: Transcript, line: Line, *, hint: bool = False, prompt: bool = False) -> None:
    """An older client's, behind a result, or a prompt, and a line of the client's own."""
    t.user([text("one"), pasted(0)])
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1", [text("out"), pasted(1)])
    if prompt:
        t.user([text("two"), pasted(2)])
    if hint:
        t.user("hint", isMeta=True)
    t.add(line)
    left_out(t, IMAGE, distinct=False)
    t.user("on")
    t.assistant(text("done"))


OWN_WORDS = {
    "request": "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the "
    "request over the limit. Remove older images or compact the conversation.",
    "request-of-bytes": "Request too large (max 32MB; 30MB of about 40MB is images or documents). Accumulated images "
    "and attachments in the conversation pushed the request over the limit. Remove older images or compact the "
    "conversation.",
    "pages": "PDF too large (max 100 pages, 20MB). Try reading the file a different way (e.g., extract text with "
    "pdftotext).",
    "password": "PDF is password protected. Try using a CLI tool to extract or convert the PDF.",
    "invalid": "The PDF file was not valid. Try converting it to text first (e.g., pdftotext).",
    "large": "Image was too large. Try resizing the image or using a different approach.",
    "image": "API Error: an image in the conversation could not be processed and was removed. Re-read the file with a "
    "different approach if you still need it.",
    "document": "API Error: a document in the conversation could not be processed and was removed. Re-read the file "
    "with a different approach if you still need it.",
    "no-pdf": "API Error: this model does not accept PDF documents, so a PDF in the conversation was removed. Ask "
    "Claude to read specific pages of the file instead (they are sent as images), or switch to a model that reads "
    "PDFs.",
}
DETAILS = (None, '{"type": "error"}', "request_body_over_limit: body=4B (messages only) media=3B limit=3B")


def _in_own_words(t: Transcript, words: str, details: str | None) -> None:
    """The client's own words tell it."""
    _media(t)
    t.user([text("three"), document(), pasted(2)])
    left_out(t, "x", distinct=False, errorDetails=details)
    line = t.line(-1)
    line["message"] = {**line["message"], "content": [text(words)]}
    t.user("on")
    t.assistant(text("done"))


LEFT_OUT: Mapping[str, Callable[[Transcript], object]] = {
    **{f"left-out-{name}": partial(_refused, words=words) for name, words in REFUSALS.items()},
    "left-out-thrice": partial(_refused, words=IMAGE, times=3),
    "left-out-both-thrice": partial(_refused, words=BUDGET, times=3),
    "left-out-old": partial(_refused, words=IMAGE, distinct=False),
    "left-out-newest": _newest,
    "left-out-newest-old": partial(_newest, distinct=False),
    "left-out-one-run": _one_run,
    "left-out-old-prompt": _old_prompt,
    "left-out-old-prompt-behind-hint": partial(_old_prompt, between=lambda t: t.user("hint", isMeta=True)),
    "left-out-old-prompt-behind-words": partial(
        _old_prompt, between=lambda t: t.user([text("[Request interrupted by user]")])
    ),
    "left-out-old-then-new": _old_then_new,
    "left-out-old-results": _old_results,
    "left-out-old-results-behind-hint": partial(_old_results, middle=True),
    "left-out-named": _named,
    "left-out-named-unknown": partial(_named, known=False),
    "left-out-in-error": _in_error,
    "left-out-attached": partial(_attached, put=_two_files),
    "left-out-attached-twice": partial(_attached, put=_two_files, times=2),
    "left-out-attached-thrice": partial(_attached, put=_two_files, times=3),
    "left-out-notebook": partial(_attached, put=lambda t: notebook(t, 2, 3)),
    "left-out-notebook-twice": partial(_attached, put=lambda t: notebook(t, 2, 3), times=2),
    "left-out-queued": partial(_queued, words=IMAGE),
    "left-out-queued-document": partial(_queued, words=PDF),
    "left-out-queued-both": partial(_queued, words=BUDGET, times=2),
    "left-out-queued-file": partial(_queued, words=IMAGE, file=True),
    "left-out-queued-file-thrice": partial(_queued, words=IMAGE, file=True, times=3),
    "left-out-queued-old": partial(_queued, words=IMAGE, distinct=False),
    "left-out-reminded": partial(_reminded, line=REMINDER),
    "left-out-reminded-behind-hint": partial(_reminded, line=REMINDER, hint=True),
    "left-out-reminded-behind-prompt": partial(_reminded, line=REMINDER, prompt=True),
    "left-out-reminded-behind-prompt-and-hint": partial(_reminded, line=REMINDER, prompt=True, hint=True),
    **{f"left-out-{name}": partial(_reminded, line=line) for name, line in UNSENT.items()},
    **{f"left-out-{name}-behind-hint": partial(_reminded, line=line, hint=True) for name, line in UNSENT.items()},
    **{
        f"left-out-run-{name}": partial(_one_run, between=line)
        for name, line in {**UNSENT, "reminder": REMINDER}.items()
    },
    "left-out-informed-behind-prompt": partial(_reminded, line=INFORMED, prompt=True),
    **{f"left-out-by-{n}": partial(_in_own_words, words=words, details=None) for n, words in OWN_WORDS.items()},
    **{
        f"left-out-by-own-words-{n}": partial(_in_own_words, words=OWN_WORDS["request"], details=details)
        for n, details in enumerate(DETAILS)
    },
}
