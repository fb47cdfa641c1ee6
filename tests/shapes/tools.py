"""Tool calls whose results do not stand right behind them, and answers that stand behind answers."""

from __future__ import annotations

from tests.e2e.media import data_url, png
from tests.shapes.registry import broken, healthy
from tests.support.build import SessionBuilder
from tests.support.parts import aborted, compaction, file, reasoning, step_start, text, tool

KIND = "tool_result_missing"
BOTH = (False, True)


@broken(KIND, thinking=BOTH, deep=True, newer="healthy")
def tool_then_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), text("and that was it"))
    s.user("thanks")
    s.assistant("you are welcome")


@broken(KIND, thinking=BOTH, deep=True)
def tool_then_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), reasoning("an afterthought"), text("so"))
    s.user("thanks")
    s.assistant("you are welcome")


@broken(KIND, newer="healthy")
def tool_then_text_open(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("it is the last message"))


@broken(KIND, thinking=(True,), newer="healthy")
def tool_then_text_open_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), text("it is the last message"))


@broken(KIND, thinking=BOTH, newer="healthy")
def text_between_tools(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("first"), tool(), text("then"), tool("read", {"filePath": "/a"}))
    s.assistant("both done")


@broken(KIND, newer="healthy")
def three_tools_two_texts(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("one"), tool(), text("two"), tool(), text("three"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, deep=True, newer="healthy")
def failed_tool_then_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(status="error", output="no such file"), text("it failed"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, newer="healthy")
def running_tool_then_text_after_crash(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(status="running"), text("while it runs"), completed=False)


@broken(KIND, newer="healthy")
def pending_tool_then_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I will"), tool(arguments={}, status="pending"), text("and more"), completed=False)
    s.failed("hello?")


@broken(KIND, thinking=BOTH, newer="healthy")
def second_step_broken(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), step_start(), text("second"), tool(), text("behind"), step_start(), text("end"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, thinking=BOTH)
def step_mark_lost(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool(), reasoning("two"), tool("read", {"filePath": "/b"}), text("end"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, thinking=BOTH, deep=True, newer="healthy")
def aborted_with_text_behind_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(status="error", output="Tool execution aborted"), text("I was about to"), error=aborted())
    s.user("go on")
    s.assistant("on it")


@broken(KIND, newer="healthy")
def attachment_tool_then_text(s: SessionBuilder) -> None:
    s.user("look")
    picture = file(data_url(png(4, 4)))
    s.assistant(tool("read", {"filePath": "/a.png"}, "Image read", attachments=[picture]), text("a picture"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, newer="healthy")
def synthetic_text_behind_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("[Tool execution completed.]", synthetic=True))


@broken(KIND, newer="healthy")
def ignored_text_behind_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("not shown, and sent all the same", ignored=True))


@broken(KIND, newer="healthy")
def two_messages_broken(s: SessionBuilder) -> None:
    for name in ("one", "two"):
        s.user(name)
        s.assistant(tool(), text(f"behind {name}"))


@broken(KIND, thinking=(True,))
def misplaced_and_open(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("first"), reasoning("late"), tool())


@broken(KIND, thinking=BOTH, newer="thinking_signature_invalid")
def missing_and_forged(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan", "not a signature"), tool(), text("behind"))
    s.user("next")
    s.assistant(reasoning("another"), text("fine"))


# Answers behind answers, which some providers refuse where the later one holds a call.


@healthy(thinking=(False,))
def words_then_a_step_with_a_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("first a word"), step_start(), tool())
    s.assistant("done")


@healthy(thinking=(False,))
def words_then_a_message_with_a_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("first a word")
    s.assistant(tool())
    s.assistant("done")


@healthy(thinking=(False,))
def empty_question_before_a_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("done")
    s.user(text(""))
    s.assistant(text("I run it"), tool())
    s.assistant("done again")


@healthy(thinking=(False,))
def compaction_that_keeps_a_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool())
    kept = s.assistant(text("and on"), tool("read", {"filePath": "/a"}))
    asked = s.user({**compaction(auto=True), "tail_start_id": kept["id"]})
    s.assistant("a summary of it all", parentID=asked["id"], summary=True, mode="compaction", agent="compaction")
    s.user("and now?")
    s.assistant("we go on")
