"""The live view: what it tells of each session, and that it draws within the terminal whatever a session holds."""

from __future__ import annotations

import json
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from recoveryd.api import recover
from recoveryd.cli import watch as watch_module
from recoveryd.cli.live_sessions import LiveSession, LiveSessions, State
from recoveryd.cli.output import console
from recoveryd.cli.watch import WatchScreen, _obey, _Worker, draw_screen, show_screen
from recoveryd.clients import Config, SessionStatus, Whose
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.errors import BusyStoreError, RecoverydError, StoreError
from recoveryd.core.model import Outcome
from recoveryd.disk.locks import RunNote, StoreLock
from recoveryd.settings import paths
from recoveryd.tell import NOT_AGAIN
from tests.conftest import Run
from tests.support.database import OLD, Base
from tests.support.fake_client import client_with
from tests.support.rollouts import THREAD, Rollout, threads
from tests.support.terminal import in_terminal
from tests.support.transcript import Transcript, text
from tests.support.trees import EMPTY, Tree, behind_a_call, blank_answer

HOUR_S = 3600


@pytest.fixture
def live(tree: Tree) -> LiveSessions:
    return LiveSessions(Config(), lambda: [tree.store])


def states(rows: list[LiveSession]) -> dict[str, State]:
    return {row.session: row.state for row in rows}


def test_a_session_is_followed_from_its_failure_to_its_undo(live: LiveSessions, tree: Tree, run: Run) -> None:
    session = tree.stuck(title="Refactor")
    (row,) = live.refresh()
    assert (row.state, row.title, row.recovery) == (State.STUCK, "Refactor", "")
    assert "Would put 1 tool result right behind its call" in row.says
    assert run("scan", "--repair")[0] == 0
    (row,) = live.refresh()
    assert row.state is State.HEALED and row.recovery and row.recovery in row.says
    assert any(change.after is not None for change in live.changes(row))
    assert run("undo", row.recovery)[0] == 0
    (row,) = live.refresh()
    assert (row.state, row.recovery, live.changes(row)) == (State.STUCK, "", [])
    tree.answered(session)
    assert states(live.refresh()) == {session: State.ANSWERED}


def test_a_repair_has_its_own_time_where_the_file_keeps_that_of_its_client(tmp_path: Path) -> None:
    began = time.time()
    rollout = Rollout(tmp_path / ".codex", ms=int((began - HOUR_S) * 1000))
    rollout.stuck()
    os.utime(rollout.path, (began - HOUR_S, began - HOUR_S))
    store = threads(rollout.home)
    live = LiveSessions(Config(), lambda: [store])
    (row,) = live.refresh()
    assert row.state is State.STUCK and row.at < began - HOUR_S + 1
    assert (done := recover(THREAD, Config(), stores=[store])) is not None
    assert done.outcome is Outcome.HEALED
    for view in (live, LiveSessions(Config(), lambda: [store])):
        (row,) = view.refresh()
        assert (row.state, row.recovery) == (State.HEALED, done.id)
        assert row.at >= began
    os.utime(rollout.path, (began + 60, began + 60))  # it went on
    for view in (live, LiveSessions(Config(), lambda: [store])):
        assert view.refresh()[0].at > began + 59


def test_a_recovery_stands_in_a_store_that_was_moved_and_linked_to(tree: Tree, run: Run, tmp_path: Path) -> None:
    session = tree.stuck()
    assert run("scan", "--repair")[0] == 0
    tree.answered(session)
    there = tree.root.rename(tmp_path / "storage")
    tree.root.symlink_to(there)
    (row,) = LiveSessions(Config(), lambda: [OpencodeFiles(tree.root)]).refresh()
    assert row.state is State.ANSWERED and row.recovery


def test_what_a_later_refusal_was_not_healed_of_leaves_the_recovery_before_it_to_undo(
    live: LiveSessions, tree: Tree, run: Run
) -> None:
    session = tree.stuck()
    assert run("scan", "--repair")[0] == 0
    [done] = json.loads(run("history", "--json")[1])
    tree.refused(session, EMPTY)
    assert run("scan", "--repair")[0] == 1
    (row,) = live.refresh()
    assert (row.state, row.recovery) == (State.STUCK, done["id"])
    assert run("undo", row.recovery)[0] == 0
    (row,) = live.refresh()
    assert (row.state, row.recovery) == (State.STUCK, "")


