"""`start`, `stop` and `restart` where no service is installed, with real processes in a home of their own."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from recoveryd.cli import switch
from recoveryd.cli.steps import short_paths
from recoveryd.core.errors import RecoverydError
from recoveryd.disk.lock_notes import LockOwner
from recoveryd.disk.locks import StoreLock
from recoveryd.service import background, base, systemd
from recoveryd.service.background import Background
from recoveryd.settings import paths
from tests.cli.contract import faults
from tests.conftest import Run
from tests.support.managers import Fakes
from tests.support.trees import Tree

pytestmark = pytest.mark.live

READY = """
import os, signal, socket, sys
signal.signal(signal.SIGTERM, {term})
ears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ears.sendto(b"STATUS=doing well\\nREADY=1", os.environ["NOTIFY_SOCKET"])
while True: signal.pause()
"""
ENDS, STAYS = ("lambda *_: sys.exit()", "signal.SIG_IGN")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Background]:
    """Ended in any case."""
    one = Background(tmp_path / "state")
    yield one
    if pid := one.pid():
        os.kill(pid, signal.SIGKILL)


def program(term: str = ENDS) -> list[str]:
    return [sys.executable, "-c", READY.format(term=term)]


def put_unit() -> None:
    """The file of a service that `install` made."""
    unit = Path.home() / ".config/systemd/user/recoveryd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("# recoveryd install\n")


def test_a_state_folder_that_can_not_be_written_to_is_told_in_words(made: Background) -> None:
    made._file.mkdir(parents=True)
    with pytest.raises(RecoverydError, match=r"background\.pid can't be written: Is a directory"):
        made.start(program(), os.environ, print)


def test_it_outlives_whoever_started_it_and_is_ended(made: Background) -> None:
    said: list[str] = []
    made.start(program(), os.environ, said.append)
    pid = made.pid()
    assert pid is not None and said == [f"running in the background (pid {pid}): doing well"]
    assert os.getsid(pid) == pid, "no terminal that could take it along"
    assert Background(made._state).pid() == pid
    assert made.stop(said.append) and said[-1] == f"stopped (pid {pid})"
    assert made.pid() is None and not made.stop(said.append)
    assert list(made._state.iterdir()) == []


def test_it_starts_where_the_folder_for_temporary_files_has_a_long_path(
    made: Background, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket's path has 107 bytes."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    said: list[str] = []
    assert made.start(program(), os.environ, said.append)
    assert "doing well" in said[0]
    made.stop(said.append)


def test_a_file_that_a_crash_left_is_not_believed(made: Background) -> None:
    """Whatever process has that number by now."""
    made.start(program(), os.environ, print)
    os.kill(made.pid() or 0, signal.SIGKILL)
    wait_gone(made)
    (made._state / "background.pid").write_text(str(os.getpid()))
    assert made.pid() is None and not made.stop(print)
    made.start(program(), os.environ, print)
    assert made.pid() not in (None, os.getpid())


def wait_gone(made: Background) -> None:
    deadline = time.monotonic() + 10
    while made.pid() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_that_ends_at_once_or_can_not_be_started_is_told(made: Background) -> None:
    with pytest.raises(RecoverydError, match=r"ended at once \(with 3\)"):
        made.start([sys.executable, "-c", "raise SystemExit(3)"], os.environ, print)
    with pytest.raises(RecoverydError, match="can't be started: No such file"):
        made.start(["/no/where"], os.environ, print)
    assert made.pid() is None


@contextmanager
def held(made: Background) -> Iterator[BinaryIO]:
    """Its file, locked by somebody else, who has written nothing there yet."""
    made._state.mkdir(parents=True)
    with made._file.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def begun(made: Background, told: list[bool]) -> threading.Thread:
    """A start that goes on by itself, until it finds the file locked."""
    late = threading.Thread(target=lambda: told.append(made.start(program(), os.environ, print)))
    late.start()
    time.sleep(0.2)
    return late


def test_of_two_starts_at_the_same_moment_one_finds_the_other(made: Background) -> None:
    """Before it has written down which process it began."""
    told: list[bool] = []
    with held(made) as file:
        late = begun(made, told)
        file.write(b"4194305")  # no process has such a number
        file.flush()
        late.join(10)
        assert told == [False]


def test_a_start_that_finds_the_file_free_after_all_goes_on(made: Background) -> None:
    """Whoever asked which process runs had it for a moment, or a start that failed."""
    told: list[bool] = []
    with held(made):
        late = begun(made, told)
    late.join(10)
    assert told == [True] and made.pid()


def test_a_file_that_stays_locked_is_told(made: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_TURN_S", 0.1)
    with held(made), pytest.raises(RecoverydError, match="and nothing says that it runs"):
        made.start(program(), os.environ, print)


@pytest.mark.usefixtures("fakes")
def test_a_start_that_comes_second_ends_with_0(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "named.toml"
    named.write_text("")
    assert run("start")[0] == 0
    once = iter([None])
    known = Background.pid
    monkeypatch.setattr(Background, "pid", lambda self: next(once, known(self)))
    monkeypatch.setattr(switch, "_others", lambda _: [])  # it has not looked for its stores yet
    code, out, _ = run("start", "--config", str(named))
    assert code == 0 and "runs already" in out and "its configuration" not in out


def test_one_that_takes_long_is_not_waited_for(made: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_READY_S", 0.1)
    said: list[str] = []
    made.start([sys.executable, "-c", "import time; time.sleep(60)"], os.environ, said.append)
    assert "still looking through your sessions" in said[0] and made.pid()


def test_one_that_does_not_end_is_told(made: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    made.start(program(STAYS), os.environ, print)
    monkeypatch.setattr(background, "_END_S", 0.1)
    with pytest.raises(RecoverydError, match="does not end") as caught:
        made.stop(print)
    assert f"kill -9 {made.pid()}" in caught.value.hint


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Tree) -> Iterator[Fakes]:
    """No service is installed; what `start` leaves is ended."""
    made = Fakes(tmp_path / "fakes")
    monkeypatch.setenv("PATH", f"{made.path}:{os.environ['PATH']}")
    yield made
    Background(paths.state_dir()).stop(print)


@pytest.mark.usefixtures("fakes")
def test_the_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real program; twice is as good as once."""

    def said(command: str) -> tuple[int, bool, str]:
        code, out, _ = run(command, "--json")
        document = json.loads(out)
        assert faults(command, document) == [] and document["service"] is False
        return code, document["running"], " ".join(document["steps"])

    assert said("stop") == (0, False, "nothing runs")
    code, running, words = said("start")
    assert (code, running) == (0, True) and "watching" in words
    assert said("start")[:2] == (0, True) and "runs already" in said("start")[2]
    first = Background(paths.state_dir()).pid()
    assert said("restart")[:2] == (0, True)
    assert Background(paths.state_dir()).pid() not in (None, first)
    assert run("stop")[:2][0] == 0 and Background(paths.state_dir()).pid() is None
    assert "recoveryd ends" in run("logs")[1]
    monkeypatch.setattr(base, "command", lambda: (sys.executable, "-c", "raise SystemExit(1)"))
    for command in ("start", "restart"):
        code, _, err = run(command)
        assert code == 1 and "recoveryd logs" in err


