"""Work in a child that is forked from this warm process, and what happens to it at a failpoint."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from loguru import logger

from recoveryd.core import failpoint

# What happens at a step: its number from 0 on, and its name.
AtStep = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: the steps that it came to, the signal that killed it (0: none), what its work gave."""

    steps: tuple[str, ...]
    signal: int
    result: Any = None


def run(work: Callable[[], Any], at_step: AtStep | None = None) -> Ended:
    """Do `work` in a child. RuntimeError with its traceback for what it raises."""
    steps_read, steps_write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests left; none of them is needed
        pid = os.fork()
    if not pid:
        os.close(steps_read)
        _child(work, at_step, steps_write)
    os.close(steps_write)
    with os.fdopen(steps_read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    names, _, rest = said.partition(b"\0")
    steps = tuple(names.decode().splitlines())
    if os.WIFSIGNALED(status):
        return Ended(steps, os.WTERMSIG(status))
    fine, result = pickle.loads(rest)
    if not fine:
        raise RuntimeError(f"after {steps}:\n{result}")
    return Ended(steps, 0, result)


def _child(work: Callable[[], Any], at_step: AtStep | None, pipe: int) -> None:
    """Ends the process."""
    try:
        logger.remove()
        count = 0

        def reach(name: str) -> None:
            nonlocal count
            os.write(pipe, f"{name}\n".encode())
            number, count = count, count + 1
            if at_step is not None:
                at_step(number, name)

        failpoint.reach = reach
        try:
            said = True, work()
        except BaseException:
            said = False, traceback.format_exc()
        with suppress(BaseException):
            os.write(pipe, b"\0" + pickle.dumps(said))
    finally:
        sys.stdout.flush()
        os._exit(0)


def kill_at(step: int) -> AtStep:
    """Killed when it is about to make this step, without a chance to clean up."""

    def at_step(number: int, _: str) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return at_step


def fail(name: str, store: str) -> None:
    """What the system says at this step when the disk fails there. Nothing, where no system call can fail."""
    if name.endswith("committed"):
        return
    if name.startswith("ledger") or (store in ("sqlite", "kilo") and name in ("begin", "compare", "write", "commit")):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error
    raise OSError(errno.EIO, os.strerror(errno.EIO))
