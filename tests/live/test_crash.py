"""The daemon is killed at any moment: each session is then as it was, or healed, and none is half of either."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from recoveryd.core.model import Change
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings.paths import ledger_file
from tests.e2e.daemon import PATIENCE, Daemon
from tests.e2e.heals import Files
from tests.live.stuck import Stuck, tree, wait_healed
from tests.support.parts import text, tool

ROUNDS = int(os.environ.get("TEST_RECOVERYD_CRASHES", "30"))
FORGED = "messages.1.content.0: Invalid `signature` in `thinking` block"

# A recovery of it adds and changes some files, and takes forty away.
CONTENT = (text("\n"), tool(), text("behind"))

pytestmark = pytest.mark.timeout(120 + 6 * ROUNDS)


def _kill(daemon: Daemon, sessions: list[Stuck], moment: str, seconds: float) -> None:
    """Start it, and kill it so many seconds after a moment: its start, the first file that it prepares or changes."""
    daemon.start(ready=False)
    parts = sessions[0].storage / "part"
    folders = [parts / session.planted.messages[at]["id"] for session in sessions for at in (1, -5, -3)]
    full = [_names(folder) for folder in folders]
    deadline = time.monotonic() + PATIENCE
    while moment != "start" and time.monotonic() < deadline:
        now = [_names(folder) for folder in folders]
        if any(here - was if moment == "prepares" else was - here for here, was in zip(now, full, strict=True)):
            break
    time.sleep(seconds)
    daemon.end(signal.SIGKILL)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _images(daemon: Daemon, outcome: str) -> dict[str, list[Change]]:
    """What the latest recovery of each session wrote, of those with this outcome; by session."""
    with Ledger(ledger_file(daemon.state)) as ledger:
        found = [entry for entry in reversed(ledger.history(100_000)) if entry.outcome == outcome]
        return {entry.session: ledger.changes(entry.id) for entry in found}


def _with(before: Files, changes: list[Change]) -> Files:
    files = {**before, **{change.key: change.after for change in changes}}
    return {key: content for key, content in files.items() if content is not None}


@pytest.mark.timeout(400)  # each stop waits out the second in which a repair is read back
def test_killed_at_any_moment(daemon: Daemon) -> None:
    """Killed in the start, in the middle of recoveries and behind them; `undo` works for what was healed before and
    after a crash, and no temporary file is left."""
    chance = random.Random(7)
    begun = time.monotonic()
    daemon.start()
    ready = time.monotonic() - begun
    daemon.end()
    sessions: list[Stuck] = []
    before: dict[str, Files] = {}
    cut_off = half = 0
    for number in range(ROUNDS):
        new = [Stuck(daemon.storage, CONTENT, rounds=40) for _ in range(1 if sessions else 3)]
        before |= {session.id: session.files for session in new if session.fail(FORGED)}
        sessions += new
        moment = ("start", "prepares", "changes", "changes")[number % 4]
        _kill(daemon, new, moment, ready + chance.uniform(-0.1, 1.5) if moment == "start" else chance.uniform(0, 0.002))
        cut = _images(daemon, "pending")
        cut_off += len(cut)
        half += sum(_is_half(session, before[session.id], cut[session.id]) for session in sessions if session.id in cut)
        _bring_to_an_end(daemon)
        healed = _images(daemon, "healed")
        for session in sessions:
            expected = _with(before[session.id], healed.get(session.id, []))
            assert session.files == expected, f"{session.id} is half; {daemon.log[-2000:]}"
        assert [path for path in tree(daemon.storage) if path.rsplit("/", 1)[-1].startswith(".")] == []
        assert _images(daemon, "pending") == {}
    print(f"{ROUNDS} kills, {cut_off} in a recovery, {half} times with some of its files written")
    assert cut_off > ROUNDS / 10, "hardly a kill hit a recovery"
    _heal_and_undo_all(daemon, sessions, before)


def _is_half(session: Stuck, before: Files, changes: list[Change]) -> bool:
    """Whether a kill left some of the edits behind, and not all."""
    now = session.files
    done = {now.get(change.key) == change.after for change in changes}
    return len(done) == 2 and any(now.get(change.key) != before.get(change.key) for change in changes)


def _bring_to_an_end(daemon: Daemon) -> None:
    """A start ends what was cut off; with no kind of these sessions to be repaired, it does nothing else."""
    dry = Daemon(daemon.root, daemon.storage.parent.parent, env={"RECOVERYD_KINDS": "role_order"})
    with dry:
        pass


def _heal_and_undo_all(daemon: Daemon, sessions: list[Stuck], before: dict[str, Files]) -> None:
    daemon.start()
    wait_healed(daemon, *sessions)
    history = daemon.by_session()
    assert set(daemon.codes([["undo", history[session.id][0]["id"]] for session in sessions])) == {0}
    time.sleep(1.5)
    assert daemon.end() == 0
    for session in sessions:
        assert session.files == before[session.id]
