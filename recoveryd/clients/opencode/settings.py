"""The section `[opencode]` of the configuration."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from recoveryd.settings import FOLDERS, Folder, Section, written


def _loopback(url: str) -> str:
    """Design: no network but the client's own, on loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or (host != "localhost" and not ip_address(host).is_loopback):
        raise ValueError("elsewhere")
    if parts.port == 0 or parts.username or parts.query or parts.fragment:  # a port that is none raises by itself
        raise ValueError("more than an address")
    return url.rstrip("/")


def _user(text: str) -> str:
    """What HTTP's basic authentication can say."""
    if ":" in written(text):
        raise ValueError("colon")
    return text


Loopback = Annotated[str, AfterValidator(_loopback)]
User = Annotated[str, AfterValidator(_user)]


class OpencodeSettings(Section):
    """`[opencode]`: where its sessions are, beyond where they usually are, and how to reach a running one."""

    data_dirs: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
    databases: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
    server_url: Loopback | None = Field(
        default=None, description="an http address on this machine, such as http://127.0.0.1:4096"
    )
    username: User | None = Field(default=None, description="the name that goes with the password, without a colon")
    password_file: Folder | None = Field(default=None, description="an absolute path, or one that begins with ~")
