"""Taking a recovery back: by a person, and at a start after a crash that left any mixture of images behind."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from recoveryd.cli.findings import finding_of
from recoveryd.clients.store import Store, stored_images
from recoveryd.core import failpoint
from recoveryd.core.errors import ActiveError, NotFoundError, RefusedError, StoreError
from recoveryd.core.model import Change, Entry, Event, Kind, Outcome
from recoveryd.diagnose import diagnose
from recoveryd.disk import file_transaction
from recoveryd.heal.undo import finish_interrupted, undo
from recoveryd.ledger.upkeep import Upkeep
from tests.support.build import BINDS, SessionBuilder
from tests.support.cases import case
from tests.support.database import Base
from tests.support.parts import api_error, reasoning, text, tool
from tests.support.plant import write_sqlite, write_tree
from tests.support.trees import EMPTY, SIGNATURE, Bench, Tree, behind_a_call, blank_answer, told, write_over


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def healed(tree: Tree, bench: Bench, session: str) -> Event:
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    return event


def entry(bench: Bench, event: Event) -> Entry:
    return bench.ledger.get(event.id)


def test_every_byte_is_as_it_was(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    event = healed(tree, bench, session)
    assert tree.files() != before
    changes = undo(tree.store, bench.ledger, entry(bench, event))
    assert tree.files() == before
    assert {change.key for change in changes} == {change.key for change in event.changes}
    assert entry(bench, event).outcome is Outcome.UNDONE
    handled = bench.ledger.handled(event.store, session, event.message)
    assert handled is not None and handled.outcome is Outcome.UNDONE, "it is not repaired again by itself"


def test_a_dry_run_says_what_it_would_write_and_writes_nothing(tree: Tree, bench: Bench) -> None:
    event = healed(tree, bench, tree.stuck())
    before = tree.files()
    [change] = undo(tree.store, bench.ledger, entry(bench, event), dry_run=True)
    assert (change.before is not None, change.after) == (True, None)
    assert tree.files() == before
    assert entry(bench, event).outcome is Outcome.HEALED


def test_it_is_undone_once(tree: Tree, bench: Bench) -> None:
    event = healed(tree, bench, tree.stuck())
    undo(tree.store, bench.ledger, entry(bench, event))
    with pytest.raises(RefusedError, match="was undone before"):
        undo(tree.store, bench.ledger, entry(bench, event))


@pytest.mark.parametrize("own", [True, False])
def test_a_part_that_could_not_be_sent_is_not_put_back_under_a_newer_turn(tree: Tree, bench: Bench, own: bool) -> None:
    """The turn that it stopped has no end, and is no obstacle; one that works on the mended history is."""
    session = tree.asked(lambda made: (made.user("go"), made.assistant(tool(), text("x"))))
    if own:
        tree.begun(session)
    tree.part(session, "tool").write_bytes(b'{"id":"cut')
    found = diagnose(bench.recovery.context, tree.store, session)
    assert found is not None and found.kind is Kind.UNSENDABLE_PART
    event = bench.recovery.attempt(case(tree.store, found.failure, found.kind)).event
    assert event.outcome is Outcome.HEALED, event.detail
    if own:
        assert undo(tree.store, bench.ledger, entry(bench, event))
        return
    tree.begun(session)
    for change in event.changes:  # nobody else wrote to what was repaired
        if change.after is None:
            (tree.root / change.key).unlink()
    with pytest.raises(RefusedError, match="A turn of this session is running"):
        undo(tree.store, bench.ledger, entry(bench, event))


def test_a_recovery_that_changed_nothing_has_nothing_to_undo(tree: Tree, bench: Bench) -> None:
    event = bench.attempt(tree, tree.stuck(words=EMPTY))
    with pytest.raises(RefusedError, match="changed nothing"):
        undo(tree.store, bench.ledger, entry(bench, event))


def test_a_store_that_is_not_there_now_is_told(tree: Tree, bench: Bench, tmp_path: Path) -> None:
    """Its sessions were not deleted, and by force it would count as undone."""
    event, root = healed(tree, bench, tree.stuck()), tree.store.root
    root.rename(tmp_path / "away")
    for force in (False, True):
        with pytest.raises(StoreError, match="is not there"):
            undo(tree.store, bench.ledger, entry(bench, event), force=force)
    (tmp_path / "away").rename(root)
    undo(tree.store, bench.ledger, entry(bench, event))


def test_a_part_that_changed_since_is_not_written_over(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    event = healed(tree, bench, session)
    filled = tree.part(session, "text", 1)
    write_over(filled, text="somebody wrote this")
    before = tree.files()
    with pytest.raises(RefusedError, match="changed since") as refused:
        undo(tree.store, bench.ledger, entry(bench, event))
    assert "--force" in refused.value.hint
    assert refused.value.exit_code == 4
    assert tree.files() == before


def test_by_force_what_is_there_now_is_kept_first(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    event = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    undo(tree.store, bench.ledger, entry(bench, event), force=True)
    assert tree.files() == before
    kept, undone = bench.ledger.history(9)
    assert kept.detail == f"Forced undo of {event.id}."
    assert undone.outcome is Outcome.UNDONE
    assert any(b"somebody wrote this" in (change.before or b"") for change in bench.ledger.changes(kept.id))
    assert told(bench, kept.id) is True, "those words are never pruned"


def test_what_was_written_over_is_no_repair_and_no_other_session_s(tree: Tree, bench: Bench) -> None:
    """It has the title of the session that asked: where another one of the same name is forgotten, it stays."""
    of = tree.ended(behind_a_call, "Same title")
    session = tree.stuck(blank_answer, EMPTY)
    tree.began(of, session)
    event = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    undo(tree.store, bench.ledger, entry(bench, event), force=True)
    kept = bench.ledger.history(1)[0]
    assert (kept.overwritten, entry(bench, event).overwritten) == (True, False)
    with pytest.raises(RefusedError, match="no repair, but what a forced undo wrote over") as refused:
        undo(tree.store, bench.ledger, kept, force=True)
    assert refused.value.hint.endswith(f"recoveryd ledger export {kept.id}")
    assert (kept.title, bench.ledger.root(kept.id)) == ("Same title", of)
    another = healed(tree, bench, tree.stuck(title="Same title"))
    upkeep = Upkeep(bench.ledger)
    assert upkeep.titled(another.session) == []
    assert upkeep.titled(of) == [event.id, kept.id]
    upkeep.clear([], [event.id])  # its title went first: it was older
    assert upkeep.titled(of) == [kept.id]


def test_a_forced_undo_that_can_not_write_keeps_nothing(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    event = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")

    def full(name: str) -> None:
        if name == "create":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoint, "reach", full)
    with pytest.raises(StoreError, match="the disk is full"):
        undo(tree.store, bench.ledger, entry(bench, event), force=True)
    [only] = bench.ledger.history(9)
    assert (only.id, only.outcome) == (event.id, Outcome.HEALED)


def two_blank(tree: Tree, folder: Path, *, rows: bool) -> tuple[SessionBuilder, Base, Store]:
    """A refused session with two blank answers, as `rows` of the database or as files of the tree, and its store."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    for words in ("go", "next"):
        session.user(words)
        session.assistant(text(" "))
    session.failed("continue", api_error(EMPTY, 400))
    database = Base(folder / "opencode.db", clock=time.time)
    store = database.store if rows else tree.store
    write_sqlite(session.planted(), database.path) if rows else write_tree(session.planted(), tree.root)
    return session, database, store


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_by_force_nothing_comes_back_into_what_the_client_deleted(
    tree: Tree, bench: Bench, tmp_path: Path, whole: bool, rows: bool
) -> None:
    """A prompt behind `/undo` deletes messages, or their user the `whole` session. A row without its message is none
    that the database takes: it said that the client wrote since.
    """
    session, database, store = two_blank(tree, tmp_path, rows=rows)
    name, gone = session.session["id"], session.messages[3]["id"]
    failure = store.look(name).failure
    assert failure is not None
    event = bench.recovery.attempt(case(store, failure)).event
    assert event.outcome is Outcome.HEALED and len(event.changes) == 2
    if rows:
        database.run(f"DELETE FROM {'session' if whole else 'message'} WHERE id = ?", name if whole else gone)
    else:
        for message in [path.stem for path in (tree.root / "message" / name).iterdir() if whole or path.stem == gone]:
            shutil.rmtree(tree.root / "part" / message, ignore_errors=True)
            (tree.root / "message" / name / f"{message}.json").unlink()
    held = tree.files(), database.rows()
    with pytest.raises(RefusedError, match="not stored any more: its client deleted it"):
        undo(store, bench.ledger, entry(bench, event))
    assert (tree.files(), database.rows()) == held
    back = undo(store, bench.ledger, entry(bench, event), force=True)
    assert [change.key for change in back] == [
        change.key for change in event.changes if store.read(change.key) is not None
    ]
    assert ((tree.files(), database.rows()) == held) == whole
    assert entry(bench, event).outcome is Outcome.UNDONE
    assert finish_interrupted(store, bench.ledger) == []


