"""`recoveryd plugin`, and what `install` and `uninstall` do about it, in a home with the folders of clients."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.clients.opencode import plugin_file, processes
from recoveryd.doctor import client_checks
from recoveryd.doctor.examined import Patient
from recoveryd.service import plugins
from recoveryd.settings import paths
from tests.cli.contract import faults
from tests.service.test_service import Run, fakes, home, run, tree  # noqa: F401 - fixtures
from tests.support.terminal import in_terminal

EDITED = "// mine\n"


@pytest.fixture
def opencode(home: Path) -> Path:  # noqa: F811
    """The folder of OpenCode's settings; that of Kilo is not there."""
    made = home / ".config/opencode"
    made.mkdir()
    return made


@pytest.fixture
def file(opencode: Path) -> Path:
    return opencode / "plugin" / "recoveryd.js"


def state_of(run: Run) -> str:  # noqa: F811
    said = json.loads(run("plugin", "status", "--json")[1])
    assert faults("plugin", said) == []
    return str(said["plugins"][0]["state"])


def test_it_is_put_there_and_taken_away_and_leaves_nothing(run: Run, home: Path, file: Path) -> None:  # noqa: F811
    before = tree(home)
    assert state_of(run) == "absent"
    code, out, err = run("plugin", "install")
    assert (code, err) == (0, "") and f"wrote: {file}" in out
    assert state_of(run) == "current"
    folder = paths.state_dir() / "plugin"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder)] == [0o700, 0o700]
    assert str(folder.parent) in file.read_text()
    assert "unchanged" in run("plugin", "install")[1]
    (folder / "1-0123456789ab.json").write_text("{}")
    assert f"removed: {file}" in run("plugin", "remove")[1]
    assert not folder.exists()
    folder.parent.rmdir()
    assert tree(home) == before and not file.parent.exists()


