"""Transcripts of Claude Code: those that are refused for good, those that the client mends, and healthy ones.

A shape fills a `Transcript` that begins with an answered question. What a stuck one is about, and whom it happened to,
is in the table of the issue; more follow from the provider's schema.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.e2e import replies
from tests.e2e.claude_code.attached import pasted, queued, too_many
from tests.e2e.claude_code.client import GONE_FILE, GONE_URL, MOST_IMAGES
from tests.e2e.claude_code.left_out import IMAGE, left_out
from tests.e2e.media import png
from tests.support.transcript import Line, Transcript, call, text

Shape = Callable[[Transcript], object]

DONE = text("done")
REDACTED: Line = {"type": "redacted_thinking", "data": "c2Vl"}
IMAGE_URL: Line = {"type": "image", "source": {"type": "url", "url": GONE_URL}}
IMAGE_FILE: Line = {"type": "image", "source": {"type": "file", "file_id": GONE_FILE}}
DOCUMENT_URL: Line = {"type": "document", "source": {"type": "url", "url": GONE_URL}, "title": "Plan"}
DOCUMENT_FILE: Line = {"type": "document", "source": {"type": "file", "file_id": GONE_FILE}}


def says(*blocks: Any, one_line: bool = False) -> Shape:
    """An answer with these blocks, and words behind them."""
    return lambda t: t.assistant(text("a"), *blocks, DONE, one_line=one_line)


def calls(*uses: Any, results: tuple[Any, ...] = ()) -> Shape:
    """An answer with these calls, and what came back from each."""

    def shape(t: Transcript) -> None:
        t.assistant(text("a"), *uses)
        for number, use in enumerate(uses):
            content = results[number] if results else f"output {number}"
            t.user(
                [{"tool_use_id": use["id"], "type": "tool_result", "content": content}]
                if "id" in use
                else [{"type": "tool_result", "content": content}]
            )
        t.assistant(DONE)

    return shape


def gives(*items: Any, **fields: Any) -> Shape:
    """A call whose result holds these items."""

    def shape(t: Transcript) -> None:
        t.assistant(text("a"), call())
        t.user([{"tool_use_id": "toolu_01", "type": "tool_result", "content": [text("out"), *items], **fields}])
        t.assistant(DONE)

    return shape


def waits(*media: Line) -> Shape:
    """A prompt with these, sent while a tool ran."""

    def shape(t: Transcript) -> None:
        t.assistant(text("a"), call())
        t.result("toolu_01")
        queued(t, *media)
        t.assistant(DONE)

    return shape


def asks(content: Any) -> Shape:
    """A prompt with this content, and its answer."""

    def shape(t: Transcript) -> None:
        t.assistant(text("a"))
        t.user(content)
        t.assistant(DONE)

    return shape


def server(name: str = "srvtoolu_01", tool: str = "web_search", **fields: Any) -> Line:
    return {"type": "server_tool_use", "id": name, "name": tool, "input": {"query": "x"}, **fields}


def found(name: str = "srvtoolu_01", kind: str = "web_search_tool_result") -> Line:
    result = {"type": "web_search_result", "url": "http://x", "title": "t", "encrypted_content": "abc"}
    return {"type": kind, "tool_use_id": name, "content": [result]}


def searched(*tools: str, name: str = "srvtoolu_01") -> tuple[Line, Line]:
    """The provider's own search for tools, and what it found."""
    names = [{"type": "tool_reference", "tool_name": tool} for tool in tools]
    result = {"type": "tool_search_tool_search_result", "tool_references": names}
    found = {"type": "tool_search_tool_result", "tool_use_id": name, "content": result}
    return server(name, tool="tool_search_tool_regex"), found


def without(block: Line, *names: str) -> Line:
    return {key: value for key, value in block.items() if key not in names}


def both(*shapes: Shape) -> Shape:
    """One fault after the other."""

    def shape(t: Transcript) -> None:
        for number, one in enumerate(shapes):
            if number:
                t.user(f"question {number}")
            one(t)

    return shape


def first_blank(t: Transcript) -> None:
    t.lines.clear()
    t.last = None
    t.user("  ")
    t.assistant(text("a"))


