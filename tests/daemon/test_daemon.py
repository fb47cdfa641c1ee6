"""The daemon in this process, on real files: what a parent system sees of it, and what it survives."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import recoveryd.daemon.daemon as daemon_module
import recoveryd.daemon.healer as healer_module
import recoveryd.heal.lifecycle as module
from recoveryd.cli.findings import finding_of
from recoveryd.clients import Config, SessionStatus
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core import bounded_dict
from recoveryd.core.errors import BusyError, BusyStoreError, DiskError, LedgerError, StoreError
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.daemon.sd_notify import SdNotify
from recoveryd.diagnose import Case, Context, triage
from recoveryd.disk import private_files
from recoveryd.heal import stop_turn
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger, Record
from recoveryd.ledger.seen_and_resumed import SeenSessions
from recoveryd.settings import Notify, paths
from recoveryd.settings.overrides import pause, unpause
from recoveryd.settings.schema import LedgerLimits
from recoveryd.tell.notifier import Notifier
from recoveryd.tell.toast import Toast
from tests.heal import test_unknown_families as unknown
from tests.ledger import test_ledger as ledger_tests
from tests.support.build import SessionBuilder, api_error, text, tool
from tests.support.database import Base
from tests.support.fake_client import Fake, client_with, listening, saying
from tests.support.long_sessions import goes_round
from tests.support.parts import compaction
from tests.support.plant import write_sqlite, write_tree
from tests.support.running import WAIT, Running, is_healed, running, until
from tests.support.trees import EMPTY, MISSING, Bench, Tree, Turns, blank_answer, write_over

pytestmark = pytest.mark.live


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONFIRM_S", 0.15)


def test_a_line_about_a_recovery_says_which_session_which_recovery_and_its_outcome(
    tree: Tree, tmp_path: Path, lines: list[str]
) -> None:
    with running(tmp_path, tree.store, auto_resume=True) as daemon:
        session = tree.stuck(title="Merger talks")
        until(lambda: daemon.events)
    [event] = daemon.events
    about = [line for line in lines if session in line or event.id in line]
    begins = f"INFO {session} {event.id} healed: "
    assert [line.removeprefix(begins).split(" (")[0].split(":")[0] for line in about] == [
        "not resumed",
        "a tool call without its result",
    ]
    assert not [line for line in lines if "Merger" in line]


def test_what_a_callback_raises_is_logged_with_its_session(tree: Tree, tmp_path: Path, lines: list[str]) -> None:
    with running(tmp_path, tree.store, fails=True) as daemon:
        session = tree.stuck()
        until(lambda: daemon.events)
    [event] = daemon.events
    failed = [line.splitlines()[0] for line in lines if " failed; " in line]
    assert failed == [
        f"ERROR {session}: on_abort failed; the recovery goes on",
        f"ERROR {session} {event.id} healed: on_complete failed; the recovery goes on",
    ]


def test_what_is_refused_while_it_runs_is_healed_and_told_once(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck()
        until(lambda: daemon.events)
        assert is_healed(tree, session)
    [event] = daemon.events
    assert (event.outcome, event.session, event.kind) == (Outcome.HEALED, session, Kind.TOOL_RESULT_MISSING)
    assert event.changes and all(tree.store.read(change.key) == change.after for change in event.changes)
    assert daemon.aborted == [session]
    assert [entry.id for entry in daemon.history()] == [event.id]


def test_the_process_of_a_parent_system_speaks_for_itself(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its service manager hears nothing of us."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "s"))
        heard.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "s"))
        with running(tmp_path, tree.store) as daemon:
            tree.stuck()
            until(lambda: daemon.events)
        with pytest.raises(BlockingIOError):
            heard.recv(99)


SIGNALLED = """
import signal, sys, threading, time
from pathlib import Path
from recoveryd.clients import Config, SessionStatus
from recoveryd.daemon.daemon import Daemon
from recoveryd.clients.opencode.files.store import OpencodeFiles

