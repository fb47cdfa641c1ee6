"""What several outputs tell is the same in all: which sessions are stuck and on what, counts, names, titles, times."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from recoveryd.cli import common
from recoveryd.cli.live_sessions import LiveSessions, State
from recoveryd.cli.parser import make_parser
from recoveryd.clients import Config
from recoveryd.clients.opencode.files import reader
from recoveryd.core import Outcome
from recoveryd.daemon.sd_notify import SdNotify, ServiceStatus
from recoveryd.daemon.textfile import Textfile
from recoveryd.heal import lifecycle
from recoveryd.heal.undo import finish_interrupted
from recoveryd.ledger import Ledger, Upkeep, count_outcomes
from recoveryd.ledger.seen_and_resumed import Resumes
from recoveryd.service.uninstall import count_recoveries
from recoveryd.settings import load, paths
from tests.conftest import Run
from tests.daemon.test_textfile import series
from tests.support.build import BINDS, MODEL, SessionBuilder, api_error, write_sqlite
from tests.support.database import OLD, Base
from tests.support.examples import FULL
from tests.support.long_sessions import many_turns, spent
from tests.support.rollouts import Rollout
from tests.support.transcript import Transcript, call
from tests.support.transcript import text as block
from tests.support.trees import EMPTY, MISSING, Tree, behind_a_call, blank_answer, write_over

pytestmark = pytest.mark.live

Facts = dict[str, Any]
DAY_S = 86_400
TOO_LONG = "prompt is too long: 217000 tokens > 200000 maximum"


class World:
    """Stores of three clients, and sessions in all states that a user or a recovery can bring about."""

    def __init__(self, run: Run, tree: Tree, folder: Path, seed: int) -> None:
        self._run, self.tree, self.folder, self.rng = run, tree, folder, random.Random(seed)
        self.number = 0
        self._base: Base | None = None
        self.old: dict[str, bool] = {}  # sessions of long ago: whether a recovery is known that did not heal them

    def do(self, *argv: str) -> str:
        code, out, err = self._run(*argv)
        assert code in (0, 1), err
        return out

    def data(self, *argv: str) -> Any:
        return json.loads(self.do(*argv, "--json"))

    def title(self) -> str:
        self.number += 1
        return f"Session {self.number}"

    def newest(self) -> str:
        return str(self.data("history", "--limit", "1")[0]["id"])

    def stuck(self, **fields: Any) -> str:
        return self.tree.stuck(*self.rng.choice(FAULTS), title=self.title(), **fields)

    def healed(self) -> str:
        session = self.stuck()
        self.do("scan", "--repair", "--yes", "--session", session)
        return session

    def undone(self) -> str:
        session = self.healed()
        self.do("undo", self.newest())
        return session

    def refused_after_undo(self) -> None:
        self.tree.refused(self.undone(), EMPTY)

    def refused_again(self) -> None:
        self.tree.refused(self.healed(), EMPTY)

    def answered(self) -> None:
        self.tree.answered(self.rng.choice((self.stuck, self.healed, self.undone))())

    def ignored(self) -> None:
        self.do("ignore", self.rng.choice((self.stuck, self.undone, self.healed))())

    def subagent_of_ignored(self) -> None:
        of = self.tree.ended(fine, self.title())
        self.tree.began(of, self.stuck())
        self.do("ignore", of)

    def of_no_known_reason(self) -> None:
        self.tree.stuck(fine, "Your llama is not amused by this", title=self.title())

    def elsewhere(self) -> None:
        self.tree.stuck(fine, "rate limit exceeded", title=self.title())

    def of_a_family_without_rules(self) -> None:
        self.stuck(model={"providerID": "deepseek", "modelID": "deepseek-reasoner"})

    def not_understood(self) -> None:
        session = self.tree.stuck(fine, MISSING, title=self.title())
        self.do("scan", "--repair", "--yes", "--session", session)

    def undone_by_force(self) -> None:
        session = self.healed()
        self.tree.answered(session)
        self.do("undo", self.newest(), "--force")
        if self.rng.random() < 0.5:
            self.tree.refused(session, EMPTY)

    def answered_and_forced(self) -> None:
        session = self.healed()
        self.tree.answered(session)
        self.do("undo", self.newest(), "--force")

    def subagent_forced(self) -> None:
        session = self.healed()
        self.tree.began(self.tree.ended(fine, self.title()), session)
        self.tree.answered(session)
        self.do("undo", self.newest(), "--force")

    def put_back_after_a_crash(self) -> None:
        self.healed()
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            [newest] = ledger.history(1)
            ledger.mark(newest.id, Outcome.PENDING)
            first, *_ = [change for change in ledger.changes(newest.id) if change.before != change.after]
            self.tree.store.apply([first.reversed()])
            ledger.finish(newest.id, Outcome.PENDING, newest.detail)
            assert finish_interrupted(self.tree.store, ledger)[0].outcome is Outcome.FAILED

    def resumed(self) -> None:
        session = self.healed()
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            Resumes(ledger.file).add(self.newest(), self.tree.store.id, session, thinking_off=False)

    def too_long_by_hand(self) -> None:
        session = self.tree.stuck(long_turns, TOO_LONG, title=self.title(), model=MODEL)
        self.do("compact", session, "--yes")
        assert self.data("history", "--session", session)[0]["outcome"] == "healed"

    def deleted(self) -> None:
        session = self.rng.choice((self.stuck, self.healed, self.undone))()
        shutil.rmtree(self.tree.root / "message" / session)
        next(self.tree.root.glob(f"session/*/{session}.json")).unlink()
        if self.rng.random() < 0.5 and (known := self.data("history", "--session", session)):
            self.do("undo", known[0]["id"], "--force") if known[0]["outcome"] == "healed" else None

    def cut_off(self) -> None:
        """By a crash: a repair that is stored whole, or an undo of which nothing is done."""
        self.healed()
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            ledger.mark(self.newest(), self.rng.choice((Outcome.PENDING, Outcome.UNDOING)))

    def running(self) -> None:
        self.tree.running(self.rng.choice((self.stuck, self.healed, self.undone))())

    def too_long(self) -> None:
        self.tree.stuck(fine, "prompt is too long: 212403 tokens > 200000 maximum", title=self.title())

    def subagent(self) -> None:
        self.tree.began(self.tree.ended(fine, self.title()), self.rng.choice((self.stuck, self.healed))())

    def unreadable(self) -> None:
        session = self.stuck()
        next((self.tree.root / "message" / session).iterdir()).write_bytes(b"{")

    def part_unreadable(self) -> None:
        session = self.tree.ended(fine, self.title())
        self.tree.part(session, "text").write_bytes(b"{")

    def unanswered(self) -> None:
        session = self.tree.asked(fine, ago_s=20)
        for path in (self.tree.root / "message" / session, *(self.tree.root / "message" / session).iterdir()):
            os.utime(path, (time.time() - 600, time.time() - 600))

    def taken_back(self) -> None:
        turns, words = self.rng.choice(((fine, MISSING), (blank_answer, EMPTY)))
        session = self.tree.stuck(turns, words, title=self.title())
        asked = [message.id for message in self.tree.store.load(session).messages if message.role == "user"]
        write_over(next(self.tree.root.glob(f"session/*/{session}.json")), revert={"messageID": asked[-1]})

    def long_ago(self) -> None:
        self.old[self.stuck()] = False

    def undone_long_ago(self) -> None:
        self.old[self.undone()] = True

    def age(self) -> None:
        """Written last, for each that is written has the others written over."""
        then = time.time() - 2 * DAY_S
        for session in self.old:
            folder = self.tree.root / "message" / session
            parts = [self.tree.root / "part" / path.stem for path in folder.iterdir()]
            files = [*folder.iterdir(), *self.tree.root.glob(f"session/*/{session}.json")]
            for path in (folder, *files, *parts, *(file for part in parts for file in part.glob("*"))):
                if path.exists():  # an empty answer has no parts
                    os.utime(path, (then, then))

    def forgotten(self) -> None:
        self.do("ledger", "forget", "--yes", self.rng.choice((self.healed, self.undone))())

    def pruned(self) -> None:
        self.rng.choice((self.healed, self.undone))()
        self.do("ledger", "prune", "--keep-days", "0", "--all-content", "--yes")

    def at_its_cap(self) -> None:
        session = self.healed()
        for _ in range(3):
            self.tree.refused(session, EMPTY)
            self.do("scan", "--repair", "--yes", "--session", session)
        self.tree.refused(session, EMPTY)

    def in_a_database(self) -> None:
        base, now = self._kilo(), int(time.time() * 1000)
        base.say("user", now - 5_000)
        base.say("assistant", now - 4_000, error={"name": "APIError", "data": {"message": EMPTY, "statusCode": 400}})

    def _kilo(self) -> Base:
        self._base = self._base or Base(self.folder / "data/kilo/kilo.db", OLD, clock=time.time)
        return self._base

    def in_kilo(self) -> None:
        made = SessionBuilder(int(time.time() * 1000) - 60_000, title=self.title(), model=BINDS)
        behind_a_call(made)
        made.failed("continue", api_error(MISSING, 400))
        write_sqlite(made.planted(), self._kilo().path)
        self.afterwards(made.session["id"])

    def codex(self) -> None:
        made = Rollout(self.folder / ".codex", ms=int(time.time() * 1000) - 60_000)
        self.rng.choice((made.stuck, made.healthy))()

    def in_codex(self) -> None:
        made = Rollout(
            self.folder / ".codex", OTHER, ms=int(time.time() * 1000) - 60_000, name=f"2026-11-22T05-27-45-{OTHER}"
        )
        made.stuck()
        self.afterwards(OTHER)

    def in_claude_code(self) -> None:
        made = Transcript(start=int(time.time() * 1000) - 60_000)
        made.user("go")
        made.assistant(call(call_id="bad id!"))
        made.result("bad id!")
        made.refused(BAD_ID)
        made.write(self.folder / ".claude" / "projects")
        self.afterwards(made.session)

    def afterwards(self, session: str) -> None:
        """Heal a session of any client, and whatever may come then."""
        self.do("scan", "--repair", "--yes", "--session", session)
        assert self.data("history", "--session", session)[0]["outcome"] == "healed"
        then: dict[str, tuple[str, ...]] = {
            "": (),
            "undone": ("undo", self.newest()),
            "forgotten": ("ledger", "forget", "--yes", session),
            "pruned": ("ledger", "prune", "--keep-days", "0", "--all-content", "--yes"),
            "ignored": ("ignore", session),
        }
        if argv := then[self.rng.choice(list(then))]:
            self.do(*argv)

    def claude_code(self) -> None:
        made = Transcript(start=int(time.time() * 1000) - 60_000)
        made.user("go")
        made.assistant(call())
        if self.rng.random() < 0.5:
            made.refused(MISSING)
        else:
            made.result("toolu_01")
            made.assistant(block("fine"))
        made.write(self.folder / ".claude" / "projects")

    def store_removed(self) -> None:
        """With the history of a repair in it."""
        home = self.folder / ".claude"
        made = Transcript(start=int(time.time() * 1000) - 60_000)
        made.user("go")
        made.assistant(call())
        made.refused(MISSING)
        made.write(home / "projects")
        self.do("scan", "--repair", "--yes", "--session", made.session)
        shutil.rmtree(home)

    def paused(self) -> None:
        self.do("pause", *self.rng.choice(((), ("--for", "2h"))))

    def configured(self) -> None:
        paths.config_file().parent.mkdir(parents=True, exist_ok=True)
        lines = ("dry_run = true", "enabled = false", 'kinds = ["empty_content"]', "max_retries = 1", "kinds = []")
        paths.config_file().write_text(self.rng.choice(lines))

    def unreadable_store(self) -> None:
        path = self.folder / "data/opencode/opencode-beta.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"SQLite format 3\0" + b"x" * 8192)


OTHER = "01a201b9-82b1-7263-872f-20dfb3075cd4"  # another thread than the usual one
BAD_ID = "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
FAULTS = ((behind_a_call, MISSING), (blank_answer, EMPTY))


CLIENTS = {"opencode": "OpenCode", "kilo": "Kilo", "codex": "Codex", "claude_code": "Claude Code"}
SEEDS = int(os.environ.get("TEST_RECOVERYD_SEEDS", 40 if FULL else 3))


def long_turns(session: SessionBuilder) -> None:
    many_turns(session, random.Random(7))
    spent(session.planted())


def fine(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant("fine")


TOOLS = ("do", "data", "title", "newest", "age", "afterwards")
ORDERS: tuple[Callable[[World], object], ...] = (World.paused, World.configured)
LAST = (*ORDERS, World.unreadable_store)
WAYS: tuple[Callable[[World], object], ...] = tuple(
    way for name, way in vars(World).items() if not name.startswith("_") and name not in TOOLS and way not in LAST
)


def ids(findings: Iterable[Facts]) -> set[tuple[str, str]]:
    return {(one["store"], one["session"]) for one in findings}


def told(facts: Facts, *keys: str) -> dict[str, Any]:
    return {key: facts[key] for key in keys}


@pytest.fixture(autouse=True)
def _nobody_writes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "RETRY_S", 0.0)
    monkeypatch.setattr(lifecycle, "CONFIRM_S", 0.0)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_output_tells_otherwise_than_another(run: Run, tree: Tree, tmp_path: Path, seed: int) -> None:
    """Two worlds together have sessions in all states; the third is one whose client left its tree for a database."""
    world = World(run, tree, tmp_path, seed)
    ways = random.Random(seed // 3).sample(WAYS, len(WAYS))
    for way in ways[:4] if seed % 3 == 2 else ways[seed % 3 :: 2]:
        way(world)
    for way in (World.unreadable_store,) if seed % 3 == 2 else world.rng.sample(ORDERS, world.rng.randint(0, 2)):
        way(world)
    world.age()
    who_is_stuck(world, world.data("scan"), world.data("status"))
    what_came_of_it(world)
    what_holds(world)
    what_is_to_be_typed(world)


def who_is_stuck(world: World, scan: Facts, status: Facts) -> None:
    """The same sessions, by name and number, in every list of them."""
    said = world.do("scan").split(".\n")[0].split("\n\n")[0]
    stuck = len(scan["stuck"])
    assert f"{stuck} stuck" in said if stuck else "is stuck" in said, said
    keys = "store", "client", "session", "title"
    needing = [one for one in scan["stuck"] if world.old.get(one["session"], True)]  # what status goes by
    by_name = {(one["store"], one["session"]): told(one, *keys) for one in needing}
    assert {(one["store"], one["session"]): told(one, *keys) for one in status["need_user"]} == by_name
    need = " ".join(world.do("status").split())
    few = len(needing)
    assert (f"{few} session is stuck (" in need, f"{few} sessions are stuck (" in need) == (few == 1, few > 1)
    waiting = Counter(CLIENTS[one["client"]] for one in needing)
    told_by = {key.split(" ", 1)[1]: n for key, n in series(world.do("metrics")).items() if "_stuck_sessions " in key}
    assert +Counter({client: int(count) for client, count in told_by.items()}) == waiting
    config = load(Config, paths.config_file())
    later = LiveSessions(config, lambda: common.stores_of(config), clock=lambda: time.time() + 30)
    live = later.refresh()
    assert bool(later.idle()) == (not status["repairs"]) == bool(status["unrepaired"])
    rows = {state: {(row.store.id, row.session) for row in live if row.state is state} for state in State}
    listed = {State.STUCK: "stuck", State.HEALED: "healed", State.IGNORED: "ignored", State.ERROR: "elsewhere"}
    young = {name: [one for one in scan[name] if one["session"] not in world.old] for name in listed.values()}
    rows[State.ERROR] |= rows[State.WAITING]  # a prompt without an answer
    # Answered, and its repair was undone behind that.
    rows[State.ERROR] |= {(row.store.id, row.session) for row in live if row.state is State.ANSWERED and row.says}
    assert {state: rows[state] for state in listed} == {state: ids(young[name]) for state, name in listed.items()}
    listed_titles = {one["session"]: one["title"] for name in listed.values() for one in young[name]}
    assert {row.session: row.title for row in live if row.session in listed_titles} == listed_titles
    assert scan["stores"] == [one["store"] for one in status["stores"]]
    assert [one["store"] for one in scan.get("unreadable", ())] == [*later.problems]
    for name in ("stuck", "healed", "ignored", "elsewhere"):
        for one in scan[name] if FULL else scan[name][:3]:
            asked = world.data("explain", "--session", one["session"])
            assert asked["stuck"] == (name in ("stuck", "ignored"))
            assert ids(world.data("scan", "--session", one["session"])[name]) >= ids([one])
            same = "store", "client", "title", "message", "kind", "reason", "healed", "recovery", "undone"
            assert told(asked, *same[:-2], "undone") == told(one, *same[:-2], "undone")


def what_came_of_it(world: World) -> None:
    """Recoveries, in the history, its sums, `status`, `metrics`, and one by one."""
    everything, status = world.data("history", "--limit", "999"), world.data("status")
    # What a forced undo wrote over is kept beside the recovery, and is none.
    history = [one for one in everything if not one["overwritten"]]
    assert all(one["detail"].startswith("Forced undo of ") == one["overwritten"] for one in everything)
    outcomes = Counter(one["outcome"] for one in history)
    assert +Counter(status["ever"]) == +Counter(status["today"]) == outcomes
    counted: Counter[str] = Counter()
    for line in world.data("history", "--stats"):
        counted.update(line["outcomes"])
    assert +counted == outcomes
    counts = Counter((CLIENTS[one["client"]], one["kind"] or "unknown", one["outcome"]) for one in history)
    sums = {key: n for key, n in series(world.do("metrics")).items() if key.startswith("recoveryd_recoveries ")}
    assert sums == {" ".join(("recoveryd_recoveries", *key)): n for key, n in counts.items()}
    assert status["conflicts"] == [one["id"] for one in history if one["outcome"] == "conflict"]
    cut_off = [one["id"] for one in history if one["outcome"] in ("pending", "undoing")]
    checks = {check["code"]: check for check in world.data("doctor")["checks"]}
    assert status["pending"] == cut_off and [*checks["conflicts"]["recoveries"]] == (status["conflicts"] or cut_off)
    assert f": {len(history)} recover" in checks["ledger"]["says"] or not history
    assert {*world.do("completion", "recoveries").split()} == {one["id"] for one in everything}
    assert {*world.do("completion", "sessions").split()} == {one["session"] for one in history}
    listed = world.do("history", "--limit", "999")
    shown = Counter(line.split("  ")[2] for line in listed.splitlines()[1:] if line.startswith("r"))
    assert shown.pop("kept", 0) == len(everything) - len(history)
    assert shown == outcomes  # line by line as in the sums
    for one in history if FULL else history[:3]:
        shown = world.data("show", one["id"])
        assert {key: shown[key] for key in one} == one
        assert one in world.data("history", "--session", one["session"], "--limit", "999")


def test_every_outcome_is_counted_alike_by_all_who_count(run: Run, tree: Tree, tmp_path: Path) -> None:
    world = World(run, tree, tmp_path, 7)
    said: list[str] = []
    nobody: dict[str, str] = {}
    for way in (World.healed, World.not_understood, World.too_long_by_hand, World.undone, World.answered_and_forced):
        way(world)
    for way in (World.put_back_after_a_crash, World.resumed, World.subagent_forced, World.at_its_cap):
        way(world)
    what_came_of_it(world)
    kept = [one for one in world.data("history") if one["overwritten"]]
    assert {one["outcome"] for one in world.data("history")} >= {"healed", "not_understood", "undone", "failed"}
    assert len(kept) == 2
    status = world.data("status")
    manager = SdNotify(nobody)
    with pytest.MonkeyPatch.context() as patch, Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        patch.setattr(manager, "status", said.append)
        ServiceStatus(manager).ready([tree.store], (), ledger, 0)
        Textfile(tmp_path / "recoveryd.prom", lambda _: "OpenCode").write(ledger, {})
        assert sum(count_outcomes(Upkeep(ledger).ended(), time.time() + 60).values()) == 0
    assert f"{status['today']['healed']} " in said[0]
    in_file = series((tmp_path / "recoveryd.prom").read_text())
    told = {key: count for key, count in series(world.do("metrics")).items() if "_recoveries " in key}
    assert {key: count for key, count in in_file.items() if "_recoveries " in key} == told
    assert count_recoveries(paths.state_dir()) == sum(status["ever"].values()) == len(world.data("history")) - 2


def what_holds(world: World) -> None:
    """What the user ordered."""
    status, ignored = world.data("status"), world.data("ignore")
    assert status["ignored"] == [*ignored["configured"], *ignored["named"]]
    assert status["config_problem"] == "" and world.do("config", "check")
    checks = {check["code"]: check for check in world.data("doctor")["checks"]}
    assert (checks["pause"]["level"] != "ok") == (status["paused"] is not None)


def what_is_to_be_typed(world: World) -> None:
    """A command that is named, in backticks or at the end of a line, is one."""
    said = "\n".join(map(world.do, ("scan", "status", "doctor", "history", "pause")))
    named = re.findall(r"`recoveryd ([^`]+)`|: recoveryd ([^`\n]+)$", said, re.MULTILINE)
    assert named
    for commands in named:
        make_parser().parse_args(shlex.split("".join(commands)))  # raises UsageError, or ends
