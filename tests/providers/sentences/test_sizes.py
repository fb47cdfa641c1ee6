"""The numbers of refusals for size, of all that were collected; and what is no length at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core.length import Size
from recoveryd.core.model import Kind
from recoveryd.providers import classify, size_of

DATA = Path(__file__).parents[2] / "data"


def _size(text: str, status: int = 400, name: str = "APIError") -> Size:
    return size_of(read_error({"name": name, "data": {"message": text, "statusCode": status}}))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("prompt is too long: 209549 tokens > 200000 maximum", Size(209_549, 200_000)),
        ("prompt is too long: 1,209,549 tokens > 1,000,000 maximum", Size(1_209_549, 1_000_000)),
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or "
            "`max_tokens` and try again",
            Size(199_759, 200_000, 8_192),
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            Size(1_196_265, 1_048_575),
        ),
        (
            "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576",
            Size(1_200_000, 1_048_576),
        ),
        ("prompt token count of 51808 exceeds the limit of 12288", Size(51_808, 12_288)),
        ("Range of input length should be [1, 204800]", Size(limit=204_800)),
        (
            "This model's maximum context length is 131072 tokens. However, you requested 102400 output tokens and "
            "your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens.",
            Size(28_673, 131_072, 102_400),
        ),
        ("Prompt exceeds max length", Size()),
        ("Session too large to compact - context exceeds model limit even after stripping media", Size()),
    ],
)
def test_the_numbers_of_a_sentence(text: str, size: Size) -> None:
    assert _size(text) == size
    assert _size(json.dumps({"error": {"message": text}})) == size


def test_the_collected_texts_tell_what_stands_in_them() -> None:
    """A number that a text has and the size has not is none of the request's length."""
    found: list[Size] = []
    for file in ("provider_errors", "more_errors", "further_errors"):
        rows: Any = json.loads((DATA / f"{file}.json").read_text())
        rows = rows if isinstance(rows, list) else rows["errors"]
        found += [_size(row["message"]) for row in rows if row["kind"] == "context_overflow"]
    assert len(found) >= 35
    assert sum(bool(size.limit) for size in found) >= 26
    assert all(size.asked + size.output > size.limit for size in found if size.asked)


def test_other_errors_have_no_size() -> None:
    for file in ("provider_errors", "more_errors", "further_errors"):
        rows: Any = json.loads((DATA / f"{file}.json").read_text())
        rows = rows if isinstance(rows, list) else rows["errors"]
        others = [row["message"] for row in rows if row["kind"] not in ("context_overflow", "negative")]
        assert [text for text in others if _size(text).limit] == []


def test_numbers_that_can_be_no_length_are_none() -> None:
    assert _size("prompt is too long: 12 tokens > 10 maximum") == Size()
    assert _size("prompt is too long: 100 tokens > 200000 maximum").asked == 0


@pytest.mark.parametrize(
    "text", ["Request exceeds the maximum size", "413 Payload Too Large", "Request Entity Too Large"]
)
def test_a_length_in_bytes(text: str) -> None:
    assert _size(text, 413) == Size(by_bytes=True)
    assert _size(text, 413, "ContextOverflowError") == Size(by_bytes=True)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("Request exceeds the maximum size of 10 MB", 10 * 1024**2),
        ("request_too_large: Request exceeds the maximum allowed number of bytes. The maximum is 32 MB.", 32 * 1024**2),
        ("Request body is 12.3 MB. Max size is 10 MB", 10 * 1024**2),
        ("Request body too large, limit: 1048576 bytes", 1024**2),
        ("image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes", 0),  # no limit of the request
        ("the file is too large: at most 20 MB", 0),
    ],
)
def test_a_number_of_bytes(text: str, most: int) -> None:
    assert _size(text, 413) == Size(by_bytes=True, most_bytes=most)


@pytest.mark.parametrize(
    "text",
    [
        "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 9000",
        "This request would exceed the rate limit of 40,000 input tokens per minute",
    ],
)
def test_a_rate_limit_that_counts_tokens_is_no_length(text: str) -> None:
    """OpenCode takes every 413 for a length, and says so."""
    for name in ("APIError", "ContextOverflowError"):
        refused = classify(read_error({"name": name, "data": {"message": text, "statusCode": 413}}))
        assert refused is None or refused.kind is not Kind.CONTEXT_OVERFLOW