def test_what_starts_it_again_is_named_where_it_can(run: Run, fakes: Fakes) -> None:
    """In a container `install` can't be done, and what else it brings is named there."""
    Path(os.environ["XDG_CONFIG_HOME"], "opencode").mkdir(parents=True, exist_ok=True)
    assert "`recoveryd install` starts it at each login" in " ".join(run("start")[1].split())
    (fakes.folder / "unreachable").touch()
    assert run("stop")[0] == 0
    for command in ("start", "restart"):
        code, out, _ = run(command)
        words = " ".join(out.split())
        assert code == 0 and "recoveryd install" not in words and "no service manager" in words
        assert "OpenCode has no plugin: `recoveryd plugin install` brings it" in words
    assert run("plugin", "install")[0] == 0 and "has no plugin" not in run("restart")[1]


@pytest.mark.usefixtures("fakes")
def test_a_restart_goes_by_the_configuration_of_the_start(run: Run, tmp_path: Path) -> None:
    """It may be one that lets nothing be written. One that can't be read leaves what runs as it is."""
    named = tmp_path / "a name\n.toml"
    named.write_text("dry_run = true\n")
    for command in (("start", "--config", str(named)), ("restart",)):
        code, out, _ = run(*command)
        assert code == 0 and "recoveryd install --config '" in out
        assert "dry run" in json.loads(run("status", "--json")[1])["unrepaired"]
    pid = Background(paths.state_dir()).pid()
    named.write_text("dry_rum = true\n")
    assert run("restart")[0] == 78
    named.unlink()
    assert run("restart")[0] == 3 and Background(paths.state_dir()).pid() == pid
    other = tmp_path / "other.toml"
    other.write_text("")
    assert run("restart", "--config", str(other))[0] == 0
    assert json.loads(run("status", "--json")[1])["unrepaired"] == ""