def test_a_file_that_is_empty_is_not_told_as_deleted(tree: Tree, bench: Bench) -> None:
    """A client that was killed between emptying and writing it leaves it so."""

    def two_blank_answers(session: SessionBuilder) -> None:
        for _ in range(2):
            blank_answer(session)

    event = healed(tree, bench, tree.stuck(two_blank_answers, EMPTY))
    files = [tree.root / change.key for change in event.changes if change.after is not None]
    assert len(files) == 2
    for path in files:
        path.write_bytes(b"")
    with pytest.raises(RefusedError, match="and 1 more changed since"):
        undo(tree.store, bench.ledger, entry(bench, event))
    for path in files:
        path.unlink()
    with pytest.raises(RefusedError, match="and 1 more are not stored any more: their client deleted them"):
        undo(tree.store, bench.ledger, entry(bench, event))


@pytest.mark.parametrize("rows", [False, True])
def test_an_older_copy_that_was_put_back_is_told(tree: Tree, bench: Bench, tmp_path: Path, rows: bool) -> None:
    """A backup from before the repair: it said that records changed, or that the client deleted them. By force nothing
    of the copy changes.
    """
    session, database, store = two_blank(tree, tmp_path, rows=rows)
    failure = store.look(session.session["id"]).failure
    assert failure is not None
    backup, of_rows = tmp_path / "backup", tmp_path / "backup.db"
    shutil.copytree(tree.root, backup)
    database.run("VACUUM INTO ?", str(of_rows))
    event = bench.recovery.attempt(case(store, failure)).event
    assert event.outcome is Outcome.HEALED
    shutil.rmtree(tree.root)
    shutil.copytree(backup, tree.root)
    of_rows.replace(database.path)
    held = tree.files(), database.rows()
    with pytest.raises(RefusedError, match="is stored as it was before already"):
        undo(store, bench.ledger, entry(bench, event))
    undo(store, bench.ledger, entry(bench, event), force=True)
    assert (tree.files(), database.rows()) == held
    assert entry(bench, event).outcome is Outcome.UNDONE


