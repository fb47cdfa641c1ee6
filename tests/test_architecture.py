"""Imports point inward only: model, the pure ones, recovery, daemon, cli. No cycle; sizes that keep it calm."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "recoveryd"
FILES = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): p for p in sorted(ROOT.rglob("*.py"))}
MODULES = {name.removesuffix(".__init__"): path for name, path in FILES.items()}
# From the inside out; each knows those before it. What is not named is inside of all of them.
SHELL = (
    "recoveryd.undo",
    "recoveryd.bookkeeping",
    "recoveryd.recovery",
    "recoveryd.lifecycle",
    "recoveryd.triage",
    "recoveryd.api",
    "recoveryd.resumer",
    "recoveryd.teller",
    "recoveryd.healer",
    "recoveryd.patrol",
    "recoveryd.daemon",
    "recoveryd.demo",
    "recoveryd.bundle",
    "recoveryd.cli",
)
INNERMOST = ("recoveryd.model", "recoveryd.errors", "recoveryd.failpoint")
PURE = (
    "classify",
    "classify_likely",
    "classify_patterns",
    "classify_rows",
    "crash",
    "degraded",
    "edits",
    "elsewhere",
    "family",
    "guard",
    "ids",
    "interrupted",
    "media",
    "places",
    "plan",
    "repairs",
    "report",
    "resume",
    "rules",
    "search",
    "sent",
    "toast",
    "silent",
    "wire",
    "wrapped",
)
EFFECTS = {"os", "time", "pathlib", "subprocess", "socket", "threading", "sqlite3", "shutil", "tempfile", "loguru"}
EFFECTS |= {"psutil", "watchdog", "platformdirs", "rich", "fcntl", "signal", "random"}


def imported(path: Path) -> Iterator[str]:
    """Every module that is imported, also where it is asked for late."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in inner)


GRAPH = {name: {m for m in imported(path) if m in MODULES and m != name} for name, path in MODULES.items()}
GRAPH["recoveryd"] = set()  # the front door: it names rooms of all layers, and opens none before it is asked


def is_in(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def pure() -> list[str]:
    return [m for m in MODULES if is_in(m, *(f"recoveryd.{name}" for name in PURE)) or ("." in m and _stem(m) in PURE)]


def _stem(module: str) -> str:
    return module.split(".")[1].split("_")[0]


def test_the_model_imports_nothing_of_ours() -> None:
    assert set() == set().union(*(GRAPH[module] for module in INNERMOST))


@pytest.mark.parametrize("module", pure())
def test_the_pure_ones_know_values_alone(module: str) -> None:
    assert not {name.split(".")[0] for name in imported(MODULES[module])} & EFFECTS
    assert not [m for m in GRAPH[module] if m not in pure() and m not in ("recoveryd.model", "recoveryd.violation")]


@pytest.mark.parametrize("module", [m for m in MODULES if is_in(m, "recoveryd.stores")])
def test_stores_know_the_model_alone(module: str) -> None:
    assert all(is_in(m, "recoveryd.stores", *INNERMOST) for m in GRAPH[module])


@pytest.mark.parametrize("module", [m for m in MODULES if _stem(f"{m}.x") in ("ledger", "images")])
def test_the_ledger_knows_the_model_alone(module: str) -> None:
    own = tuple(m for m in MODULES if _stem(f"{m}.x") in ("ledger", "images"))
    assert all(is_in(m, *own, *INNERMOST) for m in GRAPH[module])


def test_each_layer_knows_those_inside_of_it_alone() -> None:
    def layer(module: str) -> int:
        return next((n for n, name in enumerate(SHELL) if is_in(module, name)), -1)

    for module, targets in GRAPH.items():
        if module not in ("recoveryd.__main__", "recoveryd.demo_sessions"):
            assert [m for m in targets if layer(m) > layer(module)] == [], module


def test_no_module_imports_itself_by_a_detour() -> None:
    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for following in GRAPH[waiting.pop()] - found:
                found.add(following)
                waiting.append(following)
        return found

    assert [module for module in MODULES if module in reachable(module)] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_and_its_functions_can_be_read_at_a_glance(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 40
    ]
    assert long == []
    if not module.endswith("_patterns"):  # a table
        assert len(source.splitlines()) <= 350


@pytest.mark.parametrize("module", ["recoveryd.cli.run", "recoveryd.daemon", "recoveryd.cli.parser"])
def test_the_daemon_does_not_carry_what_only_people_see(module: str) -> None:
    heavy = "{'rich', 'desktop_notifier', 'dbus_fast', 'psutil'}"
    code = f"import sys, {module}; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