def compacted(t: Transcript) -> None:
    """The fault before the summary is not sent; the one behind it is."""
    says(server("call_old"), found("call_old"))(t)
    t.last = None
    t.add({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False})
    t.user("This session is being continued. Summary: S", isCompactSummary=True)
    t.assistant(text("go on"))
    t.user("next")
    says(server("call_new"), found("call_new"))(t)


def parallel(t: Transcript) -> None:
    """Two calls of one answer, each with a result of its own behind it."""
    lines = t.assistant(text("a"), call(call_id="call:1"), call(call_id="call:2"))
    for number in (1, 2):
        t.last = lines[number]
        t.result(
            f"call:{number}",
            f"output {number}",
        )
    t.assistant(DONE)


def other_maker(t: Transcript) -> None:
    """Its user began it with a model of another maker, whose ids are others."""
    calls(call(call_id="functions.Bash:0"))(t)
    t.by("kimi-k2-turbo-preview")


def shots(t: Transcript) -> None:
    """More screenshots than the provider takes."""
    for number in range(MOST_IMAGES + 4):
        data = base64.b64encode(png(3, 3 + number)).decode()
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        calls(call(call_id=f"toolu_shot{number}", name="mcp__shots__shot"), results=([text("a shot"), image],))(t)
        t.user(f"question {number}")
    t.assistant(DONE)


def shots_left_out(t: Transcript) -> None:
    """Some more were refused, and are not sent any more."""
    shots(t)
    t.user([text("these?"), *map(pasted, range(40, 43))])
    left_out(t, IMAGE)
    t.assistant(DONE)


def thought_behind(t: Transcript) -> None:
    """Its user stopped it while it thought, behind words and as a whole; nobody sends the second one."""
    t.assistant(text("a"), REDACTED, replies.thinking("hm"))
    t.user("go on")
    t.assistant(replies.thinking("ho"))
    t.user("more")
    t.assistant(DONE)


def thought_between(t: Transcript) -> None:
    """Thinking on both sides of a call, as of another maker's model: the client leaves it so."""
    t.assistant(replies.thinking("why"), call(), replies.thinking("then"))
    t.result("toolu_01")
    t.user("and")
    t.assistant(replies.thinking("hm"), call(call_id="t2"), REDACTED, text("b"), call(call_id="t3"), one_line=True)
    t.user([{"tool_use_id": name, "type": "tool_result", "content": "x"} for name in ("t2", "t3")])
    t.assistant(DONE)


def many(t: Transcript) -> None:
    for number in range(12):
        calls(call(call_id=f"call:{number}", name="my tool"))(t)
        t.user(f"question {number}")
    t.assistant(DONE)


