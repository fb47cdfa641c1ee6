"""One client, one provider, one daemon: sessions are broken, healed and prompted again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.claude_code.client import Asked, ClaudeCode, ensure, out_of_reach
from tests.e2e.claude_code.shapes import Shape, built
from tests.e2e.daemon import Daemon
from tests.e2e.provider import Provider

AT_ONCE = 8  # commands in one process, each of which may wait a second for its session to be quiet
FURTHER = ("a first prompt more", "a second one", "a third one")


@dataclass
class Broken:
    """A session of a shape: its file, the bytes that were planted and those after the refusal, and what came then."""

    name: str
    session: str
    file: Path
    planted: bytes
    first: Asked
    refused: bytes
    entries: list[dict[str, Any]] = field(default_factory=list)
    healed: bytes = b""
    undo: int = -1
    undone: bytes = b""
    again: list[Asked] = field(default_factory=list)

    def tell(self) -> str:
        """What went wrong, for the message of an assertion."""
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        return f"{self.name}: {[r.refused for r in self.first.requests][-1:]}; {said}; {[a.output for a in self.again]}"


@contextmanager
def client(home: Path) -> Iterator[ClaudeCode]:
    """The client and a strict provider. Raises `UnavailableError`."""
    binary = ensure()
    with Provider() as provider:
        provider.force_when(out_of_reach)
        started = ClaudeCode(binary, home, provider)
        started.projects.mkdir(parents=True)
        yield started


def break_all(there: ClaudeCode, shapes: Mapping[str, Shape]) -> list[Broken]:
    """Plant each shape and prompt it once."""
    broken = []
    for name, shape in shapes.items():
        transcript = built(there.new(), shape)
        file = transcript.write(there.projects)
        first = there.prompt(transcript.session)
        broken.append(Broken(name, transcript.session, file, transcript.raw(), first, file.read_bytes()))
    return broken


def watching(there: ClaudeCode, root: Path) -> Daemon:
    """`recoveryd run` for the user of this client."""
    return Daemon(root / "daemon", root / "data", env={"HOME": str(there.home)})


def heal_all(there: ClaudeCode, daemon: Daemon, broken: Iterable[Broken]) -> None:
    """Wait until the daemon is done with each, take each repair back, have it made again, and prompt on."""
    broken = list(broken)
    found = daemon.wait_settled(one.session for one in broken)
    for one in broken:
        one.entries, one.healed = found.get(one.session, []), one.file.read_bytes()
    healed = [one for one in broken if one.entries and one.entries[0]["outcome"] == "healed"]
    groups = [healed[first : first + AT_ONCE] for first in range(0, len(healed), AT_ONCE)]
    with ThreadPoolExecutor() as pool:  # most of a repair by a command is the second until it is read back
        list(pool.map(lambda some: _take_back(daemon, some), groups))
    for one in broken:
        one.again = [there.prompt(one.session, text) for text in FURTHER]


def _take_back(daemon: Daemon, some: Sequence[Broken]) -> None:
    """Undo each repair, keep what then is stored, and have it made again."""
    for one, code in zip(some, daemon.codes([["undo", one.entries[0]["id"]] for one in some]), strict=True):
        one.undo, one.undone = code, one.file.read_bytes()
    daemon.codes([["scan", "--repair", "--session", one.session] for one in some])


def lines(raw: bytes) -> list[dict[str, Any]]:
    """The lines of a transcript that are JSON."""
    found = []
    for line in raw.split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
