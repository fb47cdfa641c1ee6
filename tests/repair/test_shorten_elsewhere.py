"""A conversation with much thinking made shorter elsewhere: by chat completions, and for a door that has what is sealed
on calls and texts, too.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from recoveryd.clients.opencode import token_usage
from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.pruning import is_cleared
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.compatible import weighed
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Block, Failure, Marks, RecordedError, Session, Size, Usage, edited
from recoveryd.core.request import Request
from recoveryd.providers import rules_for
from recoveryd.repair import ShortenInput, ShorterPlan, counts_thinking, scales, shorten
from recoveryd.repair.measure import measure
from tests.e2e.media import data_url, png
from tests.families.judged import failure_of, refusal
from tests.families.table import EVERY_FAMILY, FAMILIES
from tests.support.build import Planted, SessionBuilder, reasoning, tool
from tests.support.long_sessions import BASE, FIRST, IMAGE, LONG, PER_TOKEN, bash, spent, weight, words
from tests.support.parts import Part, file
from tests.support.values import as_session


def _thinks_much() -> SessionBuilder:
    session, rng = SessionBuilder(seed=7), random.Random(7)
    session.user(FIRST)
    for turn in range(30):
        session.assistant(reasoning(words(rng, 26_000)), tool("bash", {"command": f"run {turn}"}, "ok"))
        session.assistant(reasoning(words(rng, 2_000)), f"thought about {turn}")
        session.user(f"think on, {turn}")
    session.assistant(reasoning(words(rng, 26_000)), "done")
    return session


def _calls(request: Request) -> list[Block]:
    return [block for block in request.blocks() if block.type == "tool_use"]


@pytest.mark.parametrize("binds", [False, True])
@pytest.mark.parametrize("name", ["openrouter", "copilot", "openrouter-kimi"])
def test_of_what_carries_thinking_the_rest_stays(name: str, binds: bool) -> None:
    family = FAMILIES[name]
    session = as_session(family.dressed(spent(_thinks_much().planted())))
    failure = failure_of(family, session, "x")
    wires = wires_of(failure, protocol_of(failure), [Form.named("new")])
    case = ShortenInput(
        session,
        wires,
        rules_for(failure, wires),
        partial(OpencodeShortener, marks=Marks("rtest", 1_791_000_000_000), folder="/data/tool-output"),
        tuple(token_usage.usages(session, failure)),
        Size(limit=200_000),
        0.7,
        binds=binds,
    )
    made = shorten(case)
    assert isinstance(made, ShorterPlan), made
    types = {part.id: part.type for message in session.messages for part in message.parts}
    gone = Counter(types.get(edit.part_id or "") for edit in made.edits if edit.after is None)
    after = edited(session, made.edits)
    assert set(gone) <= {"reasoning"}
    assert refusal(family, after, "new", thinking=True) is None
    if not any(edit.action == "compact" for edit in made.edits):
        assert len(_calls(wires[0].build(after))) == len(_calls(wires[0].build(session)))


def _planned(name: str, planted: Planted, most: int) -> tuple[ShorterPlan, Request]:
    """What makes a session shorter that may have so many tokens, and what is sent then."""
    session, failure = _by_chat(name, planted)
    wires = wires_of(failure, protocol_of(failure), [Form.named("new")])
    editor = partial(OpencodeShortener, marks=Marks("rtest", 1_791_000_000_000), folder="/data/tool-output")
    usages = tuple(token_usage.usages(session, failure))
    asked = BASE + sum(weight(dict(part.data or {})) for m in session.messages for part in m.parts) // PER_TOKEN
    size = Size(asked, most)
    made = shorten(ShortenInput(session, wires, rules_for(failure, wires), editor, usages, size, 0.7))
    assert isinstance(made, ShorterPlan), made
    return made, wires[0].build(edited(session, made.edits))


@pytest.mark.parametrize("name", ["bedrock", "openrouter", "gemini", "qwen", "glm"])
def test_what_a_tool_showed_is_no_longer_sent_with_its_output_wherever_it_stands(name: str) -> None:
    """By many SDKs it stands in a message of its own behind the result."""
    picture = data_url(png(64, 64, padding=2_000))
    session = SessionBuilder(seed=7)
    session.user(FIRST)
    for page in range(10):
        for shot in range(10):
            shown = [file(picture, filename=f"{page}-{shot}.png")]
            session.assistant(tool("shoot", {"page": page}, "Took the screenshot", attachments=shown))
        session.assistant("it works")
        session.user(f"and page {page + 1}?")
    made, sent = _planned(name, spent(session.planted()), 160_000)
    assert {edit.action for edit in made.edits if not edit.companion} == {"clear_output"}
    pictures = str([block.body for block in sent.blocks()]).count("'type': 'image'")
    assert pictures == 100 - sum(edit.action == "clear_output" for edit in made.edits)
    assert abs(BASE + IMAGE * pictures - made.after) < 0.15 * made.after


def test_the_newest_of_what_tools_showed_is_spared_where_older_does() -> None:
    """As the last the smallest goes that does: of all, it would be one of the newest."""
    picture = data_url(png(64, 64, padding=2_000))
    session = SessionBuilder(seed=7)
    session.user(FIRST)
    for page in range(10):
        for shot in range(10):
            shown = [file(picture, filename=f"{page}-{shot}-{n}.png") for n in range(3 if page < 8 else 1)]
            session.assistant(tool("shoot", {"page": page}, "Took the screenshot", attachments=shown))
        session.assistant("it works")
        session.user(f"and page {page + 1}?")
    planted = spent(session.planted())
    made, _ = _planned("qwen", planted, 262_000)
    cleared = [edit.message_id for edit in made.edits if edit.action == "clear_output"]
    shots = [m["id"] for m in planted.messages if any(part["type"] == "tool" for part in planted.parts[m["id"]])]
    assert cleared == shots[: len(cleared)]


def test_what_the_client_says_between_results_counts_where_it_stands() -> None:
    """Each stretch between two answers has the tokens of its own, and none has those of what is said in all of them."""
    session = SessionBuilder(seed=7)
    session.user(FIRST)
    for shot in range(40):
        shown = [file(data_url(png(64, 64)), filename=f"{shot}.png")]
        session.assistant(tool("shoot", {"page": shot}, "Took the screenshot", attachments=shown))
    stored, failure = _by_chat("qwen", spent(session.planted()))
    [wire, *_] = wires_of(failure, protocol_of(failure), [Form.named("new")])
    request = wire.build(stored)
    given: dict[str, int] = {}
    passed = 0
    for turn in request.turns:
        for block in turn.blocks:
            if turn.role == "assistant":
                given.setdefault(block.message_id, 1_000 + passed // PER_TOKEN)
            passed += scales.weight(block.body)
    assert sum(not block.message_id for block in request.blocks()) > len(given)
    found = measure(request, [Usage(*one, answered=0) for one in given.items()], Size(), sent=request)
    assert abs(found.base - 1_000) < 2
    assert all(abs(rate * PER_TOKEN - 1) < 0.001 for rate in found.rates.values())


def _mixed(share: float) -> Planted:
    """A session of 230,000 tokens, so much of it thinking beside calls."""
    session, rng = SessionBuilder(seed=7), random.Random(7)
    session.user(FIRST)
    for step in range(72):
        session.assistant(reasoning(words(rng, int(12_000 * share))), bash(rng, int(12_000 * (1 - share))))
        if step % 6 == 5:
            session.assistant(f"step {step} is done")
            session.user(f"go on, {step}")
    return spent(session.planted())


def _tokens(session: Session) -> int:
    """What a server counts of all that the client sends it."""
    sent = 0
    for part in (part for message in session.messages for part in message.parts):
        data = dict(part.data or {})
        if data["type"] == "tool" and data["state"]["time"].get("compacted"):
            data = {**data, "state": {**data["state"], "output": "[Old tool result content cleared]"}}
        sent += weight(data)
    return BASE + sent // PER_TOKEN


def _by_chat(name: str, planted: Planted) -> tuple[Session, Failure]:
    family = EVERY_FAMILY[name]
    session = as_session(family.dressed(planted))
    who = (family.provider, family.model, family.protocol)
    return session, Failure(session.store, session.id, "msg_zzz", 0, RecordedError(), *who)


@pytest.mark.parametrize(
    ("name", "called", "goes"),
    [
        ("qwen", "ep-prod", True),
        ("glm", "ep-prod", True),
        ("kimi-custom", "glm-4.6", True),
        ("kimi-custom", "ep", False),
    ],
)
def test_the_thinking_beside_a_call_may_go_by_either_name_of_its_model(name: str, called: str, goes: bool) -> None:
    """The name that the provider gets may be that of a deployment, which tells nothing."""
    session, failure = _by_chat(name, _mixed(0.3))
    [wire] = map(weighed, wires_of(replace(failure, called=called), "openai.chat", [Form.named("new")]))
    thinking = [block for block in wire.stored(session).blocks() if block.is_thinking]
    assert thinking
    assert {bool(block.part_id) for block in thinking} == {goes}


@pytest.mark.parametrize("form", ["old", "paged", "new", "fork"])
@pytest.mark.parametrize("what", ["thinking", "30%", "60%"])
@pytest.mark.parametrize("name", ["qwen", "glm", "deepseek-reasoner", "kimi-custom"])
def test_thinking_that_goes_back_by_chat_completions_is_weighed(name: str, what: str, form: str) -> None:
    planted = LONG[what].build() if what == "thinking" else _mixed(int(what[:2]) / 100)
    session, failure = _by_chat(name, planted)
    wires = [weighed(wire) for wire in wires_of(failure, "openai.chat", [Form.named(form)])]
    usages = tuple(token_usage.usages(session, failure))
    editor = partial(OpencodeShortener, marks=Marks("rtest", 1_791_000_000_000), folder="/data/tool-output")
    size = Size(_tokens(session), 200_000)
    made = shorten(ShortenInput(session, wires, rules_for(failure, wires), editor, usages, size, 0.7))
    assert isinstance(made, ShorterPlan), made
    assert made.measure.base < 1.1 * BASE, made.measure.base
    actions = {edit.action for edit in made.edits}
    spares = name in ("deepseek-reasoner", "kimi-custom")  # which refuse a call without its reasoning
    assert ("set_aside_old_thinking" in actions) is (what == "thinking" or (what == "60%" and not spares))
    assert ("compact" in actions) is (what == "60%" and spares)
    if "compact" not in actions:
        assert abs(_tokens(edited(session, made.edits)) - made.after) < 0.02 * made.after
    assert made.after <= 142_000
    after = edited(session, made.edits)
    beside = [m for m in after.messages if {"tool", "reasoning"} <= {part.type for part in m.parts}]
    calls = [m for m in after.messages if any(part.type == "tool" for part in m.parts)]
    assert len(beside) == len(calls) or not spares


@pytest.mark.parametrize("form", ["old", "paged", "new", "fork"])
@pytest.mark.parametrize("name", ["gpt", "xai", "mistral", "litellm"])
def test_the_rules_are_held_to_requests_without_that_thinking(name: str, form: str) -> None:
    """Nor do other SDKs send it; Anthropic behind LiteLLM does not get it."""
    session, failure = _by_chat(name, _mixed(0.3))
    protocol = protocol_of(failure)
    for wire in wires_of(failure, protocol, [Form.named(form)]):
        assert not any(block.is_thinking for block in wire.build(session).blocks())
        sent = protocol == "openai.chat"
        assert any(block.is_thinking for block in weighed(wire).build(session).blocks()) is sent


_KEPT = ["all", "none", "of the present turn"]


@pytest.mark.parametrize("kept", _KEPT)
@pytest.mark.parametrize("a_result", [0.7, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("repairs", [0, 1, 4])
@pytest.mark.parametrize(
    ("turns", "edits", "pictures"),
    [(4, 0, 0), (4, 0.5, 0), (4, 0, 0.3), (12, 0, 0), (12, 0.5, 0), (12, 0, 0.3), (12, 0.5, 0.3)],
)
@pytest.mark.parametrize("cleared", [False, True])
def test_what_answers_took_tells_whether_thinking_counts(
    kept: str, a_result: float, repairs: int, turns: int, edits: float, pictures: float, *, cleared: bool
) -> None:
    """Servers whose template leaves old thinking out count none of it. `a_result`: tokens of a result's characters, by
    those of an answer. `repairs`: how many times old outputs were `cleared`, which usage tells from then on. `edits`:
    the share of the calls that give back next to nothing, after much thinking; `pictures`: of those with a picture.
    """
    session, rng = SessionBuilder(seed=7), random.Random(7)
    session.user(FIRST)
    told: list[tuple[int, int]] = []
    ran: list[Part] = []
    sent = thought = 0.0
    for turn in range(turns):
        sent += 100
        thought = 0 if kept == "of the present turn" else thought
        for _ in range(rng.randint(3, 12) * 12 // turns):
            think, result = int(rng.lognormvariate(6.5, 1)), int(rng.lognormvariate(7, 1.6))
            if edits:
                think, result = (think * 4, 40) if rng.random() < edits else (think // 2, result + 5_000)
            ran.append(bash(rng, result))
            if shown := bool(pictures) and rng.random() < pictures:
                ran[-1]["state"]["attachments"] = [file(data_url(png(9, 9)), filename="shown.png")]
            session.assistant(reasoning(words(rng, think)), ran[-1])
            told.append((int(BASE + (sent + thought) / PER_TOKEN), (think + 200) // PER_TOKEN))
            sent += 300 + result * a_result * rng.uniform(0.7, 1.3) + shown * IMAGE * PER_TOKEN
            thought += 0 if kept == "none" else think
        session.user(f"go on, {turn}")
    first, each = 30_000 * repairs, len(told) // (repairs + 1) + 1
    for number, call in enumerate(ran):
        if cleared and number < each * repairs - 3:
            call["state"]["time"] = {"start": 1, "end": 2, "compacted": 3}
    found, failure = _by_chat("qwen", session.planted())
    [wire] = map(weighed, wires_of(failure, "openai.chat", [Form.named("new")]))
    answers = [message for message in found.messages if message.role == "assistant"]
    given = [tokens + first - 30_000 * (number // each) for number, (tokens, _) in enumerate(told)]
    usages = [
        Usage(one.id, tokens, own, cleared=any(map(is_cleared, one.parts)))
        for one, tokens, (_, own) in zip(answers, given, told, strict=True)
    ]
    assert counts_thinking(wire.build(found), usages) is (kept == "all")
    assert counts_thinking(wire.build(found), [])
