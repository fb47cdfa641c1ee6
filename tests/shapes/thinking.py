"""Thinking in the wrong place, of another text, or at the end: the shapes that need the open turn looked at."""

from __future__ import annotations

from tests.e2e.signing import redacted, sign
from tests.shapes.registry import broken
from tests.support.build import SessionBuilder
from tests.support.parts import aborted, api_error, reasoning, step_start, text, tool

ORDER = "thinking_block_order"
DISABLED = "thinking_disabled_violation"
MODIFIED = "thinking_block_modified"
FINAL = "thinking_final_block"
ON = (True,)
BOTH = (False, True)


@broken(ORDER, thinking=ON, deep=True)
def open_tool_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool())


@broken(ORDER, thinking=ON)
def open_text_and_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), tool())


@broken(ORDER, thinking=ON, deep=True)
def open_thinking_behind_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), reasoning("misplaced"), tool())


@broken(ORDER, thinking=ON)
def open_unsigned_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("never signed", None), tool())


@broken(ORDER, thinking=ON, newer="healthy")
def open_empty_signed_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning(""), tool())


@broken(ORDER, thinking=ON, newer="healthy")
def open_redacted_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("", None, redactedData=redacted("1")), tool())


@broken(ORDER, thinking=ON)
def open_parallel_tools(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("three at once"), tool(), tool(status="error", output="no"), tool("read", {"filePath": "/a"}))


@broken(ORDER, thinking=ON)
def second_step_without_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), step_start(), tool())


@broken(ORDER, thinking=ON, deep=True)
def second_message_without_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool())
    s.assistant(tool())


@broken(ORDER, thinking=ON)
def open_aborted_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), tool(status="error", output="Tool execution aborted"), error=aborted())


@broken(ORDER, thinking=ON)
def open_running_tool_after_crash(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(status="running"), completed=False)


@broken(ORDER, thinking=ON)
def open_thinking_of_another_model(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("signed for another"), tool(), modelID="claude-opus-4-1")


@broken(ORDER, thinking=ON, deep=True)
def open_tool_then_failures(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), tool())
    for number in range(3):
        s.failed(f"again {number}", api_error("Expected `thinking`", 400))


@broken(ORDER, thinking=ON)
def open_only_thinking_and_empty_text_first(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text(""), tool())


@broken(DISABLED, deep=True)
def open_thinking_and_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool())


@broken(DISABLED)
def open_thinking_text_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("I run it"), tool())


@broken(DISABLED)
def open_thinking_parallel_tools(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), tool("read", {"filePath": "/a"}), tool(status="error", output="no"))


@broken(DISABLED)
def open_thinking_two_steps(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool(), step_start(), reasoning("two"), tool())


@broken(DISABLED, deep=True)
def open_thinking_two_messages(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool())
    s.assistant(reasoning("two"), text("on"), tool())


@broken(DISABLED)
def open_thinking_aborted(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(status="error", output="Tool execution aborted"), error=aborted())


@broken(DISABLED)
def open_thinking_crashed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(status="pending", arguments={}), completed=False)


@broken(DISABLED, deep=True)
def open_thinking_then_failures(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool())
    for number in range(3):
        s.failed(f"again {number}", api_error("Expected `text`, but found `thinking`", 400))


@broken(DISABLED)
def open_misplaced_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I say"), reasoning("late"), tool())


@broken(MODIFIED, thinking=BOTH, deep=True)
def changed_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("what I never thought", sign("what I thought", "a")), text("done"))


@broken(MODIFIED, thinking=ON, deep=True)
def changed_text_open(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("what I never thought", sign("what I thought", "b")), tool())


@broken(MODIFIED, thinking=BOTH)
def changed_second_block(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), text("a"), reasoning("two!", sign("two", "c")), text("b"))


@broken(MODIFIED, thinking=ON)
def trimmed_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a thought", sign("a thought \n", "d")), text("done"))


@broken(MODIFIED, thinking=ON)
def truncated_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a lo", sign("a long thought that was cut", "e")), text("done"), completed=False)


@broken(MODIFIED, thinking=BOTH)
def swapped_blocks(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one", sign("two", "f")), text("a"), reasoning("two", sign("one", "g")), text("b"))


@broken(MODIFIED, thinking=ON)
def changed_last_step(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool(), step_start(), reasoning("two!", sign("two", "h")), text("b"))


@broken(FINAL, thinking=BOTH, deep=True)
def thinking_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("and then nothing"), finish="length")
    s.user("next")
    s.assistant("fine")


@broken(FINAL, thinking=ON)
def thinking_alone_at_the_end(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("and then nothing"), finish="length")


@broken(FINAL, thinking=BOTH)
def thinking_behind_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), text("a word"), reasoning("and then"))
    s.user("next")
    s.assistant("fine")


@broken(FINAL, thinking=BOTH, deep=True, newer="empty_content")
def thinking_and_empty_text_aborted(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("cut off"), text(""), error=aborted())
    s.user("next")
    s.assistant("fine")


@broken(FINAL, thinking=ON)
def thinking_alone_behind_a_tool_step(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool())
    s.assistant(reasoning("two"), finish="length")


@broken(FINAL, thinking=ON)
def two_thoughts_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), reasoning("two"), completed=False)
    s.failed("hello?")
