"""What is healed before anybody prompts: only where the strict provider refuses in every way, and only by adding."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recoveryd.cli.findings import finding_ahead
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.wire.form import OLD
from recoveryd.core.model import Event, Kind, Outcome, Refusal, Session
from recoveryd.disk import recovery_lock
from recoveryd.heal import ahead, take_back
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import overrides, paths
from tests.cli.contract import faults
from tests.conftest import Run
from tests.shapes import BROKEN, HEALTHY, Shape
from tests.support.build import SessionBuilder
from tests.support.cases import notice
from tests.support.examples import FULL
from tests.support.generate import generate
from tests.support.judge import SIGNATURE, as_it_came, refusal, refused_in_every_way
from tests.support.parts import aborted, api_error, text, tool
from tests.support.plant import write_tree
from tests.support.planted import Planted
from tests.support.running import Running, running, until
from tests.support.trees import Bench, Tree, behind_a_call

SURE = [shape for shape in BROKEN if shape.kind in ahead.FORESEEN and not shape.deep][:: 1 if FULL else 3]

SOUND = [shape for shape in HEALTHY if shape.build().messages][:: 1 if FULL else 4]


def planted(bench: Bench, folder: Path, made: Planted) -> OpencodeFiles:
    (folder / "storage" / "session").mkdir(parents=True)
    write_tree(made, folder / "storage")
    return OpencodeFiles(folder / "storage")


def accepted_in_every_way(session: Session) -> bool:
    return all(refusal(session, thinking, form=OLD) is None for thinking in (True, False))


def only_for_what_the_provider_alone_knows(session: Session) -> bool:
    """Whether the session is accepted, or refused for a forged signature, which nobody else can tell."""
    found = [refusal(session, thinking, form=OLD) for thinking in (True, False)]
    return all(one is None or one.kind in SIGNATURE for one in found)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("shape", SURE, ids=lambda shape: shape.name)
def test_a_broken_session_is_healed_before_it_is_refused_or_left_as_it_is(
    bench: Bench, tmp_path: Path, shape: Shape
) -> None:
    made = shape.build()
    store = planted(bench, tmp_path / "data", made)
    before = store.load(made.id)
    case = ahead.foresee(bench.recovery.context, store, made.id)
    assert (case is not None) <= refused_in_every_way(before)
    if (
        case is None
        or not ahead.may_foresee(store.look(made.id))
        or isinstance(bench.recovery.propose(case)[1], Refusal)
    ):
        assert store.load(made.id) == before
        return
    case = bench.recovery.attempt(case)
    after = store.load(made.id)
    assert (case.outcome, case.event.ahead) == (Outcome.HEALED, True)
    assert only_for_what_the_provider_alone_knows(after), case.event.detail
    parts = [part for message in before.messages for part in message.parts]
    kept = {part.raw for message in after.messages for part in message.parts}
    assert all(part.raw in kept for part in parts if (part.data or {}).get("text", "").strip()), "all words are there"


def test_most_of_the_shapes_that_can_be_known_never_see_a_refusal(bench: Bench, tmp_path: Path) -> None:
    """Planted as they come in life: with the newest answer. The others wait: their repair takes something out."""
    kept = Counter[bool]()
    for number, shape in enumerate(SURE):
        if (made := as_it_came(shape.build())) is not None:
            store = planted(bench, tmp_path / str(number), made)
            case = ahead.foresee(bench.recovery.context, store, made.id)
            kept[case is not None and not isinstance(bench.recovery.propose(case)[1], Refusal)] += 1
    assert kept[True] / kept.total() > 0.8, kept


@pytest.mark.parametrize("shape", SOUND, ids=lambda shape: shape.name)
def test_of_a_healthy_session_nothing_is_foreseen(bench: Bench, tmp_path: Path, shape: Shape) -> None:
    made = shape.build()
    assert ahead.foresee(bench.recovery.context, planted(bench, tmp_path / "data", made), made.id) is None


def test_what_is_accepted_in_one_way_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    """Sessions at random, healthy and with faults in any number."""
    for seed in range(300 if FULL else 60):
        made = generate(random.Random(seed), seed % 3).planted
        store = planted(bench, tmp_path / str(seed), made)
        if store.has(made.id) and not refused_in_every_way(store.load(made.id)):
            assert ahead.foresee(bench.recovery.context, store, made.id) is None, seed


def test_a_fault_in_an_answer_that_its_user_stopped_is_known_also_in_the_first_turn(bench: Bench, tree: Tree) -> None:
    def stopped(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(tool(), text("behind"), error=aborted())

    assert ahead.foresee(bench.recovery.context, tree.store, tree.ended(stopped)) is not None


def test_what_was_sent_and_answered_is_no_ground(bench: Bench, tree: Tree) -> None:
    """A proxy or a plugin may mend it on the way: who answered took it."""

    def answered(session: SessionBuilder) -> None:
        behind_a_call(session)
        session.user("next")
        session.assistant("fine")

    context = bench.recovery.context
    assert ahead.foresee(context, tree.store, tree.ended(behind_a_call)) is not None
    session = tree.ended(answered)
    assert refused_in_every_way(tree.store.load(session))
    assert ahead.foresee(context, tree.store, session) is None


def test_a_provider_that_is_led_elsewhere_is_not_known(
    bench: Bench, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's service has rules of its own, and a proxy may mend it on the way."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    session, context = tree.ended(behind_a_call), bench.recovery.context
    assert ahead.foresee(context, tree.store, session) is not None
    settings = {"anthropic": {"options": {"baseURL": "https://api.z.ai/api/anthropic/v1"}}}
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode" / "opencode.json").write_text(json.dumps({"provider": settings}))
    assert ahead.foresee(context, tree.store, session) is None


@contextmanager
def watched(folder: Path, tree: Tree, **config: Any) -> Iterator[Running]:
    """A daemon that has begun to watch."""
    with running(folder, tree.store, heal_ahead_seconds=1.0, **config) as daemon:
        until(lambda: daemon.daemon._swept, "it does not watch")
        yield daemon


class TestDaemon:
    """A running daemon with `heal_ahead`, and a session that nobody was refused in."""

    @pytest.mark.live
    def test_it_waits_until_the_session_is_quiet_and_tells_it_once(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            session = tree.ended(behind_a_call)
            until(lambda: bool(daemon.events), "it was not healed")
            [event] = daemon.events
            assert (event.outcome, event.ahead, event.kind) == (Outcome.HEALED, True, Kind.TOOL_RESULT_MISSING)
            assert event.detail.startswith("Ahead of a refusal: put 1 tool result")
            assert accepted_in_every_way(tree.store.load(session))
            healed = tree.files()
            look_again(daemon, tree, session)
            assert (tree.files(), len(daemon.events)) == (healed, 1)

    @pytest.mark.live
    def test_without_it_nothing_is_touched(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree) as daemon:
            session = tree.ended(behind_a_call)
            before = tree.files()
            look_again(daemon, tree, session)
            assert (tree.files(), daemon.events) == (before, [])

    @pytest.mark.live
    def test_a_session_that_waits_for_an_answer_is_left_alone(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            session = tree.asked(behind_a_call)
            before = tree.files()
            look_again(daemon, tree, session)
            assert (tree.files(), daemon.events) == (before, [])

    @pytest.mark.live
    def test_what_was_refused_in_words_that_nobody_knows_is_left_alone(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            session = tree.ended(behind_a_call)
            tree.refused(session, "something that nobody ever said")
            before = tree.files()
            look_again(daemon, tree, session)
            assert (tree.files(), daemon.events) == (before, [])

    @pytest.mark.live
    def test_a_record_of_the_future_is_waited_for_once(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            tomorrow = time.time() + 86_400
            session = tree.ended(behind_a_call)
            os.utime(tree.part(session, "text"), (tomorrow, tomorrow))
            until(lambda: bool(daemon.events), "it was not healed")
            assert daemon.events[0].ahead

    @pytest.mark.live
    def test_a_dry_run_writes_nothing(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True, dry_run=True) as daemon:
            session = tree.ended(behind_a_call)
            before = tree.files()
            look_again(daemon, tree, session)
            assert (tree.files(), daemon.events) == (before, [])

    @pytest.mark.live
    def test_what_was_undone_is_not_made_again(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            session = tree.ended(behind_a_call)
            broken = tree.files()
            until(lambda: bool(daemon.events), "it was not healed")
            with Ledger(paths.ledger_file(daemon.state)) as ledger:
                take_back(tree.store, ledger, paths.lock_dir(daemon.state), daemon.events[0].id)
            assert tree.files() == broken
            look_again(daemon, tree, session)
            assert tree.files() == broken
            tree.commanded(session)
            commanded = tree.files()
            look_again(daemon, tree, session)
            assert tree.files() == commanded, "a command of the user's is no answer"

    @pytest.mark.live
    def test_what_fell_into_a_pause_is_made_up_for(self, tree: Tree, tmp_path: Path) -> None:
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            overrides.pause(daemon.state, time.time())
            session = tree.ended(behind_a_call)
            look_again(daemon, tree, session)
            assert daemon.events == []
            overrides.unpause(daemon.state)
            look_again(daemon, tree, session)
            until(lambda: bool(daemon.events), "it was not healed")
            assert daemon.events[0].ahead

    @pytest.mark.live
    def test_what_another_process_was_at_is_made_up_for(
        self, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recoveryd.heal.recovery.recovery_lock", partial(recovery_lock, timeout=0.05))
        with watched(tmp_path, tree, heal_ahead=True) as daemon:
            with recovery_lock(tree.store.lock_path, paths.lock_dir(daemon.state), tree.store.id):
                session = tree.ended(behind_a_call)
                look_again(daemon, tree, session)
                assert daemon.events == []
            look_again(daemon, tree, session)
            until(lambda: bool(daemon.events), "it was not healed")
            assert daemon.events[0].ahead


def look_again(daemon: Running, tree: Tree, session: str) -> None:
    """Have the daemon look at a session that has been quiet for long enough, and wait until it did."""
    done = threading.Event()
    healer = daemon.daemon._healer
    now = tree.store.stamp(session).newest_mtime_ns / 1e9
    time.sleep(max(0.0, now + 1.1 - time.time()))
    daemon.daemon._inbox.put(lambda: (healer.attend(tree.store, session), done)[1].set())
    assert done.wait(30)


def test_scan_lists_it_and_repairs_nothing(run: Run, tree: Tree) -> None:
    session, before = tree.ended(behind_a_call, title="Refactor"), tree.files()
    assert run("scan")[0] == 0
    code, out, _ = run("scan", "--ahead")
    assert code == 1 and "1 more would be refused at its next prompt" in out and "would put 1 tool result" in out
    said = json.loads(run("scan", "--ahead", "--json")[1])
    assert not faults("scan", said)
    [one] = said["ahead"]
    assert (one["session"], one["kind"], one["healed"]) == (session, "tool_result_missing", False)
    assert said["stuck"] == [] and tree.files() == before
    code, _, err = run("scan", "--ahead", "--repair")
    assert code == 2
    # One that ended before `run` began is not repaired ahead.
    assert "healed once its next prompt was refused" in " ".join(err.split()) and "healed once" in " ".join(out.split())


def test_scan_lists_of_them_the_kind_that_is_asked_for(run: Run, tree: Tree) -> None:
    tree.ended(behind_a_call)
    assert run("scan", "--ahead", "--kind", "tool_result_missing")[0] == 1
    code, out, _ = run("scan", "--ahead", "--kind", "empty_content")
    assert code == 0 and "none is known to be refused" in out


def test_scan_says_of_a_repair_that_was_taken_back_that_it_is_not_made_again(bench: Bench, tree: Tree) -> None:
    session = tree.ended(behind_a_call)
    case = ahead.foresee(bench.recovery.context, tree.store, session)
    assert case is not None
    made = bench.recovery.attempt(case).event
    take_back(tree.store, bench.ledger, paths.lock_dir(bench.state), made.id)
    found = finding_ahead(tree.store, session, bench.recovery)
    assert found is not None and not found.parts
    assert found.action.startswith(f"not repaired ahead: it was healed ({made.id}), and you undid that")


def test_scan_says_that_nothing_is_known_to_be_refused(run: Run, tree: Tree) -> None:
    tree.ended(fine)
    code, out, _ = run("scan", "--ahead")
    assert code == 0 and "none is known to be refused" in out


def fine(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant("fine")


def test_the_notice_says_that_nothing_was_refused(tree: Tree) -> None:
    names = tree.store.id, "ses_x", "Refactor", "msg_x", Kind.TOOL_RESULT_MISSING
    event = Event(
        "r1", *names, Outcome.HEALED, "Ahead of a refusal: put 1 tool result right behind its call", ahead=True
    )
    toast = notice(event)
    assert toast.title == "OpenCode session kept from failing: Refactor"
    assert "Go on as usual" in toast.body and "continue" not in toast.body and "recoveryd undo r1" in toast.body


def test_a_limit_that_turned_a_prompt_away_keeps_nothing_from_being_repaired_ahead(bench: Bench, tree: Tree) -> None:
    session = tree.ended(behind_a_call)
    limit = api_error("rate limit exceeded", 429)
    limit["data"]["metadata"]["url"] = "https://api.anthropic.com/v1/messages"
    tree.made(session).failed("continue", limit)
    tree.keep(tree.made(session))
    assert ahead.may_foresee(tree.store.look(session))
    case = ahead.foresee(bench.recovery.context, tree.store, session)
    assert case is not None
    case = bench.recovery.attempt(case)
    assert (case.outcome, case.event.ahead) == (Outcome.HEALED, True), case.event.detail
