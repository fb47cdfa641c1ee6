"""How OpenCode sends a stored session, one module an SDK, held to the bodies that the real client sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from recoveryd.clients.opencode.protocols import is_by_vertex
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Failure

if TYPE_CHECKING:
    from recoveryd.clients.opencode.wire.sdk import SdkWire

__all__ = ["wires_of"]

# By what is spoken: the module, and the wire in it. Each is imported once a session is stuck that speaks it.
_WIRES: Mapping[str, tuple[str, str]] = {
    "anthropic.messages": ("anthropic", "AnthropicMessages"),
    "bedrock.converse": ("bedrock", "BedrockConverse"),
    "copilot.chat": ("copilot", "CopilotChat"),
    "openrouter.chat": ("openrouter", "OpenRouterChat"),
    "mistral.chat": ("mistral", "MistralChat"),
    "google.generate": ("google", "GoogleGenerate"),
    "google.vertex": ("google", "VertexGenerate"),
    "xai.chat": ("compatible", "XaiChat"),
    "litellm.anthropic": ("compatible", "LitellmAnthropic"),
    "openai.chat": ("compatible", "OpenaiCompatible"),
    "azure.responses": ("responses", "AzureResponses"),
    "openai.responses": ("responses", "OpenaiResponses"),
}


def wires_of(failure: Failure, protocol: str, forms: Iterable[Form]) -> tuple[SdkWire, ...]:
    """Make the wires for the next request of a session, in each form: the same model is asked again, as `protocol`
    says.
    """
    module, name = _WIRES.get(protocol, ("unknown", "UnknownSdk"))
    if protocol == "anthropic.messages" and is_by_vertex(failure):
        name = "AnthropicByVertex"
    wire: type[SdkWire] = getattr(import_module(f"{__name__}.{module}"), name)
    return tuple(wire(failure.provider, failure.model, form, failure.called) for form in forms)
