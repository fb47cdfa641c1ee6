"""A real systemd user manager, for a user that exists nowhere else, in namespaces of its own.

It needs root, systemd, util-linux and a cgroup2 that can be written to; `missing` says what there is not. The machine's
own processes, mounts and cgroups are neither seen nor changed, and all of it ends with the process that started it.
`python -m tests.support.user_manager COMMAND...` runs a command in one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

NAME, UID = "somebody", 59_999
HOME, RUNTIME = Path("/home", NAME), Path("/run/user", str(UID))
NEEDED = ("systemctl", "unshare", "nsenter", "setpriv", "mount")
PATIENCE = 60.0
_SYSTEMD = Path("/lib/systemd/systemd")
# The first process in the namespaces. It ends with its stdin, and everything in there with it.
_INIT = """
set -eu
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/manager
chown -R {uid} /sys/fs/cgroup/manager
{mounts}
mount -t tmpfs -o mode=755 tmpfs {run}
mkdir -p {runtime} /run/systemd/system /run/systemd/unit-root
mount --bind {folder}/run {runtime}
mount --bind {folder}/passwd /etc/passwd
mount -t tmpfs -o mode=755 tmpfs /home
mkdir {home}
mount --bind {folder}/home {home}
mkdir -p {runtime}/systemd/user
ln -s /dev/null {runtime}/systemd/user/dbus.socket
chown -R {uid} {runtime}
( echo $BASHPID > /sys/fs/cgroup/manager/cgroup.procs
  cd {home}
  exec setpriv --reuid {uid} --regid {uid} --clear-groups {systemd} --user ) < /dev/null &
echo started
read -r _ || true
"""


def missing() -> str:
    """Why there can't be one here; "" if there can."""
    if os.geteuid() != 0:
        return "only root can make the namespaces of a user manager"
    programs = [name for name in NEEDED if not shutil.which(name)]
    if programs or not _SYSTEMD.exists():
        return f"not installed: {', '.join(programs) or 'systemd'}"
    return "" if _cgroups() else "no cgroup2 that can be written to"


def _cgroups() -> Path | None:
    """Where a cgroup2 is mounted that takes a new group."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(","):
            return Path(place)
    return None


class UserManager:
    """`home` and `runtime` are the user's folders, as they are called outside of the namespaces.

    `enter`: the words in front of a command that make it one of the user's inside.
    """

    def __init__(self, folder: Path, first: int) -> None:
        self.home, self.runtime, self.log = folder / "home", folder / "run", folder / "manager.log"
        into = [f"--target={first}", "--mount", "--pid", "--ipc", "--cgroup", f"--setuid={UID}", f"--setgid={UID}"]
        self.enter = ["nsenter", *into, "env", f"--chdir={HOME}"]
        self.env = {**_environment(), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus"}

    def run(self, *command: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """What a command of the user's comes to, in the home folder. With `check` a failure is an AssertionError."""
        words = [*self.enter, *command]
        done = subprocess.run(
            words, env={**self.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
        assert not (check and done.returncode), f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def ctl(self, *words: str, check: bool = True) -> str:
        """What `systemctl --user` says."""
        return self.run("systemctl", "--user", *words, check=check).stdout.strip()

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.ctl("show", "--property", name, "--value", unit)

    @contextmanager
    def as_user(self) -> Iterator[None]:
        """What this process writes meanwhile belongs to the user."""
        os.setegid(UID)
        os.seteuid(UID)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)


@contextmanager
def user_manager(*shown: Path, run_is_mounted: bool = True) -> Iterator[UserManager]:
    """One that runs. `shown` are folders that its user may read, whoever may search those above them.

    Without `run_is_mounted`, /run is a plain folder of the root, as in a container.
    """
    with tempfile.TemporaryDirectory(prefix="recoveryd-user-") as name, _cgroup() as cgroup:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("home", "run"):
            (folder / part).mkdir(mode=0o700)
            os.chown(folder / part, UID, UID)
        users = Path("/etc/passwd").read_text()
        (folder / "passwd").write_text(f"{users.rstrip()}\n{NAME}:x:{UID}:{UID}::{HOME}:/bin/bash\n")
        script = _INIT.format(
            uid=UID, folder=folder, home=HOME, runtime=RUNTIME, systemd=_SYSTEMD, mounts="\n".join(_bound(shown)),
            run="/run" if run_is_mounted else "/run/user",
        )  # fmt: skip
        unshare = "unshare --cgroup --mount --pid --ipc --fork --kill-child --mount-proc bash -c"
        enter = ["bash", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec {unshare} "$1"', "bash", script]
        pipe = subprocess.PIPE
        with (
            (folder / "manager.log").open("wb") as log,
            subprocess.Popen(enter, env=_environment(), stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
        ):
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "started\n", (folder / "manager.log").read_text()
                (first,) = psutil.Process(process.pid).children()
                made = UserManager(folder, first.pid)
                _wait_until_it_runs(made)
                yield made
            finally:
                process.kill()  # and by --kill-child the first process, and so all of them


def _wait_until_it_runs(manager: UserManager) -> None:
    deadline = time.monotonic() + PATIENCE
    while (state := manager.ctl("is-system-running", check=False)) not in ("running", "degraded"):
        assert time.monotonic() < deadline, f"{state}\n{manager.log.read_text()}"
        time.sleep(0.05)


def _environment() -> dict[str, str]:
    path = f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(HOME), "USER": NAME, "PATH": path, "XDG_RUNTIME_DIR": str(RUNTIME), "LANG": "C.UTF-8"}


def _bound(shown: Sequence[Path]) -> Iterator[str]:
    """Commands that show folders where they are, though one above them is closed to the user (as /root is)."""
    closed: dict[Path, list[Path]] = {}
    for folder in shown:
        above = [parent for parent in reversed(folder.parents) if not parent.stat().st_mode & 0o001]
        if above:
            closed.setdefault(above[0], []).append(folder)
    for top, folders in closed.items():
        yield "mkdir -p /run/kept"
        for number, folder in enumerate(folders):
            yield f"mkdir -p /run/kept/{number}; mount --bind '{folder}' /run/kept/{number}"
        yield f"mount -t tmpfs -o mode=755 tmpfs '{top}'"
        for number, folder in enumerate(folders):
            yield f"mkdir -p '{folder}'; mount --move /run/kept/{number} '{folder}'"


@contextmanager
def _cgroup() -> Iterator[Path]:
    """A group below that of the machine; gone afterwards, with all that were made in it."""
    above = _cgroups()
    assert above is not None
    made = above / f"recoveryd-test-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    try:
        yield made
    finally:
        deadline = time.monotonic() + PATIENCE
        while made.exists():  # each is busy until the last of its processes is gone
            with suppress(OSError):
                for group in (*sorted((path for path in made.rglob("*") if path.is_dir()), reverse=True), made):
                    group.rmdir()
            assert time.monotonic() < deadline, "processes are left"
            time.sleep(0.02)


def main() -> int:
    reason = missing()
    if reason:
        print(reason)
        return 1
    with user_manager(Path(sys.base_prefix), Path(sys.prefix)) as manager:
        done = manager.run(*sys.argv[1:], check=False)
        print(done.stdout, done.stderr, sep="", end="")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
