"""The edits that set answers apart, or together: a step joined, words of the user in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from recoveryd.clients.opencode import part_fixes, session_status
from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.wire.compatible import OpenaiCompatible
from recoveryd.clients.opencode.wire.form import NEW
from recoveryd.clients.opencode.wire.openrouter import OpenRouterChat
from recoveryd.core import Block, Edits, Json, Marks, Part, Session, Turn, edited
from recoveryd.providers import NO_RULES
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.providers.chat.provider import QWEN
from tests.support.build import MODEL, SessionBuilder
from tests.support.parts import api_error, compaction, reasoning, step_start, text, tool
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
    return editor(session).user_words_before(turns(session), later, WORDS)


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


def cut(session: Session, at: int) -> Session:
    """The session with a step of its own for a part of its first answer."""
    part = session.messages[1].parts[at]
    return edited(session, editor(session).own_step(Block({}, part.message_id, part.id)))


def types(session: Session) -> list[str]:
    return [part.type for part in session.messages[1].parts if part.type != "step-finish"]


def test_thinking_goes_into_the_new_step_with_what_it_led_to() -> None:
    """A provider that keeps reasoning beside its call refuses one that ends a step."""
    made = builder()
    made.assistant(tool(), reasoning("now the other"), tool())
    session = as_session(made.planted())
    at = [part.type for part in session.messages[1].parts].index("reasoning")
    parted = ["step-start", "tool", "step-start", "reasoning", "tool"]
    assert types(cut(session, at + 1)) == types(cut(session, at)) == parted


def test_thinking_that_begins_its_step_stays_where_it_is() -> None:
    made = builder()
    made.assistant(reasoning("a plan"), tool())
    session = as_session(made.planted())
    assert types(cut(session, 2)) == ["step-start", "reasoning", "step-start", "tool"]


def test_words_that_are_cut_off_are_one_step_with_what_follows() -> None:
    made = builder()
    made.assistant(tool(), text("behind"), step_start(), text("end"), tool())
    session = as_session(made.planted())
    after = cut(session, [part.type for part in session.messages[1].parts].index("text"))
    assert types(after) == ["step-start", "tool", "step-start", "text", "text", "tool"]
    assert roles(after) == "user assistant user assistant user user"


def test_a_call_that_is_cut_off_keeps_its_own_step() -> None:
    made = builder()
    made.assistant(tool(), tool(), step_start(), text("end"))
    session = as_session(made.planted())
    assert types(cut(session, 2)) == ["step-start", "tool", "step-start", "tool", "step-start", "text"]


KIMI = {"providerID": "openrouter", "modelID": "moonshotai/kimi-k2-thinking"}


def details(session: Session) -> list[list[str]]:
    """The reasoning that each message of the next request to OpenRouter has, where it has a call."""
    sent = OpenRouterChat(KIMI["providerID"], KIMI["modelID"], NEW).build(session).turns
    called = [turn for turn in sent if any(block.type == "tool_use" for block in turn.blocks)]
    return [[str(block.body["thinking"]) for block in turn.blocks if block.is_thinking] for turn in called]


def test_reasoning_is_made_up_for_a_call_of_another_model_and_for_one_that_was_thought_of_alike() -> None:
    same = {"openrouter": {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "unknown"}]}}
    made = SessionBuilder(1_790_000_000_000, seed=1, model=KIMI)
    made.user("go")
    for _ in range(2):
        made.assistant({**reasoning("hm", None), "metadata": same}, {**tool(), "metadata": same})
    made.assistant(tool(), providerID="anthropic", modelID="claude-sonnet-4-5")
    made.user("on")
    session = as_session(made.planted())
    assert details(session) == [["hm"], [], []]
    for place in (2, 3):
        call = next(part for part in session.messages[place].parts if part.type == "tool")
        edits = editor(session).reasoning_before(Block({}, call.message_id, call.id), "[not kept]")
        assert {edit.action for edit in edits} == {"invent_reasoning"}
        assert len([edit for edit in edits if not edit.companion]) == 1
        session = edited(session, edits)
    sent = details(session)
    assert sent[0] == ["hm"]
    assert [len(one) for one in sent] == [1, 1, 1]
    assert all(one[0].startswith("[not kept] (prt_") for one in sent[1:])
    assert sent[1] != sent[2]


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


def test_an_answer_goes_behind_a_prompt_that_nobody_answered() -> None:
    """Before its failed answer, which stays the newest message: what failed is still known to have."""
    made = builder()
    made.assistant("one")
    asked = made.user("and?")
    failed = made.assistant(error=api_error("no"))
    session = as_session(made.planted())
    assert roles(session) == "user assistant user user"
    after = edited(session, editor(session).answer_behind(turns(session), 2, WORDS))
    assert roles(after) == "user assistant user assistant user"
    assert [message.id for message in after.messages if message.id > asked["id"]][-1] == failed["id"]
    new = after.messages[-2]
    assert (new.data["parentID"], new.data["finish"], new.data["cost"]) == (asked["id"], "stop", 0)
    look = session_status.look("store", session.id, reversed(after.messages), lambda id_: parts_of(after, id_), dict)
    assert look.failure is not None and look.failure.message == failed["id"]
    assert look.last_answer < new.completed, "no model answered"


@pytest.mark.parametrize(("gap", "behind"), [(0, 0), (1, 1), (2, 1), (3, 2), (9, 2)])
def test_an_answer_is_made_behind_its_prompt_and_not_behind_the_next_message(gap: int, behind: int) -> None:
    """1.2 sends the later of one millisecond first; and a prompt may have to go between the two later."""
    made = builder()
    made.assistant("one")
    asked = made.user("and?")
    failed = made.assistant(error=api_error("no"))
    failed["time"]["created"] = asked["time"]["created"] + gap
    session = as_session(made.planted())
    new = edited(session, editor(session).answer_behind(turns(session), 2, WORDS)).messages[-2]
    assert new.created == new.completed == asked["time"]["created"] + behind


def test_an_answer_goes_behind_the_files_of_a_tool_that_are_sent_as_the_users() -> None:
    made = builder()
    image = {"url": "data:image/png;base64,aaaa", "mime": "image/png"}
    made.assistant(tool(attachments=[image]))
    made.user("and?")
    session = as_session(made.planted())
    assert roles(session) == "user assistant user user user user"
    after = edited(session, editor(session).answer_behind(turns(session), 3, WORDS))
    assert roles(after) == "user assistant user user assistant user user"


def parts_of(session: Session, message: str) -> list[Json | None]:
    return [part.data for one in session.messages if one.id == message for part in one.parts]


def test_an_id_is_made_anew_where_only_its_first_letters_count() -> None:
    """Mistral's: the client sends nine letters and digits of each."""
    made = builder()
    made.assistant(tool(call_id="functions.x:0"), tool(call_id="functions.x:1"), tool(call_id="other"))
    session = as_session(made.planted())
    limits = replace(NO_RULES.call_limits, counted=9)
    blocks = [block for block in turns(session)[1].blocks if block.type == "tool_use"]
    ids = []
    for block in blocks:
        session = edited(session, editor(session).mend_call(block, limits))
        ids.append((session.part(block.part_id) or Part("", "", None)).data or {})
    first, second, third = (str(one["callID"]) for one in ids)
    assert (first, third) == ("functions_x_0", "other")
    assert second.isalnum() and len(second) == 9