# Each heals by an edit.
STUCK: Mapping[str, Shape] = {
    "call-id": calls(call(call_id="call:1|x")),
    "call-id-empty": calls(call(call_id="")),
    "call-id-number": calls(call(call_id=7)),
    "call-id-null": calls(call(call_id=None)),
    "call-id-missing": calls(without(call(), "id")),
    "call-id-of-another-maker": other_maker,
    "call-ids-parallel": parallel,
    "call-ids-parallel-empty": calls(call(call_id=""), call(call_id="")),
    "call-name": calls(call(name="my tool.x")),
    "call-name-empty": calls(call(name="")),
    "call-name-missing": calls(without(call(), "name")),
    "call-input-json": calls({**call(), "input": '{"command":"ls"}'}),
    "call-input-text": calls({**call(), "input": "ls -l"}),
    "call-input-list": calls({**call(), "input": ["ls"]}),
    "call-input-null": calls({**call(), "input": None}),
    "call-input-missing": calls(without(call(), "input")),
    "server-id": says(server("call_abc"), found("call_abc")),
    "server-id-one-line": says(server("call_abc"), found("call_abc"), one_line=True),
    "server-ids-two": says(server("call-1"), found("call-1"), server("call-2"), found("call-2")),
    "server-name": says(server(tool="webSearchPrime"), found()),
    "server-name-of-fetch": says(server(tool="reader"), found(kind="web_fetch_tool_result")),
    "server-input": says({**server(), "input": "x"}, found()),
    "server-result-alone": says(found()),
    "server-result-alone-of-another-maker": says(found("call_x"), text("and"), found("")),
    "server-result-of-another-call": says(server("call_1"), found("call_2")),
    "mcp-id": says(
        {"type": "mcp_tool_use", "id": "a:b", "name": "n", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "a:b", "is_error": False, "content": [text("x")]},
    ),
    "unknown-block": says({"type": "foo", "data": "x"}),
    "unknown-block-alone": lambda t: (t.assistant({"type": "reasoning", "summary": "why"}), t.user("more")),
    "unknown-block-of-user": asks([text("see"), {"type": "foo", "x": 1}]),
    "extra-field": says(text("b", foo=1)),
    "extra-field-of-call": calls(call(text="x")),
    "extra-field-of-thinking": says({**replies.thinking("hm"), "foo": 1}),
    "extra-field-of-result": lambda t: gives(foo=1)(t),
    "citations-text": says(text("b", citations="x")),
    "citations-object": says(text("b", citations={"enabled": True})),
    "signature-null": says({"type": "thinking", "thinking": "hm", "signature": None}),
    "thinking-blank": both(
        says(replies.thinking("why")), says(replies.thinking("\n")), says({**replies.thinking(" "), "signature": "abc"})
    ),
    "thinking-blank-of-a-call": lambda t: (
        t.assistant(replies.thinking("\n"), call(call_id="toolu_blank")),
        t.result("toolu_blank"),
    ),
    "thinking-last": thought_behind,
    "thinking-behind-a-call": thought_between,
    "blank-between-thinking": lambda t: (
        t.assistant(replies.thinking("why"), text("\n\n"), replies.thinking("then"), call()),
        t.result("toolu_01"),
        t.assistant(DONE),
    ),
    "images-too-many": shots,
    "images-too-many-and-left-out": shots_left_out,
    "images-too-many-attached": partial(too_many, most=MOST_IMAGES),
    "nested-unknown": gives({"type": "resource", "resource": {"uri": "x", "text": "hello"}}),
    "nested-audio-and-unknown": gives({"type": "audio", "data": "x"}, text("b"), {"type": "foo"}),
    "nested-string": gives("words"),
    "nested-null": gives(None),
    "nested-extra-field": gives(text("x", foo=1)),
    "nested-text-object": gives({"type": "text", "text": {"a": 1}}),
    "nested-blank": gives(text(" ")),
    "result-null": calls(call(), results=(None,)),
    "result-error-flag": lambda t: gives(is_error="yes")(t),
    "blank-prompt": asks("   "),
    "blank-prompt-empty": asks(""),
    "blank-prompt-first": first_blank,
    "blank-text-in-a-line": says(text(" "), one_line=True),
    "image-url": asks([text("see"), IMAGE_URL]),
    "image-file": asks([text("see"), IMAGE_FILE]),
    "document-url": asks([text("see"), DOCUMENT_URL]),
    "document-file": asks([text("see"), DOCUMENT_FILE]),
    "document-file-waited": waits(DOCUMENT_FILE),
    "upload-file": asks([text("see"), {"type": "container_upload", "file_id": GONE_FILE}]),
    "nested-image-url": gives(IMAGE_URL),
    "nested-document-file": gives(DOCUMENT_FILE),
    "tool-gone": says(*searched("WaitForMcpServers", "Bash")),
    "tools-gone-of-a-server": both(
        says(*searched("mcp__t__a", "mcp__t__b", "Bash", "mcp__t__a")), says(*searched("mcp__t__c", name="srvtoolu_02"))
    ),
    "combined": both(
        calls(call(call_id="a:b", name="x y")), says(server("call_1"), found("call_1")), says({"type": "foo"})
    ),
    "combined-fields": both(says(text("b", foo=1, citations="x")), gives({"type": "foo"}, text("", bar=2))),
    "compacted": compacted,
    "many": many,
}
# What CI tries; TEST_RECOVERYD_FULL_CLIENTS=1 tries all.
CHOSEN = (
    "call-id",
    "call-id-of-another-maker",
    "call-ids-parallel",
    "call-name-empty",
    "call-input-text",
    "server-id",
    "server-name",
    "server-result-of-another-call",
    "unknown-block",
    "extra-field",
    "citations-text",
    "thinking-blank",
    "thinking-last",
    "thinking-behind-a-call",
    "blank-between-thinking",
    "images-too-many",
    "images-too-many-and-left-out",
    "images-too-many-attached",
    "nested-unknown",
    "blank-prompt",
    "image-url",
    "document-file-waited",
    "nested-document-file",
    "tools-gone-of-a-server",
    "combined",
)


