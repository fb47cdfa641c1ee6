"""The section `[codex]` of the configuration."""

from __future__ import annotations

from pydantic import Field, StrictBool

from recoveryd.settings import FOLDERS, Folder, Section


class CodexSettings(Section):
    """`[codex]`: whether its threads are looked after, and where they are beyond where they usually are."""

    enabled: StrictBool = Field(default=True, description="true or false")
    homes: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
