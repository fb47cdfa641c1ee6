"""What a service of the user is made of, whichever manager runs it: the command, its environment, the files."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol

from recoveryd.core import RecoverydError, RefusedError, __version__, command_line, first_of
from recoveryd.disk import private_files, watchers
from recoveryd.settings import paths

MARK = "recoveryd install"  # in every file that is ours
# Where recoveryd's own files are. What else the shell says goes into the configuration.
_PLACES = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}
_LATER = "Try again, or log in anew."

Say = Callable[[str], object]
Verb = Literal["start", "stop", "restart"]


@dataclass(frozen=True, slots=True)
class Service:
    """`command`: the program and its arguments; `writable`: folders that `strict` leaves open; `state`: our own one."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    state: Path
    writable: tuple[Path, ...] = ()
    strict: bool = False


class Manager(Protocol):
    """Runs a service for this user. All of it raises `RecoverydError`."""

    @property
    def log_command(self) -> str:
        """The command that shows the log."""

    def check(self) -> None:
        """Raise RecoverydError when this manager can't be reached, with what to do instead."""

    def state(self) -> str:
        """Return "active", "inactive", "failed", ...; "restarting": it ended by a fault, and is to be started
        again; "absent": it is not installed; "none": there is nobody to ask.
        """

    def unit(self, service: Service) -> dict[Path, str]:
        """Return the files that make the service, with their texts."""

    def was_strict(self) -> bool:
        """Whether the service that is installed is a strict one."""

    def named_config(self) -> Path | None:
        """Return the configuration that the service which is installed was given by name; None where it was none."""

    def refusal(self) -> RecoverydError | None:
        """Tell why this manager starts in no case what is installed, with what to do; None where it may."""

    def starts_by_itself(self) -> bool:
        """Whether what is installed is started at a login, or with the machine."""

    def start(self, service: Service, say: Say, make_room: Callable[[], object]) -> None:
        """Start the service, in place of one that runs, and have it started at each login.

        `make_room` ends what would be in its way: called once the rest is done, so that what fails before leaves that
        running.
        """

    def switch(self, verb: Verb, say: Say) -> None:
        """Start, stop or restart what is installed, and say until when it is stopped."""

    def stop(self, say: Say) -> None:
        """Stop the service, and have it started no more at a login."""

    def gone(self, say: Say) -> list[Path]:
        """Remove its files. Returns the folders that may be empty now."""


def no_manager(what: str, hint: str = "") -> RecoverydError:
    """Make the error for a service that no manager of services runs here: it says how to live without."""
    start, run = command_line("start"), command_line("run")
    otherwise = f"Without a service: `{start}` runs it in the background, `{run}` in this terminal."
    return RecoverydError(f"recoveryd can't be installed as a service here: {what}.", f"{hint} {otherwise}".strip())


def how_to_end(pid: int) -> str:
    """Say what ends a process of the service where `stop` can't: a shell of su or sudo can't reach its manager, or it
    is one that `install` did not make.
    """
    own = f"if `{command_line('install')}` did not make this service, end it where it was set up"
    return f"In a shell of su or sudo, log in as this user instead; {own}. Else: `kill {pid}`."


def other_that_watches() -> tuple[str, str]:
    """Name, where one ended because another recoveryd has its stores, that one, and what ends it: " (pid 7, ...)".

    Of several each is named with its stores, for some may be in nobody's way.
    """
    others = watchers(paths.lock_dir(paths.state_dir()))
    if len(others) == 1:
        return f" ({others[0]})", f"end it (`kill {others[0].pid}`)"
    named = "; ".join(f"{other}, with {first_of(other.stores) or 'none yet'}" for other in others)
    return f" (one of these: {named})" if named else "", "end that one"


