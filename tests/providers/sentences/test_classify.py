"""The classifier: every collected text in every form, the known traps, and mutations of all of them."""

from __future__ import annotations

import html
import json
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.find import read_error
from recoveryd.core.error_text import excerpt
from recoveryd.core.model import Kind, RecordedError
from recoveryd.providers.find import LIKELY, SURE, size_of
from recoveryd.providers.sentences.classify import candidates, classify, named_ids
from recoveryd.providers.sentences.other_causes import other_cause
from recoveryd.providers.sentences.rows import Row, squeeze
from tests import confusion
from tests.confusion import forms
from tests.support.examples import FULL, examples
from tests.support.refused import kind_of, position_of

ROWS = [row for rows in confusion.sets().values() for row in rows]
TEXTS = [(row, text) for row in ROWS for text in confusion.forms(row)]
KINDS_OF_TEXTS = sorted({row["kind"] for row in ROWS})
POSITIVES = [(confusion.wanted(row), text) for row, text in TEXTS if row["kind"] != "negative"]

ORDER = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks)."
)
MISSING = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)
ORPHAN = (
    "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01. Each `tool_result` block "
    "must have a corresponding `tool_use` block in the previous message."
)
DISABLED = (
    "messages.1.content.0.type: Expected `text`, but found `thinking`. When `thinking` is disabled, an `assistant` "
    "message in the final position cannot contain `thinking`."
)
SIGNATURE = "messages.7.content.3: Invalid `signature` in `thinking` block"


def api_error(message: object, **data: object) -> dict[str, Any]:
    return {"name": "APIError", "data": {"message": message, **data}}


@pytest.mark.parametrize(
    "text",
    [
        "Your organization has reached its limit of 500 images per month.",
        "Too many images this month (limit 100).",
        "too many images, at most 20 images a day",
        "Too many input tokens this minute",
        "system prompt is too long: 300000 characters > 200000 maximum",
        "Tool definitions exceed the maximum context length of 32000 tokens",
        "max_tokens: 300000 > 200000, which exceeds the context window of the model",
        "The max_tokens parameter exceeds the context length; reduce max_tokens",
        "thinking.budget_tokens 200000 exceeds the model's maximum context length",
        "An internal error occurred while decoding thinking signature",
        "Failed to verify thinking signature: upstream timeout",
        "Failed to verify thinking signature: service temporarily unavailable",
        "Unable to verify the thinking signature, please try again later",
        "Thinking signature could not be verified at this time. Please retry.",
        "The encrypted content could not be verified at this time. Please try again later.",
        "thinking block: the signature service is overloaded",
        "`max_tokens` exceeds the remaining context length of the model",
        "max_tokens 8192 which exceeds the remaining context window",
    ],
)
def test_what_a_request_has_beside_the_history_and_what_is_counted_in_a_while_are_no_fault_of_it(text: str) -> None:
    assert classify(read_error(api_error(text, statusCode=400))) is None


@pytest.mark.parametrize(
    "text",
    [
        "The conversation is too long. The system prompt is too long for that context",
    ],
)
def test_a_length_that_the_history_has_its_part_in_is_one_of_the_history(text: str) -> None:
    assert kind_of(api_error(text, statusCode=400)) is Kind.CONTEXT_OVERFLOW


def test_a_server_that_is_down_refuses_no_thinking_signature_in_words_of_its_own() -> None:
    """A gateway that answers with such a status for a provider's own sentence is believed."""
    assert kind_of(api_error("Failed to verify the thinking signature", statusCode=503)) is None
    assert kind_of(api_error(SIGNATURE, statusCode=503)) is Kind.THINKING_SIGNATURE_INVALID


@pytest.mark.parametrize(
    "text",
    [
        "Thinking signature verification failed",
        "The thinking signature could not be verified",
        "thinking.signature does not match its content",
        "Failed to verify the thinking signature",
        "unable to decode thinking signature",
        "messages.3: thinking signature mismatch",
        "Malformed thinking signature",
        "thinking signature is missing",
    ],
)
def test_a_thinking_signature_is_refused_in_any_gateways_words(text: str) -> None:
    assert kind_of(api_error(text, statusCode=400)) is Kind.THINKING_SIGNATURE_INVALID


@pytest.mark.parametrize("kind", KINDS_OF_TEXTS)
def test_every_collected_text_gets_its_kind_in_every_shape(kind: str) -> None:
    wrong = [
        (text, found)
        for row, text in TEXTS
        if row["kind"] == kind
        and (found := {kind_of(shape) for shape in confusion.shapes(text)}) != {confusion.wanted(row)}
    ]
    assert wrong == []


def test_the_table_counts_every_form_and_tells_what_was_mistaken() -> None:
    rows = confusion.sets()["late"]
    assert sum(sum(counts.values()) for counts in confusion.table(rows).values()) == sum(
        len(forms(row)) for row in rows
    )
    wrong = {**rows[0], "kind": "role_order"}
    assert confusion.table([wrong])["role_order"]["wrong"] == len(forms(wrong))
    assert confusion.mistakes([wrong], "role_order") == f"{len(forms(wrong))} as {rows[0]['kind']}"


