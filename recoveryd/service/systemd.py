"""The service under systemd's user manager: its unit, its stricter form, and the calls of `systemctl --user`."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from recoveryd.core import BusyError, RecoverydError, RefusedError, command_line
from recoveryd.service.base import (
    Say,
    Service,
    Verb,
    call_manager,
    no_answer,
    no_manager,
    other_that_watches,
    remove,
    template,
    write,
)
from recoveryd.settings import paths

UNIT = "recoveryd.service"
_STRICT = "strict.conf"
_PATIENCE_S = 60.0  # for the first look at all sessions; it goes on without us
_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
_NOT_EXECUTED = 200  # systemd's own statuses from here on: the program never ran, so its log has nothing of it
_HIDDEN = ("/tmp", "/var/tmp")  # noqa: S108 what PrivateTmp= replaces
_ENABLE = "systemctl --user enable recoveryd"
_LINGERING = Path("/var/lib/systemd/linger")  # where logind keeps, a file each, whose manager runs without a login
_MASKED, _REFUSED = "masked", ("bad-setting", "error", "not-found")  # of a unit that systemd starts in no case


class Systemd:
    """The `Manager` of systemd. `env` is the environment of the shell, `limit` how long a call may take, in seconds."""

    log_command = "journalctl --user -u recoveryd -f"

    def __init__(self, env: Mapping[str, str], limit: float = 90.0) -> None:
        self._env = env
        self._limit = limit
        home = Path(env.get("HOME") or Path.home())
        self._units = home / ".config" / "systemd" / "user"

    @property
    def _drop_in(self) -> Path:
        return self._units / f"{UNIT}.d" / _STRICT

    def check(self) -> None:
        if shutil.which("systemctl", path=self._env.get("PATH")) is None:
            raise no_manager("there is no systemd")
        done = self._call("show-environment")
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["it does not answer"])[-1].rstrip(".")
            hint = "Log in as this user, not by su or sudo."
            if self._env.get("WSL_DISTRO_NAME"):
                hint = "In WSL: `systemd=true` under [boot] in /etc/wsl.conf, then `wsl --shutdown`."
            raise no_manager(f"systemd's user manager can't be reached ({why})", hint)
        # The manager looks where its own environment says, not where this shell's does.
        for line in done.stdout.splitlines():
            name, _, value = line.partition("=")
            if name == "XDG_CONFIG_HOME" and value.startswith("/"):
                self._units = Path(value) / "systemd" / "user"

    def state(self) -> str:
        try:
            self.check()
            if not (self._units / UNIT).exists():
                return "absent"
            found = self._call("is-active", UNIT).stdout.strip() or "none"
            waits = found == "activating" and self._show("SubState").startswith("auto-restart")
            return "restarting" if waits else found
        except RecoverydError:
            return "none"

    def unit(self, service: Service) -> dict[Path, str]:
        made = {self._units / UNIT: unit(service)}
        return {**made, self._drop_in: strict(service.writable)} if service.strict else made

    def was_strict(self) -> bool:
        return self._drop_in.exists()

    def named_config(self) -> Path | None:
        try:
            lines = (self._units / UNIT).read_text("utf-8").splitlines()
            command = next((line for line in lines if line.startswith("ExecStart=")), "")
            return paths.config_in(
                [word.replace("%%", "%") for word in shlex.split(command)]
            )  # as `quoted` writes them
        except (OSError, ValueError):
            return None

    def refusal(self) -> RecoverydError | None:
        found, install = self._show("LoadState"), command_line("install")
        if found == _MASKED:
            hint = f"To have it start again: `systemctl --user unmask recoveryd`, then `{install}`."
            return RecoverydError("The service is masked, so systemd does not start it.", hint)
        if found not in _REFUSED:
            return None
        own = [path for path in self._show("DropInPaths").split() if path != str(self._drop_in)]
        hint = f"`systemd-analyze --user verify {shlex.quote(str(self._units / UNIT))}` says what is wrong. "
        hint += f"`{install}` writes the unit anew" + (f", but not what is your own: {', '.join(own)}" if own else "")
        so = "runs as it was started, but is not started again" if self.state() == "active" else "is not started"
        return RecoverydError(f"The service {so}: systemd finds its unit faulty ({found}).", f"{hint}.")

    def starts_by_itself(self) -> bool:
        return self._call("is-enabled", UNIT).stdout.strip() not in ("disabled", "static")

    def start(self, service: Service, say: Say, make_room: Callable[[], object]) -> None:
        if (self._units / UNIT).is_symlink() and (masked := self.refusal()):
            raise RefusedError(masked.message, masked.hint)
        for path, text in self.unit(service).items():
            write(path, text, say)
        if not service.strict:
            self._remove_drop_in(say)
        self._must("daemon-reload")
        self._must("enable", UNIT)
        say(f"enabled: it starts when {'the machine does' if lingers() else 'you log in'}")
        make_room()
        self._started("restart", say)

    def switch(self, verb: Verb, say: Say) -> None:
        if verb != "stop":
            # A start would wait until the half minute before its next try is over.
            self._started("restart" if self.state() == "restarting" else verb, say)
            if not self.starts_by_itself():
                say(f"note: it is disabled, so no login starts it. For that: `{_ENABLE}`")
            return
        try:
            self._must("stop", UNIT)
        except RecoverydError:
            if self.state() not in ("inactive", "failed"):  # of a unit that can't be read systemd knows nothing
                raise
        say(f"stopped{self._until()}")

    def _until(self) -> str:
        """Tell, behind "stopped", what starts it again."""
        start = f"`{command_line('start')}`"
        if refusal := self.refusal():  # no `start` does
            return f". {refusal.message}"
        if not self.starts_by_itself():
            return f", until {start}. It is disabled, so no login starts it; `{_ENABLE}` changes that"
        return f", until {'the machine starts again' if lingers() else 'you log in again'} or {start}"

    def _started(self, verb: Verb, say: Say) -> None:
        try:
            done = self._call(verb, UNIT, timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            say("starting: it is still looking through your sessions (`systemctl --user status recoveryd`)")
            return
        if done.returncode:
            raise self.refusal() or self._not_started(done.stderr, strict=self.was_strict())
        say(f"running: {self._show('StatusText') or 'recoveryd'}")

    def stop(self, say: Say) -> None:
        if not (self._units / UNIT).exists():
            say("there is no service of recoveryd")
            return
        try:
            self.check()
        except RecoverydError:
            say("not stopped: its manager can't be reached from here")
            return
        try:
            self._must("disable", "--now", UNIT)
        except RecoverydError as error:
            say(f"not stopped: {error.message}")
        else:
            say("stopped and disabled")

    def gone(self, say: Say) -> list[Path]:
        there = (self._units / UNIT).exists()
        remove(self._units / UNIT, say)
        self._remove_drop_in(say)
        wanted = self._units / "default.target.wants"
        (wanted / UNIT).unlink(missing_ok=True)  # of a manager that could not be reached
        if there and shutil.which("systemctl", path=self._env.get("PATH")):
            with suppress(RecoverydError):  # the files are gone, which is what counts
                self._call("daemon-reload")
                self._call("reset-failed", UNIT)  # nothing is left of it in `systemctl --user --failed`
        return [wanted, self._units, self._units.parent]

    def _remove_drop_in(self, say: Say) -> None:
        remove(self._drop_in, say)
        if self._drop_in.parent.is_dir() and not any(self._drop_in.parent.iterdir()):
            self._drop_in.parent.rmdir()

    def _not_started(self, said: str, *, strict: bool) -> RecoverydError:
        if said.startswith("Failed to "):  # not so much as tried: the status is of an earlier time
            return RecoverydError(f"systemd does not start the service: {said.splitlines()[0]}")
        status = self._show("ExecMainStatus")
        journal = "journalctl --user -u recoveryd -n 20"
        hint, who = f"The log says why: {command_line('logs')} (or {journal})", ""
        if status.isdigit() and int(status) >= _NOT_EXECUTED:
            hint = f"The journal says why: {journal}"
        if status == "75":
            who, end = other_that_watches()
            hint = f"Another recoveryd watches the store{who}: {end}, and this one begins within half a minute."
        elif status == "78":
            hint = f"Its configuration is not sound: {command_line('config', 'check')}"
        elif strict:
            hint += f"\nIf this system does not allow namespaces to users: {command_line('install', '--no-strict')}"
        made = BusyError if status == "75" and who else RecoverydError
        return made(f"The service is installed, and did not start (it ended with {status or '?'}).", hint)

    def _show(self, name: str) -> str:
        return self._call("show", "-p", name, "--value", UNIT).stdout.strip()

    def _must(self, *words: str) -> None:
        done = self._call(*words)
        if done.returncode:
            raise RecoverydError(f"`systemctl --user {' '.join(words)}` failed: {done.stderr.strip()}")

    def _call(self, *words: str, timeout: float = 0.0) -> subprocess.CompletedProcess[str]:
        """RecoverydError: it does not answer; TimeoutExpired: not within a `timeout` that was given."""
        command = ["systemctl", "--user", *words]
        try:
            return call_manager(command, self._env, timeout or self._limit)
        except subprocess.TimeoutExpired as error:
            if timeout:
                raise
            raise no_answer(command) from error


def lingers() -> bool:
    """Whether this user's manager runs from the start of the machine on, without a login (`loginctl enable-linger`)."""
    with suppress(OSError, KeyError):  # a user without a name (in a container) has none
        return (_LINGERING / pwd.getpwuid(os.getuid()).pw_name).exists()
    return False


