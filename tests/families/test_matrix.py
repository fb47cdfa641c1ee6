"""Every family in every form of the client: what it refuses is healed, nothing that was said is lost; and switching.

Here the request is the product's own, which `tests/e2e/test_families.py` holds to the real client. A part of the shapes
and pairs: all by `python -m tests.families --without-client` and `python -m tests.families.switching --without-client`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.pruning import cleared
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Claims, Edit, Kind, Refusal, Session, Violation, deed_names, edited
from recoveryd.providers import rules_for
from recoveryd.repair import NOTHING_EXPLAINS, WHICH_IS_NOT_KNOWN
from recoveryd.repair.fixes import REPAIRS, RepairInput
from recoveryd.tell.actions import deeds_sentence
from tests.e2e.heals import words
from tests.e2e.media import data_url, png
from tests.families import switching
from tests.families.judged import (
    TOLD_BY_ITS_REFUSAL,
    WANTS_REASONING,
    Judged,
    built,
    failure_of,
    healed,
    judged,
    made_worse,
    planned,
    refusal,
    session_of,
)
from tests.families.table import FAMILIES, UNREASONED, Family
from tests.shapes import SHAPES, Shape
from tests.support.build import SessionBuilder, reasoning, tool
from tests.support.generate import PICTURE
from tests.support.parts import file, text
from tests.support.values import as_session, at_times

LIMITS = Path(__file__).parents[2] / "docs" / "limits.md"
FORMS = ["old", "paged", "new"]
TRIED = [shape for shape in SHAPES.values() if not shape.json_only][::11]
# What is asked again by the same family, and by another behind it.
# Those alike to another of the table: in the run of all pairs alone.
ALIKE = {
    "openrouter-kimi",
    "vertex-claude",
    "glm",
    "deepseek",
    "qwen",
    "gpt",
    "litellm",
    "xai",
    "gemma",
    "azure",
    "gemini-2",
    "vertex",
}
PAIRS = list(permutations([name for name in FAMILIES if name not in ALIKE], 2))


def said_in(session: Session) -> Counter[str]:
    """All that a person or a model said, and what tools gave back."""
    return words([dict(part.data) for message in session.messages for part in message.parts if part.data is not None])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_family_refuses_is_healed(name: str, form: str) -> None:
    made = {shape.name: judged(FAMILIES[name], shape, form) for shape in TRIED}
    assert {shape: one.left for shape, one in made.items() if one.left is not None} == {}
    assert any(one.first is not None for one in made.values())
    assert any(one.first is None for one in made.values())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_name_that_is_too_long_is_cut_to_what_each_takes(name: str, form: str) -> None:
    assert judged(FAMILIES[name], SHAPES["tool-name-too-long"], form).left is None


@pytest.mark.parametrize("length", [64, 65, 100, 128, 129, 200, 201, 256, 257, 600])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_name_of_any_length_that_is_refused_is_cut(name: str, length: int) -> None:
    def named(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(tool("x" * length))
        session.assistant("done")

    made = judged(FAMILIES[name], Shape("named", "tool_call_invalid", False, named), "new")
    assert made.left is None
    cut = [(edit.after or {})["tool"] for edits in made.repairs for edit in edits if "tool" in (edit.after or {})]
    assert all(len(one) < length for one in cut)
    assert len(cut) == (made.first is not None) or name == "openrouter-kimi"  # wants reasoning before


NAME_TOO_LONG = {
    "gemini": "* GenerateContentRequest.contents[1].parts[0].function_call.name: Invalid function name. Must be "
    "alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a\n  maximum length of {}.",
    "kimi": "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that "
    "matches the pattern '^[a-zA-Z0-9_-]{{1,{}}}$'.",
    "gpt": "Invalid 'messages[1].tool_calls[0].function.name': string too long. Expected a string with maximum "
    "length {}, but got a string with length 130 instead.",
}


@pytest.mark.parametrize("family", NAME_TOO_LONG)
@pytest.mark.parametrize(("told", "left"), [(32, [32, 32, 32]), (64, [64, 64, 32]), (100, [64, 70, 32])])
def test_a_name_that_is_longer_than_an_error_tells_is_cut_to_what_all_take(
    family: str, told: int, left: list[int]
) -> None:
    """And to no more than the error tells, where that is less. A name that is not too long stays."""
    builder = SessionBuilder(seed=1)
    builder.user("go")
    builder.assistant(*(tool("x" * length) for length in (130, 70, 32)))
    builder.assistant("done")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    made = planned(FAMILIES[family], session, "new", NAME_TOO_LONG[family].format(told))
    assert not isinstance(made, Refusal), made
    parts = [part.data or {} for message in edited(session, made).messages for part in message.parts]
    assert [len(part["tool"]) for part in parts if part["type"] == "tool"] == left


def test_what_is_not_healed_is_a_call_whose_reasoning_nobody_has() -> None:
    family = UNREASONED["openrouter-kimi-default"]
    made = {shape.name: judged(family, shape, "new") for shape in TRIED}
    left = {name for name, one in made.items() if one.left is not None}
    assert {made[name].left for name in left} == {WANTS_REASONING}
    assert left == {shape.name for shape in TRIED if _calls_without_reasoning(family, shape, made[shape.name])}


def _calls_without_reasoning(family: Family, shape: Shape, one: Judged) -> bool:
    session = session_of(family.name, shape)
    for edits in one.repairs:
        session = edited(session, edits)
    request = built(family, session, "new")
    kinds = [{block.type for block in turn.blocks} for turn in request.turns]
    return any("tool_use" in found and "thinking" not in found for found in kinds)


@pytest.mark.parametrize("family", UNREASONED.values(), ids=lambda family: family.name)
def test_the_documents_name_what_is_not_healed(family: Family) -> None:
    assert family.exception in " ".join(LIMITS.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_that_was_said_is_lost(name: str) -> None:
    for shape in TRIED:
        session = session_of(name, shape)
        after = session
        for edits in judged(FAMILIES[name], shape, "new").repairs:
            after = edited(after, edits)
        kept = said_in(after)
        lost = [text for text in said_in(session) - kept if not any(_mended(text) in one for one in kept)]
        assert lost == [], shape.name


def test_an_error_that_says_nothing_of_why_changes_nothing_where_nothing_is_empty() -> None:
    """GLM's 1214, which is said of empty messages, and of others that it takes for illegal."""
    session = session_of("glm", SHAPES["steps-in-one-message-on"])
    made = planned(
        FAMILIES["glm"], session, "new", "The messages parameter is illegal. Please check the documentation."
    )
    assert isinstance(made, Refusal)
    assert not made.understood


SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
OF_A_CALL = {  # what is said of a call, or of what it carries
    "gemini": ("Corrupted thought signature.", "drop_signature"),
    "gemini-2": ("Corrupted thought signature.", "drop_signature"),
    "copilot": (SIGNATURE, "set_aside_thinking"),
    "openrouter": (SIGNATURE, "set_aside_thinking"),
    "openrouter-kimi": (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        "invent_reasoning",
    ),
}


@pytest.mark.parametrize("family", OF_A_CALL)
def test_what_is_said_of_a_call_is_not_said_of_the_picture_that_it_brought(family: str) -> None:
    words, action = OF_A_CALL[family]
    builder = SessionBuilder(seed=1)
    builder.user("look")
    call = tool("read", {"filePath": "/a.png"}, "Image read", attachments=[file(PICTURE)])
    builder.assistant(*([] if action == "invent_reasoning" else [reasoning("I look")]), call)
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    carried = [replace(m, parts=tuple(p for p in m.parts if p.type != "reasoning")) for m in session.messages]
    made = planned(FAMILIES[family], replace(session, messages=tuple(carried)), "new", words)
    assert not isinstance(made, Refusal), made
    assert action in deed_names(made)
    assert "take_out_media" not in deed_names(made)


def test_a_picture_that_gemini_can_not_read_takes_no_signature_with_it() -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant(reasoning("I look"), tool("read", {}, "Image read", attachments=[file(PICTURE)]))
    session = as_session(FAMILIES["gemini"].dressed(builder.planted()))
    made = planned(FAMILIES["gemini"], session, "new", "Unable to process input image.")
    assert not isinstance(made, Refusal), made
    assert deed_names(made) == ("take_out_media",)


@pytest.mark.parametrize("within", [False, True])
def test_a_picture_of_a_sort_that_vertex_does_not_take_goes_and_no_other(within: bool) -> None:
    photo = file(data_url(b"\0\0\0\x18ftypheic", "image/heic"), "image/heic", "photo.heic")
    builder = SessionBuilder(seed=1)
    builder.user("look", file(PICTURE))
    builder.assistant("seen")
    builder.user("and here?", *([] if within else [photo]))
    if within:
        builder.assistant(tool("read", {}, "Image read", attachments=[photo]))
    session = as_session(FAMILIES["vertex"].dressed(builder.planted()))
    words = (
        "Unable to submit request because it has a mimeType parameter with value image/heic, which is not supported. "
        "Update the mimeType and try again."
    )
    made = planned(FAMILIES["vertex"], session, "new", words)
    assert not isinstance(made, Refusal), made
    assert deed_names(made) == ("take_out_media",)
    assert refusal(FAMILIES["vertex"], edited(session, made), "new", thinking=False) is None


OF_TYPE, IN_RESPONSE = "Unsupported MIME type: {}", "the mime_type: {} is not supported in `function_response.parts`"


@pytest.mark.parametrize(("family", "words", "gone"), [("vertex", OF_TYPE, 2), ("gemini", IN_RESPONSE, 1)])
def test_of_a_type_that_gemini_names_all_go_where_it_is_not_taken(family: str, words: str, gone: int) -> None:
    """A response takes fewer types than a prompt."""
    photo = file(data_url(b"\0\0\0\x18ftypheic", "image/heic"), "image/heic", "photo.heic")
    builder = SessionBuilder(seed=1)
    asked = builder.user("look", file(PICTURE), photo)
    builder.assistant(tool("read", {}, "Images read", attachments=[photo, file(PICTURE)]))
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    made = planned(FAMILIES[family], session, "new", words.format("image/heic"))
    assert not isinstance(made, Refusal), made
    assert deed_names(made) == ("take_out_media",) * gone
    assert (asked["id"] in {edit.message_id for edit in made}) == (gone == 2)
    assert isinstance(planned(FAMILIES[family], session, "new", words.format("video/x-matroska")), Refusal)


