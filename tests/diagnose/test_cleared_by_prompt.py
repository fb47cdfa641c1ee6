"""A refusal that the next prompt clears: the session is told, and does not count as stuck."""

from __future__ import annotations

import json
import time

import pytest

from recoveryd.clients import Clients, Config
from recoveryd.core.model import Kind, Outcome
from recoveryd.diagnose import Context, Next, Triage, assess
from recoveryd.doctor.bug_report import Sources, bundle
from tests.conftest import Run
from tests.support.build import MODEL, SessionBuilder
from tests.support.cases import case
from tests.support.parts import reasoning, text, tool
from tests.support.trees import Bench, Tree, Turns

WORDS = {
    Kind.ASSISTANT_PREFILL: "This model does not support assistant message prefill. The conversation must end with a "
    "user message.",
    Kind.TRAILING_WHITESPACE: "messages: final assistant content cannot end with trailing whitespace",
}


def fine(session: SessionBuilder) -> None:
    session.user("list the files")
    session.assistant(text("a and b"))


@pytest.mark.parametrize("kind", WORDS)
def test_it_is_told_and_not_stuck(tree: Tree, bench: Bench, run: Run, kind: Kind) -> None:
    session = tree.stuck(fine, WORDS[kind], model=MODEL)
    before, failure = tree.files(), tree.failure(session)
    found = assess(bench.recovery.context, tree.store, session)
    assert found is not None and (found.diagnosis.kind, found.stuck) == (kind, False)
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"], [one["reason"] for one in data["elsewhere"]]) == (0, [], [kind])
    assert "1 ended in a refusal that its next prompt clears" in " ".join(run("scan")[1].split())
    assert "a new prompt clears it" in " ".join(run("explain", "--session", session)[1].split())
    told = bench.recovery.attempt(case(tree.store, failure, kind))
    assert told.outcome is Outcome.REFUSED, "the daemon says so once, and does not wait for anything else"
    assert "a new prompt clears it" in told.event.detail
    assert tree.files() == before


AT = (
    "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks)."
)


def a_step(session: SessionBuilder) -> None:
    """Sent as prompt, call and result: what stands at 3 is the client's own."""
    session.user("go")
    session.assistant(reasoning("a plan"), tool(output="x"))


def a_step_without_thinking(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(tool(output="x"))


def test_an_answer_of_the_clients_behind_all_that_is_stored_is_no_fault_of_the_session(
    tree: Tree, bench: Bench, run: Run
) -> None:
    """OpenCode at an agent's limit of steps: the open turn is as it should be, and is left so."""
    session = tree.stuck(a_step, AT.format(at=3), model=MODEL)
    before, context = tree.files(), bench.recovery.context
    found = assess(context, tree.store, session)
    assert found is not None and (found.diagnosis.kind, found.stuck) == (Kind.ASSISTANT_PREFILL, False)
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"], [one["reason"] for one in data["elsewhere"]]) == (0, [], ["assistant_prefill"])
    explained = " ".join(run("explain", "--session", session)[1].split())
    assert "a new prompt clears it" in explained and "raise or remove the limit of its agent" in explained
    report = bundle(Sources(Config(), [tree.store], bench.ledger, bench.state), session)
    assert report["failure"]["kind"] == "assistant_prefill"
    assert tree.files() == before


def test_the_daemon_takes_it_for_that(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(a_step, AT.format(at=3), model=MODEL)
    later = Context(bench.ledger, Config(), bench.state, clock=lambda: time.time() + 5)
    verdict = Triage(later, print).judge(tree.store, session)
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.ASSISTANT_PREFILL)


@pytest.mark.parametrize(("turns", "at"), [(a_step, 1), (a_step, 2), (a_step_without_thinking, 3)])
def test_what_may_be_of_the_stored_turn_is_repaired(tree: Tree, bench: Bench, turns: Turns, at: int) -> None:
    """A place within what is stored, or a turn that would be refused alike."""
    session = tree.stuck(turns, AT.format(at=at), model=MODEL)
    found = assess(bench.recovery.context, tree.store, session)
    assert found is not None and (found.diagnosis.kind, found.stuck) == (Kind.THINKING_BLOCK_ORDER, True)
    told = bench.recovery.attempt(case(tree.store, tree.failure(session)))
    assert told.outcome is Outcome.HEALED


def test_a_client_that_does_not_speak_for_the_assistant_is_not_named(tree: Tree) -> None:
    session = tree.stuck(a_step, WORDS[Kind.ASSISTANT_PREFILL], model=MODEL)
    failure = tree.failure(session)
    clients = {client.name: client for client in Clients(Config()).all()}
    named = {name: clients[name].advice(tree.store, failure, Kind.ASSISTANT_PREFILL) for name in ("opencode", "kilo")}
    assert "limit of its agent" in named["opencode"]
    assert named["kilo"] == ""
