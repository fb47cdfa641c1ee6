"""Whose process is at the other end of a connection: on real sockets, and where the system does not say."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from recoveryd.clients import connection_owner
from recoveryd.clients.connection_owner import Owner, owner
from recoveryd.clients.http import call

linux = pytest.mark.skipif(sys.platform != "linux", reason="its tables are Linux's own")
SOON = 0.1


@contextmanager
def connected(
    host: str = "127.0.0.1", *, to: str = "", defer: bool = False, accept: bool = True
) -> Iterator[socket.socket]:
    """A connection to a listener on `host`, reached at `to`; `defer`: it is accepted once something was sent."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if defer:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        listener.bind((host, 0))
        listener.listen()
        with socket.create_connection((to or host, listener.getsockname()[1]), 2) as sock:
            if accept and not defer:
                taken, _ = listener.accept()
                with taken:
                    yield sock
            else:
                yield sock


def soon() -> float:
    return time.monotonic() + SOON


@pytest.mark.parametrize(
    ("host", "to"), [("127.0.0.1", ""), ("0.0.0.0", "127.0.0.1"), ("::1", ""), ("::", "127.0.0.1")]
)
def test_a_process_of_this_user_and_of_another(host: str, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(host, to=to) as sock:
        assert owner(sock, soon()) is Owner.SELF
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        assert owner(sock, soon()) is (Owner.OTHER if sys.platform == "linux" else Owner.UNKNOWN)


@linux
def test_an_address_of_ipv4_within_ipv6() -> None:
    with connected(to="::ffff:127.0.0.1") as sock:
        assert owner(sock, soon()) is Owner.SELF


@linux
def test_a_listener_that_accepts_only_what_speaks_first_is_known_by_the_socket_that_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenCode 1.18 is one (seen): to wait until it accepts would be to wait for ever."""
    with connected(defer=True) as sock:
        assert owner(sock, soon()) is Owner.SELF
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        assert owner(sock, soon()) is Owner.OTHER


@linux
def test_a_connection_that_nobody_has_taken_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system says that it is root's then."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with connected(accept=False) as sock, pytest.raises(TimeoutError):
        owner(sock, soon())


@linux
def test_who_is_waited_for_is_known_once_he_takes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[socket.socket] = []
        late = threading.Timer(SOON, lambda: taken.append(listener.accept()[0]))
        late.start()
        with socket.create_connection(listener.getsockname()) as sock:
            assert owner(sock, time.monotonic() + 5) is Owner.SELF
        late.join()
        taken[0].close()


@linux
def test_where_the_tables_cannot_be_read_or_do_not_have_it_nobody_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forwarded port, say: the process that gets it has a connection with other ends."""
    with connected() as sock:
        for text in (None, "  sl  local_address rem_address   st\n"):
            table = tmp_path / "tcp"
            if text is not None:
                table.write_text(text)
            monkeypatch.setattr(connection_owner, "_TABLES", (table, tmp_path / "tcp6"))
            assert owner(sock, soon()) is Owner.UNKNOWN


@linux
def test_in_a_user_namespace_everybody_else_has_one_uid_which_is_nobodys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected() as sock:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        monkeypatch.setattr(connection_owner, "_in_tables", lambda *_: connection_owner._Row(65534, taken=True))
        assert owner(sock, soon()) is Owner.OTHER


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_other_systems_look_at_this_users_processes(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert psutil.Process().uids().effective == os.geteuid(), "it is loaded before it is told a lie"
    monkeypatch.setattr(sys, "platform", "darwin")
    with connected(host) as sock:
        assert owner(sock, soon()) is Owner.SELF
    with connected(host, accept=False) as sock:
        assert owner(sock, soon()) is Owner.UNKNOWN


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_not_a_byte_is_sent_to_who_is_not_let_in(scheme: str) -> None:
    """Not even the hello of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        answer = call(f"{scheme}://127.0.0.1:{port}", "GET", "/x", deadline=soon(), admit=lambda *_: False)
        taken, _ = listener.accept()
        with taken:
            assert (answer, taken.recv(1)) == (None, b"")
