"""`install` and `uninstall` in a home of their own, with managers that only write down what they are asked."""

from __future__ import annotations

import errno
import io
import json
import os
import plistlib
import pwd
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import recoveryd.cli.install as command
from recoveryd.cli import main
from recoveryd.clients import Config, ShellSettings, Whose, find_stores
from recoveryd.core.errors import RecoverydError, RefusedError
from recoveryd.core.model import Failure, Kind, Outcome
from recoveryd.disk import private_files
from recoveryd.disk.locks import StoreLock
from recoveryd.ledger.ledger import Ledger, Record
from recoveryd.service import base, launchd, shell_settings, systemd
from recoveryd.service.base import Service
from recoveryd.service.launchd import Launchd, plist
from recoveryd.settings import paths
from recoveryd.settings.load import load
from recoveryd.settings.overrides import ignored
from tests.cli.contract import faults
from tests.support.database import NEW, Base
from tests.support.managers import Fakes
from tests.support.rollouts import Rollout
from tests.support.transcript import Transcript

STARTED = ["--user daemon-reload", "--user enable recoveryd.service", "--user restart recoveryd.service"]
TRY_OUT = base.try_command
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with the usual folders; the shell says nothing more."""
    for name in [n for n in os.environ if n.startswith(("RECOVERYD_", "OPENCODE_", "XDG_", "SUDO_", "SSH_", "WSL_"))]:
        monkeypatch.delenv(name)
    made = tmp_path / "home"
    for name in (".config", ".local/state", ".local/share"):
        (made / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setattr(systemd, "_HIDDEN", ())  # the tests' own folders are below /tmp
    monkeypatch.setattr(base, "try_command", lambda *_: None)  # a process a time, which two tests are about
    return made


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    made = Fakes(tmp_path / "fakes")
    monkeypatch.setenv("PATH", f"{made.path}:{os.environ['PATH']}")
    return made


@pytest.fixture
def run(home: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        """What a person is shown of a path begins with ~; here it is whole."""
        try:
            code = main(argv)
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out.replace("~/", f"{home}/"), said.err

    return call


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchd, "_PAUSE_S", 0.0)
    monkeypatch.setattr(command, "_manager", lambda: Launchd(os.environ))


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """All that is below a folder: a file's bytes, where a link points, None for a folder."""

    def content(path: Path) -> bytes | str | None:
        return str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None

    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*"))}


def unit(home: Path) -> Path:
    return home / ".config/systemd/user/recoveryd.service"


def state(home: Path) -> Path:
    return home / ".local/state/recoveryd"


def config(home: Path, text: str | None = None) -> Path:
    made = home / ".config/recoveryd/config.toml"
    if text is not None:
        made.parent.mkdir(exist_ok=True)
        made.write_text(text)
    return made


def recorded(home: Path) -> None:
    """A recovery in the ledger."""
    with Ledger(private_files.make_folder(state(home)) / "ledger.db") as ledger:
        failure = Failure("store", "ses_1", "msg_1", 1)
        ledger.record(Record("r1", failure, "", Kind.EMPTY_CONTENT), Outcome.REFUSED)


def test_install_says_which_clients_it_found(home: Path, run: Run, fakes: Fakes) -> None:
    del fakes
    Base(home / ".local/share/kilo/kilo.db", NEW)
    Rollout(home / ".codex").healthy()
    transcript = Transcript()
    transcript.user("hi")
    transcript.write(home / ".claude" / "projects")
    assert "clients found: Kilo, Codex, Claude Code" in " ".join(run("install")[1].split())


@pytest.mark.live
def test_install_writes_the_unit_starts_it_and_says_so(
    home: Path, run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "try_command", TRY_OUT)
    code, out, err = run("install")
    assert (code, err) == (0, "")
    assert fakes.calls() == ["--user show-environment", *STARTED, "--user show -p StatusText --value recoveryd.service"]
    assert f"wrote: {unit(home)}" in out
    assert "running: watching a store" in out
    assert "clients found: none yet; they are waited for" in out
    assert "journalctl --user -u recoveryd" in out and "recoveryd uninstall" in out
    [line] = [line for line in unit(home).read_text().splitlines() if line.startswith("ExecStart=")]
    program, verb = line.removeprefix("ExecStart=").split(" ")
    assert (Path(program).parent, verb) == (Path(sys.executable).parent, "run")
    assert "@" not in "".join(li for li in unit(home).read_text().splitlines() if not li.startswith(("#", "System")))
    assert list(tree(home / ".config")) == [
        "systemd",
        "systemd/user",
        "systemd/user/default.target.wants",
        "systemd/user/default.target.wants/recoveryd.service",
        "systemd/user/recoveryd.service",
    ]


@pytest.mark.usefixtures("home", "fakes")
def test_paths_are_shown_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    main(["install"])
    assert "wrote: ~/.config/systemd/user/recoveryd.service\n" in capsys.readouterr().out