def elsewhere():
    while not daemon.stores.keys() <= daemon._swept.keys(): time.sleep(0.01)
    time.sleep(0.1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

folder = Path(sys.argv[1])
daemon = Daemon(Config(), state_dir=folder / "state", stores=[OpencodeFiles(folder / "opencode" / "storage")])
threading.Thread(target=elsewhere).start()
daemon.run(signals=True)
"""


def test_a_signal_that_does_not_interrupt_its_wait_ends_it_too(tree: Tree, tmp_path: Path) -> None:
    """As one does that comes just before the wait; here another thread takes it."""
    words = [sys.executable, "-c", SIGNALLED, str(tmp_path)]
    env = {**os.environ, "HOME": str(tmp_path)}
    assert subprocess.run(words, env=env, timeout=WAIT, capture_output=True, check=False).returncode == 0


def test_a_part_that_was_cut_off_between_two_runs_is_mended(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    tree.answered(session)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.daemon.stores.keys() <= daemon.daemon._swept.keys())
    assert daemon.events == []
    part = tree.part(session, "text")
    part.write_bytes(b'{"id": "cut o')
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    assert [(event.kind, event.outcome) for event in daemon.events] == [(Kind.UNSENDABLE_PART, Outcome.HEALED)]


def test_what_was_refused_before_is_caught_up_with(tree: Tree, tmp_path: Path) -> None:
    sessions = [tree.stuck(), tree.stuck(blank_answer, EMPTY)]
    with running(tmp_path, tree.store) as daemon:
        until(lambda: len(daemon.events) == 2)
    assert all(is_healed(tree, session) for session in sessions)
    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
    assert daemon.events == [] and daemon.aborted == [], "once, ever"


def test_healthy_sessions_and_other_errors_are_no_business_of_ours(tree: Tree, tmp_path: Path) -> None:
    tree.stuck(words="Overloaded")
    tree.answered(tree.stuck(blank_answer, "credit balance is too low"))
    before = tree.files()
    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
    assert tree.files() == before
    assert daemon.aborted == [] and daemon.history() == []


def _no_state(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(tool(status=""))


def _then_overloaded(session: SessionBuilder) -> None:
    _no_state(session)
    session.failed("again", api_error("Overloaded"))


def _then_refused(session: SessionBuilder) -> None:
    _no_state(session)
    session.failed("again", api_error(MISSING, 400))


def _then_cut_off(session: SessionBuilder) -> None:
    _no_state(session)
    session.user("again")
    session.assistant("half an ans", completed=False)


@pytest.mark.parametrize("turns", [_no_state, _then_overloaded, _then_refused, _then_cut_off])
def test_a_prompt_that_the_client_fails_on_is_seen_whatever_was_before_it(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: Turns
) -> None:
    """Two days ago something else was refused, or a turn was cut off: that is not what the session is stuck on."""
    monkeypatch.setattr(triage, "GRACE_S", 0.2)
    session = tree.asked(turns, 2 * 86_400)
    with Ledger(tmp_path / "of_scan.db") as ledger:
        recovery = Recovery(Context(ledger, Config(), tmp_path))
        found = finding_of(tree.store, session, recovery)
    assert found is not None and found.kind is Kind.UNSENDABLE_PART
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    [event] = daemon.events
    assert (event.outcome, event.kind) == (Outcome.HEALED, Kind.UNSENDABLE_PART)
    assert is_healed(tree, session)


def test_what_is_not_understood_is_not_looked_at_again_while_another_prompt_is_on_its_way(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triage, "GRACE_S", 0.1)
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck(lambda made: made.user("go"), EMPTY)
        until(lambda: daemon.events)
        tree.prompted(session)
        time.sleep(0.6)
    assert [event.outcome for event in daemon.events] == [Outcome.NOT_UNDERSTOOD]
    assert len(daemon.history()) == 1


def test_a_prompt_behind_a_turn_that_was_cut_off_is_no_fault(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be waiting for that turn to end."""
    monkeypatch.setattr(triage, "GRACE_S", 0.1)
    session = tree.asked(lambda s: (s.user("go"), s.assistant("half an ans", completed=False)))
    before = tree.files()
    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
    assert (tree.files(), daemon.events, daemon.history()) == (before, [], []), session


def test_callbacks_that_raise_stop_nothing(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store, fails=True) as daemon:
        first = tree.stuck()
        until(lambda: daemon.events)
        second = tree.stuck()
        until(lambda: len(daemon.events) == 2)
    assert is_healed(tree, first) and is_healed(tree, second)


def test_a_failure_is_told_too(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise StoreError("Can't write: the disk is full.")

    monkeypatch.setattr(tree.store, "apply", full)
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    [event] = daemon.events
    assert (event.outcome, event.session) == (Outcome.FAILED, session)
    assert "the disk is full" in event.detail
    assert [entry.outcome for entry in daemon.history()] == [Outcome.FAILED]


def test_what_it_does_not_understand_is_recorded_and_left_alone(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck(words=EMPTY)
    before = tree.files()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
        (tree.root / "message" / session / next(iter(tree.store.load(session).messages)).id).with_suffix(
            ".json"
        ).touch()
        time.sleep(0.5)
    assert [event.outcome for event in daemon.events] == [Outcome.NOT_UNDERSTOOD] * len(daemon.events)
    assert tree.files() == before
    assert daemon.history()[0].outcome is Outcome.NOT_UNDERSTOOD


def test_a_refusal_is_not_told_again_until_something_changed(tree: Tree, tmp_path: Path) -> None:
    tree.stuck(words=EMPTY)
    for _ in range(3):
        with running(tmp_path, tree.store) as daemon:
            daemon.idle()
    assert daemon.events == []
    assert len(daemon.history()) == 1


def test_the_client_undoing_a_repair_within_the_second_is_repaired_once_more(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONFIRM_S", 0.5)
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: is_healed(tree, session))
        write_over(blank, text=" ")
        assert not is_healed(tree, session)
        until(lambda: daemon.events)
    [event] = daemon.events
    assert event.outcome is Outcome.HEALED
    assert is_healed(tree, session)
    assert [entry.id for entry in daemon.history()] == [event.id], "the same recovery"
    assert daemon.aborted == [session]


def test_at_the_cap_it_says_so_once_and_then_nothing(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store, max_retries=2) as daemon:
        session = tree.stuck()
        until(lambda: len(daemon.events) == 1)
        for number in (2, 3):
            text = tree.part(session, "text", 1)
            write_over(text, text="\n" * number)
            tree.refused(session, EMPTY)
            until(lambda number=number: len(daemon.events) == number)  # type: ignore[misc]
        tree.refused(session, EMPTY)
        time.sleep(0.5)
    outcomes = [event.outcome for event in daemon.events]
    assert outcomes == [Outcome.HEALED, Outcome.HEALED, Outcome.GAVE_UP]
    assert daemon.events[-1].detail.startswith("The session was repaired 2 times and is refused again.")
    assert daemon.history()[0].outcome is Outcome.GAVE_UP
    assert {event.title for event in daemon.events} == {"My session"}
    assert daemon.aborted == [session] * 2, "what is given up is not touched"
    with Ledger(daemon.state / "ledger.db") as ledger:
        recovery = Recovery(Context(ledger, Config(max_retries=2), daemon.state))
        found = finding_of(tree.store, session, recovery)
    by_hand = f"`recoveryd scan --repair --session {session}` would fill"
    assert found is not None and found.stuck and by_hand in found.outlook, "`explain`, which the notice names"
    assert "given up: the session was repaired 2 times and is refused again, and by itself nothing" in found.action


def test_who_has_no_rules_is_named_and_left_alone_byte_for_byte(tree: Tree, tmp_path: Path) -> None:
    """Real providers and invented ones, each with a refusal of another kind; all that the daemon does with them."""
    kinds = {}
    for number, about in enumerate(unknown.UNKNOWN):
        kind, words = list(unknown.WORDS.items())[number % len(unknown.WORDS)]
        kinds[unknown.refused(tree, *about, words)] = (kind, about[0])
    before = tree.files()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: len(daemon.events) == len(kinds))
        daemon.idle()
    assert tree.files() == before
    assert daemon.aborted == []
    assert {event.session: event.kind for event in daemon.events} == {one: kind for one, (kind, _) in kinds.items()}
    for event in daemon.events:
        kind, provider = kinds[event.session]
        named = provider in event.detail.lower() or "only the rules of Claude" in event.detail
        assert event.outcome is Outcome.REFUSED
        assert named or kind == "reasoning_missing", event.detail


BLOB = "The encrypted content gAAA...kifQ could not be verified. Reason: Encrypted content could not be decrypted."


def test_reasoning_that_the_provider_rejects_anew_each_time_ends_at_the_cap(tree: Tree, tmp_path: Path) -> None:
    """As in anomalyco/opencode#49116: each prompt gets a step, whose reasoning the next request is refused for."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model={"providerID": "openai", "modelID": "gpt-5.1"})
    error = api_error(BLOB, 400)
    error["data"]["metadata"] = {"url": "https://api.openai.com/v1/responses"}

    def prompted() -> None:
        sealed = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAkifQ"}}
        made.user("go on")
        made.assistant({"type": "reasoning", "text": "a plan", "metadata": sealed}, tool(), finish="tool-calls")
        made.assistant(error=error, parentID=made.planted().messages[-2]["id"])
        there = {path: path.read_bytes() for path in tree.root.rglob("*.json")}
        write_tree(made.planted(), tree.root)
        for path, content in there.items():
            path.write_bytes(content)

    with running(tmp_path, tree.store) as daemon:
        for number in range(1, 5):
            prompted()
            until(lambda number=number: len(daemon.events) == number)  # type: ignore[misc]
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED] * 3 + [Outcome.GAVE_UP]
    told = daemon.events[-1].detail
    assert told.startswith("The session was repaired 3 times and is refused again.")
    assert "until a prompt is answered: choose another model, or go on in a copy: type /fork" in told


def test_after_an_answer_it_is_counted_anew(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store, max_retries=1) as daemon:
        session = tree.stuck()
        until(lambda: len(daemon.events) == 1)
        tree.answered(session)
        time.sleep(0.1)
        write_over(tree.part(session, "text", 1), text="\n")
        tree.refused(session, EMPTY)
        until(lambda: len(daemon.events) == 2)
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED] * 2


def test_a_dry_run_says_each_edit_writes_nothing_and_tells_nobody(tree: Tree, tmp_path: Path, lines: list[str]) -> None:
    session = tree.stuck()
    before = tree.files()
    with running(tmp_path, tree.store, dry_run=True) as daemon:
        until(lambda: any("nothing is written" in line for line in lines))
        daemon.daemon._told(tree.store.id, session)
        time.sleep(0.3)
    assert tree.files() == before
    said = [line.removeprefix(f"WARNING session {session}: ") for line in lines if line.startswith("WARNING")]
    assert said == [
        "tool_result_missing: Would put 1 tool result right behind its call",
        "would be done in turn 1, tool bash: put 1 tool result right behind its call",
        "nothing is written: it is a dry run (`dry_run`)",
    ], "each edit, once"
    assert daemon.events == [] and daemon.aborted == [] and daemon.history() == []
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events, "a dry run does not count")
    assert is_healed(tree, session)


def test_one_broken_session_never_stops_the_others(tree: Tree, tmp_path: Path) -> None:
    broken, hostile = tree.stuck(), tree.stuck()
    folder = tree.root / "message" / broken
    newest = max(folder.iterdir())
    newest.unlink()
    newest.mkdir()
    for path in sorted((tree.root / "message" / hostile).iterdir()):
        write_over(path, parentID=[{}], time={"created": "yesterday"}, summary=True, finish="stop")
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: is_healed(tree, session))
        again = tree.stuck()
        until(lambda: is_healed(tree, again))
    assert {event.session for event in daemon.events} >= {session, again}


@pytest.mark.parametrize("fault", [RuntimeError("nobody thought of this"), StoreError("the disk is gone")])
def test_a_fault_while_it_confirms_does_not_end_the_daemon(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    confirm = Recovery.confirm
    faults = [fault]

    def faulty(self: Recovery, case: Case) -> Case:
        if faults:
            raise faults.pop()
        return confirm(self, case)

    monkeypatch.setattr(Recovery, "confirm", faulty)
    with running(tmp_path, tree.store) as daemon:
        first = tree.stuck()
        until(lambda: is_healed(tree, first) and not faults)
        assert daemon.thread.is_alive()
        second = tree.stuck()
        until(lambda: any(event.session == second for event in daemon.events))
    assert is_healed(tree, second)


def test_a_second_one_does_not_watch_the_same_store(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store) as daemon:
        tree.stuck()
        until(lambda: daemon.events)
        other = Running(tmp_path / "other", tree.store)
        other.thread.start()
        other.thread.join(WAIT)
    assert isinstance(other.error, BusyError)
    assert str(tree.store.id) in other.error.message


def test_one_that_ended_leaves_no_lock_behind(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with running(tmp_path, tree.store) as daemon:
        tree.stuck()
        until(lambda: daemon.events)
        assert len(list(paths.lock_dir(daemon.state).glob("*.run.json"))) == 1
    assert [*tmp_path.rglob("*.run.json"), *tmp_path.rglob("*.lock")] == []


def test_a_store_that_another_one_watches_is_left_to_it(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, told = Tree(tmp_path / "own"), list[str]()
    monkeypatch.setattr(SdNotify, "status", lambda _, text: told.append(text))
    with running(tmp_path, tree.store) as first:
        theirs = tree.stuck()
        until(lambda: first.events)
        with running(tmp_path / "own", tree.store, own.store) as second:
            ours, again = own.stuck(), tree.stuck()
            until(lambda: second.events and len(first.events) == 2)
    assert {str(tree.root) in text for text in told if str(own.root) in text} == {False}
    assert [event.session for event in first.events] == [theirs, again]
    assert [event.session for event in second.events] == [ours]


def test_what_a_crash_cut_off_is_taken_back_at_the_start_and_then_healed(tree: Tree, tmp_path: Path) -> None:
    session = _cut_off(tree, tmp_path)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    assert is_healed(tree, session)
    assert [entry.outcome for entry in daemon.history()] == [Outcome.HEALED, Outcome.FAILED]


def _cut_off(tree: Tree, folder: Path) -> str:
    """A session of whose repair a crash left the first file written."""
    session, bench = tree.stuck(blank_answer, EMPTY), Bench(folder)
    whole = tree.store.apply

    def crash(changes: Sequence[Change]) -> None:
        whole(changes[:1])
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(tree.store, "apply", crash)
        bench.attempt(tree, session)
    bench.ledger.close()
    return session


def test_what_it_repairs_can_be_undone_where_its_ledger_was_removed_meanwhile(
    tree: Tree, tmp_path: Path, lines: list[str]
) -> None:
    with running(tmp_path, tree.store) as daemon:
        tree.stuck()
        until(lambda: daemon.events)
        for file in daemon.state.glob("ledger.db*"):
            file.unlink()
        session = tree.stuck(blank_answer, EMPTY)
        before = tree.files()
        until(lambda: session in [event.session for event in daemon.events])
        assert is_healed(tree, session)
        with Ledger(daemon.state / "ledger.db") as ledger:
            undo(tree.store, ledger, ledger.history(1, session)[0])
        assert tree.files() == before
    assert len([line for line in lines if "was removed or replaced" in line]) == 1


@pytest.mark.parametrize("how", ["dry_run", "enabled", "pause", "ignore"])
def test_what_a_crash_cut_off_waits_while_nothing_is_to_be_written(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], how: str
) -> None:
    monkeypatch.setattr(daemon_module, "SWEEP_S", 0.1)
    session = _cut_off(tree, tmp_path)
    before = tree.files()
    if how == "pause":
        pause(tmp_path / "state", time.time())
    offs: dict[str, dict[str, Any]] = {
        "dry_run": {"dry_run": True},
        "enabled": {"enabled": False},
        "ignore": {"ignore": [session]},
    }
    off = offs.get(how, {})
    with running(tmp_path, tree.store, **off) as daemon:
        [entry] = daemon.history()
        until(lambda: any(f"{session} {entry.id} pending: It was cut off" in line for line in lines))
        daemon.sweeps()
        assert tree.files() == before
        assert [left.outcome for left in daemon.history()] == [Outcome.PENDING] and daemon.aborted == []
        if how == "pause":
            unpause(tmp_path / "state")
            until(lambda: daemon.events)
    if how != "pause":
        with running(tmp_path, tree.store) as daemon:
            until(lambda: daemon.events)
    assert is_healed(tree, session)


def test_a_pause_keeps_a_repair_from_being_made_again_until_it_ends(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONFIRM_S", 0.5)
    monkeypatch.setattr(module, "_RETRY_S", 0.1)
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: [entry.outcome for entry in daemon.history()] == [Outcome.HEALED])
        pause(daemon.state, time.time())
        write_over(blank, text=" ")
        before = tree.files()
        time.sleep(0.8)
        assert tree.files() == before and daemon.events == []
        unpause(daemon.state)
        until(lambda: daemon.events)
        assert is_healed(tree, session)


@pytest.mark.parametrize(("seconds", "says"), [(None, " wait for `"), (60, "wait until then, or for")])
def test_the_log_says_what_ends_a_pause(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], seconds: float | None, says: str
) -> None:
    monkeypatch.setattr(daemon_module, "SWEEP_S", 0.1)
    with running(tmp_path, tree.store) as daemon:
        pause(daemon.state, time.time(), seconds)
        session = tree.stuck(blank_answer, EMPTY)
        until(lambda: any(says in line for line in lines))
        assert daemon.events == [] and not is_healed(tree, session)
        unpause(daemon.state)
        until(lambda: daemon.events)
    assert is_healed(tree, session)


def test_a_crash_while_it_was_made_again_is_healed_at_the_next_start(tree: Tree, tmp_path: Path) -> None:
    """The session was seen, healed and remembered before: it has to be looked at all the same."""
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck(blank_answer, EMPTY)
        until(lambda: daemon.events)
    event = daemon.events[0]
    with running(tmp_path, tree.store) as daemon, Ledger(daemon.state / "ledger.db") as ledger:
        until(lambda: SeenSessions(ledger.file).remembered(tree.store.id))
    with Ledger(daemon.state / "ledger.db") as ledger:
        changes = ledger.changes(event.id)
        failure = Failure(event.store, event.session, event.message, 0)
        again = Record(event.id, failure, event.title, event.kind, event.detail, event.actions, tuple(changes))
        ledger.rewrite(again)  # as `confirm` does before it writes
    (tree.root / changes[0].key).write_bytes(changes[0].before or b"")
    with running(tmp_path, tree.store) as daemon:
        until(lambda: is_healed(tree, session))
    assert not [entry for entry in daemon.history() if entry.outcome is Outcome.PENDING]


def test_what_the_user_undid_stays_undone(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
        with Ledger(daemon.state / "ledger.db") as ledger:
            undo(tree.store, ledger, ledger.get(daemon.events[0].id))
        after = tree.files()
        (tree.root / "message" / session / ".touched").touch()
        (tree.root / "message" / session / ".touched").unlink()
        time.sleep(0.5)
        assert tree.files() == after
    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
    assert tree.files() == after and daemon.events == []


def test_what_was_healed_at_the_last_moment_is_still_told(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And still read back after the client had its time, however soon behind the repair the daemon is stopped."""
    monkeypatch.setattr(module, "CONFIRM_S", 0.6)
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck(blank_answer, EMPTY)
        blank = tree.part(session, "text", 1)
        until(lambda: is_healed(tree, session))
        assert daemon.events == []
        daemon.daemon.stop()
        write_over(blank, text=" ")
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED]
    assert is_healed(tree, session)


def test_what_a_killed_process_had_repaired_is_read_back_by_the_next(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger says healed, and the client wrote over it: a word that nobody read back is not final."""
    monkeypatch.setattr(module, "_LEFT_S", 0.3)
    session = tree.stuck(blank_answer, EMPTY)
    killed = Bench(tmp_path)
    name = killed.attempt(tree, session).id
    killed.ledger.close()
    write_over(tree.part(session, "text", 1), text=" ")
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    with running(tmp_path, tree.store) as again:
        time.sleep(0.5)
    assert [(event.id, event.outcome) for event in daemon.events] == [(name, Outcome.HEALED)]
    assert is_healed(tree, session) and again.events == []


def test_a_repair_of_a_session_that_was_deleted_since_is_not_told(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setattr(module, "_LEFT_S", 0.1)
    session = tree.stuck(blank_answer, EMPTY)
    killed = Bench(tmp_path)
    killed.attempt(tree, session)
    killed.ledger.close()
    shutil.rmtree(tree.root / "message" / session)
    shutil.rmtree(tree.root / "part")
    with running(tmp_path, tree.store) as daemon:
        until(lambda: [entry.confirmed for entry in daemon.history()] == [True])
    assert daemon.events == [] and [line for line in lines if line.endswith("undone: Its session was deleted since.")]


def test_a_repair_whose_store_is_away_when_it_is_to_be_read_back_is_told_once_it_is_back(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.1)
    confirm, away = Recovery.confirm, tree.root.with_name("away")
    outcomes = list[Outcome]()

    def from_away(self: Recovery, case: Case) -> Case:
        if len(outcomes) < 3 and not away.exists():
            tree.root.rename(away)
        elif len(outcomes) == 3:
            away.rename(tree.root)
        case = confirm(self, case)
        outcomes.append(case.outcome)
        return case

    monkeypatch.setattr(Recovery, "confirm", from_away)
    with running(tmp_path, tree.store) as daemon:
        tree.stuck(blank_answer, EMPTY)
        until(lambda: daemon.events)
    assert outcomes == [Outcome.PENDING] * 3 + [Outcome.HEALED] == [*outcomes[:3], daemon.events[0].outcome]
    assert len([line for line in lines if line.startswith("WARNING") and "can't be read back now" in line]) == 1


def test_an_old_failure_is_left_to_scan(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck(words=MISSING)
    with running(tmp_path, tree.store, lookback_hours=1e-9) as daemon:
        daemon.idle()
    assert daemon.events == [] and not is_healed(tree, session)


def test_the_sessions_of_a_store_are_counted_as_a_scan_counts_them(
    tree: Tree, tmp_path: Path, lines: list[str]
) -> None:
    """A database names only those of late to the daemon."""
    base = Base(tree.root.parent / "opencode.db", clock=time.time)
    for days in (40, 3):
        made = SessionBuilder(int(time.time() * 1000) - days * 86_400_000)
        made.user("question")
        made.assistant("answer")
        write_sqlite(made.planted(), base.path)
    with running(tmp_path, base.store) as daemon:
        daemon.idle()
    assert f"INFO watching {base.path} (2 sessions)" in lines


def test_a_database_that_its_client_was_still_making_is_told_as_watched(
    tree: Tree, tmp_path: Path, lines: list[str]
) -> None:
    base = Base(tree.root.parent / "opencode.db", clock=time.time)
    base.run("ALTER TABLE message RENAME TO not_yet")
    with running(tmp_path, base.store):
        until(lambda: any("it has no table message" in line for line in lines))
        base.run("ALTER TABLE not_yet RENAME TO message")
        until(lambda: f"INFO watching {base.path} (0 sessions)" in lines)


def test_a_ledger_that_can_not_be_used_is_said_once_by_a_notice(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its disk is full, the log has no room for it either."""
    said: list[Toast] = []
    full, begin = [True], Ledger.begin

    def begin_where_there_is_room(ledger: Ledger, record: Record, outcome: Outcome = Outcome.PENDING) -> None:
        if full:
            raise LedgerError("The ledger can't be used: its disk is full.", "Make room.")
        begin(ledger, record, outcome)

    monkeypatch.setattr(Notifier, "send", lambda _, toast: said.append(toast))
    monkeypatch.setattr(Ledger, "begin", begin_where_there_is_room)
    monkeypatch.setattr(healer_module, "_SOON_S", 0.1)
    with running(tmp_path, tree.store) as daemon:
        first = tree.stuck()
        until(lambda: said)
        second = tree.stuck()
        before = tree.files()
        time.sleep(0.5)
        assert tree.files() == before and daemon.events == []
        full.clear()
        until(lambda: len(daemon.events) == 2)
        full.append(True)
        tree.stuck()
        until(lambda: len([toast for toast in said if not toast.news]) == 2)
    assert is_healed(tree, first) and is_healed(tree, second)
    assert [toast.news for toast in said] == ["", "healed", "healed", ""]
    assert said[0].body == "The ledger can't be used: its disk is full. Make room."


def test_what_the_user_alone_can_mend_is_said_once_a_session(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """System prompt and tools that alone fill the model: no turn is aborted, no byte changes, one notice is enough."""
    said: list[str] = []
    monkeypatch.setattr(Notifier, "send", lambda _, toast: said.append(toast.body))
    words = "prompt is too long: 210338 tokens > 200000 maximum"
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck(blank_answer, words)
        until(lambda: daemon.events)
        tree.refused(session, words)
        before = tree.files()
        until(lambda: len(daemon.events) == 2)
    assert [event.outcome for event in daemon.events] == [Outcome.REFUSED, Outcome.REFUSED]
    assert len(said) == 1 and "turn off tools" in said[0]
    assert tree.files() == before
    assert daemon.aborted == []


def _hidden(database: Path) -> str:
    """A session in which a compaction that failed for want of credit hides what was said before it."""
    made = SessionBuilder(int(time.time() * 1000) - 9_000, version="1.18.33", title="My session")
    made.user("the first thing")
    made.assistant("said early")
    tail = made.user("the second thing")
    made.assistant("said late")
    made.user("go on")
    marker = made.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    made.assistant(error=api_error("Your credit balance is too low"), summary=True, parentID=marker["id"])
    write_sqlite(made.planted(), database)
    return str(made.session["id"])


def test_what_a_compaction_without_credit_hid_is_given_back_at_once(tree: Tree, tmp_path: Path) -> None:
    """The client says nothing of it, and goes on with the tail alone."""
    database = tree.root.parent / "opencode.db"
    base = Base(database, clock=time.time)
    with running(tmp_path, base.store) as daemon:
        daemon.idle()
        session = _hidden(database)
        until(lambda: daemon.events)
    [event] = daemon.events
    assert (event.kind, event.outcome) == (Kind.CONTEXT_OVERFLOW, Outcome.HEALED)
    assert "the mark of 1 compaction that failed" in event.detail
    kept = [part.type for message in base.store.load(session).messages for part in message.parts]
    assert "compaction" not in kept


def test_a_lock_that_is_released_without_a_write_is_not_waited_for_until_the_next_sweep(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setattr(daemon_module, "SWEEP_S", 3600.0)
    monkeypatch.setattr(healer_module, "_SOON_S", 0.05)
    base = Base(tree.root.parent / "opencode.db", clock=time.time)
    _hidden(base.path)
    with base.client() as other, running(tmp_path, base.store) as daemon:
        other.execute("BEGIN IMMEDIATE")
        until(lambda: any("is locked by another program" in line for line in lines))
        assert not daemon.events
        other.execute("ROLLBACK")
        until(lambda: daemon.events)
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED]


def test_a_session_that_could_not_be_read_is_looked_at_again_soon(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "SWEEP_S", 3600.0)
    monkeypatch.setattr(healer_module, "_SOON_S", 0.01)
    looks, look = [], tree.store.look

    def fails(session: str) -> SessionStatus:
        looks.append(session)
        if len(looks) <= 3:
            raise DiskError("Can't read it: the disk reports an error.")
        return look(session)

    monkeypatch.setattr(tree.store, "look", fails)
    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
        session = tree.stuck()
        until(lambda: daemon.events)
    assert is_healed(tree, session)


def test_sessions_that_stay_unreadable_are_left_to_the_sweeps_however_many_there_are(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than a thousand each was forgotten before its turn, and looked at again every two seconds for ever."""
    monkeypatch.setattr(bounded_dict, "MOST", 2)
    monkeypatch.setattr(healer_module, "_SOON_S", 0.01)
    monkeypatch.setattr(healer_module, "_LATEST_S", 0.05)
    looks: Counter[str] = Counter()

    def fails(session: str) -> SessionStatus:
        looks[session] += 1
        raise DiskError("Can't read it: the disk reports an error.")

    sessions = [tree.stuck() for _ in range(4)]
    monkeypatch.setattr(tree.store, "look", fails)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: len(looks) == len(sessions) and min(looks.values()) >= 4)
        daemon.idle()
    assert not daemon.events


def test_a_store_that_is_locked_leaves_the_others_as_much_time_as_it_takes(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten sessions that waited two seconds each for a lock, one behind the other, kept other stores for twenty."""
    monkeypatch.setattr(daemon_module, "SWEEP_S", 3600.0)
    monkeypatch.setattr(healer_module, "_SOON_S", 0.05)
    monkeypatch.setattr(healer_module, "_LATEST_S", 0.15)
    looks: list[tuple[float, float]] = []

    def waits(_: str) -> SessionStatus:
        began = time.monotonic()
        time.sleep(0.03)
        looks.append((began, time.monotonic()))
        raise BusyStoreError("It is locked by another program.")

    with running(tmp_path, tree.store) as daemon:
        daemon.idle()
        monkeypatch.setattr(tree.store, "look", waits)
        for number in range(3):
            daemon.daemon._inbox.put(partial(daemon.daemon._healer.attend, tree.store, f"ses_{number}"))
        until(lambda: len(looks) == 3 * 3)
    again = looks[3:]
    assert all(later - ended >= ended - began for (began, ended), (later, _) in pairwise(again))


def _goes_round(tree: Tree) -> str:
    made = SessionBuilder(title="My session")
    made.user("hello")
    made.assistant("hello")
    made.user("go on")
    goes_round(made, 4)
    return tree.keep(made)


def test_a_client_that_compacts_without_end_is_stopped_and_its_user_told_once(tree: Tree, tmp_path: Path) -> None:
    session = _goes_round(tree)
    endless = tree.store.look(session).endless
    assert endless is not None
    busy = {session: {"type": "busy"}}
    about = endless.failure
    known = Fake(session=session, directory="/planted", message=about.message, made=about.time, status=busy)
    before = tree.files()
    with (
        listening(known) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: daemon.events)
        until(lambda: "/tui/show-toast" in fake.paths())
        assert tree.files() == before, "nothing is edited"
        goes_round(tree.made(session), 1)
        tree.prompted(session, text("Continue", synthetic=True))
        daemon.idle()
    [event] = daemon.events
    assert (event.kind, event.outcome) == (Kind.ENDLESS_COMPACTION, Outcome.REFUSED)
    assert event.detail.endswith("it was told to stop.")
    assert fake.paths() == [f"/session/{session}/abort", "/tui/show-toast"]
    assert daemon.aborted == [session]


@pytest.mark.parametrize(
    ("aborts", "asked", "said"),
    [
        (3, 3, "it was told to stop."),
        (99, 10, "it was told to stop 10 times, and may go on: stop it there then."),
    ],
)
def test_a_client_that_does_not_hear_it_is_told_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aborts: int, asked: int, said: str
) -> None:
    monkeypatch.setattr(stop_turn, "_PAUSE_S", 0.01)
    session = _goes_round(tree)
    endless = tree.store.look(session).endless
    assert endless is not None
    about = endless.failure
    known = Fake(session=session, directory="/planted", message=about.message, made=about.time, aborts=aborts)
    known.status = {session: {"type": "busy"}}
    with (
        listening(known) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: daemon.events)
        until(lambda: "/tui/show-toast" in fake.paths())
    [event] = daemon.events
    assert event.detail.endswith(said)
    assert fake.paths() == [f"/session/{session}/abort"] * asked + ["/tui/show-toast"]


def test_others_do_not_wait_until_a_slow_client_has_stopped(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes on without end is asked to stop for some seconds at a time; no count of those is lost."""
    monkeypatch.setattr(stop_turn, "_PAUSE_S", 0.0)
    monkeypatch.setattr(stop_turn, "_LIMIT_S", 0.0)
    session = _goes_round(tree)
    endless = tree.store.look(session).endless
    assert endless is not None
    about = endless.failure
    other: list[str] = []
    known = Fake(session=session, directory="/planted", message=about.message, made=about.time, aborts=3)
    known.status = {session: {"type": "busy"}}
    known.on_abort = lambda: other.extend([] if other else [tree.stuck()])
    with (
        listening(known) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: len(daemon.events) == 2)
    assert [event.session for event in daemon.events] == [*other, session]
    assert daemon.events[1].detail.endswith("it was told to stop.") and daemon.aborted.count(session) == 1
    assert fake.paths().count(f"/session/{session}/abort") == 3


def test_it_is_stopped_while_an_answer_of_it_runs(tree: Tree, tmp_path: Path) -> None:
    session = _goes_round(tree)
    tree.begun(session)
    look = tree.store.look(session)
    assert look.running
    assert look.endless is not None
    about = look.endless.failure
    known = Fake(session=session, directory="/planted", message=about.message, made=about.time)
    known.status = {session: {"type": "busy"}}
    with (
        listening(known) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: daemon.events)
    assert f"/session/{session}/abort" in fake.paths()


@pytest.mark.parametrize("how", [{"kinds": frozenset({Kind.TOOL_RESULT_MISSING})}, {"dry_run": True}])
def test_it_is_not_stopped_where_its_user_does_not_want_it(tree: Tree, tmp_path: Path, how: dict[str, Any]) -> None:
    session = _goes_round(tree)
    endless = tree.store.look(session).endless
    assert endless is not None
    known = Fake(session=session, directory="/planted", message=endless.failure.message, made=endless.failure.time)
    known.status = {session: {"type": "busy"}}
    with (
        listening(known) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url), **how) as daemon,
    ):
        daemon.idle()
    assert f"/session/{session}/abort" not in fake.paths()


def test_what_was_done_is_shown_in_the_client_too(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck(title="<b>My</b>\x1b[1m \u202esession")
    with (
        client_with(tree, session) as fake,
        running(tmp_path, tree.store, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: fake.paths())
        until(lambda: daemon.events)
    assert fake.paths() == ["/tui/show-toast"], "nothing ran, and nobody asked to go on"
    shown = fake.asked[-1].body
    assert shown["message"].startswith(
        "OpenCode session healed: <b>My</b>[1m session\n\nTurn 1, tool bash: put 1 tool result right behind its call."
    )
    assert shown["variant"] == "success"


@pytest.mark.parametrize("notify", [Notify(desktop=False, tui=False), Notify(quiet=True)])
def test_nothing_is_shown_in_the_client_where_nobody_wants_it(tree: Tree, tmp_path: Path, notify: Notify) -> None:
    session = tree.stuck()
    with (
        client_with(tree, session) as fake,
        running(tmp_path, tree.store, notify=notify, opencode=OpencodeSettings(server_url=fake.url)) as daemon,
    ):
        until(lambda: daemon.events)
        time.sleep(0.2)
    assert fake.paths() == []


def test_a_client_that_hangs_holds_up_nothing_and_the_session_is_healed(tree: Tree, tmp_path: Path) -> None:
    with saying(lambda sock: time.sleep(20)) as url:
        with running(tmp_path, tree.store, auto_resume=True, opencode=OpencodeSettings(server_url=url)) as daemon:
            sessions = [tree.stuck() for _ in range(3)]
            until(lambda: len(daemon.events) == 3)
        assert all(is_healed(tree, session) for session in sessions)
        assert not any(event.resumed for event in daemon.events)


def test_what_is_old_is_told_by_a_clock_that_had_an_hour_to_be_set_right(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is years ahead at the start of a machine would have all originals taken. What was old goes then."""
    with Ledger(private_files.make_folder(tmp_path / "state") / "ledger.db", lambda: time.time() - 40 * 86_400) as old:
        kept = ledger_tests.heal(old)

        def originals() -> list[Change]:
            return old.changes(kept)

        with running(tmp_path, tree.store) as daemon:
            daemon.idle()
            assert originals()
        monkeypatch.setattr(daemon_module, "_CLOCK_S", 0.05)
        with running(tmp_path, tree.store):
            until(lambda: not originals())


def test_originals_beyond_the_limit_of_bytes_go_at_a_start(tree: Tree, tmp_path: Path) -> None:
    large = Change("part/x", b"x" * 700_000, b"y" * 700_000)
    with Ledger(private_files.make_folder(tmp_path / "state") / "ledger.db") as ledger:
        first = ledger_tests.heal(ledger, ledger_tests.failure("msg_1"), [large])
        second = ledger_tests.heal(ledger, ledger_tests.failure("msg_2"), [large])
        with running(tmp_path, tree.store, ledger=LedgerLimits(keep_mb=2)):
            until(lambda: not ledger.changes(first))
        assert ledger.changes(second)
