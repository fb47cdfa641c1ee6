"""Our plugin for OpenCode and its forks: its file, and which running clients have loaded it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from recoveryd.clients.opencode import plugin_mailbox, processes
from recoveryd.clients.plugin import Caller, checksum, sealed
from recoveryd.core import Json, json_of
from recoveryd.settings import paths

_NAME = "recoveryd.js"
_FOLDERS = ("plugin", "plugins")  # a client loads the files of both
_BEGIN = "const INSTALLED = "  # the one line that differs between installations
_GAP = f"{_BEGIN}{{}}\n"
_LOADS_S = 20.0  # after its start: a client has loaded its plugins within 6 s (measured, on a busy machine)


@dataclass(frozen=True, slots=True)
class OpencodePlugin:
    """Our plugin's file in `config`, the folder of settings of OpenCode or a fork. `programs`: what its
    processes are called.
    """

    client: str
    config: Path
    programs: Collection[str]

    @property
    def path(self) -> Path | None:
        if not self.config.is_dir():
            return None
        there = [self.config / name / _NAME for name in _FOLDERS if (self.config / name / _NAME).is_file()]
        used = [self.config / name / _NAME for name in _FOLDERS if (self.config / name).is_dir()]
        return next(iter(there or used), self.config / _FOLDERS[0] / _NAME)

    def text(self, caller: Caller) -> str:
        installed = {
            "plugin": checksum(_source()),
            "client": self.client,
            "state": str(caller.state),
            "command": self._command(caller),
            "env": dict(caller.environment),
        }
        return sealed(_source().replace(_GAP, f"{_BEGIN}{json.dumps(installed)}\n"), "//")

    def fits(self, text: str, caller: Caller) -> bool:
        installed = _installed(text)
        command = _words(installed.get("command"))
        wanted = (checksum(_source()), self.client, str(caller.state))
        found = tuple(installed.get(name) for name in ("plugin", "client", "state"))
        same = paths.config_in(caller.command) in (None, paths.config_in(command))
        return found == wanted and same and os.access(next(iter(command), ""), os.X_OK)

    def _command(self, caller: Caller) -> list[str]:
        """Return the command that the plugin is to start: by the configuration that was named for it before, where none
        is now, as another one may let it write.
        """
        try:
            text = self.path.read_text("utf-8", "replace") if self.path is not None else ""
        except OSError:
            text = ""
        before = paths.config_in(_words(_installed(text).get("command")))
        if before is None or paths.config_in(caller.command) is not None:
            return list(caller.command)
        return [*caller.command, "--config", str(before)]

    def loaded(self) -> Sequence[bool]:
        return [one.plugin == checksum(_source()) for one in plugin_mailbox.loaded(self.client)]

    def missing(self) -> Sequence[str]:
        return sorted({name for one in plugin_mailbox.loaded(self.client) for name in one.missing})

    def silent(self, since: float) -> Sequence[int]:
        having = {one.pid for one in plugin_mailbox.loaded(self.client)}
        until = time.time() - _LOADS_S
        began = processes.with_sessions(self.programs)
        return [pid for pid, at in began if since < at < until and pid not in having]


def _installed(text: str) -> Json:
    """Return what a file of ours says of its installation; nothing where it says none."""
    line = next((line for line in text.splitlines() if line.startswith(_BEGIN)), "")
    found = json_of(line.removeprefix(_BEGIN))
    return found if isinstance(found, dict) else {}


def _words(found: object) -> list[str]:
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []


def _source() -> str:
    from importlib.resources import files  # late: an idle daemon reads none

    return files("recoveryd.clients.opencode").joinpath("plugin.js").read_text("utf-8")
