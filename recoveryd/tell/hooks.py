"""The user's own commands around a recovery (`[hooks]`): argv without a shell, the event as JSON on stdin.

`on_abort` is waited for, a moment, before the session is touched; `on_complete` runs beside the daemon, in order. What
a command prints goes to the log. One that fails, hangs or is not there changes nothing.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from loguru import logger

from recoveryd.core import Event, clean
from recoveryd.settings import Hooks
from recoveryd.tell.callbacks import Callbacks, safely
from recoveryd.tell.event_words import log_prefix

ABORT_LIMIT_S = 2.0  # a repair waits for it
COMPLETE_LIMIT_S = 30.0
_CLOSING_S = 2.0
_LINES, _WIDTH = 20, 300  # of what a command prints
_WAITING = 1000


class Commands:
    """Runs the user's commands of `hooks`. No thread before the first event."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None  # that runs beside the daemon

    @property
    def callbacks(self) -> Callbacks:
        """The commands as `Callbacks`."""
        return Callbacks(
            on_abort=self._on_abort if self._hooks.on_abort else None,
            on_complete=self._on_complete if self._hooks.on_complete else None,
        )

    def close(self, timeout: float = _CLOSING_S) -> None:
        """Wait up to `timeout` seconds for the commands that wait. What still runs is killed, the rest is not run; it
        is logged.
        """
        if self._thread is None:
            return
        with suppress(queue.Full):
            self._events.put_nowait(None)
        self._thread.join(timeout)
        left = 0
        with suppress(queue.Empty):
            while True:
                left += self._events.get_nowait() is not None
        self._events.put_nowait(None)
        running = self._process
        if running is not None and running.poll() is None:
            _kill(running)
        if left:
            logger.warning("on_complete was not run for the last {} recoveries: recoveryd is stopping", left)

    def _on_abort(self, session: str) -> None:
        run_hook("on_abort", self._hooks.on_abort, {"event": "abort", "session": session}, ABORT_LIMIT_S)

    def _on_complete(self, event: Event) -> None:
        try:
            self._events.put_nowait(event_document(event))
        except queue.Full:
            logger.warning("{}: on_complete was not run: {} wait for it already", log_prefix(event), _WAITING)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hooks", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            command = self._hooks.on_complete
            safely(
                "the command of on_complete", run_hook, "on_complete", command, event, COMPLETE_LIMIT_S, self._started
            )
            self._process = None

    def _started(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process


def event_document(event: Event) -> dict[str, Any]:
    """Write an event as a command of a hook gets it: what `history --json` says of it, and nothing of
    the conversation.
    """
    return {
        "event": "complete",
        "id": event.id,
        "store": event.store,
        "session": event.session,
        "title": event.title,
        "message": event.message,
        "kind": event.kind,
        "outcome": event.outcome,
        "detail": event.detail,
        "actions": list(event.actions),
        "seconds": round(event.seconds, 3),
    }


def run_hook(
    name: str,
    argv: Sequence[str],
    event: Mapping[str, Any],
    limit: float,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda _: None,
) -> bool:
    """Run one command to its end, `limit` seconds at most; whether it ended with 0. Raises nothing.

    What is logged says which session and which recovery it was run for.

    Files stand for the pipes, so neither a command that does not read nor a child it left behind can hold us up.
    """
    about = " ".join(str(event[key]) for key in ("session", "id", "outcome") if key in event)
    name = f"{about}: {name}" if about else name
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        try:
            given.write(json.dumps(event, ensure_ascii=True).encode() + b"\n")
            given.seek(0)
            process = subprocess.Popen(  # noqa: S603  that is what the user's own configuration says to run
                list(argv), stdin=given, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
            )
        except (OSError, ValueError) as error:
            logger.warning("{} could not be started ({}): {}", name, clean(argv[0], 100), error)
            return False
        started(process)
        try:
            code = process.wait(limit)
            ended = "" if code == 0 else f"ended with {code}" if code > 0 else f"was ended by signal {-code}"
        except subprocess.TimeoutExpired:
            ended = f"did not end in {limit:g} seconds and was killed"
            _kill(process)
            process.wait()
        _log(name, printed)
    if ended:
        logger.warning("{} ({}) {}; nothing else depends on it", name, clean(argv[0], 100), ended)
    return not ended


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with the children that stayed in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _log(name: str, printed: IO[bytes]) -> None:
    printed.seek(0)
    lines = printed.read(_LINES * _WIDTH).decode("utf-8", "replace").splitlines()
    for line in lines[:_LINES]:
        if said := clean(line, _WIDTH):
            logger.info("{}: {}", name, said)
