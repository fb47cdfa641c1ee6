"""Signatures that are not the provider's, or not of this text, in a turn that is not the latest."""

from __future__ import annotations

from tests.e2e.signing import sign
from tests.shapes.registry import broken
from tests.support.build import SessionBuilder
from tests.support.parts import reasoning, step_start, text, tool

KIND = "thinking_signature_invalid"
ON = (True,)
BOTH = (False, True)


@broken(KIND, thinking=BOTH, deep=True)
def forged_in_the_latest(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan", "EqQBCkYIAhgCIkDforged"), text("done"))


@broken(KIND, thinking=BOTH, deep=True)
def forged_earlier(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan", "EqQBCkYIAhgCIkDforged"), text("done"))
    s.user("next")
    s.assistant(reasoning("my own"), text("fine"))


@broken(KIND, thinking=BOTH)
def changed_earlier(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("not what I thought", sign("what I thought", "a")), text("done"))
    s.user("next")
    s.assistant(reasoning("my own"), text("fine"))


@broken(KIND, thinking=BOTH)
def empty_signature(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan", ""), text("done"))


@broken(KIND, thinking=ON)
def swapped_earlier(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one", sign("two", "b")), text("a"), reasoning("two", sign("one", "c")), text("b"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, thinking=ON, deep=True)
def forged_in_an_open_turn(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan", "forged"), tool())
    s.assistant(reasoning("another"), tool())


@broken(KIND, thinking=BOTH)
def all_forged(s: SessionBuilder) -> None:
    for name in ("one", "two", "three"):
        s.user(name)
        s.assistant(reasoning(name, f"of another account {name}"), text(name))


@broken(KIND, thinking=ON)
def two_of_four_forged(s: SessionBuilder) -> None:
    for number in range(4):
        s.user(f"question {number}")
        s.assistant(reasoning(f"thought {number}", "forged") if number % 2 else reasoning("good"), text("a"))


@broken(KIND, thinking=ON)
def blank_thinking_signed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning(" \n "), text("done"))


@broken(KIND, thinking=ON)
def forged_redacted_with_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("hidden", None, redactedData="of another account"), text("done"))


@broken(KIND, thinking=BOTH)
def forged_in_the_first_step(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one", "forged"), tool(), step_start(), reasoning("two"), text("done"))
    s.user("next")
    s.assistant("fine")


@broken(KIND, thinking=BOTH)
def forged_among_parallel_tools(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one", "forged"), text("both"), tool(), tool("read", {"filePath": "/a"}))
    s.assistant(text("done"))
