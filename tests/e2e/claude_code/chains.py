"""How the lines of a transcript hang together: branches, leaves, answers in parallel, compactions, odd lines."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.e2e import replies
from tests.e2e.claude_code.shapes import Shape
from tests.support.transcript import Line, Transcript, call, dump, text


def _gave(name: str, content: object) -> Line:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def _leaf(t: Transcript, leaf: str | None) -> None:
    t.event({"type": "last-prompt", "lastPrompt": "q", "leafUuid": leaf, "sessionId": t.session})


def _par_each_result(t: Transcript) -> None:
    t.user("q")
    a = t.assistant(text("x"), call(call_id="t1"), call(call_id="t2"))
    t.last = a[1]
    t.user([_gave("t1", "1")], sourceToolAssistantUUID=a[1])
    t.last = a[2]
    t.user([_gave("t2", "2")], sourceToolAssistantUUID=a[2])
    t.assistant(text("done"))


def _par_mixed(t: Transcript) -> None:
    """One result hangs on another, a third on its own call."""
    t.user("q")
    a = t.assistant(text("x"), call(call_id="t1"), call(call_id="t2"), call(call_id="t3"))
    t.user([_gave("t1", "1")])
    t.user([_gave("t2", "2")])
    t.last = a[-1]
    t.user([_gave("t3", "3")])
    t.assistant(text("done"))


def _went_back(t: Transcript) -> None:
    _two_turns(t)
    t.event({"type": "last-prompt", "leafUuid": t.line(1)["uuid"], "explicit": True, "sessionId": t.session})


def _par_interleaved(t: Transcript) -> None:

    t.user("q")
    a = t.assistant(text("x"), call(call_id="t1"))
    m = t.line(-1)["message"]["id"]
    t.user([_gave("t1", "1")])
    t.last = a[-1]
    t.assistant(call(call_id="t2"))
    t.line(-1)["message"]["id"] = m
    t.user([_gave("t2", "2")])
    t.assistant(text("done"))


def _branch_leaf_prompt(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    keep = t.last
    t.user("B")
    t.assistant(text("B answer"))
    leafb = t.last
    t.last = keep
    t.user("C")
    t.assistant(text("C answer"))
    _leaf(t, leafb)


def _null_parent(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    t.last = None
    t.user("after null")
    t.assistant(text("two"))


def _compact_chained(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("old"))
    t.add(
        {
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "manual", "preTokens": 100},
        }
    )
    t.user("This session is being continued. Summary: S", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    t.user("next")
    t.assistant(text("two"))


def _compact_kept(t: Transcript, *, behind: bool) -> None:
    """It says which lines are still sent: `behind` the summary, as an ordinary one, or before it (`/rewind`)."""
    t.user("q")
    t.assistant(text("old"))
    t.user("kept question")
    t.assistant(text("kept answer"))
    kept = [line["uuid"] for line in map(t.line, (2, 3))]
    t.last = None
    anchor = t.add(
        {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False}
    )
    summary = t.user("This session is being continued. Summary: S", isCompactSummary=True)
    segment = {"headUuid": kept[0], "anchorUuid": summary if behind else anchor, "tailUuid": kept[1]}
    listed = {"anchorUuid": segment["anchorUuid"], "uuids": kept, "allUuids": kept}
    t.line(-2)["compactMetadata"] = {"trigger": "manual", "preservedSegment": segment, "preservedMessages": listed}
    t.user("next")
    t.assistant(text("two"))


def _fallback(t: Transcript) -> None:
    t.user("q")
    t.assistant({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, text("one"))
    t.user("two")
    t.assistant(text("three"))


def _meta(t: Transcript) -> None:

    t.user("q")
    t.user("<local-command-caveat>c</local-command-caveat>", isMeta=True)
    t.user("<command-name>/x</command-name>")
    t.assistant(text("one"))


def _system_line(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("one"))
    t.add({"type": "system", "subtype": "turn_duration", "content": "x", "isMeta": False})
    t.add(
        {
            "type": "system",
            "subtype": "local_command",
            "content": "<local-command-stdout>hello</local-command-stdout>",
            "level": "info",
            "isMeta": False,
        }
    )
    t.user("two")
    t.assistant(text("three"))


def _progress(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("one"))
    t.add({"type": "progress", "data": {}})
    t.user("two")
    t.assistant(text("three"))


def _sidechain_inline_last(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    t.user("two")
    t.assistant(text("three"))
    t.user("side", isSidechain=True)
    t.assistant(text("side answer"), isSidechain=True)


def _error_line(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("one"))
    t.user("two")
    t.refused("messages.1: x")
    t.user("three")
    t.assistant(text("four"))


def _error_twice(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("one"))
    t.user("two")
    t.refused("messages.1: x")
    t.user("three")
    t.refused("messages.1: x")


def _attach(t: Transcript) -> None:

    t.user("q")
    t.add(
        {
            "type": "attachment",
            "attachment": {"type": "queued_command", "prompt": "queued words", "commandMode": "prompt"},
        }
    )
    t.assistant(text("one"))
    t.add(
        {
            "type": "attachment",
            "attachment": {
                "type": "file",
                "filename": "/x/a.txt",
                "content": {
                    "type": "text",
                    "file": {
                        "filePath": "/x/a.txt",
                        "content": "hello",
                        "numLines": 1,
                        "startLine": 1,
                        "totalLines": 1,
                    },
                },
                "displayPath": "a.txt",
            },
        }
    )
    t.user("two")
    t.assistant(text("three"))


def _attach_rendered(t: Transcript) -> None:

    t.user("q")
    t.add(
        {
            "type": "attachment",
            "attachment": {"type": "date", "date": "2026-11-22"},
            "rendered": [{"content": "<system-reminder>\nToday X\n</system-reminder>"}],
            "renderedRole": "system",
        }
    )
    t.assistant(text("one"))
    t.user("two")
    t.assistant(text("three"))


def _user_user(t: Transcript) -> None:
    t.user("one")
    t.user("two")
    t.user([text("three"), text("four")])
    t.user("five")
    t.assistant(text("a"))
    t.user("six")
    t.user([text("seven")])


def _asst_asst(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"))
    t.assistant(text("b"))
    t.user("two")


def _asst_last_tool(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"))


def _user_last(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"))
    t.user("unanswered")


def _interrupted(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"))
    t.user([{**_gave("t1", "The user doesn't want to proceed"), "is_error": True}])
    t.user([text("[Request interrupted by user for tool use]")])
    t.user("go")
    t.assistant(text("b"))


def _result_then_user_same(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    t.user("also")
    t.assistant(text("b"))


def _result_img_sibling(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"), call(call_id="t2"))
    t.user([_gave("t1", [text("o")])])
    t.user([text("between")])
    t.user([_gave("t2", "2")])
    t.assistant(text("b"))


def _err_result_img(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"))
    t.user(
        [
            {
                **_gave("t1", [text("o"), {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}]),
                "is_error": True,
            }
        ]
    )
    t.assistant(text("b"))


def _dup_uuid(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"))
    t.lines.append(dict(t.line(-1)))
    t.user("two")
    t.assistant(text("b"))


def _blank_mixed_one_line(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), text(" "), text("c"), one_line=True)
    t.user("two")
    t.assistant(text("b"))


def _tool_use_text_after(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), call(call_id="t1"), text("after"))
    t.result("t1")
    t.assistant(text("b"))


def _no_role(t: Transcript) -> None:
    t.user("q")
    t.line(-1)["message"].pop("role")
    t.assistant(text("a"))
    t.line(-1)["message"].pop("role")
    t.user("two")
    t.assistant(text("b"))


def _no_message(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"))
    t.add({"type": "user"})
    t.user("two")
    t.assistant(text("b"))


def _no_msg_id(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"), text("a2"))
    t.line(-1)["message"].pop("id")
    t.line(-2)["message"].pop("id")
    t.user("two")
    t.assistant(text("b"))


def _cr_lines(t: Transcript) -> None:
    t.user("q")
    t.assistant(text("a"))
    t.lines = [dump(line).rstrip(b"\n") + b"\r\n" for line in t.lines if isinstance(line, dict)]
    t.user("two")
    t.assistant(text("b"))


def _stale_last_prompt(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    _leaf(t, t.last)
    t.user("two")
    t.assistant(text("three"))


def _stale_last_prompt_branch(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    k = t.last
    t.user("two")
    t.assistant(text("three"))
    _leaf(t, t.last)
    t.last = k
    t.user("two b")
    t.assistant(text("three b"))


def _last_prompt_unknown(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    _leaf(t, str(uuid.uuid4()))
    t.user("two")
    t.assistant(text("three"))


def _last_prompt_user(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    u = t.user("two")
    t.assistant(text("three"))
    _leaf(t, u)


def _last_prompt_two_leaves(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("one"))
    k = t.last
    _leaf(t, t.last)
    t.user("two")
    t.assistant(text("three"))
    t.last = k
    t.user("two b")
    t.assistant(text("three b"))


def _thinking_mixed(t: Transcript) -> None:

    t.user("q")
    t.assistant(replies.thinking("hm"), text("x"), call(call_id="t1"))
    t.user([_gave("t1", "1")])
    t.assistant(replies.thinking("hm2"), text("done"))


def _calls_among_thinking(t: Transcript) -> None:
    """The client puts calls last, but where that brought two thinkings together that one thing stands between. So it
    keeps a blank line there.
    """
    orders = ("HCH", "CHH", "HCTH", "CHT", "HCCHT", "HDH", "HDDH", "HXH", "HXXH", "TDC", "HXCH", "XCH", "HCHC")
    blank = ("HBHT", "HBHC", "HBBHC", "HBCH", "HCBHT", "HEHT", "HBH", "HBHB", "TBC")
    for number, order in enumerate((*orders, *orders, *blank)):
        sorts: dict[str, Line] = {
            "H": replies.thinking("hm"),
            "T": text("a"),
            "B": text("\n\n"),
            "E": text(""),
            "D": call(call_id="toolu_again"),
            "X": {"type": "server_tool_use", "id": "srvtoolu_lost", "name": "web_search", "input": {"query": "x"}},
        }
        blocks = [call(call_id=f"toolu_{number}_{at}") if sort == "C" else sorts[sort] for at, sort in enumerate(order)]
        t.user(f"question {number}")
        t.assistant(*blocks, one_line=number < len(orders))
        t.user([_gave(block["id"], "x") for block in blocks if block["type"] == "tool_use"] or "on")
        t.assistant(text("done"))


def _empty_ids_parallel(t: Transcript) -> None:

    t.user("q")
    t.assistant(text("x"), call(call_id=""), call(call_id=""))
    t.user([_gave("", "1"), _gave("", "2")])
    t.assistant(text("done"))


def _two_turns(t: Transcript) -> None:
    for words in ("one", "two"):
        t.user(f"question {words}")
        t.assistant(text(f"answer {words}"))


def _loop(t: Transcript) -> None:
    """A line names one that comes behind it: the line before it is taken for its parent."""
    _two_turns(t)
    t.line(2)["parentUuid"] = t.line(3)["uuid"]


def _loop_of_itself(t: Transcript) -> None:
    _two_turns(t)
    t.line(-1)["parentUuid"] = t.line(-1)["uuid"]


def _loop_from_the_first(t: Transcript) -> None:
    _two_turns(t)
    t.line(0)["parentUuid"] = t.line(-1)["uuid"]


def _same_uuid_other_words(t: Transcript) -> None:
    """The last of them counts, in the place of the first."""
    _two_turns(t)
    t.lines.append({**t.line(2), "message": {"role": "user", "content": "other words"}})
    t.user("question three")
    t.assistant(text("answer three"))


def _same_uuid_other_parent(t: Transcript) -> None:
    _two_turns(t)
    t.lines.append({**t.line(2), "parentUuid": t.line(0)["uuid"]})


def _broken_utf8(t: Transcript) -> None:
    _two_turns(t)
    t.lines[2] = dump(t.line(2)).replace(b"question", b"quest\xffion")


def _not_a_number(t: Transcript) -> None:
    """NaN is no JSON: the line is passed over."""
    _two_turns(t)
    t.lines[2] = dump(t.line(2)).replace(b'"isSidechain":false', b'"isSidechain":false,"n":NaN')


def _marks(t: Transcript) -> None:
    """A byte order mark belongs before the first line alone."""
    _two_turns(t)
    t.lines[2] = b"\xef\xbb\xbf" + dump(t.line(2))
    t.lines[0] = b"\xef\xbb\xbf" + dump(t.line(0))


def _killed(t: Transcript, written: Sequence[str] = (), *, one_line: bool = False) -> None:
    """The client was killed in the middle of parallel tools: some results were written."""
    t.user("q")
    t.assistant(text("x"), call(call_id="t1"), call(call_id="t2"), call(call_id="t3"), one_line=one_line)
    for name in written:
        t.user([_gave(name, "out")])


def _lost(t: Transcript, written: Sequence[str] = (), *, one_line: bool) -> None:
    """It went on without some results."""
    _killed(t, written, one_line=one_line)
    t.assistant(text("done"))
    t.user("next")
    t.assistant(text("a"))


def _lost_thinking(t: Transcript) -> None:
    t.user("q")
    t.assistant(replies.thinking("hm"), call(call_id="t1"))
    t.user("next")
    t.assistant(text("a"))


def _thought_last(t: Transcript) -> None:
    """Its user stopped it before it said a word."""
    _two_turns(t)
    t.user("next")
    t.assistant(replies.thinking("hm"))


def _result_late(t: Transcript) -> None:
    """A result stands behind the next turn."""
    _killed(t, ("t1", "t3"))
    t.user("next")
    t.assistant(text("a"))
    t.user([_gave("t2", "late")])
    t.assistant(text("b"))


def _called_again(t: Transcript) -> None:
    """One id in two turns: nothing is left of the second answer."""
    for _ in range(2):
        t.user("q")
        t.assistant(call(call_id="t1"))
        t.user([_gave("t1", "1")])
        t.assistant(text("done"))


def _orphan_first(t: Transcript) -> None:
    t.lines.clear()
    t.last = None
    t.user([_gave("t9", "1")])
    t.assistant(text("a"))


def _command(t: Transcript, **fields: object) -> None:
    said = {"content": "<local-command-stdout>hello</local-command-stdout>", "level": "info", "isMeta": False}
    t.add({"type": "system", "subtype": "local_command", **said, **fields})


def _command_last(t: Transcript, *, unanswered: bool) -> None:
    _two_turns(t)
    if unanswered:
        t.user("waits")
    _command(t)


def _command_after_result(t: Transcript) -> None:
    t.user("q")
    t.assistant(call(call_id="t1"))
    t.user([_gave("t1", "1")])
    _command(t)


def _command_shown_only(t: Transcript) -> None:
    """`/context` is drawn for the user alone."""
    _two_turns(t)
    _command(t, isDisplayOnly=True)
    t.user("next")
    t.assistant(text("a"))


def _far_parent(t: Transcript) -> None:
    """A line whose parent is not there belongs to the one before it only if that came within five seconds."""
    _lost_parent(t, 4_001)


def _near_parent(t: Transcript) -> None:
    _lost_parent(t, 4_000)


def _lost_parent(t: Transcript, later_ms: int) -> None:
    _two_turns(t)
    t.ms += later_ms
    t.user("without a parent")
    t.line(-1)["parentUuid"] = str(uuid.uuid4())
    t.assistant(text("a"))


def _parent_of_the_time(t: Transcript) -> None:
    """Times run back: the nearest line that is older is the parent."""
    _two_turns(t)
    t.user("earlier")
    t.line(-1).update(parentUuid=str(uuid.uuid4()), timestamp=t.line(0)["timestamp"])
    t.assistant(text("a"))


def _leaf_left(t: Transcript) -> None:
    """What was said behind the noted leaf is left where the newest line is of another branch."""
    first = t.user("q")
    t.assistant(text("one"))
    _leaf(t, t.last)
    t.user("two")
    t.assistant(text("three"))
    t.last = first
    t.user("two b")


def _leaf_before_compaction(t: Transcript) -> None:
    _two_turns(t)
    _leaf(t, t.last)
    t.last = None
    t.add({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False})
    t.user("This session is being continued. Summary: S", isCompactSummary=True)
    t.user("next")
    t.assistant(text("two"))


def _leaf_before_sidechain(t: Transcript) -> None:
    """The way on from the noted leaf leads over a line of a subagent's."""
    _two_turns(t)
    _leaf(t, t.last)
    t.user("side", isSidechain=True)
    t.user("next")
    t.assistant(text("a"))


