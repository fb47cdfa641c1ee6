"""What `heal_ahead` does to sound sessions: nothing. A day of use, and generated sessions, in three forms of the store.

Looked at as the daemon does, right after each turn; whether a session is sound, the strict provider of the tests says.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from recoveryd.clients import Store
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.wire.form import NEW, OLD, Form
from recoveryd.core import Refusal
from recoveryd.heal import ahead
from tests.bench.large import create
from tests.support import database
from tests.support.build import SessionBuilder
from tests.support.generate import HEALTHY, generate
from tests.support.judge import refused_in_every_way
from tests.support.plant import write_sqlite, write_tree
from tests.support.planted import Planted
from tests.support.trees import Bench

REVERTED = 0.05  # how often what was said is taken back in the client
Result = dict[str, Any]


@dataclass
class Looks:
    """What was looked at. `foreseen`: what would be repaired; `wrong`: although it is accepted in one way."""

    sessions: int = 0
    turns: int = 0
    looked_at: int = 0
    foreseen: int = 0
    wrong: int = 0


def sound(root: Path, sessions: int, turns: int) -> Result:
    """Look at so many generated sessions, and at one of so many turns after each of them, in each form of the store."""
    found = {name: _form(root / name, write, store, form, sessions, turns) for name, write, store, form in _forms(root)}
    return {**{name: asdict(looks) for name, looks in found.items()}, "holds": not any(f.wrong for f in found.values())}


Write = Callable[[Planted], object]


def _forms(root: Path) -> Iterator[tuple[str, Write, Store, Form]]:
    storage = root / "1.1.53" / "storage"
    (storage / "session").mkdir(parents=True)
    yield "1.1.53", lambda planted: write_tree(planted, storage), OpencodeFiles(storage), OLD
    for version, form in ((database.OLD, OLD), (database.NEW, NEW)):
        path = root / version / "opencode.db"
        create(path, version)
        yield version, lambda planted, path=path: write_sqlite(planted, path), OpencodeSqlite(path), form  # type: ignore[misc]


def _form(folder: Path, write: Write, store: Store, form: Form, sessions: int, turns: int) -> Looks:
    rng, looks, bench = random.Random(7), Looks(), Bench(folder)
    for _ in range(sessions):
        made = _at_its_maker(generate(rng).planted)
        write(made)
        looks.sessions += 1
        _look(bench, store, made.id, form, looks)
    day = SessionBuilder(int(time.time() * 1000) - 36_000_000, seed=rng.getrandbits(32), title="a day")
    for _ in range(turns):
        known = len(day.messages)
        rng.choice(HEALTHY)(day, rng)
        day.session.pop("revert", None)
        if rng.random() < REVERTED:
            day.session["revert"] = {"messageID": rng.choice(day.messages)["id"]}
        made = _at_its_maker(day.planted())
        write(replace(made, messages=made.messages[known:]))
        looks.turns += 1
        _look(bench, store, made.id, form, looks)
    return looks


def _at_its_maker(planted: Planted) -> Planted:
    """The same, with errors from Anthropic's own address: of a session that is asked elsewhere nothing is foreseen."""
    for message in planted.messages:
        if "metadata" in message.get("error", {}).get("data", {}):
            message["error"]["data"]["metadata"]["url"] = "https://api.anthropic.com/v1/messages"
    return planted


def _look(bench: Bench, store: Store, session: str, form: Form, looks: Looks) -> None:
    if not store.has(session) or not ahead.may_foresee(store.look(session)):
        return
    looks.looked_at += 1
    case = ahead.foresee(bench.recovery.context, store, session)
    if case is None or isinstance(bench.recovery.propose(case)[1], Refusal):
        return
    looks.foreseen += 1
    looks.wrong += not refused_in_every_way(store.load(session), form)
