"""What Codex's own names and sentences tell before any other sentence is read, and what they must not hide: each
message as 0.169.0 and 0.171.0 recorded it before a provider on loopback, where no other source is named.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import read_error
from recoveryd.core import Cause, Kind, excerpt
from recoveryd.providers import classify, other_cause, turned_away
from recoveryd.providers.sentences.cause_words import WORDS
from tests.conftest import Run
from tests.support.rollouts import Rollout

ODD = "Words that nobody knows."
URL = ", url: http://127.0.0.1:1/v1/responses"
OF_STREAM = "stream disconnected before completion: "
DEMAND = "We’re currently experiencing high demand, which may cause temporary errors."
NOT_VERIFIED = (
    "The encrypted content gAAA...c90= could not be verified. Reason: Encrypted content could not be decrypted or "
    "parsed."
)
AT_FAULT = (
    "An error occurred while processing your request. You can retry your request, or contact us through our help "
    "center at help.openai.com if the error persists. Please include the request ID req_1 in your message."
)
RATE = (
    "Rate limit reached for gpt-5.2 in organization org-1 on tokens per min (TPM): Limit 30000, Used 22999, Requested "
    "13000. Please try again in 0.1s. Visit https://platform.openai.com/account/rate-limits to learn more."
)
SHOWN = ("", "ERROR: ", "■ ", "\n■ Error running remote compact task: ")


def failed(status: int | None) -> dict[str, object]:
    return {"http_connection_failed": {"http_status_code": status}}


@pytest.mark.parametrize(
    ("info", "message", "cause", "history_unread"),
    [
        ("usage_limit_exceeded", "You’ve hit your usage limit. Try again later.", Cause.ACCOUNT, True),
        ("usage_limit_exceeded", ODD, Cause.ACCOUNT, True),
        ("session_budget_exceeded", "budget reached", Cause.BUDGET, True),
        ("rate_limit_exceeded", "rate limit exceeded: Slow down.", Cause.RATE_LIMIT, True),
        ("rate_limit_exceeded", f"rate limit exceeded: {RATE}", Cause.RATE_LIMIT, True),
        (
            "rate_limit_exceeded",
            "rate limit exceeded: Request too large for gpt-5.6-luna in organization org-1 on tokens per min (TPM): "
            "Limit 200000, Requested 208334. The input or output tokens must be reduced in order to run successfully.",
            Cause.OVER_RATE,
            True,
        ),
        ("flex_unavailable", "Flex capacity unavailable.", Cause.SERVER, True),
        ("server_overloaded", "Selected model is at capacity. Please try a different model.", Cause.SERVER, True),
        (
            "policy_capacity_unavailable",
            "Policy-restricted capacity is unavailable. Please try again later.",
            Cause.SERVER,
            True,
        ),
        ("internal_server_error", DEMAND, Cause.SERVER_UNTOLD, True),
        # By the binary:
        ("internal_server_error", "internal error; agent loop died unexpectedly", Cause.CLIENT, True),
        ("model_not_found", "The requested model 'x' does not exist.", Cause.MODEL_ACCESS, True),
        ("inference_hook_denied", ODD, Cause.POLICY, False),
        ("cyber_policy", "This content was flagged for possible cybersecurity risk.", Cause.FILTER, False),
        ("bio_policy", "This content can't be shown because of biology policy.", Cause.FILTER, False),
        ("misalignment_policy_violation", "Misaligned.", Cause.FILTER, False),
        # By the binary, and its schema:
        ("too_many_denials", ODD, Cause.DENIALS, False),
        ("unauthorized", ODD, Cause.KEY, True),
        ("sandbox_error", "sandbox error: command timed out", Cause.SANDBOX, True),
        ({"active_turn_not_steerable": {"turn_kind": "review"}}, ODD, Cause.BUSY, True),
        ("thread_rollback_failed", ODD, Cause.BUSY, True),
    ],
)
def test_a_name_tells_the_cause_and_whether_an_older_refusal_stands(
    info: object, message: str, cause: Cause, history_unread: bool
) -> None:
    error = read_error({"message": message, "codex_error_info": info})
    assert (error.cause, classify(error), turned_away(error)) == (cause, None, history_unread)
    assert (other_cause(error) or "").endswith(WORDS[cause])
    assert excerpt(error).startswith(message[:30])


def test_no_words_of_a_provider_make_a_refusal_of_what_it_names_otherwise() -> None:
    error = read_error({"message": NOT_VERIFIED, "codex_error_info": "usage_limit_exceeded"})
    assert classify(error) is None


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (DEMAND, Cause.SERVER_UNTOLD),
        ("exceeded retry limit, last status: 429 Too Many Requests", Cause.LIMIT),
        ("Policy-restricted capacity is unavailable. Please try again later.", Cause.SERVER),
        ("Flex capacity unavailable.", Cause.SERVER),
        ("budget reached", Cause.BUDGET),
        ("Missing environment variable: `FAKE_KEY`.", Cause.CREDENTIALS),
        ("Incomplete response returned, reason: max_output_tokens", Cause.ANSWER_LENGTH),
        ("Incomplete response returned, reason: unknown", Cause.BROKEN_OFF),
        (f"{OF_STREAM}Incomplete response returned, reason: content_filter", Cause.FILTER),
        (
            "Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status 403 "
            f"Forbidden){URL}",
            Cause.NETWORK_PLACE,
        ),
        (f"{OF_STREAM}stream closed before response.completed", Cause.BROKEN_OFF),
        (f"{OF_STREAM}response.failed event received", Cause.BROKEN_OFF),
        (OF_STREAM, Cause.BROKEN_OFF),
        (f"{OF_STREAM}failed to parse ResponseCompleted: missing field `id`", Cause.UNREADABLE_ANSWER),
        (f"{OF_STREAM}UTF8 error: invalid utf-8 sequence of 1 bytes from index 0", Cause.UNREADABLE_ANSWER),
        (f"{OF_STREAM}idle timeout waiting for SSE", Cause.NETWORK),
        (f"{OF_STREAM}Transport error: network error: error decoding response body", Cause.NETWORK),
        (f"{OF_STREAM}error sending request", Cause.NETWORK),
        (f"{OF_STREAM}builder error", Cause.ADDRESS),
    ],
)
def test_a_sentence_of_its_own_tells_the_same_recorded_and_copied(shown: str, message: str, cause: Cause) -> None:
    for error in (read_error({"message": message, "codex_error_info": "other"}), read_error(f"{shown}{message}\n")):
        assert (error.cause, classify(error)) == (cause, None)
        assert (other_cause(error) or "").endswith(WORDS[cause])


@pytest.mark.parametrize("info", ["other", {"response_stream_disconnected": {"http_status_code": None}}, None])
@pytest.mark.parametrize(
    ("said", "kind", "about"),
    [
        (NOT_VERIFIED, Kind.REASONING_ITEM, ""),
        ("The image data you provided does not represent a valid image. Please try again.", Kind.MEDIA_REJECTED, ""),
        ("Invalid 'input[2].content[0].image_url'.", Kind.MEDIA_REJECTED, ""),
        (AT_FAULT, None, "the provider's server"),
        ("Our servers are currently overloaded. Please try again later.", None, "the provider's server"),
        (RATE, None, "a rate limit"),
        ("Incorrect API key.", None, "the key or the rights"),
        ("You exceeded your current quota, please check your plan and billing details.", None, "the account"),
        (ODD, None, ""),
        ("Previous response with id 'resp_x' not found.", None, ""),
    ],
)
def test_what_came_in_a_stream_is_read_as_if_it_came_at_once(
    info: object, said: str, kind: Kind | None, about: str
) -> None:
    """Only Codex's wrapper spoke of a stream."""
    recorded = read_error({"message": f"{OF_STREAM}{said}", "codex_error_info": info})
    for error in (recorded, *(read_error(f"{shown}{OF_STREAM}{said}") for shown in SHOWN)):
        refused = classify(error)
        assert (refused.kind if refused is not None else None) is kind
        assert about in (other_cause(error) or "") and bool(other_cause(error)) is bool(about)
        assert turned_away(error) is bool(about)
        assert excerpt(error).startswith(said[:30])


