"""Faults that come with the newest answer, as they do in life: which of them `heal_ahead` keeps from being refused.

`python -m tests.e2e.ahead 1.18.33` plays all shapes that are refused in every way on that version of the real client.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recoveryd.clients.opencode.wire.form import NEW, OLD
from recoveryd.heal.ahead import FORESEEN
from tests.e2e.daemon import CONFIG, Daemon, healing
from tests.e2e.harness import Harness
from tests.shapes import BROKEN, Shape, is_old
from tests.support.judge import as_it_came

AHEAD = f"heal_ahead = true\nheal_ahead_seconds = 1\n{CONFIG}"


@dataclass
class Played:
    """What became of shapes, by name."""

    kept: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)  # of those that were sound


def coming(version: str) -> list[Shape]:
    """The shapes whose fault can be known, and comes with an answer, in the form that a version sends.

    Not those behind a long history: it holds an error from another address than Anthropic's, and nothing is foreseen.
    """
    form = OLD if is_old(version) else NEW
    known = [shape for shape in BROKEN if shape.kind_for(version) in FORESEEN and not shape.deep]
    return [shape for shape in known if as_it_came(shape.build(), form) is not None]


def left(daemon: Daemon) -> int:
    """How many sessions are yet to be repaired before they are prompted."""
    found = json.loads(daemon.run("scan", "--ahead", "--json").stdout)["ahead"]
    return sum(not one["action"].startswith("not repaired") for one in found)


def _says_nothing(daemon: Daemon, seconds: float = 4.0) -> bool:
    before = daemon.log
    time.sleep(seconds)
    return daemon.log == before


def played(harness: Harness, daemon: Daemon, version: str, shapes: Sequence[Shape], sound: Sequence[Shape]) -> Played:
    """Plant sessions that were just answered, wait until no more is repaired ahead, then prompt each of them."""
    form = OLD if is_old(version) else NEW
    now = int(time.time() * 1000) + 1000
    made = {shape.name: as_it_came(shape.build(now), form) for shape in shapes}
    made |= {shape.name: shape.build(now) for shape in sound}
    planted = {name: harness.plant(session) for name, session in made.items() if session is not None}
    daemon.wait(lambda: daemon.log.count(" healed: ") >= len(shapes) // 2, "not all was repaired ahead")
    daemon.wait(lambda: _says_nothing(daemon) and not left(daemon), "not all was repaired ahead")
    repaired = {entry["session"] for entry in daemon.history()}
    assert all(entry["detail"].startswith("Ahead of a refusal") for entry in daemon.history())
    newest = max(one["time"]["created"] for session in made.values() if session for one in session.messages) / 1000
    time.sleep(max(0.0, newest + 1 - time.time()))  # a prompt is the newest message
    found = Played(touched=[shape.name for shape in sound if planted[shape.name] in repaired])
    for shape in (*shapes, *sound):
        outcome = harness.prompt(planted[shape.name], thinking=shape.thinking, model=harness.model)
        if outcome.accepted:
            found.kept.append(shape.name)
        else:
            ahead = "repaired ahead, " if planted[shape.name] in repaired else ""
            found.refused[shape.name] = f"{ahead}{str(outcome.result.error)[:300]}"
    return found


def main() -> int:
    """Print what became of all of them."""
    [version] = sys.argv[1:]
    shapes = coming(version)
    with tempfile.TemporaryDirectory() as root, healing(Path(root), version, config=AHEAD) as (harness, daemon):
        found = played(harness, daemon, version, shapes, ())
    print(json.dumps({"version": version, "come with an answer": len(shapes), "never refused": len(found.kept)}))
    for name, why in found.refused.items():
        print(f"  {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