@pytest.mark.live
def test_completion_and_manual_page_are_put_where_the_shells_look(
    home: Path, run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what there is on this machine; with what a person still has to do. A file of somebody else is left."""
    for name in ("bash", "zsh", "fish", "man"):
        (fakes.path / name).write_text("#!/bin/sh\n")
        (fakes.path / name).chmod(0o755)
    before = tree(home)
    code, out, _ = run("install")
    said = " ".join(out.split())
    share = home / ".local/share"
    files = ["bash-completion/completions/recoveryd", "zsh/site-functions/_recoveryd"]
    files += ["fish/vendor_completions.d/recoveryd.fish", "man/man1/recoveryd.1"]
    assert code == 0 and all((share / name).is_file() and f"wrote: {share / name}" in said for name in files)
    assert (share / files[1]).read_text().startswith("#compdef recoveryd")
    assert "$fpath" in said and ("is not on the PATH" in said) is (shutil.which("recoveryd") is None)
    assert f"unchanged: {share / files[3]}" in " ".join(run("install")[1].split())
    assert run("uninstall")[0] == 0 and tree(home) == before
    (share / files[0]).parent.mkdir(parents=True)
    (share / files[0]).write_text("mine")
    run("uninstall")
    assert (share / files[0]).read_text() == "mine"
    monkeypatch.setenv("PATH", f"{fakes.path}:/usr/bin:/bin")
    code, out, _ = run("install")
    said = " ".join(out.split())
    assert (code, (share / files[0]).read_text()) == (0, "mine") and f"not written: {share / files[0]} is not" in said
    assert "is not on the PATH" in said


@pytest.mark.parametrize("place", ["its own venv", ".local/bin"])
@pytest.mark.parametrize("on_path", [True, False])
@pytest.mark.parametrize("tool", ["pipx ensurepath", "uv tool update-shell", ""])
@pytest.mark.usefixtures("fakes")
def test_what_has_the_program_answer_to_its_name_works_when_typed(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, *, place: str, on_path: bool, tool: str
) -> None:
    """Twice, too. On a new machine there is no ~/.local/bin; where pipx put the program there, no link is needed."""
    program = home / place / "recoveryd"
    there = {"systemctl", *tool.split()[:1]}
    if not (on_path and place == ".local/bin"):
        monkeypatch.setattr(shutil, "which", lambda name, **_: None if name not in there else f"/bin/{name}")
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho recoveryd "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(base, "command", lambda: (str(program),))
    monkeypatch.setattr(base, "try_command", lambda *_: None)
    path = f"{home}/.local/bin/:/usr/bin:/bin" if on_path else "/usr/bin:/bin"
    monkeypatch.setenv("PATH", f"{os.environ['PATH'].split(':')[0]}:{path}")
    said = " ".join(run("install")[1].split())
    if place == ".local/bin":
        assert "ln -s" not in said and ("is not on the PATH" in said) is not on_path
        named = {one for one in ("pipx ensurepath", "uv tool update-shell") if one in said}
        assert named == ({tool} - {""} if not on_path else set())
        return
    typed = re.search(r"`(mkdir [^`]*)`", said)
    assert typed is not None and ("once that folder is on it" in said) is not on_path
    for _ in range(2):
        subprocess.run(["/bin/sh", "-c", typed[1]], env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)
    assert (home / ".local/bin/recoveryd").resolve() == program.resolve()


@pytest.mark.live
def test_install_again_changes_nothing_and_starts_the_new_program(home: Path, run: Run, fakes: Fakes) -> None:
    """That is an upgrade, too."""
    run("install")
    before = tree(home)
    fakes.calls()
    code, out, _ = run("install")
    assert (code, tree(home)) == (0, before)
    assert f"unchanged: {unit(home)}" in out
    assert fakes.calls()[1:4] == STARTED
    unit(home).write_text("# recoveryd install\nof an older version\n")
    assert f"updated: {unit(home)}" in run("install")[1]
    assert tree(home) == before


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("name", ["other.toml", 'an "odd" 100% \\ name.toml'])
def test_the_configuration_that_was_named_stays_until_another_one_is(home: Path, run: Run, name: str) -> None:
    """An upgrade is not to let a service write that was installed with a dry run."""
    named, another = home / name, home / "another.toml"
    named.write_text("dry_run = true\n")
    another.write_text("")
    assert run("--config", str(named), "install")[0] == 0
    before = unit(home).read_text()
    assert run("install")[0] == 0 and unit(home).read_text() == before
    assert run("install", "--print")[1] == before
    assert run("install", "--config", str(another))[0] == 0 and str(another) in unit(home).read_text()


@pytest.mark.live
def test_uninstall_leaves_nothing_over(home: Path, run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what was written into a configuration of the user's own."""
    config(home, "# mine\nmax_retries = 5 # enough\n\n[opencode]\ndata_dirs = [\n  '/a', # the one\n]\n")
    before = tree(home)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    assert run("install", "--strict")[0] == 0
    assert tree(home) != before
    monkeypatch.setenv("OPENCODE_DB", str(home / "x.db"))
    assert run("install")[0] == 0
    with Ledger(state(home) / "ledger.db"):  # what a run without a recovery leaves
        (state(home) / "recoveryd.log").touch()
        (state(home) / "0123.lock").touch()
    fakes.calls()
    code, out, err = run("uninstall")
    assert (code, err) == (0, "")
    assert tree(home) == before
    assert "--user disable --now recoveryd.service" in fakes.calls()
    assert "ledger stays" not in out
    assert run("uninstall")[0] == 0


def test_uninstall_keeps_a_ledger_that_can_undo_something(home: Path, run: Run) -> None:
    run("install")
    recorded(home)
    (state(home) / "recoveryd.log").touch()
    code, out, _ = run("uninstall")
    assert code == 0 and f"The ledger stays: {state(home) / 'ledger.db'}" in " ".join(out.split())
    assert [name for name in tree(state(home)) if not name.startswith("ledger.db")] == []
    with Ledger(state(home) / "ledger.db") as ledger:
        assert len(ledger.history(9)) == 1


def test_uninstall_keeps_what_is_to_be_ignored(home: Path, run: Run) -> None:
    """Who takes it out for a while does not choose anew: the next one would repair what was to be left alone."""
    run("install")
    assert run("ignore", "ses_1")[0] == 0
    code, out, _ = run("uninstall")
    assert code == 0 and f"left: {state(home) / 'ignore.json'}" in " ".join(out.split())
    assert list(tree(state(home))) == ["ignore.json"] and ignored(state(home)) == ("ses_1",)
    assert run("ignore", "--remove", "ses_1")[0] == 0
    code, out, _ = run("uninstall")
    assert code == 0 and "left:" not in out and not state(home).exists()
    assert run("ignore", "ses_1")[0] == 0 and run("uninstall", "--purge", "--yes")[0] == 0
    assert not state(home).exists()


def test_purge_takes_all_and_only_if_that_is_meant(home: Path, run: Run, fakes: Fakes) -> None:
    before = tree(home)
    config(home, "max_retries = 2\n")
    run("install")
    recorded(home)
    installed = tree(home)
    fakes.calls()
    code, _, err = run("uninstall", "--purge")
    assert (code, tree(home), fakes.calls()) == (4, installed, [])
    assert "--yes" in err and "none can be undone any more" in " ".join(err.split())
    code, out, _ = run("uninstall", "--purge", "--yes")
    assert (code, tree(home)) == (0, before)
    assert all(str(gone) in out for gone in (config(home), state(home), unit(home)))


@pytest.mark.usefixtures("fakes")
def test_of_a_ledger_that_cannot_be_read_purge_counts_nothing(home: Path, run: Run) -> None:
    recorded(home)
    paths.ledger_file(state(home)).write_bytes(b"damaged" * 1000)
    code, _, err = run("uninstall", "--purge")
    said = " ".join(err.split())
    assert code == 4 and "the ledger, which can't be read now" in said and "recovery that it tells of" not in said
    assert run("uninstall")[0] == 0 and paths.ledger_file(state(home)).exists(), "it may hold some"
    assert run("uninstall", "--purge", "--yes")[0] == 0 and not state(home).exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("\n", 4), ("", 4)])
