"""What all tests share: a command line with a home of its own; and where CI asks for it, no test with the client is
skipped. No test in this process speaks to a client that happens to run on the machine."""

from __future__ import annotations

import gc
import io
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import psutil
import pytest
import shtab
from loguru import logger
from loguru._better_exceptions import ExceptionFormatter
from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

from recoveryd.cli import main, parser
from recoveryd.clients import quiet
from recoveryd.clients.claude_code import line_file
from recoveryd.clients.opencode import processes, server_address
from recoveryd.clients.opencode.files import reader
from recoveryd.heal import lifecycle
from tests.e2e.install import clients_folder
from tests.support.trees import Bench, Tree

hypothesis.settings.register_profile("any machine", deadline=None)  # how long an example takes says nothing of it
hypothesis.settings.load_profile("any machine")

Run = Callable[..., tuple[int, str, str]]  # a command line; its exit code, stdout and stderr
HERE = Path(__file__).parent
NEEDS_CLIENT = HERE / "e2e"
MEMORY, ROOM = Path("/dev/shm"), 2 * 1024**3  # bytes; a container may have 64 MB there
# How long the program waits for a client, in seconds, and how long where no client runs: until a repair is read back,
# until nobody writes to a session, for the second half of a write, for a last line.
WAITS = (
    (lifecycle, "CONFIRM_S", 0.05),
    (quiet, "SETTLE_S", 0.02),
    (reader, "RETRY_S", 0.002),
    (line_file, "_LATE_S", 0.002),
)
USUAL = tuple(getattr(module, name) for module, name, _ in WAITS)
SLOW = ("bench", "e2e", "fuzz", "live", "soak")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the stores of quick tests in memory where there is room: no test of these is about what a sync costs."""
    if _quick(config) and _has_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if sys.dont_write_bytecode and hasattr(config, "cache"):  # else each of a hundred programs compiles all of it anew
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(config.cache.mkdir("bytecode"))
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    gc.disable()  # until all is collected: thousands of tests are made that stay


@cache
def _has_memory() -> bool:
    return MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM


@pytest.fixture(scope="session")
def in_memory() -> Iterator[Path]:
    """A folder that is gone at the end, with the logs that are written anew when a test's own folder is gone."""
    with TemporaryDirectory(dir=MEMORY, prefix="recoveryd-") as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Keep the stores of quick tests in memory also where slow ones are run with them, on a disk."""
    if _quick(request.config) or request.node.get_closest_marker("slow") or not _has_memory():
        yield tmp_path
        return
    with TemporaryDirectory(dir=request.getfixturevalue("in_memory")) as folder:
        yield Path(folder)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays until the end: each of its searches would go through all of it."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two, as long tests take all of a machine; of the quick ones some wait, so twice the cores."""
    return min(2 * (os.cpu_count() or 1), 8) if _quick(config) else 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let a worker that has no quick tests left take some of another's, so that all end together."""
    return WorkStealingScheduling(config, log) if _quick(config) else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are not asked for, don't even read their folders."""
    return True if collection_path.parent == HERE and collection_path.name in SLOW and _quick(config) else None


def _quick(config: pytest.Config) -> bool:
    return "not slow" in config.option.markexpr


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what stands in the folders of long tests, and what waits for a daemon or another process. They come
    first: else one of them ends alone.
    """
    for item in items:
        if _is_long(item) or item.get_closest_marker("live"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _is_long(item: pytest.Item) -> bool:
    return item.path.relative_to(HERE).parts[0] in SLOW


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip below tests/e2e becomes a failure under TEST_RECOVERYD_REQUIRED."""
    report = yield
    if report.skipped and os.environ.get("TEST_RECOVERYD_REQUIRED") and NEEDS_CLIENT in item.path.parents:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and here it may not be: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _home_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave nothing in the home of whoever runs the tests, nor by a process that they start, nor read anything there.

    Only npm, pip and git go on as they are set up in the real one; the clients are kept there, once for all workers.
    """
    tools = {
        "npm_config_cache": Path.home() / ".npm",
        "npm_config_userconfig": Path.home() / ".npmrc",
        "PIP_CONFIG_FILE": Path.home() / ".config" / "pip" / "pip.conf",
        "GIT_CONFIG_GLOBAL": Path.home() / ".gitconfig",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_RECOVERYD_CLIENTS", str(clients_folder()))
        for name, place in tools.items():
            if name not in os.environ and place.exists():
                patch.setenv(name, str(place))
        for name in ("DATA", "STATE", "CONFIG"):
            patch.delenv(f"XDG_{name}_HOME", raising=False)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home-of-the-tests")))
        patch.setenv("TEST_RECOVERYD_LOCKS", "below HOME")
        yield


@pytest.fixture(scope="session", autouse=True)
def _once_a_process() -> Iterator[None]:
    """Hundreds of command lines are run in one process, and each makes what does not differ: the parser, the
    completion of a shell, and where Python's libraries are, which each sink of loguru asks (10 ms).
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "make_parser", cache(parser.make_parser))
        patch.setattr(shtab, "complete", cache(shtab.complete))
        patch.setattr(ExceptionFormatter, "_get_lib_dirs", staticmethod(cache(ExceptionFormatter._get_lib_dirs)))
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Only tests with the real client wait as long for it as the program does."""
    for (module, name, short), usual in zip(WAITS, USUAL, strict=True):
        setattr(module, name, usual if _is_long(item) else short)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A ledger and a recovery in a state folder of its own."""
    made = Bench(tmp_path)
    yield made
    made.ledger.close()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A home of its own, with the client's store where the client keeps it."""
    for name in ("DATA", "STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    return Tree(tmp_path / "data")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is folded to COLUMNS, without colours."""
    for name, value in (
        ("FORCE_COLOR", "1"),
        ("TERM", "dumb"),
        ("LINES", "50"),
    ):  # without LINES, COLUMNS is not heeded
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            code = main(argv)
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def _own_processes() -> Iterator[psutil.Process]:
    own = psutil.Process()
    yield own
    yield from own.children(recursive=True)


@pytest.fixture(scope="session", autouse=True)
def _no_client_of_the_machine() -> Iterator[None]:
    """Nor does one see processes that it has not started: a client of another test may be one that has any store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "process_iter", _own_processes)
        patch.setattr(processes, "listeners", list)
        patch.setattr(server_address, "DEFAULT_URL", "http://127.0.0.1:1")
        yield


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged from INFO on."""
    logged: list[str] = []
    sink = logger.add(lambda text: logged.append(str(text).rstrip("\n")), level="INFO", format="{level} {message}")
    yield logged
    logger.remove(sink)
