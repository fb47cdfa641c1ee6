"""What the dialects of chat completions refuse: each message by itself, and turns in a row."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from recoveryd.core import Block, Claims, Failure, RecordedError, Request, Turn, texts_of
from recoveryd.providers import classify, provider_of, size_of
from recoveryd.providers.chat import rules
from recoveryd.providers.chat.provider import (
    ALTERNATING,
    BUT_CALLS,
    GLM_ELSEWHERE,
    GPT,
    KIMI,
    KIMI_BY_OPENROUTER,
    KIMI_ELSEWHERE,
    MISTRAL,
    QWEN,
    Chat,
)
from tests.e2e.media import png

CALL: dict[str, Any] = {"type": "tool_use", "id": "aB3dE6gH9", "name": "bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "aB3dE6gH9", "content": "done"}
WORDS = {"type": "text", "text": "words"}
U, A = ("user", WORDS), ("assistant", WORDS)
C, R = ("assistant", CALL), ("user", RESULT)
TOO_LONG = (
    "Invalid 'messages[1].tool_calls[0].{}': string too long. Expected a string with maximum length {}, but got a "
    "string with length 141 instead."
)


def found(dialect: Chat, *turns: Any, said: str = "") -> list[tuple[str, int]]:
    """Kind and place of what is refused, once these words were `said`; a turn is its role and its blocks."""
    made = [
        Turn(role, tuple(Block(body, "msg", f"prt{at}.{n}") for n, body in enumerate(blocks)), (("msg", ""),))
        for at, (role, *blocks) in enumerate(turns)
    ]
    sent, refused = Request(tuple(made)), classify(RecordedError(texts_of({"message": said}))) if said else None
    assert refused is not None or not said
    claims = dialect.claims(refused, sent, None) if refused else Claims()
    return [(v.kind.value, v.turn) for v in rules.check(sent, claims, dialect.dialect)]


@pytest.mark.parametrize(
    ("turns", "but_calls", "all_turns"),
    [
        ([U, A, U], [], []),
        ([U, C, R, A, U], [], []),
        ([U, C, R, C, R, A, U], [], []),
        ([U, U], [1], [1]),
        ([U, C, R, U], [3], [3]),
        ([U, A, A, U], [2], [2]),
        ([U, A, C, R, A, U], [2], [2]),
        ([U, A, C, R, U], [], [2, 4]),
        ([A, U], [0], [0]),
        ([C, R, A, U], [2], [0]),
    ],
)
def test_roles_take_turns(turns: list[Any], but_calls: list[int], all_turns: list[int]) -> None:
    for dialect, places in ((BUT_CALLS, but_calls), (ALTERNATING, all_turns)):
        assert found(dialect, *turns) == [("role_order", place) for place in places]
    assert found(KIMI, *turns) == []


def test_where_results_count_two_of_one_step_stand_in_a_row() -> None:
    two = [U, ("assistant", CALL, {**CALL, "id": "other"}), ("user", RESULT, {**RESULT, "tool_use_id": "other"}), A, U]
    assert found(ALTERNATING, *two) == [("role_order", 1)]
    assert found(BUT_CALLS, *two) == []


def test_who_takes_an_empty_message() -> None:
    nothing, blank, asked = ("assistant",), ("assistant", {"type": "text", "text": " "}), ("user",)
    assert found(KIMI, U, nothing, asked, blank, U) == [
        ("empty_content", 1),
        ("empty_content", 2),
        ("empty_content", 3),
    ]
    assert found(MISTRAL, U, nothing, asked, blank, U) == [("empty_content", 1)]
    assert found(GPT, U, nothing, asked, blank, U) == []


def test_servers_of_others_take_an_empty_message_until_their_error_says_otherwise() -> None:
    """Ollama, LM Studio and vLLM serve these models by rules of their own."""
    sent = [U, ("assistant",), ("user",), ("assistant", {"type": "text", "text": " "}), U]
    other = "Invalid request: the image_url does not represent a valid image."
    kimi = "Invalid request: the message at position 1 with role 'assistant' must not be empty"
    qwen, glm = "The content field is a required field.", "The messages parameter is illegal."
    said = {QWEN: (qwen, [1]), KIMI_ELSEWHERE: (kimi, [1, 2, 3]), KIMI_BY_OPENROUTER: (kimi, [1, 2, 3])}
    for dialect, (words, places) in {**said, GLM_ELSEWHERE: (glm, [1, 2, 3])}.items():
        assert found(dialect, *sent) == found(dialect, *sent, said=other) == []
        assert found(dialect, *sent, said=words) == [("empty_content", place) for place in places]


@pytest.mark.parametrize(
    ("url", "provider", "dialect"),
    [
        ("https://api.moonshot.cn/v1", "mine", KIMI),
        ("", "moonshotai", KIMI),
        ("http://127.0.0.1:11434/v1", "moonshotai", KIMI_ELSEWHERE),
        ("", "ollama", KIMI_ELSEWHERE),
    ],
)
def test_whose_kimi_it_is_is_told_by_the_address_or_else_by_the_name(url: str, provider: str, dialect: Chat) -> None:
    error = RecordedError(url=url and f"{url}/chat/completions")
    asked = Failure("s", "ses", "msg", 0, error, provider, "kimi-k2-thinking", "openai.chat")
    assert provider_of(asked) is dialect


def test_two_calls_of_a_message_need_ids_of_their_own_at_mistral() -> None:
    twice = [U, ("assistant", CALL, CALL), ("user", RESULT), A, U]
    assert found(MISTRAL, *twice) == [("tool_call_invalid", 1)]
    assert found(MISTRAL, U, C, R, C, R, A, U) == []
    assert found(QWEN, *twice) == []


def test_how_long_ids_and_names_may_be() -> None:
    def call(**fields: str) -> list[Any]:
        result = {**RESULT, "tool_use_id": fields.get("id", CALL["id"])}
        return [U, ("assistant", {**CALL, **fields}), ("user", result), A, U]

    refused = [("tool_call_invalid", 1)]
    assert found(GPT, *call(id="i" * 41), said=TOO_LONG.format("id", 40)) == refused
    assert found(GPT, *call(id="i" * 40), said=TOO_LONG.format("id", 40)) == found(QWEN, *call(id="i" * 41)) == []
    assert found(MISTRAL, *call(name="n" * 256)) == []
    assert found(MISTRAL, *call(name="n" * 257)) == refused
    assert found(GPT, *call(name="n" * 65), said=TOO_LONG.format("function.name", 64)) == refused
    assert found(GPT, *call(name="n" * 129)) == refused


@pytest.mark.parametrize(("field", "most"), [("id", 40), ("function.name", 64)])
def test_what_is_too_long_for_some_gateways_to_models_of_openai_their_error_tells(field: str, most: int) -> None:
    """Others ask the Responses API, which takes ids of 64 and names of 128 characters."""

    def call(more: int, said: str = "") -> list[tuple[str, int]]:
        long = {**CALL, field.rpartition(".")[2]: "x" * (most + more)}
        result = {**RESULT, "tool_use_id": long["id"]}
        return found(GPT, U, ("assistant", long), ("user", result), A, U, said=said)

    refused, cut = [("tool_call_invalid", 1)], f"Invalid 'messages[1].tool_calls[0].{field}': string too long."
    assert call(1) == call(1, "Invalid 'messages[9].tool_calls[0].function.arguments': not a JSON object.") == []
    for words in (
        "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "empty string. Expected a string with minimum length 1, but got an empty string instead.",
    ):
        assert call(1, f"Invalid 'messages[9].tool_calls[0].function.name': {words}") == []
    assert call(1, "Missing required parameter: 'messages[9].tool_calls[0].id'.") == []
    assert call(1, TOO_LONG.format(field, most)) == call(1, cut) == refused
    pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'."
    assert call(1, cut.replace("string too long.", f"string does not match pattern. {pattern}")) == refused
    assert call(0, TOO_LONG.format(field, most)) == call(1, TOO_LONG.format(field, most + 1)) == []


def test_an_id_may_be_of_any_characters_as_kimi_has_them() -> None:
    """ "functions.bash:0" is Kimi's own: where it is rewritten, the model's next calls break."""
    calls = [{**CALL, "id": "functions.bash:0"}, {**CALL, "id": "functions.bash:1"}]
    results = [{**RESULT, "tool_use_id": call["id"]} for call in calls]
    for dialect in (KIMI, GPT, QWEN):
        assert found(dialect, U, ("assistant", *calls), ("user", *results), A, U) == []
        assert found(dialect, U, ("assistant", {**CALL, "id": ""}), ("user", {**RESULT, "tool_use_id": ""}), A, U) == [
            ("tool_call_invalid", 1)
        ]


PNG = png(4, 4)


def image(data: bytes, declared: str = "image/png") -> dict[str, Any]:
    coded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": declared, "data": coded}}


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("The image length and width do not meet the model restrictions. [height:8 or width:2000]", set()),
        ("Image count 5 exceeds limit 4 per request.", set()),
        ("Invalid request: image size is too large", {"0.3"}),
        ("image exceeds 6 MB maximum: 8388608 bytes > 6291456 bytes", {"0.3"}),
        ("image exceeds 4 MB maximum: 6388608 bytes > 4194304 bytes", {"0.2", "0.3"}),
        ("image dimensions exceed max allowed size: 2000 pixels", set()),
        ("Image 0 failed: Image exceeds the maximum allowed total pixels. Maximum allowed: 36000000 pixels.", set()),
        ("Invalid request: image size is too large, at most 6 MB", {"0.3"}),
        ("<400> InternalError.Algo.InvalidParameter: Exceeded limit on max bytes per data-uri item : 8000000", {"0.3"}),
        ("Exceeded limit on max bytes per data-uri item : 10485760", set()),
        ("The image data does not represent a valid image", {"0.4"}),
        ("cannot identify image file", {"0.4"}),
        ("<400> InternalError.Algo.InvalidParameter: Multimodal file size is too large", {"0.3"}),
        ("<400> InternalError.Algo.InvalidParameter: The image format is illegal and cannot be opened", {"0.4"}),
        ("Image, 'data:image/png;base64,PCFET0NU...', could not be loaded as a valid image.", {"0.4"}),
    ],
)
def test_of_an_image_no_more_goes_than_the_error_tells(words: str, gone: set[str]) -> None:
    """Each maker takes other images: that Anthropic would refuse one says nothing."""
    heavy = [image(PNG + bytes(n * 2**20 * 3 // 4)) for n in (5, 8)]
    images = [image(PNG), image(b"\xff\xd8\xff\xe0" + bytes(60)), *heavy, image(b"no image")]
    blocks = tuple(Block(body, "msg", f"0.{at}") for at, body in enumerate(images))
    sent = Request((Turn("user", blocks, (("msg", ""),)),))
    assert meant(words, sent) == gone


SEEN = Turn("assistant", (Block({"type": "text", "text": "seen"}, "a", "a"),), (("a", ""),))
JPEG = b"\xff\xd8\xff\xc0\0\x11\x08\0\x40\0\x40" + bytes(40)


@pytest.mark.parametrize(
    "odd",
    [image(JPEG), image(png(40, 9000)), image(b"BM" + bytes(40), "image/bmp"), image(bytes(40), "image/heic")],
    ids=["of another type than is said", "tall", "BMP", "HEIC"],
)
def test_an_odd_image_that_the_model_has_answered_is_not_the_new_one_that_is_none(odd: dict[str, Any]) -> None:
    """The new one is damaged further in than is looked: only that no answer stands behind it tells that it is meant."""
    words = "The image format is illegal and cannot be opened"
    old = Turn("user", (Block(odd, "m", "old"),), (("m", ""),))
    new = Turn("user", (Block(image(PNG[:-8]), "n", "new"),), (("n", ""),))
    sent = Request((old, SEEN, new))
    assert meant(words, sent) == {"new"}
    wide = odd == image(png(40, 9000))  # as wide as it is, no maker has called one none
    assert meant(words, replace(sent, by_others=frozenset({"a"}))) == (set() if wide else {"old"})
    assert meant(words, replace(sent, turns=(new, SEEN, old))) == {"old"}
    page = Turn("user", (Block(image(b"<html>"), "m", "page"),), (("m", ""),))
    assert meant(words, replace(sent, turns=(page, SEEN, new))) == {"page"}, "it was in words before, if it was sent"


@pytest.mark.parametrize(
    "words",
    [
        "Image data:image/png;base64,iVBORw0KGgo has an invalid format.Allowed formats are JPEG,PNG,WEBP,GIF.",
        "Invalid request: prepare image failed error, message: failed to decode image: invalid or unsupported format",
        "base64 string of provided image cannot be decoded",
        "Failed to load image or audio file",
        "failed to process inputs: image: unknown format",
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png'].",
        "cannot identify image file",
        "图片输入格式/解析错误",
    ],
)
def test_the_only_image_or_the_only_new_one_is_the_one_that_is_called_unreadable(words: str) -> None:
    one, two = pictured(1), pictured(1, 1)
    first, second = two.turns
    assert meant(words, one) == meant(words, replace(one, turns=(*one.turns, SEEN))) == {"0.0"}
    assert meant(words, Request((first, SEEN, second))) == {"1.0"}
    assert meant(words, two) == meant(words, Request((*two.turns, SEEN))) == set(), "which of both, nothing tells"
    switched = Request((first, SEEN, second), by_others=frozenset({"a"}))
    assert meant(words, switched) == set(), "another model has answered the first"


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported image input: this model takes text only.",
        "The image type image/png is not supported by this model.",
        "Image format not supported for model deepseek-chat.",
        "Cannot process image: the endpoint is text-only",
        "Failed to process image: vision is not enabled",
        "Invalid image: multimodal input is off",
        "Unable to process image, please try again later.",
        "Unable to process image: internal error",
        "Failed to process image: encoder overloaded",
        "Unable to process image: 503 Service Unavailable",
        "Failed to process image. Please retry in a few seconds.",
        "Unsupported image type for some models.",
        "Could not process image: the vision worker is still loading",
        "Unable to process image at this moment",
        "Invalid image: this feature is not enabled for your account",
        "Invalid MIME type. Only image types are supported.",  # so it is no image
        "Invalid value: file. Supported values are: 'text','image_url','video_url' and 'video'.",
        "The audio file could not be decoded or its format is not supported.",
        "Unsupported MIME type: image/heic",  # which the one that is sent is not
    ],
)
def test_a_sound_image_is_not_what_an_error_of_the_model_or_of_another_file_means(words: str) -> None:
    assert meant(words, pictured(1)) == set()


def test_a_place_that_servers_count_in_their_own_way_tells_the_only_image_alone() -> None:
    words = "messages[2].image[0]: You have uploaded an unsupported image. Please make sure your image is valid."
    first, second = pictured(1, 1).turns
    assert meant(words, pictured(1)) == {"0.0"}
    assert meant(words, Request((first, SEEN, second))) == set()


def meant(words: str, sent: Request) -> set[str]:
    refused = classify(RecordedError(texts_of({"message": words})))
    assert refused is not None
    return {part for part, _ in QWEN.claims(refused, sent, None).media}


def pictured(*messages: int) -> Request:
    """A prompt each with so many images, each of them another one."""
    turns = []
    for at, many in enumerate(messages):
        blocks = (Block(image(png(4 + at, 4 + n)), f"msg{at}", f"{at}.{n}") for n in range(many))
        turns.append(Turn("user", tuple(blocks), ((f"msg{at}", ""),)))
    return Request(tuple(turns))


@pytest.mark.parametrize(
    ("words", "messages", "gone"),
    [
        ("Too many images provided. This model supports up to 3 images", (2, 1, 2), {"0.0", "0.1"}),
        ("At most 3 image(s) may be provided in one prompt.", (1, 1, 1, 1), {"0.0"}),
        ("At most 3 image(s) may be provided in one prompt.", (4, 1), set()),  # maybe in one message
        ("Too many images in the request.", (1, 1, 1, 1), set()),  # by how many?
        ("Exceeded limit on max data-uri per request: 3", (2, 1, 2), {"0.0", "0.1"}),
        ("Exceeded limit on max data-uri per request: 3", (4, 1), set()),
    ],
)
def test_of_too_many_images_the_oldest_go_where_the_number_is_one_of_the_request(
    words: str, messages: tuple[int, ...], gone: set[str]
) -> None:
    sent, refused = pictured(*messages), classify(RecordedError(texts_of({"message": words})))
    assert meant(words, sent) == gone and refused is not None
    told = {v.reason for v in QWEN.check(sent, QWEN.claims(refused, sent, None))}
    assert told <= {"there were more than the provider takes"}


@pytest.mark.parametrize(
    "words", ["image is too large", "The image length and width do not meet the model restrictions.", "image too wide"]
)
def test_the_only_image_is_the_one_that_is_too_large(words: str) -> None:
    assert meant(words, pictured(1)) == {"0.0"}
    assert meant(words, pictured(1, 1)) == set(), "which one nothing tells, and none is heavy"


def test_an_image_that_an_answer_stands_behind_is_not_the_one_that_is_too_large() -> None:
    first, second = pictured(1, 1).turns
    sent = Request((first, SEEN, second))
    assert meant("image is too large", sent) == {"1.0"}


def test_the_lightest_image_is_not_the_one_that_is_too_large() -> None:
    """Though no answer stands behind it alone: which model answered the heavier one is not always told."""
    heavy = Turn("user", (Block(image(png(4, 4) + bytes(2_000_000)), "m", "heavy"),), (("m", ""),))
    sent = Request((heavy, SEEN, pictured(1).turns[0]))
    assert meant("The image is too large.", sent) == set()
    assert meant("Referenced files bytes are too large", replace(sent, models_told=True)) == set()


def test_a_light_image_is_the_one_that_is_too_large_where_the_model_has_answered_the_heavier() -> None:
    """It may have many pixels: a plain, tall screenshot."""
    heavy = Turn("user", (Block(image(png(4, 4) + bytes(2_000_000)), "m", "heavy"),), (("m", ""),))
    sent = Request((heavy, SEEN, pictured(1).turns[0]), models_told=True)
    assert meant("The image is too large.", sent) == {"0.0"}
    assert meant("The image is too large.", replace(sent, by_others=frozenset({"a"}))) == set()
    assert meant("The image is too large: at most 1048576 bytes are taken.", sent) == {"heavy"}


def test_what_another_model_answered_tells_nothing() -> None:
    first, second = pictured(1, 1).turns
    sent = Request((first, SEEN, second))
    assert meant("The image length and width do not meet the model restrictions.", sent) == {"1.0"}
    sent = replace(sent, by_others=frozenset({"a"}))
    assert meant("The image length and width do not meet the model restrictions.", sent) == set()


@pytest.mark.parametrize("words", ["Image exceeds the maximum size of 5242880 bytes", "The image is too large."])
def test_a_heavy_image_that_another_model_answered_is_the_one_that_is_too_large(words: str) -> None:
    """Where the model was changed, what stands behind an answer need not be taken by the one that is asked."""
    heavy = Turn("user", (Block(image(png(4, 4) + bytes(6_000_000)), "m", "heavy"),), (("m", ""),))
    assert meant(words, Request((heavy, SEEN, pictured(1).turns[0]))) == {"heavy"}


@pytest.mark.parametrize("images", [1, 3])
def test_no_image_is_at_fault_where_the_whole_request_has_too_many_bytes(images: int) -> None:
    """Which of them goes is a question of how long the request is (`size_of`)."""
    words = "Request body size exceeds maximum allowed size: 1048576 bytes"
    assert meant(words, pictured(images)) == set()
    size = size_of(RecordedError(texts_of({"message": words})))
    assert size.by_bytes
    assert size.most_bytes == 1048576


def test_long_names_of_tools_are_cut_for_whom_they_are_too_long() -> None:
    named = {**CALL, "name": "azure-devops-mcp-server_repo_list_pull_requests_by_repository_or_project"}
    turns = [U, ("assistant", named), R, A, U]
    assert found(QWEN, *turns) == found(KIMI, *turns) == []
    assert found(GPT, *turns, said=TOO_LONG.format("function.name", 64)) == [("tool_call_invalid", 1)]
