"""The service under launchd, on macOS: its plist and the calls of `launchctl`. Not run yet on a real macOS."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.parsers.expat import ExpatError

from recoveryd.core import RecoverydError, command_line
from recoveryd.service.base import (
    MARK,
    Say,
    Service,
    Verb,
    call_manager,
    no_answer,
    no_manager,
    remove,
    template,
    write,
)
from recoveryd.settings import paths

LABEL = "recoveryd"
_TRIES, _PAUSE_S = 5, 1.0


class Launchd:
    """The `Manager` of launchd. `env` is the environment of the shell, `limit` how long a call may take, in seconds."""

    def __init__(self, env: Mapping[str, str], limit: float = 90.0) -> None:
        self._env = env
        self._limit = limit
        home = Path(env.get("HOME") or Path.home())
        self._plist = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"  # launchd does not expand ~
        self._domain = f"gui/{os.getuid()}"

    @property
    def log_command(self) -> str:
        return shlex.join(["tail", "-F", str(paths.log_file(paths.state_dir()))])  # -F: also once it was rotated

    def check(self) -> None:
        if shutil.which("launchctl", path=self._env.get("PATH")) is None:
            raise no_manager("there is no launchctl")
        if self._call("print", self._domain).returncode:
            raise no_manager(f"launchd has no {self._domain}", "Log in at the desktop, not by ssh alone.")

    def state(self) -> str:
        try:
            self.check()
            if not self._plist.exists():
                return "absent"
            return (
                "active" if "state = running" in self._call("print", f"{self._domain}/{LABEL}").stdout else "inactive"
            )
        except RecoverydError:
            return "none"

    def unit(self, service: Service) -> dict[Path, str]:
        if service.strict:
            raise RecoverydError("--strict is systemd's; launchd has nothing like it.", "Install it without.")
        return {self._plist: plist(service)}

    def was_strict(self) -> bool:
        return False

    def named_config(self) -> Path | None:
        try:
            return paths.config_in(plistlib.loads(self._plist.read_bytes())["ProgramArguments"])
        except (OSError, ValueError, KeyError, TypeError, ExpatError):  # somebody may have edited it
            return None

    def refusal(self) -> RecoverydError | None:
        return None

    def starts_by_itself(self) -> bool:
        return True

    def start(self, service: Service, say: Say, make_room: Callable[[], object]) -> None:
        for path, text in self.unit(service).items():
            write(path, text, say)
        make_room()
        self._call("bootout", f"{self._domain}/{LABEL}")
        self._call("enable", f"{self._domain}/{LABEL}")
        self._load(say)

    def switch(self, verb: Verb, say: Say) -> None:
        if verb == "start" and self.state() == "active":
            say("it runs already")
            return
        self._call("bootout", f"{self._domain}/{LABEL}")
        if verb == "stop":
            say(f"stopped, until you log in again or `{command_line('start')}`")
        else:
            self._load(say)

    def _load(self, say: Say) -> None:
        """Take the plist in; a service that was just stopped is still in the way for a moment."""
        for left in reversed(range(_TRIES)):
            done = self._call("bootstrap", self._domain, str(self._plist))
            if not done.returncode:
                say("running, and it starts when you log in")
                return
            if left:
                time.sleep(_PAUSE_S)
        raise RecoverydError(f"launchd did not take {self._plist}: {done.stderr.strip()}", f"`{MARK}` tries again.")

    def stop(self, say: Say) -> None:
        if not self._plist.exists():
            say("there is no service of recoveryd")
        elif shutil.which("launchctl", path=self._env.get("PATH")):
            try:
                self._call("bootout", f"{self._domain}/{LABEL}")
            except RecoverydError as error:
                say(f"not stopped: {error.message}")
            else:
                say("stopped")

    def gone(self, say: Say) -> list[Path]:
        remove(self._plist, say)
        return []

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["launchctl", *words]
        try:
            return call_manager(command, self._env, self._limit)
        except subprocess.TimeoutExpired as error:
            raise no_answer(command) from error


def plist(service: Service) -> str:
    """Write the property list: launchd.plist(5). Raises RecoverydError for a path that can't be written in one."""
    for text in (*service.command, *service.environment.values(), str(service.state)):
        if not text.isprintable():  # no character of XML, or one that the next reader would see as another
            raise RecoverydError(f"{text!r} can't be written in a plist.", "It needs a path without such names.")
    made = plistlib.loads(template("launchd", f"{LABEL}.plist").encode())
    made["ProgramArguments"] = [*service.command, "run", "--launchd"]
    made["EnvironmentVariables"] = dict(service.environment)
    # What is said before there is a log, and a traceback; the log itself is beside it.
    made["StandardErrorPath"] = str(service.state / "launchd.err")
    return (
        plistlib.dumps(made).decode().replace("<plist ", f"<!-- From `{MARK}`, which writes it anew. -->\n<plist ", 1)
    )