@pytest.mark.parametrize("rows", [False, True])
def test_what_was_set_aside_of_a_deleted_message_comes_back_nowhere(
    tree: Tree, bench: Bench, tmp_path: Path, rows: bool
) -> None:
    """It is not there, as the repair left it: that its message is gone was told by the database alone, by force too."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    for words in ("go", "next"):
        session.user(words)
        session.assistant(reasoning(words), text("fine"))
    session.failed("continue", api_error(SIGNATURE, 400))
    database = Base(tmp_path / "opencode.db", clock=time.time)
    store = database.store if rows else tree.store
    write_sqlite(session.planted(), database.path) if rows else write_tree(session.planted(), tree.root)
    name, gone = session.session["id"], session.messages[3]["id"]
    failure = store.look(name).failure
    assert failure is not None
    event = bench.recovery.attempt(case(store, failure)).event
    assert event.outcome is Outcome.HEALED and [change.after for change in event.changes] == [None, None]
    if rows:
        database.run("DELETE FROM message WHERE id = ?", gone)
    else:
        shutil.rmtree(tree.root / "part" / gone)
        (tree.root / "message" / name / f"{gone}.json").unlink()
    held = tree.files(), database.rows()
    for dry_run in (True, False):
        with pytest.raises(RefusedError, match="its client deleted it") as refused:
            undo(store, bench.ledger, entry(bench, event), dry_run=dry_run)
        assert "--force" in refused.value.hint and (tree.files(), database.rows()) == held
    [back] = undo(store, bench.ledger, entry(bench, event), force=True)
    assert store.read(back.key) == back.after == event.changes[0].before
    assert [store.read(change.key) for change in event.changes[1:]] == [None]
    assert entry(bench, event).outcome is Outcome.UNDONE


def test_by_force_it_is_taken_back_also_where_another_message_is_broken(tree: Tree, bench: Bench) -> None:
    """The session can't be loaded then, which a look at its newest messages does not meet."""

    def turns(session: SessionBuilder) -> None:
        for words in ("first", "second", "third"):
            session.user(words)
            session.assistant(text(" "))

    session = tree.stuck(turns, EMPTY)
    broken = tree.root / "message" / session / f"{tree.made(session).messages[0]['id']}.json"
    before = tree.files()
    event = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    whole = broken.read_bytes()
    broken.write_bytes(b'{"id":"cut')
    undo(tree.store, bench.ledger, entry(bench, event), force=True)
    broken.write_bytes(whole)
    assert tree.files() == before


