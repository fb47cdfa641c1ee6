"""Who may import whom, read from the imports; what is pure; two names that nobody outside of their room may say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from recoveryd.cli.declare import subparsers
from recoveryd.cli.parser import make_parser

ROOT = Path(__file__).parent.parent / "recoveryd"
FILES = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): p for p in sorted(ROOT.rglob("*.py"))}
MODULES = {name.removesuffix(".__init__"): path for name, path in FILES.items()}

# A package and those that it may import. `repair` sees of the providers their port alone.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    package: frozenset(known.split())
    for package, known in {
        "core": "",
        "disk": "core",
        "providers": "core",
        "settings": "core disk",
        "clients": "core disk settings",
        "ledger": "core disk",
        "repair": "core providers",
        "watch": "core disk clients",
        "diagnose": "core clients providers settings ledger",
        "tell": "core clients settings ledger repair diagnose",
        "heal": "core disk clients providers settings ledger repair diagnose tell",
        "daemon": "core disk clients providers settings ledger repair diagnose tell heal watch",
        "service": "core disk clients providers settings ledger repair diagnose tell heal watch",
        "doctor": "core disk clients providers settings ledger repair diagnose tell heal watch service",
        "demo": "core disk clients settings ledger tell heal watch daemon",
        "cli": "core disk clients providers settings ledger repair diagnose tell heal watch service daemon doctor demo",
    }.items()
}
PURE = (
    "core",
    "providers",
    "repair",
    "clients.opencode.wire",
    "clients.opencode.editor",
    "clients.opencode.part_fixes",
)
EFFECTS = {"os", "time", "pathlib", "subprocess", "socket", "threading", "sqlite3", "shutil", "tempfile", "loguru"}
EFFECTS |= {"psutil", "watchdog", "platformdirs", "rich", "fcntl", "signal", "random"}
# Only these name one client or one family of providers: the lists, and what is made of one client on purpose.
ITS_OWN = {"clients": "recoveryd.clients.", "providers": "recoveryd.providers."}
MAY_NAME = ("recoveryd.demo", "recoveryd.clients.find", "recoveryd.providers.find")
SHARED = ("recoveryd.providers.sentences",)  # the matcher of all of them
STOREYS, PAIRS = 10, 120


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax, read once, and only where a test of these runs."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Every module that is imported, also where it is asked for late."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in inner)


@cache
def graph() -> Mapping[str, set[str]]:
    """What each module imports of the others."""
    return {name: {m for m in imported(path) if m in MODULES and m != name} for name, path in MODULES.items()}


FRONT_DOOR = ("recoveryd", "recoveryd.__main__", "recoveryd.api")  # they name rooms of all storeys


def package(module: str) -> str:
    """The room of a module, as `clients` of `recoveryd.clients.opencode.ids`; "" for the front door."""
    return "" if module in FRONT_DOOR else module.split(".")[1]


PACKAGES = {name.removesuffix(".__init__") for name in FILES if name.endswith(".__init__")}


@cache
def shown(package: str) -> set[str]:
    """What a package lets others import: the names of its `__all__`, in full."""
    names = parsed(MODULES[f"recoveryd.{package}"]).body
    values = [n.value for n in names if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    return {f"recoveryd.{package}.{name}" for value in values for name in ast.literal_eval(value)}


def is_in(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_every_package_is_in_the_table() -> None:
    assert {package(module) for module in MODULES} - {""} == MAY_IMPORT.keys()


@pytest.mark.parametrize("importer", MAY_IMPORT)
def test_a_package_imports_those_that_it_may_and_only_their_face(importer: str) -> None:
    strangers, inner = [], []
    for module in (m for m in MODULES if package(m) == importer):
        for target in graph()[module]:
            to = package(target)
            if to == importer:
                continue
            if to not in MAY_IMPORT[importer]:
                strangers.append(f"{module} -> {target}")
            elif target != f"recoveryd.{to}" and target not in shown(to) and not is_in(module, *MAY_NAME):
                inner.append(f"{module} -> {target}")
    assert strangers == []
    assert inner == [], "import it from the package itself"


@pytest.mark.parametrize("kind", ITS_OWN)
def test_nobody_outside_names_one_of_them(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A client, a provider: each is found through one list, and handed in through its port."""
    own = [p for p in PACKAGES if p.startswith(ITS_OWN[kind]) and p not in SHARED]
    naming = [
        f"{module} -> {target}"
        for module, targets in graph().items()
        for target in targets
        if is_in(target, *own) and not is_in(module, *own, *MAY_NAME)
    ]
    with capsys.disabled():
        print(f"\ngeneral modules that name one of {kind}: {len(naming)}", end=" ")
    assert naming == []


def test_a_client_never_imports_another() -> None:
    clients = {p for p in PACKAGES if p.startswith("recoveryd.clients.") and p.count(".") == 2}
    for client in clients:
        others = clients - {client}
        assert [m for m in MODULES if is_in(m, client) if any(is_in(t, *others) for t in graph()[m])] == []


