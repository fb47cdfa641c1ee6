"""Each rule by its name, on the smallest request that breaks it; and all of them against the strict provider."""

from __future__ import annotations

import base64
import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode.error_record import read as read_error
from recoveryd.clients.opencode.wire.form import NEW, OLD, Form
from recoveryd.core import kind_info
from recoveryd.core.edits import edited
from recoveryd.core.model import Edit, Kind, Refused
from recoveryd.core.request import Block, Request, Turn
from recoveryd.core.violation import Claims, Violation
from recoveryd.providers import classify
from recoveryd.providers.anthropic.bound_thinking import unbound
from recoveryd.providers.anthropic.rules import check, claims
from recoveryd.providers.find import LIKELY, SURE
from recoveryd.providers.sentences.rows import Row
from tests.e2e.media import png
from tests.support.examples import examples
from tests.support.generate import CHANCE, Generated, generate, soup
from tests.support.judge import bound_to, kinds, refusal, wire_of
from tests.support.values import as_session

ON, OFF = Claims(thinking=frozenset({True})), Claims(thinking=frozenset({False}))
Body = dict[str, Any]


def words(text: str = "a word") -> Body:
    return {"type": "text", "text": text}


def thought(name: str = "hm") -> Body:
    return {"type": "thinking", "thinking": name, "signature": name}


def call(name: str = "c1") -> Body:
    return {"type": "tool_use", "id": name, "name": "bash", "input": {}}


def result(name: str = "c1", content: Any = "done") -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def wire(*turns: list[Body]) -> Request:
    """Turns of the user and the assistant by turns, the user's first. A part's id tells its place: `1.0`."""
    made = []
    for at, bodies in enumerate(turns):
        role = "assistant" if at % 2 else "user"
        blocks = tuple(Block(body, f"m{at}", f"{at}.{index}") for index, body in enumerate(bodies))
        made.append(Turn(role, blocks, ((f"m{at}", f"{at}.{len(bodies) - 1}"),)))
    return Request(tuple(made))


def found(sent: Request, claims: Claims = OFF) -> list[tuple[str, str | None]]:
    return [(v.kind.value, v.block.part_id if v.block else None) for v in check(sent, claims)]


GO, NEXT = [words("go")], [words("next")]


def test_a_sound_request_breaks_no_rule() -> None:
    sent = wire(GO, [thought(), words(), call(), call("c2")], [result("c2"), result()], [words()], NEXT)
    assert found(sent, Claims()) == []


def test_tool_result_missing_for_a_call_without_a_result() -> None:
    assert found(wire(GO, [call()], NEXT)) == [("tool_result_missing", "1.0")]
    assert found(wire(GO, [call(), call("c2")], [result()], [words()], NEXT)) == [("tool_result_missing", "1.1")]


def test_tool_result_missing_for_a_result_that_stands_behind_other_words() -> None:
    assert ("tool_result_missing", "1.0") in found(wire(GO, [call()], [words(), result()]))


def test_tool_result_missing_for_what_stands_behind_a_call() -> None:
    assert found(wire(GO, [call(), words()], [result()])) == [("tool_result_missing", "1.1")]
    assert found(wire(GO, [call(), thought(), call("c2")], [result(), result("c2")], [words()], NEXT)) == [
        ("tool_result_missing", "1.1")
    ]


def test_tool_result_orphan_for_a_result_without_a_call() -> None:
    assert found(wire([result()])) == [("tool_result_orphan", "0.0")]
    assert found(wire(GO, [words()], [result()])) == [("tool_result_orphan", "2.0")]
    assert ("tool_result_orphan", "2.1") in found(wire(GO, [call()], [result(), result("c9")]))


def test_thinking_block_order_for_an_open_turn_that_begins_without_thinking() -> None:
    open_turn = wire(GO, [words(), thought(), call()], [result()])
    assert found(open_turn, ON) == [("thinking_block_order", "1.0")]
    assert found(wire(GO, [thought(), call()], [result()]), ON) == []
    assert found(wire(GO, [words()]), ON) == [("thinking_block_order", "1.0")], "the last message of all"


