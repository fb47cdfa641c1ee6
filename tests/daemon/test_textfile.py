"""`[metrics] textfile` and the count of `status`: what a daemon writes for node_exporter, and who needs the user."""

from __future__ import annotations

import json
import os
import stat
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import parser

from recoveryd.clients import Config, SessionStatus, Stamp, Whose
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.errors import ConfigError, DiskError
from recoveryd.daemon.figures import Figures
from recoveryd.daemon.textfile import Textfile
from recoveryd.diagnose import Context, NeedsUser, needs_user
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings.overrides import ignore, pause
from recoveryd.settings.schema import Metrics
from tests.conftest import Run
from tests.support.build import SessionBuilder
from tests.support.plant import write_tree
from tests.support.running import running, until
from tests.support.trees import EMPTY, MISSING, Tree, blank_answer

TITLES = Whose(Config(), []).title


def fine(session: SessionBuilder) -> None:
    """Nothing in it explains why it is refused."""
    session.user("go")
    session.assistant("fine")


def series(text: str) -> dict[str, float]:
    reader: Any = parser
    families = list(reader.text_string_to_metric_families(text))
    return {" ".join((s.name, *s.labels.values())): s.value for family in families for s in family.samples}


@pytest.mark.live
def test_it_is_written_as_it_goes_and_removed_at_the_end(tree: Tree, tmp_path: Path) -> None:
    file = tmp_path / "recoveryd.prom"
    tree.stuck(blank_answer, EMPTY)
    with running(tmp_path, tree.store, metrics=Metrics(textfile=file)):
        healed = "recoveryd_recoveries OpenCode empty_content healed"
        until(lambda: file.exists() and series(file.read_text()).get(healed) == 1, "it was not written")
        assert stat.S_IMODE(file.stat().st_mode) == 0o644, "another user reads it"
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".prom"] == [file.name]
    assert not file.exists()


@pytest.mark.live
def test_what_no_recovery_tells_of_is_in_it_soon(tree: Tree, tmp_path: Path) -> None:
    """Up to two minutes went by until a session that got stuck during a pause was counted, or one that was answered."""
    file, stuck = tmp_path / "recoveryd.prom", "recoveryd_stuck_sessions OpenCode"

    def counted(number: int) -> bool:
        return file.exists() and series(file.read_text()).get(stuck) == number

    with running(tmp_path, tree.store, metrics=Metrics(textfile=file)) as daemon:
        until(lambda: counted(0))
        pause(daemon.state, time.time())
        began = time.monotonic()
        session = tree.stuck(blank_answer, EMPTY)
        until(lambda: counted(1))
        tree.answered(session)
        until(lambda: counted(0))
        assert time.monotonic() - began < 20


def test_a_file_of_somebody_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "other.prom"
    file.write_text("# mine\n")
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = Textfile(file, TITLES)
        with pytest.raises(DiskError, match="no file of recoveryd"):
            made.write(ledger, {})
        made.remove()
        assert file.read_text() == "# mine\n"
        gone = Textfile(tmp_path / "nowhere" / "x.prom", TITLES)
        with pytest.raises(DiskError, match="can't be written to"):
            gone.write(ledger, {})
        gone.remove()
        Textfile(None, TITLES).write(ledger, {})


def test_what_is_no_file_is_left_and_holds_nothing_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.prom"
    os.mkfifo(pipe)
    with Ledger(tmp_path / "ledger.db") as ledger:
        with pytest.raises(DiskError, match="no file of recoveryd"):
            Textfile(pipe, TITLES).write(ledger, {})
        Textfile(pipe, TITLES).remove()
    assert pipe.is_fifo()