def test_what_is_cut_off_has_the_reasoning_that_led_to_it_once_more_in_words_of_its_own() -> None:
    """OpenRouter's SDK keeps it beside the first call of a step, and sends what is said twice once."""
    kept = {"openrouter": {"reasoning_details": [{"type": "reasoning.text", "text": "a plan", "format": "unknown"}]}}
    made = SessionBuilder(1_790_000_000_000, seed=1, model=KIMI)
    made.user("go")
    thought = {**reasoning("a plan", None), "metadata": kept}
    made.assistant(thought, {**tool(), "metadata": kept}, text("and"), tool(), tool())
    session = as_session(made.planted())
    calls = [part.id for part in session.messages[1].parts if part.type == "tool"]
    for call in calls[1:]:
        at = next(i for i, part in enumerate(session.messages[1].parts) if part.id == call)
        session = cut(session, at)
    assert details(session) == [["a plan"], *([f"a plan ({call})"] for call in calls[1:])]
    claude = OpenRouterChat("openrouter", "anthropic/claude-sonnet-4.5", NEW).build(session)
    assert sum("a plan" in str(block.body) for block in claude.blocks()) == 1


def test_reasoning_that_is_cut_off_with_its_call_and_was_sent_with_the_first_is_said_anew() -> None:
    marks = [{"type": "reasoning.text", "text": words, "format": "unknown"} for words in ("one", "two")]
    beside = [{"openrouter": {"reasoning_details": own}} for own in (marks[:1], marks, marks[1:])]
    made = SessionBuilder(1_790_000_000_000, seed=1, model=KIMI)
    made.user("go")
    first, second = ({**reasoning("x", None), "metadata": beside[number]} for number in (0, 2))
    made.assistant(first, {**tool(), "metadata": beside[1]}, second, tool())
    session = as_session(made.planted())
    after = cut(session, 4)
    call = after.messages[1].parts[-2]
    assert details(after) == [["one", "two"], [f"two ({call.id})"]]


