"""The most memory that one hostile session can cost, each measured in a process of its own: `python -m ... NAME DIR`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from recoveryd.errors import RecoverydError
from recoveryd.stores.opencode_files import OpencodeFiles
from tests.build import SessionBuilder, write_tree

MB = 1_000_000


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
    "nothing": lambda: [],
    "file of 100 MB": lambda: [_flat(100 * MB)],
    "file of 60 MB": lambda: [_flat(60 * MB)],
    "file of 60 MB, of emoji": lambda: [_emoji(60 * MB)],
    "file of 60 MB, of 20 million lists": lambda: [_wide(60 * MB)],
    "file of 60 MB, cut off": lambda: [_cut(60 * MB)],
    "session of 10 files of 60 MB": lambda: [_flat(60 * MB)] * 10,
    "session of 8 files of 60 MB, of lists": lambda: [_wide(60 * MB)] * 8,
}


def peak(name: str, folder: Path) -> tuple[float, float]:
    """MiB at the most, and seconds, to look at and load a session with these parts."""
    words = [sys.executable, "-m", "tests.fuzz.memory", name, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    mib, seconds = json.loads(done.stdout)
    return mib, seconds


def _measure(name: str, folder: Path) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 60_000, seed=1)
    session.user("go")
    message = session.assistant("fine")["id"]
    session.failed()
    planted = session.planted()
    storage = folder / "storage"
    write_tree(planted, storage)
    for number, content in enumerate(CASES[name]()):
        (storage / "part" / message / f"prt_{number}.json").write_bytes(content)
        del content
    pid = _fork_and_load(storage, planted.id)
    print(json.dumps(pid))


def _fork_and_load(storage: Path, session: str) -> tuple[float, float]:
    code = (
        "import sys; from pathlib import Path; from tests.fuzz.memory import load; load(Path(sys.argv[1]), sys.argv[2])"
    )
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", code, str(storage), session], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, time.monotonic() - started


def load(storage: Path, session: str) -> None:
    store = OpencodeFiles(storage)
    with suppress(RecoverydError):
        store.look(session)
        store.load(session)


if __name__ == "__main__":
    _measure(sys.argv[1], Path(sys.argv[2]))
