"""What the fake Responses API refuses of an input, in the words of the real one.

Written from the API's public reference and the texts of public threads, apart from the product's own rules: two
checkers with one implementation would share their mistakes. The order is the API's: the form of each item, then what
the items are to each other, then what is encrypted, then the images.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.e2e.codex.sealed import OWN, verdict

Item = dict[str, Any]

CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}
OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
TYPES = {
    *CALLS,
    *OUTPUTS,
    "message",
    "reasoning",
    "web_search_call",
    "image_generation_call",
    "compaction",
    "context_compaction",
    "item_reference",
    "mcp_call",
    "mcp_list_tools",
    "file_search_call",
    "code_interpreter_call",
    "additional_tools",
    "configuration_update",
}
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
PREFIXES |= {"web_search_call": "ws", "local_shell_call": "lsh", "compaction": "cmp"}
_SAID = {"user": ("input_text", "input_image", "input_file"), "assistant": ("output_text", "refusal")}
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_KINDS = "['image/jpeg', 'image/png', 'image/gif', 'image/webp']"
_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_PICTURES |= {b"RIFF": "image/webp"}
LONGEST_ID, LONGEST_ARGUMENTS, LONGEST_TEXT = 64, 1_048_576, 10_485_760


@dataclass(frozen=True)
class Fault:
    """A refusal: the words of the message, what `param` and `code` say, and the HTTP status."""

    message: str
    param: str | None = None
    code: str | None = "invalid_value"
    status: int = 400

    def body(self) -> Item:
        """As the API answers it."""
        error = {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": self.code}
        return {"error": error}


@dataclass
class Strict:
    """One organisation's door to the API. `refuses`: an image whose bytes hold this is refused, whatever it is.

    `largest`: bytes of a request; `most`: images of one.
    """

    organization: str = OWN
    refuses: bytes = b"refuse this one"
    largest: int = 64 * 1024 * 1024
    most: int = 500
    largest_images: int = 50 * 1024 * 1024
    names_pictures: bool = False  # says where the image stands that it refuses

    def judge(self, body: Item, size: int) -> Fault | None:
        """The first rule that a request of so many bytes breaks; None: it is accepted."""
        if size > self.largest:
            return Fault("request too large", None, "request_too_large", 413)
        items: list[Item] = body.get("input") or []
        return next(self._faults(items, stored=bool(body.get("store"))), None)

    def _faults(self, items: list[Item], *, stored: bool) -> Iterator[Fault]:
        for number, item in enumerate(items):
            yield from _form(item, f"input[{number}]", stored)
        yield from _order(items)
        for item in items:
            yield from self._encrypted(item)
        yield from self._images(items)

    def _encrypted(self, item: Item) -> Iterator[Fault]:
        sealed = item.get("encrypted_content") or ""
        if item["type"] not in ("reasoning", "compaction", "context_compaction"):
            return
        reason = verdict(sealed, self.organization)
        if reason is not None:
            named = item["type"] != "reasoning" and item.get("id")
            which = f"for item {named}" if named else f"{sealed[:4]}...{sealed[-4:]}"
            words = f"The encrypted content {which} could not be verified. Reason: {reason}"
            yield Fault(words, None, "invalid_encrypted_content")

    def _images(self, items: list[Item]) -> Iterator[Fault]:
        urls = [url for _, url in pictures(items)]
        if len(urls) > self.most:
            many = f"Request contains {len(urls)} images, exceeding the maximum of {self.most} allowed per request"
            yield Fault(many, "input")
        total = sum(map(len, urls))
        if total > self.largest_images:
            words = (
                f"Total image size is {total} bytes, which exceeds the allowed limit of {self.largest_images} bytes."
            )
            yield Fault(words, "input", "invalid_value")
        for where, url in pictures(items):
            data = base64.b64decode(url.partition(",")[2])
            if self.refuses in data and self.names_pictures:
                say = (
                    "Expected a base64-encoded data URL with an image MIME type, but got unsupported MIME type 'image'."
                )
                yield Fault(f"Invalid '{where}'. {say}", where)
            elif self.refuses in data or _picture(data) is None:
                words = "The image data you provided does not represent a valid image. Please check your input and try "
                words += f"again with one of the supported image formats: {_KINDS}."
                yield Fault(words, where)


def pictures(items: list[Item]) -> Iterator[tuple[str, str]]:
    """Each image of an input as a data URL, with the path of it."""
    for number, item in enumerate(items):
        field = "output" if item["type"] in OUTPUTS else "content"
        parts = item.get(field)
        for place, part in enumerate(parts if isinstance(parts, list) else ()):
            if part.get("type") == "input_image" and str(part.get("image_url", "")).startswith("data:"):
                yield f"input[{number}].{field}[{place}].image_url", part["image_url"]


def _form(item: Item, at: str, stored: bool) -> Iterator[Fault]:
    kind = item.get("type")
    if kind not in TYPES:
        known = ", ".join(f"'{name}'" for name in sorted(TYPES))
        yield Fault(f"Invalid value: '{kind}'. Supported values are: {known}.", f"{at}.type")
        return
    yield from _id(item, at, kind)
    if kind == "message":
        yield from _message(item, at)
    elif kind == "reasoning":
        yield from _reasoning(item, at, stored)
    elif kind in ("compaction", "context_compaction"):
        if not item.get("encrypted_content"):
            yield _missing(f"{at}.encrypted_content")
    elif kind == "web_search_call":
        yield from _search(item, at)
    elif kind in CALLS or kind in OUTPUTS:
        yield from _call(item, at)
    elif kind == "additional_tools" and not isinstance(item.get("tools"), list):
        yield _missing(f"{at}.tools")


def _id(item: Item, at: str, kind: str) -> Iterator[Fault]:
    own = item.get("id")
    if own is None:
        return
    if len(own) > LONGEST_ID:
        yield _long(f"{at}.id", LONGEST_ID, len(own))
    prefix = PREFIXES.get(kind)
    if prefix is not None and not own.startswith(prefix):
        words = f"Invalid '{at}.id': '{own}'. Expected an ID that begins with '{prefix}'."
        yield Fault(words, f"{at}.id")


def _message(item: Item, at: str) -> Iterator[Fault]:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        words = f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        yield Fault(words, f"{at}.role")
        return
    allowed = _SAID.get(role, ("input_text", "input_image", "input_file"))
    yield from _parts(item.get("content") or [], f"{at}.content", allowed)


def _parts(parts: Any, at: str, allowed: tuple[str, ...]) -> Iterator[Fault]:
    for place, part in enumerate(parts if isinstance(parts, list) else ()):
        kind = part.get("type")
        if kind not in allowed:
            names = [f"'{name}'" for name in allowed]
            listed = f"{', '.join(names[:-1])}{',' if len(names) > 2 else ''} and {names[-1]}"
            yield Fault(f"Invalid value: '{kind}'. Supported values are: {listed}.", f"{at}[{place}]")
        elif kind == "input_image":
            yield from _image(part, f"{at}[{place}]")
        elif len(part.get("text") or "") > LONGEST_TEXT:
            yield _long(f"{at}[{place}].text", LONGEST_TEXT, len(part["text"]))


def _image(part: Item, at: str) -> Iterator[Fault]:
    url = part.get("image_url")
    if url is None:
        if part.get("file_id") is None:
            yield _missing(f"{at}.image_url")
        return
    say = f"Invalid '{at}.image_url'. "
    data = (
        "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
    )
    if not url.startswith("data:"):
        if not re.match(r"https?://\S+", url):
            yield Fault(f"{say}Expected a valid URL, but got a value with an invalid format.", f"{at}.image_url")
        return
    head, _, payload = url.partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64")
    if mime not in _PICTURES.values():
        yield Fault(f"{say}{data}, but got unsupported MIME type '{mime}'.", f"{at}.image_url")
    elif not payload:
        yield Fault(f"{say}{data}, but got empty base64-encoded bytes.", f"{at}.image_url")
    else:
        try:
            base64.b64decode(payload, validate=True)
        except binascii.Error:
            yield Fault(f"{say}{data}, but got a value that is no base64.", f"{at}.image_url")


def _reasoning(item: Item, at: str, stored: bool) -> Iterator[Fault]:
    if not isinstance(item.get("summary"), list):
        yield _missing(f"{at}.summary")
    if item.get("content"):
        yield Fault(
            f"Invalid '{at}.content': array too long. Expected an array with maximum length 0, but got an array with "
            f"length {len(item['content'])} instead.",
            f"{at}.content",
            "array_above_max_length",
        )
    if not stored and not item.get("encrypted_content"):
        yield _missing(f"{at}.encrypted_content")


def _search(item: Item, at: str) -> Iterator[Fault]:
    if not item.get("id"):
        yield _missing(f"{at}.id")
    kind = (item.get("action") or {}).get("type")
    if kind not in ("search", "open_page", "find_in_page", None):
        words = f"Invalid value: '{kind}'. Supported values are: 'search', 'open_page', and 'find_in_page'."
        yield Fault(words, f"{at}.action.type")


def _call(item: Item, at: str) -> Iterator[Fault]:
    call = item.get("call_id")
    if call is None:
        if item["type"] in ("tool_search_call", "tool_search_output"):
            return
        yield _missing(f"{at}.call_id")
    elif not call:
        yield _empty(f"{at}.call_id")
    elif len(call) > LONGEST_ID:
        yield _long(f"{at}.call_id", LONGEST_ID, len(call))
    if item["type"] in ("function_call", "custom_tool_call"):
        yield from _name(item, "name", at)
        yield from _name(item, "namespace", at)
        given = item.get("arguments" if item["type"] == "function_call" else "input") or ""
        if item["type"] == "function_call" and len(given) > LONGEST_ARGUMENTS:
            yield _long(f"{at}.arguments", LONGEST_ARGUMENTS, len(given))
    elif isinstance(item.get("output"), list):
        yield from _parts(item["output"], f"{at}.output", ("input_text", "input_image", "input_file"))
    elif len(item.get("output") or "") > LONGEST_TEXT:
        yield _long(f"{at}.output", LONGEST_TEXT, len(item["output"]))


def _name(item: Item, field: str, at: str) -> Iterator[Fault]:
    name = item.get(field)
    if name is None:
        return
    if not name:
        yield _empty(f"{at}.{field}")
    elif len(name) > 128:
        yield _long(f"{at}.{field}", 128, len(name))
    elif not _NAME.fullmatch(name):
        yield Fault(
            f"Invalid '{at}.{field}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            f"{at}.{field}",
        )


def _order(items: list[Item]) -> Iterator[Fault]:
    seen: set[str] = set()
    for item in items:
        own = item.get("id")
        if own and own in seen:
            words = f"Duplicate item found with id {own}. Remove duplicate items from your input and try again."
            yield Fault(words, "input", None)
        seen.add(own or "")
    calls = {item["call_id"]: item for item in items if item["type"] in CALLS and item.get("call_id")}
    answered = {item["call_id"] for item in items if item["type"] in OUTPUTS and item.get("call_id")}
    for item in items:
        kind, call = item["type"], item.get("call_id")
        if kind in OUTPUTS and call and call not in calls:
            yield Fault(f"No tool call found for {_spelled(kind)} with call_id {call}.", "input", None)
        if kind in CALLS and call and call not in answered:
            yield Fault(f"No tool output found for {_spelled(kind)} {call}.", "input", None)
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        if item["type"] == "reasoning" and not _follows(following):
            words = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            yield Fault(words, "input", None)


def _follows(item: Item | None) -> bool:
    """Whether it can be what the model did after it thought."""
    if item is None or item["type"] in OUTPUTS:
        return False
    return bool(item["type"] != "message" or item["role"] == "assistant")


def _spelled(kind: str) -> str:
    return kind.replace("_", " ")


def _picture(data: bytes) -> str | None:
    return next((name for begin, name in _PICTURES.items() if data.startswith(begin)), None)


def _missing(at: str) -> Fault:
    return Fault(f"Missing required parameter: '{at}'.", at, "missing_required_parameter")


def _empty(at: str) -> Fault:
    words = f"Invalid '{at}': empty string. Expected a string with minimum length 1, but got an empty string instead."
    return Fault(words, at, "empty_string")


def _long(at: str, most: int, length: int) -> Fault:
    return Fault(
        f"Invalid '{at}': string too long. Expected a string with maximum length {most}, but got a string with length "
        f"{length} instead.",
        at,
        "string_above_max_length",
    )
