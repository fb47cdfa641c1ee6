"""A recovery that renames, killed before each of its steps: `python -m tests.support.renaming_kills files|rows FOLDER`.

One process makes all of them: it forks one that is killed, and settles what that left. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from recoveryd.clients import Config
from recoveryd.clients.opencode.client_faults import ids_started_again
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.store import Store
from recoveryd.core import failpoint
from recoveryd.core.model import Kind, Outcome
from recoveryd.diagnose import Context
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import finish_interrupted, undo
from recoveryd.ledger.ledger import Ledger
from tests.e2e.snapshots import Snapshot, files, rows
from tests.support.cases import case
from tests.support.database import OLD, Base
from tests.support.old_sessions import STARTED_AGAIN, prompted
from tests.support.plant import write_sqlite, write_tree

NOW = STARTED_AGAIN + 9_000_000_000


def main(kind: str, folder: Path) -> dict[str, int]:
    """How often each outcome came out, and at how many steps it was killed. AssertionError: half a renaming."""
    planted = prompted(NOW - 60_000)
    root = folder / "opencode" / "storage"
    store: Store
    if kind == "files":
        write_tree(planted, root)
        store = OpencodeFiles(root)
    else:
        store = Base(folder / "opencode.db", OLD).store
        write_sqlite(planted, folder / "opencode.db")
    state = folder / "state"
    state.mkdir(mode=0o700)

    def look() -> Snapshot:
        return files(root) if kind == "files" else rows(folder / "opencode.db")

    before, found = look(), {"killed": 0, "healed": 0, "failed": 0}
    while _killed(store, planted.id, state, found["killed"]):
        found["killed"] += 1
        with Ledger(state / "ledger.db") as ledger:
            for settled in finish_interrupted(store, ledger):
                found[settled.outcome] += 1
                assert settled.outcome in (Outcome.HEALED, Outcome.FAILED), settled
            for entry in ledger.history(9):
                if entry.outcome is Outcome.HEALED:  # also one that was killed right behind its end
                    assert ids_started_again(store.load(planted.id), NOW, store.client) is None
                    undo(store, ledger, entry)
        assert look() == before, f"killed at step {found['killed']}: neither whole nor as it was"
    return found


def _killed(store: Store, session: str, state: Path, steps: int) -> bool:
    """Whether a recovery got to this step, where it was killed."""
    child = os.fork()
    if child == 0:
        _die_at(steps)
        silence = ids_started_again(store.load(session), NOW, store.client)
        assert silence is not None
        with Ledger(state / "ledger.db") as ledger:
            recovery = Recovery(Context(ledger, Config(), state, clock=lambda: NOW / 1000))
            event = recovery.attempt(case(store, silence.failure, Kind.WRAPPED_IDS)).event
        os._exit(0 if event.outcome is Outcome.HEALED else 1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the recovery ended with {status}"
    return status != 0


def _die_at(steps: int) -> None:
    left = steps

    def step(_: str) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    failpoint.reach = step


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