def test_thinking_disabled_violation_for_an_open_turn_with_thinking() -> None:
    open_turn = wire(GO, [words(), thought(), call()], [result()])
    assert found(open_turn, OFF) == [("thinking_disabled_violation", "1.1")]
    assert found(wire(GO, [call()], [result()]), OFF) == []


def test_an_open_turn_must_be_right_both_ways_while_it_is_not_known() -> None:
    for blocks in ([thought(), call()], [call()]):
        assert len(found(wire(GO, blocks, [result()]), Claims())) == 1


def test_a_closed_turn_may_be_either_way() -> None:
    closed = wire(GO, [call()], [result()], [thought(), words()], NEXT)
    assert found(closed, Claims()) == []


def test_redacted_thinking_is_thinking() -> None:
    red = {"type": "redacted_thinking", "data": "x"}
    assert found(wire(GO, [red, call()], [result()]), ON) == []
    assert found(wire(GO, [red, call()], [result()]), OFF) == [("thinking_disabled_violation", "1.0")]
    assert found(wire(GO, [words(), red], NEXT)) == [("thinking_final_block", "1.1")]


def test_thinking_final_block_for_a_message_that_ends_in_thinking() -> None:
    assert found(wire(GO, [words(), thought()], NEXT)) == [("thinking_final_block", "1.1")]


def test_thinking_signature_invalid_for_what_the_error_accuses() -> None:
    sent = wire(GO, [thought("a"), words()], NEXT, [thought("b"), words()], NEXT)
    assert found(sent, Claims(accused=frozenset({"3.0"}))) == [("thinking_signature_invalid", "3.0")]
    assert found(sent, Claims(accused=frozenset({"3.1"}))) == [], "only thinking can be accused"


SIGNATURES = [row for row in (*SURE, *LIKELY) if row.kind is not None and kind_info(row.kind).signature]


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row.words)
def test_what_others_say_of_their_signatures_accuses_no_thinking(row: Row) -> None:
    """Gemini signs calls; whatever it says, no thinking answers it."""
    request = wire(GO, [thought("a"), words()], NEXT)
    assert row.kind is not None
    refused = Refused(row.kind, said=row.words, said_by=row.said_by)
    assert bool(claims(refused, request, None).accused) is (not row.said_by.startswith("Gemini"))


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u00a0", "\u3000\u2028"])
def test_empty_content_for_a_text_of_white_space(blank: str) -> None:
    assert found(wire([words(), words(blank)])) == [("empty_content", "0.1")]
    nested = result(content=[words(blank)])
    assert found(wire(GO, [call()], [nested], [words()], NEXT)) == [("empty_content", "2.0")]


@pytest.mark.parametrize("word", ["\u200b", "\ufeff", "\x00", ".", "\u2060"])
def test_what_is_no_white_space_is_a_word(word: str) -> None:
    assert found(wire([words(word)])) == []


def test_empty_content_for_a_message_of_nothing_but_the_last_of_the_assistant() -> None:
    assert found(wire(GO, [], NEXT)) == [("empty_content", None)]
    assert found(wire(GO, [])) == []
    assert found(wire([])) == [("empty_content", None)]


def test_an_empty_output_that_is_no_text_block_is_no_fault() -> None:
    assert found(wire(GO, [call()], [result(content="")], [words()], NEXT)) == []


def test_role_order_for_a_conversation_that_the_assistant_begins() -> None:
    turns = wire([], [words()], NEXT).turns[1:]
    assert [v.kind for v in check(Request(turns), OFF)] == [Kind.ROLE_ORDER]


def test_a_call_that_the_error_names_is_unfinished_until_it_has_an_end() -> None:
    claims = Claims(unfinished=frozenset({"2.0"}), thinking=frozenset({False}))
    sent = wire(GO, [call()], [result()])
    assert found(sent, claims) == []
    made_up = replace(sent.turns[2], blocks=(replace(sent.turns[2].blocks[0], unfinished=True),))
    assert found(Request((*sent.turns[:2], made_up)), claims) == [("tool_result_missing", "2.0")]


