"""What a repair has before it: the request as it would be by now, what is refused of it, and who can edit it."""

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