@pytest.mark.usefixtures("opencode")
@pytest.mark.parametrize("command", [("plugin", "remove"), ("uninstall",), ("uninstall", "--purge")])
def test_a_client_that_runs_on_keeps_no_file_there(
    run: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    """It puts its sign of life there again as soon as it is gone, as long as the folder is there (seen on 1.18.34)."""
    assert run("install")[0] == 0
    alive = paths.state_dir() / "plugin" / "1-0123456789ab.json"
    alive.write_text("{}")
    unlink = os.unlink

    def and_again(*words: Any, **options: Any) -> None:
        unlink(*words, **options)
        if alive.parent.is_dir():
            alive.write_text("{}")

    monkeypatch.setattr(os, "unlink", and_again)
    code, _, err = run(*command)
    assert (code, err) == (0, "")
    assert not alive.parent.exists()
    assert command[0] == "plugin" or not paths.state_dir().exists()


@pytest.mark.usefixtures("opencode")
def test_what_the_system_does_not_let_be_removed_is_told(
    run: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was a traceback, and no document."""
    run("plugin", "install")
    folder = paths.state_dir() / "plugin"

    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(plugins, "remove_folder", locked)
    code, out, err = run("plugin", "remove", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    assert f"{folder} can't be removed: Permission denied." in err and "`recoveryd plugin remove` again" in err


def test_the_folder_of_another_plugin_stays(run: Run, file: Path) -> None:  # noqa: F811
    run("plugin", "install")
    (file.parent / "mine.js").write_text(EDITED)
    run("plugin", "remove")
    assert [path.name for path in file.parent.iterdir()] == ["mine.js"]


def test_a_folder_of_the_other_name_that_is_there_is_used(run: Run, opencode: Path) -> None:  # noqa: F811
    (opencode / "plugins").mkdir()
    run("plugin", "install")
    assert (opencode / "plugins/recoveryd.js").exists() and not (opencode / "plugin").exists()


def test_where_no_client_is_nothing_is_written(run: Run, home: Path) -> None:  # noqa: F811
    before = tree(home)
    code, out, _ = run("plugin", "install")
    assert code == 0 and "no client that takes a plugin is here" in out
    assert tree(home) == before


def test_each_client_has_its_own(run: Run, home: Path, file: Path) -> None:  # noqa: F811
    (home / ".config/kilo").mkdir()
    run("plugin", "install")
    other = home / ".config/kilo/plugin/recoveryd.js"
    assert '"client": "opencode"' in file.read_text() and '"client": "kilo"' in other.read_text()


@pytest.mark.parametrize("words", ["mine", "one of ours, changed"])
def test_what_somebody_edited_is_not_touched_without_asking(run: Run, file: Path, words: str) -> None:  # noqa: F811
    run("plugin", "install")
    edited = EDITED if words == "mine" else file.read_text() + EDITED
    file.write_text(edited)
    assert state_of(run) == "edited"
    for what in ("install", "remove"):
        code, _, err = run("plugin", what)
        assert code == 4 and "was changed" in err and "--yes" in err
        assert file.read_text() == edited
    for whole in ("install", "uninstall"):
        code, out, _ = run(whole)
        assert code == (4 if whole == "uninstall" else 0) and f"left: {file}" in " ".join(out.split())
        assert file.read_text() == edited
    assert run("plugin", "install", "--yes")[0] == 0
    assert state_of(run) == "current"


def test_one_that_somebody_edited_keeps_no_other_from_being_put_or_taken(run: Run, home: Path, file: Path) -> None:  # noqa: F811
    (home / ".config/kilo").mkdir()
    other = home / ".config/kilo/plugin/recoveryd.js"
    file.parent.mkdir()
    file.write_text(EDITED)
    assert run("plugin", "install")[0] == 4 and other.exists()
    code, out, _ = run("uninstall")
    assert code == 4 and f"left: {file} was changed" in " ".join(out.split()) and not other.exists()
    assert file.read_text() == EDITED
    other.parent.write_text("a file, where its folder belongs")
    code, _, err = run("plugin", "install", "--yes")
    assert code == 1 and str(other) in err and file.read_text() != EDITED


@pytest.mark.parametrize(("answer", "state"), [("n\n", "edited"), ("y\n", "current")])
def test_in_a_terminal_it_is_asked(run: Run, file: Path, answer: str, state: str) -> None:  # noqa: F811
    file.parent.mkdir()
    file.write_text(EDITED)
    shown = in_terminal("plugin", "install", typed=answer)
    assert "replaced? [y/N]" in shown.drawn
    assert (shown.code, state_of(run)) == (4 if state == "edited" else 0, state)


@pytest.mark.usefixtures("opencode")
def test_install_brings_it_unless_told_not_to_and_uninstall_takes_it(run: Run, file: Path) -> None:  # noqa: F811
    assert run("install", "--no-plugin")[0] == 0
    assert not file.exists()
    assert f"wrote: {file}" in run("install")[1]
    assert run("uninstall")[0] == 0
    assert not file.exists() and not paths.state_dir().exists()


def test_the_configuration_that_was_named_stays_until_another_one_is(
    run: Run,  # noqa: F811
    home: Path,  # noqa: F811
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the service: /recoveryd is not to write where that configuration does not let it."""
    named, another = home / "a name.toml", home / "another.toml"
    named.write_text("dry_run = true\n")
    another.write_text("")
    assert run("plugin", "install")[0] == 0 and "--config" not in file.read_text()
    assert "updated" in run("--config", str(named), "plugin", "install")[1]
    written = file.read_text()
    assert f'"--config", "{named}"' in written
    assert "unchanged" in run("plugin", "install")[1] and file.read_text() == written
    source = plugin_file._source()
    monkeypatch.setattr(plugin_file, "_source", lambda: source + "// newer")
    assert "updated" in run("plugin", "install")[1] and f'"--config", "{named}"' in file.read_text()
    assert "updated" in run("--config", str(another), "plugin", "install")[1] and str(named) not in file.read_text()


def test_one_of_another_version_is_replaced(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    source = plugin_file._source()
    with monkeypatch.context() as patch:
        patch.setattr(plugin_file, "_source", lambda: f"{source}// of an older version\n")
        run("plugin", "install")
    assert state_of(run) == "outdated"
    assert f"updated: {file}" in run("plugin", "install")[1]
    assert state_of(run) == "current"


@pytest.fixture
def checked(home: Path) -> Callable[[], tuple[str, str]]:  # noqa: F811
    def check() -> tuple[str, str]:
        """The level and the words of `doctor`."""
        patient = Patient(Config(), paths.config_file(), paths.state_dir(), (), 0)
        [found] = client_checks.check_plugins(patient)
        return found.level, found.says

    return check


def processes_are(monkeypatch: pytest.MonkeyPatch, *found: tuple[int, float]) -> None:
    def with_sessions(_: object) -> Iterator[tuple[int, float]]:
        yield from found

    monkeypatch.setattr(processes, "with_sessions", with_sessions)


def test_doctor_says_how_it_is(
    run: Run,  # noqa: F811
    file: Path,
    checked: Callable[[], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes_are(monkeypatch)
    assert checked()[0] == "ok" and "has no plugin" in checked()[1]
    run("plugin", "install")
    assert checked() == ("ok", f"{file} is in place (none running).")
    os.utime(file, (1, 1))
    processes_are(monkeypatch, (os.getpid(), 2))
    assert checked()[0] == "warn" and "is silent" in checked()[1]
    life = {"version": 1, "plugin": "", "client": "opencode", "pid": os.getpid(), "directory": "/d"}
    alive = paths.state_dir() / "plugin" / f"{os.getpid()}-0123456789ab.json"
    for missing, level, says in (([], "ok", "older plugin"), (["session.abort"], "warn", "no session.abort")):
        alive.write_text(json.dumps(life | {"started": 1e13, "missing": missing}))
        alive.chmod(0o600)
        assert checked()[0] == level and says in checked()[1]
    file.write_text(EDITED)
    assert checked()[0] == "warn" and "was changed" in checked()[1]


def test_doctor_names_what_brings_back_a_folder_that_was_removed(
    run: Run,  # noqa: F811
    file: Path,
    checked: Callable[[], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the state folder, say: a client that loaded the plugin since is not silent for a reason of its own."""
    run("plugin", "install")
    folder = paths.state_dir() / "plugin"
    folder.rmdir()
    os.utime(file, (1, 1))
    processes_are(monkeypatch, (os.getpid(), 2))
    level, says = checked()
    assert level == "warn" and f"{folder}, by which it hears of recoveryd, is missing" in says
    assert "unchanged" in run("plugin", "install")[1] and folder.is_dir()
    assert "is missing" not in checked()[1]


def test_doctor_is_content_where_no_client_takes_one(checked: Callable[[], tuple[str, str]]) -> None:
    assert checked() == ("ok", "No client that takes a plugin keeps its settings here.")