@pytest.mark.parametrize("status", [400, 409, 413, 422, 502, 503])
def test_a_refusal_under_another_status_is_one(status: int) -> None:
    error = read_error(
        {"message": f"unexpected status {status} X: {NOT_VERIFIED}{URL}", "codex_error_info": failed(status)}
    )
    refused = classify(error)
    assert refused is not None
    assert (refused.kind, error.status, error.answered) == (Kind.REASONING_ITEM, status, True)


@pytest.mark.parametrize(
    ("info", "message", "about"),
    [
        (failed(401), f"unexpected status 401 Unauthorized: {ODD}{URL}", "the key or the rights"),
        (failed(402), f"unexpected status 402 Payment Required: {ODD}{URL}", "the account"),
        (failed(403), f"unexpected status 403 Forbidden: {ODD}{URL}", "the key or the rights"),
        (failed(404), f"unexpected status 404 Not Found: 404 page not found{URL}", "the address"),
        (failed(408), f"unexpected status 408 Request Timeout: {ODD}{URL}", "the network"),
        (failed(502), f"unexpected status 502 Bad Gateway: <html>Bad Gateway</html>{URL}", "the provider's server"),
        (failed(503), f"unexpected status 503 Service Unavailable: {ODD}{URL}", "the provider's server"),
        (failed(529), f"unexpected status 529 <unknown status code>: Overloaded{URL}", "the provider's server"),
        (
            {"response_too_many_failed_attempts": {"http_status_code": 429}},
            "exceeded retry limit, last status: 429 Too Many Requests",
            "about a limit, of",
        ),
        (failed(None), "The requested access program is not enabled.", "the key or the rights"),
        # Of versions before, by the public source:
        (failed(None), "Connection failed: error sending request for url (http://127.0.0.1:1/)", "the network"),
        (
            {"response_stream_connection_failed": {"http_status_code": None}},
            "Error while reading the server response: error decoding response body",
            "the network",
        ),
    ],
)
def test_a_name_around_a_status_or_a_providers_words_leaves_it_to_them(info: object, message: str, about: str) -> None:
    error = read_error({"message": message, "codex_error_info": info})
    assert classify(error) is None and turned_away(error)
    assert about in (other_cause(error) or "")