def test_no_circle_among_rooms_or_files_and_few_storeys(capsys: pytest.CaptureFixture[str]) -> None:
    arrows = {(package(m), package(t)) for m, targets in graph().items() for t in targets if package(m) and package(t)}
    rooms = {a: {t for s, t in arrows if s == a and t != a} for a, _ in arrows}
    storeys = longest(rooms)  # raises CycleError where there is a circle
    longest({m: t for m, t in graph().items() if m not in FRONT_DOOR})
    pairs = {frozenset(arrow) for arrow in arrows if arrow[0] != arrow[1]}
    with capsys.disabled():
        print(f"\nstoreys {storeys}, pairs of rooms {len(pairs)}", end=" ")
    assert storeys <= STOREYS
    assert len(pairs) <= PAIRS


def longest(known: Mapping[str, Iterable[str]]) -> int:
    """How many stand above each other in the longest chain."""
    order = list(TopologicalSorter({node: list(targets) for node, targets in known.items()}).static_order())

    @cache
    def height(node: str) -> int:
        return 1 + max((height(target) for target in known.get(node, ())), default=0)

    return max(map(height, order))


@pytest.mark.parametrize("room", PURE)
def test_the_pure_ones_know_values_alone(room: str) -> None:
    pure = [module for module in MODULES if is_in(module, f"recoveryd.{room}")]
    known = {module: {name.split(".")[0] for name in imported(MODULES[module])} & EFFECTS for module in pure}
    assert pure and {module: effects for module, effects in known.items() if effects} == {}


@pytest.mark.parametrize("room", ["", *MAY_IMPORT])
def test_modules_and_their_functions_can_be_read_at_a_glance(room: str) -> None:
    long = []
    for module, path in MODULES.items():
        if package(module) == room:
            source = path.read_text(encoding="utf-8")
            long += [
                f"{module}.{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
                for node in ast.walk(parsed(path))
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                and (node.end_lineno or 0) - node.lineno >= 40
            ]
            long += [f"{module}: {lines} lines"] if (lines := len(source.splitlines())) > 350 else []
    assert long == []


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_package_says_what_it_is_and_names_what_it_shows(name: str) -> None:
    tree = parsed(FILES[f"{name}.__init__"])
    assert len(ast.get_docstring(tree) or "") > 40
    shown = [n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    assert shown or not [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module != "__future__"]


def test_a_message_names_a_command_as_it_is_to_be_typed_in_this_call() -> None:
    """By `core.command_line`: a name written out loses the configuration that the call was given. What is recorded, and
    read by other calls, is not told so.
    """
    commands = "|".join(sorted({help_of.prog.split()[1] for _, help_of in subparsers(make_parser())}))
    written = re.compile(rf"\brecoveryd ({commands})\b(?!.*--config )", re.S)
    told_at_once = ("cli", "daemon", "doctor", "ledger", "service", "settings", "tell")
    general = ["parser", "parser_upkeep", "manual", "completion", "demo", "overrides"]  # of no call, or recorded
    found = []
    for module, path in MODULES.items():
        if package(module) in told_at_once and path.stem not in general:
            told = {id(n.value) for n in ast.walk(parsed(path)) if isinstance(n, ast.Expr)}  # docstrings
            texts = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.Constant) and id(n) not in told]
            found += [f"{module}: {n.value}" for n in texts if isinstance(n.value, str) and written.search(n.value)]
    assert found == ["recoveryd.service.base: recoveryd install"]  # the mark in our files


@pytest.mark.live
@pytest.mark.parametrize("module", ["recoveryd.cli.run", "recoveryd.daemon", "recoveryd.cli.parser"])
def test_the_daemon_does_not_carry_what_only_people_see(module: str) -> None:
    heavy = "{'rich', 'desktop_notifier', 'dbus_fast', 'psutil', 'tomlkit', 'shtab'}"
    code = f"import sys, {module}; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


@pytest.mark.live
def test_an_idle_daemon_loads_nothing_that_only_a_stuck_session_needs() -> None:
    rooms = "('recoveryd.repair', 'recoveryd.providers.anthropic.rules', 'recoveryd.providers.gemini.rules')"
    code = f"import sys, recoveryd.cli.run, recoveryd.daemon; print(*(m for m in sys.modules if m.startswith({rooms})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


@pytest.mark.live
def test_an_idle_daemon_loads_no_asyncio_and_a_log_that_needs_it_has_it() -> None:
    code = """
import sys
from recoveryd.cli import main
main(["--quiet", "config", "path"])
import recoveryd.cli.run, recoveryd.daemon
print(*sorted({"asyncio", "ssl", "_ssl"} & set(sys.modules)))

import asyncio
from loguru import logger

async def sink(message):
    print("said", end=" ")

async def work():
    logger.add(sink)
    logger.error("x")
    await logger.complete()

asyncio.run(work())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["", "said "]), done.stderr
