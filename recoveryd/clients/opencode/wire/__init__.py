"""How OpenCode sends a stored session, one module an SDK, held to the bodies that the real client sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.bedrock import BedrockConverse
from recoveryd.clients.opencode.wire.copilot import CopilotChat
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.clients.opencode.wire.openrouter import OpenRouterChat
from recoveryd.clients.opencode.wire.responses import OpenaiResponses
from recoveryd.clients.opencode.wire.sdk import SdkWire
from recoveryd.clients.opencode.wire.unknown import UnknownSdk
from recoveryd.core import Failure

__all__ = ["wires_of"]

_WIRES: Mapping[str, type[SdkWire]] = {
    wire.protocol: wire for wire in (AnthropicMessages, BedrockConverse, CopilotChat, OpenRouterChat, OpenaiResponses)
}


def wires_of(failure: Failure, protocol: str, forms: Iterable[Form]) -> tuple[SdkWire, ...]:
    """The next request of a session, in each form: the same model is asked again, as `protocol` says."""
    wire = _WIRES.get(protocol, UnknownSdk)
    return tuple(wire(failure.provider, failure.model, form) for form in forms)
