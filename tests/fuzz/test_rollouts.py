"""Hostile rollouts: nothing but an error of ours comes out, no byte changes its place, and an undo gives all back."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from recoveryd.api import recover
from recoveryd.clients import Config
from recoveryd.core import Outcome, RecoverydError
from recoveryd.heal import take_back
from recoveryd.ledger import Ledger
from recoveryd.settings import paths
from tests.crash_matrix.work import alone
from tests.fuzz.mutate import mutated
from tests.support.rollouts import THREAD, Rollout, message, threads

_HOSTILE = (b"", b"\0" * 40, b"\xff\xfe", b"[]", b"null", b"{}", b'{"type":"response_item"}', b'{"payload":[]}')


def hostile(rng: random.Random, rollout: Rollout) -> None:
    """Some lines of a stuck thread are changed, cut, doubled or replaced by what nobody would write."""
    for _ in range(rng.randrange(1, 4)):
        rollout.healthy()
    history = [message("user", "kept"), {"type": "compaction", "encrypted_content": "gAAAA"}]
    if rng.random() < 0.5:
        rollout.compacted(history)
    rollout.stuck()
    lines = rollout.bytes().splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines)) if rng.random() < 0.9 else 0
        match rng.randrange(5):
            case 0:
                lines[at] = rng.choice(_HOSTILE)
            case 1:
                lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
            case 2:
                lines.insert(at, rng.choice(lines))
            case _:
                try:
                    said = json.loads(lines[at])
                except ValueError:
                    continue
                lines[at] = mutated(rng, said).replace(b"\n", b" ")
    rollout.path.write_bytes(b"\n".join(lines) + b"\n" * (rng.random() < 0.9))
    old = time.time() - 5
    os.utime(rollout.path, (old, old))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch.setattr)


@pytest.mark.parametrize("seed", range(6))
def test_hostile_rollouts_break_nothing(tmp_path: Path, seed: int) -> None:
    healed = 0
    for number in range(10):
        rng = random.Random(seed * 1000 + number)
        home = tmp_path / str(number)
        rollout = Rollout(home, ms=int(time.time() * 1000) - 60_000)
        hostile(rng, rollout)
        healed += _goes_through(rollout, home / "state")
    assert healed or seed


def _goes_through(rollout: Rollout, state: Path) -> bool:
    """Heal it as far as it goes, and take that back; whether it was healed."""
    before, status = rollout.bytes(), rollout.path.stat()
    try:
        event = recover(THREAD, Config(), state_dir=state, stores=[threads(rollout.home)])
    except RecoverydError:
        event = None
    now = rollout.path.stat()
    assert (now.st_ino, now.st_size) == (status.st_ino, status.st_size)
    if event is None or event.outcome is not Outcome.HEALED:
        assert rollout.bytes() == before
        assert event is None or "fault of recoveryd" not in event.detail
        return False
    assert [len(line) for line in rollout.bytes().split(b"\n")] == [len(line) for line in before.split(b"\n")]
    with Ledger(paths.ledger_file(state)) as ledger:
        take_back(threads(rollout.home), ledger, paths.lock_dir(state), event.id)
    assert rollout.bytes() == before
    return True