def test_what_was_healed_can_be_undone_behind_many_other_recoveries(
    live: LiveSessions, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.stuck()
    assert run("scan", "--repair")[0] == 0
    monkeypatch.setattr(LiveSessions, "_newest", lambda *_: {})  # of the newest few hundred, none is this session's
    for _ in range(2):
        (row,) = live.refresh()
        assert row.state is State.HEALED and row.recovery and row.recovery in row.says
        monkeypatch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at again"))


@pytest.mark.parametrize("key", ["u", "undo"])
def test_the_client_is_told_of_an_undo_by_a_key_as_by_the_command(
    live: LiveSessions, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    session = tree.stuck()
    with client_with(tree, session) as fake:
        monkeypatch.setenv("RECOVERYD_OPENCODE_SERVER_URL", fake.url)
        assert run("scan", "--repair")[0] == 0
        (row,) = live.refresh()
        if key == "u":
            said = watch_module._undo(row, Namespace(config=None, quiet=False))
            assert said.startswith("Undone: ")
        else:
            said = " ".join(run("undo", row.recovery)[1].split())
            assert said.startswith("Took back ")
        assert said.endswith(f" {NOT_AGAIN}.") and NOT_AGAIN in str(fake.asked)
        assert fake.paths() == ["/tui/show-toast"]


def test_every_state_has_its_word(live: LiveSessions, tree: Tree, run: Run) -> None:
    answered = tree.answered(tree.stuck(blank_answer, EMPTY))
    waiting = tree.asked(behind_a_call)
    limited = tree.stuck(blank_answer, "rate limit exceeded")
    ignored = tree.stuck()
    assert run("ignore", ignored)[0] == 0
    wanted = {answered: State.ANSWERED, waiting: State.WAITING, limited: State.ERROR, ignored: State.IGNORED}
    assert states(live.refresh()) == wanted


def test_only_what_changed_is_looked_at_again(live: LiveSessions, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = {tree.stuck(), tree.stuck()}
    assert states(live.refresh()).keys() == sessions
    monkeypatch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at"))
    assert states(live.refresh()).keys() == sessions


def test_old_sessions_are_not_listed(tree: Tree) -> None:
    tree.stuck()
    later = LiveSessions(Config(), lambda: [tree.store], clock=lambda: time.time() + 25 * HOUR_S)
    assert later.refresh() == []


def test_a_store_that_cannot_be_read_is_named_and_the_others_are_shown(tree: Tree, tmp_path: Path) -> None:
    session, broken = tree.stuck(), tmp_path / "opencode.db"
    Base(broken, OLD, clock=time.time)
    broken.write_bytes(broken.read_bytes()[:4096] + b"x" * 8192)
    other = OpencodeSqlite(broken)
    live = LiveSessions(Config(), lambda: [other, tree.store])
    assert states(live.refresh()) == {session: State.STUCK}
    assert list(live.problems) == [other.id]


def test_a_store_that_went_away_takes_its_sessions_along(tree: Tree) -> None:
    session, now = tree.stuck(), [time.time()]
    live = LiveSessions(Config(), lambda: [tree.store] if tree.root.exists() else [], clock=lambda: now[0])
    assert states(live.refresh()) == {session: State.STUCK}
    tree.root.rename(tree.root.with_name("gone"))
    now[0] += 11
    assert (live.refresh(), live.problems) == ([], {})
    tree.root.with_name("gone").rename(tree.root)
    now[0] += 11
    assert states(live.refresh()) == {session: State.STUCK}


def test_a_session_that_its_user_deleted_hides_none_of_the_others(tmp_path: Path) -> None:
    first, second = (Transcript(start=int(time.time() * 1000)) for _ in range(2))
    projects = tmp_path / "projects"
    for one in (first, second):
        one.user("go")
        one.assistant(text("fine"))
    gone = first.write(projects)
    live = LiveSessions(Config(), lambda: [ClaudeCodeTranscripts(projects)])
    second.write(projects)
    assert states(live.refresh()).keys() == {first.session, second.session}
    gone.unlink()
    for _ in range(2):
        assert states(live.refresh()).keys() == {second.session}
        assert live.problems == {}


def test_what_could_not_be_read_for_a_moment_is_looked_at_again(
    live: LiveSessions, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck()
    with monkeypatch.context() as patch:
        patch.setattr(type(tree.store), "stamp", Mock(side_effect=BusyStoreError("It is busy.")))
        assert (live.refresh(), [*live.problems.values()]) == ([], ["It is busy."])
    assert states(live.refresh()) == {session: State.STUCK}
    assert live.problems == {}


def test_a_session_that_cannot_be_read_is_told_beside_the_others(
    live: LiveSessions, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, fine, look = tree.stuck(), tree.stuck(), tree.store.look

    def fails(_: object, session: str) -> SessionStatus:
        if session == odd:
            raise StoreError("It is odd.")
        return look(session)

    monkeypatch.setattr(type(tree.store), "look", fails)
    rows = {row.session: row for row in live.refresh()}
    assert states([*rows.values()]) == {odd: State.STUCK, fine: State.STUCK}
    assert "can't be read: It is odd." in rows[odd].says


def test_a_fault_ends_the_view_and_says_so(view: WatchScreen, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Mock()
    live.refresh.side_effect = OverflowError("too odd")
    worker = _Worker(live, view)
    worker.start()
    worker.join(10)
    assert view.ended == "OverflowError: too odd"

    @contextmanager
    def keys(*_: object) -> Iterator[Callable[[float], str]]:
        yield lambda _: pytest.fail("it waits for a key")

    monkeypatch.setattr(watch_module, "_keys", keys)
    with pytest.raises(RecoverydError, match="OverflowError: too odd") as caught:
        show_screen(view, Mock(), Namespace())
    assert (caught.value.exit_code, "recoveryd scan" in caught.value.hint) == (1, True)


def test_a_terminal_in_which_nothing_can_be_drawn_is_told_as_that() -> None:
    shown = in_terminal("watch", typed="", whole=True, TERM="dumb")
    assert shown.code == 2 and "writes lines only (TERM=dumb)" in shown.text and "recoveryd logs -f" in shown.text


def test_another_configuration_holds_while_it_is_open(tree: Tree) -> None:
    session, now = tree.stuck(), time.time()
    config = Config()
    live = LiveSessions(config, lambda: [tree.store], lambda: now, lambda: config)
    assert states(live.refresh()) == {session: State.STUCK}
    config = Config(ignore=(session,))
    now += 11
    assert states(live.refresh()) == {session: State.IGNORED}
    config = Config(lookback_hours=1 / HOUR_S)
    now += 11
    assert states(live.refresh()) == {}


def test_it_says_why_nothing_is_repaired(live: LiveSessions, tree: Tree) -> None:
    tree.stuck()
    live.refresh()
    assert "recoveryd start" in live.idle()


@pytest.mark.parametrize(
    ("argv", "config", "words"),
    [
        ((), Config(), ""),
        (("pause",), Config(), "recoveryd unpause"),
        (("ignore", "ses_1"), Config(), "can't be read"),
        ((), Config(kinds=()), "names no kind"),
    ],
)
def test_it_says_so_beside_one_that_runs(
    tree: Tree, run: Run, argv: tuple[str, ...], config: Config, words: str
) -> None:
    tree.stuck()
    live = LiveSessions(config, lambda: [tree.store])
    live.refresh()
    if argv:
        assert run(*argv)[0] == 0
    if argv[:1] == ("ignore",):
        (paths.state_dir() / "ignore.json").write_text("{")
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        assert words in live.idle() and bool(live.idle()) is bool(words)


def test_one_that_waits_for_its_first_store_runs(tree: Tree) -> None:
    note = RunNote(paths.lock_dir(paths.state_dir()))
    note.say([tree.store.id], "")
    live = LiveSessions(Config(), list)
    live.refresh()
    try:
        assert live.idle() == "Nothing is repaired: there is no store yet"
    finally:
        note.release()


@pytest.fixture
def view(tree: Tree) -> WatchScreen:
    title = "\x1b[31m" + "wide \u4e16\u754c " * 30
    row = partial(LiveSession, tree.store, title=title, state=State.STUCK, at=0.0, says="no way " * 60)
    problems = ["one store can't be read", "another"]
    rows = [row(session=f"ses_{n}") for n in range(30)]
    return WatchScreen(Whose(Config()), rows, problems, "Nothing is repaired, for a reason of many words", said="ready")


@pytest.mark.parametrize(("columns", "lines"), [(40, 10), (80, 24), (200, 60)])
def test_it_fits_the_terminal_and_obeys_nothing_of_a_session(view: WatchScreen, columns: int, lines: int) -> None:
    out = console(soft_wrap=False)
    out.size = (columns, lines)
    with out.capture() as held:
        out.print(draw_screen(view, out))
    drawn_lines = held.get().splitlines()
    assert len(drawn_lines) <= lines
    assert "\x1b[31m" not in held.get() and "30 sessions, 30 stuck" in drawn_lines[0]
    assert drawn_lines[1].startswith("Nothing is repaired, for")


def test_in_a_narrow_terminal_sentences_and_keys_are_whole(view: WatchScreen) -> None:
    """The end of them is what helps: the command, the keys for Undo and Continue."""
    view.idle = "Nothing is repaired, for no recoveryd runs: recoveryd start"
    out = console(soft_wrap=False)
    out.size = (40, 30)
    with out.capture() as held:
        out.print(draw_screen(view, out))
    lines = [line.rstrip() for line in held.get().splitlines()]
    told = " ".join(lines)
    assert len(lines) <= 30 and view.idle in told and told.endswith("u undo; c continue")


def test_what_is_said_of_a_session_is_whole_where_there_is_room_and_else_breaks_off_visibly(view: WatchScreen) -> None:
    says = " ".join(f"word{n}" for n in range(30))
    view.rows = [replace(view.row or view.rows[0], says=says, recovery="")]
    out = console(soft_wrap=False)

    def drawn(lines: int) -> str:
        out.size = (40, lines)
        with out.capture() as held:
            out.print(draw_screen(view, out))
        assert len(held.get().splitlines()) <= lines
        return " ".join(line.strip() for line in held.get().split("─" * 40)[1].splitlines()).strip()

    assert says in drawn(24)
    assert says not in drawn(14) and drawn(14).endswith("…")


def test_the_selection_stays_with_its_session_and_within_the_list(view: WatchScreen) -> None:
    assert view.row == view.rows[0]
    view.move(-1)
    assert view.row == view.rows[0]
    view.move(3)
    chosen = view.rows[3]
    view.rows = view.rows[2:]
    assert view.row == chosen
    view.move(100)
    assert view.row == view.rows[-1]


def test_in_a_pipe_it_says_what_to_use_instead(run: Run) -> None:
    code, out, said = run("watch")
    assert (code, out) == (2, "") and "needs a terminal" in said and "recoveryd logs -f" in said


@pytest.mark.parametrize(("key", "asks"), [("u", "Undo r1, "), ("c", "Tell A title to go on")])
def test_what_is_asked_about_is_what_is_done(view: WatchScreen, key: str, asks: str) -> None:
    """Another session may come first between the question and the answer."""
    first, *others = (replace(row, title="A title", recovery=f"r{n}") for n, row in enumerate(view.rows, 1))
    worker = Mock()
    view.rows = [first, *others]
    _obey(key, view, worker, Namespace())
    assert view.question.startswith(asks) and not worker.jobs.put.called
    view.rows = [others[0], first, *others[1:]]
    _obey("y", view, worker, Namespace())
    (job,) = worker.jobs.put.call_args.args
    assert (job.args[0], view.question) == (first, "")
    assert view.row == first, "and it stays in sight"


def test_a_prompt_that_nothing_comes_of_is_stuck_after_a_moment(tree: Tree) -> None:
    """Also where its client ended without a word."""
    session, late = tree.asked(behind_a_call), [0.0]
    live = LiveSessions(Config(), lambda: [tree.store], clock=lambda: time.time() + late[0])
    assert states(live.refresh()) == {session: State.WAITING}
    late[0] = 10.0
    (row,) = live.refresh()
    assert row.state is State.STUCK and "tool result" in row.says


def test_a_part_that_the_client_cannot_read_makes_a_session_stuck(tree: Tree, live: LiveSessions) -> None:
    session = tree.answered(tree.stuck())
    tree.part(session, "text").write_bytes(b"{")
    assert states(live.refresh()) == {session: State.STUCK}