def call_manager(command: Sequence[str], env: Mapping[str, str], limit: float) -> subprocess.CompletedProcess[str]:
    """Run a command of the service manager; returns its answer. Raises TimeoutExpired after `limit` seconds,
    RecoverydError.
    """
    try:
        return subprocess.run(  # noqa: S603
            command, env=dict(env), capture_output=True, errors="surrogateescape", timeout=limit, check=False
        )
    except OSError as error:
        why = f"`{' '.join(command)}` can't be run: {error.strerror or error}."
        raise RecoverydError(why, _LATER) from error


def no_answer(command: Sequence[str]) -> RecoverydError:
    """Make the error for a manager that takes too long."""
    return RecoverydError(f"`{' '.join(command)}` does not answer.", _LATER)


def refuse_sudo(env: Mapping[str, str]) -> None:
    """Raise RecoverydError under sudo: the service would be root's, in somebody's home."""
    if os.geteuid() == 0 and env.get("SUDO_USER"):
        raise RefusedError("This is a service of yours, not of the system.", "Run it again without sudo.")


def template(*names: str) -> str:
    """Read the template of a service's file, a file of `systemd/` or `launchd/`: from the wheel, or from the source
    tree.
    """
    shipped = files("recoveryd").joinpath("units", *names)
    if shipped.is_file():
        return shipped.read_text("utf-8")
    return Path(__file__).parents[2].joinpath(*names).read_text("utf-8")


def command() -> tuple[str, ...]:
    """Return the command that starts recoveryd, by absolute paths: the running script, the interpreter's, or the
    module.
    """
    scripts = [Path(sys.argv[0]), Path(sysconfig.get_path("scripts"), "recoveryd")]
    for script in scripts:
        if script.name == "recoveryd" and script.is_file() and os.access(script, os.X_OK):
            return (str(script.absolute()),)
    return sys.executable, "-m", "recoveryd"


def try_command(command: tuple[str, ...], env: Mapping[str, str]) -> None:
    """Try the command of a service before it is installed: start recoveryd away from this shell. Raises
    `RecoverydError` if that fails, or it is another version.
    """
    bare = {name: env[name] for name in ("HOME", "PATH", "LANG") if name in env}
    words = [*command, "--version"]
    try:
        done = subprocess.run(  # noqa: S603
            words, env=bare, cwd="/", capture_output=True, text=True, timeout=60, check=False
        )
        said = (done.stdout + done.stderr).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said != f"recoveryd {__version__}":
        raise RecoverydError(
            f"`{' '.join(words)}` does not say recoveryd {__version__}: {said[-300:]}",
            f"Install recoveryd (pipx install, or pip), and run `{command_line('install')}` of that installation.",
        )


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this shell that the service needs: where the configuration and the state are, if not as
    usual.
    """
    home = Path(env.get("HOME") or Path.home())
    seen = {name: env.get(name, "") for name in _PLACES}
    return {name: v for name, v in seen.items() if Path(v).is_absolute() and Path(v) != home / _PLACES[name]}


def write(path: Path, text: str, say: Say) -> None:
    """Write a file of the service, which is ours. RefusedError: there is one that is not; RecoverydError."""
    try:
        there = path.read_text("utf-8", "replace") if path.exists() else None
        if there == text:
            say(f"unchanged: {path}")
            return
        if there is not None and MARK not in there:
            raise RefusedError(f"{path} is not from `{MARK}`.", "Move it away, then run it again.")
        path.parent.mkdir(parents=True, exist_ok=True)
        private_files.write(path, text.encode(), mode=0o644)  # no secret
    except OSError as error:
        raise RecoverydError(f"{path} can't be written: {error.strerror or error}.") from error
    say(f"{'wrote' if there is None else 'updated'}: {path}")


def remove(path: Path, say: Say) -> None:
    """Remove a file of the service, if it is there and ours."""
    try:
        if MARK in path.read_text("utf-8", "replace"):
            path.unlink()
            say(f"removed: {path}")
        else:
            say(f"left: {path} is not from `{MARK}`")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RecoverydError(f"{path} can't be removed: {error.strerror or error}.") from error
