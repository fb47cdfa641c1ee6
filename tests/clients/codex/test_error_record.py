"""Errors as Codex 0.169.0 records them."""

from __future__ import annotations

import json

import pytest

from recoveryd.clients import read_error
from recoveryd.core import Kind
from recoveryd.providers import classify
from tests.support.rollouts import NOT_VERIFIED


def test_the_body_of_an_answer_is_read() -> None:
    error = read_error({"message": NOT_VERIFIED, "codex_error_info": "other"})
    refused = classify(error)
    assert (error.name, error.answered, error.blameless) == ("other", True, False)
    assert refused is not None
    assert refused.kind is Kind.REASONING_ITEM


def test_an_answer_by_a_websocket_is_one_to_what_came_since_an_earlier_request() -> None:
    """As 0.171.0 records it. By HTTP, the whole history was sent."""
    body = json.loads(NOT_VERIFIED)
    for more, continued in (({"type": "error", "status": 400}, True), ({}, False), ({"type": "error"}, False)):
        refused = classify(read_error({"message": json.dumps({**more, **body}), "codex_error_info": "other"}))
        assert refused is not None
        assert (refused.kind, refused.continued) == (Kind.REASONING_ITEM, continued)


COMPACTING = "Error running remote compact task: "


@pytest.mark.parametrize("before", ["", COMPACTING])
def test_another_status_is_told_with_its_address(before: str) -> None:
    message = f"{before}unexpected status 413 Payload Too Large: too big, url: http://127.0.0.1:1/v1/responses"
    error = read_error({"message": message, "codex_error_info": {"http_connection_failed": {"http_status_code": 413}}})
    assert (error.status, error.url, error.blameless) == (413, "http://127.0.0.1:1/v1/responses", False)


@pytest.mark.parametrize("before", ["", COMPACTING])
def test_the_image_that_a_backend_says_nothing_of_is_an_image(before: str) -> None:
    """Also where the thread was to be compacted."""
    for words in ('{"detail":"Bad Request"}', "Image poisoning"):  # its own words for any image, there
        refused = classify(read_error({"message": before + words, "codex_error_info": "other"}))
        assert refused is not None
        assert refused.kind is Kind.MEDIA_REJECTED


@pytest.mark.parametrize("before", ["", COMPACTING, "■ ", "ERROR: ", f"\n■ {COMPACTING}"])
def test_what_its_screen_shows_of_such_an_image_is_one_too(before: str) -> None:
    """Copied from there, and from `codex exec`."""
    refused = classify(read_error(before + '{"detail":"Bad Request"}\n'))
    assert refused is not None
    assert refused.kind is Kind.MEDIA_REJECTED


@pytest.mark.parametrize(
    "words", ['Bad Request: {"detail":"Bad Request"}', '{"detail":"Not Found"}', "Bad Request", "■"]
)
def test_other_words_that_are_copied_are_read_as_before(words: str) -> None:
    assert classify(read_error(words)) is None


def test_a_record_that_is_copied_is_read_as_one() -> None:
    record = {"message": "tool_use ids were found without tool_result", "codex_error_info": "usage_limit_exceeded"}
    assert read_error(json.dumps(record)) == read_error(record)


@pytest.mark.parametrize("info", [7, {}, None, [], "x" * 10_000])
def test_anything_is_read(info: object) -> None:
    assert read_error({"message": [info], "codex_error_info": info}).texts is not None
