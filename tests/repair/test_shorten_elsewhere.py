"""A conversation with much thinking made shorter for a door that has what is sealed on calls and texts, too."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest

from recoveryd.clients.opencode import token_usage
from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Block, Marks, Size, edited
from recoveryd.core.request import Request
from recoveryd.providers import rules_for
from recoveryd.repair import ShortenInput, ShorterPlan, shorten
from tests.families.judged import failure_of, refusal
from tests.families.table import FAMILIES
from tests.support.build import SessionBuilder, reasoning, tool
from tests.support.long_sessions import FIRST, spent, words
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
