"""What Claude Code's own names tell before any sentence is read, and what they must not hide."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.claude_code import content, error_record
from recoveryd.clients.find import read_error
from recoveryd.core import Cause, Kind, RecordedError
from recoveryd.doctor.report_shapes import error_shape
from recoveryd.providers import classify, other_cause, turned_away
from recoveryd.providers.sentences.cause_words import WORDS
from tests.conftest import Run
from tests.support.transcript import Transcript, call, text

ODD = "API Error: Words that nobody knows"


def read(words: str = ODD, stop: str = "stop_sequence", **fields: Any) -> RecordedError:
    message = {"content": [{"type": "text", "text": words}], "stop_reason": stop}
    return error_record.read({"isApiErrorMessage": True, "message": message, **fields})


@pytest.mark.parametrize("place", ["messages.3.content.1.tool_use.input", "input[3].arguments"])
def test_what_can_not_be_parsed_at_a_place_of_the_history_is_no_answer(place: str) -> None:
    error = read(f"API Error: {place}: Unterminated string in JSON at position 7", error="unknown")
    assert error.cause is None and not error.blameless
    assert read("API Error: Unterminated string in JSON at position 7").cause is Cause.UNREADABLE_ANSWER


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


# Its sentences for which it has no narrower name, and no status.
SENTENCES = [
    ("A mod's http.fetch hook stopped this request: A rule", Cause.HOOK),
    (
        "Failed to refresh OAuth token: the disk that holds the Claude Code config directory (~/.claude by default), "
        "or your disk quota on it, is full. Delete files you no longer need on that disk and retry",
        Cause.DISK,
    ),
    ("API Error: ENOSPC: no space left on device, write", Cause.DISK),
    (
        "Could not refresh your login: can't save to the Keychain · If locked, run security unlock-keychain",
        Cause.CREDENTIALS,
    ),
    (
        "Could not refresh your login because another Claude Code process is refreshing it (or exited mid-refresh) · "
        "Try again in a minute",
        Cause.RENEWAL,
    ),
    (
        "Authentication error · The gateway could not authenticate with its upstream provider — contact your gateway "
        "administrator",
        Cause.CREDENTIALS,
    ),
    (
        "Your organization's gateway refused the request · it did not accept your sign-in to it · API Error: 401 No.",
        Cause.CREDENTIALS,
    ),
    (
        "No LLM gateway: a gateway set in your shell isn't passed to a session opened from another folder.",
        Cause.CREDENTIALS,
    ),
    ("Invalid request header from the environment · Fix the environment variable · Invalid value", Cause.HEADER),
    (
        "Auto mode doesn't run on Opus, and the model policy no longer allows Sonnet · /model to pick another model",
        Cause.MODE,
    ),
    (
        "Claude Opus is not available with the Claude Pro plan. If you have updated your subscription plan recently, "
        "run /logout and /login for the plan to take effect.",
        Cause.MODEL_ACCESS,
    ),
    (
        "The server routed this response to a model that auto mode does not run on; the response was discarded.",
        Cause.MODEL_SWAPPED,
    ),
    (
        "Autocompact is thrashing: the context refilled to the limit within 3 turns of the previous compact, 3 times "
        "in a row. A file being read or a tool output is likely too large for the context window.",
        Cause.REFILLED,
    ),
    ("The model returned an empty response (retry also failed).", Cause.EMPTY_ANSWER),
    ("API Error: SSL certificate error (CERT_HAS_EXPIRED). The certificate is too old", Cause.CERTIFICATE),
    ("API Error: Not sent: no API attempts left", Cause.SERVER),
    ("API Error: JSON Parse error: Unrecognized token '<'", Cause.PROXY),  # a page: 2.1.330
    ("API Error: JSON Parse error: Unterminated string", Cause.UNREADABLE_ANSWER),
    ('API Error: JSON Parse error: Unexpected identifier "upstream"', Cause.UNREADABLE_ANSWER),
    ("API Error: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", Cause.PROXY),
    ("API Error: Unexpected token < in JSON at position 0", Cause.PROXY),  # older runtimes
    ("API Error: Unexpected end of JSON input", Cause.UNREADABLE_ANSWER),
    ("API Error: Request was aborted.", Cause.STOPPED),
    ("API Error: Your computer went to sleep before a response was produced. Try again.", Cause.NETWORK),
    ('API Error: ZlibError fetching "http://127.0.0.1:1/v1/messages?beta=true".', Cause.UNREADABLE_ANSWER),
    ("Anthropic profile login expired · Re-authenticate your Anthropic profile", Cause.KEY),
]


@pytest.mark.parametrize(("words", "cause"), SENTENCES)
@pytest.mark.parametrize("copied", [False, True])
def test_a_sentence_without_a_narrower_name_is_told(words: str, cause: Cause, copied: bool) -> None:
    error = read_error(words) if copied else read(words, error="unknown")
    assert other_cause(error) == f"It seems to be about {WORDS[cause]}"
    assert classify(error) is None


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


@pytest.mark.parametrize(("told", "cause"), [(2_000, Cause.OVERHEAD), (9_999, Cause.OVERHEAD), (10_000, None)])
def test_a_conversation_is_not_to_blame_where_all_else_is_too_long_without_it(told: int, cause: Cause | None) -> None:
    error = read(
        f"Prompt is too long · the request is ~210000 tokens (limit 200000) but this conversation is only ~{told} "
        "tokens — the rest is system prompt, tool definitions, and attachment content.",
        error="invalid_request",
        apiErrorStatus=400,
        errorDetails='400 {"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
    )
    refused = classify(error)
    assert error.cause is cause
    assert (refused.kind if refused is not None else None) is (None if cause else Kind.CONTEXT_OVERFLOW)


@pytest.mark.parametrize("value", [None, 7, [], {}, True])
def test_a_field_of_another_form_tells_nothing(value: Any) -> None:
    fields = dict.fromkeys(("apiError", "error", "apiErrorType", "apiErrorParams", "oauthRefreshDiskFull"), value)
    fields["oauthRefreshDiskFull"] = value if value is not True else "yes"
    assert read(stop=value, **fields).cause is None


# What the real 2.1.332 wrote in front of a server that answers as each name of a case says; so does 2.1.330, but for
# the words of two (`bedrockmodel`, `badgzip`).
RECORDED: dict[str, dict[str, Any]] = {
    line.pop("case"): line
    for line in json.loads((Path(__file__).parents[2] / "data" / "claude_code_errors.json").read_text())
}
TOLD: dict[str, Cause | Kind | None] = {
    **dict.fromkeys(("refusal", "refusal_details"), Cause.DECLINED),
    **dict.fromkeys(("malformed_tool", "stall", "stall0", "midcut0", "garbled", "badgzip"), Cause.UNREADABLE_ANSWER),
    "bedrockct": Cause.UNREADABLE_ANSWER,
    **dict.fromkeys(("max_tokens", "cutblock"), Cause.ANSWER_LENGTH),
    "ctx_window": Cause.FULL,
    **dict.fromkeys(("dlp", "policy_blocked", "s451"), Cause.POLICY),
    "too_old": Cause.OLD_CLIENT,
    "r429": Cause.RATE_LIMIT,
    **dict.fromkeys(("e401", "e401b", "e403", "hold", "html403", "profile", "nologin"), Cause.KEY),
    **dict.fromkeys(("oauth401", "oauth403", "oauthorg"), Cause.KEY),
    **dict.fromkeys(("e402", "credit", "oauth429", "r429long", "credits_out"), Cause.ACCOUNT),
    **dict.fromkeys(("e404", "html404", "bedrockmodel"), Cause.MODEL_ACCESS),
    **dict.fromkeys(("e500", "e529", "html502", "miderr", "overload503"), Cause.SERVER),
    **dict.fromkeys(("orgdis", "keydis", "helper", "bedrock403", "bedrocknocred"), Cause.CREDENTIALS),
    **dict.fromkeys(("vertex401", "foundry401"), Cause.CREDENTIALS),
    **dict.fromkeys(("refused_conn", "hang", "midcut"), Cause.NETWORK),
    **dict.fromkeys(("html200", "html302", "html407"), Cause.PROXY),
    **dict.fromkeys(("customhdr", "badkey", "badtoken"), Cause.HEADER),
    **dict.fromkeys(("effort", "automode"), Cause.SETTING),
    "tls": Cause.CERTIFICATE,
    "filter": Cause.FILTER,
    "invalidmodel": Cause.MODEL_CHOICE,
    "schema": Cause.TOOLS,
    "autoplan": Cause.MODE,
    "html400": None,
    **dict.fromkeys(("e413", "pdf", "image"), Kind.MEDIA_REJECTED),
    "toolong": Cause.OVERHEAD,
    "toolpair": Kind.TOOL_RESULT_MISSING,
    "orphan": Kind.TOOL_RESULT_ORPHAN,
    "dupid": Kind.TOOL_CALL_INVALID,
}
# Nobody looked at the history: an older refusal of it stands all the same.
UNREAD = {
    *(Cause.OLD_CLIENT, Cause.RATE_LIMIT, Cause.KEY, Cause.ACCOUNT, Cause.MODEL_ACCESS, Cause.SERVER),
    *(Cause.CREDENTIALS, Cause.NETWORK, Cause.PROXY, Cause.HEADER, Cause.CERTIFICATE, Cause.MODE),
}


def test_what_the_real_client_records_is_told_by_its_cause() -> None:
    mended = {case for case, line in RECORDED.items() if not error_record.is_refusal(line)}
    assert mended == {"procimage"}
    assert set(TOLD) == set(RECORDED) - mended
    for case, expected in TOLD.items():
        error = error_record.read(RECORDED[case])
        refused = classify(error)
        assert (refused.kind if refused is not None else None) is (expected if isinstance(expected, Kind) else None)
        if not isinstance(expected, Kind):
            told = f"It seems to be about {WORDS[expected]}" if expected is not None else None
            assert other_cause(error) == told, case
            assert turned_away(error) is (expected in UNREAD), case


def test_a_line_that_somebody_copied_is_read_as_one() -> None:
    line = RECORDED["dlp"]
    assert read_error(json.dumps(line)).cause is read_error(line).cause is Cause.POLICY
    assert read_error(json.dumps({**line, "isApiErrorMessage": "yes"})).cause is None


def test_a_bug_report_names_the_error() -> None:
    shapes = {case: error_shape(read_error(line), content.error_names()) for case, line in RECORDED.items()}
    assert (shapes["toolpair"]["name"], shapes["toolpair"]["status"]) == ("invalid_request", 400)
    assert [case for case, shape in shapes.items() if shape["name"] == "other"] == [
        "malformed_tool"
    ]  # it has no `error`


NAME = "messages.1.content.1.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'"


def test_an_older_refusal_stands_behind_what_the_real_client_records_where_nobody_looked_at_the_history(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cases: dict[str, str] = {}
    for case in TOLD:
        made = Transcript(start=int(time.time() * 1000) - 90_000)
        made.user("do it")
        made.assistant(text("x"), call(name="no name!", call_id="toolu_1"))
        made.result("toolu_1")
        made.assistant(text("done"))
        made.user("more")
        made.refused(NAME)
        made.user("once more")
        made.add(RECORDED[case])
        cases[made.session] = case
        made.write(tmp_path / ".claude" / "projects")
    code, out, _ = run("scan", "--json")
    stuck = {cases[one["session"]]: one["kind"] for one in json.loads(out)["stuck"]}
    assert code == 1
    expected = {case: told for case, told in TOLD.items() if not isinstance(told, Cause)}
    assert stuck == {**expected, **{case: Kind.TOOL_CALL_INVALID for case, told in TOLD.items() if told in UNREAD}}
    for session, case in cases.items():
        about = TOLD[case]
        if isinstance(about, Cause) and about not in UNREAD:
            told = json.loads(run("explain", "--session", session, "--json")[1])
            assert WORDS[about] in told["action"], case