def test_every_kind_and_many_negatives_are_in_the_data() -> None:
    kinds = {row["kind"] for row in ROWS}
    # What the client itself stumbles over is found in the store, never in a provider's words.
    own = {Kind.UNSENDABLE_PART, Kind.WRAPPED_IDS, Kind.INTERRUPTED_TURN, Kind.ENDLESS_COMPACTION}
    assert kinds == {*Kind, "negative"} - own
    for name in ("more_errors.json", "further_errors.json"):
        rows = confusion.load(name)
        assert sum(row["kind"] == "negative" for row in rows) >= 40
        assert all(row["source"].startswith("https://") for row in rows)


@pytest.mark.parametrize("kind", KINDS_OF_TEXTS)
def test_a_text_cut_off_anywhere_gets_its_kind_or_none(kind: str) -> None:
    wrong = []
    for row, text in TEXTS:
        if row["kind"] == kind:
            cuts = sorted({match.end() for match in re.finditer(r"\w+", text)})
            few = random.Random(text).sample(cuts, min(12 if FULL else 4, len(cuts)))
            wrong += [text[:cut] for cut in few if kind_of(text[:cut]) not in (confusion.wanted(row), None)]
    assert wrong == []


# What a wrapper, a terminal or an issue tracker does to a text


def fold(text: str, dice: random.Random) -> str:
    width, border = dice.randint(18, 60), dice.choice(["", "    ", "│ ", "> "])
    return "\n".join(border + text[i : i + width] for i in range(0, len(text), width))


def wrap(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 4)):
        text = json.dumps({"error": {"code": 400, "message": text}}, ensure_ascii=dice.random() < 0.5)
    return text


def cut_json(text: str, dice: random.Random) -> str:
    return wrap(text, dice)[: -dice.randint(1, 3)]


def as_python(text: str, dice: random.Random) -> str:
    body: object = text
    for _ in range(dice.randint(1, 3)):
        body = {"error": {"message": str(body), "param": None}, "code": 400}
    return f"litellm.BadRequestError: Error code: 400 - {body!r}"


def mixed(text: str, dice: random.Random) -> str:
    """JSON in Python in JSON, and the end of it lost: what stands in a log after three programs wrote it down."""
    wrapped = json.dumps({"message": as_python(json.dumps({"error": text}), dice)})
    return wrapped[: -dice.randint(1, 30)]


def requote(text: str, dice: random.Random) -> str:
    return re.sub(r"\\*[`'\"]", dice.choice(["", "`", "'", '"', "”", "«"]), text)


def renumber(text: str, dice: random.Random) -> str:
    number = re.compile(r"(?<!not be )(?<!status )(?<=[.\[ ])\d+(?=[.\]: ])", re.IGNORECASE)
    return number.sub(lambda _: str(dice.randint(0, 400)), text)


def reidentify(text: str, dice: random.Random) -> str:
    fresh = "".join(dice.choices("abcdefXYZ0123456789", k=24))
    return re.sub(r"(toolu_|tooluse_|call_|req_)[A-Za-z0-9_]{6,}", lambda m: m[1] + fresh, text)


def escape(text: str, dice: random.Random) -> str:
    marks = "`'\"_<>" if dice.random() < 0.5 else "`'\""
    return "".join(f"\\u{ord(char):04x}" if char in marks else char for char in text)


def recase(text: str, dice: random.Random) -> str:
    if "\\" in text:
        return text  # \\N is no line break
    return dice.choice([str.upper, str.lower, str.swapcase])(text)


def noise(text: str, dice: random.Random) -> str:
    before = ["API Error: 400 ", "AI_APICallError: ", "litellm.BadRequestError: VertexAIException - ", "429 ", "⎿  "]
    after = ["", "\n    at makeRequest (cli.js:51:7694)", ' "request_id":"req_011Cb"}', ". Received Model Group=x"]
    return dice.choice(before) + text + dice.choice(after)


Change = Callable[[str, random.Random], str]
WRAPPERS: list[Change] = [wrap, cut_json, as_python, mixed]
CHANGES: list[Change] = [fold, requote, renumber, escape, recase, noise]
CHANGES += [reidentify, lambda text, _: html.escape(text), lambda text, _: text.replace("`", "")]


@examples(400)
@given(
    st.sampled_from(POSITIVES),
    st.sampled_from(WRAPPERS),
    st.lists(st.sampled_from(CHANGES[:-3]), max_size=3, unique=True),
    st.integers(),
)
def test_a_text_keeps_its_kind_however_it_is_wrapped(
    sample: tuple[Kind, str], wrapper: Change, changes: list[Change], seed: int
) -> None:
    kind, text = sample
    dice = random.Random(seed)
    changes.insert(dice.randint(0, len(changes)), wrapper)
    for change in changes:
        if change is not fold or not {escape, mixed} & set(changes):  # nothing folds an escape that it did not write
            text = change(text, dice)
    assert kind_of(text) == kind
    assert kind_of(api_error("Bad Request", responseBody=text)) == kind


