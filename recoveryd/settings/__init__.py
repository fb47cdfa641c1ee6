"""What the user chose: the configuration, pause and ignore, where files are, the log.

Imports `core` and `disk`.
"""

from __future__ import annotations

from recoveryd.settings import overrides, paths
from recoveryd.settings.edit import DEFAULT, change, create, edit_text, parse_text, replace
from recoveryd.settings.load import (
    but_of_environment,
    check,
    load,
    load_sound,
    may_forbid,
    settings_as_toml,
    variable_of,
    variables,
)
from recoveryd.settings.logs import setup
from recoveryd.settings.overrides import Pause, ignored, ignored_mark, paused, why_held
from recoveryd.settings.schema import FOLDERS, BaseConfig, Folder, Hooks, LedgerLimits, Log, Notify, Section, not_blank

__all__ = [
    "DEFAULT",
    "FOLDERS",
    "BaseConfig",
    "Folder",
    "Hooks",
    "LedgerLimits",
    "Log",
    "Notify",
    "Pause",
    "Section",
    "but_of_environment",
    "change",
    "check",
    "create",
    "edit_text",
    "ignored",
    "ignored_mark",
    "load",
    "load_sound",
    "may_forbid",
    "not_blank",
    "overrides",
    "parse_text",
    "paths",
    "paused",
    "replace",
    "settings_as_toml",
    "setup",
    "variable_of",
    "variables",
    "why_held",
]
