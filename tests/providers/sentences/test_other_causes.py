"""Errors that are not about the history: a sentence that helps, and no word about those that can't be told."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.find import read_error
from recoveryd.core.model import Kind, RecordedError
from recoveryd.providers import classify, size_of
from recoveryd.providers.sentences.other_causes import other_cause, turned_away
from tests import confusion
from tests.support.parts import api_error

MAY_NOT_EXIST = "It may not exist or you may not have access to it. Run --model to pick a different model."

XAI_FILTER = (
    "Content violates usage guidelines. Team: 1f2e, API key ID: 9a8b, Model: grok-4, Failed check: "
    "SAFETY_CHECK_TYPE_BIO"
)


def _blocked(code: str) -> dict[str, Any]:
    """What xAI's filter blocks, as a client keeps it: the code is that of an account that may not."""
    body = json.dumps({"code": code, "error": XAI_FILTER})
    return {"name": "APIError", "data": {"message": f"Forbidden: {body}", "statusCode": 403, "responseBody": body}}


def _not_found(message: str, body: str) -> dict[str, Any]:
    """The error of an answer that does not have the form of the API that was asked."""
    return {"name": "APIError", "data": {"message": message, "statusCode": 404, "responseBody": body}}


def _page(status: int, body: str) -> dict[str, Any]:
    """The page of a firewall before the provider."""
    message = f"Forbidden: <html>{body}</html>"
    return {"name": "APIError", "data": {"message": message, "statusCode": status, "responseBody": message}}