def test_it_is_written_again_only_when_it_is_time(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that streams makes a hundred jobs a second; without one, its time of change says that we live."""
    file, now = tmp_path / "x.prom", [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Ledger(tmp_path / "ledger.db") as ledger:
        config = Config(metrics=Metrics(textfile=file))
        made, context = Figures(config, TITLES), Context(ledger, config, tmp_path)
        for told, touched, later, written, wait in (
            (0, 0, 0, True, 50),
            (0, 0, 1, False, None),  # as was said
            (1, 0, 2, True, 50),
            (1, 0, 49, False, None),
            (1, 0, 1, True, 50),
            (1, 1, 1, False, 4),  # a client wrote
            (1, 9, 1, False, None),
            (2, 9, 0, True, 50),  # a recovery ended
            (2, 10, 5, True, 50),
        ):
            now[0] += later
            assert made.tell(context, [tree.store], told, touched) == wait
            assert file.exists() is written
            file.unlink(missing_ok=True)


def test_a_store_that_is_not_there_yet_hides_no_number_of_its_client(tree: Tree, tmp_path: Path) -> None:
    tree.stuck()
    file, later = tmp_path / "x.prom", OpencodeSqlite(tree.root.parent / "opencode.db")
    config = Config(metrics=Metrics(textfile=file))
    with Ledger(tmp_path / "ledger.db") as ledger:
        Figures(config, TITLES).tell(Context(ledger, config, tmp_path), [tree.store, later], 0)
    assert 'recoveryd_stuck_sessions{client="OpenCode"} 1' in file.read_text()


def test_what_ends_at_once_is_counted_at_once(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each count goes through all sessions; the last one is of all of them."""
    counts: list[int] = []
    find = NeedsUser.find

    def counted(self: NeedsUser, *given: Any) -> Any:
        counts.append(1)
        return find(self, *given)

    monkeypatch.setattr(NeedsUser, "find", counted)
    began = time.monotonic()
    file, healed = tmp_path / "x.prom", "recoveryd_recoveries OpenCode tool_result_missing healed"
    with running(tmp_path, tree.store, metrics=Metrics(textfile=file)) as daemon:
        until(file.exists)
        sessions = {tree.stuck() for _ in range(12)}
        until(lambda: {event.session for event in daemon.events} == sessions)
        until(lambda: series(file.read_text()).get(healed) == 12, "the last count is of all")
        took = time.monotonic() - began
    assert len(counts) <= 2 + took / 2, "one in two seconds"


def test_a_count_that_is_put_off_says_for_how_long(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow(*_: object) -> list[Any]:
        now[0] += 1.0
        return []

    monkeypatch.setattr(NeedsUser, "find", slow)
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = Figures(Config(metrics=Metrics(textfile=tmp_path / "x.prom")), TITLES)
        context = Context(ledger, Config(), tmp_path)
        assert made.tell(context, [tree.store], 1) == 50.0
        now[0] += 0.5
        assert made.tell(context, [tree.store], 2) == 19.5 - 1.0, "a twentieth of the time at the most"
        now[0] += 18.5
        made.tell(context, [tree.store], 2)
        assert made.tell(context, [tree.store], 2, 1) is None, "a hundredth of it for what was written"
        now[0] += 49.5
        assert made.tell(context, [tree.store], 2, 2) == 50.0, "and never later than if nobody wrote"


def test_a_session_is_asked_once_how_it_is(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.answered(tree.stuck())
    looked: list[str] = []
    look = type(tree.store).look

    def counted(store: OpencodeFiles, session: str) -> SessionStatus:
        looked.append(session)
        return look(store, session)

    monkeypatch.setattr(type(tree.store), "look", counted)
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert NeedsUser().find(Context(ledger, Config(), tmp_path), [tree.store]) == []
    assert len(looked) == 1


@pytest.mark.parametrize("path", ["x.prom", "/x/recoveryd.txt"])
def test_a_path_that_node_exporter_would_not_read_is_refused(run: Run, tmp_path: Path, path: str) -> None:
    (tmp_path / "c.toml").write_text(f"[metrics]\ntextfile = '{path}'\n")
    code, _, err = run("--config", str(tmp_path / "c.toml"), "config", "check")
    assert code == ConfigError.exit_code and "metrics.textfile" in err and ".prom" in err


def test_who_needs_the_user(run: Run, tree: Tree) -> None:
    """Stuck and not healed, until an answer came."""
    assert json.loads(run("status", "--json")[1])["need_user"] == []
    healed, lost = tree.stuck(blank_answer, EMPTY), tree.stuck(fine, title="Lost")
    run("scan", "--repair")
    (one,) = json.loads(run("status", "--json")[1])["need_user"]
    assert (one["session"], one["title"]) == (lost, "Lost") and one["recovery"] and healed != lost
    assert "1 session is stuck (Lost)" in " ".join(run("status")[1].split())
    assert series(run("metrics")[1])["recoveryd_stuck_sessions OpenCode"] == 1
    tree.answered(lost)
    assert json.loads(run("status", "--json")[1])["need_user"] == []


def test_of_a_store_that_can_not_be_listed_there_is_no_number(run: Run, tree: Tree, tmp_path: Path) -> None:
    """0 would be an all-clear; one that is not there any more has none either."""
    tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    told = "recoveryd_stuck_sessions OpenCode"
    assert series(run("metrics")[1])[told] == 0
    database = tree.root.parent / "opencode-local.db"
    database.write_bytes(b"no database " * 500)
    assert told not in series(run("metrics")[1])
    with Ledger(tmp_path / "ledger.db") as ledger:
        figures = Figures(Config(metrics=Metrics(textfile=tmp_path / "recoveryd.prom")), TITLES)
        figures.tell(Context(ledger, Config(), tmp_path), [tree.store, OpencodeSqlite(database)], 0)
    assert told not in series((tmp_path / "recoveryd.prom").read_text())
    database.unlink()
    assert series(run("metrics")[1])[told] == 0
    tree.root.parent.rename(tmp_path / "elsewhere")
    assert told not in series(run("metrics")[1])


def test_what_is_refused_again_after_an_undo_needs_the_user(run: Run, tree: Tree) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    run("undo", json.loads(run("history", "--json")[1])[0]["id"])
    tree.refused(session, EMPTY)
    assert run("scan")[0] == 1
    assert [one["session"] for one in json.loads(run("status", "--json")[1])["need_user"]] == [session]
    assert series(run("metrics")[1])["recoveryd_stuck_sessions OpenCode"] == 1


@pytest.mark.parametrize("words", [MISSING, "a llama objects"])
def test_what_did_not_change_is_not_read_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    tree.answered(tree.stuck())
    with Ledger(tmp_path / "ledger.db") as ledger:
        context, asked = Context(ledger, Config(), tmp_path), NeedsUser()
        assert asked.find(context, [tree.store]) == []
        with monkeypatch.context() as patch:
            patch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at"))
            assert asked.find(context, [tree.store]) == []
        session = tree.stuck(words=words)
        assert [one.session for one in asked.find(context, [tree.store])] == [session]
        with monkeypatch.context() as patch:
            patch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at"))
            assert [one.session for one in asked.find(context, [tree.store])] == [session]
            ignore(tmp_path, session)
            patch.undo()
        assert asked.find(context, [tree.store]) == []


def test_a_refused_subagent_is_looked_at_again_for_its_asker_may_go_on(tree: Tree, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    made = SessionBuilder(now - 90_000)
    made.user("go")
    made.assistant("done")
    asked_by = tree.keep(made)
    subagent = tree.stuck(words="a llama objects")
    tree.began(asked_by, subagent)
    with Ledger(tmp_path / "ledger.db") as ledger:
        context, asked = Context(ledger, Config(), tmp_path), NeedsUser()
        assert [one.session for one in asked.find(context, [tree.store])] == [subagent]
        made.user("continue")
        made.assistant("fine")["time"] = {"created": now + 5_000, "completed": now + 6_000}
        write_tree(made.planted(), tree.root)  # only this one: `tree` would write to the other, too
        assert asked.find(context, [tree.store]) == []


def test_a_prompt_without_an_answer_is_not_read_again_once_it_rests(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    session.assistant("done")
    session.user("on")
    tree.keep(session)
    looked: list[str] = []
    look, now = type(tree.store).look, time.time()

    def counted(store: OpencodeFiles, session: str) -> SessionStatus:
        looked.append(session)
        return look(store, session)

    monkeypatch.setattr(type(tree.store), "look", counted)
    with Ledger(tmp_path / "ledger.db") as ledger:
        asked = NeedsUser()
        for later, times in ((0, 1), (60, 2), (3600, 3), (3660, 3)):
            clock = partial(float, now + later)
            assert asked.find(Context(ledger, Config(), tmp_path, clock=clock), [tree.store]) == []
            assert len(looked) == times


def test_a_thousand_sessions_more_are_not_read_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"ses_{number}" for number in range(2000)]
    looked: list[str] = []
    monkeypatch.setattr(type(tree.store), "written_since", lambda *_: names)
    monkeypatch.setattr(type(tree.store), "stamp", lambda *_: Stamp(1))
    monkeypatch.setattr(type(tree.store), "look", lambda *_: SessionStatus())
    monkeypatch.setattr(needs_user, "assess", lambda _, store, session, look: looked.append(session))
    with Ledger(tmp_path / "ledger.db") as ledger:
        context, asked = Context(ledger, Config(), tmp_path), NeedsUser()
        for _ in range(2):
            assert asked.find(context, [tree.store]) == []
    assert sorted(looked) == sorted(names)


def test_one_odd_session_hides_none_of_the_others(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    odd, stuck = tree.stuck(title="odd"), tree.stuck(title="stuck")
    look = type(tree.store).look

    def fails(store: OpencodeFiles, session: str) -> SessionStatus:
        if session == odd:
            raise KeyError("a fault of the program")
        return look(store, session)

    monkeypatch.setattr(type(tree.store), "look", fails)
    for command, key in (("scan", "stuck"), ("status", "need_user")):
        assert {one["session"] for one in json.loads(run(command, "--json")[1])[key]} == {odd, stuck}
    assert series(run("metrics")[1])["recoveryd_stuck_sessions OpenCode"] == 2
