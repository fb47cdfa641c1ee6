"""Root in the home of a user (`sudo -E`) writes nothing there; root at home, and in a container, goes on as ever."""

from __future__ import annotations

import os
import pwd
from contextlib import nullcontext
from pathlib import Path

import pytest

from recoveryd.core import RecoverydError, RefusedError
from recoveryd.disk import check_owner, foreign, owners, private_files
from tests.conftest import Run
from tests.support.terminal import kept
from tests.support.trees import Tree

ALICE = next(user for user in pwd.getpwall() if user.pw_uid)
NOBODY_HERE = max(user.pw_uid for user in pwd.getpwall()) - 1
while any(user.pw_uid == NOBODY_HERE for user in pwd.getpwall()):
    NOBODY_HERE -= 1


def as_root(monkeypatch: pytest.MonkeyPatch, of: Path, owner: int) -> None:
    """This process is root's, and a folder with all in it `owner`'s."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(owners, "_owner", lambda place: owner if place.is_relative_to(of) else 0)


@pytest.fixture
def alices(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo -E`: root, in the home of a user."""
    as_root(monkeypatch, tmp_path, ALICE.pw_uid)


@pytest.mark.usefixtures("alices")
@pytest.mark.parametrize(
    "argv",
    [
        ("scan", "--repair"),
        ("run",),
        ("compact", "SESSION"),
        ("pause",),
        ("ignore", "SESSION"),
        ("config", "init"),
        ("config", "set", "notify.desktop", "false"),
    ],
    ids=" ".join,
)
def test_root_writes_nothing_in_the_home_of_a_user(run: Run, tree: Tree, tmp_path: Path, argv: tuple[str, ...]) -> None:
    session = tree.stuck()
    before = kept(tmp_path)
    code, out, err = run(*(session if word == "SESSION" else word for word in argv))
    assert (code, out, kept(tmp_path)) == (4, "", before)
    assert f"{tmp_path} belongs to {ALICE.pw_name}, and this runs as root: " in err
    assert f"Run it as {ALICE.pw_name}, without sudo." in err


@pytest.mark.parametrize(
    "argv",
    [
        ("undo", "RECOVERY"),
        ("ledger", "forget", "SESSION", "--yes"),
        ("ledger", "prune", "--keep-days", "0", "--all-content", "--yes"),
        ("ignore", "--remove", "SESSION"),
        ("scan", "--repair"),
    ],
    ids=" ".join,
)
def test_nor_into_what_that_user_has_there(
    run: Run, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    session = tree.stuck()
    run("scan", "--repair")
    run("ignore", session)
    recovery = run("history")[1].split("\n")[1].split()[0]
    as_root(monkeypatch, tmp_path, ALICE.pw_uid)
    code, _, err = run(*({"SESSION": session, "RECOVERY": recovery}.get(word, word) for word in argv))
    assert (code, "without sudo" in err) == (4, True)


@pytest.mark.usefixtures("alices")
def test_doctor_says_so_and_what_to_do(run: Run) -> None:
    said = " ".join(run("doctor")[1].split())
    assert "fail state_folder" in said
    assert f"Next: Run it as {ALICE.pw_name}, without sudo." in said


@pytest.mark.parametrize("owner", [0, NOBODY_HERE, 65_534])
def test_root_in_a_home_of_its_own_or_of_nobody_known_writes_as_ever(
    run: Run, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int
) -> None:
    """A container may mount a home whose owner it does not know; a user namespace shows such a one as nobody."""
    as_root(monkeypatch, tmp_path, owner)
    check_owner(tmp_path / "state" / "recoveryd")


def test_below_root_s_own_home_all_is_root_s(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's folder, mounted there: the client is root's there, too."""
    as_root(monkeypatch, tmp_path / "mounted", ALICE.pw_uid)
    (tmp_path / "mounted").mkdir()
    check_owner(tmp_path / "mounted" / "recoveryd")


@pytest.mark.parametrize("of_root", [True, False])
def test_the_host_s_folder_may_be_mounted_as_the_home_of_root(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_root: bool
) -> None:
    """And `sudo -E` has the home of a user for that: the system tells which is root's."""
    as_root(monkeypatch, tmp_path, ALICE.pw_uid)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = pwd.struct_passwd(("root", "x", 0, 0, "", str(tmp_path if of_root else tmp_path / "root"), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", {0: root, ALICE.pw_uid: ALICE}.__getitem__)
    with nullcontext() if of_root else pytest.raises(RefusedError):
        check_owner(tmp_path / ".local" / "state" / "recoveryd")


def test_a_folder_of_another_user_is_foreign_to_its_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ALICE.pw_uid)
    monkeypatch.setattr(owners, "_owner", lambda _: ALICE.pw_uid)
    assert foreign(tmp_path) is None
    monkeypatch.setattr(owners, "_owner", lambda _: NOBODY_HERE)
    check_owner(tmp_path)  # the system keeps them apart
    problem = foreign(tmp_path)
    assert problem is not None
    assert (f"(uid {NOBODY_HERE})" in problem.message, "chown" in problem.hint) == (True, False)


def test_what_root_made_there_before_is_given_back_by_chown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ALICE.pw_uid)
    monkeypatch.setattr(owners, "_owner", lambda _: 0)
    folder = tmp_path / "Application Support"  # macOS has it there
    with pytest.raises(RecoverydError, match="belongs to another user \\(root\\)") as caught:
        private_files.make_folder(folder)
    assert f"`sudo chown -R {ALICE.pw_name} '{folder}'` makes it yours" in caught.value.hint
    assert not isinstance(caught.value, RefusedError)