@pytest.mark.parametrize(
    ("error", "about"),
    [
        ("Your credit balance is too low to access the Anthropic API.", "account"),
        ("429 {'code': 'insufficient_quota'}", "account"),
        ("Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", "account"),
        ("Key limit exceeded. Manage it using https://openrouter.ai/keys", "account"),
        ("API key limit exceeded.", "rate limit"),
        ("API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited", "rate limit"),
        ("API Error: Server is temporarily limiting requests (not your usage limit)", "rate limit"),
        (
            "The 'gpt-6.1-sol' model requires a newer version of Codex. Please upgrade to the latest app or CLI and "
            "try again.",
            "client that is too old",
        ),
        (
            "This version of Codex is no longer supported. Please upgrade to the latest version.",
            "client that is too old",
        ),
        (_page(403, "<title>Just a moment...</title> Enable JavaScript and cookies to continue"), "network"),
        (_page(403, "<title>Attention Required! | Cloudflare</title> Sorry, you have been blocked"), "network"),
        ("You have reached your usage limit. Upgrade to Pro.", "account"),
        ("The free tier is no longer supported. Please upgrade to a paid plan.", "account"),
        ("API key limit exceeded (60/minute).", "rate limit"),
        ("This organization has been disabled.", "account"),
        ("Your organization must be verified to stream this model.", "account"),
        ("User location is not supported for the API use.", "place"),
        ("This credential is only authorized for use with Claude Code and cannot be used for other requests.", "key"),
        ('model "gpt-5.3-codex" is not accessible via the /chat/completions endpoint', "choice of the model"),
        ("The provided model identifier is invalid.", "choice of the model"),
        ("Too many tokens, please wait before trying again.", "rate limit"),
        ("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 34238.", "however long"),
        ("The request signature we calculated does not match the signature you provided.", "key"),
        ({"name": "ProviderAuthError", "data": {"providerID": "x", "message": ""}}, "key"),
        ("Token refresh failed: 401", "key"),
        ({"error": "invalid_grant", "error_description": "Bad Request"}, "key"),
        (_not_found("Not Found", "<html>404 page not found</html>"), "address"),
        (_not_found("Not Found: <html>404 page not found</html>", "<html>404 page not found</html>"), "address"),
        (
            _not_found("Not Found", '{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}'),
            "address",
        ),
        (_not_found("Not Found", '{"detail":"Not Found"}'), "address"),
        (_not_found("Not Found", "<head><title>404 Not Found</title></head>"), "address"),
        (_not_found("Not Found", "<pre>Cannot POST /v1/messages</pre>"), "address"),
        (api_error("Invalid URL (POST /v1/v1/chat/completions)", 404), "address"),
        (_not_found("Not Found", '{"detail":"file-abc not found"}'), None),
        (api_error("File file-abc not found", 404), None),
        (api_error("messages.3: page 404 not found", 404), None),
        ('Error rendering prompt with jinja template: "System message must be at the beginning.".', "system prompt"),
        (api_error("Jinja Exception: System message must be at the beginning.", 500), "system prompt"),
        ("chat template rejected the request: System message must be the first message", "system prompt"),
        ("system: text content blocks must be non-empty", "empty text in the system prompt"),
        ("system.1.text: cache_control cannot be set for empty text blocks", "empty text in the system prompt"),
        ("Failed to call a function. Please adjust your prompt. See 'failed_generation'.", "just made"),
        (
            "tool call validation failed: attempted to call tool 'api_key' which was not in request.tools",
            "a call that the model just made",
        ),
        ("Model tried to call unavailable tool 'ProxyRead'. Available tools: bash, read.", "just made"),
        ({"message": "Tool choice is none, but model called a tool", "code": "tool_use_failed"}, "just made"),
        ("tools: Tool names\n       must be unique.", "tools"),
        ("tools.3.custom.input_schema: JSON schema is invalid", "tools"),
        ("Tool choice is only allowed when tools are specified.", "tools"),
        ("litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.", "tools"),
        ("X-OpenAI-Internal-Codex-Responses-Lite only supports function tools, custom tools, and client-", "tools"),
        ("Invalid 'input[0].tools[0].description': empty string.", None),  # Codex stores these in the thread
        ("`max_tokens` must be greater than `thinking.budget_tokens`.", "setting"),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'top_p'), 'msg': 'Extra inputs are not permitted'}]", "setting"),
        ("this model does not support image input (ref: 1)", "no images"),
        ("The model `gpt-5-turbo` does not exist", "model"),
        (api_error("model: claude-opus-9", 404), "choice of the model"),
        (api_error(f"There's an issue with the selected model (claude-opus-9). {MAY_NOT_EXIST}", 404), "the model. "),
        ("The model `gpt-9` does not exist or you do not have access to it.", "the model. "),
        ("Publisher Model `p/models/gemini` was not found or your project does not have access to it", "the model. "),
        ("Project `p` does not have access to model `gpt-4o`", "key"),
        (api_error("Unexpected value(s) `context-1m` for the `anthropic-beta` header", 400), "setting"),
        ("context deadline exceeded", "network"),
        ("Request blocked.", "Go back by a turn"),
        ("Request blocked before it reached Anthropic's API (HTTP 403)", "network"),
        ("The response stream was malformed. The response above may be incomplete.", "network"),
        ("Your computer went to sleep mid-response.", "network"),
        ("Server error mid-response. The response above may be incomplete.", "server"),
        ("Usage credits ran out before the response was finished.", "account"),
        ("The long context beta is not yet available for this subscription.", "account"),
        ("Effort 'max' isn't available with thinking turned off on this model", "setting"),
        ("The model has reached its context window limit.", "compact"),
        ("This content was flagged for possible cybersecurity risk.", "filter"),
        (XAI_FILTER, "filter"),
        (_blocked("The caller does not have permission to execute the specified operation"), "filter"),
        (_blocked("permission-denied"), "filter"),
        (api_error("Content violates usage guidelines.", 403), "filter"),
        ("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "filter"),
        ('{"type":"overloaded_error","message":"Overloaded"}', "server"),
        ("<html><h1>502 Bad Gateway</h1></html>", "server"),
        ("524: A timeout occurred", "network"),
        ("upstream error: status code 529", "server"),
        ("Error code: 503", "server"),
        ("Invalid 'tools': array too long. Expected at most 128, but got an array with length 504 instead.", "tools"),
        ("Invalid 'metadata': array too long. Expected at most 128, but got an array with length 504 instead.", None),
        ("We could not parse the JSON body of your request. (HINT: This likely means you aren't", "no valid JSON"),
        ("connect ECONNREFUSED 127.0.0.1:11434", "network"),
        ("Network error, error id: 2026060622490410eb8ceede9541e9, please try again later", "network"),
        ("terminated", "network"),
        ({"name": "UnknownError", "data": {"message": "other side closed"}}, "network"),
        ("the conversation was terminated by an empty message", None),
        ("messages.0.content.3.text.cache_control.ephemeral.ttl: Extra inputs are not permitted", "setting"),
        ("messages.1.content.0.thinking.cache_control: Extra inputs are not permitted", "setting"),
        ("messages.1.content.0.text.annotations: Extra inputs are not permitted", None),
        ("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive", "setting"),
        ("invalid beta flag", "setting"),
        ({"name": "MessageOutputLengthError", "data": {}}, "continue"),
        ({"name": "StructuredOutputError", "data": {"message": "Model did not produce structured output"}}, "form"),
        ({"name": "ContentFilterError", "data": {"message": "The response was blocked"}}, "filter"),
        ({"name": "MessageAbortedError", "data": {"message": ""}}, "stopped"),
        ({"name": "APIError", "data": {"message": "", "statusCode": 429}}, "rate limit"),
        ({"name": "APIError", "data": {"message": "", "statusCode": [429]}}, None),
        ("HTTP 400 invalid_request_error: Invalid request", None),
        ("", None),
        (None, None),
    ],
)
def test_what_an_error_is_about_is_told_where_it_can_be(error: object, about: str | None) -> None:
    told = other_cause(read_error(error))
    assert told is None if about is None else told is not None and about in told