def _hollow(t: Transcript) -> None:
    """Lines without a block, as a repair leaves them, beside others of their answer."""
    for blocks in (
        (text("x"), None),
        (None, text("x")),
        (None, None),
        (replies.thinking("a"), None),
        (None, replies.thinking("a")),
        (text("x"), replies.thinking("a"), None),
        (text(" "), None),
        (text("x"), None, call(call_id="t1")),
    ):
        t.user("q")
        t.assistant(*(text("taken out") if block is None else block for block in blocks))
        for at, block in enumerate(reversed(blocks)):
            if block is None:
                t.line(-1 - at)["message"]["content"] = []
    t.user([_gave("t1", "1")])
    t.assistant(text("done"))


def _retracted(t: Transcript, *, by: str, names: str) -> None:
    """A reply that the client takes back, as its tool call could not be parsed, or a safeguard stopped it."""
    t.user("q")
    gone = t.assistant(text("taken back"), call(call_id="t0"), stop="end_turn")
    if names == "with a result":
        gone.append(t.user([_gave("t0", "1")]))
    elif names == "the call alone":
        gone = gone[1:]
    listed: dict[str, Any] = {"retractedMessageUuids": gone}
    if by == "notice":
        models = {"originalModel": "a", "fallbackModel": "b"}
        fields = {"trigger": "refusal", "direction": "retry", "scope": "session", "isMeta": False, **models, **listed}
        t.add({"type": "system", "subtype": "model_refusal_fallback", "content": "x", "level": "warning", **fields})
    elif by == "nudge":
        t.user("Your tool call could not be parsed.", isMeta=True, **listed)
    else:
        t.refused("x", apiError="malformed_tool_use_exhausted", **listed)
        t.user("again")
    t.assistant(text("done"))
    t.user("next")
    t.assistant(text("a"))