@pytest.mark.parametrize("info", ["other", "bad_request", "invalid_prompt", "a_new_name", failed(None), failed(422)])
def test_a_name_that_may_stand_around_a_refusal_tells_nothing(info: object) -> None:
    error = read_error({"message": ODD, "codex_error_info": info})
    assert (error.cause, other_cause(error), turned_away(error)) == (None, None, False)
    refused = classify(read_error({"message": NOT_VERIFIED, "codex_error_info": info}))
    assert refused is not None and refused.kind is Kind.REASONING_ITEM


# What the real 0.171.0 wrote in front of a server that answers as each case says, or as its name does; 0.169.0 writes
# the same. tests/e2e/codex/test_errors.py has the answers played again.
RECORDED: dict[str, dict[str, Any]] = {
    case["case"]: case["error"]
    for case in json.loads((Path(__file__).parents[2] / "data" / "codex_errors.json").read_text())
}
TOLD: dict[str, Cause | Kind | None] = {
    **dict.fromkeys(("http400_quota", "http402", "http429_free", "http429_ent", "http429_notincl"), Cause.ACCOUNT),
    **dict.fromkeys(("http429_quota", "http429_orgusage", "sse_quota", "sse_notincl"), Cause.ACCOUNT),
    **dict.fromkeys(("http404_plain", "badurl"), Cause.ADDRESS),
    "sse_inc_max": Cause.ANSWER_LENGTH,
    **dict.fromkeys(("http200_html", "sse_nomsg", "sse_noerr", "sse_errorevent"), Cause.BROKEN_OFF),
    **dict.fromkeys(("sse_inc_none", "sse_closed", "compact_sse_closed"), Cause.BROKEN_OFF),
    **dict.fromkeys(("sse_budget", "http400_budget"), Cause.BUDGET),
    **dict.fromkeys(("noenv", "bedrock"), Cause.CREDENTIALS),
    **dict.fromkeys(("http400_cyber", "http400_bio", "http400_misalign", "http400_content_policy"), Cause.FILTER),
    **dict.fromkeys(("http400_invalid_prompt", "sse_cyber", "sse_contentpolicy"), Cause.FILTER),
    **dict.fromkeys(("sse_invalid_prompt", "sse_inc_filter"), Cause.FILTER),
    **dict.fromkeys(("http401", "http403", "sse_auth", "refresh_expired", "refresh_400"), Cause.KEY),
    **dict.fromkeys(("http400_model", "http404", "sse_model"), Cause.MODEL_ACCESS),
    **dict.fromkeys(("http408", "sse_abort", "sse_idle", "tcp_close"), Cause.NETWORK),
    "http403_cf": Cause.NETWORK_PLACE,
    **dict.fromkeys(("sse_hook", "http403_hook"), Cause.POLICY),
    **dict.fromkeys(("http503_slow", "sse_slow", "sse_rate"), Cause.RATE_LIMIT),
    **dict.fromkeys(("http502", "http503_over", "http503_policycap"), Cause.SERVER),
    **dict.fromkeys(("http529", "sse_over", "sse_policycap", "sse_server", "sse_flex", "refresh_500"), Cause.SERVER),
    "compact_sse_server": Cause.SERVER,
    "http429": Cause.LIMIT,
    **dict.fromkeys(("http500", "http500_refusal", "compact_http500"), Cause.SERVER_UNTOLD),
    "http400_other": Cause.SETTING,
    "sse_badcompleted": Cause.UNREADABLE_ANSWER,
    **dict.fromkeys(("http409", "http422", "sse_previous", "sse_unknown", "sse_audio")),
    **dict.fromkeys(("http400_ctx", "sse_ctx"), Kind.CONTEXT_OVERFLOW),
    **dict.fromkeys(("http413", "sse_image", "sse_imgcode", "ws400_image"), Kind.MEDIA_REJECTED),
    **dict.fromkeys(("http400_notverified", "sse_notverified", "ws400_notverified"), Kind.REASONING_ITEM),
    **dict.fromkeys(("compact_sse_notverified", "http502_notverified", "http503_notverified"), Kind.REASONING_ITEM),
}
READ = {Cause.ANSWER_LENGTH, Cause.FILTER, Cause.POLICY, Cause.SETTING, Cause.UNREADABLE_ANSWER}