@pytest.mark.parametrize("form", ["old", "paged", "fork"])
@pytest.mark.parametrize("first", ["I look.", "I look into the log, line by line \ud83d."])
def test_half_a_character_is_replaced_in_each_text_of_a_step_that_is_sent_as_one(form: str, first: str) -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant(text(first), tool("bash", {"command": "tail log"}, "done"), text("It ends in \ud83d"))
    builder.assistant("fine")
    session = as_session(FAMILIES["kimi"].dressed(builder.planted()))
    said = refusal(FAMILIES["kimi"], session, form, thinking=False)
    assert said is not None
    made = planned(FAMILIES["kimi"], session, form, said)
    assert not isinstance(made, Refusal), made
    assert deed_names(made) == ("mend_unicode",) * (1 + ("\ud83d" in first))
    assert refusal(FAMILIES["kimi"], edited(session, made), form, thinking=False) is None


@pytest.mark.parametrize("family", ["kimi", "xai", "vertex"])
def test_an_edit_that_answers_one_form_is_made_though_another_is_refused_alike(family: str) -> None:
    session = session_of(family, SHAPES["empty-texts-that-vanish-off"])
    said = refusal(FAMILIES[family], session, "new", thinking=False) or refusal(
        FAMILIES[family], session, "paged", thinking=False
    )
    assert said is not None
    made = planned(FAMILIES[family], session, "new", said, "paged")
    assert not isinstance(made, Refusal), made
    for form in ("new", "paged"):
        assert refusal(FAMILIES[family], edited(session, made), form, thinking=False) is None


@pytest.mark.parametrize("family", ["vertex-claude", "bedrock", "gemini"])
def test_a_first_prompt_that_1_2_sends_behind_its_own_answer_gets_one_before_both(family: str) -> None:
    """A session that begins with a command of the user's own (`!ls`) in one millisecond."""
    builder = SessionBuilder(seed=1)
    builder.user("The following tool was executed by the user")
    builder.assistant(tool(call_id="toolu_01"))
    builder.user("go on")
    made = as_session(FAMILIES[family].dressed(builder.planted()))
    times = [5_000, 5_000, 6_000]
    session = at_times(made, times)
    said = refusal(FAMILIES[family], session, "paged", thinking=False)
    assert said is not None
    plan = planned(FAMILIES[family], session, "paged", said)
    assert not isinstance(plan, Refusal), plan
    [new] = [edit for edit in plan if edit.part_id is None]
    assert "placeholder" in deed_names(plan) and (new.after or {})["time"]["created"] == 4_999
    after = edited(session, plan)
    ordered = sorted(after.messages, key=lambda message: message.at or message.created)  # as the store reads it
    for form in ("paged", "new"):
        assert refusal(FAMILIES[family], replace(after, messages=tuple(ordered)), form, thinking=False) is None


def _tied(family: str, roles: str, tied: list[int]) -> Session:
    """A session of a database in which messages are of one millisecond with the one before."""
    builder = SessionBuilder(seed=1)
    for role in roles:
        builder.user("do") if role == "u" else builder.assistant(tool(call_id="toolu_01"))
    builder.user("go on")
    made = as_session(FAMILIES[family].dressed(builder.planted()))
    times = [5_000 + 9 * (n - sum(n >= one for one in tied)) for n in range(len(made.messages))]
    return at_times(made, times)


TIES = {"at the begin": ("ua", [1]), "in the middle": ("uaua", [3]), "two": ("uaua", [1, 3])}


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("family", ["gemma", "ministral"])
def test_before_a_strict_template_what_1_2_sends_the_wrong_way_round_is_healed_and_1_18_takes_it_then(
    family: str, ties: str
) -> None:
    """A command of the user's own and its call in one millisecond."""
    session = _tied(family, *TIES[ties])
    for form in ("paged", "new"):
        said = refusal(FAMILIES[family], session, form, thinking=False)
        if said is not None:
            plan = planned(FAMILIES[family], session, form, said)
            assert not isinstance(plan, Refusal), plan
            session = edited(session, plan)
        assert refusal(FAMILIES[family], session, form, thinking=False) is None


@pytest.mark.parametrize("family", ["gemma", "ministral"])
def test_between_two_prompts_of_one_millisecond_an_answer_is_put_for_1_18_alone(family: str) -> None:
    """1.2 sends what is put in there before both."""
    session = _tied(family, "uu", [1])
    said = refusal(FAMILIES[family], session, "paged", thinking=False)
    assert said is not None
    assert isinstance(planned(FAMILIES[family], session, "paged", said), Refusal)
    made = planned(FAMILIES[family], session, "new", said)
    assert not isinstance(made, Refusal), made
    assert refusal(FAMILIES[family], edited(session, made), "new", thinking=False) is None


@pytest.mark.parametrize("roles", ["uu", "uaa", "uta"])
@pytest.mark.parametrize("family", ["gemma", "ministral"])
def test_between_two_of_neighbouring_milliseconds_what_is_put_in_goes_with_the_second(family: str, roles: str) -> None:
    """1.2 sends the row first that was inserted last; 1.18 goes by the ids, and takes it too."""
    builder = SessionBuilder(seed=1)
    for role in roles:
        builder.user("do") if role == "u" else builder.assistant(tool(call_id="toolu_01") if role == "t" else "said")
    builder.user("go on")
    made = as_session(FAMILIES[family].dressed(builder.planted()))
    times = [5_000, *range(6_000, 6_000 + len(roles) - 1), 7_000]
    times[len(roles) - 2] = times[len(roles) - 1] - 1
    session = at_times(made, times)
    said = refusal(FAMILIES[family], session, "paged", thinking=False)
    if said is not None:
        plan = planned(FAMILIES[family], session, "paged", said)
        assert not isinstance(plan, Refusal), plan
        session = edited(session, plan)
    for form in ("paged", "new"):
        assert refusal(FAMILIES[family], session, form, thinking=False) is None
    assert (family, roles) == ("ministral", "uta") or said is not None