def _retracted_and_removed(t: Transcript, later_ms: int) -> None:
    """Mostly the client takes such a reply out of the file, too: what came behind it names a line that is not there."""
    _two_turns(t)
    t.user("q")
    t.ms += later_ms
    gone = t.assistant(text("taken back"))
    t.lines.pop()
    t.add({"type": "attachment", "attachment": {"type": "date", "date": "2026-11-22"}})
    t.user("Your tool call could not be parsed.", isMeta=True, retractedMessageUuids=gone)
    t.assistant(text("done"))


def _ended(t: Transcript, stop: str = "stop_sequence", **fields: Any) -> None:
    """A turn that ended with an error of which the client has a name of its own."""
    t.user("q")
    t.assistant(text("one"))
    t.user("two")
    t.refused("x", **fields)
    t.line(-1)["message"]["stop_reason"] = stop
    t.user("three")
    t.assistant(text("four"))


CHAINS: Mapping[str, Shape] = {
    **{
        f"retracted-{by}-{names.replace(' ', '-')}": partial(_retracted, by=by, names=names)
        for by in ("notice", "nudge", "error")
        for names in ("all", "the call alone", "with a result")
    },
    "retracted-and-removed": partial(_retracted_and_removed, later_ms=1_000),
    "retracted-and-removed-late": partial(_retracted_and_removed, later_ms=60_000),
    "ended-declined": partial(_ended, stop="refusal", refusedMessageId="msg_1"),
    "ended-dlp": partial(_ended, apiError="dlp_request_denied"),
    "ended-thrashing": partial(_ended, apiError="autocompact_thrashing"),
    "ended-over-context": partial(_ended, apiError="message_over_context_limit"),
    "ended-unattended": partial(_ended, apiError="unattended_start_unconfirmed"),
    "hollow": _hollow,
    "killed-none-written": _killed,
    "killed-one-written": partial(_killed, written=("t1", "t2")),
    "killed-last-written": partial(_killed, written=("t3",)),
    "killed-in-one-line": partial(_killed, written=("t2",), one_line=True),
    "lost-results": partial(_lost, written=("t1",), one_line=False),
    "lost-results-in-one-line": partial(_lost, written=("t2",), one_line=True),
    "lost-all-in-one-line": partial(_lost, one_line=True),
    "lost-thinking": _lost_thinking,
    "thought-last": _thought_last,
    "result-late": _result_late,
    "called-again": _called_again,
    "orphan-first": _orphan_first,
    "command-last": partial(_command_last, unanswered=False),
    "command-last-unanswered": partial(_command_last, unanswered=True),
    "command-after-result": _command_after_result,
    "command-shown-only": _command_shown_only,
    "far-parent": _far_parent,
    "near-parent": _near_parent,
    "parent-of-the-time": _parent_of_the_time,
    "leaf-left": _leaf_left,
    "leaf-before-compaction": _leaf_before_compaction,
    "leaf-before-sidechain": _leaf_before_sidechain,
    "par-each-result": _par_each_result,
    "par-interleaved": _par_interleaved,
    "par-mixed": _par_mixed,
    "went-back": _went_back,
    "branch-leaf-prompt": _branch_leaf_prompt,
    "stale-last-prompt": _stale_last_prompt,
    "stale-last-prompt-branch": _stale_last_prompt_branch,
    "last-prompt-unknown": _last_prompt_unknown,
    "last-prompt-user": _last_prompt_user,
    "last-prompt-two-leaves": _last_prompt_two_leaves,
    "null-parent": _null_parent,
    "compact-chained": _compact_chained,
    "compact-kept-behind": partial(_compact_kept, behind=True),
    "compact-kept-before": partial(_compact_kept, behind=False),
    "fallback": _fallback,
    "meta": _meta,
    "system-line": _system_line,
    "progress": _progress,
    "sidechain-inline-last": _sidechain_inline_last,
    "error-line": _error_line,
    "error-twice": _error_twice,
    "attach": _attach,
    "attach-rendered": _attach_rendered,
    "user-user": _user_user,
    "asst-asst": _asst_asst,
    "asst-last-tool": _asst_last_tool,
    "user-last": _user_last,
    "interrupted": _interrupted,
    "result-then-user-same": _result_then_user_same,
    "result-img-sibling": _result_img_sibling,
    "err-result-img": _err_result_img,
    "dup-uuid": _dup_uuid,
    "blank-mixed-one-line": _blank_mixed_one_line,
    "tool-use-text-after": _tool_use_text_after,
    "no-role": _no_role,
    "no-message": _no_message,
    "no-msg-id": _no_msg_id,
    "cr-lines": _cr_lines,
    "thinking-mixed": _thinking_mixed,
    "calls-among-thinking": _calls_among_thinking,
    "empty-ids-parallel": _empty_ids_parallel,
    "loop": _loop,
    "loop-of-itself": _loop_of_itself,
    "loop-from-the-first": _loop_from_the_first,
    "same-uuid-other-words": _same_uuid_other_words,
    "same-uuid-other-parent": _same_uuid_other_parent,
    "broken-utf8": _broken_utf8,
    "not-a-number": _not_a_number,
    "marks": _marks,
}
