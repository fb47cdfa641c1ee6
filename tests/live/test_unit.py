"""The unit before the real systemd tools, and the daemon before a service manager that the test plays."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from recoveryd.core.errors import BusyError
from recoveryd.disk.locks import StoreLock
from recoveryd.service import systemd
from recoveryd.service.base import Service
from tests.e2e.daemon import CONFIG, Daemon
from tests.live.manager import PATIENCE, Manager
from tests.live.stuck import Stuck, outcomes
from tests.support.build import SessionBuilder
from tests.support.plant import write_tree

ROOT = Path(__file__).parents[2]
NAMES = ["plain", "with space", "50% of $HOME", "it's", 'say "hi"', "back\\slash", "ünï", "a;b|c&d", "#", "-n @+!:x"]
# Faults: each begins to work when the file GATE is there.
SWEEP_WAITS = """
import time, pathlib
from recoveryd.daemon.sweeper import Sweeper
sweep = Sweeper.sweep
def waits(*a, **k):
    while not pathlib.Path({gate!r}).exists(): time.sleep(0.02)
    return sweep(*a, **k)
Sweeper.sweep = waits
"""
WORKER_HANGS = """
import time, pathlib
from recoveryd.diagnose.triage import Triage
judge = Triage.judge
def hangs(*a):
    while pathlib.Path({gate!r}).exists(): time.sleep(0.02)
    return judge(*a)
Triage.judge = hangs
"""
WATCHER_DIES = """
import pathlib
from recoveryd.watch.watcher import Watcher
look = Watcher._look_at_bursts
def dies(self):
    if pathlib.Path({gate!r}).exists(): raise SystemExit
    return look(self)
Watcher._look_at_bursts = dies
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.fixture(scope="module")
def analyze() -> Iterator[list[str]]:
    """`systemd-analyze`, where it is installed; it asks for a runtime folder and writes nothing that stays."""
    if subprocess.run(["which", "systemd-analyze"], capture_output=True, check=False).returncode:
        pytest.skip("systemd-analyze is not installed")
    yield ["systemd-analyze", "--user"]


