"""What docs/json.md promises to programs: the documents of all commands, and what each command ends with."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from recoveryd.cli import main
from recoveryd.cli.declare import subparsers
from recoveryd.cli.parser import make_parser
from recoveryd.clients.opencode import processes
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.errors import DiskError
from recoveryd.core.model import Outcome
from recoveryd.disk.locks import StoreLock, recovery_lock
from recoveryd.ledger import file as ledger_file
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import paths
from tests.cli.contract import EXITS, LISTS, SHAPES, faults
from tests.conftest import Run
from tests.support.trees import EMPTY, MISSING, Tree, blank_answer, write_over

# Held to the page where they are run: tests/service and tests/demo.
ELSEWHERE = {"install", "uninstall", "demo", "start", "stop", "restart"}
Codes = tuple[str, int]


class World:
    """A store with a session that was healed, one that is stuck, one that is ignored, and a healthy one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = Tree(folder / "data")
        self.healed, self.conflict = (self.tree.stuck(blank_answer, EMPTY) for _ in range(2))
        assert main(["scan", "--repair"]) == 0
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            self.names = {entry.session: entry.id for entry in ledger.history(2)}
        self.name = self.names[self.healed]
        self.stuck, self.ignored = self.tree.stuck(), self.tree.stuck()
        self.fine = self.tree.answered(self.tree.stuck())
        assert main(["ignore", self.ignored]) == 0

    run: Run

    def config(self, text: str) -> None:
        paths.config_file().parent.mkdir(parents=True, exist_ok=True)
        paths.config_file().write_text(text)


def _at_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("HOME", str(home))
    for name in ("DATA", "STATE", "CONFIG", "CACHE"):
        patch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A world, and a copy of its folder: to make one takes longer than to put it back."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        _at_home(patch, folder / "home")
        patch.setattr(processes, "listeners", list)
        world = World(folder / "home")
    shutil.copytree(folder / "home", folder / "kept")
    return world, folder / "kept"


@pytest.fixture
def world(made: tuple[World, Path], run: Run, monkeypatch: pytest.MonkeyPatch) -> World:
    world, kept = made
    shutil.rmtree(world.folder)
    shutil.copytree(kept, world.folder)
    _at_home(monkeypatch, world.folder)
    world.run = run
    return world


@pytest.mark.live
def test_every_document(world: World) -> None:
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        ledger.mark(world.names[world.conflict], Outcome.CONFLICT)
    world.config('ignore = ["banana"]\n[hooks]\non_complete = ["/no/where"]\n')
    commands = {
        "scan": ["scan"],
        "explain TEXT": ["explain", MISSING],
        "compact": ["compact", world.fine, "--dry-run"],
        "history": ["history"],
        "history --stats": ["history", "--stats"],
        "show": ["show", world.name],
        "status": ["status"],
        "doctor": ["doctor"],
        "pause": ["pause", "--for", "2h"],
        "unpause": ["unpause"],
        "ignore": ["ignore"],
        "ignore WHAT": ["ignore", "/some/where"],
        "report": ["report", world.name],
        "report --out": ["report", world.stuck, "--out", str(world.folder / "report.json")],
        "config path": ["config", "path"],
        "config show": ["config", "show"],
        "config check": ["config", "check"],
        "config set": ["config", "set", "max_retries", "2"],
        "config init": ["--config", str(world.folder / "new.toml"), "config", "init"],
        "install --print": ["install", "--print"],
        "plugin": ["plugin", "status"],
        "undo": ["undo", world.name, "--dry-run"],
        "ledger export": ["ledger", "export", world.name, "--out", str(world.folder / "out")],
        "ledger prune": ["ledger", "prune", "--keep-days", "0", "--dry-run"],
        "ledger forget": ["ledger", "forget", world.healed, "--dry-run"],
        "error document": ["show", world.stuck],
    }
    for name, argv in commands.items():
        said = json.loads(world.run(*argv, "--json")[1])
        assert faults(name, said) == []
        assert said["schema"] == 1 if name not in LISTS else said, name
    for session in (world.stuck, world.healed, world.fine, world.ignored):
        said = json.loads(world.run("explain", "--session", session, "--json")[1])
        assert faults("explain --session", said) == []
        assert said["stuck"] is (session in (world.stuck, world.ignored))
    lines = world.run("explain", "--jsonl", stdin=b'{"text": "x"}\nnonsense\n')[1].splitlines()
    assert [faults("explain --jsonl", json.loads(line)) for line in lines] == [[], []]
    inner = {cell.removesuffix(" or null").split(" of ")[-1] for rows in SHAPES.values() for _, _, cell in rows}
    pages = {"explain --session", "explain --jsonl", *commands, *ELSEWHERE}
    assert set(SHAPES) - inner - {"Exit codes", "The documents"} == pages, "each page has its command here"