@pytest.mark.parametrize(
    "words",
    [
        "messages.3.content.1.tool_use.name: `download_file` is not a permitted value here",
        "messages.5: `connector_text` blocks cannot be modified",
        "messages.2.content.0.document.source: the PDF connection could not be parsed",
        "messages.1.content.0: cache_control cannot be set for this",
        "messages.7.content.2.tool_result: aborted tool calls must carry content",
        "messages.4.content.0: thinking blocks from model: claude-3-7 not supported here",
        "messages[3].content[0]: Extra inputs are not permitted",
        "input[4]: the socket of this item was interrupted",
        "`server_tool_use` blocks of `socket_read` need permission",
        "`server_tool_use` for `download_file` has no match",
        "the block of `connectors` was uncancelled",
        "The URL is invalid: it names no image",
        "Failed to parse URL from picture.png",
        "Unexpected error in the last item",
        "the thinking exceeded budget_of_it in an earlier turn",
        "Malformed JSON in tool call arguments.",
        "Tool result was malformed JSON",
        "The request body is not valid JSON: ",
        "Invalid JSON response in tool message",
        "No output generated for tool call call_1",
        "Invalid tool parameters in tool call call_1",
        "Tool call id format is not supported",
        "Tool call arguments of type string are unsupported",
        "Function call turn after model turn is not supported",
        "Unknown parameter: 'tool_calls'.",
        "Unknown parameter: 'reasoning_content'.",
        "Unknown parameter: 'content'.",
        "reasoning_details is not supported in assistant turns",
        "The following fields are not supported: refusal",
        "This model does not support thinking content in assistant turns",
        "Requested parameters of the call are invalid",
        "The model's reasoning item is no longer available",
        "Model turn no longer matches its signature",
        "Invalid model turn",
        "Invalid model output in history",
        "update_plan does not include a result",
        "thinking over budget by 3 tokens",
        "the images could not route to a decoder",
        "Image location not supported",
        "Maximum capacity of items exceeded",
    ],
)
def test_what_names_a_place_in_the_history_or_a_tool_is_not_taken_for_something_else(words: str) -> None:
    error = read_error(api_error(words, 400))
    assert (other_cause(error), turned_away(error)) == (None, False)


@pytest.mark.parametrize(
    "name", ["create_payment", "get_quota", "rate_limit", "oauth_login", "safety_check", "api_key"]
)
def test_the_name_of_a_tool_is_no_cause(name: str) -> None:
    for said in (f"No response found for function {name}", f"Tool result for '{name}' without matching tool_use"):
        error = read_error(api_error(said, 400))
        assert classify(error) is not None and (other_cause(error), turned_away(error)) == (None, False)
    unknown = read_error(api_error(f"The tool call `{name}` was put off by the keeper of turns", 400))
    assert (classify(unknown), other_cause(unknown), turned_away(unknown)) == (None, None, False)


