"""A strict fake of each family on loopback: what it refuses, in its own words and wrapping, and what it answers.

Behind the doors of others Anthropic's rules hold (`tests.e2e.strict`, which shares no code with the product); what the
door itself refuses first is written here, from its public documentation and the texts of public threads.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.codex.strict import Strict as Responses
from tests.e2e.strict import Strict
from tests.families import chat_servers, gemini
from tests.families.reading import READERS, Body, Message, nameless, reasoned
from tests.families.streams import STREAMS
from tests.support.fake_api import ApiHandler, FakeApi


@dataclass(frozen=True)
class Asked:
    """One request for a turn: its body, what it was read as, and why it was refused."""

    body: Body
    messages: list[Message]
    refused: str | None


TOKENS = "/google/token"
_TOKEN = {"access_token": "x", "token_type": "Bearer", "expires_in": 3600}
_TOKEN |= {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}


class Handler(ApiHandler):
    """One connection of a client to a `Fake`."""

    api: Fake

    def do_POST(self) -> None:
        """Answer whatever is asked, at any path: which one it is, is the client's business."""
        if self.path == TOKENS:
            self.body()
            self.send(200, "application/json", json.dumps(_TOKEN).encode())
            return
        self.send(*self.api.answer(self.body()))


@dataclass
class Fake(FakeApi):
    """A family's endpoint as a context manager. `lenient`: it refuses everything with the same word."""

    handler = Handler

    family: str
    lenient: bool = False
    asked: list[Asked] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body for a request."""
        body = json.loads(raw.decode("utf-8", "surrogatepass"))
        if b"title generator" in raw:
            return 200, *STREAMS[self.family]("A title", "m")
        refused = self.refused(body)
        if refused is not None:
            return 400, "application/json", json.dumps(WRAPPED[self.family](refused)).encode()
        number = "".join("abcdefghij"[int(digit)] for digit in str(next(self._numbers)))
        return 200, *STREAMS[self.family](f"ok {number}", str(body.get("model")))

    def refused(self, body: Body) -> str | None:
        """Note a request, and why it is refused."""
        messages = READERS[self.family](body)
        refused = "captured" if self.lenient else REFUSALS[self.family](body, messages)
        with self._lock:
            self.asked.append(Asked(body, messages, refused))
        return refused

    def google_login(self, folder: Path) -> dict[str, str]:
        """Write a login whose tokens Google's library gets here; returns what to set for the client to find it.

        It is that of a "workload identity federation", the only sort that names the address of its tokens itself.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "subject").write_text("x")
        login = {"type": "external_account", "audience": "//iam.googleapis.com/x", "token_url": self.address + TOKENS}
        login |= {"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}
        found = folder / "login.json"
        found.write_text(json.dumps({**login, "credential_source": {"file": str(folder / "subject")}}))
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(found), "GOOGLE_CLOUD_PROJECT": "p"}


def _anthropic(messages: list[Message], *, thinking: bool) -> str | None:
    """Anthropic's own refusal of what a door made of a request."""
    on = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinking else {}
    body = {"model": "claude", "messages": messages, **on}
    _, refusal = Strict().check(json.dumps(body).encode())
    return refusal.message if refusal is not None else None


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _bedrock(body: Body, messages: list[Message]) -> str | None:
    thinking = (body.get("additionalModelRequestFields") or {}).get("thinking") is not None
    own = next(filter(None, map(_member, itertools.count(), messages)), None) or _document_names(messages)
    if own is None and messages and messages[0]["role"] != "user":
        own = (
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    if own is not None:
        return own
    found = _anthropic(messages, thinking=thinking)
    return f"The model returned the following errors: {found}" if found is not None else None


def _document_names(messages: list[Message]) -> str | None:
    documents = [block for message in messages for block in message["content"] if block["type"] == "document"]
    numbered = nameless()
    names = [block["title"] if "title" in block else next(numbered) for block in documents]
    if any(re.search(r"[^\w()\[\] -]|  ", name, re.ASCII) or not 0 < len(name) <= 200 for name in names):
        return (
            "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
            "parentheses, and square brackets. The name can't contain more than one consecutive whitespace character. "
            "Check that the file name conforms to these restrictions and retry your request."
        )
    if len(set(names)) < len(names):
        return (
            "Messages can not contain duplicate document names. Rename your documents to ensure that they are unique "
            "and try your request again."
        )
    return None


def _member(at: int, message: Message) -> str | None:
    """What Converse validates of a message before any model sees it."""
    if not message["content"]:
        return (
            f"The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
    for index, block in enumerate(message["content"]):
        if block["type"] == "text" and not block["text"].strip():
            return (
                f"The text field in the ContentBlock object at messages.{at}.content.{index} is blank. Add text to the "
                "text field, and try again."
            )
        if block["type"] == "tool_use":
            for key, field_ in (("id", "toolUseId"), ("name", "name")):
                if not _NAME.fullmatch(block[key]):
                    return (
                        f"1 validation error detected: Value '{block[key]}' at 'messages.{at + 1}.member.content."
                        f"{index + 1}.member.toolUse.{field_}' failed to satisfy constraint: Member must satisfy "
                        "regular expression pattern: [a-zA-Z0-9_-]+"
                    )
            if not isinstance(block.get("input"), dict):
                return f"The format of the value at messages.{at}.content.{index}.toolUse.input is invalid."
    return None


def _messages(body: Body, messages: list[Message]) -> str | None:
    return _anthropic(messages, thinking="thinking" in body)


def _anthropic_error(words: str) -> Body:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": words}, "request_id": "req_vrtx_x"}


def _chat(body: Body, messages: list[Message]) -> str | None:
    return _anthropic(
        messages, thinking=any(key in body for key in ("reasoning", "thinking_budget", "reasoning_effort"))
    )


def _openrouter_error(words: str, maker: str = "Anthropic") -> Body:
    raw = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    metadata = {"raw": raw, "provider_name": maker}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}, "user_id": "user_x"}