@pytest.mark.parametrize("family", ["gemma", "ministral"])
def test_between_an_answer_that_is_put_in_and_the_one_before_there_is_room_for_a_prompt(family: str) -> None:
    """Once the picture between the two is taken out."""
    assert judged(FAMILIES[family], SHAPES["picture-that-is-none-of-a-tool"], "paged").left is None


def test_additions_that_bring_the_fault_again_that_they_answer_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two answers of one millisecond 1.2 sends the call first, however many prompts are put between them."""
    tried = 0
    mend = REPAIRS[Kind.ROLE_ORDER]

    def counted(given: RepairInput, violation: Violation) -> Sequence[tuple[Edit, ...]]:
        nonlocal tried
        tried += 1
        assert tried < 40, "each set of edits is longer than the one before, and all are kept"
        return mend(given, violation)

    monkeypatch.setitem(REPAIRS, Kind.ROLE_ORDER, counted)
    session = session_of("vertex", SHAPES["old-outputs-cleared-on"])
    session = at_times(session, [1_000, 2_000, 2_000, *range(3_000, 2_997 + len(session.messages))])
    said = refusal(FAMILIES["vertex"], session, "paged", thinking=False)
    assert said is not None
    assert isinstance(planned(FAMILIES["vertex"], session, "paged", said), Refusal)


SHOTS = [file(data_url(png(side, side)), filename=f"{side}.png") for side in (3, 4, 5)]
# The second of three that one tool gave back: within its result, beside it, and where no error names one.
NAMED = {
    "vertex-claude": "messages.2.content.0.tool_result.content.2.image.source.base64: Could not process image",
    "bedrock": "messages.2.content.0.tool_result.content.2.image.source.base64: Could not process image",
    "openai": "Invalid 'input[3].output[2].image_url'. Expected a base64-encoded data URL with an image MIME type.",
    "azure": "Invalid 'input[4].content[2].image_url'. Expected a base64-encoded data URL with an image MIME type.",
}


def _of_three(family: str, words: str, shots: list[dict[str, Any]]) -> tuple[Session, Refusal | tuple[Edit, ...]]:
    builder = SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant(tool("shots", {}, "three of them", attachments=shots))
    builder.assistant("seen")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    return session, planned(FAMILIES[family], session, "new", words)


def _left(made: Refusal | tuple[Edit, ...]) -> list[str]:
    assert not isinstance(made, Refusal), made
    [after] = [edit.after for edit in made if edit.action == "take_out_media"]
    state = (after or {})["state"]
    gone = [shot["filename"] for shot in SHOTS if f"image {shot['filename']} was taken out" in state["output"]]
    kept = [shot["filename"] for shot in state["attachments"]]
    assert sorted(gone + kept) == ["3.png", "4.png", "5.png"]
    assert deed_names(made) == ("take_out_media",) * len(gone), "so many are told"
    return kept


@pytest.mark.parametrize("family", NAMED)
def test_of_several_pictures_of_a_tool_only_the_one_that_is_named_goes(family: str) -> None:
    session, made = _of_three(family, NAMED[family], SHOTS)
    assert _left(made) == ["3.png", "5.png"]
    assert not isinstance(made, Refusal)
    after = edited(session, made)
    assert refusal(FAMILIES[family], after, "new", thinking=False) is None


@pytest.mark.parametrize("family", NAMED)
def test_the_same_picture_twice_in_a_result_counts_as_one_and_is_told_as_two(family: str) -> None:
    _, made = _of_three(family, NAMED[family], [SHOTS[0], SHOTS[1], SHOTS[1]])
    assert not isinstance(made, Refusal), made
    assert [(edit.after or {})["state"]["attachments"] for edit in made] == [SHOTS[:1]]
    assert deed_names(made) == ("take_out_media",) * 2
    assert "**The same image twice in one tool's result**" in LIMITS.read_text()


def test_a_place_in_a_result_where_no_picture_stands_accuses_none() -> None:
    for place in ("0", "9"):
        words = f"messages.2.content.0.tool_result.content.{place}.image.source.base64: Could not process image"
        assert isinstance(_of_three("vertex-claude", words, SHOTS)[1], Refusal)
    words = "messages.2.content.0.image.source.base64: Could not process image"  # of none in a result
    assert isinstance(_of_three("vertex-claude", words, SHOTS)[1], Refusal)


@pytest.mark.parametrize("family", ["openai", "azure"])
@pytest.mark.parametrize(
    "place", ["input[0].content[0]", "input[1].content[0]", "input[3].output[0]", "input[50].content[1]"]
)
def test_a_place_in_an_error_of_openai_where_no_picture_stands_accuses_none(family: str, place: str) -> None:
    said = f"Invalid '{place}.image_url'. Expected a base64-encoded data URL with an image MIME type."
    made = _of_three(family, said, SHOTS)[1]
    assert isinstance(made, Refusal) and made.reason.startswith("it is not known which image or document")


def test_a_place_where_nothing_stands_that_the_provider_fetches_accuses_none_of_several() -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", SHOTS[0], file("https://example.com/a.png"), file("https://example.com/b.png"))
    builder.assistant("seen")
    session = as_session(FAMILIES["vertex-claude"].dressed(builder.planted()))
    third = session.messages[0].parts[3].id
    for place, gone in (("0.content.0", []), ("0.content.1", []), ("0.content.3", [third]), ("9.content.9", [])):
        said = f"messages.{place}.image.source.url: Unable to download the file."
        made = planned(FAMILIES["vertex-claude"], session, "new", said)
        assert [edit.part_id for edit in (() if isinstance(made, Refusal) else made)] == gone


@pytest.mark.parametrize("family", ["openai", "azure", "vertex-claude"])
def test_of_several_pictures_of_a_prompt_only_the_one_that_is_named_goes(family: str) -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", *SHOTS)
    builder.assistant("seen")
    builder.user("and this", SHOTS[0])
    builder.assistant("fine")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    said = "Invalid 'input[1].content[2].image_url'. Expected a base64-encoded data URL with an image MIME type."
    if family == "vertex-claude":
        said = "messages.0.content.2.image.source.base64: Could not process image"
    made = planned(FAMILIES[family], session, "new", said)
    assert not isinstance(made, Refusal), made
    assert [(edit.after or {})["text"].split(" was")[0] for edit in made] == ["[The image 4.png"]


@pytest.mark.parametrize("family", ["openai", "azure", "vertex-claude", "bedrock"])
@pytest.mark.parametrize("place", ["messages.0.content.1", "messages.2.content.1", "messages.8.content.1"])
def test_a_place_that_a_plugin_moved_is_not_believed(family: str, place: str) -> None:
    """It is that of an image that was answered, or of none: the new one is meant, if there is but one."""
    said = f"{place}.image.source.base64: Could not process image"
    if family in ("openai", "azure"):
        at = int(place.split(".")[1]) + 1
        said = (
            f"Invalid 'input[{at}].content[1].image_url'. Expected a base64-encoded data URL with an image MIME type."
        )
    for new in (SHOTS[2:], [SHOTS[2], file(data_url(png(7, 7)))]):
        builder = SessionBuilder(seed=1)
        for shot in SHOTS[:2]:
            builder.user("look", shot)
            builder.assistant("seen")
        asked = builder.user("and these", *new)
        session = as_session(FAMILIES[family].dressed(builder.planted()))
        made = planned(FAMILIES[family], session, "new", said)
        if len(new) > 1:
            assert isinstance(made, Refusal) and made.reason.startswith("it is not known which image or document")
            continue
        assert not isinstance(made, Refusal), made
        assert [(edit.message_id, edit.action) for edit in made] == [(asked["id"], "take_out_media")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("place", "gone"), [("input[9].content[2]", "two"), ("input[11].content[2]", "four")])
def test_a_place_is_counted_with_the_images_that_the_client_cleared_since(form: str, place: str, gone: str) -> None:
    """At the end of a turn OpenCode clears old outputs, also of one that was refused: what images they had were sent to
    Azure in messages of their own, before what is named.
    """

    def shot(name: str, size: int) -> Any:
        return file(data_url(png(4 + size, 4)), filename=f"{name}.png")

    builder = SessionBuilder(seed=1)
    builder.user("go")
    read = [tool("read", {"filePath": name}, "x" * 90_000, attachments=[shot(name, 9)]) for name in ("a", "b")]
    for one in read:
        builder.assistant(one)
    builder.assistant("fine")
    builder.user("look", shot("one", 1), shot("two", 2))
    builder.assistant("seen")
    builder.user("and these", *([shot("three", 3), shot("four", 4)] if gone == "four" else ()))
    session = as_session(FAMILIES["azure"].dressed(builder.planted()))
    newest = session.messages[-1].created
    calls = [(message.id, part) for message in session.messages for part in message.parts if part.type == "tool"]
    session = edited(session, [Edit(message, part.id, cleared(part, newest + 50), "") for message, part in calls])
    said = f"Invalid '{place}.image_url'. Expected a base64-encoded data URL with an image MIME type."
    made = planned(FAMILIES["azure"], session, form, said)
    assert not isinstance(made, Refusal), made
    assert [(edit.after or {})["text"].split(" was")[0] for edit in made] == [f"[The image {gone}.png"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("family", "said"), [("vertex-claude", "Could not process image"), ("gemini", "Unable to process input image.")]
)
def test_an_image_that_was_cleared_since_leaves_no_other_to_blame(family: str, said: str, form: str) -> None:
    """Without a place either of the two that were sent is meant."""
    builder = SessionBuilder(seed=1)
    builder.user("go")
    builder.assistant(tool("read", {"filePath": "a"}, "x" * 90_000, attachments=[SHOTS[0]]))
    builder.assistant("fine")
    builder.user("look", SHOTS[1])
    builder.assistant("seen")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    [(message, part)] = [(m, p) for m in session.messages for p in m.parts if p.type == "tool"]
    for at in (0, session.messages[-1].created + 50):
        since = edited(session, [Edit(message.id, part.id, cleared(part, at), "")])
        assert isinstance(planned(FAMILIES[family], since, form, said), Refusal)


@pytest.mark.parametrize("family", ["openai", "azure"])
@pytest.mark.parametrize("field", ["file_data", "filename"])
def test_a_document_that_openai_names_takes_no_picture_with_it(family: str, field: str) -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", file(data_url(b"%PDF-", "application/pdf"), "application/pdf", "a.pdf"), *SHOTS)
    builder.assistant("seen")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    said = f"Invalid 'input[1].content[1].{field}'. Expected a base64-encoded data URL."
    assert isinstance(planned(FAMILIES[family], session, "new", said), Refusal)


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("openai", "Invalid PDF document."),
        ("openai", "The file you uploaded is not a valid PDF."),
        ("openai", "Too many files: at most 5 files allowed."),
        ("azure", "Unsupported file type: text/markdown"),
        ("vertex-claude", "messages.0.content.1: The PDF specified is password protected"),
        ("bedrock", "messages.0.content.1.source.bytes: The document could not be parsed."),
        ("gemini", "The document has no pages."),
        ("gpt", "Invalid PDF document."),
    ],
)
def test_what_is_said_of_a_document_is_said_of_no_picture(family: str, said: str) -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", file(data_url(png(3, 3, padding=4_000_000 if family == "gpt" else 0))))
    builder.assistant("seen")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    assert isinstance(planned(FAMILIES[family], session, "new", said), Refusal)


def test_of_a_result_with_a_picture_and_a_document_that_one_goes_which_the_error_speaks_of() -> None:
    page = file(data_url(b"%PDF-", "application/pdf"), "application/pdf", "a.pdf")
    _, made = _of_three("vertex-claude", "messages.2.content.0: Could not process PDF", [SHOTS[0], page])
    assert not isinstance(made, Refusal), made
    [state] = [(edit.after or {})["state"] for edit in made]
    assert [shot["filename"] for shot in state["attachments"]] == ["3.png"]


def test_where_an_error_names_the_result_alone_all_of_its_pictures_go_and_are_counted() -> None:
    _, made = _of_three("vertex-claude", "messages.2.content.0: Could not process image", SHOTS)
    assert _left(made) == []


def test_pictures_that_go_one_after_the_other_until_the_rest_fit_are_each_counted() -> None:
    heavy = [file(data_url(png(3, 2 + n, padding=3_500_000 + n)), filename=f"{n}.png") for n in range(9)]
    _, made = _of_three("vertex-claude", "messages.2.content.0: image exceeds 5 MB maximum", heavy)
    assert not isinstance(made, Refusal), made
    assert sum((edit.after or {})["state"]["output"].count("was taken out") for edit in made) == 2
    assert deed_names(made) == ("take_out_media",) * 2


@pytest.mark.parametrize("family", ["vertex-claude", "openai", "azure", "gemini", "vertex", "mistral"])
def test_of_several_pictures_of_a_tool_only_that_goes_which_is_none(family: str) -> None:
    page = {**SHOTS[1], "url": data_url(b"<html>no picture</html>")}
    words = {
        "vertex-claude": NAMED["vertex-claude"],
        "gemini": "Unable to process input image.",
        "vertex": "Unable to process input image.",
    }
    _, made = _of_three(
        family,
        words.get(family, "The image data you provided does not represent a valid image"),
        [SHOTS[0], page, SHOTS[2]],
    )
    assert _left(made) == ["3.png", "5.png"]


_NO_PLACE = {
    "gemini": "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide",
    "vertex": "Provided image is not valid.",
    "vertex-claude": "Could not process image",
}


@pytest.mark.parametrize(("most", "known"), [(1, WHICH_IS_NOT_KNOWN), (2, NOTHING_EXPLAINS)])
def test_that_a_prompt_has_more_pictures_than_a_server_takes_is_not_told_as_explained_by_nothing(
    most: int, known: str
) -> None:
    """They are the user's, of one prompt: recoveryd takes none of them out. Where fewer are stored, none is meant."""
    builder = SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant("fine")
    builder.user("and here", *SHOTS[:2])
    session = as_session(FAMILIES["mistral"].dressed(builder.planted()))
    made = planned(FAMILIES["mistral"], session, "new", f"At most {most} image(s) may be provided in one prompt.")
    assert made == Refusal(known, understood=False)


