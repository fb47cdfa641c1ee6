"""Each family as the client is configured for it, and a session as that client would have stored it there."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tests.e2e.codex.sealed import OTHER, seal
from tests.e2e.signing import verdict
from tests.support.build import MODEL, Planted

Part = dict[str, Any]
Seal = Callable[[list[Part]], None]  # of one step of an answer: what the SDK stores beside the parts

_LIMIT = {"context": 200_000, "output": 32_000}


@dataclass(frozen=True)
class Family:
    """One family: the provider's id, its SDK and model in the client, and how its SDK marks what it stored."""

    name: str
    provider: str
    npm: str
    model: str
    seal: Seal
    base: str = "/v1"
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    protocol: str = ""  # of a custom provider, which only the client's configuration tells
    settings: str = ""  # of recoveryd, without which not all is healed
    said: str = ""  # what stands in its errors, where only that tells who is behind
    exception: str = ""  # what docs/limits.md calls what is not healed there
    reads: tuple[str, ...] = ("text", "image", "pdf")  # its model, by what the client is told
    google_login: bool = False  # its SDK asks Google for a token before each request

    def config(self, address: str) -> dict[str, Any]:
        """The client's configuration with which this family is asked at `address`."""
        described = {"name": self.model, "reasoning": True, "tool_call": True, "attachment": True, "temperature": True}
        model = {**described, "limit": _LIMIT, "modalities": {"input": list(self.reads), "output": ["text"]}}
        options = {"apiKey": "x", **self.options, "baseURL": f"{address}{self.base}"}
        named = f"{self.provider}/{self.model}"
        provider = {"npm": self.npm, "options": options, "models": {self.model: model}}
        return {"model": named, "small_model": named, "provider": {self.provider: provider}}

    @property
    def ids(self) -> dict[str, str]:
        """How a message names the model."""
        return {"providerID": self.provider, "modelID": self.model}

    def dressed(self, planted: Planted) -> Planted:
        """A session of Anthropic's as it would have been stored by the SDK of this family; another model stays one."""
        made = replace(
            planted,
            session=_copied(planted.session),
            messages=_copied(planted.messages),
            parts=_copied(planted.parts),
            raw=dict(planted.raw),
        )
        for message in made.messages:
            if message["role"] == "user" and "model" in message:
                message["model"] = dict(self.ids)
            elif message["role"] == "assistant":
                own = message.get("modelID") == MODEL["modelID"]
                if "providerID" in message:
                    message["providerID"] = self.provider
                if own:
                    message["modelID"] = self.model
            step: list[Part] = []
            for part in [*made.parts.get(message["id"], []), {"type": "step-start"}]:
                if part["type"] == "step-start":
                    self.seal(step)
                    step = []
                else:
                    step.append(part)
        return made


def _copied(value: Any) -> Any:
    """A JSON value of its own, many times sooner than by `deepcopy`."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _taken(part: Part) -> Part | None:
    """What Anthropic's SDK had stored beside a part, taken off it."""
    metadata = part.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("anthropic"), dict):
        return None
    marks: Part = metadata.pop("anthropic")
    if not metadata:
        del part["metadata"]
    return marks


def _give(part: Part, sdk: str, marks: Part) -> None:
    metadata = part.get("metadata")
    if metadata is None or isinstance(metadata, dict):
        part["metadata"] = {**(metadata or {}), sdk: marks}


def _bedrock(step: list[Part]) -> None:
    for part in step:
        marks = _taken(part)
        if marks is not None:
            _give(part, "bedrock", marks)


def _openrouter(step: list[Part]) -> None:
    """Each reasoning has its own details; the first call has those of all."""
    details: list[Part] = []
    for part in step:
        marks = _taken(part)
        own: list[Part] = []
        kind = {"format": "anthropic-claude-v1", "index": len(details)}
        if marks is not None and marks.get("signature") is not None:
            own.append({"type": "reasoning.text", "text": part["text"], "signature": marks["signature"], **kind})
        if marks is not None and marks.get("redactedData") is not None:
            own.append({"type": "reasoning.encrypted", "data": marks["redactedData"], **kind})
        if own:
            _give(part, "openrouter", {"reasoning_details": own})
        details += own
    calls = [part for part in step if part["type"] == "tool"]
    if details and calls:
        _give(calls[0], "openrouter", {"reasoning_details": details})


def _kimi_by_openrouter(step: list[Part]) -> None:
    """As it keeps what nobody signed: each reasoning has its own details; the first call has those of all."""
    details: list[Part] = []
    for part in step:
        _taken(part)
        if part["type"] == "reasoning":
            own = {"type": "reasoning.text", "text": part["text"], "format": "unknown", "index": len(details)}
            details.append(own)
            _give(part, "openrouter", {"reasoning_details": [own]})
    calls = [part for part in step if part["type"] == "tool"]
    if details and calls:
        _give(calls[0], "openrouter", {"reasoning_details": details})


def _copilot(step: list[Part]) -> None:
    """One opaque value beside all parts of a step: that of its last reasoning."""
    found = [marks for part in step if (marks := _taken(part)) is not None]
    opaque = (found[-1].get("signature") or found[-1].get("redactedData")) if found else None
    for part in step if opaque else ():
        if part["type"] in ("reasoning", "tool", "text"):
            _give(part, "copilot", {"reasoningOpaque": opaque})