@pytest.mark.parametrize("words", ["Text error: 451 characters", "Error: 429 messages, which is odd"])
def test_a_count_is_no_status(words: str) -> None:
    assert other_cause(read_error(words)) is None


@pytest.mark.parametrize(
    ("words", "status", "away"),
    [
        ("Overloaded", 529, True),
        (f"There's an issue with the selected model (claude-opus-9). {MAY_NOT_EXIST}", 404, True),
        ("model: claude-opus-9", 404, True),
        ("No endpoints found that support image input", 404, False),
        ("messages.1: too many, wait", 429, True),
        ("Not Found", 404, True),
        ("File file-abc not found", 404, False),
        ("the model has no such setting as top_p", 400, False),
        ("This content was flagged", 400, False),
        ("", 500, True),
    ],
)
def test_who_was_turned_away_was_not_read(words: str, status: int, away: bool) -> None:
    assert turned_away(read_error(api_error(words, status))) is away


def _codex(status: int, body: str) -> object:
    """What Codex records of an answer, as its app server says it."""
    reason = {404: "Not Found", 405: "Method Not Allowed"}[status]
    said = f"unexpected status {status} {reason}: {body}, url: http://127.0.0.1:1/v1/responses, request id: r-1"
    return {"message": said, "codex_error_info": {"http_connection_failed": {"http_status_code": status}}}


def _beside_a_call(fault: str) -> dict[str, Any]:
    """Gemini lists all that it refuses: of a tool that the client offers with each request, the calls as well."""
    call = "contents[1].parts[0].function_call.name: Invalid function name, with a maximum length of 64."
    at = (f"tools[0].function_declarations[3].{fault}", call)
    return api_error("\n".join(f"* GenerateContentRequest.{one}" for one in at), 400)


ADDRESS, MODEL = "the address", "the choice of the model"
NO_INCLUDE = json.dumps(
    {
        "error": {
            "message": "Encrypted content is not supported with this model.",
            "type": "invalid_request_error",
            "param": "include",
        }
    },
    indent=2,
)
SPRING = '{"timestamp":"2026-11-01T10:00:00.000+00:00","status":404,"error":"Not Found","path":"/v1/responses"}'


@pytest.mark.parametrize(
    ("error", "about"),
    [
        (_codex(404, "Unknown error"), "again in a while; if that fails too, look at it"),
        ("API Error: 404 404 page not found", "`ANTHROPIC_BASE_URL`"),
        (_codex(404, '{"detail":"Not Found"}'), ADDRESS),
        (_codex(404, '{"error":"Not Found","message":"Not Found"}'), ADDRESS),
        (_codex(404, SPRING), ADDRESS),
        (_not_found("Not Found", SPRING), ADDRESS),
        (_codex(404, "File Not Found"), ADDRESS),
        (_codex(404, "Resource not found"), ADDRESS),
        (_codex(404, '{"error":"Unexpected endpoint or method. (POST /responses)"}'), ADDRESS),
        (_codex(405, '{"detail":"Method Not Allowed"}'), ADDRESS),
        (_codex(405, "Unknown error"), ADDRESS),
        (api_error("", 405), ADDRESS),
        (_codex(404, "The API deployment for this resource does not exist. If you created it, wait."), MODEL),
        (api_error("gpt-x is not a valid model ID", 400), MODEL),
        ({"name": "ProviderModelNotFoundError", "data": {"providerID": "x", "modelID": "y"}}, MODEL),
        (api_error("litellm.BadRequestError: LLM Provider NOT provided. You passed model=gpt-5.2", 400), MODEL),
        (api_error("No models loaded. Please load a model in the developer page", 400), MODEL),
        (api_error("You have not filled out the required use-case form for this model.", 400), "the model. "),
        (api_error("Model use case details have not been submitted for this account.", 404), "the model. "),
        (api_error("Access to Anthropic models is not allowed from unsupported countries, regions", 400), "place"),
        (
            api_error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', 400),
            "tools",
        ),
        (_beside_a_call("name: Invalid function name, with a maximum length of 64."), "about the tools"),
        (_beside_a_call("parameters.properties: should be non-empty for OBJECT type"), "about the tools"),
        (_beside_a_call("parameters.properties[api_key].enum: only allowed for STRING type"), "about the tools"),
        (_beside_a_call("parameters.properties[quota].items: missing field."), "about the tools"),
        (api_error("tools: array too long. Expected at most 128, but got 168 instead.", 400), "tools"),
        (api_error("API version not supported", 400), "setting"),
        (api_error(f"litellm.BadRequestError: OpenAIException - {NO_INCLUDE}. Received Model Group=x", 400), "setting"),
        (
            "Invalid value: 'reasoning.encrypted_content'. Supported values are: 'file_search_call.results', "
            "'message.input_image.image_url', and 'computer_call_output.output.image_url'.",
            "setting",
        ),
    ],
)
def test_faults_of_the_set_up_are_told_as_such(error: object, about: str) -> None:
    read = read_error(error)
    assert classify(read) is None and about in (other_cause(read) or "")


