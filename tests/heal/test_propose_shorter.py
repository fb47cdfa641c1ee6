"""What OpenCode takes for a conversation that is too long: the provider's words decide, which its log alone has."""

from __future__ import annotations

import os
import random
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recoveryd.clients import CanShorten, Shortening
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.core import Marks, RecordedError
from recoveryd.core.model import Event, Outcome
from recoveryd.heal.propose_shorter import why_left_over
from tests.conftest import Run
from tests.support.build import MODEL, ZERO, Planted, SessionBuilder, api_error, reasoning, write_sqlite
from tests.support.cases import case
from tests.support.database import NEW, OLD, SCHEMAS, Base
from tests.support.long_sessions import BASE, FIRST, LONG, PER_TOKEN, bash, many_turns, spent, weight, words
from tests.support.parts import Part
from tests.support.trees import Bench, Tree

OWN = {
    "name": "ContextOverflowError",
    "data": {"message": "Conversation history too large to compact - exceeds model context limit"},
}
RATE_LIMIT = "Too many tokens, please wait before trying again."
LENGTH = "Input is too long for requested model."
QUOTA = "Quota exceeded: token limit exceeded for this billing period"


GPT = {"providerID": "openai", "modelID": "gpt-6.1-sol"}


def _refused_summary(tree: Tree, ago_s: int = 60, model: dict[str, str] = MODEL) -> str:
    """A session of about 60,000 tokens whose request was refused, and so was the summary that 1.18 asked for then."""
    session = SessionBuilder(int(time.time() * 1000) - ago_s * 1000, title="My session", model=model)
    rng = random.Random(7)
    session.user(FIRST)
    for turn in range(8):
        session.assistant(bash(rng, 26_000))
        session.assistant(f"step {turn}")
        session.user(f"on, {turn}")
    session.assistant("done")
    asked = session.user("go on")
    session.assistant(finish=None)
    marker = session.user({"type": "compaction", "auto": True, "tail_start_id": asked["id"]})
    session.assistant(error=OWN, finish="error", summary=True, parentID=marker["id"])
    spent(session.planted())
    return tree.keep(session)


def _log(tree: Tree, session: str, said: str, agent: str = "build", at_ms: float = 0) -> None:
    """What the client logs of a request that was refused with these words, now or then."""
    words = f'session.id={session} agent={agent} error.error="AI_APICallError: {said}"'
    log = tree.store.home / "log" / "now.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        at = datetime.fromtimestamp(at_ms / 1000 or time.time(), UTC).isoformat()
        file.write(f'timestamp={at} level=ERROR message="stream error" {words}\n')


@pytest.mark.parametrize("said", [RATE_LIMIT, QUOTA])
def test_what_is_no_length_takes_nothing_out_but_what_hides_the_history(tmp_path: Path, tree: Tree, said: str) -> None:
    session = _refused_summary(tree)
    _log(tree, session, said)
    done = Bench(tmp_path).attempt(tree, session)
    assert (done.outcome, done.actions) == (Outcome.HEALED, ("give_back",)), done.detail
    length = re.match(r"(\S+)( of \S+)? tokens: ", done.detail)
    assert length and f"about {length[1]} are sent now" in done.detail, done.detail


@pytest.mark.parametrize("said", [QUOTA, LENGTH])
def test_of_a_list_of_items_what_was_hidden_is_given_back_if_it_fits(tmp_path: Path, tree: Tree, said: str) -> None:
    """The Responses API: nothing else makes such a conversation shorter."""
    session = _refused_summary(tree, model=GPT)
    _log(tree, session, said)
    done = Bench(tmp_path).attempt(tree, session)
    if said is QUOTA:
        assert (done.outcome, done.actions) == (Outcome.HEALED, ("give_back",)), done.detail
    else:
        assert done.outcome is Outcome.REFUSED and "can't be made shorter" in done.detail, done