@pytest.mark.parametrize("family", _NO_PLACE)
@pytest.mark.parametrize(("shots", "known"), [(2, "which"), (0, "nothing")])
def test_which_of_several_pictures_is_meant_is_told_as_not_known(family: str, shots: int, known: str) -> None:
    """Where there is none at all, nothing explains the words."""
    builder = SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant("fine")
    builder.user("and here", *SHOTS[:shots])
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    made = planned(FAMILIES[family], session, "new", _NO_PLACE[family])
    assert made == Refusal({"which": WHICH_IS_NOT_KNOWN, "nothing": NOTHING_EXPLAINS}[known], understood=False)


def test_no_picture_is_meant_where_all_of_a_request_has_too_many_bytes() -> None:
    made = _of_three("gemini", "Request payload size exceeds the limit: 20971520 bytes.", SHOTS)[1]
    assert made == Refusal(NOTHING_EXPLAINS, understood=False)


@pytest.mark.parametrize("family", ["gpt", "kimi", "mistral"])
def test_a_large_picture_stays_where_another_is_none(family: str) -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", file(data_url(png(3, 3, padding=4_000_000))), file(data_url(b"<html>no picture</html>")))
    builder.assistant("seen")
    session = as_session(FAMILIES[family].dressed(builder.planted()))
    made = planned(FAMILIES[family], session, "new", "The image data you provided does not represent a valid image.")
    assert not isinstance(made, Refusal), made
    assert [edit.part_id for edit in made] == [session.messages[0].parts[2].id]


