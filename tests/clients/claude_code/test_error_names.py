"""What Claude Code's own names tell before any sentence is read, and what they must not hide."""

from __future__ import annotations

from typing import Any

import pytest

from recoveryd.clients.claude_code import error_record
from recoveryd.core import Cause, Kind, RecordedError
from recoveryd.providers import classify, other_cause, turned_away
from recoveryd.providers.sentences.cause_words import WORDS

ODD = "API Error: Words that nobody knows"


def read(words: str = ODD, stop: str = "stop_sequence", **fields: Any) -> RecordedError:
    message = {"content": [{"type": "text", "text": words}], "stop_reason": stop}
    return error_record.read({"isApiErrorMessage": True, "message": message, **fields})


@pytest.mark.parametrize(
    ("fields", "cause", "history_unread"),
    [
        ({"apiError": "hook_denied", "error": "invalid_request", "apiErrorStatus": 403}, Cause.HOOK, True),
        ({"oauthRefreshDiskFull": True, "error": "invalid_request"}, Cause.DISK, True),
        ({"apiError": "oauth_refresh_store_refused", "error": "invalid_request"}, Cause.CREDENTIALS, True),
        ({"apiError": "invalid_credential_header", "error": "authentication_failed"}, Cause.HEADER, True),
        ({"apiError": "gateway_content_type", "error": "server_error"}, Cause.UNREADABLE_ANSWER, False),
        ({"apiErrorStatus": 407, "error": "unknown"}, Cause.PROXY, True),
        ({"apiError": "network_edge_blocked", "apiErrorStatus": 403}, Cause.NETWORK_PLACE, True),
        ({"apiError": "connection_failed", "error": "server_error"}, Cause.NETWORK, True),
        ({"apiError": "tls_untrusted_ca", "error": "server_error"}, Cause.CERTIFICATE, True),
        ({"apiError": "usage_limit_reached", "error": "rate_limit", "apiErrorStatus": 429}, Cause.ACCOUNT, True),
        ({"quotaLimits": {"upgradePaths": []}, "error": "rate_limit", "apiErrorStatus": 429}, Cause.ACCOUNT, True),
        ({"apiError": "consent_unanswered"}, Cause.ASKS_USER, True),
        ({"apiError": "no_allowed_fallback"}, Cause.MODEL_POLICY, True),
        ({"apiError": "message_over_context_limit"}, Cause.LONG_PROMPT, True),
        ({"error": "verification_required", "apiErrorStatus": 403}, Cause.ACCOUNT_HOLD, True),
        ({"error": "authentication_failed", "apiErrorStatus": 401}, Cause.KEY, True),
        ({"error": "model_not_found", "apiErrorStatus": 404}, Cause.MODEL_ACCESS, True),
        ({"apiError": "effort_requires_thinking", "apiErrorStatus": 400}, Cause.SETTING, False),
        ({"apiError": "dlp_request_denied", "error": "invalid_request", "apiErrorStatus": 400}, Cause.POLICY, False),
        ({"apiErrorType": "policy_blocked", "apiErrorStatus": 400}, Cause.POLICY, False),
        ({"apiErrorStatus": 451, "error": "unknown"}, Cause.POLICY, False),
        ({"apiError": "autocompact_thrashing", "error": "invalid_request"}, Cause.REFILLED, False),
        ({"apiError": "empty_completion"}, Cause.EMPTY_ANSWER, False),
        ({"apiError": "malformed_tool_use_exhausted"}, Cause.UNREADABLE_ANSWER, False),
        ({"stop": "refusal", "error": "invalid_request"}, Cause.DECLINED, False),
        ({"apiError": "max_output_tokens", "apiErrorParams": {"cut": "output_limit"}}, Cause.ANSWER_LENGTH, False),
        ({"apiError": "max_output_tokens", "apiErrorParams": {"cut": "context_window"}}, Cause.FULL, False),
        (
            {"apiError": "provider_credentials", "apiErrorParams": {"remedy": "model_access"}},
            Cause.MODEL_ACCESS,
            True,
        ),
        ({"apiError": "provider_credentials", "apiErrorParams": {"remedy": "adc"}}, Cause.CREDENTIALS, True),
    ],
)
def test_a_name_tells_the_cause_and_whether_an_older_refusal_stands(
    fields: dict[str, Any], cause: Cause, history_unread: bool
) -> None:
    error = read(**fields)
    assert error.cause is cause
    assert classify(error) is None
    assert other_cause(error) == f"It seems to be about {WORDS[cause]}"
    assert turned_away(error) is history_unread


PAIRS = "API Error: 400 orphaned tool_result in conversation history."


@pytest.mark.parametrize(
    ("words", "fields", "kind"),
    [
        (
            "API Error: 400 due to tool use concurrency issues.",
            {"apiError": "tool_history_mismatch"},
            Kind.TOOL_RESULT_MISSING,
        ),
        (
            PAIRS,
            {
                "apiError": "tool_history_mismatch",
                "errorDetails": '400 {"error":{"message":"messages.2.content.0: unexpected `tool_use_id` found in '
                '`tool_result` blocks: toolu_1."}}',
            },
            Kind.TOOL_RESULT_ORPHAN,
        ),
        (
            "Prompt is too long",
            {"errorDetails": '400 {"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}'},
            Kind.CONTEXT_OVERFLOW,
        ),
        (
            "Request too large (max 32MB). Double press esc to go back.",
            {"apiErrorStatus": 413, "apiErrorType": "request_too_large", "errorDetails": "request_too_large: 413"},
            Kind.MEDIA_REJECTED,
        ),
        (
            "PDF too large (max 100 pages, 32MB).",
            {"apiError": "pdf_too_large", "errorDetails": "400 A maximum of 100 PDF pages may be provided."},
            Kind.MEDIA_REJECTED,
        ),
        (
            "API Error: 400 messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            {"apiErrorType": "invalid_request_error", "apiErrorCode": "a_code", "apiError": "a_name_of_next_year"},
            Kind.TOOL_CALL_INVALID,
        ),
    ],
)
def test_a_name_that_wraps_a_refusal_of_the_history_hides_none(words: str, fields: dict[str, Any], kind: Kind) -> None:
    error = read(words, **{"apiErrorStatus": 400, "error": "invalid_request", **fields})
    assert error.cause is None
    refused = classify(error)
    assert refused is not None and refused.kind is kind


@pytest.mark.parametrize("value", [None, 7, [], {}, True])
def test_a_field_of_another_form_tells_nothing(value: Any) -> None:
    fields = dict.fromkeys(("apiError", "error", "apiErrorType", "apiErrorParams", "oauthRefreshDiskFull"), value)
    fields["oauthRefreshDiskFull"] = value if value is not True else "yes"
    assert read(stop=value, **fields).cause is None
