"""The section `[opencode]` of the configuration."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from recoveryd.settings import FOLDERS, Folder, Section, not_blank


def _loopback(url: str) -> str:
    """Allow loopback alone (design): no network but the client's own, on loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or (host != "localhost" and not ip_address(host).is_loopback):
        raise ValueError("elsewhere")
    if parts.port == 0 or parts.username or parts.query or parts.fragment:  # a port that is none raises by itself
        raise ValueError("more than an address")
    return url.rstrip("/")


def _user(text: str) -> str:
    """Check what HTTP's basic authentication can say."""
    if ":" in not_blank(text):
        raise ValueError("colon")
    return text


def _line(text: str) -> str:
    """Check what stands in a title and in a line of the log."""
    if not not_blank(text).isprintable() or len(text) > 40:
        raise ValueError("no line")
    return text.strip()


Loopback = Annotated[str, AfterValidator(_loopback)]
User = Annotated[str, AfterValidator(_user)]


class NamedStore(Section):
    """An entry of `[[opencode.stores]]`: a database of OpenCode's tables, and what people call the client."""

    path: Folder = Field(description="an absolute path, or one that begins with ~")
    name: Annotated[str, AfterValidator(_line)] = Field(description="the name of the client, a line that is not blank")


class OpencodeSettings(Section):
    """`[opencode]`: where its sessions are, beyond where they usually are, and how to reach a running one."""

    data_dirs: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
    databases: tuple[Folder, ...] = Field(default=(), description=FOLDERS)
    stores: tuple[NamedStore, ...] = Field(default=(), description="a list of tables, each with a path and a name")
    server_url: Loopback | None = Field(
        default=None, description="an http address on this machine, such as http://127.0.0.1:4096"
    )
    username: User | None = Field(default=None, description="the name that goes with the password, without a colon")
    password_file: Folder | None = Field(default=None, description="an absolute path, or one that begins with ~")
