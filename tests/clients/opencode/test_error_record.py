"""An error as OpenCode stores it, read into what every client has: texts, name, status, address."""

from __future__ import annotations

from typing import Any

import pytest

from recoveryd.clients.opencode.error_record import read
from recoveryd.core.model import Kind, RecordedError

URL = "https://api.anthropic.com/v1/messages"


def test_what_the_ai_sdk_tells_of_an_answer_is_read() -> None:
    data = {
        "message": "Bad Request",
        "statusCode": 400,
        "responseBody": '{"error":{"message":"no \\u0060such\\u0060 thing"}}',
        "responseHeaders": {"x-said": "in a header"},
        "requestBodyValues": {"messages": ["what the user wrote"]},
        "metadata": {"path": "/"},
    }
    texts = ("Bad Request", "no `such` thing", "/")
    assert read({"data": data}) == RecordedError(texts, status=400, answered=True)
    assert read({"name": "APIError", "data": {"metadata": {"url": URL}}}) == RecordedError(
        ("APIError",), name="APIError", url=URL
    )


@pytest.mark.parametrize(
    ("name", "kind", "blameless"),
    [
        ("MessageAbortedError", None, True),
        ("ProviderAuthError", None, True),
        ("ContextOverflowError", Kind.CONTEXT_OVERFLOW, False),
        ("UnknownError", None, False),
        ("", None, False),
    ],
)
def test_the_clients_own_name_says_why_where_it_does(name: str, kind: Kind | None, blameless: bool) -> None:
    told = read({"name": name, "data": {"message": "no"}})
    assert (told.name, told.kind, told.blameless, told.answered) == (name, kind, blameless, False)


@pytest.mark.parametrize("error", [None, "", 7, [], {}, {"name": ["x"]}, {"data": "x"}, {"data": {"metadata": 1}}])
def test_whatever_is_no_such_record_is_read_without_its_facts(error: Any) -> None:
    told = read(error)
    assert told == RecordedError(told.texts)


@pytest.mark.parametrize(("status", "answered"), [([429], True), ("429", True), (None, False)])
def test_a_status_that_is_no_number_is_an_answer_without_one(status: Any, answered: bool) -> None:
    told = read({"name": "APIError", "data": {"message": "no", "statusCode": status}})
    assert (told.status, told.answered) == (None, answered)