def _openai(step: list[Part], sdk: str = "openai") -> None:
    """Each reasoning is an item of its own, encrypted; texts and calls name their items."""
    for part in step:
        marks = _taken(part)
        signed = (marks.get("signature") or marks.get("redactedData")) if marks is not None else None
        if signed is not None:
            said = verdict(part["text"], signed) if marks is not None and "signature" in marks else "valid"
            sealed = {"valid": seal(), "other text": seal(OTHER), "garbage": signed}[said]
            _give(part, sdk, {"itemId": f"rs_{len(sealed)}{id(part)}", "reasoningEncryptedContent": sealed})
        elif part["type"] == "text":
            _give(part, sdk, {"itemId": f"msg_{id(part)}"})


def _azure(step: list[Part]) -> None:
    """As OpenAI's, under a name of its own."""
    _openai(step, "azure")


def _google(step: list[Part], *, sdk: str) -> None:
    """What signs a step stands beside its reasoning and beside its first call, else its last text."""
    for part in list(step):
        marks = _taken(part)
        sealed = marks.get("signature") if marks is not None else None
        if sealed is None:
            continue
        said = verdict(part.get("text", ""), sealed)
        unread = base64.b64encode(b"bad").decode()
        signature = {"valid": sealed, "other text": unread, "garbage": f"{sealed}%"}[said]
        texts = [one for one in step if one["type"] == "text" and one.get("text")]
        calls = [one for one in step if one["type"] == "tool"]
        for one in (part, *(calls[:1] or texts[-1:])):
            _give(one, sdk, {"thoughtSignature": signature})


def _as_it_is(step: list[Part]) -> None:
    """What Anthropic's own SDK stores; a door to Claude that is reached by it."""
    del step


def _nothing(step: list[Part]) -> None:
    """These SDKs store nothing beside the parts."""
    for part in step:
        _taken(part)


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "bedrock",
            "amazon-bedrock",
            "@ai-sdk/amazon-bedrock",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            _bedrock,
            base="",
            options={"region": "us-east-1"},
        ),
        Family("openrouter", "openrouter", "@openrouter/ai-sdk-provider", "anthropic/claude-sonnet-4.5", _openrouter),
        Family(
            "openrouter-kimi",
            "openrouter",
            "@openrouter/ai-sdk-provider",
            "moonshotai/kimi-k2-thinking",
            _kimi_by_openrouter,
            settings="invent_reasoning = true\n",
        ),
        Family("copilot", "github-copilot", "@ai-sdk/github-copilot", "claude-sonnet-4.5", _copilot),
        Family("openai", "openai", "@ai-sdk/openai", "gpt-5.1", _openai),
        Family("kimi", "moonshotai", "@ai-sdk/openai-compatible", "kimi-k2-turbo-preview", _nothing),
        Family("glm", "zai", "@ai-sdk/openai-compatible", "glm-4.6", _nothing),
        Family("qwen", "alibaba", "@ai-sdk/openai-compatible", "qwen3-coder-plus", _nothing),
        Family("gpt", "litellm", "@ai-sdk/openai-compatible", "openai/gpt-4.1", _nothing, protocol="openai.chat"),
        Family(
            "litellm",
            "litellm",
            "@ai-sdk/openai-compatible",
            "claude-sonnet-4-5",
            _nothing,
            protocol="openai.chat",
            said="AnthropicException",
        ),
        Family("mistral", "mistral", "@ai-sdk/mistral", "mistral-large-latest", _nothing),
        Family("xai", "xai", "@ai-sdk/xai", "grok-4", _nothing),
        Family("ministral", "lmstudio", "@ai-sdk/openai-compatible", "ministral-3-14b", _nothing),
        Family("gemma", "lmstudio", "@ai-sdk/openai-compatible", "google/gemma-3-27b", _nothing),
        Family("azure", "azure", "@ai-sdk/azure", "gpt-5.1", _azure, base="/openai"),
        Family("gemini", "google", "@ai-sdk/google", "gemini-3-pro-preview", partial(_google, sdk="google")),
        Family("gemini-2", "google", "@ai-sdk/google", "gemini-2.5-pro", partial(_google, sdk="google")),
        Family(
            "vertex",
            "google-vertex",
            "@ai-sdk/google-vertex",
            "gemini-3-pro-preview",
            partial(_google, sdk="vertex"),
            base="/v1/publishers/google",
        ),
        Family(
            "vertex-claude",
            "google-vertex-anthropic",
            "@ai-sdk/google-vertex/anthropic",
            "claude-sonnet-4-5@20250929",
            _as_it_is,
            base="/v1/projects/p/locations/us-east5/publishers/anthropic/models",
            google_login=True,
        ),
        Family("deepseek", "deepseek", "@ai-sdk/openai-compatible", "deepseek-chat", _nothing),
    )
}
# Models that want the reasoning of each call back, where the client does not send it: what would have to be made up is
# left alone.
UNREASONED = {
    family.name: family
    for family in (
        replace(
            FAMILIES["openrouter-kimi"],
            name="openrouter-kimi-default",
            settings="",
            exception="Kimi on OpenRouter without `invent_reasoning`",
        ),
        replace(
            FAMILIES["kimi"],
            name="kimi-custom",
            provider="lab",
            model="kimi-k2-thinking",
            protocol="openai.chat",
            exception="a custom Kimi without `interleaved` in `opencode.json`",
        ),
        replace(
            FAMILIES["deepseek"],
            name="deepseek-reasoner",
            model="deepseek-reasoner",
            exception="DeepSeek and Kimi that think, on OpenCode 1.1 and 1.2",
        ),
    )
}
EVERY_FAMILY = FAMILIES | UNREASONED
# Anthropic's own API, whose shapes the other tests play.
ANTHROPIC = Family("anthropic", "anthropic", "@ai-sdk/anthropic", "claude-sonnet-4-5", _as_it_is)