@pytest.mark.parametrize("family", ["vertex-claude", "gemini"])
@pytest.mark.parametrize("mime", ["audio/mpeg", "video/mp4"])
def test_sound_and_films_beside_a_picture_that_is_none_stay(family: str, mime: str) -> None:
    heard = file(f"data:{mime};base64,SUQz", mime=mime, filename="heard")
    page = {**SHOTS[1], "url": data_url(b"<html>no picture</html>")}
    words = {"vertex-claude": NAMED["vertex-claude"], "gemini": "Unable to process input image."}
    _, made = _of_three(family, words[family], [page, heard])
    assert not isinstance(made, Refusal), made
    [edit] = made
    assert (edit.after or {})["state"]["attachments"] == [heard]


def _mended(text: str) -> str:
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= char <= "\udfff" else char for char in text)


@pytest.mark.parametrize(("before", "now"), PAIRS)
def test_a_session_that_is_switched_heals_and_is_no_worse_for_the_family_before(before: str, now: str) -> None:
    """Made with one family, asked with another, and back: what the first took before, it takes after."""
    assert {shape.name: made_worse(before, now, "new", shape) for shape in TRIED[::4]} == dict.fromkeys(
        shape.name for shape in TRIED[::4]
    )


@pytest.mark.parametrize("form", ["old", "new"])
@pytest.mark.parametrize(
    ("before", "now", "shapes"),
    [
        # A step that is cut in two: its second call has the reasoning of the first.
        ("openrouter-kimi", "bedrock", ("text-between-tools-on", "step-mark-lost-on", "misplaced-and-open")),
        ("openrouter-kimi", "gemma", ("thinking-before-tools-closed-on", "open-thinking-parallel-tools")),
        # An open turn whose answer becomes one of the model that is asked.
        ("bedrock", "openrouter-kimi", ("open-redacted-thinking", "tool-open-with-thinking-on")),
        ("openrouter", "openrouter-kimi", ("misplaced-and-open", "open-thinking-behind-text-deep")),
        ("copilot", "openrouter-kimi", ("tool-then-text-open-thinking", "blank-answer-on-deep")),
    ],
)
def test_what_wants_reasoning_with_each_call_and_its_neighbours_take_what_they_took(
    before: str, now: str, shapes: tuple[str, ...], form: str
) -> None:
    for name in shapes:
        assert made_worse(before, now, form, SHAPES[name]) is None, name


