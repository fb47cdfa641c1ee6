"""The service under a real systemd user manager: installed from a wheel, on a desktop, until it is taken out again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import screen as desktop
from tests.live.installed import NEWER, ROOT, UNIT, Installed, build_wheels, installed
from tests.live.screen import Screen, running_screen
from tests.support import user_manager

pytestmark = [
    pytest.mark.skipif(bool(user_manager.missing()), reason=user_manager.missing() or "all there"),
    pytest.mark.timeout(300),  # a minute of an idle machine
]

# As `systemctl --user edit recoveryd` would make it: a test can't wait for three minutes.
QUICKER = """[Service]
WatchdogSec=4
RestartSec=100ms
TimeoutStopSec=5
ExecStopPost=/bin/sh -c 'echo $SERVICE_RESULT >> %t/ends'
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(params=[True], ids=["mounted"])
def user(wheels: tuple[Path, Path], request: pytest.FixtureRequest) -> Iterator[Installed]:
    with installed(run_is_mounted=request.param) as made:
        made.get(wheels[0])
        yield made


@pytest.fixture
def screen(user: Installed) -> Iterator[Screen]:
    """A desktop where that of a login is: its bus is in the runtime folder."""
    if desktop.missing():
        pytest.skip(desktop.missing())
    with running_screen(user.manager.runtime, user.manager.enter) as made:
        yield made


def contents(user: Installed) -> dict[str, bytes | str]:
    """All that is in the home but the program, the client's own folders and caches."""
    home, found = user.manager.home, {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if not name.startswith((".venvs", ".local/share/opencode", "elsewhere", ".cache")):
            found[name] = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
    return found


def test_from_install_to_uninstall(user: Installed, screen: Screen, wheels: tuple[Path, Path]) -> None:
    before = contents(user)
    said = user.recoveryd("install")
    assert "wrote: ~/.config/systemd/user/recoveryd.service" in said and "running: watching" in said
    assert user.manager.ctl("is-enabled", UNIT) == "enabled"
    toast_with_undo(user, screen)
    drop_in = user.manager.home / ".config/systemd/user/recoveryd.service.d/override.conf"
    with user.manager.as_user():
        drop_in.parent.mkdir()
        drop_in.write_text(QUICKER)
    user.manager.ctl("daemon-reload")
    user.manager.ctl("restart", UNIT)
    started_again(user, "STOP", "watchdog")
    started_again(user, "KILL", "signal")
    reloads(user)
    switched(user)
    strict(user, screen)
    upgraded(user, wheels[1])
    drop_in.unlink()
    assert "ledger stays" in user.recoveryd("uninstall")
    assert user.json("status")["running"] == []
    user.recoveryd("uninstall", "--purge", "--yes")
    assert contents(user) == before
    assert UNIT not in user.manager.ctl("list-units", "--all", "--plain")


def toast_with_undo(user: Installed, screen: Screen) -> None:
    """A session breaks and is healed; the desktop says so, and its button takes it back."""
    stuck, broken = user.breaks_and_is_healed()
    user.wait(lambda: screen.displayed() == 1, "no toast")
    screen.press("Undo")
    user.wait(lambda: stuck.files == broken, "the button does nothing")
    assert "session healed: stuck" in screen.history()[-1]["summary"].lower()


def started_again(user: Installed, how: str, result: str) -> None:
    """The process gets a signal, which the manager sees; the next process heals what broke meanwhile."""
    pid = user.pid
    user.manager.run("kill", f"-{how}", pid)
    stuck, _ = user.broken()
    user.wait(lambda: user.pid not in ("0", pid), "it was not started again")
    user.healed(stuck)
    assert (user.manager.runtime / "ends").read_text().splitlines()[-1] == result


def reloads(user: Installed) -> None:
    """The configuration is read again by the process that runs."""
    pid, other = user.pid, user.manager.home / "elsewhere" / "opencode"
    config = user.manager.home / ".config" / "recoveryd" / "config.toml"
    with user.manager.as_user():
        (other / "storage" / "message").mkdir(parents=True)
        config.parent.mkdir()
        config.write_text('[opencode]\ndata_dirs = ["~/elsewhere/opencode"]\n')
    user.manager.ctl("reload", UNIT)
    user.wait(lambda: "elsewhere" in user.manager.show(UNIT, "StatusText"), "it was not read")
    assert user.pid == pid


def switched(user: Installed) -> None:
    """`stop`, `start` and `restart` are those of the manager, and `logs` has it all without a journal."""
    user.recoveryd("stop")
    assert (user.pid, user.manager.ctl("is-enabled", UNIT)) == ("0", "enabled")
    user.recoveryd("start")
    pid = user.pid
    user.recoveryd("restart")
    assert "0" != user.pid != pid
    assert [name in user.recoveryd("logs") for name in (f"pid {pid}", f"pid {user.pid}")] == [True, True]


def strict(user: Installed, screen: Screen) -> None:
    """In the sandbox, which stays on: healed, and told; the home is closed but for the store and our own state."""
    shown = len(screen.history())
    user.recoveryd("install", "--strict")
    mounts, home = mounted(user), str(user_manager.HOME)
    ours = {path.removeprefix(home): how for path, how in mounts.items() if path.startswith(home)}
    places = (".local/share/opencode", "elsewhere/opencode", ".local/state/recoveryd")
    assert ours == {"": "ro", **{f"/{place}": "rw" for place in places}}
    assert mounts["/"] == "ro"
    user.breaks_and_is_healed()
    user.wait(lambda: screen.displayed() == 1, "no toast")
    assert len(screen.history()) == shown + 1


def mounted(user: Installed) -> dict[str, str]:
    """How the process of the service sees each mount: "ro" or "rw"."""
    lines = user.manager.run("cat", f"/proc/{user.pid}/mountinfo").stdout.splitlines()
    return {line.split()[4]: line.split()[5][:2] for line in lines}


def upgraded(user: Installed, wheel: Path) -> None:
    """`install` of the newer program starts that, as strict as before, on the ledger of the older one."""
    recoveries = user.json("history")
    user.get(wheel)
    assert user.json("status")["running"][0]["version"] != NEWER
    user.recoveryd("install")
    assert [holder["version"] for holder in user.json("status")["running"]] == [NEWER]
    assert user.json("history") == recoveries
    user.breaks_and_is_healed()
    assert mounted(user)["/"] == "ro"


@pytest.mark.parametrize("user", [True, False], indirect=True, ids=["a mount", "a plain folder"])
def test_strict_where_run_is(user: Installed) -> None:
    """Each option of the sandbox lets the word through that it is ready, and so do all of them."""
    options = re.findall(r"(?m)^[A-Z]\w+=.*", (ROOT / "systemd" / "strict.conf").read_text())
    always = [option for option in options if option.startswith(("PrivateUsers=", "BindReadOnlyPaths="))]
    assert len(always) == 2
    assert [option for option in options if not starts(user, *always, option)] == []
    assert "running: watching" in user.recoveryd("install", "--strict")
    user.breaks_and_is_healed()


def starts(user: Installed, *options: str) -> bool:
    """Whether a service with these options is heard when it says that it is ready."""
    words = [word for option in options for word in ("-p", option.replace("%t", str(user_manager.RUNTIME)))]
    kind = ("-p", "Type=notify", "-p", "NotifyAccess=all", "-p", "TimeoutStartSec=10")
    command = ("systemd-run", "--user", "-q", "--collect", *kind, *words, "systemd-notify", "--ready")
    return user.manager.run(*command, check=False).returncode == 0
