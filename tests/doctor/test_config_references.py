"""What the configuration names: the password file, programs, folders and databases that are there, or are not."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from recoveryd.clients import Config
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.disk import private_files
from recoveryd.doctor.config_references import reference_problems
from recoveryd.settings import Hooks, paths
from tests.conftest import Run
from tests.support.trees import Tree


def said(**config: object) -> list[tuple[str, str]]:
    return [(one.key, one.says) for one in reference_problems(Config.model_validate(config))]


def one_of(config: OpencodeSettings) -> str:
    """What is wrong with the one thing that is."""
    [found] = reference_problems(Config(opencode=config))
    assert found.next
    return found.says


def test_the_defaults_name_nothing() -> None:
    assert reference_problems(Config()) == []


def test_what_is_ignored_is_a_session_or_a_folder(tmp_path: Path) -> None:
    """Also a subagent of Claude Code's, as `scan` shows it."""
    assert (
        reference_problems(
            Config(ignore=("ses_1", "agent-a3f9c1e0b7d244e61", "agent-ad58932", "agent-acompact-83efcb", str(tmp_path)))
        )
        == []
    )
    assert reference_problems(Config(ignore=("agent-acompact-a3f9c1e0b7d244e6",))) == []
    for folder in ("banana", "agent-core", "agent-service", str(tmp_path / "secrt-project")):
        assert [one.key for one in reference_problems(Config(ignore=(folder,)))] == ["ignore"]


class TestPassword:
    def test_one_that_is_yours_alone(self, tmp_path: Path) -> None:
        (tmp_path / "pw").write_text("swordfish\n")
        (tmp_path / "pw").chmod(0o600)
        assert reference_problems(Config(opencode=OpencodeSettings(password_file=tmp_path / "pw"))) == []

    @pytest.mark.parametrize(
        ("content", "mode", "words"),
        [(b"x", 0o640, "Others of this machine may read"), (b" \n", 0o600, "is empty"), (b"\xff", 0o600, "not UTF-8")],
    )
    def test_one_that_is_no_good(self, tmp_path: Path, content: bytes, mode: int, words: str) -> None:
        path = tmp_path / "pw"
        path.write_bytes(content)
        path.chmod(mode)
        assert words in one_of(OpencodeSettings(password_file=path))

    def test_none_and_what_would_be_waited_for(self, tmp_path: Path) -> None:
        assert "not there" in one_of(OpencodeSettings(password_file=tmp_path / "none"))
        os.mkfifo(tmp_path / "pipe")
        assert "no file" in one_of(OpencodeSettings(password_file=tmp_path / "pipe"))

    def test_one_that_can_not_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "pw").touch(0o600)

        def refuse(*_: object) -> str:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_text", refuse)
        assert "can't be read" in one_of(OpencodeSettings(password_file=tmp_path / "pw"))