def test_on_a_terminal_purge_asks(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, said: str, code: int) -> None:
    recorded(home)
    monkeypatch.setattr(sys, "stdin", Terminal(said))
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    assert (run("uninstall", "--purge")[0], state(home).exists()) == (code, bool(code))
    assert "of the 1 recovery that it tells of, none can be undone any more" in " ".join(shown.getvalue().split())


@pytest.mark.usefixtures("fakes")
def test_uninstall_goes_by_the_configuration_that_the_service_was_given(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not to be named again, and stays: only the one that is named now, or is in the usual place, is removed."""
    named, usual = home / "named.toml", config(home, "max_retries = 2\n")
    named.write_text("max_retries = 4\n")
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    assert run("--config", str(named), "install")[0] == 0 and named.read_text() != "max_retries = 4\n"
    asked: list[int] = []

    def plugins(_do: object, by: Config, *_: object) -> int:
        asked.append(by.max_retries)
        return 0

    monkeypatch.setattr("recoveryd.cli.plugin.put_or_leave_plugins", plugins)
    code, out, _ = run("uninstall", "--purge", "--yes")
    assert (code, asked, named.read_text(), usual.exists()) == (0, [4], "max_retries = 4\n", False)
    assert f"left: {named}" in out and not usual.parent.exists()


@pytest.mark.parametrize("purge", [(), ("--purge", "--yes")])
def test_what_can_not_be_removed_is_told(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, purge: tuple[str, ...]
) -> None:
    state(home).mkdir(parents=True)
    (state(home) / "recoveryd.log").touch()

    def refuses(path: object, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuses)
    monkeypatch.setattr(shutil, "rmtree", refuses)
    code, _, err = run("uninstall", *purge)
    assert code == 1 and f"{home}/" in err and "can't be removed: Permission denied" in err


def test_what_can_not_be_removed_is_told_by_its_whole_path(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    state(home).mkdir(parents=True)
    (state(home) / "recoveryd.log").touch()

    def refuses(path: str, *, dir_fd: int | None = None) -> None:
        if Path(path).name == "recoveryd.log":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        unlink(path, dir_fd=dir_fd)

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", refuses)
    code, _, err = run("uninstall", "--purge", "--yes")
    assert code == 1 and f"{state(home)}/recoveryd.log can't be removed" in err


def test_an_output_that_nobody_reads_is_no_file_that_can_not_be_removed(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("recoveryd.cli.steps.print_wrapped", closed)
    monkeypatch.setattr("recoveryd.cli.steps.to_nowhere", lambda _: None)  # a test's stream has no descriptor
    code, _, err = run("uninstall")
    assert (code, err) == (0, "")


def test_what_another_run_uses_is_not_taken_from_it(home: Path, run: Run, tmp_path: Path) -> None:
    recorded(home)
    with StoreLock(tmp_path, paths.lock_dir(state(home)), "store"):
        before = tree(state(home))
        code, _, err = run("uninstall", "--purge", "--yes")
        assert (code, tree(state(home))) == (75, before)
        assert f"pid {os.getpid()}" in err and f"`kill {os.getpid()}`" in err


@pytest.mark.parametrize("how", ["no manager", "no systemctl"])
def test_a_service_that_can_not_be_ended_from_here_keeps_its_files(
    home: Path, run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """In a shell of su or sudo: without its unit nothing of ours would ever end it."""
    assert run("install")[0] == 0
    if how == "no manager":
        (fakes.folder / "unreachable").touch()
    else:
        monkeypatch.setenv("PATH", str(home))
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
    with StoreLock(home, paths.lock_dir(state(home)), "store"):
        before = tree(home)
        code, out, err = run("uninstall", "--purge", "--yes")
        assert (code, out, tree(home)) == (75, "", before)
        said = " ".join(err.split())
        assert "nothing is removed" in said and f"`kill {os.getpid()}`. Then run `recoveryd uninstall` again." in said
    code, out, _ = run("uninstall")
    assert (code, unit(home).exists(), "can't be installed" in out) == (0, False, False)
    assert "not stopped: its manager can't be reached from here" in out


@pytest.mark.parametrize("how", ["no manager", "no systemctl"])
def test_without_a_user_manager_it_says_what_to_do_and_writes_nothing(
    home: Path, run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "no manager":
        (fakes.folder / "unreachable").touch()
    else:
        monkeypatch.setenv("PATH", str(home))
    before = tree(home)
    code, out, err = run("install")
    assert (code, out, tree(home)) == (1, "", before)
    assert "`recoveryd start`" in err and "`recoveryd run`" in err
    assert ("No medium found" if how == "no manager" else "there is no systemd") in err
    assert run("install", "--print")[0] == 0
    assert run("uninstall")[0] == 0
    monkeypatch.setenv("WSL_DISTRO_NAME", "Debian")
    assert ("/etc/wsl.conf" in run("install")[2]) is (how == "no manager")


def test_print_shows_the_unit_and_does_nothing(home: Path, run: Run, fakes: Fakes) -> None:
    before = tree(home)
    code, out, _ = run("install", "--print")
    assert (code, tree(home), fakes.calls()) == (0, before, [])
    both = json.loads(run("install", "--print", "--strict", "--json")[1])["units"]
    run("install")
    assert unit(home).read_text() == out
    assert list(both) == [str(unit(home)), f"{unit(home)}.d/strict.conf"]


def test_as_json_it_is_what_the_contract_says(home: Path, run: Run) -> None:
    for name in ("install", "uninstall"):
        code, out, err = run(name, "--json")
        assert (code, err, faults(name, json.loads(out))) == (0, "", [])


def test_strict_lets_a_repair_write_where_each_store_says(home: Path, run: Run) -> None:
    """A tree of files has its parts beside its messages; Codex moves a thread that is archived to another folder."""
    for folder in (".codex/sessions", ".codex/archived_sessions", "tree/storage/message"):
        (home / folder).mkdir(parents=True)
    (home / ".config/recoveryd").mkdir(parents=True, exist_ok=True)
    (home / ".config/recoveryd/config.toml").write_text(f'[opencode]\ndata_dirs = ["{home}/tree/storage"]\n')
    units = json.loads(run("install", "--print", "--strict", "--json")[1])["units"]
    open_ = {line.partition("=-")[2] for line in units[f"{unit(home)}.d/strict.conf"].splitlines()}
    assert {str(home / ".codex/sessions"), str(home / ".codex/archived_sessions")} < open_
    assert str(home / ".codex") not in open_
    assert any(folder and (home / "tree/storage/part").is_relative_to(folder) for folder in open_)


@pytest.mark.live
def test_strict_stays_until_it_is_taken_back(home: Path, run: Run) -> None:
    """It opens the stores and our own state; a folder that is not there yet is told."""
    drop_in = Path(f"{unit(home)}.d/strict.conf")
    data = home / ".local/share/opencode"
    (home / ".local/share/opencode").mkdir()
    out = run("install", "--strict")[1]
    open_ = [line for line in drop_in.read_text().splitlines() if line.startswith("ReadWritePaths=")]
    assert open_ == [f"ReadWritePaths=-{data}", f"ReadWritePaths=-{state(home)}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        assert f"{home}/data/opencode is not there yet" in run("install")[1]
    assert f"ReadWritePaths=-{home}/data/opencode" in drop_in.read_text()
    assert set(open_) < set(drop_in.read_text().splitlines())
    run("uninstall")
    out = run("install", "--strict")[1]
    assert "server_url" in out and "not there yet" not in out
    data.rmdir()
    assert f"{data} is not there yet" in run("install")[1]
    assert drop_in.exists()
    mine = drop_in.with_name("override.conf")
    mine.write_text("[Service]\nNice=5\n")
    run("install", "--no-strict")
    assert (drop_in.exists(), mine.exists()) == (False, True)
    config(home, "[opencode]\nserver_url = 'http://127.0.0.1:5000'\n")
    assert "server_url" not in run("install", "--strict")[1]
    run("uninstall")
    assert mine.exists(), "the user's own"


def test_a_unit_of_somebody_else_is_left(home: Path, run: Run) -> None:
    unit(home).parent.mkdir(parents=True)
    unit(home).write_text("[Service]\nExecStart=/opt/mine\n")
    code, _, err = run("install")
    assert (code, unit(home).read_text()) == (4, "[Service]\nExecStart=/opt/mine\n")
    assert str(unit(home)) in err
    run("uninstall")
    assert unit(home).exists()


def test_a_unit_goes_without_a_manager_too(home: Path, run: Run, fakes: Fakes) -> None:
    """Also the link by which it was enabled, which is the manager's work otherwise."""
    before = tree(home)
    run("install")
    (fakes.folder / "unreachable").touch()
    code, out, _ = run("uninstall")
    assert (code, tree(home)) == (0, before)
    assert "not stopped" in out


def test_a_long_start_is_not_waited_for(run: Run, fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "_PATIENCE_S", 0.1)
    (fakes.folder / "slow").touch()
    code, out, _ = run("install")
    assert code == 0 and "still looking through your sessions" in out


@pytest.mark.parametrize(
    ("status", "words"),
    [("75", "end that one"), ("78", "recoveryd config check"), ("1", "journalctl"), ("226", "--no-strict")],
)
def test_a_start_that_fails_is_told(run: Run, fakes: Fakes, status: str, words: str) -> None:
    (fakes.folder / "failing").write_text(status)
    code, _, err = run("install", "--strict")
    assert code == 1
    assert "did not start" in err and words in err


def test_who_keeps_the_service_from_starting_is_named(home: Path, run: Run, fakes: Fakes, tmp_path: Path) -> None:
    (fakes.folder / "failing").write_text("75")
    with StoreLock(tmp_path, paths.lock_dir(state(home)), "store"):
        code, _, err = run("install")
    err = " ".join(err.split())
    assert code == 75 and f"(pid {os.getpid()}, since" in err and f"`kill {os.getpid()}`), and this one begins" in err


def test_a_start_that_systemd_refuses_is_told_in_its_words(run: Run, fakes: Fakes) -> None:
    """The status (75: another one runs) is of an earlier time."""
    (fakes.folder / "failing").write_text("75")
    script = fakes.path / "systemctl"
    refuses = "  restart)\n    echo 'Failed to restart recoveryd.service: Transport endpoint is not connected' >&2"
    script.write_text(script.read_text().replace("  restart)", refuses))
    code, _, err = run("install")
    assert code == 1 and "Transport endpoint" in err and "end that one" not in err


def test_a_masked_service_is_not_installed(home: Path, run: Run, fakes: Fakes) -> None:
    unit(home).parent.mkdir(parents=True)
    unit(home).symlink_to("/dev/null")
    (fakes.folder / "LoadState").write_text("masked")
    code, _, err = run("install")
    assert code == 4 and "`systemctl --user unmask recoveryd`" in " ".join(err.split())


def test_where_the_user_lingers_it_starts_with_the_machine(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not end with the last login: that is no reason for a note."""
    monkeypatch.setattr(systemd, "_LINGERING", tmp_path)
    monkeypatch.setenv("SSH_CONNECTION", "somewhere")
    out = run("install")[1]
    assert "enabled: it starts when you log in" in out and "loginctl enable-linger" in out
    (tmp_path / pwd.getpwuid(os.getuid()).pw_name).touch()
    out = run("install")[1]
    assert "enabled: it starts when the machine does" in out and "loginctl enable-linger" not in out


@pytest.mark.parametrize(("status", "ran"), [("1", True), ("203", False), ("226", False)])
def test_no_log_is_named_where_the_program_never_ran(run: Run, fakes: Fakes, status: str, ran: bool) -> None:
    """203: it can't be executed; 226: no namespace. Only systemd tells of these."""
    (fakes.folder / "failing").write_text(status)
    err = " ".join(run("install")[2].split())
    assert "journalctl --user -u recoveryd" in err and ("recoveryd logs" in err) is ran


def test_where_it_can_t_start_yet_the_rest_is_there(home: Path, run: Run, fakes: Fakes) -> None:
    """Another one runs, as behind `demo`: once that has ended, the service begins by itself."""
    (fakes.folder / "failing").write_text("75")
    code, out, _ = run("install")
    assert code == 1 and "completions/recoveryd" in out and "man1/recoveryd.1" in out
    assert any(str(path).endswith("completions/recoveryd") for path in tree(home))


def test_a_bad_configuration_is_told_before_anything_is_written(home: Path, run: Run, fakes: Fakes) -> None:
    config(home, "max_retries = 0\n")
    before = tree(home)
    assert (run("install")[0], tree(home), fakes.calls()) == (78, before, [])
    assert run("uninstall")[0] == 0, "it can be taken out all the same"


def test_it_is_a_service_of_the_user(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "me")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code, _, err = run("install")
    assert code == 4 and "without sudo" in err


def test_a_program_that_does_not_start_elsewhere_is_not_installed(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "try_command", TRY_OUT)
    monkeypatch.setattr(base, "command", lambda: (sys.executable, "-m", "json"))
    before = tree(home / ".config")
    code, _, err = run("install")
    assert (code, tree(home / ".config")) == (1, before)
    assert "pipx install" in err


def test_what_the_service_can_not_see_goes_into_the_configuration(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is said; a second time there is nothing to add. What a variable of ours says can't be kept that way."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "my data"))
    monkeypatch.setenv("OPENCODE_DB", "work.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "100% mine"))
    monkeypatch.setenv("RECOVERYD_OPENCODE_DATABASES", str(home / "beta.db"))
    _, out, _ = run("install")
    places = load(Config, config(home), {}).opencode
    # A database that is there has been found in its folder; this one is named, and may come.
    assert places.data_dirs == (home / "my data/opencode",)
    assert places.databases == (home / "my data/opencode/work.db", home / "beta.db")
    assert f"configured: {config(home)}" in out and "RECOVERYD_OPENCODE_DATABASES is set" in out
    assert f'Environment="XDG_STATE_HOME={home}/100%% mine"' in unit(home).read_text()
    before = config(home).read_bytes()
    assert "configured" not in run("install")[1]
    assert config(home).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# a comment\nmax_retries = 4 # mine\n",
        "[opencode]\ndata_dirs = []\n\n[log]\nlevel = 'DEBUG'\n",
        "[opencode] # here\ndata_dirs = [\n  '/a', # first\n  '/b'\n]\nserver_url = 'http://127.0.0.1:1'",
        "opencode.data_dirs = ['/a']\nopencode.databases = ['/b.db']\n",
        "opencode = { data_dirs = ['/a'] }\nmax_retries = 2\n",
        "opencode = {}\n",
        "[notify]\nquiet = true\r\n[opencode]\r\n",
        "[opencode]",
    ],
)
def test_a_configuration_keeps_what_is_in_it(text: str, tmp_path: Path) -> None:
    lists = {"data_dirs": ("/x/opencode", '/y "z"\\'), "databases": ("/d.db",)}
    found = {"opencode": ShellSettings(lists, {"password_file": "/state/password"})}
    (tmp_path / "before").write_text(text)
    before = load(Config, tmp_path / "before", {})
    made = shell_settings.text_with_shell_settings(text, found)
    (tmp_path / "after").write_text(made)
    after = load(Config, tmp_path / "after", {})
    places = before.opencode.model_copy(
        update={
            "data_dirs": (*before.opencode.data_dirs, *map(Path, lists["data_dirs"])),
            "databases": (*before.opencode.databases, Path("/d.db")),
            "password_file": Path("/state/password"),
        }
    )
    assert after == before.model_copy(update={"opencode": places})
    assert [line for line in text.splitlines() if "#" in line and line.partition("#")[2] not in made] == []


def test_a_password_goes_by_a_file_of_its_own(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "s3cret\u00e9")
    _, out, _ = run("install")
    file = load(Config, config(home), {}).opencode.password_file
    assert file is not None and file.read_text() == "s3cret\u00e9"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(file) in out
    held = [path for path in home.rglob("*") if path.is_file() and path != file and b"s3cret" in path.read_bytes()]
    assert (held, "s3cret" in out) == ([], False)
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "another")
    run("install")
    assert file.read_text() == "another"


@pytest.mark.live
def test_a_user_name_of_its_own_goes_with_the_password(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the service would be refused by a client that lets the shell in."""
    monkeypatch.setenv("OPENCODE_SERVER_USERNAME", "bob")
    run("install")
    assert not config(home).exists(), "without a password there is nothing that it goes with"
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    _, out, _ = run("install")
    assert load(Config, config(home), {}).opencode.username == "bob" and "username bob" in " ".join(out.split())
    monkeypatch.setenv("OPENCODE_SERVER_USERNAME", "eve")
    run("install")
    assert load(Config, config(home), {}).opencode.username == "bob", "the configuration goes before the environment"
    run("uninstall")
    assert not config(home).exists()
    config(home, "[opencode]\npassword_file = '~/mine'\n")
    run("install")
    assert load(Config, config(home), {}).opencode.username == "eve", "with a password file of the user's own, too"
    config(home, "[opencode]\npassword_file = '~/mine'\nusername = 'me'\n")
    run("install")
    assert load(Config, config(home), {}).opencode.username == "me"


@pytest.mark.parametrize("name", ["a:b", "caf\udce9"])
def test_a_user_name_that_can_not_be_one_is_refused_before_anything_is_written(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    monkeypatch.setenv("OPENCODE_SERVER_USERNAME", name)
    assert run("install")[0] == 1
    assert (tree(state(home)), config(home).exists(), unit(home).exists()) == ({}, False, False)


def test_a_configuration_that_was_changed_since_is_left(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the password file that it names."""
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    run("install")
    text = config(home).read_text() + "\n[log]\nlevel = 'DEBUG'\n"
    config(home).write_text(text)
    out = run("uninstall")[1]
    assert config(home).read_text() == text and f"left: {config(home)}" in out
    assert list(tree(state(home))) == ["opencode-password"]
    run("uninstall", "--purge")
    assert not config(home).exists() and not state(home).exists()


@pytest.mark.live
def test_a_password_file_stays_as_long_as_a_configuration_names_it(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is taken out and put in again; and it is written anew where it is missing."""
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    run("install")
    config(home).write_text(config(home).read_text() + "# edited\n")
    file = state(home) / "opencode-password"
    run("uninstall")
    assert "left: " + str(file) in " ".join(run("uninstall")[1].split())
    assert file.read_text() == "secret"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    run("install")  # what it goes back to names the file now
    run("uninstall")
    assert "# edited" in config(home).read_text() and file.read_text() == "secret"
    file.unlink()
    run("install")
    assert file.read_text() == "secret"
    config(home).write_text("[opencode]\n")
    run("uninstall")
    assert not file.exists()


@pytest.mark.parametrize("more", ["", "nonsense = ", "nonsense = 1\n"])
def test_a_password_file_of_the_users_own_stays(home: Path, run: Run, more: str) -> None:
    run("install")
    config(home, f"[opencode]\npassword_file = '~/.local/state/recoveryd/mypw'\n{more}")
    (state(home) / "mypw").write_text("mine")
    (state(home) / "other").write_text("x")
    assert run("uninstall")[0] == 0
    assert tree(state(home)) == {"mypw": b"mine"}


def test_what_another_configuration_names_stays_the_second_time_too(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    monkeypatch.chdir(home)
    (home / "x.toml").write_text("# mine\n")
    run("--config", "x.toml", "install")
    monkeypatch.chdir("/")
    (home / "x.toml").write_text((home / "x.toml").read_text() + "# edited\n")
    for _ in range(2):
        run("uninstall")
        assert (state(home) / "opencode-password").read_text() == "secret"
    (home / "x.toml").unlink()
    run("uninstall")
    assert not state(home).exists()


@pytest.mark.parametrize("text", ["\ufeff", "\ufeff# mine\n[opencode]\n", "# mine\r\n\r\n[log]\r\nlevel = 'DEBUG'\r\n"])
def test_marks_and_line_ends_of_an_editor_come_back(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    config(home, "").write_bytes(text.encode())
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert run("install")[0] == 0
    made = config(home).read_bytes()
    assert made.startswith(b"\xef\xbb\xbf") == text.startswith("\ufeff")
    assert made.count(b"\r\n") == (made.count(b"\n") if "\r\n" in text else 0)
    assert load(Config, config(home), {}).opencode.data_dirs == (home / "data/opencode",)
    run("uninstall")
    assert config(home).read_bytes() == text.encode()


def test_a_password_that_is_no_text_is_refused_before_anything_is_written(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "caf\udce9")
    code, _, err = run("install")
    assert code == 1 and "not UTF-8" in err
    assert (tree(state(home)), config(home).exists(), unit(home).exists()) == ({}, False, False)


def test_no_password_is_written_for_a_configuration_that_can_not_be(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    monkeypatch.setattr(
        shell_settings, "replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    assert run("install")[0] == 1
    assert tree(state(home)) == {}


def test_a_configuration_that_can_not_be_written_says_what_belongs_there(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that another program makes, read-only, behind a link."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setattr(
        private_files, "write", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    code, _, err = run("install")
    assert code == 1
    assert str(config(home)) in err and f"data_dirs {home}/data/opencode" in err
    assert not unit(home).exists()


def test_a_configuration_behind_a_link_is_written_where_it_is(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(home, "").unlink()
    (home / "dotfiles.toml").write_text("# mine\n")
    (home / "dotfiles.toml").chmod(0o640)
    config(home).symlink_to(home / "dotfiles.toml")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    before = tree(home)
    run("install")
    assert config(home).is_symlink() and "data/opencode" in config(home).read_text()
    assert stat.S_IMODE((home / "dotfiles.toml").stat().st_mode) == 0o640
    run("uninstall")
    assert tree(home) == before


def test_what_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script that was called, through its link (pipx); that of the interpreter; else the module."""
    script = tmp_path / "venv" / "recoveryd"
    script.parent.mkdir()
    script.touch(0o755)
    (tmp_path / "recoveryd").symlink_to(script)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(script.parent))
    monkeypatch.setattr(sys, "argv", ["./recoveryd"])
    assert base.command() == (str(tmp_path / "recoveryd"),)
    monkeypatch.setattr(sys, "argv", ["/x/recoveryd/__main__.py"])
    assert base.command() == (str(script),)
    script.chmod(0o644)
    assert base.command() == (sys.executable, "-m", "recoveryd")


def test_words_in_a_unit() -> None:
    assert systemd.quoted("/usr/bin/recoveryd-1.0_x") == "/usr/bin/recoveryd-1.0_x"
    assert systemd.quoted('/a b/"c"\\%h') == '"/a b/\\"c\\"\\\\%%h"'
    for name in ("a\nb", "a\x7f", "caf\udce9"):
        with pytest.raises(RecoverydError, match="can't be written"):
            systemd.quoted(name)


def test_a_folder_that_the_sandbox_hides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecoverydError, match="hidden by --strict"):
        systemd.strict([Path("/home/me/.local/share/opencode"), Path("/tmp/opencode")])


def test_a_plist_is_whole(tmp_path: Path) -> None:
    made = plistlib.loads(plist(Service(("/a b/recoveryd", "--config", "/c<d>"), {"X": "&"}, tmp_path)).encode())
    assert made["ProgramArguments"] == ["/a b/recoveryd", "--config", "/c<d>", "run", "--launchd"]
    assert made["EnvironmentVariables"] == {"X": "&"}
    assert made["StandardErrorPath"] == str(tmp_path / "launchd.err")
    assert made["KeepAlive"] == {"SuccessfulExit": False}
    assert (made["ProcessType"], made["ThrottleInterval"], made["RunAtLoad"]) == ("Background", 30, True)


@pytest.mark.usefixtures("mac")
def test_on_macos_it_is_an_agent(home: Path, run: Run, fakes: Fakes) -> None:
    before = tree(home)
    (fakes.folder / "late").touch()
    code, _, err = run("install")
    assert (code, err) == (0, "")
    file = home / "Library/LaunchAgents/recoveryd.plist"
    domain = f"gui/{os.getuid()}"
    took = f"bootstrap {domain} {file}"
    assert fakes.calls() == [
        f"print {domain}",
        f"bootout {domain}/recoveryd",
        f"enable {domain}/recoveryd",
        took,
        took,  # it was not quite gone the first time
    ]
    made = file.read_bytes()
    assert run("install", "--print")[1].encode() == made
    assert f"unchanged: {file}" in run("install")[1]
    fakes.calls()
    assert run("uninstall")[0] == 0
    assert f"bootout {domain}/recoveryd" in fakes.calls()
    assert tree(home) == {**before, "Library": None, "Library/LaunchAgents": None}
    assert run("install", "--strict")[0] == 1


def test_a_bad_configuration_does_not_go_round_for_ever_under_launchd(home: Path, run: Run) -> None:
    """launchd starts again what ends with anything but 0. The reason is in the log."""
    config(home, "max_retries = 0\n")
    assert run("run")[0] == 78
    assert run("run", "--launchd") == (0, "", "")
    assert "max_retries" in (state(home) / "recoveryd.log").read_text()


@pytest.mark.parametrize("manager", [systemd.Systemd, Launchd])
def test_a_manager_that_is_silent_or_can_not_be_run_is_told(
    home: Path, tmp_path: Path, manager: type[systemd.Systemd | Launchd]
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("systemctl", "launchctl"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nprintf 'a\\377' >&2\n[ \"$2\" = x ] || exec sleep 5\n")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    with pytest.raises(RecoverydError, match="does not answer") as caught:
        manager(env, 0.2).check()
    assert caught.value.hint == "Try again, or log in anew."
    assert base.call_manager(["systemctl", "--user", "x"], env, 5).stderr == "a\udcff"
    with pytest.raises(RecoverydError, match="can't be run: "):
        base.call_manager([str(tmp_path)], env, 5)


def test_a_service_that_can_not_be_stopped_is_said_and_goes(home: Path, run: Run, fakes: Fakes) -> None:
    run("install")
    script = fakes.path / "systemctl"
    script.write_text(script.read_text().replace("disable)", "disable) echo 'Access denied' >&2; exit 1;;\n  x)"))
    code, out, _ = run("uninstall")
    assert code == 0 and "not stopped: `systemctl --user disable --now recoveryd.service` failed" in out
    assert not unit(home).exists()


def test_write_refuses_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(RefusedError):
        base.write(tmp_path / "x", "# recoveryd install", print)
    said: list[str] = []
    base.remove(tmp_path / "x", said.append)
    assert said and (tmp_path / "x").read_text() == "mine"


@pytest.mark.usefixtures("fakes", "terminal")
def test_what_is_said_fits_the_terminal(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    main(["install"])
    recorded(home)
    main(["uninstall"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 50
    assert "The ledger stays: ~/.local/state/recoveryd/ledger.db" in " ".join(out.split())


def test_a_home_of_codex_that_only_the_shell_names_goes_into_its_own_section(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "codex" / "sessions").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    assert run("install")[0] == 0
    assert load(Config, config(home), {}).codex.homes == (home / "codex",)
    assert load(Config, config(home), {}).opencode.data_dirs == ()


@pytest.mark.parametrize("has", ["claude/projects", "claude", "nothing yet"])
def test_a_folder_of_claude_code_that_only_the_shell_names_goes_into_its_own_section(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, has: str
) -> None:
    (home / has).mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    assert run("install")[0] == 0
    assert load(Config, config(home), {}).claude_code.config_dirs == (home / "claude",)
    assert run("install")[0] == 0
    assert load(Config, config(home), {}).claude_code.config_dirs == (home / "claude",)


@pytest.mark.parametrize(
    ("variable", "says", "name"),
    [
        ("KILO_DB", "elsewhere/f.db", "Kilo"),
        ("MIMOCODE_DB", "elsewhere/f.db", "MiMo Code"),
        ("MIMOCODE_HOME", "elsewhere", "MiMo Code"),
    ],
)
@pytest.mark.parametrize("already", ["", '[[opencode.stores]]\npath = "/mine.db"\nname = "Mine"  # kept\n'])
@pytest.mark.parametrize("made", [True, False], ids=["made", "not made yet"])
def test_a_database_of_a_fork_that_only_the_shell_names_goes_among_the_stores_under_its_name(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, says: str, name: str, already: str, made: bool
) -> None:
    path = home / (says if says.endswith(".db") else f"{says}/data/mimocode.db")
    if made:
        Base(path)
    config(home).parent.mkdir(parents=True)
    config(home).write_text(already)
    monkeypatch.setenv(variable, str(home / says))
    assert run("install")[0] == 0
    found = load(Config, config(home), {})
    mine = [("/mine.db", "Mine")] if already else []
    assert [(str(one.path), one.name) for one in found.opencode.stores] == [*mine, (str(path), name)]
    assert already in config(home).read_text()
    assert run("install")[0] == 0
    assert load(Config, config(home), {}) == found
    (store,) = [one for one in find_stores(found, {"HOME": str(home)}) if one.id == str(path)]
    assert Whose(found, []).title(store.id) == name
    assert run("uninstall")[0] == 0
    assert config(home).read_text() == already
