"""One very long session: what a plan for it takes, and its repair from end to end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recoveryd.clients import Config
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.model import Refusal
from recoveryd.daemon.healer import REST_S
from recoveryd.diagnose import Context
from recoveryd.heal.lifecycle import CONFIRM_S
from recoveryd.heal.recovery import Recovery
from recoveryd.ledger.ledger import Ledger
from tests.bench.client import Client
from tests.bench.harness import Home, daemon, rss_mib
from tests.bench.large import create
from tests.bench.store import ERRORS
from tests.support.build import Message, Planted, SessionBuilder, api_error, dump, text, tool, write_sqlite, write_tree
from tests.support.cases import case
from tests.support.database import NEW
from tests.support.refused import kind_of

REST = CONFIRM_S + REST_S + 2.0  # seconds; then what the repair took is given back
Result = dict[str, Any]


def long_session(root: Path, messages: int, rest: float = REST) -> Result:
    """A session of so many messages, refused for a part in its midst: the plan alone, and from failure to disk."""
    planted, failed = _long(messages)
    result: Result = {"messages": messages, "files": _files(Home(root / "long_files"), planted, failed, rest)}
    result["database"] = _rows(Home(root / "long_database"), planted, failed, rest)
    result["holds"] = all(result[name]["healed"] for name in ("files", "database"))
    return result


def _files(home: Home, planted: Planted, failed: Message, rest: float) -> Result:
    write_tree(planted, home.storage)
    path = home.storage / "message" / planted.id / f"{failed['id']}.json"
    return _heal(home, OpencodeFiles(home.storage), partial(_write, path, failed), rest)


def _rows(home: Home, planted: Planted, failed: Message, rest: float) -> Result:
    create(home.database, NEW)
    with Client(home.database, NEW) as client:
        write_sqlite(planted, home.database)
        return _heal(home, OpencodeSqlite(home.database), partial(client.fail, planted.id, failed), rest)


def _heal(home: Home, store: Store, fail: Callable[[], float], rest: float) -> Result:
    with daemon(home) as running:
        failed = fail()
        healed = running.repair()[0] - failed
        rss = rss_mib(running.pid)
        time.sleep(rest)
        rested = rss_mib(running.pid)
    [entry] = home.command("history")
    return {
        "end_to_end_ms": round(healed * 1000),
        "rss_mib": round(rss, 1),
        "rss_rested_mib": round(rested, 1),
        "healed": entry["outcome"] == "healed",
        **_planned(home, store, entry),
    }


def _planned(home: Home, store: Store, entry: Result) -> Result:
    """Loading and planning alone, in this process, for the session as it was: the repair is undone first."""
    home.command("undo", entry["id"])
    failure = store.look(entry["session"]).failure
    assert failure is not None
    kind = kind_of(failure.error)
    assert kind is not None
    loads, plans = [], []
    with Ledger(home.root / "own" / "ledger.db") as ledger:
        recovery = Recovery(Context(ledger, Config(), home.root / "own"))
        for _ in range(3):
            started = time.monotonic()
            store.load(failure.session)
            loads.append(time.monotonic() - started)
            _, plan = recovery.propose(case(store, failure, kind))
            assert not isinstance(plan, Refusal)
            plans.append(time.monotonic() - started - 2 * loads[-1])
    return {"load_ms": round(statistics.median(loads) * 1000), "plan_ms": round(statistics.median(plans) * 1000)}


def _long(messages: int) -> tuple[Planted, Message]:
    session = SessionBuilder(int(time.time() * 1000) - 2000 * messages - 60_000, seed=3, title="long")
    for number in range((messages - 2) // 2):
        session.user(f"question {number}")
        if number == messages // 4:
            session.assistant(text(" \n"))
        else:
            session.assistant(tool(), finish="tool-calls") if number % 3 else session.assistant(f"answer {number}")
    failed = session.failed("continue", api_error(ERRORS[2], 400))
    planted = session.planted()
    planted.messages.remove(failed)
    return planted, failed


def _write(path: Path, failed: Message) -> float:
    path.write_bytes(dump({**failed, "time": {"created": int(time.time() * 1000)}}))
    return time.monotonic()
