"""What servers of chat completions refuse, each in its own words: from public documentation, threads and templates."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.families.reading import Block, Message

_IMAGE = "Invalid request: the image_url does not represent a valid image."
_ILLEGAL = "The messages parameter is illegal. Please check the documentation."
_ALL_ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
_ALTERNATE = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)
_HALF = re.compile("[\ud800-\udfff]")  # of a character
_MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
_PASSED_BACK = "The `reasoning_content` in the thinking mode must be passed back to the API."
_EMPTY = "Invalid request: the message at position {at} with role '{role}' must not be empty"


def _compatible(
    messages: list[Message], *, empty: str = "", roles: Sequence[str] = ("user", "assistant"), blank: bool = True
) -> str | None:
    """What a server of chat completions refuses; `empty`: its words for a message of nothing, "" where it takes one.

    `roles`: whose messages may not be empty; `blank`: nor of white space alone.
    """
    for at, message in enumerate(messages):
        content = message["content"]
        calls = [block for block in content if block["type"] == "tool_use"]
        words = [block for block in content if not blank or block["type"] != "text" or block["text"].strip()]
        if empty and message["role"] in roles and not words:
            return empty.format(at=at, role=message["role"])
        for number, call in enumerate(calls):
            if re.fullmatch(r"[a-zA-Z0-9_-]{65,}", call["name"]):
                return (
                    f"Invalid 'messages[{at}].tool_calls[{number}].function.name': string too long. Expected a string "
                    f"with maximum length 64, but got a string with length {len(call['name'])} instead."
                )
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["name"]):
                return (
                    f"Invalid 'messages[{at}].tool_calls[{number}].function.name': string does not match pattern. "
                    "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
                )
            if not isinstance(call.get("input"), dict) or not call["id"]:
                return f"Invalid 'messages[{at}].tool_calls[{number}].function.arguments': not a JSON object."
        following = messages[at + 1]["content"] if at + 1 < len(messages) else []
        given = {block["tool_use_id"] for block in following if block["type"] == "tool_result"}
        if {call["id"] for call in calls} - given:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. (insufficient tool messages following tool_calls message)"
            )
        if any(_half(block) for block in content):
            return "unexpected end of hex escape at line 1 column 4711"
        if any(_no_picture(block) for block in content):
            return _IMAGE
    return None


def _half(block: Block) -> bool:
    """Whether a text or a result holds half a character; in the arguments of a call it is escaped once more."""
    words = str(block.get("text", "")) + str(block.get("content", ""))
    return _HALF.search(words) is not None


def _no_picture(block: Block) -> bool:
    source = block.get("source") or {}
    data = base64.b64decode(source.get("data", "")[:64]) if block["type"] == "image" else b""
    return bool(data) and not data.startswith((b"\x89PNG", b"\xff\xd8", b"GIF8", b"RIFF"))


def _mistral(messages: list[Message]) -> str | None:
    """As Mistral's public validator has it (mistral-common), in its words; an empty text counts as no content."""
    before = ""
    for at, message in enumerate(messages):
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        role = "tool" if results else message["role"]
        if before == "tool" and role not in ("assistant", "tool"):
            return f"Unexpected role '{role}' after role 'tool'"
        before = role
        if role == "assistant" and not message["content"]:
            return "Assistant message must have either content or tool_calls, but not none."
        found = next(_calls_of_mistral(calls, messages[at + 1]["content"] if at + 1 < len(messages) else []), None)
        if found is not None:
            return found
        if any(_half(block) for block in message["content"]):
            return "invalid unicode code point at line 1 column 4711"
        if any(_no_picture(block) for block in message["content"]):
            return "Image data:image/png;base64,aGVsbG8 has an invalid format.Allowed formats are JPEG,PNG,WEBP,GIF."
    return None


def _calls_of_mistral(calls: list[Block], following: list[Block]) -> Iterator[str]:
    for call in calls:
        if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
            yield f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,256}", call["name"]):
            yield (
                f"Function name was {call['name']} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with "
                "a maximum length of 256."
            )
        if not isinstance(call.get("input"), dict):
            yield "Invalid 'messages.tool_calls[0].function.arguments': not a JSON object."
    if len({call["id"] for call in calls}) < len(calls):
        yield "Duplicate tool call id in assistant message"
    if calls and len([block for block in following if block["type"] == "tool_result"]) != len(calls):
        yield "Not the same number of function calls and responses"


def _template(messages: list[Message], *, all_count: bool) -> str | None:
    """What a chat template raises whose roles must alternate; `all_count`: also calls, each result as the user's."""
    roles = [role for message in messages for role in _counted(message, all_count=all_count)]
    if any((role == "user") != (index % 2 == 0) for index, role in enumerate(roles)):
        return _ALL_ALTERNATE if all_count else _ALTERNATE
    blocks = [block for message in messages for block in message["content"]]
    if any(map(_half, blocks)):
        return (
            "[json.exception.parse_error.101] parse error at line 1, column 8: syntax error while parsing value - "
            "invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"
        )
    return "Failed to load image or audio file" if any(map(_no_picture, blocks)) else None


def _counted(message: Message, *, all_count: bool) -> list[str]:
    """The roles that a template sees of a message."""
    results = sum(block["type"] == "tool_result" for block in message["content"])
    called = any(block["type"] == "tool_use" for block in message["content"])
    if not results and not called:
        return [message["role"]]
    return (["user"] * results or ["assistant"]) if all_count else []


def _thinking(messages: list[Message], *, missing: str, empty: str = "") -> str | None:
    """A model that thinks: also each call needs the reasoning that led to it."""
    for at, message in enumerate(messages):
        kinds = {block["type"] for block in message["content"]}
        if message["role"] == "assistant" and "tool_use" in kinds and "thinking" not in kinds:
            return missing.format(at=at)
    return _compatible(
        [{**one, "content": [block for block in one["content"] if block["type"] != "thinking"]} for one in messages],
        empty=empty,
    )


def _gpt(messages: list[Message]) -> str | None:
    for at, message in enumerate(messages):
        for number, call in enumerate(block for block in message["content"] if block["type"] == "tool_use"):
            if len(call["id"]) > 40:
                return (
                    f"Invalid 'messages[{at}].tool_calls[{number}].id': string too long. Expected a string with "
                    f"maximum length 40, but instead got a string with length {len(call['id'])} instead."
                )
    return _compatible(messages)


_KIMI = partial(_thinking, missing=_MISSING, empty=_EMPTY)
# Of what was read with its reasoning, which the product's wire for them does not show.
REASONED: dict[str, Callable[[list[Message]], str | None]] = {
    "kimi-custom": _KIMI,
    "deepseek-reasoner": partial(_thinking, missing=_PASSED_BACK),
}
REFUSALS: dict[str, Callable[[list[Message]], str | None]] = {
    "kimi": partial(_compatible, empty=_EMPTY),
    "openrouter-kimi": _KIMI,
    "openrouter-kimi-default": _KIMI,
    "glm": partial(_compatible, empty=_ILLEGAL),
    "deepseek": _compatible,
    # That an answer without content is refused is inferred from QwenLM/qwen-code#5265.
    "qwen": partial(_compatible, empty="The content field is a required field.", roles=("assistant",), blank=False),
    "gpt": _gpt,
    "mistral": _mistral,
    "xai": partial(
        _compatible,
        empty="Invalid request content: Each message must have at least one content element.",
        blank=False,
    ),
    "ministral": partial(_template, all_count=False),
    "gemma": partial(_template, all_count=True),
}