def test_reasoning_that_is_signed_is_given_to_no_other_call() -> None:
    signed = {"type": "reasoning.text", "text": "a plan", "signature": "s", "format": "anthropic-claude-v1"}
    marks = {"openrouter": {"reasoning_details": [signed]}}
    made = builder()
    made.assistant({**reasoning("a plan", None), "metadata": marks}, {**tool(), "metadata": marks}, tool())
    session = as_session(made.planted())
    assert [edit.part_id for edit in editor(session).own_step(turns(session)[1].blocks[-1])][1:] == []


def test_reasoning_that_was_made_up_and_is_not_sent_is_not_made_up_again() -> None:
    """Of another model's message none is sent, and no prompt tells which model is asked."""
    made = builder()
    made.assistant(tool())
    session = as_session(made.planted())
    session = replace(session, messages=session.messages[1:])
    block = Block({}, session.messages[0].id, next(p.id for p in session.messages[0].parts if p.type == "tool"))
    edits = editor(session).reasoning_before(block, "[not kept]")
    assert editor(edited(session, edits)).reasoning_before(block, "[not kept]") == ()


def test_only_what_is_sealed_is_taken_off_a_part() -> None:
    """Who executed a call is told by a flag between the names of the SDKs."""
    metadata = {"providerExecuted": True, "openai": {"itemId": "fc_1", "kept": 1}}
    assert part_fixes.unsealed({"metadata": metadata}) == {"providerExecuted": True, "openai": {"kept": 1}}
    assert part_fixes.with_reasoning({"metadata": metadata}, "x").keys() == {*metadata, "openrouter"}


@pytest.mark.parametrize("action", ["set_aside_reasoning", "set_aside_alone"])
def test_the_words_of_a_reasoning_item_stay(action: str) -> None:
    made = builder()
    sealed = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAA"}}
    made.assistant({"type": "reasoning", "text": "a plan", "metadata": sealed}, "done")
    session = as_session(made.planted())
    part = next(p for p in session.messages[-1].parts if p.type == "reasoning")
    block = Block({"type": "reasoning", "encrypted_content": "gAAAA"}, part.message_id, part.id)
    [edit] = editor(session).set_aside([block], action)
    assert edit.after is not None and edit.after["text"] == "a plan" and "gAAAA" not in str(edit.after)


def test_a_call_keeps_the_id_that_its_provider_takes() -> None:
    made = builder()
    made.assistant({**tool("my.tool"), "callID": "functions.my:0"})
    [part] = [part for part in as_session(made.planted()).messages[-1].parts if part.type == "tool"]
    assert part_fixes.legal_call(part, (), QWEN.call_limits) == {"tool": "my_tool"}
    assert part_fixes.legal_call(part, (), ANTHROPIC.call_limits) == {"tool": "my_tool", "callID": "functions_my_0"}
