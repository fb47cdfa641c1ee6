"""Many sessions broken, healed by a running daemon and prompted again: what each of them came to."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, Outcome
from tests.shapes import Shape
from tests.support.build import Planted
from tests.support.plant import dump

LEGAL = re.compile(r"(msg|prt)[A-Za-z0-9_-]+\.json")
Files = dict[str, bytes]


@dataclass(repr=False)
class Healed:
    """One session: the prompt that was refused, what the daemon says of it, and the prompts after it."""

    shape: Shape
    planted: Planted
    refused: Outcome
    entries: list[dict[str, Any]] = field(default_factory=list)
    again: list[Outcome] = field(default_factory=list)
    second: Outcome | None = None

    @property
    def id(self) -> str:
        """The session's id."""
        return self.planted.id

    def tell(self) -> str:
        """What went wrong, for the message of an assertion."""
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        first = [request.refused for request in self.refused.requests]
        asked = [request.refused for outcome in self.again for request in outcome.requests]
        return f"{self.shape.name} ({self.id}): {first}; history {said}; then {asked}"


def break_all(harness: Harness, shapes: Sequence[Shape]) -> list[Healed]:
    """Plant and prompt each shape as it says."""
    broken = []
    for shape in shapes:
        planted = shape.build()
        harness.plant(planted)
        broken.append(Healed(shape, planted, harness.prompt(planted.id, thinking=shape.thinking)))
    return broken


def collect(daemon: Daemon, sessions: Sequence[Healed], times: int = 1) -> None:
    """Wait until the daemon was so many times done with each of these sessions, and keep what it says of them."""
    found = daemon.wait_settled((session.id for session in sessions), times)
    for session in sessions:
        session.entries = found.get(session.id, [])


def files(storage: Path, session: str) -> Files:
    """Every file of a session in a JSON tree, by its path relative to the tree."""
    messages = storage / "message" / session
    paths = [*storage.glob(f"session/*/{session}.json"), *messages.iterdir()]
    for message in list(messages.glob("msg*.json")):
        folder = storage / "part" / message.stem
        paths += folder.iterdir() if folder.exists() else ()
    return {str(path.relative_to(storage)): path.read_bytes() for path in paths}


def planted_files(planted: Planted) -> Files:
    """What `write_tree` wrote of the messages and parts."""
    written = {f"message/{planted.id}/{message['id']}.json": dump(message) for message in planted.messages}
    for message, parts in planted.parts.items():
        for part in parts:
            written[f"part/{message}/{part['id']}.json"] = planted.raw.get(part["id"], dump(part))
    return written


def words(parts: Iterator[dict[str, Any]] | Sequence[dict[str, Any]]) -> Counter[str]:
    """The text of user and model, and what tools gave back: what may never be lost. Blank ones are no words."""
    found: Counter[str] = Counter()
    for part in parts:
        state = part.get("state") or {}
        said = [part.get("text")] if part["type"] == "text" else [state.get("output"), state.get("error")]
        found.update(text for text in said if isinstance(text, str) and text.strip())
    return found


def stored_parts(storage: Path, planted: Planted) -> list[dict[str, Any]]:
    """The parts that the planted messages have now, injected ones too."""
    found: list[dict[str, Any]] = []
    for message in planted.messages:
        folder = storage / "part" / message["id"]
        found += [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    return found


def injected(part: dict[str, Any]) -> bool:
    """Whether a part says that the daemon put it there."""
    mark = (part.get("metadata") or {}).get("recoveryd")
    return isinstance(mark, dict) and isinstance(mark.get("recovery"), str)
