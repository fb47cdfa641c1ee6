"""`recoveryd run` as a process in the background, where no manager of services has it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.core import BusyError, RecoverydError, command_line
from recoveryd.disk import private_files
from recoveryd.service.base import Say, other_that_watches

_FILE = "background.pid"
_READY_S = 60.0  # for the first look at all sessions; it goes on without us
_END_S = 35.0  # for the one repair that is under way, and the last toast
_TURN_S = 5.0  # for another `start` to write down what it began
_PAUSE_S = 0.05
_SHORT = 80  # the bytes of a folder in which a socket may be: its path has no more than 107 (unix(7)), on macOS 103


class Background:
    """The process that `start` made for this state folder.

    It holds a lock on the file with its process id for as long as it lives, so what a crash leaves is not believed.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = state / _FILE

    def pid(self) -> int | None:
        """Return the process that runs, or None."""
        number, _, _ = self._said().partition(b"\n")
        return (int(number) or None) if number.isdigit() else None

    def config(self) -> Path | None:
        """Return the configuration that was named for the process that runs; None where none was, or nothing runs."""
        _, _, named = self._said().partition(b"\n")
        return Path(os.fsdecode(named)) if named else None

    def _said(self) -> bytes:
        """Return what the file says of the process that runs: its id, a line end, its configuration; b"" where none
        does.
        """
        try:
            with self._file.open("rb") as file:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    return b""
                return file.read()
        except OSError:
            return b""

    def start(self, command: Sequence[str], env: Mapping[str, str], say: Say, config: Path | None = None) -> bool:
        """Start `command`, and wait until it is ready. Returns False where another `start` was first, whose process
        runs then. RecoverydError: it ended at once, or can't be started.

        `config`: the configuration that the command names, which is to be the same after a restart.
        """
        file = self._turn()
        if file is None:
            return False
        try:
            os.ftruncate(file, 0)
            self._start(command, env, file, say)
            if config is not None:
                os.pwrite(file, b"\n" + os.fsencode(config), os.fstat(file).st_size)
        except OSError as error:
            hint = f"Make room on the disk of {self._state}." if error.errno == errno.ENOSPC else "Try again."
            raise RecoverydError(f"recoveryd can't be started: {error.strerror or error}.", hint) from error
        finally:
            os.close(file)
        return True

    def _turn(self) -> int | None:
        """Open the file, locked; None where another `start` has it, and its process runs. RecoverydError."""
        deadline = time.monotonic() + _TURN_S
        while True:
            file = self._open()  # anew each time: `stop` removes it
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                if not isinstance(error, BlockingIOError):
                    raise RecoverydError(f"recoveryd can't be started: {error.strerror or error}.") from error
            else:
                return file
            if self.pid() is not None:
                return None
            if time.monotonic() > deadline:
                says = f"recoveryd can't be started: another process holds {self._file}, and nothing says that it runs."
                raise RecoverydError(says, "Try again.")
            time.sleep(_PAUSE_S)

    def _open(self) -> int:
        place = private_files.make_folder(self._state) / _FILE
        try:
            return os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            says = f"{place} can't be written: {error.strerror or error}."
            raise RecoverydError(says, "Check its folder and the disk.") from error

    def _start(self, command: Sequence[str], env: Mapping[str, str], lock: int, say: Say) -> None:
        with (
            tempfile.TemporaryDirectory(dir=_socket_folder()) as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ears,
        ):
            ears.bind(f"{folder}/ready")
            ears.settimeout(_PAUSE_S)
            process = subprocess.Popen(  # noqa: S603
                command,
                env={**env, "NOTIFY_SOCKET": f"{folder}/ready"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # the log has it all
                start_new_session=True,
                pass_fds=[lock],
            )
            os.pwrite(lock, str(process.pid).encode(), 0)
            status = _heard(ears, process)
        code = process.poll()
        if code is not None:
            hint = f"The log says why: {command_line('logs')}"
            who, end = other_that_watches() if code == BusyError.exit_code else ("", "")
            if who:
                hint = f"Another recoveryd watches the store{who}. To have this one: {end}, and start it again."
            raise (BusyError if who else RecoverydError)(f"recoveryd ended at once (with {code}).", hint)
        process.returncode = 0  # it outlives us, and nobody waits for it
        say(f"running in the background (pid {process.pid}): {status}")

    def stop(self, say: Say) -> bool:
        """End it, if it runs, and wait for that. RecoverydError: it does not end."""
        pid = self.pid()
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while self.pid() is not None:
            if time.monotonic() > deadline:
                raise RecoverydError(f"recoveryd (pid {pid}) does not end.", f"`kill -9 {pid}` loses nothing.")
            time.sleep(_PAUSE_S)
        self._file.unlink(missing_ok=True)
        say(f"stopped (pid {pid})")
        return True


def _socket_folder() -> str:
    """Return where a socket may be: $TMPDIR, unless its path is too long for one."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _SHORT else "/tmp"  # noqa: S108 a folder of our own is made in it


def _heard(ears: socket.socket, process: subprocess.Popen[bytes]) -> str:
    """Return what it says that it does, once it is ready; what is known then if it ended, or takes long."""
    status, deadline = "it is still looking through your sessions", time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(TimeoutError):
            for line in ears.recv(65536).decode("utf-8", "replace").splitlines():
                if line.startswith("STATUS="):
                    status = line.removeprefix("STATUS=")
                if line == "READY=1":
                    return status
    return status