@pytest.mark.parametrize("change", CHANGES[-3:])
@examples(100)
@given(sample=st.sampled_from(POSITIVES), seed=st.integers())
def test_ids_html_and_backticks_do_not_matter(change: Change, sample: tuple[Kind, str], seed: int) -> None:
    kind, text = sample
    assert kind_of(change(text, random.Random(seed))) == kind


@examples(200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=40),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["name", "data", "message", "error", "responseBody"]), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_no_json_value_raises(value: object) -> None:
    assert kind_of(value) is None or isinstance(kind_of(value), Kind)
    assert isinstance(named_ids(read_error(value)), tuple)
    assert position_of(value) is None or len(position_of(value) or ()) == 2


def test_deep_values_and_deep_json_do_not_raise() -> None:
    value: object = SIGNATURE
    for _ in range(1500):
        value = {"error": [value]}
    assert kind_of(value) is None  # too deep for anybody to have meant it
    assert kind_of(api_error("[" * 5000)) is None
    assert kind_of(api_error('{"a":' * 5000 + SIGNATURE)) == Kind.THINKING_SIGNATURE_INVALID


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"name": "MessageAbortedError", "data": {"message": MISSING}}, None),
        ({"name": "ProviderAuthError", "data": {"providerID": "anthropic", "message": MISSING}}, None),
        ({"name": "MessageOutputLengthError", "data": {}}, None),
        ({"name": "ContextOverflowError", "data": {"message": "too big", "responseBody": "{}"}}, Kind.CONTEXT_OVERFLOW),
        (
            {
                "name": "ContextOverflowError",
                "data": {"message": "Request exceeds the maximum size"},
            },
            Kind.MEDIA_REJECTED,
        ),
        ({"name": "ContextOverflowError", "data": {"message": MISSING}}, Kind.CONTEXT_OVERFLOW),
        ({"error": {"name": "MessageAbortedError", "data": {"message": MISSING}}}, None),
        (json.dumps({"name": "MessageAbortedError", "message": MISSING}), None),
        ({"name": ["MessageAbortedError"], "message": MISSING}, Kind.TOOL_RESULT_MISSING),
    ],
)
def test_the_name_of_an_error_decides_where_it_says_enough(error: object, kind: Kind | None) -> None:
    assert kind_of(error) == kind


@pytest.mark.parametrize(
    "error",
    [
        {"name": "APIError"},
        {"name": "APIError", "data": None},
        {"name": "APIError", "data": {"message": None, "responseBody": 7}},
        {},
        [],
        None,
        "",
        api_error("", responseBody="{}"),
    ],
)
def test_an_error_without_text_has_no_kind(error: object) -> None:
    assert kind_of(error) is None


@pytest.mark.parametrize(
    "error",
    [
        {"name": "UnknownError", "data": {"message": {"error": {"message": SIGNATURE}}}},
        {"message": [{"text": SIGNATURE}]},
        {"data": SIGNATURE},
        api_error(400, responseBody={"error": {"message": SIGNATURE}}),
        {"error": json.dumps({"cause": json.dumps([json.dumps({"m": SIGNATURE})])})},
        {"name": "APIError", "message": "Provider returned error", "data": {"metadata": {"raw": SIGNATURE}}},
    ],
)
def test_odd_shapes_are_read(error: object) -> None:
    assert kind_of(error) == Kind.THINKING_SIGNATURE_INVALID
    assert position_of(error) == (7, 3)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ORDER, Kind.THINKING_BLOCK_ORDER),  # says tool_use and tool_result
        (ORPHAN, Kind.TOOL_RESULT_ORPHAN),  # says both too
        (MISSING, Kind.TOOL_RESULT_MISSING),
        (DISABLED, Kind.THINKING_DISABLED_VIOLATION),  # says "expected ... found"
        ("When thinking is disabled, an assistant message in the final position", Kind.THINKING_DISABLED_VIOLATION),
        (
            "messages.3.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 6 > 5",
            Kind.MEDIA_REJECTED,  # a tool_result in the path of an image
        ),
        ('429 Too Many Requests {"error":{"code":404,"message":"' + SIGNATURE, Kind.THINKING_SIGNATURE_INVALID),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", Kind.REASONING_MISSING),
        ("unexpected end of hex escape at line 1 column 77", Kind.INVALID_UNICODE),
        (
            SIGNATURE + '. Remove the block, or set `thinking.block_binding` to "drop_block".',
            Kind.THINKING_SIGNATURE_INVALID,
        ),
    ],
)
def test_the_most_specific_sentence_wins(text: str, kind: Kind) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.",
            Kind.CONTEXT_OVERFLOW,
        ),
        ("Total tokens of image and text exceed max message tokens", Kind.CONTEXT_OVERFLOW),
        ("输入长度超过模型限制", Kind.CONTEXT_OVERFLOW),
        ("请求的 token 数超过模型最大上下文长度", Kind.CONTEXT_OVERFLOW),
        ("上下文长度超出限制", Kind.CONTEXT_OVERFLOW),
        ("Failed to create new sequence: failed to process inputs: image: unknown format", Kind.MEDIA_REJECTED),
        ("[1210] 图片输入格式/解析错误", Kind.MEDIA_REJECTED),
        ("Failed to deserialize the JSON body: messages[3]: missing field `content` at line 1", Kind.EMPTY_CONTENT),
        ("Unknown name \"thoughtSignature\" at 'contents[3].parts[0]'", Kind.THINKING_SIGNATURE_INVALID),
        ("The encrypted content of item rs_1 is invalid.", Kind.REASONING_ITEM),
    ],
)
def test_sentences_of_gateways_and_servers_that_were_met_later(text: str, kind: Kind) -> None:
    assert [kind_of(shape) for shape in confusion.shapes(text)] == [kind] * 5


