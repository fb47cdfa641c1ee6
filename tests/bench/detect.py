"""From the close of a failed message's file to its repair being durable, and how fast many at once are healed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from recoveryd.demo.baseline import Floor
from tests.bench.harness import SETTLE_MS, Figure, Home, daemon, rss_mib, spread
from tests.bench.store import plant_patients

FLOOR_IS = "a bare watcher that does one synced, atomic write on the event"
TIMES_FLOOR = 5.0
PER_SECOND = 50.0
WARM_UP = 3  # runs that are not counted: the first repair loads code


def one_by_one(root: Path, runs: int) -> Figure:
    home = Home(root / "detect")
    patients = plant_patients(home.storage, WARM_UP + runs)
    took, floors = [], []
    with daemon(home) as running, Floor(home.root / "floor") as floor:
        for patient in patients:
            closed = patient.fail()
            durable, _ = running.repair()
            took.append((durable - closed) * 1000)
            floors.append(floor.once() * 1000)
    took, floors = took[WARM_UP:], floors[WARM_UP:]
    total, base = spread(took), spread(floors)
    more = {key: value for key, value in total.items() if key != "p50"}
    more |= {f"floor_{key}": value for key, value in base.items() if key != "p50"}
    more |= {f"ratio_{key}": (total[key] - SETTLE_MS) / base[key] for key in ("p95", "max")}
    more |= {"settle": SETTLE_MS, "runs": len(took)}
    ratio = (total["p50"] - SETTLE_MS) / base["p50"]
    return Figure("detect_to_durable", "ms", total["p50"], base["p50"], FLOOR_IS, ratio, TIMES_FLOOR, more=more)


def at_once(root: Path, sessions: int) -> Figure:
    home = Home(root / "storm")
    patients = plant_patients(home.storage, sessions)
    repairs: Counter[str] = Counter()
    with Floor(home.root / "floor") as floor:
        floors = spread([floor.once() for _ in range(50)])
    with daemon(home) as running:
        first = time.monotonic()
        for patient in patients:
            patient.fail()
        written = last = time.monotonic()
        while sum(repairs.values()) < sessions:
            last, keys = running.repair()
            repairs["/".join(keys)] += 1
        rss = rss_mib(running.pid)
    healed = Counter(
        e["session"] for e in home.command("history", "--limit", str(sessions * 3)) if e["outcome"] == "healed"
    )
    assert set(healed) == {patient.id for patient in patients}, f"{len(healed)} of {sessions} were healed"
    took = last - first
    more = {"per_second": sessions / took, "sessions": sessions, "writing_s": written - first}
    more |= {"rss_mib": rss, "most_repairs_of_one": max(healed.values()), "most_writes_of_one": max(repairs.values())}
    each = took / sessions
    floor_s = floors["p50"]
    name, is_ = "sessions_at_once", "one synced, atomic write for each session"
    return Figure(name, "s", took, floor_s * sessions, is_, each / floor_s, PER_SECOND, "per_second", more)