@pytest.mark.parametrize(("before", "name"), sorted(TOLD_BY_ITS_REFUSAL))
def test_what_only_a_refusal_tells_of_a_template_is_as_said(before: str, name: str) -> None:
    shape = SHAPES[name]
    session = session_of(before, shape)
    assert refusal(FAMILIES[before], session, "new", thinking=shape.thinking) is None
    after = healed(session, "gemini", "new", shape)
    assert refusal(FAMILIES[before], after, "new", thinking=shape.thinking) is not None
    healed(after, before, "new", shape)


@pytest.mark.parametrize("fault", switching.FAULTS)
def test_a_session_of_four_families_goes_round_and_back(fault: str) -> None:
    """Claude, GPT, Gemini, Kimi and Claude again, each asked in this order and in the other."""
    made = as_session(switching.made_by([FAMILIES[name] for name in switching.CIRCLE], fault))
    for asked in (switching.CIRCLE, switching.CIRCLE[::-1]):
        session = made
        for name in asked:
            session = healed(session, name, "new", SHAPES["steps-in-one-message-on"])
        assert (session == made) is (fault == "sound")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_says_which_kinds_its_rules_find(name: str) -> None:
    words = "Conversation roles must alternate user/assistant/user/assistant/..."  # by which a template is known
    found = set()
    for shape in TRIED:
        failure = failure_of(FAMILIES[name], session_of(name, shape), words)
        [wire] = wires_of(failure, protocol_of(failure), [Form.named("new")])
        rules = rules_for(failure, [wire])
        found |= {one.kind for one in rules.check(wire.build(session_of(name, shape)), Claims())}
        assert rules.finds
    assert found - {Kind.UNSENDABLE_PART, Kind.TOOL_RESULT_ORPHAN} <= rules.finds


def test_a_call_that_the_provider_executed_stops_mistrals_sdk_and_is_mended() -> None:
    one = judged(FAMILIES["mistral"], SHAPES["tool-executed-by-the-provider"], "new")
    assert (one.first, one.left) == ("crash", None)
    assert [edit.action for edits in one.repairs for edit in edits] == ["mend_call"]


@pytest.mark.parametrize(("name", "within"), [("openai", True), ("azure", False)])
def test_a_picture_stands_in_the_result_of_its_tool_or_beside_it(name: str, within: bool) -> None:
    request = built(FAMILIES[name], session_of(name, SHAPES["attachments-of-tools-on"]), "new")
    outputs = [block.body["output"] for block in request.blocks() if block.type == "function_call_output"]
    assert any(isinstance(output, list) for output in outputs) is within