@pytest.mark.parametrize(
    "text",
    [
        "Your credit balance is too low to access the Anthropic API.",
        "The request signature we calculated does not match the signature you provided.",
        "InvalidSignatureException: Signature expired: 20260801T000000Z is now earlier than 20260801T001000Z",
        "`max_tokens` must be greater than `thinking.budget_tokens`. See https://x.y/extended-thinking#context-window",
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
        "`thinking.type`: Input should be 'enabled' or 'disabled'",
        '{"code":"tool_use_failed","message":"Failed to parse tool call arguments as JSON","failed_generation":"{"}',
        "Too many tokens, please wait before trying again.",
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 34238.",
        "system: text content blocks must be non-empty",
        "system.0.text: text content blocks must contain non-whitespace text",
        "system.0: text content blocks must be non-empty",
        "system.1.text: cache_control cannot be set for empty text blocks",
        "system: cache_control cannot be set for empty text blocks",
        "tools.3.custom.input_schema: JSON schema is invalid",
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        "Invalid 'tools[0].function.name': string does not match pattern.",
        "error reading from CLI error=unexpected end of hex escape at line 1 column 4384625",
        "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens",
        "max_tokens (131072) exceeds the model's maximum context length 131072",
        "invalid_image_url: Failed to download image from https://example.org/a.png",
        "block_binding: Extra inputs are not permitted",
        "messages.5.content.1.text.cache_control: Extra inputs are not permitted",
        "messages.3.content.1: Invalid `encrypted_content` in `search_result` block",
        "Too many files open",
        "You have uploaded too many images today. Try again tomorrow.",
        "上传的文件长度超过限制",
        "property 'reasoning_content' is unsupported",
    ],
)
def test_the_same_words_in_another_sense_are_no_failure_of_the_history(text: str) -> None:
    assert [kind_of(shape) for shape in confusion.shapes(text)] == [None] * 5


