"""Which errors may lead to an edit at all: those of the one form of request that is known."""

from __future__ import annotations

from typing import Any

import pytest

from recoveryd.family import ANTHROPIC, family
from recoveryd.model import Failure


def asked(url: Any = None, provider: str = "anthropic") -> str | None:
    data = {"message": "no", "metadata": {"url": url}} if url is not None else {"message": "no"}
    return family(Failure("st", "ses", "msg", 0, {"name": "APIError", "data": data}, provider, "m"))


VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/claude"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.anthropic.com/v1/messages",
        "https://api.anthropic.com/v1/messages/",
        "https://api.anthropic.com/v1/messages?beta=true",
        "http://127.0.0.1:4000/anthropic/v1/messages",
        f"{VERTEX}:rawPredict",
        f"{VERTEX}:streamRawPredict",
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "my-proxy", ""])
def test_the_address_of_the_messages_api_is_that_form_whatever_the_provider_is_called(url: str, provider: str) -> None:
    assert asked(url, provider) == ANTHROPIC


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/chat/completions",
        "https://api.openai.com/v1/responses",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/converse-stream",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini:streamGenerateContent",
        f"{VERTEX.replace('anthropic', 'google')}:rawPredict",
        "https://api.example.com/v1/messages/count_tokens",
    ],
)
def test_another_api_is_another_form_even_under_the_name(url: str) -> None:
    assert asked(url) is None


@pytest.mark.parametrize("url", [None, "", "not an address", 7, {}])
def test_without_an_address_the_name_has_to_do(url: Any) -> None:
    assert asked(url) == ANTHROPIC
    assert asked(url, "google-vertex-anthropic") == ANTHROPIC
    assert asked(url, "openrouter") is None
    assert asked(url, "") is None


def test_an_error_without_data_is_read_too() -> None:
    assert family(Failure("st", "ses", "msg", 0, {}, "anthropic", "m")) == ANTHROPIC
    assert family(Failure("st", "ses", "msg", 0, {"data": "text"}, "openai", "m")) is None


@pytest.mark.parametrize("url", ["http://[broken/v1/messages", "http://[::1/v1/messages"])
def test_an_address_that_is_none_is_no_known_form(url: str) -> None:
    assert asked(url) in (None, ANTHROPIC)
