"""Errors that are not about the history: a sentence that helps, and no word about those that can't be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.providers.sentences.not_the_history import elsewhere
from tests import confusion


@pytest.mark.parametrize(
    ("error", "about"),
    [
        ("Your credit balance is too low to access the Anthropic API.", "account"),
        ("429 {'code': 'insufficient_quota'}", "account"),
        ("Too many tokens, please wait before trying again.", "rate limit"),
        ("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 34238.", "rate limit"),
        ("The request signature we calculated does not match the signature you provided.", "key"),
        ({"name": "ProviderAuthError", "data": {"providerID": "x", "message": ""}}, "key"),
        ("tools: Tool names\n       must be unique.", "tools"),
        ("tools.3.custom.input_schema: JSON schema is invalid", "tools"),
        ("`max_tokens` must be greater than `thinking.budget_tokens`.", "setting"),
        ("this model does not support image input (ref: 1)", "no images"),
        ("The model `gpt-5-turbo` does not exist", "model"),
        ("This content was flagged for possible cybersecurity risk.", "filter"),
        ('{"type":"overloaded_error","message":"Overloaded"}', "server"),
        ("<html><h1>502 Bad Gateway</h1></html>", "server"),
        ("connect ECONNREFUSED 127.0.0.1:11434", "network"),
        ({"name": "MessageOutputLengthError", "data": {}}, "continue"),
        ({"name": "MessageAbortedError", "data": {"message": ""}}, "stopped"),
        ("HTTP 400 invalid_request_error: Invalid request", None),
        ("", None),
        (None, None),
    ],
)
def test_what_an_error_is_about_is_told_where_it_can_be(error: object, about: str | None) -> None:
    told = elsewhere(error)
    assert told is None if about is None else told is not None and about in told


def test_most_of_what_is_not_about_the_history_gets_a_sentence() -> None:
    negatives = [row["message"] for rows in confusion.sets().values() for row in rows if row["kind"] == "negative"]
    assert sum(elsewhere(text) is not None for text in negatives) > len(negatives) * 2 / 3


@given(st.text() | st.dictionaries(st.text(max_size=9), st.text()))
def test_any_error_is_read(error: object) -> None:
    told = elsewhere(error)
    assert told is None or (told.startswith("It seems to be about ") and told.endswith("."))