@pytest.mark.parametrize(
    "body",
    [
        "<title>405</title><p>Sorry, your request has been blocked as it may cause potential threats to the server.",
        "<title>405</title><script>m='很抱歉，由于您访问的URL有可能对网站造成安全威胁，您的访问被阻断。'</script>",
    ],
)
def test_what_a_firewall_blocks_is_told_as_such_though_it_says_that_the_method_is_not_allowed(body: str) -> None:
    named = {"name": "APIError", "data": {"message": "Method Not Allowed", "statusCode": 405, "responseBody": body}}
    for error in (_codex(405, body), named, api_error(f"Method Not Allowed: {body}", 405)):
        read = read_error(error)
        assert classify(read) is None and "Go back by a turn" in (other_cause(read) or "") and not turned_away(read)


@pytest.mark.parametrize(
    "body",
    [
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "Item not found",
        '{"error":"Not Found","message":"Previous response with id \'resp_1\' not found."}',
        '{"message":"message not found"}',
        "No tool output found for function call call_1.",
        "File file-1 not found",
        "File not found: http://127.0.0.1/a.png",
        "image_parse_error",
        "input[3]: not found",
    ],
)
def test_what_is_not_found_of_the_history_is_told_as_no_fault_of_the_address(body: str) -> None:
    for error in (_codex(404, body), _not_found("Not Found", body), api_error(body, 404)):
        read = read_error(error)
        assert ADDRESS not in (other_cause(read) or "") and not turned_away(read)


# Before anybody looks at the history, and words of the history that such an error may quote.
UNREAD = {
    "the account": (
        "Your credit balance is too low to access the API",
        "You exceeded your current quota, please check your plan and billing details",
        "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0",
        "You've hit your usage limit. Upgrade to Pro, or try again in 3 hours",
        "You've hit your session limit · resets 3pm (Europe/Berlin)",
        "You’ve reached your weekly limit · resets Dec 3, 9am",
        "You've hit your 5-hour limit · resets 11:06pm (UTC)",  # as the real 2.1.332 records it
        "You've hit your individual spend limit · ask your admin to raise it",
        "You've hit your org’s monthly spend limit",
        "You've hit your team's pooled group budget. It resets 3pm.",
        "This service is disabled for your org",
        "Usage is paused for your organization. For help, please contact support.",
        "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
        "You hit your spend cap set in your workspace. Increase your spend cap to continue.",
        "Your org is out of usage · contact your admin",
        "Your seat type doesn't include usage",
        "Your usage allocation has been disabled by your admin",
        "用户额度不足, 剩余额度: $0.00",
    ),
    "a rate limit": (
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000",
        "Too many tokens, please wait before trying again",
        "You've reached your rate limit",
        "You've reached your limit of 50 requests per minute",
        "You've reached your global rate limit",
        "You've hit your organization's requests per minute limit",
        "temporarily rate-limited upstream. Please retry shortly",
        "请求过于频繁,请稍后再试",
    ),
    "the key": (
        "Incorrect API key provided: sk-xxx",
        "The security token included in the request is invalid",
        "The request signature we calculated does not match the signature you provided",
        "Signature expired: 20261122T000000Z is now earlier than 20261122T001000Z",
        "Login expired · Please run /login",
        "Your refresh token was already used. Please log out and sign in again.",
        "无效的令牌",
    ),
    "the network": (
        "read ECONNRESET",
        "getaddrinfo ENOTFOUND api.example.com",
        "upstream connect error or disconnect/reset before headers",
        "Request timed out",
    ),
}
QUOTED = (
    *("tool_use", "tool_result", "thinking", "signature", "thought_signature", "image", "PDF", "5242880 bytes"),
    *("context window", "200000 tokens", "call_id", "reasoning_content", "prefill", "role"),
    *("toolu_01ABCdef", "rs_0123456789", "index 3", "line 1 column 143607", "too long", "surrogate", "empty"),
)
JOINED = ("{0} ({1})", "{1}: {0}", "{0}. {1}", "{0} [{1}: 12]", "{0} while processing {1}", "{0}; last was {1} 3")