def test_what_the_real_client_records_is_told_by_its_cause() -> None:
    assert set(TOLD) == set(RECORDED)
    for case, expected in TOLD.items():
        error = read_error(RECORDED[case])
        refused = classify(error)
        assert (refused.kind if refused is not None else None) is (expected if isinstance(expected, Kind) else None)
        if not isinstance(expected, Kind):
            told = f"It seems to be about {WORDS[expected]}" if expected is not None else None
            assert other_cause(error) == told, case
            assert turned_away(error) is (expected is not None and expected not in READ), case


def test_an_older_refusal_stands_behind_what_the_real_client_records_where_nobody_looked_at_the_history(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scan` lists those threads, and `explain` tells the others by their cause."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("HOME", str(tmp_path))
    threads = {f"01a201b9-82b1-7263-872f-{number:012x}": case for number, case in enumerate(TOLD)}
    for thread, case in threads.items():
        made = Rollout(tmp_path / "codex", thread, ms=int(time.time() * 1000) - 90_000)
        made.stuck()
        made.asks("once more")
        made.is_refused(RECORDED[case]["message"], RECORDED[case]["codex_error_info"])
    code, out, _ = run("scan", "--json")
    stuck = {threads[one["session"]]: one["kind"] for one in json.loads(out)["stuck"]}
    expected = {case: told for case, told in TOLD.items() if not isinstance(told, Cause)}
    unread = {case for case, told in TOLD.items() if isinstance(told, Cause) and told not in READ}
    assert code == 1
    assert stuck == {**expected, **dict.fromkeys(unread, Kind.REASONING_ITEM)}
    for thread, case in threads.items():
        about = TOLD[case]
        if isinstance(about, Cause) and about in READ:
            told = json.loads(run("explain", "--session", thread, "--json")[1])
            assert WORDS[about] in told["action"], case


def shown_by_exec(message: str) -> str:
    return f"session id: 1\n--------\nuser\nhello\nERROR: Reconnecting... 1/1\nERROR: {message}\nERROR: {message}\n"


FOLDED = "■ stream disconnected\n  before completion: "


@pytest.mark.parametrize(
    ("said", "kind", "cause"),
    [
        (f"{OF_STREAM}{NOT_VERIFIED}", Kind.REASONING_ITEM, None),
        (f"{OF_STREAM}{ODD}", None, None),
        (f"{OF_STREAM}stream closed before response.completed", None, Cause.BROKEN_OFF),
        (DEMAND, None, Cause.SERVER_UNTOLD),
    ],
)
def test_an_error_is_the_same_by_whatever_way_codex_says_it(said: str, kind: Kind | None, cause: Cause | None) -> None:
    """Its app server and the database of its threads, `codex exec` with and without `--json`, a folded screen."""
    recorded = {"message": said, "codex_error_info": "other"}
    served = {"message": said, "codexErrorInfo": "other", "additionalDetails": None, "misalignment": None}
    lost = {"responseStreamDisconnected": {"httpStatusCode": None}}
    again = {"message": "Reconnecting... 1/5", "codexErrorInfo": lost, "additionalDetails": said}
    line = {"type": "event_msg", "payload": {"type": "task_complete", "error": recorded}}
    ways: list[dict[str, Any]] = [recorded, served, again, line, {"method": "error", "params": {"error": served}}]
    ways += [{"type": "turn.failed", "error": {"message": said}}, {"type": "error", "message": said}]
    ways.append({"type": "error", "message": f"Reconnecting... 1/5 ({said})"})
    texts = [said, shown_by_exec(said), f"ERROR: Reconnecting... 1/5 ({said})", said.replace(OF_STREAM, FOLDED)]
    if said.startswith(OF_STREAM):
        texts += [f"[System Error] {said}", f"Reconnecting... 4/5\nReconnecting... 5/5\n{said}"]
    for way in (*ways, *map(json.dumps, ways), *texts):
        error = read_error(way)
        refused = classify(error)
        assert (error.cause, refused.kind if refused is not None else None) == (cause, kind), way
        assert bool(other_cause(error)) is (cause is not None), way


def test_names_are_the_same_as_its_app_server_spells_them() -> None:
    for name, spelled in (("bio_policy", "bioPolicy"), ("session_budget_exceeded", "sessionBudgetExceeded")):
        recorded = read_error({"message": ODD, "codex_error_info": name})
        assert recorded.cause is not None
        assert read_error({"message": ODD, "codexErrorInfo": spelled}) == recorded
    inner = {
        "message": f"unexpected status 503 X: {ODD}",
        "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 503}},
    }
    assert (read_error(inner).status, read_error(inner).name) == (503, "http_connection_failed")


@pytest.mark.parametrize(
    "words",
    [
        NOT_VERIFIED,
        f"ERROR: {NOT_VERIFIED}",
        json.dumps({"type": "error", "status": 400, "error": {"message": NOT_VERIFIED}}),
        json.dumps({"error": {"message": NOT_VERIFIED}}),
        json.dumps({"type": "turn.failed", "error": {"message": json.dumps({"error": {"message": NOT_VERIFIED}})}}),
    ],
)
def test_a_copied_refusal_without_its_wrapper_is_read_as_before(words: str) -> None:
    refused = classify(read_error(words))
    assert refused is not None and refused.kind is Kind.REASONING_ITEM


TPM = (
    "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service tier `on_demand` on tokens "
    "per minute (TPM): Limit 6000, Requested 17021, please reduce your message size and try again."
)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        ("413 Payload Too Large", TPM, Cause.OVER_RATE),  # else images of the thread would be taken out for it
        (
            "413 Payload Too Large",
            "AiError: The estimated number of input and maximum output tokens (40000) exceeded this model context "
            "window limit (32000).",
            Kind.CONTEXT_OVERFLOW,
        ),
        ("413 Payload Too Large", "<html><title>413 Request Entity Too Large</title></html>", Kind.MEDIA_REJECTED),
        ("401 Unauthorized", "Model is disabled", Cause.MODEL_CHOICE),
        ("504 Gateway Timeout", "Request timed out", Cause.NETWORK),
        ("504 Gateway Timeout", "Unknown error", Cause.SERVER),
        ("422 Unprocessable Entity", '{"detail": [{"type": "x", "loc": ["body", "tools", 0], "msg": "y"}]}', None),
    ],
)
def test_a_status_that_codex_puts_around_an_answer_says_no_more_than_that(
    status: str, body: str, told: Cause | Kind | None
) -> None:
    message = f"unexpected status {status}: {body}{URL}, request id: r-1"
    for error in (read_error({"message": message, "codex_error_info": failed(int(status[:3]))}), read_error(message)):
        refused, about = classify(error), other_cause(error)
        assert (refused.kind if refused is not None else None) is (told if isinstance(told, Kind) else None)
        if isinstance(told, Cause):
            assert about == f"It seems to be about {WORDS[told]}"
