"""What the daemon costs beside the stores of four clients while nothing happens: wake-ups, and memory. Linux: /proc.

A wake-up is the end of a wait: of the daemon's thread, which says so itself (`timed_run`), or any switch of another
thread, as those do nothing but wait. The switches of the daemon's thread (`switches`) are no measure of it: at the one
sweep a minute they also count each time that the disk is waited for.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.harness import Figure, Home, cpu_ms, daemon, rss_mib
from tests.bench.large import generate
from tests.bench.store import plant_healthy
from tests.support.database import NEW
from tests.support.rollouts import Rollout
from tests.support.transcript import Transcript, text

SESSIONS, MESSAGES = 100, 20
DATABASE = 3_000_000  # bytes, of OpenCode's and of Kilo's
SETTLED_S = 3.0  # after the start, before counting
WAKE_UPS = 2.0  # in 60 s
RSS_MIB = 45.0
# The interpreter with the packages that the daemon can't do without, and nothing else.
_BARE = (
    "import watchdog.observers, pydantic, platformdirs, loguru, sqlite3; import time; print(flush=True); time.sleep(60)"
)


def idle(root: Path, seconds: float) -> list[Figure]:
    home = Home(root / "idle")
    _plant(home)
    with daemon(home) as running:
        time.sleep(min(SETTLED_S, seconds))
        others, own, cpu = *_switches(running.pid), cpu_ms(running.pid)
        running.waits()
        time.sleep(seconds)
        waits, (others_now, own_now) = running.waits(), _switches(running.pid)
        used = cpu_ms(running.pid) - cpu
        rss, threads = rss_mib(running.pid), len(list(Path(f"/proc/{running.pid}/task").iterdir()))
    bare = _bare_rss()
    woken = waits + others_now - others
    per_60 = woken * 60 / seconds
    more = {"counted": woken, "seconds": seconds, "cpu_ms": used, "threads": threads, "switches": own_now - own}
    return [
        Figure("idle_wake_ups", "in 60 s", per_60, 0, "none", per_60, WAKE_UPS, "value", more),
        Figure("idle_rss", "MiB", rss, bare, "the interpreter with the same packages", rss / bare, RSS_MIB, "value"),
    ]


def _plant(home: Home) -> None:
    """Healthy sessions of OpenCode (both of its stores), Kilo, Codex and Claude Code."""
    plant_healthy(home.storage, SESSIONS, MESSAGES)
    generate(home.database, NEW, DATABASE)
    plant_others(home)


def plant_others(home: Home) -> None:
    """Healthy sessions of Kilo, Codex and Claude Code."""
    generate(home.root / "data" / "kilo" / "kilo.db", NEW, DATABASE)
    for number in range(SESSIONS):
        Rollout(home.root / ".codex", f"01a201b9-82b1-7263-872f-{number:012x}").healthy()
        transcript = Transcript(cwd=f"/work/{number % 10}")
        transcript.user("how are you?")
        transcript.assistant(text("fine"))
        transcript.write(home.root / ".claude" / "projects")


def _switches(pid: int) -> tuple[int, int]:
    """How often threads gave up the processor to wait: all but the main one, and that one."""
    found = {
        path.parent.name: int(re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", path.read_text())[0])
        for path in Path(f"/proc/{pid}/task").glob("*/status")
    }
    own = found.pop(str(pid))
    return sum(found.values()), own


def _bare_rss() -> float:
    with subprocess.Popen([sys.executable, "-c", _BARE], stdout=subprocess.PIPE) as bare:
        assert bare.stdout is not None
        bare.stdout.readline()
        rss = rss_mib(bare.pid)
        bare.kill()
    return rss
