"""The names by which the real Claude Code records what ended a turn are those that recoveryd goes by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from recoveryd.clients.claude_code import error_record
from recoveryd.core import Cause, RecordedError
from recoveryd.providers import other_cause
from recoveryd.providers.sentences.cause_words import WORDS
from tests.e2e.claude_code.client import ClaudeCode
from tests.e2e.claude_code.run import client
from tests.e2e.install import UnavailableError
from tests.e2e.provider import Forced
from tests.support.transcript import text

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaudeCode]:
    try:
        with client(tmp_path_factory.mktemp("names") / "home") as started:
            yield started
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _body(kind: str, message: str, **error: Any) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, **error}}).encode()


def _code(name: str) -> bytes:
    return _body("invalid_request_error", "No.", details={"error_code": name})


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, _code("dlp_request_denied"), Cause.POLICY),
        (400, _code("claude_code_version_too_old"), Cause.OLD_CLIENT),
        (400, _code("tool_use_block_cut_off"), Cause.ANSWER_LENGTH),
        (400, _body("policy_blocked", "No."), Cause.POLICY),
        (400, _body("invalid_request_error", "This organization has been disabled."), Cause.CREDENTIALS),
        (403, _body("permission_error", "No."), Cause.KEY),
        (403, _body("permission_error", "API key authentication is disabled."), Cause.CREDENTIALS),
        (404, _body("not_found_error", "model: x"), Cause.MODEL_ACCESS),
        (407, b"<html><title>Log in to the proxy</title></html>", Cause.PROXY),
        (451, _body("legal", "No."), Cause.POLICY),
    ],
)
def test_the_client_names_what_ended_a_turn(there: ClaudeCode, status: int, body: bytes, cause: Cause) -> None:
    there.provider.force_when(lambda _: Forced(status=status, raw=body))
    assert _recorded(there).cause is cause


def test_a_refusal_of_the_history_has_a_name_that_is_none(there: ClaudeCode) -> None:
    words = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."
    there.provider.force_when(lambda _: Forced(words))
    error = _recorded(there)
    assert error.cause is None and words in error.texts


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><html><title>Sign in</title></html>", b'{"type":"mess', b"", b"no"])
def test_an_answer_that_is_no_json_is_not_blamed_on_the_history(there: ClaudeCode, body: bytes) -> None:
    """2.1.330 records what its runtime says of it, the newest that the answer is malformed."""
    there.provider.force_when(lambda _: Forced(status=200, raw=body))
    told = other_cause(_recorded(there))
    assert told in [f"It seems to be about {WORDS[cause]}" for cause in (Cause.PROXY, Cause.UNREADABLE_ANSWER)]


def _recorded(there: ClaudeCode) -> RecordedError:
    """What the client records of a prompt."""
    made = there.new()
    made.user("q")
    made.assistant(text("a"))
    file = made.write(there.projects)
    asked = there.prompt(made.session)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    found = [line for line in lines if line.get("isApiErrorMessage") is True]
    assert len(found) == 1 and not asked.answered, asked.output
    return error_record.read(found[0])