def test_violations_come_in_the_order_of_the_request() -> None:
    sent = wire([words(" ")], [words(), thought()], [words(" ")], [call()])
    turns = [violation.turn for violation in check(sent, Claims())]
    assert turns == sorted(turns)
    assert turns[0] == 0


def rejected(before: Request, after: Request) -> list[str]:
    return [block.part_id for block in unbound(before, after)]


def without(sent: Request, *part_ids: str) -> Request:
    turns = (Turn(t.role, tuple(b for b in t.blocks if b.part_id not in part_ids), t.origins) for t in sent.turns)
    return Request(tuple(turns))


BOUND = wire(GO, [thought("a"), words()], NEXT, [thought("b"), words()], NEXT, [thought("c"), words()], NEXT)


@pytest.mark.parametrize(
    ("gone", "lost"),
    [
        ((), []),
        (("1.0",), []),
        (("5.0",), []),
        (("3.0", "5.0"), []),
        (("1.0", "3.0", "5.0"), []),
        (("3.0",), ["5.0"]),
        (("1.1",), ["3.0", "5.0"]),
        (("0.0",), ["1.0", "3.0", "5.0"]),
        (("5.1", "6.0"), []),
        (("4.0",), ["5.0"]),
    ],
)
def test_thinking_may_go_from_the_start_or_the_end_and_nothing_before_what_stays(
    gone: tuple[str, ...], lost: list[str]
) -> None:
    assert rejected(BOUND, without(BOUND, *gone)) == lost


def test_an_addition_in_front_of_thinking_unbinds_it() -> None:
    first, *others = BOUND.turns
    longer = Turn("user", (*first.blocks, Block(words("added"), "m0", "new")), first.origins)
    assert rejected(BOUND, Request((longer, *others))) == ["1.0", "3.0", "5.0"]


def violations(sent: Request, thinking: bool) -> set[str]:
    return {violation.kind.value for violation in check(sent, ON if thinking else OFF)}


FORMS = st.sampled_from([OLD, NEW])


@examples(150)
@given(CHANCE, FORMS, st.integers(0, 5))
def test_the_rules_find_what_the_strict_provider_finds_and_no_more(rng: random.Random, form: Form, faults: int) -> None:
    _agree(generate(rng, faults), form)


@examples(250)
@given(CHANCE, FORMS)
def test_they_agree_on_any_mixture_of_parts_as_well(rng: random.Random, form: Form) -> None:
    _agree(soup(rng), form)


def _agree(generated: Generated, form: Form) -> None:
    session = as_session(generated.planted)
    sent = wire_of(session, form)
    assert sent.unsendable == ()
    for thinking in (True, False):
        assert violations(sent, thinking) == kinds(sent, thinking)


@examples(150)
@given(CHANCE, FORMS)
def test_no_thinking_is_bound_to_what_was_not_changed(rng: random.Random, form: Form) -> None:
    """What `unbound` lets pass, a provider that binds thinking lets pass, whatever part is taken away."""
    session = as_session(generate(rng, 0, turns=4).planted)
    parts = [(m, p) for m in session.messages for p in m.parts if p.type in ("text", "reasoning")]
    if not parts:
        return

    gone = rng.sample(parts, min(len(parts), rng.randint(1, 3)))
    after = edited(session, [Edit(message.id, part.id, None, "x") for message, part in gone])
    why = refusal(after, True, bound_to(session, form), form)
    bound = why is not None and "bound to a different conversation" in why.message
    lost = unbound(wire_of(session, form), wire_of(after, form))
    assert bool(lost) or not bound


def test_a_violation_says_where_and_why() -> None:
    [violation] = check(wire(GO, [words(" ")], NEXT), OFF)
    assert (violation.turn, violation.kind) == (1, Kind.EMPTY_CONTENT)
    assert isinstance(violation, Violation)
    assert "white space" in violation.reason