@pytest.mark.parametrize(
    "full",
    [
        "Reached context length of 64000 tokens with model (arch: qwen3moe) that does not support overflow.",
        "Context size has been exceeded.",
    ],
)
def test_an_answer_that_reached_the_end_of_the_context_makes_it_shorter(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    """LM Studio tells so within the answer; so does llama.cpp, which may have less than its client's settings say."""
    taken = {"id": "lmstudio", "models": {"qwen3-coder-30b": {"limit": {"context": 100_000}}}}
    monkeypatch.setattr(OpencodeServer, "settings", lambda *_: {"providers": [taken]})
    model = {"providerID": "lmstudio", "modelID": "qwen3-coder-30b"}
    session = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=model)
    rng = random.Random(7)
    session.user(FIRST)
    for turn in range(8):
        session.assistant(bash(rng, 26_000))
        session.assistant(f"step {turn}")
        session.user(f"on, {turn}")
    session.assistant("half an ans", error={"name": "UnknownError", "data": {"message": full}}, finish=None)
    spent(session.planted())
    done = Bench(tmp_path).attempt(tree, tree.keep(session))
    assert (done.outcome, set(done.actions)) == (Outcome.HEALED, {"clear_output"}), done.detail


def test_a_length_makes_it_shorter(tmp_path: Path, tree: Tree) -> None:
    session = _refused_summary(tree)
    _log(tree, session, LENGTH)
    _log(tree, session, RATE_LIMIT, "title")
    done = Bench(tmp_path).attempt(tree, session)
    assert done.outcome is Outcome.HEALED, done.detail
    assert "clear_output" in done.actions


@pytest.mark.parametrize("old", [False, True])
def test_a_log_beside_that_is_newer_hides_nothing(tmp_path: Path, tree: Tree, old: bool) -> None:
    """Kilo writes two, and so do two processes; one may end with what was said of the session long before."""
    session = _refused_summary(tree)
    _log(tree, session, LENGTH)
    other = tree.store.home / "log" / "beside.log"
    before = (
        f'timestamp=2026-01-02T03:04:05Z level=ERROR message="stream error" session.id={session} error="{RATE_LIMIT}"'
    )
    other.write_text(f"{before if old else ''}\nthe turn ended\n")
    os.utime(other, (time.time() + 5, time.time() + 5))
    assert "clear_output" in Bench(tmp_path).attempt(tree, session).actions


TOO_LONG = "prompt is too long: 260789 tokens > 200000 maximum"


