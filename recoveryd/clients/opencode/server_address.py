"""Find where clients listen, or have our plugin, and make one call to one of them: in time, and with the password only
where it belongs.
"""

from __future__ import annotations

import base64
import os
import socket
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loguru import logger

from recoveryd.clients.connection_owner import Owner, owner
from recoveryd.clients.opencode import plugin_mailbox, processes
from recoveryd.clients.opencode.processes import Listener
from recoveryd.clients.opencode.settings import OpencodeSettings

if TYPE_CHECKING:
    from recoveryd.clients.http import Answer

DEFAULT_URL = "http://127.0.0.1:4096"
_PLUGIN = "plugin:"  # begins the address of a client that is reached through its plugin
_REMEMBERED_S = 10.0
_HUNG_S = 5.0  # who did not answer in time is not asked again before, not even by who has patience if that was lost


class LocalServers:
    """Calls the client that is configured, else those at the usual address and of the user's own processes.

    Beside them those of this name (`client`) that have our plugin and do not listen: a plain TUI. Without `by_port`
    these alone: what listens is another client.
    """

    def __init__(self, settings: OpencodeSettings, client: str = "opencode", *, by_port: bool = True) -> None:
        self._client = client
        self._by_port = by_port
        self._configured = settings.server_url
        self._password_file = settings.password_file
        self._found: tuple[float, list[Listener]] = (float("-inf"), [])
        self._looking = threading.Lock()  # toasts have a thread of their own
        self._hung: dict[tuple[str, bool], float] = {}  # addresses, and whether with patience: until when
        self._said: set[str] = set()
        self._username = settings.username
        self.shut_out: dict[str, Owner] = {}  # addresses to which nothing was said, since who listens is not the user

    def reached(self) -> list[Listener]:
        """List where a client may be, the usual address first. Of those that listen, what was found a moment ago still
        holds.
        """
        return self.listening() + self._with_plugin()

    def listening(self) -> list[Listener]:
        """List where a client may listen."""
        return [Listener(self._configured)] if self._configured else self.found()

    def _with_plugin(self) -> list[Listener]:
        """List the clients that have the plugin, but for those that are called by their port: nobody is told twice."""
        having = plugin_mailbox.loaded(self._client)
        if not having:
            return []  # so no process is looked for in vain
        plugin_mailbox.prune()
        port = urlsplit(self._configured).port if self._configured else None
        by_port = {known.pid for known in self.found() if not self._configured or urlsplit(known.url).port == port}
        return [Listener(_PLUGIN + o.key, o.directory, pid=o.pid) for o in having if o.pid not in by_port]

    def of_process(self, pid: int) -> list[Listener]:
        """List where this process can be asked."""
        return [known for known in [*self.found(), *self._with_plugin()] if known.pid == pid]

    def found(self) -> list[Listener]:
        """List where a client listens, whatever is configured."""
        if not self._by_port:
            return []
        with self._looking:
            looked, found = self._found
            if time.monotonic() - looked > _REMEMBERED_S:
                known = processes.listeners()
                usual = [k for k in known if k.url == DEFAULT_URL] or [Listener(DEFAULT_URL)]
                found = usual + [k for k in known if k.url != DEFAULT_URL]
                self._found = time.monotonic(), found
        return found

    def ask(
        self,
        url: str,
        method: str,
        path: str,
        *,
        deadline: float,
        patient: bool = False,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer | None:
        """Make one call; None when no answer came by `deadline` (`time.monotonic()`).

        An address that did not answer is not called for a while; a `patient` call still goes to one that was too slow
        for other calls.
        """
        if time.monotonic() < max(self._hung.get((url, True), 0), 0 if patient else self._hung.get((url, False), 0)):
            return None
        answer = self._call(url, method, path, deadline, query, body)
        if answer is None and time.monotonic() >= deadline:
            self._hung[url, patient] = time.monotonic() + _HUNG_S
        return answer

    def hung(self, url: str) -> bool:
        """Whether it was too slow for a patient call of late."""
        return time.monotonic() < self._hung.get((url, True), 0)

    def _call(
        self,
        url: str,
        method: str,
        path: str,
        deadline: float,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
    ) -> Answer | None:
        if url.startswith(_PLUGIN):
            key = url.removeprefix(_PLUGIN)
            return plugin_mailbox.ask(key, method, path, deadline=deadline, query=query, body=body)
        from recoveryd.clients.http import call  # late: an idle daemon calls nobody, and needs no half megabyte for it

        admit, headers = partial(self._admits, url), self._headers(url)
        return call(url, method, path, deadline=deadline, admit=admit, query=query, body=body, headers=headers)

    def _admits(self, url: str, sock: socket.socket, deadline: float) -> bool:
        """Whether the process that has taken this connection is the user's own: else nothing is sent to it."""
        whose = owner(sock, deadline)
        if whose is Owner.SELF:
            self.shut_out.pop(url, None)
            return True
        self.shut_out[url] = whose
        # Another user's client at the usual address is no news; at the address that is configured it is.
        self._say_once(f"{not_asked(url, whose)}.", "WARNING" if url == self._configured else "INFO")
        return False

    def _headers(self, url: str) -> dict[str, str]:
        """Make the headers. The password goes to the address that is configured and to the user's own clients, to
        nobody else.
        """
        own = url == self._configured or any(known.url == url and known.home for known in self._found[1])
        password = self._password() if own else ""
        if not password:
            return {}
        return {
            "Authorization": "Basic "
            + base64.b64encode(f"{self._user()}:{password}".encode("utf-8", "surrogateescape")).decode()
        }

    def _password(self) -> str:
        if self._password_file is None:
            return os.environ.get("OPENCODE_SERVER_PASSWORD", "")
        try:
            return self._password_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._say_once(_unreadable(self._password_file, error))
            return ""

    def _user(self) -> str:
        return self._username or os.environ.get("OPENCODE_SERVER_USERNAME") or "opencode"

    def _say_once(self, text: str, level: str = "WARNING") -> None:
        if text not in self._said:
            self._said.add(text)
            logger.log(level, "{}", text)


def not_asked(url: str, whose: Owner) -> str:
    """Tell what is wrong with who listens at an address, so that it is not asked, as a sentence without its full
    stop.
    """
    if whose is Owner.OTHER:
        return f"At {url} a process of another user listens: nothing is said to it"
    return f"Whose process listens at {url} can't be told: nothing is said to it"


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
    return f"The password file {path} can't be read ({why}): the client is asked without a password."
