"""What the real client sends for a stored session: the measure for any reconstruction of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness import Harness, settle
from tests.support.build import Planted

QUESTION = "continue"


@dataclass(frozen=True)
class Captured:
    """A store and the request that the client made of it.

    `store` holds the session as it is after the prompt: the planted messages, the question, and an empty failed message
    (which is never sent). So the request to rebuild from it is exactly `body`. It is a JSON tree of this session
    alone, or a database. `body` is None where the client sent nothing, or no JSON; `raw` then tells the two apart.
    """

    session: str
    store: Path
    body: dict[str, Any] | None
    raw: bytes | None


def capture(harness: Harness, planted: Planted, thinking: bool, into: Path) -> Captured:
    """Plant a session, prompt it with "continue", refuse whatever comes, and hand back store and body."""
    harness.plant(planted)
    # Refused whatever it holds: an answer would be stored, and the store would no longer be what the body came from.
    harness.provider.force("captured")
    outcome = harness.prompt(planted.id, QUESTION, thinking)
    if not outcome.requests:
        harness.provider.unforce()
    settle(harness, planted.id)
    last = outcome.requests[-1] if outcome.requests else None
    store = harness.copy_store(planted.id, into / planted.id)
    return Captured(planted.id, store, last.body if last else None, last.raw if last else None)