@pytest.mark.usefixtures("fakes")
def test_a_run_that_is_somebody_elses_is_left_alone(run: Run, tree: Tree) -> None:
    """Such as one in a terminal."""
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        for command, expected in (("start", 75), ("restart", 75), ("stop", 4)):
            code, _, err = run(command)
            assert code == expected and f"pid {os.getpid()}" in err


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("in_terminal", [True, False])
def test_how_to_end_it_there_is_told(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch, in_terminal: bool) -> None:
    """By `nohup recoveryd run &`, say, nobody can press Ctrl-C."""
    monkeypatch.setattr(os, "isatty", lambda _: in_terminal)
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        told = run("stop")[2]
    assert ("Ctrl-C" in told, "starts it again" in told) == (in_terminal, not in_terminal)
    assert f"`kill {os.getpid()}`" in told, "a job of the terminal (`recoveryd run &`) gets no Ctrl-C"


@pytest.mark.parametrize("how", ["no manager", "no unit"])
def test_a_service_that_the_manager_does_not_end_is_told_with_what_does(
    run: Run, fakes: Fakes, tree: Tree, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """In a shell of su or sudo, which can't reach the manager; or where the unit is gone, and the process is not."""
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
    if how == "no manager":
        put_unit()
        (fakes.folder / "unreachable").touch()
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        for command, expected in (("start", 75), ("restart", 75), ("stop", 4), ("uninstall", 75)):
            code, _, err = run(command)
            assert code == expected and "Ctrl-C" not in err
            said = " ".join(err.split())
            assert "log in as this user instead" in said and "end it where it was set up" in said
            assert f"Else: `kill {os.getpid()}`." in said


@pytest.mark.usefixtures("fakes")
def test_a_run_for_other_stores_is_in_nobodys_way(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` says that none runs and names `start`."""
    monkeypatch.setattr(base, "command", lambda: (sys.executable, "-c", "raise SystemExit(1)"))
    with StoreLock(tmp_path, paths.lock_dir(paths.state_dir()), "store"):
        assert "To start it: recoveryd start" in run("status")[1]
        code, _, err = run("start")
        assert code == 1 and "recoveryd logs" in err, "the program that stands for it was started"
        assert run("stop") == (0, "nothing runs\n", "")


def test_a_service_that_is_installed_is_switched(run: Run, fakes: Fakes) -> None:
    put_unit()
    (fakes.folder / "active").write_text("active\n")
    for command in ("start", "stop", "restart"):
        fakes.calls()
        code, out, _ = run(command, "--json")
        document = json.loads(out)
        assert (code, document["service"], faults(command, document)) == (0, True, [])
        assert f"--user {command} recoveryd.service" in fakes.calls()
    named = Path.home() / "another one.toml"
    named.write_text("")
    for command in ("start", "restart"):
        assert "the service goes by" not in run(command)[1]
        code, out, _ = run(command, "--config", str(named))
        assert code == 0 and f"the service goes by {short_paths(str(paths.config_file()))}." in out
        assert f"recoveryd install --config '{named}'" in out
    assert Background(paths.state_dir()).pid() is None
    (fakes.folder / "failing").write_text("1")
    assert run("start")[0] == 1
    (fakes.folder / "unstoppable").touch()
    assert run("stop")[0] == 1


@pytest.mark.parametrize(
    ("enabled", "lingers", "until"),
    [
        ("enabled", False, "stopped, until you log in again or `recoveryd start`"),
        ("enabled", True, "stopped, until the machine starts again or `recoveryd start`"),
        ("disabled", True, "stopped, until `recoveryd start`. It is disabled, so no login starts it"),
    ],
)
def test_stop_says_until_when(
    run: Run, fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: str, lingers: bool, until: str
) -> None:
    """Of a service that somebody disabled no login starts it; the manager of a user who lingers waits for none."""
    put_unit()
    monkeypatch.setattr(systemd, "_LINGERING", tmp_path)
    if lingers:
        (tmp_path / pwd.getpwuid(os.getuid()).pw_name).touch()
    (fakes.folder / "active").write_text("active\n")
    (fakes.folder / "enabled").write_text(f"{enabled}\n")
    code, out, _ = run("stop")
    assert code == 0 and until in " ".join(out.split())
    out = " ".join(run("start")[1].split())
    assert ("no login starts it. For that: `systemctl --user enable recoveryd`" in out) is (enabled == "disabled")


def test_stop_tells_what_runs_beside_the_service(run: Run, fakes: Fakes, tree: Tree) -> None:
    """Such as `recoveryd run` in a terminal, which the service waits for: it goes on."""
    put_unit()
    (fakes.folder / "active").write_text("inactive\n")
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        code, out, err = run("stop")
        assert code == 4 and "stopped" in out and f"`kill {os.getpid()}`" in err


def test_a_configuration_that_is_not_sound_leaves_the_service_as_it_is(
    run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end, and not start again."""
    put_unit()
    monkeypatch.setenv("RECOVERYD_MAX_RETRIES", "3")  # the service does not see it
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text("max_retries = lots\n")
    (fakes.folder / "active").write_text("active\n")
    code, _, err = run("restart")
    assert code == 78 and "at line 1" in err
    assert run("start")[0] == 0, "it runs"
    (fakes.folder / "active").write_text("inactive\n")
    assert run("start")[0] == 78
    assert not [call for call in fakes.calls() if "restart" in call]


def test_a_service_that_is_to_be_started_again_is_started_at_once(run: Run, fakes: Fakes) -> None:
    """systemd lets a start of one wait until its time has come (RestartSec=30)."""
    put_unit()
    (fakes.folder / "active").write_text("activating\n")
    (fakes.folder / "SubState").write_text("auto-restart\n")
    assert run("start")[0] == 0
    asked = fakes.calls()
    assert "--user restart recoveryd.service" in asked and "--user start recoveryd.service" not in asked


def test_status_says_of_a_service_that_is_to_be_started_again_that_it_is(run: Run, fakes: Fakes, tree: Tree) -> None:
    """Within the half minute behind a crash: "no; what gets stuck stays so" was not so."""
    put_unit()
    (fakes.folder / "active").write_text("activating\n")
    (fakes.folder / "SubState").write_text("auto-restart\n")
    assert "no; restarting: the service ended, and is started again" in " ".join(run("status")[1].split())
    (fakes.folder / "active").write_text("failed\n")
    assert "To start it: recoveryd start" in " ".join(run("status")[1].split())
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        fakes.calls()
        assert f"pid {os.getpid()}" in run("status")[1] and fakes.calls() == [], "it is asked where nothing runs"


def test_who_keeps_one_from_starting_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other stores by what this shell says, say, and of the same ones by what the process finds."""
    monkeypatch.setattr(base, "command", lambda: (sys.executable, "-c", "raise SystemExit(75)"))
    assert "recoveryd logs" in run("start")[2], "nobody is known"
    with StoreLock(tmp_path, paths.lock_dir(paths.state_dir()), "store"):
        code, _, err = run("start")
    assert code == 75 and f"pid {os.getpid()}, since" in err and f"`kill {os.getpid()}`" in err


def test_of_several_that_may_keep_one_from_starting_none_is_named_to_be_killed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may have one of its own run for other stores."""
    monkeypatch.setattr(base, "command", lambda: (sys.executable, "-c", "raise SystemExit(75)"))
    mine, other = LockOwner(7, 0.0, stores=("/a/opencode.db",)), LockOwner(8, 0.0, stores=("/b/opencode.db",))
    monkeypatch.setattr(base, "watchers", lambda _: [mine, other])
    code, _, err = run("start")
    said = " ".join(err.split())
    assert code == 75 and "kill" not in said and "To have this one: end that one, and start it again." in said
    assert "pid 7, since" in said and "with /a/opencode.db; pid 8, since" in said and "with /b/opencode.db)" in said


def test_a_service_that_waits_for_the_process_in_the_background_is_stopped_with_it(run: Run, fakes: Fakes) -> None:
    assert run("start")[0] == 0
    put_unit()
    (fakes.folder / "active").write_text("activating\n")
    (fakes.folder / "SubState").write_text("auto-restart\n")
    fakes.calls()
    code, out, _ = run("stop")
    assert code == 0 and "stopped (pid" in out and "--user stop recoveryd.service" in fakes.calls()


@pytest.mark.parametrize(
    ("state", "words", "then"),
    [
        ("masked", "is masked", "systemctl --user unmask recoveryd"),
        ("bad-setting", "finds its unit faulty", "but not what is your own: /own.conf"),
        ("not-found", "finds its unit faulty", "systemd-analyze --user verify"),
    ],
)
def test_a_unit_that_systemd_refuses_is_told_with_what_to_do(
    run: Run, fakes: Fakes, state: str, words: str, then: str
) -> None:
    """What an earlier start ended with (75: another one runs) is no reason: it was not so much as tried."""
    put_unit()
    for name, text in {"failing": "75", "LoadState": state, "DropInPaths": "/own.conf", "active": "inactive"}.items():
        (fakes.folder / name).write_text(text)
    (fakes.folder / "unstoppable").touch()
    for command in ("start", "restart"):
        code, _, err = run(command)
        told = " ".join(err.split())
        assert code == 1 and words in told and then in told and "end that one" not in told
        assert "`recoveryd install`" in told
    code, out, _ = run("stop")
    assert code == 0 and "until" not in out and words in " ".join(out.split())
    checks = json.loads(run("doctor", "--json")[1])["checks"]
    [service] = [check for check in checks if check["code"] == "service"]
    assert service["level"] == "fail" and words in service["says"] and then in service["next"]


def test_doctor_warns_of_a_service_that_no_login_starts(run: Run, fakes: Fakes) -> None:
    put_unit()
    (fakes.folder / "active").write_text("active")
    for enabled, level in (("disabled", "warn"), ("enabled", "ok")):
        (fakes.folder / "enabled").write_text(enabled)
        checks = json.loads(run("doctor", "--json")[1])["checks"]
        assert [check["level"] for check in checks if check["code"] == "service"] == [level]


@pytest.mark.usefixtures("fakes")
def test_uninstall_ends_it_too(run: Run) -> None:
    assert run("start")[0] == 0
    code, out, _ = run("uninstall")
    assert code == 0 and "stopped (pid" in out
    assert not paths.state_dir().exists()


@pytest.mark.usefixtures("fakes")
def test_install_takes_its_place(run: Run, tmp_path: Path) -> None:
    """`start` names `install` for each login; and what lets nothing be written goes on doing so."""
    named = tmp_path / "named.toml"
    named.write_text("dry_run = true\n")
    assert run("start", "--config", str(named))[0] == 0
    pid = Background(paths.state_dir()).pid()
    assert run("install", "--print")[0] == 0 and Background(paths.state_dir()).pid() == pid
    code, out, _ = run("install")
    assert code == 0 and f"stopped (pid {pid})" in out and "enabled" in out
    assert Background(paths.state_dir()).pid() is None, "the service would end, for another one watches the store"
    assert "the configuration of the service" in out
    unit = Path.home() / ".config/systemd/user/recoveryd.service"
    assert str(named) in unit.read_text()
    assert "stopped (pid" not in run("install")[1]


def test_install_that_fails_before_leaves_it_running(run: Run, tmp_path: Path, fakes: Fakes) -> None:
    """Else nothing would watch, and the next `install` would not know by which configuration."""
    named = tmp_path / "named.toml"
    named.write_text("dry_run = true\n")
    assert run("start", "--config", str(named))[0] == 0
    pid = Background(paths.state_dir()).pid()
    unit = Path.home() / ".config/systemd/user/recoveryd.service"
    unit.parent.mkdir(parents=True)
    unit.symlink_to("/dev/null")  # as `systemctl --user mask` leaves it
    assert run("install")[0] == 4 and Background(paths.state_dir()).pid() == pid
    unit.unlink()
    (fakes.folder / "unloadable").touch()
    assert run("install")[0] == 1 and Background(paths.state_dir()).pid() == pid
    (fakes.folder / "unloadable").unlink()
    assert run("install")[0] == 0 and Background(paths.state_dir()).pid() is None
    assert str(named) in unit.read_text()