def unit(service: Service) -> str:
    """Write the unit file of systemd. Raises RecoverydError for a path that can't be written in one."""
    words = (*service.command, "run")
    if any(c in "'\"\\" for c in words[0]):  # not allowed in the name of a program: systemd's string_is_safe()
        words = "/usr/bin/env", *words
    if any("$" in word for word in words):
        words = f":{words[0]}", *words[1:]  # no variables in it: systemd.service(5)
    lines = [f"Environment={quoted(f'{name}={value}')}" for name, value in service.environment.items()]
    text = template("systemd", UNIT).replace("@COMMAND@", " ".join(map(quoted, words)))
    return text.replace("@ENVIRONMENT@\n", "".join(f"{line}\n" for line in lines))


def strict(writable: Iterable[Path]) -> str:
    """Write the drop-in of systemd for `--strict`. Raises RecoverydError for a folder that its sandbox can't show."""
    folders = sorted(str(folder) for folder in writable)
    for folder in folders:
        if any(Path(folder).is_relative_to(hidden) for hidden in _HIDDEN):
            raise RecoverydError(f"{folder} would be hidden by --strict.", "Install it without, or move the folder.")
    # A folder that is not there when the service starts is passed over.
    lines = "".join(f"ReadWritePaths={quoted(f'-{folder}')}\n" for folder in folders)
    return template("systemd", _STRICT).replace("@WRITABLE@\n", lines)


def quoted(text: str) -> str:
    """Quote a word for a unit file: systemd.syntax(7), and `%` of systemd.unit(5)."""
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text):
        raise RecoverydError(f"{text!r} can't be written in a unit of systemd.", "It needs a path without such names.")
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
