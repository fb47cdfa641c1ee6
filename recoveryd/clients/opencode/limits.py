"""What OpenCode knows of a model's limit, and of its own clearing, beside what it stores: its log, its settings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode import compactions, error_record, token_usage
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.store import Store
from recoveryd.core import Failure, RecordedError, Session

LOGGED_BY_MS = 30_000  # 1.18 writes its log some seconds late
_LOGS = 3
_TAIL = 2_000_000  # bytes of the end of a log
_SAME_TURN_MS = 120_000
_TIME = re.compile(r"timestamp=(\S{10,40})")
_OF_A_REQUEST = re.compile(
    "stream error|APICallError|token|too large|maximum size|maximum allowed number of bytes", re.IGNORECASE
)
_LINE = 8_000  # characters of a line
_OFF = re.compile(r'"prune"\s*:\s*false')
_NAMES = ("opencode.json", "opencode.jsonc", "config.json")
_LONGEST = 1_000_000  # bytes of a configuration


def logged_refusal(store: Store, session: Session, failure: Failure) -> RecordedError | None:
    """Find what the provider said of the conversation in OpenCode's log, of this turn, whatever that is about.

    1.18 stores no words of what it takes for an overflow. What is said of the summary that it then asks for, and of
    the title, is about other requests. So is what was said before an answer, but of what a failed compaction hides
    since: that was not sent with it.
    """
    folder = store.home / "log"
    try:
        logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)[-_LOGS:]  # Kilo writes two at once
    except OSError:
        return None
    newest = max(filter(None, (_newest_error(read_end(log, _TAIL), failure) for log in logs)), key=_when, default="")
    if not newest or _when(newest) < failure.time - _SAME_TURN_MS:
        return None
    settled = _answered_since(session, failure, _when(newest)) and not compactions.hidden_messages(session)[1]
    return None if settled else error_record.read(newest[:_LINE])


def _answered_since(session: Session, failure: Failure, ms: float) -> bool:
    good = {usage.message_id for usage in token_usage.usages(session, failure)}
    return any(message.id in good and message.completed > ms for message in session.messages)


def _newest_error(log: str, failure: Failure) -> str:
    """Return the newest line of a log about an error of the session's conversation; "" where there is none."""
    for line in reversed(log.splitlines()):
        of_another = any(said in line for said in ("agent=compaction", "agent=title", failure.message))
        if failure.session in line and not of_another and "error" in line and _OF_A_REQUEST.search(line):
            return line
    return ""


def _when(line: str) -> float:
    """Tell when a line was logged, in ms since the epoch; 0 where it does not say."""
    found = _TIME.search(line)
    try:
        return datetime.fromisoformat(found[1]).timestamp() * 1000 if found else 0
    except ValueError:
        return 0


def context_limit(server: OpencodeServer, store: Store, failure: Failure, directory: str) -> int | None:
    """Return the limit of the model in tokens by the settings of a client that listens; 0 where none says, None where
    one did not answer in time.
    """
    found = server.settings(store.id, failure, directory, "/config/providers")
    if found is None:
        return None
    providers = found.get("providers")
    for provider in providers if isinstance(providers, list) else ():
        if isinstance(provider, Mapping) and provider.get("id") == failure.provider:
            limit = _at(provider, "models", failure.model, "limit").get("context")
            return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else 0
    return 0


def clears_by_settings(server: OpencodeServer, store: Store, failure: Failure, directory: str) -> bool | None:
    """Whether OpenCode's settings let it clear old outputs, as 1.1 and 1.2 do unless told not to; None: none tells."""
    found = server.settings(store.id, failure, directory, "/config") or {}
    if found:
        return _at(found, "compaction").get("prune") is not False
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"
    folders = [config, *([Path(directory), Path(directory) / ".opencode"] if directory.startswith("/") else [])]
    off = any(_OFF.search(read_end(folder / name, _LONGEST)) for folder in folders for name in _NAMES)
    return False if off else None


def _at(found: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the object at a path of keys; an empty one where there is none."""
    value: object = found
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def read_end(path: Path, most: int) -> str:
    """Read the end of a regular file; "" of anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return ""
        file.seek(max(0, about.st_size - most))
        return file.read(most).decode("utf-8", "replace")