def _settled(tree: Tree, *then: str | Part) -> tuple[str, SessionBuilder]:
    """A session whose request was refused, which the client made shorter itself; `then` is what was answered then."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=MODEL)
    rng = random.Random(7)
    session.user(FIRST)
    session.assistant(bash(rng, 26_000))
    session.user("go on")
    refused = session.assistant(finish=None)
    marker = session.user({"type": "compaction", "auto": True, "overflow": True})
    session.assistant("a summary", summary=True, parentID=marker["id"])
    session.user("Continue")
    for one in then:
        session.assistant(one)
    spent(session.planted())
    written = tree.keep(session)
    _log(tree, written, TOO_LONG, at_ms=refused["time"]["completed"])
    return written, session


def _logged(tree: Tree, session: str) -> bool:
    """Whether its length counts as it was logged."""
    client = Bench(tree.root.parent).recovery.context.clients.of(tree.store)
    failure = client.next_failure(tree.store.load(session))
    assert failure is not None and isinstance(client, CanShorten)
    return client.shortening(tree.store, tree.store.load(session), failure, Marks("", 0)).logged is not None


def test_what_was_logged_before_an_answer_is_not_of_the_session_as_it_is(run: Run, tree: Tree) -> None:
    session, _ = _settled(tree, "went on")
    code, out, err = run("compact", session, "--dry-run")
    assert (code, err) == (0, "") and re.search(r"It has about 1\dk tokens: there is nothing to make shorter", out), out
    assert not _logged(tree, session)


def test_a_length_that_no_usage_tells_is_told_as_what_it_leaves_out(run: Run, tree: Tree) -> None:
    few, many = (SessionBuilder(int(time.time() * 1000) - 180_000, model=MODEL) for _ in range(2))
    few.user("go on")
    many_turns(many, random.Random(7))
    for session in (few, many):
        session.assistant("done")
        for message in session.planted().messages:
            message |= {"tokens": ZERO} if message["role"] == "assistant" else {}
        tree.keep(session)
    told = [" ".join(run("compact", one.session["id"], "--dry-run")[1].split()) for one in (few, many)]
    assert "tokens without system prompt and tools: there is nothing to make shorter" in told[0]
    assert re.search(r"\dk tokens without system prompt and tools: would", told[1]), told[1]


@pytest.mark.parametrize("answered", [False, True])
def test_the_next_refusal_is_of_the_session_as_it_is(tree: Tree, answered: bool) -> None:
    """Also where its client tried again, and what it stored last is an error."""
    session, made = _settled(tree, *["went on"] * answered)
    assert _logged(tree, session) is not answered
    made.user("and on")
    failed = made.assistant(finish=None)
    marker = made.user({"type": "compaction", "auto": True, "overflow": True})
    made.assistant(error=OWN, finish="error", summary=True, parentID=marker["id"])
    tree.keep(made)
    for later in (100, 2_000, 9_000):
        _log(tree, session, TOO_LONG, at_ms=failed["time"]["created"] + later)
    assert _logged(tree, session)


def test_what_was_logged_counts_for_what_a_failed_compaction_hides(tree: Tree) -> None:
    session = _refused_summary(tree)
    _log(tree, session, TOO_LONG, at_ms=tree.made(session).messages[-1]["time"]["created"] - 500)
    tree.prompted(session)
    tree.made(session).assistant("fine")
    assert tree.keep(tree.made(session)) == session
    assert _logged(tree, session)


def test_its_log_is_waited_for(tmp_path: Path, tree: Tree) -> None:
    session, bench = _refused_summary(tree, ago_s=3), Bench(tmp_path)
    first = bench.attempt(tree, session)
    assert (first.outcome, first.again_s) == (Outcome.PENDING, 2.0)
    assert "has not logged yet what the provider said" in first.detail
    _log(tree, session, RATE_LIMIT)
    assert bench.attempt(tree, session).actions == ("give_back",)


def test_not_of_a_refusal_that_is_old(tmp_path: Path, tree: Tree) -> None:
    done = Bench(tmp_path).attempt(tree, _refused_summary(tree, ago_s=3_600))
    assert (done.outcome, done.actions) == (Outcome.HEALED, ("give_back",)), done.detail


@pytest.mark.parametrize(
    ("said", "context", "shorter"),
    [
        ("400 (no body)", 55_000, True),
        ("400 (no body)", 75_000, True),  # without room for an answer
        ("400 (no body)", 100_000, False),
        (RATE_LIMIT, 75_000, False),
        (RATE_LIMIT, 55_000, True),
    ],
)
def test_where_its_words_tell_no_length_it_is_made_shorter_only_if_it_is_seen_to_be_too_long(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, said: str, context: int, shorter: bool
) -> None:
    taken = {"id": MODEL["providerID"], "models": {MODEL["modelID"]: {"limit": {"context": context}}}}
    monkeypatch.setattr(OpencodeServer, "settings", lambda *_: {"providers": [taken]})
    session = _refused_summary(tree)
    _log(tree, session, said)
    done = Bench(tmp_path).attempt(tree, session)
    assert done.outcome is Outcome.HEALED
    assert ("clear_output" in done.actions) is shorter, done.detail
    assert not shorter or done.sent < 0.75 * context


QWEN = {"providerID": "alibaba", "modelID": "qwen3-max"}
FULL = "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 200000]"


def _refused_by_qwen(session: SessionBuilder) -> None:
    session.user("and on")
    error = api_error(FULL, 400)
    error["data"]["metadata"]["url"] = "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions"
    session.assistant(error=error, finish=None)


def _made_shorter(tmp_path: Path, tree: Tree, planted: Planted, version: str = NEW) -> tuple[Event, float, list[Part]]:
    """What became of it, what is told to be sent now in thousands of tokens, and what is stored then."""
    base = Base(tree.root.parent / "opencode.db", version, clock=time.time)
    write_sqlite(planted, base.path)
    [failure] = [look.failure for look in [base.store.look(planted.id)] if look.failure]
    event = Bench(tmp_path).recovery.attempt(case(base.store, failure)).event
    told = re.search(r"about (\d+)k are sent now", event.detail)
    assert told, event.detail
    loaded = base.store.load(planted.id)
    parts = [dict(part.data or {}) for message in loaded.messages for part in message.parts if not message.error]
    return event, int(told[1]), parts


@pytest.mark.parametrize("version", SCHEMAS)
def test_the_thinking_that_goes_back_by_chat_completions_is_weighed(tmp_path: Path, tree: Tree, version: str) -> None:
    """Without it all of its tokens were those of the system prompt and tools: nothing stored could help."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=QWEN)
    LONG["thinking"].turns(session, random.Random(7))
    _refused_by_qwen(session)
    event, told, parts = _made_shorter(tmp_path, tree, spent(session.planted()), version)
    assert (event.outcome, set(event.actions)) == (Outcome.HEALED, {"set_aside_old_thinking"}), event.detail
    sent = (BASE + sum(map(weight, parts)) // PER_TOKEN) / 1000
    assert abs(told - sent) < 0.03 * sent


@pytest.mark.parametrize("with_total", [True, False])
def test_thinking_that_older_clients_store_twice_is_weighed(tmp_path: Path, tree: Tree, *, with_total: bool) -> None:
    """1.2 stores it beside an output that it is in, as the provider told it, and 1.1 no total: what came since an
    answer seemed less by its thinking, as if that did not count.
    """
    session = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=QWEN)
    LONG["thinking"].turns(session, random.Random(7))
    _refused_by_qwen(session)
    planted = spent(session.planted())
    for tokens in (message["tokens"] for message in planted.messages if "total" in message.get("tokens", {})):
        tokens["reasoning"] = tokens["output"] - 20
        if not with_total:
            del tokens["total"]
    event, told, parts = _made_shorter(tmp_path, tree, planted, OLD)
    assert (event.outcome, set(event.actions)) == (Outcome.HEALED, {"set_aside_old_thinking"}), event.detail
    sent = (BASE + sum(map(weight, parts)) // PER_TOKEN) / 1000
    assert abs(told - sent) < 0.03 * sent


def test_the_thinking_that_the_server_leaves_out_is_not_weighed(tmp_path: Path, tree: Tree) -> None:
    session, rng = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=QWEN), random.Random(7)
    session.user(FIRST)
    for _ in range(60):
        session.assistant(reasoning(words(rng, 9_000)), bash(rng, 14_000))
    _refused_by_qwen(session)
    planted = spent(session.planted())
    thought = 0
    for message in planted.messages:
        if message["role"] == "assistant" and "error" not in message:
            message["tokens"]["cache"]["read"] -= thought // PER_TOKEN
            thought += sum(weight(part) for part in planted.parts[message["id"]] if part["type"] == "reasoning")
    event, told, parts = _made_shorter(tmp_path, tree, planted)
    assert (event.outcome, set(event.actions)) == (Outcome.HEALED, {"clear_output"}), event.detail
    cleared = [part for part in parts if part["type"] == "tool" and part["state"]["time"].get("compacted")]
    said = sum(weight(part) for part in parts if part["type"] != "reasoning") - sum(map(weight, cleared))
    sent = (BASE + (said + len(cleared) * 250) // PER_TOKEN) / 1000
    assert abs(told - sent) < 0.03 * sent


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 8000, Requested 8372",
            "8,372 of 8,000 tokens: what is left after a compaction (the system prompt, the tools, a summary) is more "
            "than a rate limit of the provider has room for",
        ),
        (RATE_LIMIT, "its client takes for a length what the provider said of something else."),
        (LENGTH, "9,000 of 32,000 tokens: its own words"),
    ],
)
def test_why_its_client_compacts_without_end_is_told_by_what_the_provider_said(said: str, told: str) -> None:
    logged = RecordedError((said,), answered=True)
    known = Shortening(lambda _: pytest.fail(), (), lambda *_: {}, logged=logged, context=32_000, left=9_000)
    assert why_left_over(known, "its own words").startswith(told)
