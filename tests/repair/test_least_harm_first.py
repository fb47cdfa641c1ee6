"""The order of the steps, and what is spared: told from the edits and the session alone, of many sessions by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import pytest

from recoveryd.clients.opencode import token_usage
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.editor import Marks
from recoveryd.core.edits import edited
from recoveryd.core.length import Size
from recoveryd.core.model import Part, Refusal, Session
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.repair import ShortenInput, ShorterPlan, shorten
from tests.e2e.tokens import count
from tests.support.build import SessionBuilder, reasoning, tool
from tests.support.judge import body
from tests.support.long_sessions import BASE, FIRST, bash, spent, words
from tests.support.unsent import lost
from tests.support.values import as_failure, as_session

SHARE = 0.7
SHORT, LONG_INPUT = 500, 2_000  # characters: less is not worth a mark; an input is cut to so many
NEWEST = 40_000 * 4  # characters of outputs that are spared before the last two turns
WORDS = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named("new"))


def _session(seed: int) -> Session:
    rng = random.Random(seed)
    s = SessionBuilder(seed=seed)
    s.user(FIRST)
    for turn in range(rng.randint(2, 9)):
        for _ in range(rng.randint(0, 6)):
            written = {"filePath": f"/{turn}.py", "content": words(rng, rng.choice((900, 6_000, 30_000)))}
            step = rng.choice((bash(rng, rng.choice((90, 5_000, 30_000, 45_000))), tool("write", written, "ok")))
            s.assistant(reasoning(words(rng, rng.choice((60, 2_000, 9_000)))), step)
        s.assistant(reasoning("so"), f"turn {turn} is done")
        s.user(f"go on with {turn}")
    s.assistant(reasoning("now"), *(bash(rng, 20_000) for _ in range(rng.randint(1, 5))))
    return as_session(spent(s.planted()))


@dataclass
class Told:
    """What a session holds, oldest first: outputs and long inputs with their turn, thinking but the newest."""

    outputs: list[tuple[int, Part]] = field(default_factory=list)
    calls: list[Part] = field(default_factory=list)
    thinking: list[Part] = field(default_factory=list)
    turns: int = 0

    @classmethod
    def of(cls, session: Session) -> Told:
        told = cls()
        last = max(m.id for m in session.messages if m.role == "assistant")
        for message in session.messages:
            told.turns += message.role == "user"
            for part in message.parts:
                if part.type == "tool":
                    told.outputs.append((told.turns, part))
                    told.calls.append(part)
                elif part.type == "reasoning" and message.id != last:
                    told.thinking.append(part)
        return told

    def old_outputs(self) -> list[str]:
        """Before the last two turns, but for the newest 40,000 tokens."""
        old = [part for turn, part in self.outputs if turn <= self.turns - 2 and _output(part) > SHORT]
        kept = 0
        for at in range(len(old) - 1, -1, -1):
            kept += _output(old[at])
            if kept > NEWEST:
                return [part.id for part in old[: at + 1]]
        return []

    def all_outputs(self) -> list[str]:
        return [part.id for _, part in self.outputs[:-3] if _output(part) > SHORT]

    def long_inputs(self) -> list[str]:
        return [part.id for part in self.calls[:-3] if _longest(part) > LONG_INPUT + 200]


def _output(part: Part) -> int:
    return len((part.data or {})["state"]["output"])


def _longest(part: Part) -> int:
    return max(len(text) for text in (part.data or {})["state"]["input"].values())


@cache
def _planned(seed: int) -> tuple[Session, ShorterPlan | Refusal]:
    session = _session(seed)
    rng = random.Random(-seed)
    failure = as_failure(session, {"name": "APIError", "data": {"message": "x"}})
    asked = BASE - 100 + count(body(WORDS.build(session), thinking=True))
    limit = int(asked * rng.uniform(0.25, 0.99))
    editor = partial(OpencodeShortener, marks=Marks("rtest", 1_791_000_000_000), folder="/data/tool-output")
    usages = tuple(token_usage.usages(session, failure))
    return session, shorten(ShortenInput(session, (WORDS,), ANTHROPIC, editor, usages, Size(asked, limit), SHARE))


def _of(made: ShorterPlan, action: str) -> list[str]:
    return [str(edit.part_id) for edit in made.edits if edit.action == action and not edit.companion]


def _but_for_the_last(done: Sequence[str], all_of_them: Sequence[str]) -> bool:
    """Whether these are the oldest: as the last one, the smallest that does is taken."""
    return set(done[:-1]) <= set(all_of_them[: len(done)]) and set(done) <= set(all_of_them)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_the_least_harm_is_done_first_and_no_more_than_is_needed(first: int) -> None:
    for seed in range(first, first + 10):
        session, made = _planned(seed)
        if isinstance(made, Refusal):
            assert "system prompt and tools" in made.reason or "even without all" in made.reason, made.reason
            continue
        told = Told.of(session)
        cleared, cut, aside = (_of(made, action) for action in ("clear_output", "cut_input", "set_aside_old_thinking"))
        assert made.after <= made.target * 1.01, seed
        newest = {part.id for _, part in told.outputs[-1:]}
        assert newest.isdisjoint(cleared), f"{seed}: the newest output"
        if _of(made, "compact"):
            assert aside == [], f"{seed}: the extract is instead of the other steps"
            continue
        assert {part.id for _, part in told.outputs[-3:]}.isdisjoint(cleared), seed
        assert {part.id for part in told.calls[-3:]}.isdisjoint(cut), seed
        beyond = [part for part in cleared if part not in told.old_outputs()]
        if beyond:
            assert set(told.old_outputs()) <= set(cleared), f"{seed}: the present turn before old ones"
        else:
            assert _but_for_the_last(cleared, told.old_outputs()), f"{seed}: not the oldest"
        if cut:
            assert set(told.all_outputs()) <= set(cleared), f"{seed}: inputs before outputs"
        if aside:
            assert set(told.long_inputs()) <= set(cut), f"{seed}: thinking before inputs"
            assert aside == [part.id for part in told.thinking[: len(aside)]], f"{seed}: not from the start"
        said = {part.id for message in session.messages for part in message.parts if part.type == "text"}
        assert said.isdisjoint(str(edit.part_id) for edit in made.edits), f"{seed}: words of user or model"


def test_the_sessions_by_chance_meet_every_step() -> None:
    met = {
        edit.action for seed in range(60) if isinstance(made := _planned(seed)[1], ShorterPlan) for edit in made.edits
    }
    assert {"clear_output", "cut_input", "set_aside_old_thinking", "compact"} <= met


def test_all_behind_the_extract_that_no_edit_names_is_still_sent() -> None:
    checked = 0
    for seed in range(0, 60, 3):
        session, made = _planned(seed)
        if isinstance(made, Refusal):
            continue
        after = edited(session, made.edits)
        extract = max((edit.message_id for edit in made.edits if edit.action == "compact"), default="")
        behind = {part.id for message in session.messages if message.id > extract for part in message.parts}
        gone = lost(session, WORDS.build(session), WORDS.build(after), made.edits)
        assert [part for part, _ in gone if part in behind] == []
        checked += 1
    assert checked > 7