@pytest.mark.parametrize(
    "words",
    [
        "Encrypted content is not supported with this model.",
        "Unknown include value: reasoning.encrypted_content",
        "Zero Data Retention is required for reasoning.encrypted_content",
        "Invalid value: 'reasoning.encrypted_content'. Supported values are: 'file_search_call.results', "
        "'message.input_image.image_url', and 'computer_call_output.output.image_url'.",
        "Thought signature is not supported by this model.",
        "Unsupported content encoding: zstd",
        "Unsupported media type: application/octet-stream",
        "I do not have a tool for that",
    ],
)
def test_names_of_errors_around_a_sentence_are_none_of_its_words(words: str) -> None:
    texts = [f"unexpected status 415 Unsupported Media Type: {json.dumps({'error': {'message': words}})}, url: x"]
    for name, code in (
        ("invalid_request_error", None),
        ("invalid_request_error", "unsupported_media_type"),
        ("invalid_request_error", "tool_use_failed"),
        ("BadRequestError", "model_not_found"),
        ("not_found_error", None),
    ):
        said = json.dumps({"error": {"message": words, "type": name, "param": "include", "code": code}}, indent=2)
        first = str({"error": {"type": name, "code": code, "message": words}})
        texts += [f"litellm.BadRequestError: OpenAIException - {said}. Received Model Group=x", f"Error: 400 - {first}"]
    details = json.dumps({"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})
    texts.append(f"litellm.BadRequestError: VertexAIException - {details}")
    for text in texts:
        body = json.dumps({"error": {"message": text, "type": None, "code": "400"}})
        assert [kind_of(error) for error in (text, api_error(text), api_error("Bad Request", responseBody=body))] == (
            [None] * 3
        )


@pytest.mark.parametrize(
    "words",
    [
        "415 Unsupported Media Type: the image type image/heic is not supported",
        "the image type image/heic is an unsupported media type",
    ],
)
def test_an_image_of_a_type_that_is_not_taken_is_told_with_that_status_too(words: str) -> None:
    assert kind_of(words) == Kind.MEDIA_REJECTED


@pytest.mark.parametrize(
    "text",
    [
        "messages.7.content.3: Invalid <code>signature</code> in <b class='x'>thinking</b> block",
        "messages.7.content.3: Invalid &lt;code&gt;signature&lt;/code&gt; in &#96;thinking&#x60; block",
        "\x1b[31mmessages.7.content.3: Invalid `\x1b[1;4msignature\x1b[0m` in `thinking` block",
        "messages.7.content.3: Invalid \\u001b[1m\\x60signature\\x60\\u001b[0m in \\u0060thinking\\u0060 block",
        "messages.7.content.3: Inva\u200blid \u201csig\u00adnature\u201d in \u00abthinking\u00bb block",
        "messages.7.content.3:\r\n  Invalid **`signature`**\r\n  in _`thinking`_ block",
        "| messages.7.content.3: Invalid   |\n| `signature` in `think |\n| ing` block |",
        "ｍｅｓｓａｇｅｓ.7.content.3: Ｉｎｖａｌｉｄ signature in thinking block",
    ],
)
def test_mark_up_colours_and_invisible_letters_do_not_matter(text: str) -> None:
    assert kind_of(text) == Kind.THINKING_SIGNATURE_INVALID
    assert position_of(text) == (7, 3)


@pytest.mark.parametrize("pair", [(MISSING, ORPHAN), (SIGNATURE, ORDER), (DISABLED, ORDER), (MISSING, SIGNATURE)])
def test_a_text_that_fits_two_kinds_has_none(pair: tuple[str, str]) -> None:
    assert kind_of("\n".join(pair)) is None
    assert kind_of(api_error(pair[0], responseBody=pair[1])) is None
    assert position_of(api_error(pair[0], responseBody=pair[1])) is None
    assert set(candidates(read_error("\n".join(pair)))) == {kind_of(text) for text in pair}


@examples(200)
@given(st.sampled_from(POSITIVES), st.sampled_from(POSITIVES), st.sampled_from(["\n", "; ", '"},{"message":"']))
def test_two_causes_in_one_text_give_neither_a_third_nor_the_vaguer(
    first: tuple[Kind, str], second: tuple[Kind, str], between: str
) -> None:
    kind = kind_of(first[1] + between + second[1])
    sure = {kind for kind, text in (first, second) if spoken(text)}
    if first[0] == second[0]:
        assert kind == first[0]
    elif len(sure) == 2:
        assert kind is None
    else:
        assert kind in sure or kind is None


def spoken(text: str) -> bool:
    """Whether a row of the sure table, a provider's own sentence, has the kind of a text."""
    squeezed = squeeze(" ".join(read_error(text).texts))
    return any(row.kind is not None and row.find(squeezed) for row in SURE)


def test_words_that_echo_the_request_do_not_count() -> None:
    body = {"detail": [{"loc": ["body", "stream"], "msg": "Field required", "input": {"content": MISSING}}]}
    assert kind_of(api_error("Unprocessable Entity", responseBody=json.dumps(body))) is None
    assert kind_of(api_error("Rate limit", responseHeaders={"x-debug": MISSING})) is None


SAID = "Why does my app say: prompt is too long: 212403 tokens > 200000 maximum?"


@pytest.mark.parametrize(
    "text",
    [
        # vLLM: the report of pydantic, as Python writes it, within a text
        json.dumps({"message": str([{"type": "missing", "loc": ("body", "n"), "msg": "no", "input": {"m": SAID}}])}),
        f"1 validation error:\n  {{'type': 'missing', 'loc': ('body', 'n'), 'msg': 'no', 'input': \"{SAID}\"}}",
        # a body that is too long to be read as JSON
        json.dumps({"detail": [{"type": "missing", "loc": ["body"], "msg": "no", "input": ["x" * 50_000, SAID]}]}),
        f"messages.3.content: Input should be a valid string [type=string_type, input_value={SAID!r}, input_type=str]",
        f"litellm.BadRequestError: Invalid user message={{'role': 'user', 'content': {SAID!r}}} at index 3. Please",
        f"Invalid message={{'role': 'user', 'content': \"it's }} {SAID}\"}}. Please",
        f"Invalid message={{'role': 'user', 'content': 'it\\\\'s \"so\" }} {SAID}'}}",  # escaped once more, and cut
        f"Invalid message={{'role': 'user', 'content': 'cut }} {SAID}",
    ],
)
def test_words_of_the_conversation_within_a_text_do_not_count(text: str) -> None:
    assert kind_of(text) is kind_of(api_error("Bad Request", responseBody=text)) is None


EVENT = {"candidates": [{"content": {"role": "model", "parts": [{"text": f"You are told: {SAID}"}]}, "index": 0}]}
WHY = 'Error message: [{"code":"invalid_union","path":["candidates",0],"message":"Invalid input"}]'


EVENTS = [
    EVENT,
    [EVENT],
    {"type": "response.completed", "response": {"error": None, "instructions": SAID}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
    {"choices": [{"delta": {"content": SAID}}]},
    {"message": {"role": "assistant", "content": SAID}, "done": False},
]


@pytest.mark.parametrize("value", [*map(json.dumps, EVENTS), json.dumps(EVENT)[:-3]])
@pytest.mark.parametrize("says", ["Type validation failed: Value:", "JSON parsing failed: Text:"])
def test_what_the_model_said_in_an_event_that_the_sdk_cant_read_does_not_count(says: str, value: str) -> None:
    assert kind_of(f"AI_TypeValidationError: {says} {value}.\n{WHY}") is None
    assert kind_of(f"{says} {value}") is None
    assert (
        kind_of(f"{says} {value}.\n{WHY} prompt is too long: 212403 tokens > 200000 maximum") is Kind.CONTEXT_OVERFLOW
    )


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "invalid_request_error", "message": SAID}},
        {"text": "[DONE]", "error": {"message": SAID}},
        [{"error": {"code": 400, "message": SAID}}],
        {"error_type": "validation_error", "error_message": SAID},
        {"object": "error", "message": SAID, "type": "BadRequestError"},
        {"detail": SAID},
        {"errors": [{"message": SAID}]},
        {"base_resp": {"status_code": 2013, "status_msg": SAID}, "choices": None},
        {"type": "response.failed", "response": {"error": {"message": SAID}, "instructions": "be short"}},
    ],
)
def test_an_error_in_such_an_event_counts(event: object) -> None:
    value = json.dumps(event)
    assert kind_of(f"Type validation failed: Value: {value}.\n{WHY}") is Kind.CONTEXT_OVERFLOW
    assert kind_of("JSON parsing failed: Text: <html>413 Request Entity Too Large") == kind_of(
        "413 Request Entity Too Large"
    )


