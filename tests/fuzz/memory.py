"""The most memory that one hostile session can cost, each measured in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from loguru import logger

from recoveryd.api import recover
from recoveryd.clients.opencode.files.store import OpencodeFiles
from tests.support.build import SessionBuilder, api_error, write_tree
from tests.support.trees import MISSING, behind_a_call

MB = 1_000_000
BOUND_MIB = 1_200.0  # of the process, whatever a session holds


def _flat(size: int) -> bytes:
    return b'{"type":"text","text":"' + b"a" * size + b'"}'


def _wide(size: int) -> bytes:
    """The smallest text for the most values."""
    return b'{"type":"text","text":"x","a":[' + b"[]," * (size // 3) + b"[]]}"


def _cut(size: int) -> bytes:
    return _wide(size)[:-2]


def _emoji(size: int) -> bytes:
    return b'{"type":"text","text":"' + "😀".encode() * (size // 4) + b'"}'


# name -> the contents of the parts of one session
CASES: Mapping[str, Callable[[], list[bytes]]] = {
    "nothing": list,
    "file of 100 MB": lambda: [_flat(100 * MB)],
    "file of 60 MB": lambda: [_flat(60 * MB)],
    "file of 60 MB, of emoji": lambda: [_emoji(60 * MB)],
    "file of 60 MB, of 20 million lists": lambda: [_wide(60 * MB)],
    "file of 60 MB, cut off": lambda: [_cut(60 * MB)],
    "session of 4 files of 60 MB": lambda: [_flat(60 * MB)] * 4,
    "session of 4 files of 60 MB, one emoji in each": lambda: [_flat(60 * MB).replace(b"aa", "😀".encode(), 1)] * 4,
    "session of 5 files of 60 MB": lambda: [_flat(60 * MB)] * 5,
    "session of 40 files of 100,000 lists": lambda: [_wide(300_000)] * 40,
    "session of 240 files of 100,000 lists": lambda: [_wide(300_000)] * 240,
}


def peak(name: str, folder: Path) -> tuple[float, float, str]:
    """MiB at the most, seconds and the outcome of a recovery of such a session, in a process of its own; Linux."""
    words = [sys.executable, "-m", "tests.fuzz.memory", str(_planted(name, folder)), "ses"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    mib, seconds, outcome = json.loads(done.stdout)
    return mib, seconds, outcome


def _planted(name: str, folder: Path) -> Path:
    session = SessionBuilder(int(time.time() * 1000) - 60_000, seed=1)
    session.session["id"] = "ses"
    behind_a_call(session)
    message = session.messages[-1]["id"]
    session.user("more")
    session.assistant("fine")
    session.failed("continue", api_error(MISSING, 400))
    write_tree(session.planted(), folder / "storage")
    for number, content in enumerate(CASES[name]()):
        (folder / "storage" / "part" / message / f"prt_{number}.json").write_bytes(content)
    return folder / "storage"


def _recover(storage: Path, session: str) -> tuple[float, float, str]:
    logger.remove()
    state = storage.parent / "state"
    started = time.monotonic()
    event = recover(session, state_dir=state, stores=[OpencodeFiles(storage)])
    seconds = time.monotonic() - started
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024, seconds, event.outcome if event else ""


if __name__ == "__main__":
    print(json.dumps(_recover(Path(sys.argv[1]), sys.argv[2])))
