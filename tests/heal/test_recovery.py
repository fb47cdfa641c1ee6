"""One recovery from end to end, on real files: what it writes, what it tells, and what goes wrong on the way."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from recoveryd import repair
from recoveryd.clients import Clients, Config, quiet
from recoveryd.clients.opencode import pruning
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.quiet import SETTLE_S
from recoveryd.clients.whose_subagent import root_title
from recoveryd.core import failpoint
from recoveryd.core.edits import edited
from recoveryd.core.errors import BusyError, ConflictError, StoreError
from recoveryd.core.model import Change, Event, Failure, Kind, Outcome, Refusal
from recoveryd.core.violation import Violation
from recoveryd.disk import private_files
from recoveryd.disk.locks import recovery_lock
from recoveryd.heal import recovery as module
from recoveryd.heal.propose import Proposal
from recoveryd.heal.undo import put_back, undo
from recoveryd.ledger.ledger import Record
from recoveryd.ledger.upkeep import Upkeep
from recoveryd.repair.plan import Plan, objections, plan
from recoveryd.settings import paths
from recoveryd.tell.callbacks import Callbacks
from tests.support.build import BINDS, MODEL, SessionBuilder
from tests.support.cases import case, case_of
from tests.support.database import Base
from tests.support.examples import examples
from tests.support.generate import generate, soup
from tests.support.judge import refusal, stuck
from tests.support.long_sessions import LONG, spent
from tests.support.parts import api_error, reasoning, text, tool
from tests.support.plant import write_sqlite, write_tree
from tests.support.running import running, until
from tests.support.trees import (
    EMPTY,
    MISSING,
    SIGNATURE,
    Bench,
    Tree,
    behind_a_call,
    blank_answer,
    told,
    write_over,
)
from tests.support.values import as_session

TICK_S = 0.01  # the times of files are those of the kernel's last tick


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_refused_session_is_healed_on_the_disk_and_kept_in_the_ledger(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    assert (event.kind, event.title, event.actions) == (Kind.TOOL_RESULT_MISSING, "My session", ("split_step",))
    assert event.places == ("turn 1, tool bash",)
    assert event.detail == "Put 1 tool result right behind its call"
    assert event.seconds > 0
    assert refusal(tree.store.load(session), thinking=False) is None
    entry = bench.ledger.get(event.id)
    assert (entry.outcome, entry.edits, entry.message) == (Outcome.HEALED, 1, event.message)
    assert before.items() <= tree.files().items(), "this repair only adds"
    assert not list(tree.root.rglob(".*"))
    handled = bench.ledger.handled(event.store, session, event.message)
    assert handled is not None and handled.outcome is Outcome.HEALED


def test_the_parent_system_is_told_before_and_after(tree: Tree, tmp_path: Path) -> None:
    told: list[object] = []
    bench = Bench(tmp_path, Callbacks(on_abort=told.append, on_complete=told.append))
    session = tree.stuck()
    bench.recovery.on_complete(bench.attempt(tree, session))
    assert told[0] == session
    assert isinstance(told[1], Event) and told[1].outcome is Outcome.HEALED
    bench.ledger.close()


def test_a_callback_that_raises_changes_nothing(tree: Tree, tmp_path: Path) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("not today")

    bench = Bench(tmp_path, Callbacks(on_abort=fails, on_complete=fails))
    event = bench.attempt(tree, tree.stuck())
    bench.recovery.on_complete(event)
    assert event.outcome is Outcome.HEALED
    bench.ledger.close()


def test_a_repair_that_is_refused_when_read_back_is_taken_back(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody wrote in between: the plan was wrong, and what was there before is better than half a repair."""
    session = tree.stuck()
    before = tree.files()
    monkeypatch.setattr(
        repair, "objections", lambda *said: objections(*said) or [Violation(Kind.ROLE_ORDER, 0, None, "no")]
    )
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.FAILED
    assert "taken back" in event.detail
    assert tree.files() == before
    assert bench.ledger.get(event.id).outcome is Outcome.FAILED
    assert bench.ledger.pending() == []


@pytest.mark.parametrize("made", [0, 5_000])
def test_a_message_in_front_of_all_has_the_time_of_its_row(bench: Bench, tmp_path: Path, made: int) -> None:
    """The client orders by the column, whatever the time in the data says."""
    database = Base(tmp_path / "opencode.db")
    session = SessionBuilder(seed=1)
    first = session.assistant("I begin")
    session.failed("continue", api_error('messages: first message must use the "user" role', 400))
    write_sqlite(session.planted(), database.path)
    data = json.dumps({**first, "time": {"created": 0, "completed": 7}})
    database.run("UPDATE message SET data = ?, time_created = ? WHERE id = ?", data, made, first["id"])
    before = database.rows()
    failure = database.store.look(session.session["id"]).failure
    assert failure is not None
    event = bench.recovery.attempt(case(database.store, failure, Kind.ROLE_ORDER)).event
    assert event.outcome is Outcome.HEALED
    assert database.store.load(failure.session).messages[0].role == "user"
    undo(database.store, bench.ledger, bench.ledger.get(event.id))
    assert database.rows() == before


