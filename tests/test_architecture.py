"""Who may import whom, read from the imports; what is pure; two names that nobody outside of their room may say."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

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
        "watch": "core clients",
        "diagnose": "core clients providers settings ledger",
        "tell": "core clients settings ledger repair",
        "heal": "core disk clients providers settings ledger repair diagnose tell",
        "daemon": "core disk clients providers settings ledger repair diagnose tell heal watch",
        "service": "core disk clients providers settings ledger repair diagnose tell heal watch",
        "doctor": "core disk clients providers settings ledger repair diagnose tell heal watch service",
        "demo": "core disk clients settings ledger tell heal watch daemon",
        "cli": "core disk clients providers settings ledger repair diagnose tell heal watch service daemon doctor demo",
    }.items()
}
PURE = ("core", "providers", "repair", "clients.opencode.wire")
EFFECTS = {"os", "time", "pathlib", "subprocess", "socket", "threading", "sqlite3", "shutil", "tempfile", "loguru"}
EFFECTS |= {"psutil", "watchdog", "platformdirs", "rich", "fcntl", "signal", "random"}
# Only these name one client or one family of providers: the lists, and what is made of one client on purpose.
ITS_OWN = {"clients": "recoveryd.clients.", "providers": "recoveryd.providers."}
MAY_NAME = ("recoveryd.demo", "recoveryd.clients.find", "recoveryd.providers.find")
STOREYS, PAIRS = 10, 120


def imported(path: Path) -> Iterator[str]:
    """Every module that is imported, also where it is asked for late."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in inner)


GRAPH = {name: {m for m in imported(path) if m in MODULES and m != name} for name, path in MODULES.items()}
FRONT_DOOR = ("recoveryd", "recoveryd.__main__", "recoveryd.api")  # they name rooms of all storeys


def package(module: str) -> str:
    """The room of a module, as `clients` of `recoveryd.clients.opencode.ids`; "" for the front door."""
    return "" if module in FRONT_DOOR else module.split(".")[1]


def room(module: str) -> str:
    """As `package`, but each client and each family of providers is a room of its own."""
    parts = module.split(".")
    inner = package(module) in ITS_OWN and len(parts) > 2 and f"recoveryd.{parts[1]}.{parts[2]}" in PACKAGES
    return ".".join(parts[1:3]) if inner else package(module)


PACKAGES = {name.removesuffix(".__init__") for name in FILES if name.endswith(".__init__")}
ARROWS = {(room(m), room(t)) for m, targets in GRAPH.items() for t in targets if room(m) != room(t)}


def is_in(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_no_circle_among_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert longest({m: t for m, t in GRAPH.items() if m not in FRONT_DOOR}) <= 20


def longest(graph: Mapping[str, Iterable[str]]) -> int:
    """How many stand above each other in the longest chain."""
    order = list(TopologicalSorter({node: list(targets) for node, targets in graph.items()}).static_order())

    @cache
    def height(node: str) -> int:
        return 1 + max((height(target) for target in graph.get(node, ())), default=0)

    return max(map(height, order))


@pytest.mark.parametrize("module", [m for m in MODULES if is_in(m, *(f"recoveryd.{p}" for p in PURE))])
def test_the_pure_ones_know_values_alone(module: str) -> None:
    assert not {name.split(".")[0] for name in imported(MODULES[module])} & EFFECTS


@pytest.mark.parametrize("module", MODULES)
def test_a_module_and_its_functions_can_be_read_at_a_glance(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 40
    ]
    assert long == []
    assert len(source.splitlines()) <= 350


@pytest.mark.parametrize("module", ["recoveryd.cli.run", "recoveryd.daemon", "recoveryd.cli.parser"])
def test_the_daemon_does_not_carry_what_only_people_see(module: str) -> None:
    heavy = "{'rich', 'desktop_notifier', 'dbus_fast', 'psutil', 'tomlkit', 'shtab'}"
    code = f"import sys, {module}; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