def test_a_textfile_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder of root, or one that is yet to be made: the daemon only logs it, once."""
    assert said(metrics={"textfile": tmp_path / "recoveryd.prom"}) == []
    [(key, words)] = said(metrics={"textfile": tmp_path / "none" / "recoveryd.prom"})
    assert (key, words) == (
        "metrics.textfile",
        f"The folder {tmp_path}/none can't be found, so no metrics are written.",
    )
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.F_OK)
    [(_, words)] = said(metrics={"textfile": tmp_path / "recoveryd.prom"})
    assert words == f"The folder {tmp_path} can't be written to, so no metrics are written."


class TestHooks:
    def test_programs_are_looked_for_and_not_run(self, tmp_path: Path) -> None:
        program = tmp_path / "healed"
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hooks = Hooks(on_abort=("true",), on_complete=(str(program), "x"))
        [found] = reference_problems(Config(hooks=hooks))
        assert (found.key, found.next) == ("hooks.on_complete", f"chmod +x {program}")
        program.chmod(0o755)
        assert reference_problems(Config(hooks=hooks)) == []
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize(
        ("program", "words"),
        [("no-such-program", "in no folder of PATH"), ("/no/where", "is not there"), ("~/bin/x", "no absolute path")],
    )
    def test_what_could_never_be_started(self, program: str, words: str) -> None:
        [(key, says)] = said(hooks={"on_abort": [program]})
        assert key == "hooks.on_abort" and words in says


class TestStores:
    def test_a_folder_has_a_store_itself(self, tree: Tree, tmp_path: Path) -> None:
        for folder in (tree.root, tree.root.parent):
            assert reference_problems(Config(opencode=OpencodeSettings(data_dirs=(folder,)))) == []
        assert "no store" in one_of(OpencodeSettings(data_dirs=(tree.root.parent.parent,))), "one level too high"
        (tmp_path / "link").symlink_to(tree.root.parent)
        assert reference_problems(Config(opencode=OpencodeSettings(data_dirs=(tmp_path / "link",)))) == []

    def test_what_is_not_there_or_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert "not there" in one_of(OpencodeSettings(data_dirs=(tmp_path / "none",)))
        assert "no folder" in one_of(OpencodeSettings(data_dirs=(tmp_path / "file",)))
        assert "not there" in one_of(OpencodeSettings(databases=(tmp_path / "none.db",)))
        assert "no file" in one_of(OpencodeSettings(databases=(tmp_path,)))
        assert reference_problems(Config(opencode=OpencodeSettings(databases=(tmp_path / "file",)))) == []


def test_what_can_not_be_ignored(tmp_path: Path) -> None:
    [(key, says), (other, gone)] = said(ignore=["ses_1a2B", str(tmp_path), "banana", str(tmp_path / "x")])
    assert (key, other) == ("ignore", "ignore") and '"banana"' in says and f"{tmp_path}/x is not there" in gone


def test_a_folder_that_was_removed_still_has_its_sessions_left_alone(tree: Tree, run: Run) -> None:
    """It said that no session is left alone for it, and to take it out: a session is known by the folder's name."""
    session = tree.stuck()
    folder = tree.store.about(session).directory
    assert folder.startswith("/") and not Path(folder).exists()
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text(f'ignore = ["{folder}"]\n')
    assert [one["session"] for one in json.loads(run("scan", "--json")[1])["ignored"]] == [session]
    told = " ".join(run("config", "check")[1].split())
    assert f"{folder} is not there, so only a session that names it so is left alone" in told


def test_what_is_ignored_in_a_folder_that_may_not_be_entered_may_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "lstat", refused)
    assert said(ignore=[str(tmp_path / "hidden" / "project")]) == []


def test_check_and_doctor_tell_the_same(tree: Tree, run: Run) -> None:
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text('[opencode]\npassword_file = "/no/where"\n')
    code, out, err = run("config", "check")
    assert (code, err) == (1, "") and "opencode.password_file: /no/where is not there" in out
    _, out, _ = run("doctor")
    assert "warn  config       opencode.password_file: /no/where is not there" in out
    assert "is sound" not in out


class TestIgnore:
    @pytest.mark.parametrize("what", ["banana", "no/such/folder", "", "ses_", "r1a2b3c4d", "ses_1 "])
    def test_what_is_neither_is_refused(self, run: Run, tree: Tree, what: str) -> None:
        code, out, err = run("ignore", what)
        assert (code, out) == (2, "") and "neither a session's id nor a folder" in err
        assert not paths.state_dir().exists()

    def test_what_was_ignored_before_that_was_looked_at_can_be_taken_out(self, run: Run, tree: Tree) -> None:
        from recoveryd.settings import overrides

        overrides.ignore(private_files.make_folder(paths.state_dir()), "banana")
        assert run("ignore", "--remove", "banana")[0] == 0


@pytest.mark.parametrize(
    ("config", "below", "key"),
    [
        ({"codex": {"homes": ["{}"]}}, "sessions", "codex"),
        ({"claude_code": {"config_dirs": ["{}"]}}, "projects", "claude_code"),
        ({"opencode": {"databases": ["{}/opencode.db"]}}, "opencode.db", "opencode"),
        ({"hooks": {"on_complete": ["{}/run"]}}, "run", "hooks"),
    ],
)
def test_what_stands_in_a_folder_that_may_not_be_entered_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, dict[str, list[str]]], below: str, key: str
) -> None:
    """It ended `config check` with a traceback. Who runs the tests may be root, who enters every folder."""
    stat, hidden = Path.stat, tmp_path / below

    def refused(path: Path, **how: bool) -> os.stat_result:
        if path == hidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refused)
    named = {
        section: {k: [v.format(tmp_path) for v in some] for k, some in keys.items()} for section, keys in config.items()
    }
    assert said(**named) == [(key, f"{hidden} can't be looked at: permission denied.")]