def told(analyze: list[str], folder: Path, *words: str) -> tuple[str, str]:
    """What it prints and what it complains of: `verify` ends with 0 on most mistakes."""
    (folder / "runtime").mkdir(exist_ok=True)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "runtime"), "HOME": str(folder)}
    done = subprocess.run([*analyze, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout, done.stderr


def units(folder: Path, service: Service) -> Path:
    """The unit, and its drop-in where it is strict; returns the unit."""
    path = folder / systemd.UNIT
    path.write_text(systemd.unit(service))
    if service.strict:
        path.with_name(f"{path.name}.d").mkdir()
        (folder / f"{path.name}.d" / "strict.conf").write_text(systemd.strict(service.writable))
    return path


@pytest.mark.parametrize(("name", "strict"), [("plain", False), *((name, True) for name in NAMES)])
def test_systemd_finds_nothing_to_say_about_a_unit(
    analyze: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, strict: bool
) -> None:
    """It looks for the program by the name that it reads out of the unit."""
    monkeypatch.setattr(systemd, "_HIDDEN", ())
    program = tmp_path / name / "recoveryd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = (str(program), "--config", str(program.parent))
    service = Service(command, {"XDG_STATE_HOME": str(program.parent)}, tmp_path, (program.parent,), strict)
    unit = units(tmp_path, service)
    assert told(analyze, tmp_path, "verify", str(unit)) == ("", "")
    if not any(quote in name for quote in "'\"\\"):  # then it is an argument, which nobody looks up
        program.unlink()
        assert "not executable" in told(analyze, tmp_path, "verify", str(unit))[1], "so it was found before"


def test_systemd_would_say_it(analyze: list[str], tmp_path: Path) -> None:
    """The test above can fail."""
    unit = units(tmp_path, Service(("/bin/true",), {}, tmp_path))
    unit.write_text(unit.read_text().replace("LockPersonality=", "LockPersonalty="))
    assert "LockPersonalty" in told(analyze, tmp_path, "verify", str(unit))[1]


@pytest.mark.parametrize(("strict", "most"), [(False, 6.6), (True, 2.5)])
def test_the_exposure_of_the_unit(analyze: list[str], tmp_path: Path, strict: bool, most: float) -> None:
    service = Service(("/bin/true",), {}, tmp_path, (Path("/srv/state"),), strict)
    unit = units(tmp_path, service)
    out, err = told(analyze, tmp_path, "security", "--offline=true", str(unit))
    found = re.search(r"Overall exposure level for .*: ([0-9.]+)", out)
    assert found and not err, out + err
    assert float(found[1]) <= most


def test_the_wheel_carries_the_units(tmp_path: Path) -> None:
    """And gives the same as the source tree."""
    wheel = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "-w"]
    subprocess.run([*wheel, str(tmp_path), str(ROOT)], check=True, capture_output=True, timeout=100)
    [made] = tmp_path.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--target"]
    subprocess.run([*pip, str(tmp_path / "lib"), str(made)], check=True, capture_output=True, timeout=100)
    code = "import recoveryd.service.base as s; print(s.__file__); print(s.template(*{!r}), end='')"
    for names in (("systemd", "recoveryd.service"), ("systemd", "strict.conf"), ("launchd", "recoveryd.plist")):
        env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
        words = [sys.executable, "-c", code.format(names)]
        done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        where, _, text = done.stdout.partition("\n")
        assert Path(where).is_relative_to(tmp_path)
        assert text == ROOT.joinpath(*names).read_text()


def locks(daemon: Daemon) -> Path:
    """Where it locks stores, whatever its state folder is (TEST_RECOVERYD_LOCKS)."""
    return Path(daemon.env["HOME"], ".local", "state", "recoveryd")


def test_it_is_ready_after_the_first_look_at_every_session(daemon: Daemon, gate: Path) -> None:
    """Lock and watches stand before, and what was stuck is healed by then; the status says what it does."""
    stuck = Stuck(daemon.storage)
    stuck.fail()
    broken = stuck.files
    with Manager(daemon, fault=SWEEP_WAITS.format(gate=str(gate))) as manager:
        daemon.wait(lambda: any(locks(daemon).glob("*.run.json")), "it holds no lock")
        time.sleep(0.5)
        assert manager.lines == []
        gate.touch()
        manager.ready()
        assert stuck.files != broken
        assert manager.lines[:2] == [f"STATUS=watching {daemon.storage}; 1 healed today", "READY=1"]
        second = Stuck(daemon.storage)
        second.fail()
        manager.wait(lambda _: "2 healed today" in manager.status(), "it does not count on")
        assert manager.end() == 0
        daemon.wait(lambda: manager.lines[-1] == "STOPPING=1", "it did not say that it stops")
    assert (manager.lines.count("READY=1"), manager.lines.count("STOPPING=1")) == (1, 1)
    assert not [line for line in manager.lines if "WATCHDOG" in line], "nobody asked"


def test_a_socket_without_a_file_and_no_socket_at_all(daemon: Daemon) -> None:
    """The abstract namespace; and a manager that is gone is no reason to stop."""
    with Manager(daemon, abstract=True) as manager:
        manager.ready()
        assert manager.end() == 0
    daemon.env["NOTIFY_SOCKET"] = str(daemon.root / "nobody")
    daemon.start()
    stuck = Stuck(daemon.storage)
    stuck.fail()
    daemon.wait_settled([stuck.id])
    assert outcomes(daemon, stuck.id) == ["healed"]


def test_a_worker_that_hangs_does_not_feed_the_watchdog(daemon: Daemon, gate: Path) -> None:
    with Manager(daemon, watchdog_s=0.9, fault=WORKER_HANGS.format(gate=str(gate))) as manager:
        manager.ready()
        fed = manager.count("WATCHDOG=1")
        manager.wait(lambda lines: lines.count("WATCHDOG=1") >= fed + 4, "it is not fed")
        assert median(after - before for before, after in pairwise(_fed(manager))) < 0.9
        gate.touch()
        Stuck(daemon.storage).fail()
        time.sleep(0.5)
        fed = manager.count("WATCHDOG=1")
        time.sleep(1.2)
        assert manager.count("WATCHDOG=1") == fed
        gate.unlink()  # not dead after all
        manager.wait(lambda lines: lines.count("WATCHDOG=1") > fed, "it is not fed again")
        gate.touch()
        Stuck(daemon.storage).fail()
        time.sleep(0.5)
        assert manager.end(signal.SIGABRT) == -signal.SIGABRT  # what the manager does then
    assert "in hangs" in manager.log.read_text(), "where it hung"


def test_a_watcher_that_died_does_not_feed_the_watchdog(daemon: Daemon, gate: Path) -> None:
    """The worker goes on meanwhile, which is not enough."""
    with Manager(daemon, watchdog_s=0.9, fault=WATCHER_DIES.format(gate=str(gate))) as manager:
        manager.ready()
        manager.wait(lambda lines: lines.count("WATCHDOG=1") >= 3, "it is not fed")
        gate.touch()
        (daemon.storage.parent / "storage.new").mkdir()
        daemon.storage.rename(daemon.storage.with_name("storage.old"))  # what wakes it
        (daemon.storage.parent / "storage.new").rename(daemon.storage)
        time.sleep(0.5)
        fed = manager.count("WATCHDOG=1")
        stuck = Stuck(daemon.storage)
        stuck.fail()
        manager.wait(lambda _: "1 healed" in manager.status(), "the worker does not work")
        assert manager.count("WATCHDOG=1") == fed
        assert manager.end() == 0


def test_a_long_first_look_feeds_the_watchdog(daemon: Daemon, data: Path) -> None:
    """Session by session; a manager begins to count at READY, but the same holds for every later look."""
    for _ in range(6):
        builder = SessionBuilder(int(time.time() * 1000) - 3_600_000)
        builder.user("go")
        builder.assistant("fine")
        write_tree(builder.planted(), daemon.storage)
    slow = "import time\nfrom recoveryd.diagnose.triage import Triage\njudge = Triage.judge\n"
    slow += "Triage.judge = lambda *a: (time.sleep(0.3), judge(*a))[1]\n"
    with Manager(daemon, watchdog_s=0.9, fault=slow) as manager:
        manager.ready()
        assert manager.lines.index("READY=1") > 4, manager.lines
        assert manager.lines[: manager.lines.index("READY=1")].count("WATCHDOG=1") >= 4


def test_hup_reads_the_configuration_again(daemon: Daemon, tmp_path: Path) -> None:
    """A bad one is refused in words; a store that is new is watched, one that is not named any more is let go."""
    one, other = (Daemon(tmp_path / name, tmp_path / name) for name in ("one", "other"))
    for place in (one, other):
        (place.storage / "message").mkdir(parents=True)
    file = daemon.root / "config" / "recoveryd" / "config.toml"

    def named(place: Daemon) -> str:
        return f'{CONFIG}[opencode]\ndata_dirs = ["{place.storage.parent}"]\n'

    def hung_up(manager: Manager, text: str) -> None:
        file.write_text(text)
        before = manager.count("READY=1")
        manager.process.send_signal(signal.SIGHUP)
        manager.ready(before + 1)
        [_, clock] = [line for line in manager.lines if line.startswith(("RELOADING", "MONOTONIC"))][-2:]
        assert 0 <= time.monotonic() - int(clock.removeprefix("MONOTONIC_USEC=")) / 1e6 < PATIENCE

    file.write_text(named(one))
    with Manager(daemon) as manager:
        manager.ready()
        assert str(one.storage) in manager.status()
        hung_up(manager, "max_retries = 0\n")
        assert "max_retries" in manager.log.read_text() and "the one before stays" in manager.log.read_text()
        hung_up(manager, named(one))
        assert "nothing in it has changed" in manager.log.read_text()
        stuck = Stuck(one.storage)
        stuck.fail()
        daemon.wait(lambda: outcomes(daemon, stuck.id) == ["healed"], "it was not healed")
        hung_up(manager, named(other))  # before what it repaired was confirmed
        assert str(other.storage) in manager.status() and str(one.storage) not in manager.status()
        daemon.wait(lambda: manager.log.read_text().count(stuck.id) == 1, "it was not told once")
        late = Stuck(other.storage)
        late.fail()
        daemon.wait(lambda: outcomes(daemon, late.id) == ["healed"], "the new store is not watched")
        with StoreLock(one.storage, locks(daemon), "one"):
            pass
        for storage in (other.storage, daemon.storage):
            with pytest.raises(BusyError):
                StoreLock(storage, locks(daemon), "other").acquire()
        assert manager.end() == 0
    assert "Traceback" not in manager.log.read_text()


def test_a_terminal_that_is_closed_ends_it(daemon: Daemon) -> None:
    """While it is open, SIGHUP is a request."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "recoveryd", "run"]
    log = (daemon.root / "terminal.log").open("wb")
    process = subprocess.Popen(
        words, env=daemon.env, stdin=theirs, stdout=log, stderr=log, start_new_session=True, cwd=daemon.root
    )
    try:
        os.close(theirs)
        said = daemon.root / "terminal.log"
        daemon.wait(lambda: "watching" in said.read_text(), "it does not run")
        process.send_signal(signal.SIGHUP)
        daemon.wait(lambda: "nothing in it has changed" in said.read_text(), "it did not read it again")
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as a shell does, and the kernel
        assert process.wait(PATIENCE) == 0
    finally:
        log.close()
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)


def _fed(manager: Manager) -> list[float]:
    return [at for at, line in zip(manager.times, manager.lines, strict=True) if line == "WATCHDOG=1"]
