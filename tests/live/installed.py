"""recoveryd as a user has it: a wheel in a venv, `recoveryd` on the PATH, and a real systemd user manager."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.screen import until
from tests.live.stuck import Stuck
from tests.support.user_manager import HOME, UserManager, user_manager

ROOT = Path(__file__).parents[2]
VENV = HOME / ".venvs" / "recoveryd"
NEWER = "9.0.0"
PATIENCE = 60.0
UNIT = "recoveryd.service"


def build_wheels(folder: Path) -> tuple[Path, Path]:
    """Wheels of this source tree, and of one that calls itself newer."""
    newer = folder / "newer"
    for name in ("recoveryd", "systemd", "launchd"):
        shutil.copytree(ROOT / name, newer / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, newer)
    module = newer / "recoveryd" / "core" / "version.py"
    module.write_text(f'"""The version."""\n\n__version__ = "{NEWER}"\n')
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "-w", str(folder)]
    both = [subprocess.Popen([*pip, str(source)]) for source in (ROOT, newer)]
    assert [process.wait(100) for process in both] == [0, 0]
    made = set(folder.glob("*.whl"))
    (later,) = folder.glob(f"*-{NEWER}-*.whl")
    (now,) = made - {later}
    return now, later


class Installed:
    """A user of `manager` and what is theirs."""

    def __init__(self, manager: UserManager) -> None:
        self.manager = manager
        self.storage = manager.home / ".local" / "share" / "opencode" / "storage"
        with manager.as_user():
            for name in ("session", "message", "part"):
                (self.storage / name).mkdir(parents=True)
            for folder in (".config", ".local/state", ".local/bin", ".venvs"):
                (manager.home / folder).mkdir()
            (manager.home / ".local" / "bin" / "recoveryd").symlink_to(VENV / "bin" / "recoveryd")
        python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        manager.run(str(python), "-m", "venv", "--without-pip", str(VENV))
        libraries = sysconfig.get_path("purelib")
        (inner,) = (manager.home / ".venvs").glob("recoveryd/lib/python*/site-packages")
        (inner / "libraries.pth").write_text(f"{libraries}\n")

    def get(self, wheel: Path) -> None:
        """Put this wheel in place of the one that is there."""
        shutil.copy(wheel, self.manager.home)
        pip = ("-m", "pip", "--disable-pip-version-check", "--python", f"{VENV}/bin/python", "install", "--no-index")
        self.manager.run(sys.executable, *pip, "--no-deps", "-q", wheel.name)
        (self.manager.home / wheel.name).unlink()

    def recoveryd(self, *words: str, check: bool = True, **env: str) -> str:
        """What a command says on stdout; with `check`, one that does not end with 0 is an AssertionError."""
        return self.manager.run("recoveryd", *words, check=check, **env).stdout

    def json(self, *words: str) -> Any:
        """The document of a command, whatever it ends with."""
        return json.loads(self.recoveryd(*words, "--json", check=False))

    def broken(self) -> tuple[Stuck, dict[str, bytes]]:
        """A session that was refused just now, and its files as the client left them."""
        with self.manager.as_user():
            stuck = Stuck(self.storage)
            stuck.fail()
        return stuck, stuck.files

    def breaks_and_is_healed(self) -> tuple[Stuck, dict[str, bytes]]:
        """The same, once it is healed and confirmed."""
        stuck, before = self.broken()
        self.healed(stuck)
        return stuck, before

    def healed(self, stuck: Stuck) -> None:
        """Wait until its recovery is confirmed."""
        history = ("history", "--session", stuck.id)
        self.wait(lambda: [entry["outcome"] for entry in self.json(*history)] == ["healed"], "it was not healed")

    def wait(self, true: Any, problem: str) -> None:
        """Wait for it; an AssertionError with the log when it does not come."""
        try:
            until(true, problem, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{problem}\n{self.log[-3000:]}\n{self.manager.log.read_text()[-2000:]}") from error

    @property
    def log(self) -> str:
        """The daemon's own log."""
        file = self.manager.home / ".local/state/recoveryd/recoveryd.log"
        return file.read_text() if file.exists() else ""

    @property
    def pid(self) -> str:
        """The service's process, as it is called inside."""
        return self.manager.show(UNIT, "MainPID")


@contextmanager
def installed(*, run_is_mounted: bool = True) -> Iterator[Installed]:
    """A user with a manager, and with the libraries of whoever runs the test."""
    with user_manager(Path(sys.base_prefix), Path(sys.prefix), run_is_mounted=run_is_mounted) as manager:
        yield Installed(manager)