def test_xais_sdk_writes_the_picture_of_a_tool_into_its_result() -> None:
    request = built(FAMILIES["xai"], session_of("xai", SHAPES["empty-output-beside-a-picture"]), "new")
    [content] = [block.body["content"] for block in request.blocks() if block.type == "tool_result"]
    assert content.startswith('[{"type":"image-data","data":"')


def _pdf(name: str) -> dict[str, Any]:
    return file(data_url(b"%PDF-1.4\n" + name.encode(), "application/pdf"), "application/pdf", name)


@pytest.mark.parametrize(("form", "in_tool"), [*((form, False) for form in FORMS), ("new", True)])
def test_a_document_whose_name_bedrock_refuses_is_renamed_and_stays(form: str, in_tool: bool) -> None:
    """Those that it takes keep theirs; each new one is like the old, and no other's."""
    family, builder = FAMILIES["bedrock"], SessionBuilder(seed=1)
    names = ["docs/spec.pdf", "docs#spec.pdf", "Über  Größe.pdf", "報告.pdf", "report.pdf", "new/report.pdf", ".x.pdf"]
    names += ["API\u3000spec.pdf", "Invoice\u00a0123.pdf", "Q3\tplan.pdf"]
    if in_tool:
        builder.user("look")
        builder.assistant(tool("read", {}, "ten files", attachments=[_pdf(name) for name in names]))
    else:
        builder.user("look", *map(_pdf, names))
    builder.assistant("seen")
    builder.user("and the newer one", _pdf("report.pdf"))
    session = as_session(family.dressed(builder.planted()))
    for _ in range(3):
        said = refusal(family, session, form, thinking=False)
        if said is None:
            break
        assert "name" in said
        made = planned(family, session, form, said)
        assert not isinstance(made, Refusal), made
        assert set(deed_names(made)) == {"rename_document"}
        session = edited(session, made)
    assert refusal(family, session, form, thinking=False) is None
    blocks = [block for block in built(family, session, form).blocks() if block.type == "document"]
    assert len(blocks) == len(names) + 1, "none is lost"
    if form == "new":
        kept = [block.body["title"] for block in blocks]
        assert kept[4] == "report" and kept[0] in ("docs-spec", "docs-spec (2)") and kept[2] == "Uber Gro-e", kept


@pytest.mark.parametrize("form", FORMS)
def test_a_document_gets_no_name_that_the_client_gives_to_those_without_one(form: str) -> None:
    """Also one that a user called so is renamed, beside as many without a name."""
    family, builder = FAMILIES["bedrock"], SessionBuilder(seed=1)
    nameless = [{key: value for key, value in _pdf(name).items() if key != "filename"} for name in "ab"]
    names = ["報告", "概要", "document#2", "document-1", "document-3", "document#", "document"]
    builder.user("look", *nameless, *map(_pdf, names))
    builder.assistant("seen")
    session = as_session(family.dressed(builder.planted()))
    for told, renamed in ("file name can only contain", 4), ("duplicate document names", 1):
        said = refusal(family, session, form, thinking=False)
        assert said is not None and told in said
        made = planned(family, session, form, said)
        assert not isinstance(made, Refusal), made
        assert deed_names(made) == ("rename_document",) * renamed
        session = edited(session, made)
    assert refusal(family, session, form, thinking=False) is None
    kept = [block.body.get("title") for block in built(family, session, form).blocks() if block.type == "document"]
    numbered = ["document-2 (2)", "document-1 (2)", "document-3", "document (2)", "document"]
    assert kept == [None, None, "file", "file (2)", *numbered]


def test_two_documents_of_a_tool_that_are_renamed_are_told_as_two() -> None:
    family, builder = FAMILIES["bedrock"], SessionBuilder(seed=1)
    builder.user("look")
    builder.assistant(tool("read", {}, "two files", attachments=[_pdf("a/b.pdf"), _pdf("c/d.pdf")]))
    session = as_session(family.dressed(builder.planted()))
    made = planned(family, session, "new", refusal(family, session, "new", thinking=False) or "")
    assert not isinstance(made, Refusal), made
    assert deeds_sentence(deed_names(made), Kind.MEDIA_REJECTED).startswith("Renamed 2 documents whose names")


def test_a_document_whose_name_bedrock_takes_is_not_renamed() -> None:
    builder = SessionBuilder(seed=1)
    builder.user("look", _pdf("a_b (1) [x]-2.pdf"), _pdf("bad/name.pdf"), SHOTS[0])
    builder.assistant("seen")
    session = as_session(FAMILIES["bedrock"].dressed(builder.planted()))
    said = refusal(FAMILIES["bedrock"], session, "new", thinking=False)
    assert said is not None
    made = planned(FAMILIES["bedrock"], session, "new", said)
    assert not isinstance(made, Refusal), made
    [after] = [edit.after or {} for edit in made]
    assert (after["filename"], after["type"]) == ("bad-name.pdf", "file")
    elsewhere = planned(FAMILIES["bedrock"], session, "new", "The document could not be parsed.")
    assert isinstance(elsewhere, Refusal), "its name is looked at only where an error speaks of it"