def test_a_scan_tells_apart_what_is_stuck_what_was_healed_and_what_is_ignored(world: World) -> None:
    found = json.loads(world.run("scan", "--json")[1])
    said = {key: {one["session"] for one in found[key]} for key in ("stuck", "healed", "ignored")}
    assert said == {"stuck": {world.stuck}, "healed": {world.healed, world.conflict}, "ignored": {world.ignored}}
    assert {one["session"]: one["recovery"] for one in found["healed"]} == world.names


def test_the_judge_is_strict() -> None:
    fine = {"schema": 1, "path": "/x"}
    assert faults("config path", fine) == []
    wrong: list[Any] = [{}, {"path": "/x"}, {**fine, "path": 7}, {**fine, "schema": True}, {**fine, "more": 1}, []]
    assert all(faults("config path", one) for one in wrong)


def _busy_ledger(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ledger_file, "_BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(paths.ledger_file(paths.state_dir()), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        return world.run("ledger", "prune", "--keep-days", "0", "--all-content", "--yes")[0]


def _second_run(world: World, _: pytest.MonkeyPatch) -> int:
    with StoreLock(world.tree.store.lock_path, paths.lock_dir(paths.state_dir()), world.tree.store.id):
        return world.run("run")[0]


def _undo_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    waits = lambda *a, **kw: recovery_lock(*a, **{**kw, "timeout": 0.01})  # noqa: E731
    monkeypatch.setattr("recoveryd.heal.undo.recovery_lock", waits)
    with recovery_lock(world.tree.store.lock_path, paths.lock_dir(paths.state_dir()), world.tree.store.id):
        return world.run("undo", world.name)[0]


def _undo_refused(world: World, _: pytest.MonkeyPatch) -> int:
    write_over(world.tree.part(world.healed, "text", 1), text="somebody wrote this")
    return world.run("undo", world.name)[0]


def _undo_unwritten(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(OpencodeFiles, "apply", Mock(side_effect=DiskError("It can't be written to.")))
    code, _, err = world.run("undo", world.name)
    assert "can't be written to" in err
    return code


def _cut_off(world: World, _: pytest.MonkeyPatch) -> int:
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        ledger.mark(world.name, Outcome.UNDOING)
    return world.run("ledger", "forget", world.healed)[0]


def _configured(world: World, _: pytest.MonkeyPatch) -> int:
    world.config('ignore = ["ses_c"]\n')
    return world.run("ignore", "--remove", "ses_c")[0]


def _named(world: World, _: pytest.MonkeyPatch) -> int:
    world.config('[opencode]\npassword_file = "/no/where"\n')
    return world.run("config", "check")[0]


def _damaged(world: World, _: pytest.MonkeyPatch) -> int:
    paths.ledger_file(paths.state_dir()).write_bytes(b"no database " * 500)
    return world.run("doctor")[0]


def _there_already(world: World, *argv: str) -> int:
    file = world.folder / "there"
    file.mkdir() if argv[0] == "ledger" else file.write_text("mine")
    return world.run(*argv, world.name, "--out", str(file))[0]


def _types(*argv: str, stdin: bytes = b"") -> Callable[[World, pytest.MonkeyPatch], int]:
    """A command line; NAME, STUCK and HEALED stand for a recovery and sessions."""

    def call(world: World, _: pytest.MonkeyPatch) -> int:
        words = {"NAME": world.name, "STUCK": world.stuck, "HEALED": world.healed}
        return world.run(*(words.get(word, word) for word in argv), stdin=stdin)[0]

    return call


def _there_is_one(world: World, _: pytest.MonkeyPatch) -> int:
    world.config("")
    return world.run("config", "init")[0]


ENDS: dict[Codes, Callable[[World, pytest.MonkeyPatch], int]] = {
    ("run", 75): _second_run,
    ("scan", 0): _types("scan", "--repair"),
    ("scan", 1): _types("scan"),
    ("scan", 3): _types("scan", "--session", "ses_none"),
    ("explain", 0): _types("explain", "x"),
    ("explain", 1): _types("explain", "--jsonl", stdin=b"nonsense\n"),
    ("explain", 3): _types("explain", "--session", "ses_none"),
    ("compact", 0): lambda w, _: w.run("compact", w.fine, "--dry-run")[0],
    ("compact", 3): _types("compact", "ses_none"),
    ("history", 0): _types("history", "--session", "ses_none"),
    ("history", 3): _types("history", "--session", "NAME"),
    ("show", 0): _types("show", "NAME"),
    ("show", 3): _types("show", "rzzzz"),
    ("undo", 0): _types("undo", "NAME"),
    ("undo", 1): _undo_unwritten,
    ("undo", 3): _types("undo", "rzzzz"),
    ("undo", 4): _undo_refused,
    ("undo", 75): _undo_meanwhile,
    ("status", 0): _types("status"),
    ("doctor", 0): _types("doctor"),
    ("doctor", 1): _damaged,
    ("logs", 0): _types("logs"),
    ("metrics", 0): _types("metrics"),
    ("pause", 0): _types("pause"),
    ("unpause", 0): _types("unpause"),
    ("ignore", 0): _types("ignore", "STUCK"),
    ("ignore", 1): _configured,
    ("ignore", 3): _types("ignore", "--remove", "ses_none"),
    ("ledger prune", 0): _types("ledger", "prune"),
    ("ledger prune", 4): _types("ledger", "prune", "--keep-days", "0", "--all-content"),
    ("ledger forget", 0): _types("ledger", "forget", "HEALED", "--dry-run"),
    ("ledger forget", 3): _types("ledger", "forget", "STUCK"),
    ("ledger forget", 4): _cut_off,
    ("ledger export", 0): lambda w, _: w.run("ledger", "export", w.name, "--out", str(w.folder / "new"))[0],
    ("ledger export", 1): _types("ledger", "export", "NAME", "--out", "/no/where/at/all"),
    ("ledger export", 3): _types("ledger", "export", "rzzzz"),
    ("ledger export", 4): lambda w, _: _there_already(w, "ledger", "export"),
    ("report", 0): _types("report", "NAME"),
    ("report", 1): _types("report", "NAME", "--out", "/no/where/at/all"),
    ("report", 3): _types("report", "ses_none"),
    ("report", 4): lambda w, _: _there_already(w, "report"),
    ("config", 0): _types("config", "check"),
    ("config", 1): _named,
    ("config", 4): _there_is_one,
    ("completion", 0): _types("completion", "bash"),
    ("man", 0): _types("man"),
}
# tests/service, tests/demo, tests/cli/test_compact.py, tests/live/test_process.py and test_watch.py
ENDS_ELSEWHERE = {
    ("compact", 1),
    ("compact", 4),
    ("install", 0),
    ("install", 1),
    ("install", 4),
    ("install", 75),
    ("uninstall", 0),
    ("uninstall", 4),
    ("uninstall", 1),
    ("uninstall", 75),
    ("plugin", 0),
    ("plugin", 1),
    ("plugin", 4),
    ("demo", 0),
    ("demo", 1),
    *((name, code) for name in ("start", "restart") for code in (0, 1, 75)),
    *(("stop", code) for code in (0, 1, 4)),
    ("run", 0),
    ("watch", 0),
}


@pytest.mark.parametrize("case", ENDS, ids=lambda case: f"{case[0]} {case[1]}")
def test_it_ends_as_the_page_says(world: World, monkeypatch: pytest.MonkeyPatch, case: Codes) -> None:
    assert ENDS[case](world, monkeypatch) == case[1]


def test_each_code_of_the_page_is_tried() -> None:
    said = {(" ".join(command), code) for command, cells in EXITS.items() for code, words in cells.items() if words}
    assert said == {*ENDS, *ENDS_ELSEWHERE}


def _leaves() -> Iterator[str]:
    for _, parser in subparsers(make_parser()):
        inner = [one.prog for _, one in subparsers(parser)]
        yield from (prog.removeprefix("recoveryd ") for prog in inner or [parser.prog])


def test_the_page_has_all_commands() -> None:
    assert {" ".join(command) for command in EXITS} == set(_leaves())


def test_a_ledger_that_another_program_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _busy_ledger(world, monkeypatch) == 75


BROKEN = "max_retry = 3\n"
UNMOVED = [
    *(["history"], ["show", "NAME"], ["pause"], ["config", "path"], ["ledger", "export", "NAME", "--out", "OUT"]),
    ["ledger", "forget", "HEALED", "--yes"],
]
WARNED = [["status"], ["undo", "NAME"], ["unpause"]]
ENDED = [
    ["run"],
    ["scan"],
    ["explain", "--session", "STUCK"],
    ["config", "show"],
    ["config", "check"],
    ["report", "NAME"],
]
ENDED += [["ignore"], ["ledger", "prune"], ["install", "--print"]]


@pytest.mark.parametrize("argv", [*UNMOVED, *WARNED, *ENDED], ids=" ".join)
def test_beside_a_broken_configuration(world: World, argv: list[str]) -> None:
    world.config(BROKEN)
    words = {"NAME": world.name, "STUCK": world.stuck, "HEALED": world.healed, "OUT": str(world.folder / "out")}
    code, out, err = world.run(*(words.get(word, word) for word in argv))
    said = "unknown key `max_retry`" in err
    assert (code, said) == ((78, True) if argv in ENDED else (0, argv in WARNED))
    assert bool(out) is (code == 0)


def test_a_configuration_that_is_not_there_is_3(world: World) -> None:
    for argv in (["scan"], ["status"], ["undo", world.name], ["config", "check"]):
        assert world.run("--config", str(world.folder / "none.toml"), *argv)[0] == 3