WAY_BACK = "go on in a copy: type /fork, and choose the last prompt that was answered"


def test_what_the_rules_do_not_explain_is_left_alone_and_said(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(words=EMPTY)
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.NOT_UNDERSTOOD
    says = "The rules find nothing in the stored session that explains this error: prompt it again. If it is refused "
    says += f"each time, {WAY_BACK}, and please send what `recoveryd report {session}` makes."
    assert event.detail == says
    assert tree.files() == before
    assert bench.ledger.get(event.id).outcome is Outcome.NOT_UNDERSTOOD


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"kinds": (Kind.EMPTY_CONTENT,)}, "is not among the kinds"),
        ({"ignore": ("/planted",)}, "You said to leave this session or folder alone"),
    ],
)
def test_what_the_user_wants_left_alone_is(tree: Tree, tmp_path: Path, config: dict[str, Any], said: str) -> None:
    bench = Bench(tmp_path, **config)
    session = tree.stuck()
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.REFUSED
    assert said in event.detail
    assert tree.files() == before
    bench.ledger.close()


def test_a_prompt_that_a_repair_overtook_is_not_called_a_riddle(tree: Tree, bench: Bench) -> None:
    """The client had not begun for a second, was held to have failed, and then read half of the repair."""
    session = tree.stuck(lambda made: made.user("go"), EMPTY)
    failure = tree.failure(session)
    prompt = next(m.data["parentID"] for m in tree.store.load(session).messages if m.id == failure.message)
    riddle = bench.recovery.attempt(case(tree.store, failure, Kind.EMPTY_CONTENT)).event
    assert riddle.outcome is Outcome.NOT_UNDERSTOOD
    crashed = Record("rcrash", replace(failure, message=prompt), "", Kind.UNSENDABLE_PART)
    bench.ledger.record(crashed, Outcome.HEALED)
    event = bench.recovery.attempt(case(tree.store, failure, Kind.EMPTY_CONTENT)).event
    assert event.outcome is Outcome.REFUSED
    assert event.detail == "It was repaired while this prompt was on its way: prompt it again."