def _litellm_error(words: str) -> Body:
    """As the proxy of LiteLLM tells what Anthropic said."""
    said = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    told = f"litellm.BadRequestError: AnthropicException - {said}. Received Model Group=claude-sonnet-4-5"
    fallbacks = "\nAvailable Model Group Fallbacks=None"
    return {"error": {"message": f"{told}{fallbacks}", "type": None, "param": None, "code": "400"}}


def _openai(body: Body, messages: list[Message]) -> str | None:
    """OpenAI's Responses API, as strict as Codex is held to it."""
    del body
    fault = Responses().judge({"input": [message["content"][0] for message in messages]}, 0)
    return fault.message if fault is not None else None


def _of_messages(refused: Callable[[list[Message]], str | None], body: Body, messages: list[Message]) -> str | None:
    del body
    return refused(messages)


def _of_reasoned(refused: Callable[[list[Message]], str | None], body: Body, messages: list[Message]) -> str | None:
    del messages
    return refused(reasoned(body))


def _openai_error(words: str) -> Body:
    code = "invalid_encrypted_content" if words.startswith("The encrypted content") else "invalid_value"
    return {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": code}}


REFUSALS: dict[str, Callable[[Body, list[Message]], str | None]] = {
    "anthropic": _messages,
    "bedrock": _bedrock,
    "vertex-claude": _messages,
    "openrouter": _chat,
    "copilot": _chat,
    "litellm": _chat,
    "openai": _openai,
    "azure": _openai,
    **{name: partial(_of_messages, refused) for name, refused in chat_servers.REFUSALS.items()},
    **{name: partial(_of_reasoned, refused) for name, refused in chat_servers.REASONED.items()},
    "gemini": gemini.refusal,
    "gemini-2": gemini.refusal,
    "vertex": gemini.refusal,
}
WRAPPED: dict[str, Callable[[str], Any]] = {
    "anthropic": _anthropic_error,
    "bedrock": lambda words: {"message": words},
    "vertex-claude": _anthropic_error,
    "openrouter": _openrouter_error,
    "openrouter-kimi": partial(_openrouter_error, maker="Moonshot AI"),
    "openrouter-kimi-default": partial(_openrouter_error, maker="Moonshot AI"),
    "copilot": lambda words: {"error": {"message": words, "code": "invalid_request_body"}},
    "openai": _openai_error,
    "kimi": lambda words: {"error": {"message": words, "type": "invalid_request_error"}},
    "kimi-custom": lambda words: {"error": {"message": words, "type": "invalid_request_error"}},
    "qwen": lambda words: {"error": {"message": f"<400> InternalError.Algo.InvalidParameter: {words}", "code": "x"}},
    "litellm": _litellm_error,
    "gpt": lambda words: {"error": {"message": f"litellm.BadRequestError: OpenAIException - {words}", "code": "400"}},
    "mistral": lambda words: {"object": "error", "message": words, "type": "invalid_request_error", "code": "3000"},
    "xai": lambda words: {"code": "Client specified an invalid argument", "error": words},
    "ministral": lambda words: {"error": f"Error rendering prompt with jinja template: {words}."},
    "gemma": lambda words: {"error": f'Error rendering prompt with jinja template: "Error: {words}".'},
    "azure": _openai_error,
    "glm": lambda words: {"error": {"code": "1214", "message": words}},
    "deepseek": _openai_error,
    "deepseek-reasoner": _openai_error,
    "gemini": gemini.wrapped,
    "gemini-2": gemini.wrapped,
    "vertex": gemini.wrapped,
}
