"""The edits that set answers apart, or together: a step joined, words of the user in between."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.wire.compatible import OpenaiCompatible
from recoveryd.clients.opencode.wire.form import NEW
from recoveryd.core import Edits, Marks, Session, Turn, edited
from tests.support.build import MODEL, SessionBuilder
from tests.support.parts import compaction, step_start, text, tool
from tests.support.values import as_session

WORDS = "[user interrupted]"


def turns(session: Session) -> tuple[Turn, ...]:
    """As they are sent, each message by itself."""
    return OpenaiCompatible(MODEL["providerID"], MODEL["modelID"], NEW).build(session).turns


def roles(session: Session) -> str:
    return " ".join(turn.role for turn in turns(session))


def editor(session: Session) -> OpencodeEditor:
    return OpencodeEditor(session, Marks("rtest", 1_791_000_000_000))


def between(session: Session, later: int) -> Sequence[Edits]:
    sent = turns(session)
    return editor(session).user_words_before(sent[later], WORDS, sent[later - 1])


def builder() -> SessionBuilder:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    return made


def test_two_steps_of_an_answer_become_one() -> None:
    made = builder()
    made.assistant(text("first a word"), step_start(), tool())
    session = as_session(made.planted())
    assert roles(session) == "user assistant assistant user user"
    edits = editor(session).join_step(turns(session)[2])
    assert roles(edited(session, edits)) == "user assistant user user"
    assert [edit.action for edit in edits] == ["join_step"]


def test_a_step_that_begins_its_answer_is_joined_to_nothing() -> None:
    made = builder()
    made.assistant("one")
    made.assistant(tool())
    session = as_session(made.planted())
    assert editor(session).join_step(turns(session)[2]) == ()
    assert editor(session).join_step(turns(session)[-1]) == ()


def test_the_user_speaks_between_two_answers() -> None:
    made = builder()
    made.assistant("one")
    made.assistant(tool())
    session = as_session(made.planted())
    [edits] = between(session, 2)
    assert roles(edited(session, edits)) == "user assistant user assistant user user"


def test_a_prompt_that_vanished_between_two_answers_gets_the_words() -> None:
    made = builder()
    made.assistant("one")
    silent = made.user(text(""))
    made.assistant(tool())
    session = as_session(made.planted())
    [[edit]] = between(session, 2)
    assert edit.message_id == silent["id"]


def test_a_new_prompt_stands_between_messages_of_one_millisecond() -> None:
    made = builder()
    one = made.assistant("one")
    two = made.assistant(tool())
    two["time"]["created"] = one["time"]["created"]
    session = as_session(made.planted())
    [edits] = between(session, 2)
    assert (edits[0].after or {})["time"]["created"] == one["time"]["created"]


def test_a_compaction_keeps_what_begins_with_the_new_prompt() -> None:
    made = builder()
    made.assistant(tool())
    tail = made.assistant(text("on"), tool("read", {"filePath": "/a"}))
    asked = made.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    made.assistant("a summary", parentID=asked["id"], summary=True, mode="compaction", agent="compaction")
    session = as_session(made.planted())
    assert roles(session) == "user assistant assistant user user"
    [edits] = between(session, 2)
    after = edited(session, edits)
    assert roles(after) == "user assistant user assistant user user"
    assert [edit.action for edit in edits if not edit.companion] == ["placeholder"]
