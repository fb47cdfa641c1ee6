"""The running client over HTTP, on this machine alone. All of it is optional: a plain TUI does not listen at all.

Held to OpenCode 1.1.53 and 1.18.33. What runs in a session, and who is shown a toast, is a matter of one folder in
one process: every question names the folder of its session.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loguru import logger

from recoveryd import processes
from recoveryd.http_call import Answer, call
from recoveryd.model import Failure
from recoveryd.processes import Listener
from recoveryd.settings import OpenCode

DEFAULT_URL = "http://127.0.0.1:4096"
LIMIT_S = 2.0  # for all that an abort, a version or a toast takes
_CALL_S = 0.5
_PROMPT_S = 2.0  # the first prompt of a folder took 0.5 s (measured); whether one cut off arrived can't be told
_REMEMBERED_S = 10.0
_HUNG_S = 30.0  # who did not answer in time is not asked again before
_TOAST_MS = 10_000
_BUSY = ("busy", "retry")


class Asked(StrEnum):
    """What became of a prompt."""

    NOBODY = "nobody"  # no client that listens has this session
    BUSY = "busy"  # a turn of it runs, or the client does not say
    SENT = "sent"
    REFUSED = "refused"
    UNSURE = "unsure"  # no answer came: it may have arrived


class Client:
    """The clients that listen: the one that is configured, else the usual address and the user's own processes."""

    def __init__(self, settings: OpenCode) -> None:
        self._configured = settings.server_url
        self._password_file = settings.password_file
        self._said = ""
        self._found: tuple[float, list[Listener]] = (float("-inf"), [])
        self._versions: dict[str, tuple[float, tuple[int, ...] | None]] = {}  # by session
        self._hung: dict[str, float] = {}  # addresses, until when

    def version(self, session: str, directory: str) -> tuple[int, ...] | None:
        """Of the client that has this session, (1, 18, 33); None when none answers."""
        asked, version = self._versions.get(session, (float("-inf"), None))
        now = time.monotonic()
        if now - asked > _REMEMBERED_S:
            deadline = now + LIMIT_S
            told = (self._health(url, deadline) for url in self._having(session, directory, None, deadline))
            version = next((v for v in told if v), None)
            self._versions = {s: known for s, known in self._versions.items() if now - known[0] <= _REMEMBERED_S}
            self._versions[session] = now, version
        return version

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        """Stop the turn that runs in the session of `failure`, if one does and `still` says so just before.

        An abort kills whatever runs, so `still` is to tell that the store has nothing newer than the failure. True if
        a client was asked: it may write for a moment.
        """
        deadline = time.monotonic() + LIMIT_S
        asked = False
        for url in self._having(failure.session, directory, failure, deadline):
            if self._status(url, failure.session, directory, deadline) in _BUSY and still():
                path = f"/session/{_quoted(failure.session)}/abort"
                self._ask(url, "POST", path, deadline, query=_of(directory))
                asked = True
        return asked

    def prompt(
        self, failure: Failure, directory: str, body: Mapping[str, Any], sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        """Prompt the session of `failure` if it is idle, and do not wait for the turn. `sending` is called just before.

        Also returns what there is to say. `SENT` is only the client's word: 1.1 says so for a session that is not
        there, and both for an agent that is not.
        """
        deadline = time.monotonic() + LIMIT_S
        having = list(self._having(failure.session, directory, failure, deadline))
        if not having:
            return Asked.NOBODY, "no client that listens has this session"
        if any(self._status(url, failure.session, directory, deadline) != "idle" for url in having):
            return Asked.BUSY, "the client is at work in this session"
        sending()
        path, until = f"/session/{_quoted(failure.session)}/prompt_async", time.monotonic() + _PROMPT_S
        answer = self._ask(having[0], "POST", path, until, query=_of(directory), body=body, limit=_PROMPT_S)
        if answer is None:
            return Asked.UNSURE, "the client did not answer"
        if answer.status != 204:
            return Asked.REFUSED, f"the client refused the prompt (HTTP {answer.status})"
        return Asked.SENT, ""

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool:
        """Show a toast in the TUI of each client that has the session; `variant`: info, success, warning or error.

        True if one took it. Whether anybody has a TUI open can't be told: the answer is the same without one.
        """
        deadline = time.monotonic() + LIMIT_S
        body = {"title": title, "message": text, "variant": variant, "duration": _TOAST_MS}
        shown = False
        for url in self._having(failure.session, directory, failure, deadline):
            answer = self._ask(url, "POST", "/tui/show-toast", deadline, query=_of(directory), body=body)
            shown = shown or (answer is not None and answer.status == 200)
        return shown

    def _having(self, session: str, directory: str, failure: Failure | None, deadline: float) -> Iterator[str]:
        """The clients that work in the session's folder and have it; where there are none, another one that has.

        One that is asked about a folder opens it: the others are not asked without need.
        """
        listening = self._listening()
        at_home = [known.url for known in listening if directory and _same(known.home, directory)]
        nobody = True
        for url in at_home:
            if self._has(url, session, directory, failure, deadline):
                nobody = False
                yield url
        if nobody:
            others = (known.url for known in listening if known.url not in at_home)
            yield from islice((u for u in others if self._has(u, session, directory, failure, deadline)), 1)

    def _has(self, url: str, session: str, directory: str, failure: Failure | None, deadline: float) -> bool:
        """Whether a client uses the store that the session is in: it knows when the failed message was made."""
        path = f"/session/{_quoted(session)}"
        told = _object(self._ask(url, "GET", path, deadline, query=_of(directory)))
        if told.get("id") != session or (directory and told.get("directory") != directory):
            return False
        if failure is None:
            return True
        path += f"/message/{_quoted(failure.message)}"
        about = _object(self._ask(url, "GET", path, deadline, query=_of(directory))).get("info")
        times = about.get("time") if isinstance(about, dict) else None
        return isinstance(times, dict) and times.get("created") == failure.time

    def _status(self, url: str, session: str, directory: str, deadline: float) -> str:
        """ "idle", "busy", "retry"; "" when the client does not say."""
        answer = self._ask(url, "GET", "/session/status", deadline, query=_of(directory))
        if answer is None or answer.status != 200 or not isinstance(answer.data, dict):
            return ""
        status = answer.data.get(session, {"type": "idle"})
        told = status.get("type") if isinstance(status, dict) else None
        return told if isinstance(told, str) else ""

    def _health(self, url: str, deadline: float) -> tuple[int, ...] | None:
        told = str(_object(self._ask(url, "GET", "/global/health", deadline)).get("version"))
        try:
            return tuple(int(number) for number in told.split("-")[0].split("."))
        except ValueError:
            return None

    def _listening(self) -> list[Listener]:
        """Where a client may be, the usual address first. What was found a moment ago still holds."""
        if self._configured:
            return [Listener(self._configured)]
        looked, found = self._found
        if time.monotonic() - looked > _REMEMBERED_S:
            known = processes.listeners()
            usual = [k for k in known if k.url == DEFAULT_URL] or [Listener(DEFAULT_URL)]
            found = usual + [k for k in known if k.url != DEFAULT_URL]
            self._found = time.monotonic(), found
        return found

    def _ask(
        self,
        url: str,
        method: str,
        path: str,
        deadline: float,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        limit: float = _CALL_S,
    ) -> Answer | None:
        now = time.monotonic()
        if now < self._hung.get(url, 0):
            return None
        until = min(now + limit, deadline)
        answer = call(url, method, path, deadline=until, query=query, body=body, headers=self._headers(url))
        if answer is None and time.monotonic() >= now + _CALL_S:
            self._hung[url] = time.monotonic() + _HUNG_S
        return answer

    def _headers(self, url: str) -> dict[str, str]:
        """The password goes to the address that is configured and to the user's own processes, to nobody else."""
        own = url == self._configured or any(known.url == url and known.home for known in self._found[1])
        password = self._password() if own else ""
        if not password:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()}

    def _password(self) -> str:
        if self._password_file is None:
            return os.environ.get("OPENCODE_SERVER_PASSWORD", "")
        try:
            return self._password_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._say_once(_unreadable(self._password_file, error))
            return ""

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            logger.warning("{}", text)


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
    return f"The password file {path} can't be read ({why}): the client is asked without a password."


def _object(answer: Answer | None) -> Mapping[str, Any]:
    return answer.object() if answer is not None else {}


def _of(directory: str) -> dict[str, str]:
    return {"directory": directory} if directory else {}


def _quoted(identifier: str) -> str:
    return quote(identifier, safe="")


def _same(home: str, directory: str) -> bool:
    return bool(home) and os.path.realpath(home) == os.path.realpath(directory)