def media(kind: str, data: bytes, declared: str) -> Body:
    coded = base64.b64encode(data).decode()
    return {"type": kind, "source": {"type": "base64", "media_type": declared, "data": coded}}


def test_a_document_may_have_what_an_image_may_not_and_counts_as_none() -> None:
    """Five MB and the twenty are said of images: a PDF has room up to the whole request's 32 MB."""
    paper = media("document", b"%PDF-1.7\n" + b" " * 4_500_000, "application/pdf")
    wide = media("image", png(2400, 1), "image/png")
    assert found(wire([paper, words()], [words()], NEXT)) == []
    assert found(wire([*([wide] * 19), *([media("document", b"%PDF-1.7", "application/pdf")] * 2)], GO, NEXT)) == []
    assert len(found(wire([wide] * 21, GO, NEXT))) == 21
    sheet = media("document", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
    assert found(wire([sheet, media("document", b"a;b", "text/csv")], GO, NEXT)) == []
    assert len(found(wire([deepcopy(paper) for _ in range(6)], GO, NEXT))) == 1, (
        "the heaviest, where all have more than 32 MB"
    )


def test_an_image_may_have_10_mb_or_what_the_error_says() -> None:
    mb = 2**20
    sent = wire([media("image", png(4, 4) + b" " * (n * mb * 3 // 4), "image/png") for n in (4, 6, 9, 11)], GO, NEXT)
    assert found(sent) == [("media_rejected", "0.3")]
    assert {place for _, place in found(sent, replace(OFF, image_bytes=5 * mb))} == {"0.1", "0.2", "0.3"}


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("image exceeds 6 MB maximum: 8388608 bytes > 6291456 bytes", 6),
        ("image is too large", 5),
        ("image dimensions exceed max allowed size: 8000 pixels", 0),
        ("image exceed max allowed size for many-image requests: 2000 pixels", 0),
        ("Image count 25 exceeds limit 20 per request.", 0),
    ],
)
def test_how_many_bytes_an_image_may_have_is_told_by_words_about_bytes(words: str, most: int) -> None:
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None
    assert claims(refused, wire(GO, NEXT), None).image_bytes == most * 2**20


@pytest.mark.parametrize(
    "words",
    [
        "messages.9.content.4: too many images and documents: 5 + 0 > 3",
        "Too much media: 0 document pages + 5 images > 3",
        "too many images: at most 3 images are allowed",
        "too many images and documents: 5 + 2 > 5",
        "Too much media: 4 document pages + 5 images > 7",
    ],
)
def test_of_too_many_images_the_oldest_go(words: str) -> None:
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None
    shots = [[media("image", png(4, 4 + n), "image/png")] for n in range(5)]
    sent = wire(*(turn for shot in shots for turn in (shot, [{"type": "text", "text": "seen"}])), GO)
    claimed = claims(refused, sent, None)
    assert len(claimed.media) == 2
    found = [v for v in check(sent, claimed) if v.kind is Kind.MEDIA_REJECTED]
    assert [v.turn for v in found] == [0, 2]
    assert {why for v in found for _, why in v.media} == {"there were more than the provider takes"}


def test_of_too_many_documents_the_oldest_go_and_no_image() -> None:
    """As Bedrock says it."""
    words = (
        "You can't include more than 5 documents in a request.\nReduce the number of documents and retry your request."
    )
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None
    files = [[media("document", b"%PDF-1.4" + bytes(n), "application/pdf")] for n in range(7)]
    shown = [media("image", png(4, 4), "image/png")]
    sent = wire(shown, *(turn for one in files for turn in (one, [{"type": "text", "text": "seen"}])), GO)
    claimed = claims(refused, sent, None)
    assert [v.turn for v in check(sent, claimed) if v.kind is Kind.MEDIA_REJECTED] == [1, 3]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("too many images and documents: 2 + 0 > 1", "there were more than the provider takes"),
        ("messages.0.content.0.image.source.url: image exceeds 5 MB maximum", "the provider does not take it"),
        ("messages.0.content.0.image.source.url: Unable to download the file.", "the provider can't fetch it"),
    ],
)
def test_of_an_image_by_its_address_it_is_told_what_the_error_says(words: str, why: str) -> None:
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None
    shots = [{"type": "image", "source": {"type": "url", "url": f"https://x.org/{n}.png"}} for n in range(2)]
    sent = wire([shots[0]], [{"type": "text", "text": "seen"}], [shots[1]])
    named = sent.at(*refused.position) if refused.position else None
    found = [v for v in check(sent, claims(refused, sent, named)) if v.kind is Kind.MEDIA_REJECTED]
    assert [(v.turn, v.reason, [told for _, told in v.media]) for v in found] == [(0, why, [why])]


def test_too_many_images_of_one_prompt_are_too_many_of_the_request() -> None:
    words = "too many images and documents: 5 + 1 > 3"
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None
    sent = wire([media("image", png(4, 4 + n), "image/png") for n in range(5)], GO, NEXT)
    assert len(claims(refused, sent, None).media) == 3


def test_no_image_goes_where_the_documents_are_too_many_alone() -> None:
    for words in ("too many images and documents: 3 + 6 > 5", "Too much media: 101 document pages + 3 images > 100"):
        refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
        assert refused is not None
        sent = wire(*([media("image", png(4, 4 + n), "image/png")] for n in range(3)), GO, NEXT)
        assert not claims(refused, sent, None).media, words


def test_what_an_error_names_is_meant_beside_what_the_rules_find() -> None:
    wrong, damaged = media("image", b"no image", "image/png"), media("image", png(4, 4), "image/png")
    sent = wire([wrong, damaged, damaged], GO, NEXT)
    blocks = list(sent.blocks())

    def meant(text: str, named: Block | None) -> set[str]:
        refused = classify(read_error({"name": "APIError", "data": {"message": text}}))
        assert refused is not None
        return {part for part, _ in claims(refused, sent, named).media}

    assert meant("messages.0.content.1.image.source.base64.data: Could not process image", blocks[1]) == {"0.1"}
    assert meant("messages.0.content.0.image.source.base64.data: Could not process image", blocks[0]) == set()
    assert meant("Could not process image", None) == set(), "the rules find one"


SEEN = [words("seen")]
INVALID_SIGNATURE = "messages.3.content.0: Invalid `signature` in `thinking` block"
TORN = "messages.{}.content.0.image.source.base64.data: Could not process image"


def placed(said: str, *turns: list[Body], by_others: frozenset[str] = frozenset(), told: bool = True) -> set[str]:
    """The parts that this error means of a request that tells which model answered."""
    refused = classify(read_error({"name": "APIError", "data": {"message": said}}))
    assert refused is not None and refused.position is not None
    sent = replace(wire(*turns), models_told=told, by_others=by_others)
    named = wire(*turns).at(*refused.position)  # of what was sent then: other blocks of the same parts
    return {part for part, _ in claims(refused, sent, named).media}


def test_a_place_where_an_answered_image_stands_is_another_where_one_is_new() -> None:
    """Plugins add and drop messages of a request, and a place counts what was sent."""
    one, two, three, four = (media("image", png(4, 4 + n), "image/png") for n in range(4))
    turns = [one], SEEN, [two], SEEN
    assert placed(TORN.format(2), *turns, [three]) == {"4.0"}, "messages were dropped"
    assert placed(TORN.format(6), *turns, [three]) == {"4.0"}, "messages were added"
    assert placed(TORN.format(2), *turns, [three, four]) == set(), "it is not known which"
    assert placed(TORN.format(4), *turns, [three, four]) == {"4.0"}
    assert placed(TORN.format(2), *turns, GO) == {"2.0"}, "none is new: the provider takes less than it did"
    assert placed(TORN.format(2), *turns, [three], by_others=frozenset({"m3"})) == {"2.0"}, "another model answered"
    assert placed(TORN.format(2), *turns, [three], told=False) == {"2.0"}, "it is not known which model did"


def test_a_place_is_not_believed_where_the_rules_find_what_is_new() -> None:
    """What is meant besides, the next refusal names."""
    wrong, sound = media("image", b"GIF89a\x04\0\x04\0\0\0\0", "image/png"), media("image", png(4, 4), "image/png")
    assert placed(TORN.format("0.content.1").replace(".content.0", ""), [wrong, sound]) == set()
    assert placed(TORN.format(2), [wrong], SEEN, [sound]) == {"2.0"}, "that one this provider takes"


def test_a_place_is_believed_of_what_may_be_refused_although_it_was_answered() -> None:
    """So many pixels a side are taken of few images; and what is fetched may be gone."""
    wide, sound = media("image", png(1900, 4), "image/png"), media("image", png(4, 4), "image/png")
    sides = "messages.0.content.0.image.source.base64.data: image dimensions exceed max allowed size: 1568 pixels"
    assert placed(sides, [wide], SEEN, [sound]) == {"0.0"}
    assert placed(sides, [wide], SEEN, [media("image", png(9000, 4), "image/png")]) == set(), "the rules find that one"
    far = {"type": "image", "source": {"type": "url", "url": "https://x.org/1.png"}}
    gone = "messages.0.content.0.image.source.url: Unable to download the file."
    assert placed(gone, [far], SEEN, [{**far, "source": {"type": "url", "url": "https://x.org/2.png"}}]) == {"0.0"}


def test_a_place_is_not_believed_of_an_image_that_is_lighter_than_what_is_taken() -> None:
    light, heavy = (media("image", png(4, 4) + bytes(n * 2**20), "image/png") for n in (1, 4))
    words = "messages.0.content.{}.image.source.base64: image exceeds 5 MB maximum: 5592560 bytes > 5242880 bytes"
    assert placed(words.format(0), [light, light], told=False) == set()
    assert placed(words.format(0), [light, heavy]) == set(), "the rules find the other"


def test_what_signs_nothing_is_rejected_before_what_an_error_names_behind_it() -> None:
    """The provider names the first: a message was added before them."""
    refused = classify(read_error({"name": "APIError", "data": {"message": INVALID_SIGNATURE}}))
    assert refused is not None and refused.position == (3, 0)
    whole, torn = {**thought(), "signature": "c2lnbmVk"}, {**thought(), "signature": "c2lnbmV"}

    def accused(*thoughts: Body) -> set[str]:
        sent = wire(*(turn for one in thoughts for turn in (GO, [one, words()])), GO)
        return set(claims(refused, sent, sent.at(3, 0)).accused)

    assert accused(whole, whole, whole) == {"3.0", "5.0"}
    assert accused(torn, whole, whole) == {"1.0", "3.0", "5.0"}
    assert accused(whole, whole, torn) == {"3.0", "5.0"}
    assert accused(torn, torn, whole) == {"3.0", "5.0"}, "whoever signs like this signs soundly"
    unsigned = {**thought(), "signature": ""}
    assert accused(unsigned, whole, whole) == {"3.0", "5.0"}, "OpenCode 1.1 sends OpenRouter each thought so"
    assert accused(whole, unsigned, whole) == {"3.0", "5.0"}
    assert accused(whole, words(), torn) == {"5.0"}, "none stands at the place"


def test_where_no_thinking_stands_at_the_place_what_is_new_is_rejected() -> None:
    """A plugin put messages in front; what the model has answered, it took."""
    refused = classify(read_error({"name": "APIError", "data": {"message": INVALID_SIGNATURE}}))
    assert refused is not None and refused.position == (3, 0)
    whole = {**thought(), "signature": "c2lnbmVk"}

    def accused(*turns: list[Body], told: bool = True) -> set[str]:
        sent = replace(wire(*turns), models_told=told)
        return set(claims(refused, sent, sent.at(3, 0)).accused)

    answered = (GO, [whole, words()], GO, [words()], GO)
    assert accused(*answered, [whole, words()], GO) == {"5.0"}
    assert accused(*answered, [whole, words()], GO, told=False) == {"1.0", "5.0"}
    assert accused(*answered, [words()], GO) == {"1.0"}, "nothing is new"
    assert accused(GO, [whole, words()], GO, [whole, words()], GO, [whole, words()], GO) == {"3.0", "5.0"}


@pytest.mark.parametrize(
    ("words", "sort"),
    [
        ("Could not process image", "image"),
        ("Could not process PDF", "document"),
        ("The PDF specified was not valid.", "document"),
        ("The PDF specified is password protected.", "document"),
        ("A maximum of 100 PDF pages may be provided.", "document"),
        ("Image does not match the provided media type image/png", "image"),
        ("Unable to download the file. Please verify the URL and try again.", "url"),
    ],
)
def test_without_a_place_the_one_that_no_answer_stands_behind_is_meant(words: str, sort: str) -> None:
    """Or the only one; of several new ones it is not known which, but of those that it was to fetch all are."""
    refused = classify(read_error({"name": "APIError", "data": {"message": words}}))
    assert refused is not None

    def one(number: int) -> dict[str, Any]:
        if sort == "url":
            return {"type": "image", "source": {"type": "url", "url": f"http://h/{number}.png"}}
        if sort == "image":
            return media("image", png(4, 4 + number), "image/png")
        return media("document", b"%PDF-1.4 " + bytes([number]), "application/pdf")

    def meant(*turns: list[dict[str, Any]]) -> set[str]:
        return {part for part, _ in claims(refused, wire(*turns), None).media}

    answer = [{"type": "text", "text": "seen"}]
    assert meant([one(0)]) == meant([one(0)], answer, GO) == {"0.0"}
    assert meant([one(0)], answer, [one(1)]) == {"2.0"}
    several = meant([one(0)], answer, [one(1), one(2)])
    assert several == ({"2.0", "2.1"} if sort == "url" else set())


@pytest.mark.parametrize("place", ["messages.7.content.0", "messages.0.content.0", "messages.0.content.3"])
def test_where_none_stands_at_the_place_the_only_one_is_meant_if_it_is_new(place: str) -> None:
    """Of another one, what was refused is not known to be stored."""
    words = f"{place}.image.source.base64.data: Could not process image"
    pages = f"{place}.pdf.source.base64.data: A maximum of 100 PDF pages may be provided."
    lead, answer = {"type": "text", "text": "see"}, [{"type": "text", "text": "seen"}]
    shown = [media("image", png(4, 4 + number), "image/png") for number in range(2)]
    file = media("document", b"%PDF-1.4 ", "application/pdf")

    def meant(said: str, *turns: list[dict[str, Any]]) -> set[str]:
        refused = classify(read_error({"name": "APIError", "data": {"message": said}}))
        assert refused is not None and refused.position is not None
        sent = wire(*turns)
        return {part for part, _ in claims(refused, sent, sent.at(*refused.position)).media}

    assert meant(words, [lead, shown[0]]) == {"0.1"} and meant(words, [lead, file, shown[0]]) == {"0.2"}
    assert meant(pages, [lead, file, shown[0]]) == {"0.1"}
    assert meant(words, [lead], answer, [shown[0]]) == {"2.0"}
    assert meant(words, [lead, shown[0]], answer, GO) == set(), "it was answered"
    assert meant(words, [lead, *shown]) == set(), "it is not known which"
    assert meant(words, [lead, shown[0]], answer, [shown[1]]) == set(), "nor here"
    assert meant(words, [lead, file]) == set(), "it is no image"
    heavy = f"{place}.image.source.base64: image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"
    assert meant(heavy, [lead, shown[0]]) == set(), "it is not so large"