def test_what_a_client_calls_too_long_is_no_page_of_a_proxy() -> None:
    """OpenCode 1.18 does so of each 413, and keeps no status."""
    page = "<html><body>Our gateway takes up to 1 MB. Questions of your credentials: call us.</body></html>"
    for message in (f"Payload Too Large: {page}", "Payload Too Large", "Request Entity Too Large", page):
        error = read_error({"name": "ContextOverflowError", "data": {"message": message, "responseBody": page}})
        refused = classify(error)
        assert refused is not None and refused.kind is Kind.CONTEXT_OVERFLOW, message


@pytest.mark.parametrize("words", ["exceeds the limit of 100 requests per minute", "Rate limit: too many tokens."])
def test_what_a_client_calls_too_long_by_words_of_a_rate_limit_is_told_as_that(words: str) -> None:
    for said in (words, f"<html><body>{words}</body></html>"):
        error = read_error({"name": "ContextOverflowError", "data": {"message": said, "responseBody": said}})
        assert classify(error) is None
        assert "a rate limit of the provider" in (other_cause(error) or ""), said


STYLE = f"<style>{'p{margin:0;padding:0} ' * 40}</style>"


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (413, "<html><body>Our gateway takes up to 1 MB.</body></html>"),
        (413, "<html><title>413.1 - Request Entity Too Large</title>Check your credentials and connection.</html>"),
        (413, "<HTML><TITLE>ERROR: The request could not be satisfied</TITLE><H1>413 ERROR</H1></HTML>"),  # CloudFront
        (413, f"<!DOCTYPE html><html><head>{STYLE}<title>413 Request Entity Too Large</title></head></html>"),
        (400, f"<!DOCTYPE html><html><head>{STYLE}<title>413 Request Entity Too Large</title></head></html>"),
    ],
)
def test_a_page_that_says_too_large_counts_wherever_it_says_so(status: int, page: str) -> None:
    refused = classify(RecordedError((page,), status=status, answered=True))
    assert refused is not None and refused.kind is Kind.CONTEXT_OVERFLOW


@pytest.mark.parametrize("status", [None, 200, 403, 404])
@pytest.mark.parametrize(
    "words",
    [
        "<p>Your session was idle too long. Sign in again.</p>",
        '<svg><path d="M0 413 12,7"/></svg><p>Sign in to this network</p>',
        "<style>a{color:#413;top:413.5px}</style><p>Sign in to this network</p>",
        "<p>This site is not for you. Call us: 413-555-0100</p>",
        "<center>Request Header Or Cookie Too Large</center>",
        "<h1>414 Request-URI Too Large</h1>",
    ],
)
def test_a_page_that_says_nothing_of_a_request_too_large_is_one_of_a_proxy(words: str, status: int | None) -> None:
    """A number of a drawing made it a refusal for an unknown reason, and with 403 the key's."""
    error = RecordedError((f"<html><head></head><body>{words}</body></html>",), status=status, answered=True)
    assert classify(error) is None
    assert "something between the client and the provider" in (other_cause(error) or "")


@pytest.mark.parametrize(
    "words",
    [
        "<title>413 Request Entity Too Large</title>",
        "<h1>413</h1><p>Sorry.</p>",
        "<p>HTTP Error 413</p>",
        "<b>413.</b> <ins>That's an error.</ins> <p>Your client issued a request that was too large.</p>",
        "<p>The page was not displayed because the request entity is too large.</p>",
        "<p>Your upload is too big</p>",
    ],
)
def test_a_page_that_says_so_of_a_request_is_none_of_a_proxy(words: str) -> None:
    page = f"<html><head></head><body>{words}</body></html>"
    assert other_cause(RecordedError((page,), status=400, answered=True)) is None


def test_what_stands_behind_an_invalid_message_counts() -> None:
    said = {"role": "user", "content": [{"text": f"it's }} {SAID}", "more": {}}]}
    reason = "messages.3: all messages must have non-empty content"
    for message in (str(said), json.dumps(said)):
        assert kind_of(f"litellm.BadRequestError: Invalid message={message}. {reason}") == Kind.EMPTY_CONTENT


