"""The buttons of a notice: what they ask for is done by the daemon, and answered."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recoveryd.clients import Clients, Config
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core import clean
from recoveryd.core.model import Failure, Outcome
from recoveryd.heal import take_back
from recoveryd.ledger import Ledger
from recoveryd.settings import Notify, paths
from recoveryd.tell import NOT_AGAIN, show_undone
from recoveryd.tell.notifier import Delivery, Fate, Notifier
from recoveryd.tell.toast import BODY_LENGTH, Toast
from recoveryd.tell.tui import TuiToasts
from tests.support.fake_client import Fake, client_with
from tests.support.running import is_healed, running, until
from tests.support.trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def toasts(monkeypatch: pytest.MonkeyPatch) -> list[Toast]:
    sent: list[Toast] = []

    def send(_: Notifier, toast: Toast) -> Delivery:
        sent.append(toast)
        return Delivery(Fate.SHOWN)

    monkeypatch.setattr(Notifier, "send", send)
    return sent


def press(toast: Toast, title: str) -> None:
    next(button for button in toast.buttons if button.title == title).pressed()


@pytest.mark.live
def test_undo_puts_the_session_back_and_says_so(
    tree: Tree, tmp_path: Path, toasts: list[Toast], lines: list[str]
) -> None:
    session = tree.stuck()
    before = tree.files()
    with running(tmp_path, tree.store, notify=Notify(tui=False)) as daemon:
        until(lambda: toasts)
        assert is_healed(tree, session)
        assert [button.title for button in toasts[0].offered().buttons] == ["Undo", "Show"], "no client listens"
        press(toasts[0], "Show")
        assert toasts[1].title == "What was done: My session"
        press(toasts[0], "Undo")
        until(lambda: len(toasts) == 3)
        assert toasts[2].title == "Undone"
        assert tree.files() == before
        press(toasts[0], "Undo")
        until(lambda: len(toasts) == 4)
        assert toasts[3].title == "Not undone"
        assert "was undone before" in toasts[3].body
        [entry] = daemon.history()
        assert any(f"{entry.id} undone: Not undone" in line for line in lines), lines
    assert [entry.outcome for entry in daemon.history()] == [Outcome.UNDONE]


@pytest.mark.live
@pytest.mark.parametrize("title", ["", "many\nwords " * 90])
def test_what_came_of_a_button_is_told_behind_any_title(
    tree: Tree, tmp_path: Path, toasts: list[Toast], title: str
) -> None:
    session = tree.stuck(title=title)
    with running(tmp_path, tree.store, notify=Notify(tui=False)):
        until(lambda: toasts)
        press(toasts[0], "Undo")
        until(lambda: len(toasts) == 2)
    shown = clean(toasts[1].body, BODY_LENGTH, keep="\n")
    assert shown.startswith("many words many" if title else f"{session}: ") and shown.endswith(f"{NOT_AGAIN}.")


@pytest.mark.live
def test_an_undo_is_shown_in_the_client_that_has_the_session(tree: Tree, tmp_path: Path) -> None:
    """As the failed message was made: by that a client knows that it has this store, and not a copy of it."""
    session = tree.refused(tree.stuck(), folder="/worktree")
    with running(tmp_path, tree.store, notify=Notify(tui=False)) as daemon:
        until(lambda: is_healed(tree, session))
    [healed] = daemon.history()
    shown: list[tuple[object, ...]] = []
    clients = Clients(Config())
    show_undone(clients, tree.store, healed, lambda *said: shown.append(said))
    [(server, failure, directory, title, text, variant)] = shown
    assert server is clients.of(tree.store).server
    assert isinstance(failure, Failure) and failure.time == next(
        message.created for message in tree.store.load(session).messages if message.id == healed.message
    )
    assert (directory, variant) == (tree.store.about(session).directory, "info")
    assert "Undone: My session" in str(title) and healed.id in str(text)
    assert failure.folder == "/worktree", "where its user works"


@pytest.mark.live
def test_a_notice_holds_until_what_it_tells_of_is_undone(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a command, say, in another process: a client that was too slow for it is not told any more."""
    sent: list[Callable[[], bool]] = []
    monkeypatch.setattr(TuiToasts, "send", lambda _, *said: sent.append(said[-1]))
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: sent)
        assert is_healed(tree, session) and sent[0]()
        [healed] = daemon.history()
        with Ledger(daemon.state / "ledger.db") as ledger:
            take_back(tree.store, ledger, paths.lock_dir(daemon.state), healed.id)
        assert not sent[0]()


@contextmanager
def _asked_to_go_on(tree: Tree, tmp_path: Path, toasts: list[Toast], session: str) -> Iterator[Fake]:
    """A session that was healed, and a client of it that listens. Then "Continue" is pressed, and it is answered."""
    with (
        client_with(tree, session) as fake,
        running(
            tmp_path,
            tree.store,
            notify=Notify(tui=False),
            opencode=OpencodeSettings(server_url=fake.url),
            resume_text="go on",
        ),
    ):
        until(lambda: toasts)
        yield fake
        press(toasts[0], "Continue")
        until(lambda: len(toasts) == 2)


@pytest.mark.live
def test_continue_is_there_where_a_client_listens_and_says_why_it_did_not_go_on(
    tree: Tree, tmp_path: Path, toasts: list[Toast]
) -> None:
    session = tree.stuck()
    with _asked_to_go_on(tree, tmp_path, toasts, session) as fake:
        assert [button.title for button in toasts[0].offered().buttons] == ["Continue", "Undo", "Show"]
        fake.accepts = 500
    assert toasts[1].title == "Does not go on"
    assert toasts[1].body.endswith(f". {Clients(Config()).of(tree.store).go_on(tree.store, session)}.")


@pytest.mark.live
def test_how_a_session_goes_on_is_not_told_where_it_was_deleted(
    tree: Tree, tmp_path: Path, toasts: list[Toast]
) -> None:
    session = tree.stuck()
    with _asked_to_go_on(tree, tmp_path, toasts, session):
        for file in sorted(tree.root.rglob(f"*{session}*"), key=lambda found: -len(found.parts)):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    there = f"There is no session {session!r} in {tree.root}."
    assert (toasts[1].title, toasts[1].body) == ("Does not go on", f"My session: {there}")