def _wrapped(words: str, number: int) -> dict[str, object]:
    """As a gateway, or something before it, may pass it on."""
    error = {"error": {"message": words, "code": 400}}
    raw = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(error)}}}
    forms: list[dict[str, object]] = [
        {"message": words},
        {"message": "Bad Request", "responseBody": json.dumps(error)},
        {"message": "Provider returned error", "responseBody": json.dumps(raw)},
        {"message": f"litellm.BadRequestError: AnthropicException - {json.dumps(error)}. Received Model Group=x"},
        {"message": "Bad Request", "responseBody": json.dumps({"__type": "ValidationException", "message": words})},
        {"message": "Bad Gateway", "responseBody": f"<html><title>{words}</title><h1>{words}</h1>nginx</html>"},
    ]
    return forms[number % len(forms)]


def test_an_error_that_only_quotes_words_of_the_history_is_told_for_what_it_is() -> None:
    rng = random.Random(1)
    wrong = []
    for number in range(1_500):
        about = rng.choice(list(UNREAD))
        words = rng.choice(JOINED).format(rng.choice(UNREAD[about]), rng.choice(QUOTED))
        data = {**_wrapped(words, number), "statusCode": rng.choice((400, 422, None))}
        error = read_error({"name": "APIError", "data": data})
        refused, told = classify(error), other_cause(error) or ""
        if (refused is not None and refused.kind is not Kind.INVALID_UNICODE) or about not in told:
            wrong.append((words, refused, told))
    assert wrong == []


@pytest.mark.parametrize("status", [401, 402, 403, 408, 429])
def test_vague_words_count_for_nothing_where_the_status_says_that_nobody_looked(status: int) -> None:
    words = "arguments must be valid JSON"
    assert classify(read_error(api_error(words, 400))) is not None
    assert classify(read_error(api_error(words, status))) is None
    sure = "messages.1.content.0: Invalid `signature` in `thinking` block"  # "All accounts exhausted. Last error: ..."
    assert classify(read_error(api_error(sure, status))) is not None


def test_most_of_what_is_not_about_the_history_gets_a_sentence() -> None:
    negatives = [row["message"] for rows in confusion.sets().values() for row in rows if row["kind"] == "negative"]
    assert sum(other_cause(read_error(text)) is not None for text in negatives) > len(negatives) * 2 / 3


@given(st.text() | st.dictionaries(st.text(max_size=9), st.text()))
def test_any_error_is_read(error: object) -> None:
    told = other_cause(read_error(error))
    assert told is None or (told.startswith("It seems to be about ") and told.endswith("."))


@pytest.mark.parametrize(
    ("words", "about"),
    [
        ("Sonnet 4.5 can't help with this. Start a new session to continue. Learn more: https://x.example", "filter"),
        ("The model's tool call could not be parsed (retry also failed).", "could not read"),
        ("stream disconnected before completion: An error occurred while processing your request.", "server"),
        ("stream disconnected before completion: Our servers are currently overloaded", "server"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "network"),
    ],
)
def test_what_clients_say_of_an_answer_that_did_not_come_is_told_by_whose_fault_it_is(words: str, about: str) -> None:
    """As Claude Code 2.1.332 and Codex 0.171 record it."""
    assert about in (other_cause(RecordedError(texts=(words,))) or "")