def test_what_stands_behind_the_words_of_a_conversation_counts() -> None:
    report = [
        {"type": "missing", "loc": ("body", "n"), "msg": "Field required", "input": SAID},
        {"type": "value_error", "loc": ("body", "messages", 2), "msg": "all messages must have non-empty content"},
    ]
    assert kind_of(str(report)) == Kind.EMPTY_CONTENT


def said(row: Row) -> list[str]:
    """The sentence of a row, each word of its groups once."""
    texts = {row.words}
    for group in re.findall(r"\{[^{}]*\}", row.words):
        words = group[1:-1].split("/")
        texts = {text.replace(group, word, 1) for text in texts for word in (words if len(texts) < 60 else words[:1])}
    return [text.replace("*", "some words").replace("#", "3") for text in texts]


@pytest.mark.parametrize("kind", [None, *Kind])
def test_every_row_of_the_table_can_be_met(kind: Kind | None) -> None:
    for row in (row for row in (*SURE, *LIKELY) if row.kind == kind):
        for text in said(row):
            assert row.find(squeeze(text)), row.words
            assert len(text.encode()) >= 9, row.words  # of Chinese three letters say as much
        found = {kind_of(text) for text in said(row)}
        assert kind in found and found <= {kind, None}, row.words
        assert row.said_by, row.words


BOMBS = ["messages.1.content.", "\\", "&amp;", "<a ", "[", '{"a":', "\\u0041", "\u200b", "message thinking exceed "]


def quick(text: str) -> bool:
    """Whether one of three runs needs less than 200 ms of the processor, whatever else wants it: what grows with the
    square of a text needs far more for these.
    """
    for _ in range(3):
        start = time.process_time()
        kind_of(api_error(text, responseBody=text))
        if time.process_time() - start < 0.2:
            return True
    return False


@pytest.mark.parametrize("unit", BOMBS)
def test_a_megabyte_is_classified_at_once(unit: str) -> None:
    assert quick(unit * (1_000_000 // len(unit)))


@pytest.mark.parametrize("row", [row for row in [*SURE, *LIKELY] if "*" in row.words], ids=lambda row: row.words)
def test_no_row_with_a_gap_is_slow_on_a_text_made_for_it(row: Row) -> None:
    """The words in front of a gap again and again, and what must follow them far off, so that each is tried in vain."""
    ahead, *behind = (said_words(piece) for piece in row.words.split("*"))
    text = " ".join(behind) + "." * 9 + "y" * 99 + f" {ahead}" * (1_000_000 // (len(ahead) + 1))
    assert quick(text)


def said_words(piece: str) -> str:
    return re.sub(r"\{[^{}]*\}", lambda group: max(group[0][1:-1].split("/"), key=len), piece).replace("#", "3").strip()


def test_a_sentence_at_either_end_of_a_megabyte_is_found() -> None:
    padding = "x" * 1_000_000
    assert kind_of(SIGNATURE + padding) == Kind.THINKING_SIGNATURE_INVALID
    assert kind_of(padding + SIGNATURE) == Kind.THINKING_SIGNATURE_INVALID


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (MISSING, ("toolu_01",)),
        (
            "messages.22: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "toolu_01HqfLWiAKQLsniF2fBGF2KD, toolu_01SJzDkeAZER935cpGFptTNk. Each `tool_use` block",
            ("toolu_01HqfLWiAKQLsniF2fBGF2KD", "toolu_01SJzDkeAZER935cpGFptTNk"),
        ),
        ("... immediately after: bash-uOQIdN0O. Each `tool_use` block", ("bash-uOQIdN0O",)),
        ("... immediately after: read17721777755099. Each", ("read17721777755099",)),
        ("for the following Ids: tooluse_jQ912rboY-gz, tooluse_sX1A7q", ("tooluse_jQ912rboY-gz", "tooluse_sX1A7q")),
        ("No tool output found for function call call_k20FunjGZ.. Please", ("call_k20FunjGZ",)),
        ("function call output with call_id toolu_bdrk_01LUx.", ("toolu_bdrk_01LUx",)),
        ("Tool call id was turn1_0 but must be a-z", ("turn1_0",)),
        ("The toolUse blocks at messages.2.content contain duplicate Ids: http_request2", ("http_request2",)),
        ("tool result's tool id(call_function_g094w5htkglv_1) not found", ("call_function_g094w5htkglv_1",)),
        ("claude-3-5-sonnet-20241022: `tool_use_id` of tool_call_ids, request_id req_011CX8LKNq", ()),
    ],
)
def test_the_ids_that_an_error_names(text: str, ids: tuple[str, ...]) -> None:
    assert named_ids(read_error(api_error(text))) == ids
    assert (
        named_ids(read_error(api_error("Bad Request", responseBody=json.dumps({"error": json.dumps({"m": text})}))))
        == ids
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (MISSING, (1, None)),
        (ORPHAN, (2, 0)),
        (ORDER, (1, 0)),
        ("messages.88.content.1.image.source.base64.data: image dimensions exceed max allowed size", (88, 1)),
        ("The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks", (2, None)),
        ("Expected toolResult blocks at messages.12.content for the following Ids: tooluse_1", (12, None)),
        ("Invalid 'messages[9].tool_calls[0].function.name': string does not match pattern.", (9, None)),
        (SIGNATURE + ". Content before this block is missing, starting at `messages.0.content.0`.", (7, 3)),
        ("Invalid `signature` in `thinking` block. The content is missing, starting at `messages.0.content.0`.", None),
        ("See messages.4 for more. messages: text content blocks must be non-empty", None),
        ("messages.N: `tool_use` ids were found without `tool_result` blocks", None),
        ("Value at 'messages.14.member.content.1.member.toolUse.name' failed to satisfy constraint", None),
        ("messages\n   .5.content.10: Invalid `signature`\n in `thinking` block", (5, 10)),
        ("Rate limit: messages.3.content.1", None),
    ],
)
def test_the_position_is_of_the_sentence_that_classified(text: str, where: tuple[int, int | None] | None) -> None:
    assert position_of(api_error(text)) == where
    assert position_of(api_error("Bad Request", responseBody=json.dumps({"e": json.dumps({"m": text})}))) == where


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("image.source.base64: base64 decoding failed, refer to our documentation", "image"),
        ("Could not process image", "image"),
        ("messages.4.content.1.pdf.source.base64.data: The PDF specified was not valid.", "document"),
        ("The PDF file was not valid. Double press esc to go back and try again with a different file.", "document"),
        ("Unsupported file type: text/markdown", "file"),
        ("Unable to download the file. Please verify the URL.", "file"),
        ("Invalid 'input[0].content[1].file_data'. Expected a base64-encoded data URL, e.g. an image/png", "file"),
        ("Invalid 'input[0].content[1].image_url'. Expected a base64-encoded data URL, got application/pdf", "image"),
        ("too many images and documents: 104 + 1 > 100", ""),
        ("unexpected status 413 Payload Too Large: request too large, url: https://my-profile.example/v1", ""),
    ],
)
def test_what_an_error_speaks_of_is_told_by_its_field_or_its_sentence(text: str, sort: str) -> None:
    refused = classify(read_error(api_error(text)))
    assert refused is not None and refused.sort == sort


