"""A prompt that its user stopped (ESC) before anything of an answer came: told only where it is sure to be refused.

1.18 asks again for a minute after some refusals. Stopped meanwhile, it stores an answer without parts, error and
finish; stopped before it asked, one with an error of its own (both seen).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.clients.opencode.wire.form import NEW as NEW_FORM
from recoveryd.clients.store import Store
from recoveryd.core.model import Kind, Outcome, Refusal
from recoveryd.diagnose import Case, Context, Next, Triage, Verdict, assess
from recoveryd.heal.ahead import FORESEEN
from recoveryd.heal.undo import undo
from tests.shapes import BROKEN, HEALTHY, Shape
from tests.support.build import SessionBuilder
from tests.support.database import NEW, Base
from tests.support.examples import FULL
from tests.support.generate import generate
from tests.support.judge import as_it_came, refused_in_every_way
from tests.support.parts import aborted, api_error, compaction, reasoning, step_start, text, tool
from tests.support.plant import write_sqlite
from tests.support.planted import Planted
from tests.support.trees import MISSING, Bench, Tree, behind_a_call

SOUND = [shape for shape in HEALTHY if shape.build().messages][:: 1 if FULL else 3]
SURE = [shape for shape in BROKEN if shape.kind in FORESEEN and not shape.deep][:: 1 if FULL else 3]
LAST: list[list[list[dict[str, Any]]]] = [
    [[]],
    [[], []],
    [[step_start()]],
    [[step_start(), reasoning("hm", None)]],
    [[text("I beg")], []],
    [[tool(status="error", error="Tool execution aborted")], []],
]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def hour_ago() -> int:
    return int(time.time() * 1000) - 3_600_000


def stop(made: SessionBuilder, *answers: list[dict[str, Any]]) -> None:
    """A prompt for each of these answers, which its user stopped."""
    for number, parts in enumerate(answers):
        made.user("and then?")
        made.assistant(*parts, error=aborted() if parts or number % 2 else None, finish=None, bare=True)


def stopped(planted: Planted, *answers: list[dict[str, Any]]) -> Planted:
    made = SessionBuilder(int(time.time() * 1000) - 60_000)
    made.session, made.messages, made.parts, made.raw = planted.session, planted.messages, planted.parts, planted.raw
    stop(made, *answers)
    return made.planted()


def stored(folder: Path, planted: Planted) -> Store:
    base = Base(folder / "opencode.db", NEW)
    write_sqlite(planted, base.path)
    return base.store


def judged(bench: Bench, store: Store, session: str) -> Verdict:
    """What a daemon does about it once it is quiet."""
    known = bench.recovery.context
    context = Context(known.ledger, Config(), known.state_dir, clock=lambda: time.time() + 5)
    return Triage(context, print).judge(store, session)


def is_stuck(bench: Bench, store: Store, session: str) -> bool:
    """Whether it is told as stuck; a daemon does nothing about it."""
    assert judged(bench, store, session).next is Next.NOTHING
    found = assess(bench.recovery.context, store, session)
    return found is not None and found.stuck


@pytest.mark.parametrize("shape", SOUND, ids=lambda shape: shape.name)
def test_a_sound_session_is_not_told(bench: Bench, tmp_path: Path, shape: Shape) -> None:
    for number, answers in enumerate(LAST):
        made = stopped(shape.build(hour_ago()), *answers)
        store = stored(tmp_path / str(number), made)
        assert not is_stuck(bench, store, made.id), answers
        assert assess(bench.recovery.context, store, made.id) is None, "nor as one that is not in order"


def test_only_what_is_refused_in_every_way_is_told(bench: Bench, tmp_path: Path) -> None:
    """Sessions at random, healthy and with faults in any number."""
    told = Counter[bool]()
    for seed in range(300 if FULL else 60):
        made = stopped(generate(random.Random(seed), seed % 3).planted, [])
        store = stored(tmp_path / str(seed), made)
        found = assess(bench.recovery.context, store, made.id)
        stuck = found is not None and found.stuck
        told[stuck] += 1
        assert not stuck or refused_in_every_way(store.load(made.id), NEW_FORM), seed
    assert told[False]


def test_a_fault_is_told_and_healed(bench: Bench, tmp_path: Path) -> None:
    """With the answer that came last before the prompt. What a provider alone knows (a signature, an image) is not."""
    told = Counter[str]()
    for number, shape in enumerate(SURE):
        made = as_it_came(shape.build(hour_ago()), NEW_FORM)
        if made is None:
            continue
        made = stopped(made, [], [])
        store = stored(tmp_path / str(number), made)
        found = assess(bench.recovery.context, store, made.id)
        if found is None or found.diagnosis.refused is None:
            told["not told"] += 1
            continue
        case = Case.begin(store, found.diagnosis.failure, found.diagnosis.refused)
        if isinstance(bench.recovery.propose(case)[1], Refusal):
            told["left"] += 1
            continue
        assert bench.recovery.attempt(case).outcome is Outcome.HEALED
        assert not refused_in_every_way(store.load(made.id), NEW_FORM), shape.name
        told["healed"] += 1
    assert told["healed"] / told.total() > 0.6, told


def fault_in(tree: Tree, *behind: list[dict[str, Any]]) -> str:
    """A call with a text behind it, and then a stopped prompt for each of these answers."""

    def turns(made: SessionBuilder) -> None:
        behind_a_call(made)
        stop(made, *behind)

    return tree.ended(turns)


def test_the_answers_that_were_stopped_with_words_in_them_were_not_refused(bench: Bench, tree: Tree) -> None:
    assert is_stuck(bench, tree.store, fault_in(tree, []))
    assert is_stuck(bench, tree.store, fault_in(tree, [], []))
    assert not is_stuck(bench, tree.store, fault_in(tree, [step_start()])), "the provider took it"
    assert not is_stuck(bench, tree.store, fault_in(tree, [text("so")]))


def test_what_was_answered_since_is_sound_whatever_the_rules_say(bench: Bench, tree: Tree) -> None:
    """A proxy or a plugin may mend it on the way."""

    def answered(made: SessionBuilder) -> None:
        behind_a_call(made)
        made.user("next")
        made.assistant("fine")
        stop(made, [])

    assert not is_stuck(bench, tree.store, tree.ended(answered))


def test_where_somebody_else_may_answer_nothing_is_told(
    bench: Bench, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = fault_in(tree, [])
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000/v1")
    assert not is_stuck(bench, tree.store, session)


def test_a_compaction_that_was_stopped_is_no_fault(bench: Bench, tree: Tree) -> None:
    def compacting(made: SessionBuilder) -> None:
        made.user("go")
        made.assistant("fine")
        made.user(compaction())
        made.assistant(finish=None, summary=True)

    assert not is_stuck(bench, tree.store, tree.ended(compacting))


def test_a_refusal_that_is_stored_holds_behind_prompts_that_were_stopped(bench: Bench, tree: Tree) -> None:
    def refused(made: SessionBuilder) -> None:
        behind_a_call(made)
        made.failed("go on", api_error(MISSING, 400))
        stop(made, [], [])

    session = tree.ended(refused)
    look = tree.store.look(session)
    assert look.failure is not None and look.newest_user is not None and not look.last_answer
    assert judged(bench, tree.store, session).kind is Kind.TOOL_RESULT_MISSING


def test_the_repair_of_a_stopped_prompt_can_be_taken_back(bench: Bench, tree: Tree) -> None:
    """What was stopped before a word of it is no answer on the repaired history."""
    session = fault_in(tree, [])
    before = tree.files()
    found = assess(bench.recovery.context, tree.store, session)
    assert found is not None and found.diagnosis.refused is not None
    case = Case.begin(tree.store, found.diagnosis.failure, found.diagnosis.refused)
    assert bench.recovery.attempt(case).outcome is Outcome.HEALED
    [done] = bench.ledger.history(9)
    undo(tree.store, bench.ledger, done)
    assert tree.files() == before
