"""What the daemon costs while nothing happens: wake-ups of all its threads, and memory. Linux: read from /proc."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.harness import Figure, Home, cpu_ms, daemon, rss_mib
from tests.bench.store import plant_healthy

SESSIONS, MESSAGES = 100, 20
SETTLED_S = 3.0  # after the start, before counting
WAKE_UPS = 1.0  # in 30 s
RSS_MIB = 45.0
# The interpreter with the packages that the daemon can't do without, and nothing else.
_BARE = (
    "import watchdog.observers, pydantic, platformdirs, loguru, sqlite3; import time; print(flush=True); time.sleep(60)"
)


def idle(root: Path, seconds: float) -> list[Figure]:
    home = Home(root / "idle")
    plant_healthy(home.storage, SESSIONS, MESSAGES)
    with daemon(home) as running:
        time.sleep(min(SETTLED_S, seconds))
        before, cpu = _switches(running.pid), cpu_ms(running.pid)
        time.sleep(seconds)
        woken = _switches(running.pid) - before
        used = cpu_ms(running.pid) - cpu
        rss, threads = rss_mib(running.pid), len(list(Path(f"/proc/{running.pid}/task").iterdir()))
    bare = _bare_rss()
    per_30 = woken * 30 / seconds
    more = {"counted": woken, "seconds": seconds, "cpu_ms": used, "threads": threads}
    return [
        Figure("idle_wake_ups", "in 30 s", per_30, 0, "none", per_30, WAKE_UPS, "value", more),
        Figure("idle_rss", "MiB", rss, bare, "the interpreter with the same packages", rss / bare, RSS_MIB, "value"),
    ]


def _switches(pid: int) -> int:
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(n) for status in statuses for n in re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", status))


def _bare_rss() -> float:
    with subprocess.Popen([sys.executable, "-c", _BARE], stdout=subprocess.PIPE) as bare:
        assert bare.stdout is not None
        bare.stdout.readline()
        rss = rss_mib(bare.pid)
        bare.kill()
    return rss