def _parallel_missing(t: Transcript) -> None:
    t.assistant(text("a"), call(call_id="t1"), call(call_id="t2"))
    t.result("t1")
    t.assistant(DONE)


def _branch(t: Transcript) -> None:
    """What the user went back from is not sent, so its fault is none."""
    t.assistant(text("one"))
    kept = t.last
    t.user("given up")
    says(server("call_1"), found("call_1"))(t)
    t.last = kept
    t.user("kept")
    t.assistant(text("kept answer"))


def _sidechain(t: Transcript) -> None:
    t.assistant(text("one"))
    kept = t.last
    t.user("side", isSidechain=True)
    t.assistant(text("side answer"), isSidechain=True)
    t.last = kept
    t.user("two")
    t.assistant(text("three"))


def _torn(t: Transcript) -> None:
    t.assistant(text("one"))
    t.event(b'{"type":"user","mess\n')
    t.user("two")
    t.assistant(text("three"))


def _gap(t: Transcript) -> None:
    t.assistant(text("one"))
    t.last = "00000000-0000-4000-8000-000000000000"
    t.user("behind a gap")
    t.assistant(text("two"))


# The client mends these, or nothing is wrong with them: they keep every byte.
SOUND: Mapping[str, Shape] = {
    "tool-gone-of-own-search": calls(
        call(name="ToolSearch", given={"query": "mcp"}),
        results=([{"type": "tool_reference", "tool_name": "WaitForMcpServers"}],),
    ),
    "healthy": calls(call()),
    "healthy-fallback": says({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    "healthy-server": says(server(), found()),
    "healthy-citations": says(
        text(
            "b",
            citations=[
                {
                    "type": "web_search_result_location",
                    "url": "u",
                    "title": "t",
                    "encrypted_index": "x",
                    "cited_text": "c",
                }
            ],
        )
    ),
    "citations-not-whole": says(text("b", citations=[{"type": "char_location"}])),
    "thinking-behind-a-call-alone": lambda t: (
        t.assistant(text("a"), call(), replies.thinking("hm")),
        t.result("toolu_01"),
        t.assistant(DONE),
    ),
    "half-character": says(text("a\ud83d b")),
    "call-without-result": lambda t: (t.assistant(text("a"), call()), t.user("more"), t.assistant(DONE)),
    "call-without-result-in-parallel": _parallel_missing,
    "result-without-call": lambda t: (t.assistant(text("a")), t.result("toolu_09"), t.assistant(DONE)),
    "call-twice": both(calls(call()), calls(call())),
    "foreign-thinking": says({"type": "thinking", "thinking": "hm", "signature": "nope"}),
    "unsigned-thinking": says({"type": "thinking", "thinking": "hm"}),
    "thinking-alone": lambda t: (t.assistant(replies.thinking("hm")), t.user("more"), t.assistant(DONE)),
    "blank-beside-thinking": says(text(" "), replies.thinking("hm"), text("\n\n"), call(), text(" ")),
    "blank-answer": lambda t: (t.assistant(text(" ")), t.user("more"), t.assistant(DONE)),
    "blank-list": asks([text(" ")]),
    "image-damaged": gives({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
    "server-call-alone": says(server("call_1")),
    "long-name": calls(call(name="x" * 300)),
    "given-up-branch": _branch,
    "sidechain-in-the-file": _sidechain,
    "torn-line": _torn,
    "gap": _gap,
}


def built(t: Transcript, shape: Shape) -> Transcript:
    """A transcript with this shape behind a first answer."""
    t.user("first question")
    t.assistant(text("first answer"))
    t.user("second question")
    shape(t)
    return t
