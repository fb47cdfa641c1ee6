"""From the start of the process to the end of its first look at all sessions, against `grep` over the messages."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.bench.harness import Figure, Home, daemon
from tests.bench.store import plant_healthy

ROUNDS = 3
FIRST, UNCHANGED = 2.0, 0.1  # times grep


def starts(root: Path, sessions: int, messages: int) -> list[Figure]:
    """The first start, and one on a store that did not change since; the best of some rounds, for each and for grep."""
    home = Home(root / "start")
    plant_healthy(home.storage, sessions, messages // sessions)
    ledger = home.root / "state" / "recoveryd" / "ledger.db"
    greps, firsts, agains, bare = [], [], [], []
    for _ in range(ROUNDS):
        greps.append(_grep(home.storage))
        for file in ledger.parent.glob("ledger.db*"):
            file.unlink()
        firsts.append(_start(home))
        agains.append(_start(home))
        bare.append(_start(Home(root / "nothing")))
    grep = min(greps)
    floor = f"grep -rl '\"error\"' message/ ({sessions} sessions, {messages} messages)"
    return [
        Figure(
            name,
            "s",
            best,
            grep,
            floor,
            best / grep,
            limit,
            more={**_more(best, min(bare), grep), "sessions": sessions},
        )
        for name, best, limit in (("first_start", min(firsts), FIRST), ("start_unchanged", min(agains), UNCHANGED))
    ]


def _more(best: float, bare: float, grep: float) -> dict[str, float]:
    """What a start takes without any session (interpreter, imports, a new ledger), and the ratio without that."""
    return {"on_an_empty_store": bare, "ratio_beyond_that": (best - bare) / grep}


def _grep(storage: Path) -> float:
    started = time.monotonic()
    done = subprocess.run(["grep", "-rl", '"error"', "message/"], cwd=storage, capture_output=True)
    assert done.returncode in (0, 1)
    return time.monotonic() - started


def _start(home: Home) -> float:
    home.storage.joinpath("message").mkdir(parents=True, exist_ok=True)
    with daemon(home) as running:
        return running.ready - running.started
