"""Messages of nothing: blank texts, messages that lose all they have on the wire, and a beginning that vanishes."""

from __future__ import annotations

from tests.e2e.media import data_url, png
from tests.shapes.registry import broken
from tests.support.build import SessionBuilder
from tests.support.parts import aborted, file, reasoning, text, tool

EMPTY = "empty_content"
ROLE = "role_order"
ON = (True,)
BOTH = (False, True)


@broken(EMPTY, thinking=BOTH, deep=True)
def blank_answer(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(" \n\t")
    s.user("next")
    s.assistant("fine")


@broken(EMPTY, thinking=BOTH, deep=True)
def blank_text_beside_content(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("\n\n"), text("a word"))
    s.user("next")
    s.assistant("fine")


@broken(EMPTY)
def blank_text_before_a_tool(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("\n"), tool())


@broken(EMPTY, thinking=ON)
def blank_text_in_an_open_turn(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("\n\n"), tool())


@broken(EMPTY, deep=True)
def blank_question(s: SessionBuilder) -> None:
    s.user("  ")
    s.assistant("you said nothing")


@broken(EMPTY)
def blank_question_beside_a_file(s: SessionBuilder) -> None:
    s.user(" ", file(data_url(png(4, 4))))
    s.assistant("a picture")


@broken(EMPTY, thinking=BOTH, deep=True)
def unsigned_thinking_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("never signed", None), finish="length")
    s.user("next")
    s.assistant("fine")


@broken(EMPTY)
def unsigned_thinking_and_empty_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("never signed", None), text(""))
    s.user("next")
    s.assistant("fine")


@broken(EMPTY, thinking=BOTH)
def aborted_with_empty_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("cut off", None), text(""), error=aborted())
    s.user("next")
    s.assistant("fine")


@broken(EMPTY, thinking=BOTH, newer="healthy")
def thinking_of_another_model_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("signed for another"), finish="length", modelID="claude-opus-4-1")
    s.user("next")
    s.assistant("fine")


@broken(EMPTY)
def no_break_space_alone(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("\u00a0\u3000")
    s.user("next")
    s.assistant("fine")


@broken(EMPTY, deep=True)
def blank_synthetic_question(s: SessionBuilder) -> None:
    s.user("a question", text("\n", synthetic=True))
    s.assistant("fine")


@broken(EMPTY)
def blank_aborted_answer(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("\n"), error=aborted())
    s.user("next")
    s.assistant("fine")


@broken(EMPTY, newer="healthy")
def empty_output_beside_a_picture(s: SessionBuilder) -> None:
    s.user("look")
    s.assistant(tool("read", {"filePath": "/a.png"}, "", attachments=[file(data_url(png(4, 4)))]))
    s.assistant("a picture")


@broken(EMPTY)
def three_blank_answers(s: SessionBuilder) -> None:
    for name in ("one", "two", "three"):
        s.user(name)
        s.assistant("\n")


@broken(EMPTY)
def blank_and_missing(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("\n"))
    s.user("next")
    s.assistant(tool(), text("behind"))


@broken(ROLE, thinking=BOTH)
def first_question_empty(s: SessionBuilder) -> None:
    s.user("")
    s.assistant("hello")


@broken(ROLE)
def first_question_ignored(s: SessionBuilder) -> None:
    s.user(text("not sent", ignored=True))
    s.assistant("hello")


@broken(ROLE)
def first_question_without_parts(s: SessionBuilder) -> None:
    s.user()
    s.assistant("hello")


@broken(ROLE)
def first_question_only_a_text_file(s: SessionBuilder) -> None:
    s.user(file("file:///a.txt", "text/plain", "a.txt"))
    s.assistant("hello")


@broken(ROLE)
def first_question_only_an_agent(s: SessionBuilder) -> None:
    s.user({"type": "agent", "name": "general"})
    s.assistant("hello")


@broken(ROLE)
def begins_with_an_answer(s: SessionBuilder) -> None:
    s.assistant("who asked?")
    s.user("me")
    s.assistant("fine")


@broken(ROLE, thinking=BOTH)
def first_question_empty_then_long(s: SessionBuilder) -> None:
    s.user("")
    for number in range(30):
        s.assistant(reasoning(f"thought {number}"), text(f"answer {number}"))
        s.failed(f"fails {number}")
        s.user(f"question {number}")
    s.assistant("fine")


@broken(ROLE)
def first_question_empty_then_tools(s: SessionBuilder) -> None:
    s.user(text(""), text("", synthetic=True))
    s.assistant(tool())
    s.assistant("done")