def test_by_force_a_dry_run_writes_nothing_either(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    event = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    before = tree.files()
    assert undo(tree.store, bench.ledger, entry(bench, event), force=True, dry_run=True)
    assert tree.files() == before
    assert len(bench.ledger.history(9)) == 1


def test_an_answer_since_stands_on_the_repair(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    before = tree.files()
    event = healed(tree, bench, session)
    tree.answered(session)
    with pytest.raises(RefusedError, match="the model answered"):
        undo(tree.store, bench.ledger, entry(bench, event))
    undo(tree.store, bench.ledger, entry(bench, event), force=True)
    assert before.items() <= tree.files().items()


def test_a_refusal_since_is_no_answer(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    event = healed(tree, bench, session)
    tree.refused(session, "Overloaded")
    undo(tree.store, bench.ledger, entry(bench, event))
    assert entry(bench, event).outcome is Outcome.UNDONE


@pytest.mark.parametrize("by_agent", [False, True])
def test_a_command_of_the_user_since_is_no_answer(tree: Tree, bench: Bench, *, by_agent: bool) -> None:
    session = tree.stuck()
    event = healed(tree, bench, session)
    tree.commanded(session, by_agent)
    undo(tree.store, bench.ledger, entry(bench, event))
    assert entry(bench, event).outcome is Outcome.UNDONE


def test_the_newest_of_a_session_goes_first(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    before = tree.files()
    first = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="\n")
    tree.refused(session, EMPTY)
    grown = set(tree.files()) - set(before)
    second = healed(tree, bench, session)
    other = healed(tree, bench, tree.stuck())
    with pytest.raises(RefusedError) as refused:
        undo(tree.store, bench.ledger, entry(bench, first), force=True)
    assert refused.value.hint == f"First: recoveryd undo {second.id}"
    undo(tree.store, bench.ledger, entry(bench, second))
    undo(tree.store, bench.ledger, entry(bench, first))
    assert entry(bench, other).outcome is Outcome.HEALED
    assert grown


def test_without_images_there_is_no_way_back(tree: Tree, bench: Bench) -> None:
    event = healed(tree, bench, tree.stuck())
    assert Upkeep(bench.ledger).prune(0, 0, entry(bench, event).time + 1) == 1
    with pytest.raises(NotFoundError, match="no longer in the ledger"):
        undo(tree.store, bench.ledger, entry(bench, event))


@pytest.mark.parametrize("forced", [False, True])
def test_what_was_put_back_exactly_is_not_kept_for_good(tree: Tree, bench: Bench, forced: bool) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    event = healed(tree, bench, session)
    bench.ledger.file.read("UPDATE recovery SET sole = 1 WHERE id = ?", (event.id,))
    assert Upkeep(bench.ledger).beyond(0, 0, entry(bench, event).time + 1) == []
    if forced:
        write_over(tree.part(session, "text", 1), text="somebody wrote this")
    undo(tree.store, bench.ledger, entry(bench, event), force=forced)
    gone = [one.entry.id for one in Upkeep(bench.ledger).beyond(0, 0, time.time() + 1)]
    assert (event.id in gone) is not forced, "of a forced undo nobody knows that all came back"


def test_below_one_without_images_the_way_to_the_originals_is_told(tree: Tree, bench: Bench) -> None:
    """What exists nowhere else stays in the ledger, also where a newer recovery lost its images."""
    session = tree.stuck()
    first = healed(tree, bench, session)
    write_over(tree.part(session, "text", 1), text="\n")
    tree.refused(session, EMPTY)
    second = healed(tree, bench, session)
    bench.ledger.file.read("UPDATE recovery SET sole = 1 WHERE id = ?", (first.id,))
    assert Upkeep(bench.ledger).prune(0, 0, entry(bench, second).time + 1) == 1
    with pytest.raises(RefusedError, match=f"originals of {second.id} are no longer in the ledger") as refused:
        undo(tree.store, bench.ledger, entry(bench, first), force=True)
    assert refused.value.hint.endswith(f"recoveryd ledger export {first.id}")
    assert Upkeep(bench.ledger).beyond(0, 0, entry(bench, second).time + 1, all_content=True)
    Upkeep(bench.ledger).clear([first.id])
    with pytest.raises(NotFoundError, match=first.id):
        undo(tree.store, bench.ledger, entry(bench, first), force=True)


def test_an_undo_that_cannot_write_leaves_all_as_it_is(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = healed(tree, bench, tree.stuck(blank_answer, EMPTY))
    after = tree.files()

    def full(name: str) -> None:
        if name == "create":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoint, "reach", full)
    with pytest.raises(StoreError, match="the disk is full"):
        undo(tree.store, bench.ledger, entry(bench, event))
    assert tree.files() == after
    assert entry(bench, event).outcome is Outcome.HEALED
    monkeypatch.undo()
    undo(tree.store, bench.ledger, entry(bench, event))


def place(tree: Tree, change: Change, image: bytes | None) -> None:
    path = tree.root / change.key
    if image is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(image)


def crashed(tree: Tree, bench: Bench, how: Sequence[str], outcome: Outcome) -> tuple[Event, list[Change]]:
    """A recovery that a crash cut off, with each of its records in the state that `how` says."""
    event = bench.attempt(tree, tree.stuck(blank_answer, EMPTY))
    changes = bench.ledger.changes(event.id)
    assert len(changes) == len(how)
    bench.ledger.mark(event.id, outcome)
    place_all(tree, changes, how)
    return event, changes


def place_all(tree: Tree, changes: Sequence[Change], how: Sequence[str]) -> None:
    for change, which in zip(changes, how, strict=True):
        image = {"before": change.before, "after": change.after, "other": b'{"type": "text"}'}[which]
        place(tree, change, image)


MIXTURES = list(itertools.product(("before", "after", "other"), repeat=2))


@pytest.mark.parametrize("how", MIXTURES, ids="-".join)
def test_a_recovery_cut_off_ends_whole_or_taken_back_or_as_a_conflict(
    tree: Tree, bench: Bench, how: tuple[str, str]
) -> None:
    event, changes = crashed(tree, bench, how, Outcome.PENDING)
    [settled] = finish_interrupted(tree.store, bench.ledger)
    found = stored_images(tree.store, changes)
    if "other" in how:
        assert settled.outcome is Outcome.CONFLICT
        assert found == ["other" if which == "other" else "before" for which in how]
    elif how == ("after", "after"):
        assert settled.outcome is Outcome.HEALED
        assert found == ["after", "after"]
    else:
        assert settled.outcome is Outcome.FAILED
        assert found == ["before", "before"]
    assert entry(bench, event).outcome is settled.outcome
    assert bench.ledger.pending() == [] and finish_interrupted(tree.store, bench.ledger) == []


def test_what_was_taken_back_after_a_crash_may_be_tried_again(tree: Tree, bench: Bench) -> None:
    event, _ = crashed(tree, bench, ("after", "before"), Outcome.PENDING)
    finish_interrupted(tree.store, bench.ledger)
    handled = bench.ledger.handled(event.store, event.session, event.message)
    assert handled is None or handled.outcome is not Outcome.HEALED
    assert bench.attempt(tree, event.session).outcome is Outcome.HEALED


@pytest.mark.parametrize("how", MIXTURES, ids="-".join)
def test_an_undo_cut_off_is_finished_unless_somebody_else_wrote(tree: Tree, bench: Bench, how: tuple[str, str]) -> None:
    event, changes = crashed(tree, bench, how, Outcome.UNDOING)
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert settled.outcome is (Outcome.CONFLICT if "other" in how else Outcome.UNDONE)
    found = stored_images(tree.store, changes)
    assert found == ["other" if which == "other" else "before" for which in how]
    assert entry(bench, event).outcome is settled.outcome


CUT_OFF = [
    (("after", "before"), Outcome.PENDING, Outcome.CONFLICT),
    (("before", "before"), Outcome.PENDING, Outcome.FAILED),
    (("after", "before"), Outcome.UNDOING, Outcome.CONFLICT),
    (("after", "after"), Outcome.UNDOING, Outcome.HEALED),
    (("before", "before"), Outcome.UNDOING, Outcome.UNDONE),
]


@pytest.mark.parametrize(("how", "begun", "ended"), CUT_OFF)
def test_a_session_that_went_on_behind_what_was_cut_off_stays_as_it_is(
    tree: Tree, bench: Bench, how: tuple[str, str], begun: Outcome, ended: Outcome
) -> None:
    event, changes = crashed(tree, bench, how, begun)
    tree.answered(event.session)
    place_all(tree, changes, how)
    before = tree.files()
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert (settled.outcome, entry(bench, event).outcome) == (ended, ended)
    assert tree.files() == before


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("how", [KeyboardInterrupt(), NotFoundError("The session is gone.")])
def test_an_undo_that_its_user_interrupts_before_anything_is_written_is_none(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, *, how: BaseException, force: bool
) -> None:
    """Else it would be made by the next start. So it is where the client took the session away right before."""
    event = healed(tree, bench, tree.stuck(blank_answer, EMPTY))
    if force:
        tree.answered(event.session)
    before = tree.files()

    def stop(changes: Sequence[Change]) -> None:
        raise how

    monkeypatch.setattr(tree.store, "apply", stop)
    with pytest.raises(type(how)):
        undo(tree.store, bench.ledger, entry(bench, event), force=force)
    assert bench.ledger.pending() == [] and entry(bench, event).outcome is Outcome.HEALED
    assert tree.files() == before


@pytest.mark.parametrize("force", [False, True])
def test_an_undo_whose_session_goes_right_before_it_writes_is_none(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, *, force: bool
) -> None:
    event = healed(tree, bench, tree.stuck(blank_answer, EMPTY))
    if force:
        tree.answered(event.session)

    def gone(changes: Sequence[Change]) -> None:
        shutil.rmtree(tree.root / "part")
        raise NotFoundError("The session is gone.")

    monkeypatch.setattr(tree.store, "apply", gone)
    with pytest.raises(NotFoundError):
        undo(tree.store, bench.ledger, entry(bench, event), force=force)
    assert bench.ledger.pending() == [] and entry(bench, event).outcome is Outcome.HEALED


@pytest.mark.parametrize("begun", [Outcome.PENDING, Outcome.UNDOING])
def test_what_was_cut_off_waits_while_a_turn_runs(tree: Tree, bench: Bench, begun: Outcome) -> None:
    event, _ = crashed(tree, bench, ("after", "before"), begun)
    tree.running(event.session)
    before = tree.files()
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert settled.open and "is running" in settled.detail
    assert tree.files() == before and entry(bench, event).outcome is begun


@pytest.mark.parametrize("begun", [Outcome.PENDING, Outcome.UNDOING])
def test_what_was_cut_off_waits_while_nothing_may_be_written(tree: Tree, bench: Bench, begun: Outcome) -> None:
    """Asked first, and right before the write: its user may pause it in between."""
    event, changes = crashed(tree, bench, ("after", "before"), begun)
    *folders, name = changes[0].key.split("/")
    (tree.root.joinpath(*folders) / f"{file_transaction.TEMPORARY}{name}").write_bytes(b"half")
    before = tree.files()
    for asked in (1, 2):
        answers = iter([None] * (asked - 1))

        def allowed(answers: Iterator[None] = answers) -> None:
            if next(answers, "paused") is not None:
                raise ActiveError("It is paused.")

        [settled] = finish_interrupted(tree.store, bench.ledger, allowed=allowed)
        assert settled.open and settled.passes and settled.detail == "It is paused."
        assert entry(bench, event).outcome is begun
        assert asked == 2 or tree.files() == before
        assert stored_images(tree.store, changes) == ["after", "before"]


@pytest.mark.parametrize("begun", [Outcome.PENDING, Outcome.UNDOING])
def test_what_was_cut_off_waits_when_the_client_writes_while_it_is_looked_at(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, begun: Outcome
) -> None:
    event, changes = crashed(tree, bench, ("after", "before"), begun)
    other = next(tree.root / name for name in tree.files() if name.startswith("message/"))
    answered = bench.ledger.answered

    def written(name: str) -> int | None:
        other.write_bytes(other.read_bytes() + b"\n")
        return answered(name)

    monkeypatch.setattr(bench.ledger, "answered", written)
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert settled.open and settled.passes and entry(bench, event).outcome is begun
    assert stored_images(tree.store, changes) == ["after", "before"]


@pytest.mark.parametrize("begun", [Outcome.PENDING, Outcome.UNDOING])
def test_a_record_that_a_recovery_keeps_as_it_was_is_not_taken_for_written(
    tree: Tree, bench: Bench, begun: Outcome
) -> None:
    event, changes = crashed(tree, bench, ("before", "before"), begun)
    same = next(key for key in tree.files() if key.startswith("message/"))
    image = (tree.root / same).read_bytes()
    with bench.ledger.file.write() as db:
        values = (event.id, same, image, image)
        db.execute(
            "INSERT INTO image SELECT seq, 99, ?2, ?3, ?4, NULL FROM recovery WHERE id = ?1",
            values,
        )
    tree.answered(event.session)
    place_all(tree, changes, ("before", "before"))
    before = tree.files()
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert settled.outcome is (Outcome.FAILED if begun is Outcome.PENDING else Outcome.UNDONE)
    assert tree.files() == before


def test_a_forced_undo_that_was_cut_off_behind_an_answer_is_taken_back(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = healed(tree, bench, tree.stuck(blank_answer, EMPTY))
    tree.answered(event.session)
    before, whole = tree.files(), tree.store.apply

    def crash(changes: Sequence[Change]) -> None:
        whole(changes[:1])
        raise SystemExit

    monkeypatch.setattr(tree.store, "apply", crash)
    with pytest.raises(SystemExit):
        undo(tree.store, bench.ledger, entry(bench, event), force=True)
    monkeypatch.undo()
    assert tree.files() != before
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert settled.outcome is Outcome.UNDONE and tree.files() == before


@pytest.mark.parametrize("outcome", [Outcome.PENDING, Outcome.UNDOING])
@pytest.mark.parametrize("how", MIXTURES, ids="-".join)
def test_what_was_cut_off_is_undone_by_name(tree: Tree, bench: Bench, how: tuple[str, str], outcome: Outcome) -> None:
    """Half of it stands: that is taken back, unless the client wrote over a part of it since."""
    event, changes = crashed(tree, bench, how, outcome)
    begun = entry(bench, event)
    if "other" in how:
        with pytest.raises(RefusedError, match="changed since"):
            undo(tree.store, bench.ledger, begun)
    undone = undo(tree.store, bench.ledger, begun, force="other" in how)
    assert len(undone) == len([which for which in how if which != "before"])
    assert stored_images(tree.store, changes) == ["before", "before"]
    assert entry(bench, event).outcome is Outcome.UNDONE and bench.ledger.pending() == []


def test_a_cut_off_repair_that_cannot_be_taken_back_now_stays_to_be_ended(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    event, _ = crashed(tree, bench, ("after", "after"), Outcome.PENDING)

    def full(name: str) -> None:
        if name == "create":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoint, "reach", full)
    with pytest.raises(StoreError, match="the disk is full"):
        undo(tree.store, bench.ledger, entry(bench, event))
    monkeypatch.undo()
    assert [pending.id for pending in bench.ledger.pending()] == [event.id]
    assert finish_interrupted(tree.store, bench.ledger)[0].outcome in (Outcome.HEALED, Outcome.UNDONE)


@pytest.mark.parametrize("outcome", [Outcome.PENDING, Outcome.UNDOING])
def test_scan_names_what_was_cut_off(tree: Tree, bench: Bench, outcome: Outcome) -> None:
    event, _ = crashed(tree, bench, ("after", "before"), outcome)
    found = finding_of(tree.store, event.session, bench.recovery)
    assert found is not None and f"{event.id} was cut off half way" in found.action and not found.healed


def test_a_store_that_is_not_there_now_is_settled_another_time(tree: Tree, bench: Bench, tmp_path: Path) -> None:
    event, _ = crashed(tree, bench, ("after", "before"), Outcome.PENDING)
    away = tmp_path / "away"
    tree.root.rename(away)
    [settled] = finish_interrupted(tree.store, bench.ledger)
    assert entry(bench, event).outcome in (Outcome.PENDING, settled.outcome)
    away.rename(tree.root)
    if bench.ledger.pending():
        assert finish_interrupted(tree.store, bench.ledger)[0].outcome is Outcome.FAILED


def test_the_temporary_files_of_a_crash_go(tree: Tree, bench: Bench) -> None:
    _, changes = crashed(tree, bench, ("after", "before"), Outcome.PENDING)
    *folders, name = changes[0].key.split("/")
    left = tree.root.joinpath(*folders) / f"{file_transaction.TEMPORARY}{name}"
    left.write_bytes(b"half")
    undo(tree.store, bench.ledger, bench.ledger.pending()[0], dry_run=True)
    assert left.exists(), "a dry run writes nothing"
    finish_interrupted(tree.store, bench.ledger)
    assert not left.exists()


def test_the_recoveries_of_another_store_are_not_settled(tree: Tree, bench: Bench, tmp_path: Path) -> None:
    crashed(tree, bench, ("after", "before"), Outcome.PENDING)
    other = Tree(tmp_path / "other")
    assert finish_interrupted(other.store, bench.ledger) == []
    assert len(bench.ledger.pending()) == 1
