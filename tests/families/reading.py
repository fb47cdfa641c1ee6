"""What the client really sent to a family, as Anthropic would get it: written apart from the product's own wire."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.families import gemini

Block = dict[str, Any]
Message = dict[str, Any]
Body = dict[str, Any]

_FORMATS = {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_FORMATS |= {"pdf": "application/pdf", "txt": "text/plain", "csv": "text/csv"}


def converse(body: Body) -> list[Message]:
    """Amazon Bedrock's Converse API."""
    found = [
        {"role": m["role"], "content": [_converse(block) for block in m["content"] if "cachePoint" not in block]}
        for m in body["messages"]
    ]
    names = nameless()
    expected = next(names)
    for block in (block for message in found for block in message["content"]):
        if block.get("title") == expected:
            del block["title"]
            expected = next(names)
    return found


def nameless() -> Iterator[str]:
    """How the SDK for Bedrock calls the documents of a request that have no name, one after the other."""
    return (f"document-{number}" for number in itertools.count(1))


def _converse(block: Block) -> Block:
    ((kind, value),) = block.items()
    match kind:
        case "text":
            return {"type": "text", "text": value}
        case "toolUse":
            given = {"input": value["input"]} if "input" in value else {}
            return {"type": "tool_use", "id": value["toolUseId"], "name": value["name"], **given}
        case "toolResult":
            content: Any = [_converse(item) for item in value["content"]]
            if len(content) == 1 and content[0]["type"] == "text":
                content = content[0]["text"]
            return {"type": "tool_result", "tool_use_id": value["toolUseId"], "content": content}
        case "reasoningContent" if "reasoningText" in value:
            thought = value["reasoningText"]
            return {"type": "thinking", "thinking": thought["text"], "signature": thought["signature"]}
        case "reasoningContent":
            data = value.get("redactedContent") or value["redactedReasoning"]["data"]
            return {"type": "redacted_thinking", "data": data}
    media, name = _FORMATS[value["format"]], value.get("name")
    titled = {"title": name} if name else {}
    return {"type": kind, "source": {"type": "base64", "media_type": media, "data": value["source"]["bytes"]}, **titled}


def messages(body: Body) -> list[Message]:
    """Anthropic's own Messages API, without its marks for caching."""
    return [{"role": m["role"], "content": _unmarked(m["content"])} for m in body["messages"]]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def openrouter(body: Body) -> list[Message]:
    """OpenRouter's chat completions."""
    return _chat(body, _details)


def _details(message: Message) -> list[Block]:
    found: list[Block] = []
    for detail in message.get("reasoning_details") or []:
        if detail["type"] == "reasoning.text":
            signature = detail.get("signature") or ""
            found.append({"type": "thinking", "thinking": detail.get("text") or "", "signature": signature})
        elif detail["type"] == "reasoning.encrypted":
            found.append({"type": "redacted_thinking", "data": detail["data"]})
    return found


def copilot(body: Body) -> list[Message]:
    """GitHub Copilot's chat completions."""

    def opaque(message: Message) -> list[Block]:
        sealed = message.get("reasoning_opaque")
        thinking = {"type": "thinking", "thinking": message.get("reasoning_text") or "", "signature": sealed}
        return [thinking] if sealed else []

    return _chat(body, opaque)


def litellm(body: Body) -> list[Message]:
    """Chat completions as LiteLLM makes messages of Anthropic's of them: without reasoning."""
    return _chat(body, lambda _: [])


def _chat(body: Body, thinking: Callable[[Message], list[Block]]) -> list[Message]:
    found: list[Message] = []
    for message in body["messages"]:
        match message["role"]:
            case "user":
                _add(found, "user", [_asked(item) for item in _items(message["content"])])
            case "tool":
                content = message["content"]
                result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
                _add(found, "user", [result])
            case "assistant":
                calls = [_call(call) for call in message.get("tool_calls") or []]
                _add(found, "assistant", [*thinking(message), *_words(message), *calls])
    return found


def _add(found: list[Message], role: str, content: list[Block]) -> None:
    if found and found[-1]["role"] == role:
        found[-1]["content"] += content
    else:
        found.append({"role": role, "content": content})


def _items(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _asked(item: Block) -> Block:
    if item["type"] == "text":
        return {"type": "text", "text": item["text"]}
    picture = item["type"] == "image_url"
    if picture:
        url = item["image_url"] if isinstance(item["image_url"], str) else item["image_url"]["url"]
    else:
        url = item["document_url"] if "document_url" in item else item["file"]["file_data"]
    media, data = url.removeprefix("data:").split(";")[0], url.partition(",")[2]
    source = {"type": "base64", "media_type": media, "data": data} if data else {"type": "url", "url": url}
    return {"type": "image" if picture else "document", "source": source}


def _call(call: Block) -> Block:
    given = call["function"].get("arguments")
    made = {} if given is None else {"input": json.loads(given)}
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], **made}


def responses(body: Body) -> list[Message]:
    """OpenAI's Responses API: each item as a message of one block."""
    found = []
    for item in body["input"]:
        if item.get("role") in ("developer", "system"):
            item = {"role": "developer", "content": ""}
        kind = item.get("type", "message")
        role = item.get("role") or ("tool" if kind.endswith("_output") else "assistant")
        found.append({"role": role, "content": [{**item, "type": kind}]})
    return found


def _words(message: Message) -> list[Block]:
    """The text of an answer; Mistral's SDK sends pieces of it where one is its own thinking."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        pieces = [piece["thinking"] if piece["type"] == "thinking" else [piece] for piece in content]
        content = "".join(str(one.get("text", "")) for piece in pieces for one in piece)
    return [{"type": "text", "text": content}] if content else []


def compatible(body: Body, thinking: Callable[[Message], list[Block]] = lambda _: []) -> list[Message]:
    """Chat completions as other makers serve them: each message by itself, without its reasoning."""
    found: list[Message] = []
    for index, message in enumerate(body["messages"]):
        read = _chat({"messages": [message]}, thinking)
        if message["role"] == "tool" and index and body["messages"][index - 1]["role"] == "tool":
            found[-1]["content"] += read[0]["content"]  # the results of one answer
        else:
            found += read
    return found


def reasoned(body: Body) -> list[Message]:
    """The same with the reasoning that goes back as a field of its own."""

    def thinking(message: Message) -> list[Block]:
        kept = message.get("reasoning_content")
        return [] if kept is None else [{"type": "thinking", "thinking": kept}]

    return compatible(body, thinking)


READERS: dict[str, Callable[[Body], list[Message]]] = {
    "anthropic": messages,
    "bedrock": converse,
    "vertex-claude": messages,
    "openrouter": openrouter,
    "openrouter-kimi": lambda body: compatible(body, _details),
    "openrouter-kimi-default": lambda body: compatible(body, _details),
    "copilot": copilot,
    "openai": responses,
    "kimi": compatible,
    "kimi-custom": compatible,
    "deepseek-reasoner": compatible,
    "glm": compatible,
    "deepseek": compatible,
    "qwen": compatible,
    "litellm": litellm,
    "gpt": compatible,
    "mistral": compatible,
    "xai": compatible,
    "ministral": compatible,
    "gemma": compatible,
    "azure": responses,
    "gemini": gemini.read,
    "gemini-2": gemini.read,
    "vertex": gemini.read,
}
