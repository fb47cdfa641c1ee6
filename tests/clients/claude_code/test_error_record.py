"""What Claude Code's own names for an error say, where its words don't; seen on the real 2.1.330."""

from __future__ import annotations

import pytest

from recoveryd.clients.claude_code import error_record
from recoveryd.core import Kind, RecordedError
from recoveryd.providers import classify, other_cause


def read(words: str, name: str, status: int | None = None) -> RecordedError:
    line = {"error": name, "message": {"content": [{"type": "text", "text": words}]}}
    return error_record.read({**line, "apiErrorStatus": status} if status else line)


@pytest.mark.parametrize(
    ("words", "name", "about"),
    [
        ("You've hit your limit · resets 3pm (UTC)", "rate_limit", "the account"),
        ("API Error: Something odd (no_response)", "server_error", "server"),
        ("API Error: Part of the response never arrived.", "server_error", "network"),
        ("Verify who you are to go on", "billing_error", "account"),
        ("API Error: it was too long an answer", "max_output_tokens", "length of the answer"),
        ("API Error: The model has reached its context window limit.", "max_output_tokens", "fills the model"),
    ],
)
def test_an_error_of_the_clients_own_is_told_by_its_words_or_name(words: str, name: str, about: str) -> None:
    error = read(words, name)
    assert classify(error) is None
    assert about in (other_cause(error) or "")


def test_a_server_that_answered_may_have_looked_at_the_history() -> None:
    """Gateways tell of any refusal with a 500."""
    words = (
        "API Error: 500 messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"
    )
    refused = classify(read(words, "server_error", 500))
    assert refused is not None and refused.kind is Kind.TOOL_RESULT_MISSING


FAILED = "Prompt is too long · automatic compaction failed: API Error: "


@pytest.mark.parametrize("words", ["messages.9.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"])
def test_of_a_compaction_of_its_own_that_was_refused_the_providers_words_tell(words: str) -> None:
    """It says before them that the prompt is too long, and records no status (2.1.332)."""
    for error in (read(f"{FAILED}400 {words}", "invalid_request"), error_record.read_copied(f"{FAILED}400 {words}\n")):
        assert error is not None and (error.status, error.answered) == (400, True)
        refused = classify(error)
        assert refused is not None and refused.kind is Kind.TOOL_CALL_INVALID


def test_a_compaction_of_its_own_that_failed_otherwise_is_told_by_what_failed() -> None:
    busy = read(f"{FAILED}529 Overloaded", "invalid_request")
    assert classify(busy) is None and "server" in (other_cause(busy) or "")
    no_words = FAILED.removesuffix("API Error: ")
    for says, about in {
        "Invalid API key · Fix external API key": "the key",
        "Credit balance is too low": "the account",
        "Failed to authenticate. API Error: 403 forbidden": "the key",
        "There's an issue with the selected model (m). It may not exist or you may not have access to it.": "the model",
        "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)": "the network",
    }.items():
        error = read(f"{no_words}{says}", "invalid_request")
        assert classify(error) is None and about in (other_cause(error) or ""), says


def test_beside_it_stands_the_refusal_for_which_it_was_made() -> None:
    """As the provider's refusal as too long had it (2.1.332)."""
    long = '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8"}}'
    line = {"isApiErrorMessage": True, "error": "invalid_request", "apiErrorStatus": 400, "errorDetails": long}
    illegal = f"{FAILED}400 messages.9.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    refused = classify(error_record.read({**line, "message": {"content": illegal}}))
    assert refused is not None and refused.kind is Kind.TOOL_CALL_INVALID
    busy = error_record.read({**line, "message": {"content": f"{FAILED}529 Overloaded"}})
    assert classify(busy) is None and busy.status == 529 and "server" in (other_cause(busy) or "")


@pytest.mark.parametrize(
    "words",
    [
        "Failed to generate conversation summary - the model's reply has no <summary> block",
        "summarization produced empty response",
        "no assistant message in summarization response",
        "an internal error",
        "API error",
    ],
)
def test_of_a_compaction_that_the_model_did_not_write_the_length_is_what_is_known(words: str) -> None:
    refused = classify(read(f"{FAILED.removesuffix('API Error: ')}{words}", "invalid_request"))
    assert refused is not None and refused.kind is Kind.CONTEXT_OVERFLOW


def test_the_clients_own_words_for_calls_without_results_are_known() -> None:
    refused = classify(read("API Error: 400 due to tool use concurrency issues.", "invalid_request", 400))
    assert refused is not None and refused.kind is Kind.TOOL_RESULT_MISSING
