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
from recoveryd.core import json_of

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
            "command": list(caller.command),
            "env": dict(caller.environment),
        }
        return sealed(_source().replace(_GAP, f"{_BEGIN}{json.dumps(installed)}\n"), "//")

    def fits(self, text: str, caller: Caller) -> bool:
        line = next((line for line in text.splitlines() if line.startswith(_BEGIN)), "")
        installed = json_of(line.removeprefix(_BEGIN))
        if not isinstance(installed, dict):
            return False
        command = installed.get("command")
        program = command[0] if isinstance(command, list) and command and isinstance(command[0], str) else ""
        wanted = (checksum(_source()), self.client, str(caller.state))
        found = tuple(installed.get(name) for name in ("plugin", "client", "state"))
        return found == wanted and os.access(program, os.X_OK)

    def loaded(self) -> Sequence[bool]:
        return [one.plugin == checksum(_source()) for one in plugin_mailbox.loaded(self.client)]

    def missing(self) -> Sequence[str]:
        return sorted({name for one in plugin_mailbox.loaded(self.client) for name in one.missing})

    def silent(self, since: float) -> Sequence[int]:
        having = {one.pid for one in plugin_mailbox.loaded(self.client)}
        until = time.time() - _LOADS_S
        began = processes.with_sessions(self.programs)
        return [pid for pid, at in began if since < at < until and pid not in having]


def _source() -> str:
    from importlib.resources import files  # late: an idle daemon reads none

    return files("recoveryd.clients.opencode").joinpath("plugin.js").read_text("utf-8")
