"""The port of a plugin: a small program of ours that a client loads into itself, to tell and ask what only it can."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_SIGN = "From `recoveryd install`, which writes this file anew. Below this line, sha256"


@dataclass(frozen=True, slots=True)
class Caller:
    """How a plugin starts recoveryd (`command`, and what is to be in its environment), and where its `state` is."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    state: Path


class Plugin(Protocol):
    """The plugin of one client. Raises nothing."""

    @property
    def path(self) -> Path | None:
        """Where its file belongs, be it there or not; None where this user has no such client."""

    def text(self, caller: Caller) -> str:
        """Write the file, sealed."""

    def fits(self, text: str, caller: Caller) -> bool:
        """Whether a text of ours is this version's, for this state, and starts a program that is there."""

    def loaded(self) -> Sequence[bool]:
        """List those that running clients have loaded now: whether each is this version's."""

    def missing(self) -> Sequence[str]:
        """List the calls that a running client no longer has."""

    def silent(self, since: float) -> Sequence[int]:
        """List the processes of clients that began after `since` (seconds since the epoch) and have not loaded it.

        Not those that began a moment ago.
        """


def sealed(text: str, comment: str) -> str:
    """Put the first line before the text of any client's plugin: whose it is, and by its checksum whether somebody
    changed it since.
    """
    return f"{comment} {_SIGN} {checksum(text)}\n{text}"


def checksum(text: str) -> str:
    """Return the checksum that the first line of any client's plugin has of the text below it."""
    return hashlib.sha256(text.encode()).hexdigest()


def seal(text: str) -> str:
    """Check the first line of any client's plugin: return its checksum where nobody changed the text, of whatever
    version; "" for any other text.
    """
    first, _, rest = text.partition("\n")
    return checksum(rest) if _SIGN in first and first.endswith(f" {checksum(rest)}") else ""
