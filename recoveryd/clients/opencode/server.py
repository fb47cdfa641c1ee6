"""The running client over HTTP, on this machine alone, or through our plugin: a plain TUI does not listen at all.

Held to OpenCode 1.1.53 and 1.18.33. What runs in a session, and who is shown a toast, is a matter of one folder in
one process: every question names the folder where the client worked on its session. That is the session's own, but for
1.1 and 1.2 that were started in another one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from recoveryd.clients.client import Asked, Prompt, Rest
from recoveryd.clients.connection_owner import Owner
from recoveryd.clients.opencode.processes import Listener
from recoveryd.clients.opencode.prompting import prompt_body
from recoveryd.clients.opencode.server_address import LocalServers
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core import Failure

if TYPE_CHECKING:
    from recoveryd.clients.http import Answer

LIMIT_S, CALL_S = 2.0, 0.5  # for all that an abort or a version takes, and for each call of it
# To prompt is worth more patience: a 1.18 at work on several sessions needs a second for an answer (measured), and of a
# call that was cut off nobody knows whether it arrived.
PROMPT_LIMIT_S, PROMPT_CALL_S = 6.0, 2.0
_REMEMBERED_S = 10.0
_TOAST_MS = 10_000
_BUSY = ("busy", "retry")
Version = tuple[int, ...]


class OpencodeServer:
    """Calls the OpenCodes that listen: the `Server` of OpenCode. Raises nothing; without one, nothing happens."""

    def __init__(self, settings: OpencodeSettings, client: str = "opencode", *, by_port: bool = True) -> None:
        """`client`: whose plugins are asked. `by_port`: OpenCode's processes that listen, too."""
        self._servers = LocalServers(settings, client, by_port=by_port)
        self._versions: dict[tuple[str, str], tuple[float, tuple[Version, ...]]] = {}  # by store and session

    def prepare(self) -> None:
        """Look for clients now, so that it need not be done when one is wanted."""
        self._servers.reached()

    def versions(self, store: str, session: str, directory: str) -> tuple[Version, ...]:
        """List the versions of the clients that have this session, ((1, 18, 33),); none when nobody answers. `store`:
        its path.
        """
        key, now = (store, session), time.monotonic()
        asked, versions = self._versions.get(key, (float("-inf"), ()))
        if now - asked > _REMEMBERED_S:
            talk = _Talk(self._servers, store, session, directory, None, now + LIMIT_S)
            versions = tuple(dict.fromkeys(filter(None, map(talk.version, talk.having()))))
            self._versions = {s: known for s, known in self._versions.items() if now - known[0] <= _REMEMBERED_S}
            self._versions[key] = now, versions
        return versions

    def idle(self, pid: int, session: str, directories: Collection[str]) -> bool:
        """Whether this process listens, and says that nothing runs in the session in any of the folders, nor its own.

        What runs is a matter of the folder that it was asked to run in.
        """
        found = self._servers.of_process(pid)
        deadline = time.monotonic() + LIMIT_S
        asked = [
            _Talk(self._servers, "", session, directory, None, deadline).status(known.url)
            for known in found[:1]
            for directory in {*directories, known.home}
        ]
        return bool(asked) and set(asked) == {"idle"}

    def listening_versions(self, store: str = "") -> tuple[Version, ...]:
        """List the versions of the clients that listen and may use the store at this path ("": any), each once, oldest
        first.
        """
        talk = _Talk(self._servers, "", "", "", None, time.monotonic() + LIMIT_S)
        listening = [known for known in self._servers.reached() if not store or known.may_have(store)]
        return tuple(sorted({version for known in listening if (version := talk.version(known.url))}))

    def shut_out(self) -> dict[str, Owner]:
        """Return the addresses that were not called, since who listens there is not this user, or may not be."""
        return dict(self._servers.shut_out)

    def has(self, failure: Failure, directory: str) -> bool:
        """Whether a client that listens has the session of `failure`."""
        talk = _Talk(self._servers, failure.store, failure.session, directory, failure, time.monotonic() + LIMIT_S)
        return any(True for _ in talk.having())

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        """Stop the turn that runs in the session of `failure`, if one does and `still` says so just before.

        An abort kills whatever runs, so `still` is to tell that the store has nothing newer than the failure. True if
        a client was asked: it may write for a moment.
        """
        deadline = time.monotonic() + LIMIT_S
        talk = _Talk(self._servers, failure.store, failure.session, directory, failure, deadline)
        asked = False
        for url in talk.having():
            if talk.status(url) in _BUSY and still():
                talk.ask(url, "POST", f"{talk.path}/abort")
                asked = True
        return asked

    def bring_to_rest(self, failure: Failure, directory: str, still: Callable[[], bool]) -> Rest:
        """Ask each client that runs a turn in the session of `failure` to stop it, if `still` says so just before.

        May take seconds: a client at work is slow to answer.
        """
        talk = self._patiently(failure, directory)
        found = {url: talk.status(url) for url in talk.having()}
        busy = [url for url, status in found.items() if status in _BUSY]
        if busy and still():
            for url in busy:
                talk.ask(url, "POST", f"{talk.path}/abort")
            return Rest.ASKED
        return Rest.IDLE if set(found.values()) == {"idle"} else Rest.UNKNOWN

    def prompt(
        self, failure: Failure, directory: str, how: Prompt, text: str, recovery: str, sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        """Prompt the session of `failure` if it is idle, and do not wait for the turn. `sending` is called just before.

        Also returns what there is to say. `SENT` is only the client's word: 1.1 says so for a session that is not
        there, and both for an agent that is not.
        """
        talk = self._patiently(failure, directory)
        having = sorted(talk.having(), key=talk.ran, reverse=True)
        if not having:
            return Asked.NOBODY, "no client that listens has this session"
        if any(talk.status(url) != "idle" for url in having):
            return Asked.BUSY, "the client is at work in this session"
        sending()
        answer = talk.ask(having[0], "POST", f"{talk.path}/prompt_async", prompt_body(how, text, recovery))
        if answer is None:
            return Asked.UNSURE, "the client did not answer"
        if answer.status != 204:
            return Asked.REFUSED, f"the client refused the prompt (HTTP {answer.status})"
        return Asked.SENT, ""

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool | None:
        """Show a toast in the TUI of each client that has the session; `variant`: info, success, warning or error.

        True if one took it, None if none was asked and one that may have the session is too slow to say so. Whether
        anybody has a TUI open can't be told: the answer is the same without one. May take seconds, as a prompt may.
        """
        talk = self._patiently(failure, directory)
        # 1.18 keeps a title for the next toast that has none: the client's own errors would stand under ours (seen).
        body = {"title": "", "message": f"{title}\n\n{text}", "variant": variant, "duration": _TOAST_MS}
        answers = [talk.ask(url, "POST", "/tui/show-toast", body) for url in talk.having()]
        if not answers and self._slow(failure.store):
            return None
        return any(answer is not None and answer.status == 200 for answer in answers)

    def settings(self, store: str, failure: Failure, directory: str, path: str) -> Mapping[str, Any] | None:
        """Return what a client that has the session of `failure` says at `path` of its settings; empty where none has
        it, None where one that may have it did not answer. May take seconds: a plan hangs on it, and the first answer
        takes a client that is at work longest.
        """
        asked, deadline = (store, failure.session, directory, None), time.monotonic() + PROMPT_LIMIT_S
        talk = _Talk(self._servers, *asked, deadline, PROMPT_CALL_S, patient=True)
        found = next((found for url in talk.having() if (found := talk.object_at(url, path))), {})
        return found or (None if self._slow(store) else {})

    def _slow(self, store: str) -> bool:
        """Whether a client that may have the store did not answer in time of late."""
        return any(self._servers.hung(known.url) for known in self._servers.reached() if known.may_have(store))

    def _patiently(self, failure: Failure, directory: str) -> _Talk:
        asked, deadline = (failure.store, failure.session, directory, failure), time.monotonic() + PROMPT_LIMIT_S
        return _Talk(self._servers, *asked, deadline, PROMPT_CALL_S, patient=True)


@dataclass(frozen=True, slots=True)
class _Talk:
    """Calls about one session of a store, until `deadline`. `failure`, if given, is what the session has to have in
    it.
    """

    servers: LocalServers
    store: str
    session: str
    directory: str
    failure: Failure | None
    deadline: float
    call_s: float = CALL_S
    patient: bool = False

    @property
    def folder(self) -> str:
        """The folder to ask about: where the client worked on the session last, or its own, if one is there alone."""
        last = (self.failure.folder if self.failure is not None else "") or self.directory
        if last == self.directory:
            return last
        listening = self._listening()
        moved = not _at_home(listening, last) and _at_home(listening, self.directory)
        return self.directory if moved else last

    def _listening(self) -> list[Listener]:
        return [known for known in self.servers.reached() if known.may_have(self.store)]

    @property
    def path(self) -> str:
        return f"/session/{quote(self.session, safe='', errors='replace')}"

    def ask(self, url: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer | None:
        until = min(time.monotonic() + self.call_s, self.deadline)
        query = {"directory": folder} if (folder := self.folder) else {}
        return self.servers.ask(url, method, path, deadline=until, patient=self.patient, query=query, body=body)

    def having(self) -> Iterator[str]:
        """List the clients that work in that folder and have the session; where there are none, another one that has.

        One that is asked about a folder opens it: the others are not asked without need.
        """
        folder = self.folder
        if unquote(folder) != folder:
            return  # 1.1 decodes a folder twice: it would work in another one
        listening = self._listening()
        at_home = _at_home(listening, folder)
        nobody = True
        for url in filter(self._has, at_home):
            nobody = False
            yield url
        if nobody:
            others = (known.url for known in listening if known.url not in at_home)
            yield from islice(filter(self._has, others), 1)

    def status(self, url: str) -> str:
        """Return "idle", "busy", "retry"; "" when the client does not say."""
        answer = self.ask(url, "GET", "/session/status")
        if answer is None or answer.status != 200 or not isinstance(answer.data, dict):
            return ""
        status = answer.data.get(self.session, {"type": "idle"})
        told = status.get("type") if isinstance(status, dict) else None
        return told if isinstance(told, str) else ""

    def ran(self, url: str) -> bool:
        """Whether this client is known to have run a turn of the session: its user looks at it there."""
        return self.object_at(url, self.path).get("ran") is True

    def version(self, url: str) -> tuple[int, ...] | None:
        told = str(self.object_at(url, "/global/health").get("version"))
        try:
            return tuple(int(number) for number in told.split("-")[0].split("."))
        except ValueError:
            return None

    def _has(self, url: str) -> bool:
        """Whether a client uses the store that the session is in: it knows when the failed message was made."""
        told = self.object_at(url, self.path)
        if told.get("id") != self.session or (self.directory and told.get("directory") != self.directory):
            return False
        if self.failure is None:
            return True
        about = self.object_at(
            url, f"{self.path}/message/{quote(self.failure.message, safe='', errors='replace')}"
        ).get("info")
        times = about.get("time") if isinstance(about, dict) else None
        return isinstance(times, dict) and times.get("created") == self.failure.time

    def object_at(self, url: str, path: str) -> Mapping[str, Any]:
        answer = self.ask(url, "GET", path)
        return answer.object() if answer is not None else {}


def _at_home(listening: Iterable[Listener], folder: str) -> list[str]:
    return [known.url for known in listening if folder and _same(known.home, folder)]


def _same(home: str, directory: str) -> bool:
    return bool(home) and os.path.realpath(home) == os.path.realpath(directory)