@pytest.mark.parametrize("words", ["请求参数非法", "Verboten", "bad_request_body", "fetch failed", "No llama in here."])
def test_the_words_of_an_error_are_told_whatever_its_language_and_length(words: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    assert excerpt(read_error({"name": "APIError", "data": {"message": words, "responseBody": body}})) == words


def test_a_sentence_is_told_before_a_word_and_a_word_before_a_code() -> None:
    sentence = "The llama is not amused."
    assert excerpt(read_error({"code": "invalid_value", "message": "非法"})) == "非法"
    assert excerpt(read_error({"code": "Bad Request", "message": sentence})) == sentence


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("failed to parse request", Kind.CONTEXT_OVERFLOW),
        ("Body exceeded 10mb limit", Kind.CONTEXT_OVERFLOW),
        ("Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000", None),
        ("Invalid tools[0].function.name", None),
    ],
)
def test_a_request_of_too_many_bytes_is_known_by_its_status_whatever_the_words(text: str, kind: Kind | None) -> None:
    assert kind_of(api_error(text, statusCode=413)) == kind
    assert kind_of(api_error(text, statusCode=400)) is None


@pytest.mark.parametrize(
    "text",
    [
        "Exceeded limit on max bytes to request body : 6291456",
        "total message size 2100954 exceeds limit 2097152",
        "Maximum request body size 1048576 exceeded, actual body size 1056562",
        "Failed to read request body: length limit exceeded",
        "Failed to buffer the request body: length limit exceeded",
        "request body exceeds limit of 8388608 bytes; please reduce conversation context",
        "Request body is too large",
    ],
)
def test_a_request_of_too_many_bytes_is_known_by_its_words_whatever_the_status(text: str) -> None:
    assert {kind_of(api_error(text, statusCode=status)) for status in (400, 413)} == {Kind.CONTEXT_OVERFLOW}
    assert size_of(read_error(api_error(text, statusCode=400))).by_bytes


@pytest.mark.parametrize(
    "text",
    [
        "the request exceeds the maximum number of requests",
        "tool result size 2100954 exceeds limit 2097152",
        "your request body has a payload that is not valid, which exceeds what we understand",
    ],
)
def test_what_else_exceeds_a_limit_is_no_request_of_too_many_bytes(text: str) -> None:
    assert kind_of(api_error(text, statusCode=400)) is None
    assert not size_of(read_error(api_error(text, statusCode=400))).by_bytes


@pytest.mark.parametrize("mime", ["application/octet-stream", "application/zip", "text/markdown"])
def test_what_the_sdk_of_opencode_1_1_and_1_2_can_not_send_is_no_refusal_of_a_provider(mime: str) -> None:
    words = f"'media type: {mime}' functionality not supported."
    assert kind_of({"name": "UnknownError", "data": {"message": f"AI_UnsupportedFunctionalityError: {words}"}}) is None
    assert kind_of({"name": "UnknownError", "data": {"message": words}}) is Kind.MEDIA_REJECTED  # 1.18, of a prompt's
