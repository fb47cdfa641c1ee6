"""The numbers of refusals for size, of all that were collected; and what is no length at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core.length import Size
from recoveryd.core.model import Kind, Limit
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
        ("Request body too large for gpt-4o model. Max size: 8000 tokens.", Size(limit=8_000)),
        (
            "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
            Size(140_000, 131_072),
        ),
        ("Range of input length should be [1, 204800]", Size(limit=204_800)),
        (
            "This model's maximum context length is 131072 tokens. However, you requested 102400 output tokens and "
            "your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens.",
            Size(0, 131_072, 102_400),  # it counts no further: what there is room for and one
        ),
        (
            "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your "
            "prompt contains 31800 characters (more than 0 characters, which is the upper bound for 0 input tokens).",
            Size(0, 32_768, 32_000),
        ),
        (
            "This model's maximum context length is 32768 tokens. However, you requested 32768 output tokens and your "
            "prompt contains 20000 input tokens, for a total of 52768 tokens.",
            Size(20_000, 32_768, 32_768),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 "
            "tokens and your request has 1203 input tokens (32768 > 32768 - 1203).",
            Size(1_203, 32_768, 32_768),
        ),
        (
            "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens.",
            Size(40_000, 32_768),
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 139907 tokens "
            "(81253 of text input, 58654 in the output). Please reduce the length of either one.",
            Size(81_253, 131_072, 58_654),
        ),
        (
            "This endpoint's maximum context length is 204800 tokens. However, you requested about 313538 tokens "
            "(287711 of text input, 1827 of tool input, 24000 in the output).",
            Size(289_538, 204_800, 24_000),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8227 tokens (3918 in the "
            "messages, 213 in the functions, and 4096 in the completion).",
            Size(4_131, 8_192, 4_096),
        ),
        (
            "This model's maximum context length is 4097 tokens. However, you requested 4097 tokens (1647 in the "
            "messages, 2450 in the completion).",
            Size(1_647, 4_097, 2_450),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total "
            "of 275614 tokens: 175556 tokens from the input messages and 100058 tokens for the completion.",
            Size(175_556, 256_000, 100_058),
        ),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 283123 tokens.",
            Size(283_123, 272_000),
        ),
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            Size(5_000, 4_096),
        ),
        ("The sum of 'inputs' tokens and 'max_new_tokens' must not exceed 4097.", Size(limit=4_097)),
        ("Input length (265330) exceeds model's maximum context length (262144).", Size(265_330, 262_144)),
        ("Requested token count exceeds the model's maximum context length of 131072 tokens.", Size(limit=131_072)),
        ("Your request exceeded model token limit: 262144 (requested: 291351)", Size(291_351, 262_144)),
        ("Your request exceeded model token limit: 128000", Size(limit=128_000)),
        ("Prompt has 5000 tokens, but the configured context size is 4096 tokens", Size(5_000, 4_096)),
        ("length of prompt_tokens (210000) must be less than max_seq_len (131072).", Size(210_000, 131_072)),
        ("the model is loaded with context length of only 8192 tokens, which is not enough", Size(limit=8_192)),
        (
            "Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support "
            "mid-generation context overflow. Try reloading with a larger context length",
            Size(limit=4_096),
        ),
        ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", Size(15_028, 7_424)),
        (
            "The decoder prompt (length 16476) is longer than the maximum model length of 16384. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
            Size(16_476, 16_384),
        ),
        (
            "The decoder prompt (length 32768) plus the number of requested output tokens (at least 1) is longer than "
            "the maximum model length of 32768.",
            Size(32_768, 32_768),
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
    ("name", "words", "code", "by_bytes"),
    [
        ("ContextOverflowError", "failed to parse request", "", True),
        ("ContextOverflowError", "failed to parse request", "context_length_exceeded", False),
        ("ContextOverflowError", "failed to parse request: prompt is too long", "", False),
        ("APIError", "failed to parse request", "", False),
    ],
)
def test_what_the_client_calls_a_length_by_the_status_alone_is_one_in_bytes(
    name: str, words: str, code: str, by_bytes: bool
) -> None:
    """As OpenCode 1.18 stores Copilot's 413: without the status."""
    body = json.dumps({"error": {"message": words, "code": code}})
    assert size_of(read_error({"name": name, "data": {"message": words, "responseBody": body}})).by_bytes is by_bytes


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("Request exceeds the maximum size of 10 MB", 10 * 1024**2),
        ("request_too_large: Request exceeds the maximum allowed number of bytes. The maximum is 32 MB.", 32 * 1024**2),
        ("Request body is 12.3 MB. Max size is 10 MB", 10 * 1024**2),
        ("Request body too large, limit: 1048576 bytes", 1024**2),
        ("Exceeded limit on max bytes to request body : 6291456", 6 * 1024**2),
        ("Invalid request: total message size 11041058 exceeds limit 4194304", 4 * 1024**2),
        ("Request size is too large. Request size is 1.2345678912345678 MB. Max size is 0.5 MB", 512 * 1024),
        ("image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes", 0),  # no limit of the request
        ("the file is too large: at most 20 MB", 0),
    ],
)
def test_a_number_of_bytes(text: str, most: int) -> None:
    assert _size(text, 413) == Size(by_bytes=True, most_bytes=most)


def test_a_request_that_is_too_large_for_litellm_is_known_without_413() -> None:
    words = "Request size is too large. Request size is 1.2345678912345678 MB. Max size is 0.5 MB"
    refused = classify(read_error({"name": "APIError", "data": {"message": words, "statusCode": 400}}))
    assert refused is not None
    assert (refused.kind, refused.over) == (Kind.MEDIA_REJECTED, Limit.REQUEST)
    assert (refused.limit, refused.sent) == (512 * 1024, int(1.2345678912345678 * 1024**2))
    assert _size(words, 400) == Size(by_bytes=True, most_bytes=512 * 1024)


@pytest.mark.parametrize(
    "text",
    [
        "File size is too large. Please check your file size. Passed file size: 30 MB. Max file size: 25 MB",
        "File too large. Max size is 0.5 MB",
        "Image size is too large. Max size is 0.5 MB",
        "Response size is too large. Response size is 1.5 MB. Max size is 0.5 MB",
        "Max size is 0.5 MB",
    ],
)
def test_the_size_of_a_file_or_an_answer_is_not_that_of_the_request(text: str) -> None:
    refused = classify(read_error({"name": "APIError", "data": {"message": text, "statusCode": 400}}))
    assert refused is None or refused.over is not Limit.REQUEST
    assert _size(text, 400) == Size()


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
