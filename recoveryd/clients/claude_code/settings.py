"""The section `[claude_code]` of the configuration."""

from __future__ import annotations

from pydantic import Field, StrictBool

from recoveryd.settings import FOLDERS, Folder, Section


class ClaudeCodeSettings(Section):
    """`[claude_code]`: whether its sessions are looked after, and where they are beyond where they usually are."""

    enabled: StrictBool = Field(default=True, description="true or false")
    config_dirs: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
