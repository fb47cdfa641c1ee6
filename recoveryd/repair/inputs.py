"""What a fix is given: the request as it would be sent, what is refused of it, and the editor of the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recoveryd.core import Editor, Request, Violation
from recoveryd.providers import Provider


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's choices that repairs follow (config keys of the same names)."""

    placeholder: str = "[user interrupted]"
    cancelled_text: str = "Operation cancelled by user (ESC pressed)"
    keep_thinking: bool = True


@dataclass(frozen=True, slots=True)
class RepairInput:
    """`found`: all that the provider refuses of `request`; `editor` edits the session that it was built from."""

    request: Request
    found: Sequence[Violation]
    provider: Provider
    editor: Editor
    settings: Settings
