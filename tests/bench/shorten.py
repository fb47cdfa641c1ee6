"""How long the plan for a session of 20,000 messages takes that is many times too long for its model: one that puts an
extract in the place of most of it, and one that clears thousands of outputs for a model that takes 2 million tokens.
"""

from __future__ import annotations

import json
import random
import time
from functools import partial

from recoveryd.clients.opencode import token_usage
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.editor import Marks
from recoveryd.core.length import Size
from recoveryd.core.model import Session
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.repair import ShortenInput, ShorterPlan, shorten
from tests.bench.harness import Figure
from tests.support.build import SessionBuilder, reasoning
from tests.support.long_sessions import FIRST, bash, spent
from tests.support.values import as_failure, as_session


def plan(turns: int = 5_000) -> list[Figure]:
    """Seconds of the processor, against those to parse the records of the session once."""
    replaced = _plan("plan_of_a_long_session", _session(turns, 200), 40 * turns, "compact")
    return [replaced, _plan("plan_that_clears_outputs", _session(turns, 1_500), 400 * turns, "clear_output")]


def _plan(name: str, session: Session, limit: int, action: str) -> Figure:
    wire = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named("new"))
    failure = as_failure(session, {"name": "APIError", "data": {"message": "x"}})
    editor = partial(OpencodeShortener, marks=Marks("rbench", 1), folder="/x")
    usages = tuple(token_usage.usages(session, failure))
    case = ShortenInput(session, (wire,), ANTHROPIC, editor, usages, Size(0, limit), 0.7)
    began = time.process_time()
    made = shorten(case)
    took = time.process_time() - began
    assert isinstance(made, ShorterPlan)
    assert action in {edit.action for edit in made.edits}
    began = time.process_time()
    for message in session.messages:
        json.loads(message.raw or b"0")
        for part in message.parts:
            json.loads(part.raw or b"0")
    floor = time.process_time() - began
    more: dict[str, float] = {
        "messages": len(session.messages),
        "tokens_before": made.before,
        "tokens_after": made.after,
    }
    said = "the records of the session parsed once"
    return Figure(name, "s", took, floor, said, took / floor, 8.0, more=more)


def _session(turns: int, output: int) -> Session:
    rng = random.Random(1)
    builder = SessionBuilder(seed=7)
    builder.user(FIRST)
    for turn in range(turns):
        for _ in range(3):
            builder.assistant(reasoning("so"), bash(rng, output))
        builder.user(f"on, {turn}")
    return as_session(spent(builder.planted()))