FELL_BACK = (
    ". Received Model Group=claude-sonnet-4-5\nAvailable Model Group Fallbacks=['gpt-4o']\nError doing the fallback: "
    "litellm.{}"
)
TAKES_LESS = (
    "ContextWindowExceededError: litellm.BadRequestError: OpenAIException - This model's maximum context length is "
    "128000 tokens. However, your messages resulted in 215123 tokens."
)
FORGED = (
    'BadRequestError: Vertex_aiException - {"error":{"message":"messages.1.content.0: Invalid `signature` in '
    '`thinking` block"}}'
)


@pytest.mark.parametrize("fallback", [TAKES_LESS, FORGED])
@pytest.mark.parametrize(
    ("status", "first", "about"),
    [
        (500, 'InternalServerError: AnthropicException - {"type":"overloaded_error","message":"Overloaded"}', "server"),
        (500, "InternalServerError: AnthropicException - Connection error.", "network"),
        (408, "Timeout: APITimeoutError - Request timed out. Error_str: Request timed out.", "network"),
        (401, "AuthenticationError: AnthropicException - invalid x-api-key", "key"),
    ],
)
def test_what_a_fallback_said_is_not_said_of_the_model_that_was_asked(
    status: int, first: str, about: str, fallback: str
) -> None:
    """The words of LiteLLM's router: the error of the first model, and behind it that of the last."""
    words = f"litellm.{first}{FELL_BACK.format(fallback)}"
    overflow = {"name": "ContextOverflowError", "data": {"message": words, "responseBody": words}}  # as 1.18 takes it
    for error in map(read_error, (api_error(words, status), overflow)):
        assert classify(error) is None and not size_of(error).limit
        told = other_cause(error)
        assert told is not None and about in told


def test_what_the_model_said_that_was_asked_counts_whatever_its_fallback_said() -> None:
    error = read_error(api_error(f"litellm.{FORGED}{FELL_BACK.format(TAKES_LESS)}"))
    refused = classify(error)
    assert refused is not None and refused.kind is Kind.THINKING_SIGNATURE_INVALID
    assert not size_of(error).limit


def test_what_another_host_said_before_is_not_what_the_last_one_says() -> None:
    """Of OpenRouter."""
    before = [{"code": 400, "message": "Provider returned error", "raw": "messages.1.content.0: Invalid `signature`"}]
    said = {"message": "Overloaded", "code": 502, "metadata": {"provider_name": "Google", "previous_errors": before}}
    body = json.dumps({"error": said})
    data = {"message": "Overloaded", "statusCode": 502, "responseBody": body}
    behind_words = f"API Error: 502 {body}", f"API Error: 502 {json.dumps({'error': body})}"
    for told in ({"name": "APIError", "data": data}, *behind_words):
        error = read_error(told)
        assert classify(error) is None
        assert other_cause(error) == other_cause(read_error(api_error("Overloaded", 502)))


def test_what_the_last_host_says_counts_wherever_it_stands_beside_what_others_said_before() -> None:
    before = [{"code": 502, "message": "Overloaded", "raw": json.dumps({"of": ["]}"]})}]
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    for said in ({"raw": words, "previous_errors": before}, {"previous_errors": before, "raw": words}):
        refused = classify(read_error(f"API Error: 400 {json.dumps({'error': {'metadata': said}})}"))
        assert refused is not None and refused.kind is Kind.THINKING_SIGNATURE_INVALID


@pytest.mark.parametrize(
    "words",
    [
        "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'reasoning', and 'function_call'.",
        "Invalid input type 'compaction_trigger' at index 579",
        "remote compaction v2 expected exactly one compaction output item, got 0 from 2 output items",
    ],
)
def test_a_compaction_that_a_gateway_does_not_know_is_told_as_that(words: str) -> None:
    for before in ("", "Error running remote compact task: "):
        error = read_error({"message": f"{before}{words}", "codex_error_info": "other"})
        assert classify(error) is None
        assert "asks for a compaction" in (other_cause(error) or "")
        assert not turned_away(error)  # told before what was refused earlier, and it may be that all was answered


def test_where_a_compaction_is_a_value_that_is_taken_another_is_refused() -> None:
    words = (
        "Invalid value: 'agent_message'. Supported values are: 'compaction_trigger', 'function_call', and 'message'."
    )
    refused = classify(read_error({"message": words, "codex_error_info": "other"}))
    assert refused is not None and refused.kind is Kind.FOREIGN_ITEM
