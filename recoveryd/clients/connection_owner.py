"""Find out whose process is at the other end of a connection within this machine."""

from __future__ import annotations

import os
import socket
import sys
import time
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_ESTABLISHED, _SYN_RECEIVED = 1, 3
_UNMAPPED = 65534  # the uid of everybody whom the user namespace that we run in does not know
_POLL_S, _POLL_AT_MOST_S = 0.001, 0.05

_End = tuple[str, int]  # address and port


class Owner(StrEnum):
    """Who owns the process at the other end of a connection."""

    SELF = "self"  # this user's
    OTHER = "other"
    UNKNOWN = "unknown"  # the system does not say


class _Row(NamedTuple):
    """The other end as the system has it. `taken`: `uid` is the user's who gets what is sent."""

    uid: int
    taken: bool


def owner(sock: socket.socket, deadline: float) -> Owner:
    """Tell whose process gets what is sent over a connection on this machine. Send nothing over it before.

    Asked is about the connection itself, which can't change hands as a port does when its process ends. Raises
    TimeoutError when nobody has taken it by `deadline` (`time.monotonic()`).
    """
    here, there = sock.getsockname()[:2], sock.getpeername()[:2]
    look, pause = (_in_tables if sys.platform == "linux" else _in_processes), _POLL_S
    while True:
        try:
            found = look(there, here)
        except OSError:
            return Owner.UNKNOWN
        if found is not None and found.taken:
            return Owner.SELF if found.uid == os.geteuid() != _UNMAPPED else Owner.OTHER
        if time.monotonic() + pause >= deadline:
            break
        time.sleep(pause)
        pause = min(2 * pause, _POLL_AT_MOST_S)
    if found is not None:
        raise TimeoutError("nobody takes the connection")
    return Owner.UNKNOWN  # a port that the system forwards, say


def _in_tables(local: _End, remote: _End) -> _Row | None:
    """Find the connection that has these ends, in Linux's tables (proc_pid_net(5)). OSError: they can't be read.

    Until its process accepts it, the row of an established one has no inode, and root's uid. Under
    TCP_DEFER_ACCEPT, as OpenCode 1.18 has it, it is accepted only once something was sent: the row has the uid of the
    socket that listens then, and what is sent goes to that one or to nobody.
    """
    wanted = [(_hex(*local, mapped=mapped), _hex(*remote, mapped=mapped)) for mapped in (False, True)]
    for table in _TABLES[: 2 if _TABLES[1].exists() else 1]:
        with table.open(encoding="ascii") as lines:
            for line in lines:
                fields = line.split()
                if (fields[1], fields[2]) in wanted:
                    state, uid, inode = int(fields[3], 16), int(fields[7]), fields[9]
                    return _Row(uid, state == _SYN_RECEIVED or (state == _ESTABLISHED and inode != "0"))
    return None


def _hex(address: str, port: int, *, mapped: bool) -> str:
    """`0100007F:1000` for 127.0.0.1:4096: words of four bytes, each as a number of this machine."""
    packed = _plain(address).packed
    if mapped and len(packed) == 4:
        packed = bytes(10) + b"\xff\xff" + packed  # as a listener on :: has it
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"


def _in_processes(local: _End, remote: _End) -> _Row | None:
    """Find the connection among this user's own processes, for systems where nobody may look into others'."""
    import psutil

    for process in psutil.process_iter():
        try:
            if process.uids().effective != os.geteuid():
                continue
            for connection in process.net_connections("tcp"):
                if connection.raddr and (_end(connection.laddr), _end(connection.raddr)) == (_end(local), _end(remote)):
                    return _Row(os.geteuid(), taken=True)
        except (psutil.Error, OSError):
            continue  # it ended, or may not be looked at
    return None


def _end(end: _End) -> tuple[IPv4Address | IPv6Address, int]:
    return _plain(end[0]), end[1]


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Return an address without the IPv6 around one of IPv4."""
    parsed = ip_address(address)
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed
