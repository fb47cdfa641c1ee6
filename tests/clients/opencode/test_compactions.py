"""What stored sessions tell of their length, and what compactions that failed left behind."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from recoveryd.clients.opencode import compactions, token_usage
from recoveryd.clients.opencode.pruning import pruned
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.editor import Marks
from recoveryd.core.edits import edited
from recoveryd.core.model import RecordedError, Session
from tests.support.build import SessionBuilder, api_error, tool
from tests.support.long_sessions import LONG, bash, words
from tests.support.values import as_failure, as_session

FAILED = {"name": "APIError", "data": {"message": "Your credit balance is too low"}}


def _sent(session: Session, form: str) -> str:
    turns = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named(form)).build(session).turns
    return str([block.body for turn in turns for block in turn.blocks])


def _given_back(session: Session) -> Session:
    deeds = OpencodeShortener(session, Marks("rtest", 1), "/x").give_back()
    return edited(session, [edit for deed in deeds for edit in deed])


def _half_compacted(**part: Any) -> SessionBuilder:
    """A compaction that failed; `part` is what else its part says."""
    s = SessionBuilder(seed=3)
    s.user("the first thing")
    s.assistant("said early")
    tail = s.user("the second thing")
    s.assistant("said late")
    found = {key: tail["id"] if value == "TAIL" else value for key, value in part.items()}
    marker = s.user({"type": "compaction", "auto": True, **found})
    s.assistant(error=FAILED, finish=None, summary=True, parentID=marker["id"])
    return s


def test_what_a_failed_compaction_hid_is_sent_again() -> None:
    session = as_session(_half_compacted(tail_start_id="TAIL").planted())
    assert "said early" not in _sent(session, "new")
    ids = [message.id for message in session.messages]
    assert compactions.hidden_messages(session) == (ids[5], ids[:2])
    back = _given_back(session)
    assert "said early" in _sent(back, "new")
    assert "What did we do so far?" not in _sent(back, "new")
    assert compactions.hidden_messages(back) == ("", [])


def test_a_summary_of_what_a_failure_had_left_over_is_no_good_one() -> None:
    """The client tries again, and sums up a history that the failure has hidden by then."""
    s = _half_compacted(tail_start_id="TAIL")
    marker = s.messages[-2]["id"]
    s.assistant("nothing was said", summary=True, parentID=marker)
    s.user("and now?")
    session = as_session(s.planted())
    assert compactions.hidden_messages(session)[1]
    assert "said early" in _sent(_given_back(session), "new")


def test_the_old_clients_stop_trying_again() -> None:
    """1.1 and 1.2 run a compaction without a summary again under each prompt."""
    s = _half_compacted()
    s.user("and now?")
    s.failed()
    session = as_session(s.planted())
    assert [part.type for part in compactions.failed_compactions(session)] == ["compaction"]
    assert list(compactions.failed_compactions(_given_back(session))) == []


def test_one_that_failed_before_a_good_one_hides_nothing() -> None:
    s = _half_compacted(tail_start_id="TAIL")
    s.user("go on")
    s.assistant("went on")
    tail = s.user("the third thing")
    s.assistant("said last")
    marker = s.user({"type": "compaction", "auto": True, "tail_start_id": tail["id"]})
    s.assistant("all in short", summary=True, parentID=marker["id"])
    session = as_session(s.planted())
    assert compactions.hidden_messages(session) == ("", [])
    assert list(compactions.failed_compactions(session)) == []


def test_a_good_compaction_is_kept() -> None:
    s = SessionBuilder(seed=3)
    s.user("the first thing")
    s.assistant("said early")
    marker = s.user({"type": "compaction", "auto": True})
    s.assistant("all in short", summary=True, parentID=marker["id"])
    s.user("and now?")
    session = as_session(s.planted())
    assert list(compactions.failed_compactions(session)) == []
    assert compactions.hidden_messages(session) == ("", [])


def test_a_compaction_that_runs_right_now_is_none_that_failed() -> None:
    for running in ("asked", "answered"):
        s = SessionBuilder(seed=3)
        s.user("the first thing")
        s.assistant("said early")
        marker = s.user({"type": "compaction", "auto": True})
        if running == "answered":
            s.assistant(summary=True, parentID=marker["id"], completed=False, finish=None)
        assert list(compactions.failed_compactions(as_session(s.planted()))) == [], running


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        {},
        "many",
        {"input": "5"},
        {"input": -5, "output": 1},
        {"input": True},
        {"input": 1e300},
        {"input": 0, "output": 0, "cache": {"read": 0}},
        {"input": 5, "cache": {"read": -9}},
        {"cache": []},
    ],
)
def test_usage_that_is_none(tokens: Any) -> None:
    s = SessionBuilder(seed=3)
    s.user("hello")
    s.assistant("hello", tokens=tokens)
    session = as_session(s.planted())
    assert list(token_usage.usages(session, as_failure(session, api_error()))) == []


@pytest.mark.parametrize(
    ("output", "total", "protocol", "answered"),
    [
        (200, 1300, "openai.chat", 300),  # 1.18
        (300, 1300, "openai.chat", 300),  # 1.2
        (300, None, "openai.chat", 300),  # 1.1
        (300, None, "openai.responses", 300),
        (50, None, "openai.chat", 150),  # it can't be in it
        (200, None, "google.generate", 300),  # Google never counts it in
        (200, 1300, "google.generate", 300),
    ],
)
def test_the_thinking_of_an_answer_is_counted_once(
    output: int, total: int | None, protocol: str, answered: int
) -> None:
    s = SessionBuilder(seed=3)
    s.user("hello")
    tokens = {"input": 1000, "output": output, "reasoning": 100, "cache": {"read": 0, "write": 0}}
    s.assistant("hello", tokens={**tokens, "total": total} if total else tokens)
    session = as_session(s.planted())
    failure = replace(as_failure(session, api_error()), provider="own", error=RecordedError(), protocol=protocol)
    assert [one.answered for one in token_usage.usages(session, failure)] == [answered]


def test_usage_of_answers_but_not_of_summaries_and_failures() -> None:
    session = as_session(LONG["many-turns"].build(seed=3))
    found = list(token_usage.usages(session, as_failure(session, api_error())))
    answers = [m.id for m in session.messages if m.role == "assistant"]
    assert [usage.message_id for usage in found] == answers
    assert all(usage.same_model for usage in found)
    given = [usage.given for usage in found]
    assert given == sorted(given)


def test_the_clients_own_prune() -> None:
    """The newest 40,000 tokens before the last two prompts stay, and for less than 20,000 it does nothing."""
    rng = random.Random(1)

    def outputs(*sizes: int, prompts: int = 2) -> int:
        s = SessionBuilder(seed=3)
        s.user("go")
        for size in sizes:
            s.assistant(bash(rng, size))
        for _ in range(prompts):
            s.user("on")
        return len(pruned(as_session(s.planted()), 0))

    assert outputs(160_000, 100_000) == 1
    assert outputs(100_000, 160_000) == 1
    assert outputs(160_000, 160_000) == 1
    assert outputs(79_000, 160_000) == 0, "less than it is worth"
    assert outputs(160_000, 160_000, prompts=1) == 0
    assert outputs(400_000) == 1


def test_what_it_never_clears() -> None:
    s = SessionBuilder(seed=3)
    s.user("go")
    s.assistant(tool("skill", output=words(random.Random(1), 400_000)))
    s.assistant(tool("bash", output="x" * 400_000, status="error"))
    s.user("on")
    s.user("on")
    assert pruned(as_session(s.planted()), 0) == ()
