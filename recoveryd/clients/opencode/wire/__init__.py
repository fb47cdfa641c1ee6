"""How OpenCode sends a stored session, one module a protocol, held to the bodies that the real client sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Failure

__all__ = ["wires_of"]


def wires_of(failure: Failure, forms: Iterable[Form]) -> tuple[AnthropicMessages, ...]:
    """The next request of a session, in each form: the same model is asked again."""
    return tuple(AnthropicMessages(failure.provider, failure.model, form) for form in forms)