def test_another_form_of_request_is_never_edited(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    failure = tree.failure(session)
    elsewhere = replace(failure.error, url="https://api.example.com/v1/chat/completions")
    event = bench.recovery.attempt(case(tree.store, replace(failure, error=elsewhere), Kind.EMPTY_CONTENT)).event
    assert event.outcome is Outcome.REFUSED
    assert event.detail == (
        f"How the client talks to anthropic is not known to recoveryd, so nothing can be proved: {WAY_BACK}."
    )


class Between:
    """Stands in for the store's `apply`: does something first, the first `times` times."""

    def __init__(self, tree: Tree, monkeypatch: pytest.MonkeyPatch, do: Any, times: int = 1) -> None:
        self.calls = 0
        self._apply = tree.store.apply
        self._do, self._times = do, times
        monkeypatch.setattr(tree.store, "apply", self)

    def __call__(self, changes: Sequence[Change]) -> None:
        self.calls += 1
        if self.calls <= self._times:
            self._do(changes)
        self._apply(changes)


def test_what_the_client_wrote_in_between_is_planned_again(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    between = Between(tree, monkeypatch, lambda _: write_over(blank, text="\t\t"))
    event = bench.attempt(tree, session)
    assert (event.outcome, between.calls) == (Outcome.HEALED, 2)
    assert b"\\t\\t" in next(c.before or b"" for c in bench.ledger.changes(event.id) if c.key.endswith(blank.name))
    assert refusal(tree.store.load(session), thinking=False) is None


def test_what_the_client_healed_itself_in_between_is_left_as_it_is(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    Between(tree, monkeypatch, lambda _: write_over(blank, text="a word after all"))
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.NOT_UNDERSTOOD
    assert b"a word after all" in blank.read_bytes()
    assert event.changes == ()
    assert bench.ledger.pending() == []


def test_a_client_that_keeps_writing_keeps_its_version(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    count = iter(range(1, 100))
    between = Between(tree, monkeypatch, lambda _: write_over(blank, text=" " * next(count), n=1), times=99)
    event = bench.attempt(tree, session)
    assert (event.outcome, between.calls) == (Outcome.CONFLICT, 3)
    assert b'"text": "   "' in blank.read_bytes()
    assert bench.ledger.get(event.id).outcome is Outcome.CONFLICT
    assert bench.ledger.pending() == []
    thinking = tree.part(session, "reasoning", 1)
    assert thinking.exists(), "all or nothing"


def test_a_write_between_compare_and_rename_of_a_later_file_takes_all_back(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set is half written when the client comes: what is ours goes back, then it is planned again."""
    session = tree.stuck(blank_answer, EMPTY)
    thinking = tree.part(session, "reasoning", 1)
    steps: list[str] = []

    def step(name: str) -> None:
        steps.append(name)
        if steps.count("compare") == 2 and name == "compare":
            write_over(thinking, text="thought again")

    monkeypatch.setattr(failpoint, "reach", step)
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    assert refusal(tree.store.load(session), thinking=False) is None
    entry = bench.ledger.get(event.id)
    put_back(tree.store, bench.ledger.changes(entry.id))
    assert b"thought again" in thinking.read_bytes()


def test_a_store_that_cannot_be_written_is_a_failure_that_is_told(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck()
    before = tree.files()

    def full(name: str) -> None:
        if name == "create":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoint, "reach", full)
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.FAILED
    assert "the disk is full" in event.detail
    assert "it is tried again then" in event.detail
    assert tree.files() == before
    monkeypatch.undo()
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    assert [entry.outcome for entry in bench.ledger.history(9)] == [Outcome.HEALED], "the first try counts for nothing"


def test_a_store_that_cannot_be_read_is_a_failure_that_is_told(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = tree.failure(tree.stuck())

    def broken(_: str) -> Any:
        raise StoreError("The disk reports an error.")

    monkeypatch.setattr(tree.store, "load", broken)
    event = bench.recovery.attempt(case(tree.store, failure, Kind.TOOL_RESULT_MISSING)).event
    assert (event.outcome, event.detail) == (Outcome.FAILED, "The disk reports an error.")


def test_a_fault_of_our_own_is_a_failure_that_is_told(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody is told, and it comes again at every look, on_abort and all."""

    def wrong(_: object) -> Any:
        raise ValueError("nobody thought of this")

    session = tree.stuck()
    before = tree.files()
    monkeypatch.setattr(repair, "plan", wrong)
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.FAILED
    assert tree.files() == before
    assert bench.ledger.handled(event.store, session, event.message) is not None


def test_a_dead_store_is_not_touched(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    Base(tree.root.parent / "opencode.db")
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome in (Outcome.REFUSED, Outcome.FAILED)
    assert "is dead" in event.detail
    assert tree.files() == before


def test_a_session_that_another_one_of_us_repairs_is_left_for_later(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck()

    def busy(*_: object) -> Any:
        raise BusyError("It is being repaired by another process.")

    monkeypatch.setattr(module, "recovery_lock", busy)
    event = bench.attempt(tree, session)
    assert (event.outcome, event.detail) == (Outcome.PENDING, "It is being repaired by another process.")
    assert bench.ledger.history(9) == [], "what passes by itself is not recorded, and counts for nothing"


def test_what_another_one_of_us_repaired_since_the_look_is_its_heal(tree: Tree, bench: Bench, tmp_path: Path) -> None:
    """Whoever asks: a healed session explains no refusal, and would be recorded over as not understood."""
    failure = tree.failure(session := tree.stuck(blank_answer, EMPTY))
    first = bench.attempt(tree, session)
    before, other = tree.files(), Bench(tmp_path)
    event = other.recovery.attempt(case(tree.store, failure, Kind.EMPTY_CONTENT, "rofscanx")).event
    assert (event.id, event.outcome, event.detail) == (first.id, Outcome.HEALED, first.detail)
    assert other.recovery.confirm(case_of(tree.store, failure, event)).event.outcome is Outcome.HEALED
    known = bench.ledger.handled(failure.store, session, failure.message)
    assert known is not None and known.outcome is Outcome.HEALED
    assert [entry.id for entry in bench.ledger.history(9)] == [first.id] and tree.files() == before
    other.ledger.close()


def test_a_session_whose_turn_runs_is_left_alone_by_everybody(tree: Tree, bench: Bench) -> None:
    """Also by `scan --repair`: the client is about to write to it."""
    session = tree.stuck(blank_answer, EMPTY)
    failure = tree.failure(session)
    tree.running(session)
    before = tree.files()
    event = bench.recovery.attempt(case(tree.store, failure, Kind.EMPTY_CONTENT)).event
    assert event.outcome is Outcome.PENDING
    assert "running" in event.detail
    assert tree.files() == before
    assert bench.ledger.history(9) == []


def test_the_client_undoing_a_repair_is_repaired_once_more_as_the_same_recovery(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    original = tree.files()
    event = bench.attempt(tree, session)
    write_over(blank, text=" ")
    confirmed = bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event
    assert (confirmed.outcome, confirmed.id) == (Outcome.HEALED, event.id)
    assert refusal(tree.store.load(session), thinking=False) is None
    assert [entry.id for entry in bench.ledger.history(9)] == [event.id]
    put_back(tree.store, bench.ledger.changes(event.id))
    assert {key: raw for key, raw in tree.files().items() if key in original} == original | {
        str(blank.relative_to(tree.root)): tree.files()[str(blank.relative_to(tree.root))]
    }


def test_what_still_stands_is_confirmed_without_a_write(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck()
    event = bench.attempt(tree, session)
    between = Between(tree, monkeypatch, lambda _: None)
    assert bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event == event
    assert between.calls == 0


def test_thinking_that_was_never_accused_stays_when_a_repair_is_made_again(tree: Tree, bench: Bench) -> None:
    """The place that the error names is another block by then."""

    def two_thoughts(made: Any) -> None:
        made.user("go")
        made.assistant(reasoning("sound"), text("a"))
        made.user("next")
        made.assistant(reasoning("forged", "forged"), text("b"))

    session = tree.stuck(two_thoughts, "messages.3.content.0: Invalid `signature` in `thinking` block")
    sound, forged = tree.part(session, "reasoning"), tree.part(session, "reasoning", 1)
    raw = forged.read_bytes()
    event = bench.attempt(tree, session)
    assert sound.exists() and not forged.exists()
    forged.write_bytes(raw)
    confirmed = bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event
    assert confirmed.outcome is Outcome.HEALED
    assert sound.exists() and not forged.exists()


def several_faults(made: SessionBuilder) -> None:
    """A call without its result, an input that is no object, and thinking that a repair of those takes with it."""
    made.user("go")
    made.assistant(tool("bash", "ls"), finish="tool-calls")
    made.assistant("done")
    made.user("next")
    made.assistant(reasoning("a"), tool(), text("behind"))
    made.user("more")
    made.assistant(reasoning("a thought"), text("fine"))


def test_what_the_client_undid_of_several_kinds_is_made_again_whole(tree: Tree, bench: Bench) -> None:
    """What the error named still stands: the rest is repaired again all the same, and one undo takes all of it back."""
    session = tree.stuck(several_faults)
    call, before = tree.part(session, "tool"), tree.files()
    memory = json.loads(call.read_bytes())
    event = bench.attempt(tree, session)
    memory["state"]["time"]["compacted"] = 1
    call.write_bytes(json.dumps(memory, indent=2).encode())
    theirs = call.read_bytes()
    confirmed = bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event
    assert (confirmed.outcome, confirmed.detail) == (Outcome.HEALED, event.detail), "told whole, not the second half"
    assert refusal(tree.store.load(session), thinking=False) is None
    assert told(bench, event.id) is tree.store.content.sole(bench.ledger.changes(event.id)), "of both writings"
    undo(tree.store, bench.ledger, bench.ledger.get(event.id))
    name = str(call.relative_to(tree.root))
    assert {key: raw for key, (raw, _) in tree.files().items()} == {
        **{key: raw for key, (raw, _) in before.items()},
        name: theirs,
    }


def test_what_the_client_undid_of_several_kinds_is_made_again_by_who_finds_it(tree: Tree, tmp_path: Path) -> None:
    """The process that repaired it is gone: what else it had mended is known to the ledger."""
    session = tree.stuck(several_faults)
    call = tree.part(session, "tool")
    theirs, killed = call.read_bytes(), Bench(tmp_path)
    made = killed.attempt(tree, session)
    killed.ledger.close()
    call.write_bytes(theirs)
    later = Bench(tmp_path)
    confirmed = later.recovery.confirm(*later.recovery.unconfirmed(tree.store)).event
    assert (confirmed.id, confirmed.outcome, confirmed.detail) == (made.id, Outcome.HEALED, made.detail)
    assert refusal(tree.store.load(session), thinking=False) is None
    assert set(later.ledger.get(made.id).kinds) >= {Kind.TOOL_CALL_INVALID, Kind.TOOL_RESULT_MISSING}
    call.write_bytes(theirs)
    by_hand = later.attempt(tree, session)
    assert (by_hand.outcome, by_hand.detail) == (Outcome.HEALED, "Gave 1 tool call a legal id, name or input")
    assert refusal(tree.store.load(session), thinking=False) is None
    undo(tree.store, later.ledger, later.ledger.get(by_hand.id))
    call.write_bytes(theirs)
    later.ledger.mark(made.id, Outcome.UNDONE)
    assert later.attempt(tree, session).outcome is Outcome.NOT_UNDERSTOOD, "what its user did not want tells nothing"
    later.ledger.close()


def test_what_is_set_aside_is_never_pruned_and_what_is_still_there_is(tree: Tree, bench: Bench) -> None:
    """The ledger is told when the images are kept: nobody has to ask the store, or a client, years later."""
    lost = bench.attempt(tree, tree.stuck(blank_answer, SIGNATURE))
    harmless = bench.attempt(tree, tree.stuck())
    assert (lost.outcome, harmless.outcome) == (Outcome.HEALED, Outcome.HEALED)
    assert Upkeep(bench.ledger).prune(0, 0, time.time() + 1) == 1
    assert [bool(bench.ledger.changes(event.id)) for event in (lost, harmless)] == [True, False]
    assert (told(bench, lost.id), told(bench, harmless.id)) == (True, False)


def test_what_cannot_be_made_again_is_taken_back_and_no_half_of_it_stays(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(several_faults)
    call, before = tree.part(session, "tool"), tree.files()
    event = bench.attempt(tree, session)
    write_over(call, state={"status": "completed", "input": "no object"})
    theirs = call.read_bytes()
    monkeypatch.setattr(repair, "plan", lambda _: Refusal("there is no way"))
    confirmed = bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event
    assert confirmed.outcome is Outcome.CONFLICT
    assert "the rest of it was taken back" in confirmed.detail
    name = str(call.relative_to(tree.root))
    assert tree.files() == {**before, name: (theirs, before[name][1])}
    assert bench.ledger.pending() == []


@pytest.mark.parametrize("answered", [False, True])
def test_while_a_turn_runs_it_is_not_made_again_but_after_unless_that_was_answered(
    tree: Tree, bench: Bench, answered: bool
) -> None:
    """Answered on what the client had written over, by whatever provider, the session is not stuck any more."""
    session = tree.stuck(blank_answer, EMPTY)
    failure, blank = tree.failure(session), tree.part(session, "text", 1)
    event = bench.attempt(tree, session)
    write_over(blank, text=" ")
    if answered:
        tree.running(session)
    else:
        tree.prompted(session)
        tree.begun(session)
    before = tree.files()
    waits = bench.recovery.confirm(case_of(tree.store, failure, event)).event
    assert waits.outcome is Outcome.PENDING
    assert event.id in waits.detail and "running" in waits.detail
    assert tree.files() == before
    newest = tree.store.load(session).messages[-1]
    path = tree.root / "message" / session / f"{newest.id}.json"
    ended = {"created": newest.created, "completed": newest.created + 1}
    write_over(path, time=ended, **({} if answered else {"error": {"name": "MessageAbortedError", "data": {}}}))
    before = tree.files()
    assert bench.recovery.confirm(case_of(tree.store, failure, event)).event.outcome is Outcome.HEALED
    assert bench.ledger.pending() == bench.ledger.unconfirmed() == []
    assert (tree.files() == before) is answered
    assert (refusal(tree.store.load(session), thinking=False) is None) is not answered


def test_what_was_repaired_again_since_is_left_to_that(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    failure = tree.failure(session)
    event = bench.attempt(tree, session)
    write_over(tree.part(session, "text", 1), text=" ")
    tree.refused(session, EMPTY)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    after = tree.files()
    assert bench.recovery.confirm(case_of(tree.store, failure, event)).event == event
    assert tree.files() == after


def test_a_session_that_vanished_before_it_is_confirmed_stays_told(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    failure = tree.failure(session)
    event = bench.attempt(tree, session)
    for path in sorted((tree.root / "message" / session).iterdir()):
        path.unlink()
    (tree.root / "message" / session).rmdir()
    assert bench.recovery.confirm(case_of(tree.store, failure, event)).event.id == event.id


def test_what_the_user_undid_meanwhile_is_not_made_again(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    event = bench.attempt(tree, session)
    put_back(tree.store, event.changes)
    bench.ledger.mark(event.id, Outcome.UNDONE)
    before = tree.files()
    confirmed = bench.recovery.confirm(case_of(tree.store, tree.failure(session), event)).event
    assert confirmed.outcome is Outcome.UNDONE
    assert tree.files() == before


def test_a_proposal_writes_nothing(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    before = tree.files()
    _, planned = bench.recovery.propose(case(tree.store, tree.failure(session), Kind.TOOL_RESULT_MISSING))
    assert isinstance(planned, Proposal)
    assert tree.files() == before and bench.ledger.history(9) == []


def test_while_the_lock_is_held_nobody_else_repairs(tree: Tree, bench: Bench) -> None:
    lock = tree.store.lock_path, paths.lock_dir(bench.state), tree.store.id
    waiting = recovery_lock(*lock, timeout=0.01)
    with (
        recovery_lock(*lock),
        pytest.raises(BusyError),
        waiting,
    ):
        pass


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_written_and_taken_back_every_byte_and_every_file_is_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = random.Random(seed)
    generated = soup(rng) if rng.random() < 0.4 else generate(rng, rng.randint(1, 4), turns=3)
    case = stuck(as_session(generated.planted), generated.thinking)
    made = plan(case.case) if case else None
    if case is None or not isinstance(made, Plan):
        return
    tree = Tree(tmp_path_factory.mktemp("tree"))
    write_tree(generated.planted, tree.root)
    loaded = tree.store.load(generated.planted.id)
    own = [edit for edit in made.edits if not edit.message_id.startswith("msg_f")]
    before, folders = tree.files(), sorted(tree.root.rglob("*"))
    changes = tree.store.changes(loaded, own)
    tree.store.apply(changes)
    after = tree.store.load(loaded.id)
    assert [(m.id, m.data, [(p.id, p.data) for p in m.parts]) for m in after.messages] == [
        (m.id, m.data, [(p.id, p.data) for p in m.parts]) for m in edited(loaded, own).messages
    ]
    with pytest.raises(ConflictError):
        tree.store.apply(changes)
    put_back(tree.store, changes)
    assert tree.files() == before
    assert sorted(path for path in tree.root.rglob("*") if path.is_file()) == [f for f in folders if f.is_file()]


def test_the_shared_helpers_plant_what_they_say(tree: Tree) -> None:
    assert MISSING in tree.failure(tree.stuck(behind_a_call, MISSING)).error.texts


class Stopper(OpencodeServer):
    """A client that says it stopped the turn, and writes as `act` does; unless the store has something newer."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(OpencodeSettings())
        self.asked: list[tuple[str, str, bool]] = []
        self._act = act

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool], *, patient: bool = False) -> bool:
        alone = still()
        self.asked.append((failure.message, directory, alone))
        if alone:
            self._act()
        return alone


def test_a_turn_is_stopped_before_the_first_edit_and_what_the_client_then_wrote_is_planned_upon(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "SETTLE_S", SETTLE_S)
    session = tree.stuck(blank_answer, EMPTY)
    blank, thinking = tree.part(session, "text", 1), tree.part(session, "reasoning", 1)
    between = Between(tree, monkeypatch, lambda _: None)
    client = Stopper(lambda: write_over(thinking, text="cut off"))
    bench.listens(client)
    began = time.time()
    event = bench.attempt(tree, session)
    assert (event.outcome, between.calls) == (Outcome.HEALED, 1), "planned anew, not found out by a conflict"
    assert client.asked == [(event.message, "/planted", True)]
    assert (
        b"cut off"
        in {change.key: change.before or b"" for change in event.changes}[str(thinking.relative_to(tree.root))]
    ), "what is kept for the undo is what the client wrote last"
    assert blank.stat().st_mtime - began >= SETTLE_S - TICK_S, "the store was quiet again before it was written to"


def test_a_turn_that_begins_while_the_parent_system_is_told_is_left_alone(tree: Tree, tmp_path: Path) -> None:
    """Plans are made before, and hooks have seconds: what counts is how it is when it is written."""
    bench = Bench(tmp_path, Callbacks(on_abort=lambda session: tree.running(session)))
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    raw = blank.read_bytes()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.PENDING and "running" in event.detail
    assert blank.read_bytes() == raw
    assert bench.ledger.history(9) == []
    bench.ledger.close()


@pytest.mark.parametrize("step", ["ledger committed", "on_abort"])
def test_what_the_client_writes_at_the_last_moment_is_planned_upon(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """To a part that is none of ours: comparing what is written over would not see it."""
    session = tree.stuck(blank_answer, EMPTY)
    fine = tree.part(session, "text", 2)
    steps: set[str] = set()

    def write(name: str) -> None:
        if name in steps:
            steps.remove(name)
            write_over(fine, text=" ")

    monkeypatch.setattr(failpoint, "reach", write)
    bench = Bench(tmp_path, Callbacks(on_abort=lambda _: write("on_abort")))
    steps.add(step)  # a new ledger was committed by now
    between = Between(tree, monkeypatch, lambda _: None)
    event = bench.attempt(tree, session)
    assert (event.outcome, between.calls) == (Outcome.HEALED, 1)
    assert fine.name in {Path(change.key).name for change in event.changes}
    assert refusal(tree.store.load(session), thinking=False) is None
    bench.ledger.close()


def test_a_session_is_repaired_when_it_is_quiet(tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "SETTLE_S", SETTLE_S)
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    write_over(blank, text="\t")
    wrote = blank.stat().st_mtime
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    assert blank.stat().st_mtime - wrote >= SETTLE_S - TICK_S


def test_a_session_that_never_gets_quiet_is_left_for_later(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    fine = tree.part(session, "text", 2)
    monkeypatch.setattr(quiet, "SETTLE_S", 60.0)
    monkeypatch.setattr(quiet, "_PATIENCE_S", 0.05)
    monkeypatch.setattr("recoveryd.clients.quiet.time.sleep", lambda _: write_over(fine, text="and on"))
    event = bench.attempt(tree, session)
    assert (event.outcome, bench.ledger.history(9)) == (Outcome.PENDING, [])
    assert "is writing to this session" in event.detail


@pytest.mark.parametrize("writes", [False, True])
def test_a_record_of_the_future_does_not_pass_for_quiet(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    """The clock was ahead when one was written: then it is seen for how long nobody writes."""
    session = tree.stuck(blank_answer, EMPTY)
    blank, fine = tree.part(session, "text", 1), tree.part(session, "text", 2)
    ahead = time.time() + 3600
    os.utime(blank, (ahead, ahead))
    monkeypatch.setattr(quiet, "SETTLE_S", SETTLE_S)
    monkeypatch.setattr(quiet, "_PATIENCE_S", 0.3)
    sleep, numbers = time.sleep, iter(range(9999))

    def client(_: float) -> None:
        sleep(0.02)
        write_over(fine, n=next(numbers))

    if writes:
        monkeypatch.setattr("recoveryd.clients.quiet.time.sleep", client)
    began = time.monotonic()
    event = bench.attempt(tree, session)
    assert event.outcome is (Outcome.PENDING if writes else Outcome.HEALED)
    assert time.monotonic() - began >= SETTLE_S


def test_a_dry_run_holds_for_everybody(tree: Tree, tmp_path: Path) -> None:
    told: list[str] = []
    bench = Bench(tmp_path, Callbacks(on_abort=told.append), dry_run=True)
    session = tree.stuck()
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.PENDING and "dry run" in event.detail
    assert (tree.files(), told, bench.ledger.history(9)) == (before, [], [])
    bench.ledger.close()


def test_a_turn_is_not_stopped_for_what_is_not_repaired(tree: Tree, bench: Bench) -> None:
    client = Stopper(lambda: None)
    bench.listens(client)
    assert bench.attempt(tree, tree.stuck(words=EMPTY)).outcome is Outcome.NOT_UNDERSTOOD
    assert client.asked == []


def test_a_turn_is_not_stopped_behind_a_newer_prompt(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    tree.prompted(session, text("and another thing"))
    client = Stopper(lambda: None)
    bench.listens(client)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    assert [alone for _, _, alone in client.asked] == [False]


def test_a_turn_is_not_stopped_for_a_failure_that_nobody_recorded(tree: Tree, bench: Bench) -> None:
    """The prompt of a session that can't be sent looks like one that has just begun."""
    session = tree.stuck(lambda made: (made.user("go"), made.assistant(tool(status=""))))
    tree.prompted(session, text("next"))
    newest = tree.store.load(session).messages[-1]
    failure = replace(tree.failure(session), message=newest.id, time=newest.created)
    client = Stopper(lambda: None)
    bench.listens(client)
    assert bench.recovery.attempt(case(tree.store, failure, Kind.UNSENDABLE_PART)).event.outcome is Outcome.HEALED
    assert client.asked == []


def test_a_subagent_is_told_under_the_title_of_its_root(tree: Tree, bench: Bench) -> None:
    root, child = tree.stuck(title="What the user began"), tree.stuck(title="A detail")
    for inner, outer in ((child, root), (root, "ses_gone")):
        write_over(tree.root / "session" / "global" / f"{inner}.json", parentID=outer)
    assert bench.attempt(tree, child).title == "What the user began"
    assert "have the session that asked it" in Clients(Config()).of(tree.store).go_on(tree.store, child)
    write_over(tree.root / "session" / "global" / f"{root}.json", parentID=child)
    assert root_title(tree.store, child) in ("What the user began", "A detail"), "a circle ends"


@pytest.mark.parametrize("name", ["{}.sync-conflict-20261123-031500-ABCDEFG.json", "{} (1).json", "{}.json.bak"])
def test_beside_the_copy_of_a_part_nothing_is_repaired_until_it_is_moved_away(
    tree: Tree, bench: Bench, name: str
) -> None:
    """Syncthing or Dropbox left it, say. OpenCode 1.1 sends it as another part, or nothing at all (seen)."""
    session = tree.stuck()
    part, elsewhere = tree.part(session, "tool"), tree.root.parent / "moved away"
    copy = part.with_name(name.format(part.stem))
    copy.write_bytes(part.read_bytes())
    before = tree.files()
    event = bench.attempt(tree, session)
    assert (event.outcome, tree.files()) == (Outcome.REFUSED, before)
    assert f"OpenCode takes part/{copy.parent.name}/{copy.name} for a record" in event.detail
    assert f"move it out of {tree.root}" in event.detail
    copy.rename(elsewhere)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED


def test_beside_the_copy_of_a_message_its_session_is_healed(tree: Tree, bench: Bench) -> None:
    """It has no parts, so nothing of it is sent (seen)."""
    session = tree.stuck()
    message = tree.part(session, "tool").parent.name
    path = tree.root / "message" / session / f"{message}.json"
    path.with_name(f"{message} (1).json").write_bytes(path.read_bytes())
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    assert path.with_name(f"{message} (1).json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("model", "lost"), [(BINDS, 1), (MODEL, 0)], ids=["binds", "does not"])
def test_thinking_behind_an_edit_goes_only_where_the_model_binds_it(
    tree: Tree, bench: Bench, model: dict[str, str], lost: int
) -> None:
    session = tree.stuck(blank_answer, EMPTY, model=model)
    before = tree.store.load(session)
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    kept, had = (
        sum(part.type == "reasoning" for message in now.messages for part in message.parts)
        for now in (tree.store.load(session), before)
    )
    assert (had, had - kept) == (2, lost)


@pytest.mark.parametrize("name", ["later-paste", "huge-output"])
def test_what_is_cut_a_second_time_leaves_no_file_of_the_first(
    bench: Bench, tree: Tree, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client wrote over a part that was cut: the file that the first cut named is nobody's any more."""

    def build(session: SessionBuilder) -> None:
        LONG[name].turns(session, random.Random(7))
        spent(session.planted())

    session = tree.stuck(build, "prompt is too long: 217000 tokens > 200000 maximum", model=MODEL, version="1.18.33")
    before, folder = tree.files(), tree.root.parent / "tool-output"
    failure = tree.failure(session)
    monkeypatch.setattr(pruning, "pruned", lambda *_: ())  # it clears no outputs itself
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    [first] = folder.iterdir()
    for path, (content, _) in before.items():
        if (tree.root / path).read_bytes() != content:
            (tree.root / path).write_bytes(content)
    time.sleep(0.002)  # its name tells the millisecond
    assert bench.recovery.confirm(case_of(tree.store, failure, event)).event.outcome is Outcome.HEALED
    [second] = folder.iterdir()
    assert second != first
    [cut] = {path for path, (content, _) in tree.files().items() if second.name.encode() in content}
    assert len(tree.files()[cut][0]) > 300_000, "as much of it is kept as the first time"
    undo(tree.store, bench.ledger, bench.ledger.get(event.id))
    assert list(folder.iterdir()) == []
    assert {path: content for path, (content, _) in tree.files().items()} == {p: c for p, (c, _) in before.items()}


def test_a_disk_that_gets_full_while_cut_texts_are_put_beside_leaves_none_of_them(
    bench: Bench, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was written of the repair, so nothing is on record that would tell of these files."""

    def build(session: SessionBuilder) -> None:
        LONG["huge-output"].turns(session, random.Random(7))
        spent(session.planted())

    session = tree.stuck(build, "prompt is too long: 217000 tokens > 200000 maximum", model=MODEL, version="1.18.33")
    before, write = tree.files(), private_files.write
    monkeypatch.setattr(pruning, "pruned", lambda *_: ())  # it clears no outputs itself

    def full(path: Path, content: bytes, **how: Any) -> None:
        write(path, content, **how)
        raise OSError(errno.ENOSPC, "No space left on device")  # at the next one

    with monkeypatch.context() as patch:
        patch.setattr(private_files, "write", full)
        event = bench.attempt(tree, session)
    assert (event.outcome, event.id, bench.ledger.history(9)) == (Outcome.FAILED, "", [])
    assert "tool-output" in event.detail
    assert (tree.files(), list((tree.root.parent / "tool-output").iterdir())) == (before, [])
    assert bench.attempt(tree, session).outcome is Outcome.HEALED


def test_what_is_left_alone_is_on_one_record_however_often_the_client_writes(tree: Tree, bench: Bench) -> None:
    """A client that is slow goes on writing after the failure (the title of the prompt, say): it is looked at again."""
    session = tree.stuck(words=SIGNATURE)
    events = []
    for title in ("one", "two", "three"):
        write_over(next((tree.root / "session").rglob(f"{session}.json")), title=title)
        events.append(bench.attempt(tree, session))
    assert [(event.outcome, event.repeated) for event in events] == [
        (Outcome.NOT_UNDERSTOOD, False),
        (Outcome.NOT_UNDERSTOOD, True),
        (Outcome.NOT_UNDERSTOOD, True),
    ]
    [entry] = bench.ledger.history(9)
    assert {event.id for event in events} == {entry.id} and entry.title == "three"
    tree.refused(session, SIGNATURE)
    assert not bench.attempt(tree, session).repeated
    assert len(bench.ledger.history(9)) == 2


def test_what_came_of_it_is_told_once(tree: Tree, tmp_path: Path) -> None:
    with running(tmp_path, tree.store) as daemon:
        session = tree.stuck(words=SIGNATURE)
        until(lambda: daemon.events)
        [first] = daemon.history()
        write_over(next((tree.root / "session").rglob(f"{session}.json")), title="another")
        os.utime(tree.root / "message" / session)
        newest = max((tree.root / "message" / session).iterdir())
        newest.write_bytes(newest.read_bytes())
        until(lambda: daemon.history()[0].title == "another")
        [again] = daemon.history()
    assert (again.id, again.outcome) == (first.id, Outcome.NOT_UNDERSTOOD)
    assert [event.id for event in daemon.events] == [first.id]


def test_a_fault_at_the_reading_back_is_logged_whole_but_once(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    """It is read back each minute until that succeeds, for months perhaps."""

    def odd(*_: object) -> bool:
        raise ValueError("an odd record")

    made = bench.recovery.attempt(case(tree.store, tree.failure(tree.stuck())))
    monkeypatch.setattr(module, "all_written", odd)
    assert [bench.recovery.confirm(made).outcome for _ in range(3)] == [Outcome.PENDING] * 3
    assert len([line for line in lines if "Traceback" in line]) == 1
    monkeypatch.undo()
    assert bench.recovery.confirm(made).outcome is Outcome.HEALED
