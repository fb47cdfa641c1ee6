"""The ledger: what it keeps, for how long, and what it says when it can't."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.core import failpoint
from recoveryd.core.errors import LedgerError, NotFoundError
from recoveryd.core.model import Change, Entry, Failure, Kind, Outcome, PastRecovery
from recoveryd.ledger.images import digest
from recoveryd.ledger.ledger import OVERWRITTEN, Handled, Judged, Ledger, Record, new_id
from recoveryd.ledger.seen_and_resumed import SeenSessions
from recoveryd.ledger.upkeep import Upkeep
from tests.support.examples import examples

DAY = 86_400
WORDS = b'{"id":"prt_1","type":"text","text":"words of the user"}'
BLANK = b'{"id":"prt_1","type":"text","text":" "}'
RUNNING = (
    b'{"id":"prt_2","type":"tool","callID":"c","state":{"status":"running","input":{"path":"/a"},"time":{"start":1}}}'
)
ERROR = (
    b'{"id":"prt_2","type":"tool","callID":"d","state":{"status":"error","input":{"path":"/a"},"error":"Operation'
    b' cancelled","time":{"start":1,"end":2}}}'
)
HARMLESS = Change("part/a", RUNNING, ERROR, 0o644)
LOSSY = Change("part/b", WORDS, None)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def failure(message: str = "msg_1", session: str = "ses_1", store: str = "st") -> Failure:
    return Failure(store, session, message, 1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "state" / "ledger.db", clock) as made:
        yield made


def begin(
    ledger: Ledger,
    of: Failure | None = None,
    changes: Sequence[Change] = (HARMLESS,),
    state: str = "s1",
    answered: int = 0,
    root: str = "",
    sole: bool | None = False,
) -> str:
    name, actions = new_id(), ("cancelled",) * len(changes)
    record = Record(name, of or failure(), "A title", Kind.TOOL_RESULT_MISSING, "d", actions, tuple(changes))
    ledger.begin(replace(record, sole=sole, judged=Judged(state, 1, answered, root)))
    return name


def heal(
    ledger: Ledger,
    of: Failure | None = None,
    changes: Sequence[Change] = (HARMLESS,),
    answered: int = 0,
    root: str = "",
    sole: bool | None = False,
) -> str:
    name = begin(ledger, of, changes, answered=answered, root=root, sole=sole)
    ledger.finish(name, Outcome.HEALED, "healed")
    return name


def record(ledger: Ledger, outcome: Outcome, of: Failure | None = None, state: str = "s1") -> str:
    name = new_id()
    ledger.record(Record(name, of or failure(), "A title", None, "why", judged=Judged(state, 1, 0)), outcome)
    return name


class TestEntries:
    def test_a_refusal_of_the_same_id_takes_the_place_of_the_one_before_in_one_step(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = Record("r1", failure(), "A title", None, "why")
        ledger.record(made, Outcome.REFUSED)
        begun = list[str]()
        monkeypatch.setattr(failpoint, "reach", begun.append)
        ledger.record(replace(made, title="another"), Outcome.REFUSED)
        assert [entry.title for entry in ledger.history(9)] == ["another"]
        assert begun.count("ledger commit") == 1

    def test_what_begins_is_pending_with_all_its_images_in_order(self, ledger: Ledger, clock: Clock) -> None:
        changes = [HARMLESS, LOSSY, Change("part/c", None, b"\x00\xff", 0o600), Change("part/d", b"", b"")]
        name = begin(ledger, changes=changes)
        assert name[0] == "r"
        assert len(name) == 9
        assert set(name) <= set(string.ascii_lowercase + "234567")
        expected = Entry(
            *(name, clock.now, "st", "ses_1", "msg_1", "A title", Kind.TOOL_RESULT_MISSING, Outcome.PENDING, 4, "d"),
            actions=("cancelled",) * 4,
        )
        assert ledger.pending() == [expected]
        assert ledger.get(name) == expected
        assert ledger.changes(name) == changes
        assert ledger.handled("st", "ses_1", "msg_1") is None

    def test_what_began_is_there_for_the_next_process_without_a_close(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        child = multiprocessing.get_context("fork").Process(target=_begin_and_die, args=(path,))
        child.start()
        child.join(10)
        assert child.exitcode == 9
        with Ledger(path) as ledger:
            (left,) = ledger.pending()
            assert ledger.changes(left.id) == [HARMLESS]

    def test_finish_settles_the_failure_with_what_it_was_judged_by(self, ledger: Ledger) -> None:
        name = heal(ledger)
        assert ledger.pending() == []
        assert (ledger.get(name).outcome, ledger.get(name).detail) == (Outcome.HEALED, "healed")
        assert ledger.handled("st", "ses_1", "msg_1") == Handled(Outcome.HEALED, "s1", 1)
        assert ledger.handled("st", "ses_1", "msg_2") is None
        assert ledger.handled("other", "ses_1", "msg_1") is None

    def test_an_undo_that_was_cut_off_is_pending_too(self, ledger: Ledger, clock: Clock) -> None:
        first, second = heal(ledger), heal(ledger, failure("msg_2"))
        ledger.mark(second, Outcome.UNDOING)
        third = begin(ledger, failure("msg_3"))
        assert [r.id for r in ledger.pending()] == [third, second]
        assert [r.id for r in ledger.later(ledger.get(first))] == [third, second]
        assert Upkeep(ledger).prune(0, 0, clock.now + DAY) == 1
        assert ledger.changes(second) == [HARMLESS]

    def test_a_second_writing_is_the_same_recovery_and_pending_again(self, ledger: Ledger) -> None:
        name = heal(ledger, changes=[HARMLESS])
        ledger.rewrite(Record(name, failure(), "other", None, "again", ("x",), (HARMLESS, LOSSY)))
        assert ledger.changes(name) == [HARMLESS, LOSSY]
        row = ledger.get(name)
        assert (row.outcome, row.edits, row.actions, row.detail) == (Outcome.PENDING, 2, ("x",), "again")
        assert (row.title, row.kind) == ("A title", Kind.TOOL_RESULT_MISSING)
        assert ledger.handled("st", "ses_1", "msg_1") is None
        ledger.finish(name, Outcome.HEALED, "again")
        assert ledger.handled("st", "ses_1", "msg_1") is not None

    def test_what_a_forced_undo_writes_over_is_kept(self, ledger: Ledger, clock: Clock) -> None:
        name, lost = new_id(), Change("k", WORDS, BLANK)
        ledger.begin(Record(name, failure(), "t", None, "Forced undo.", changes=(lost,), sole=True), Outcome.UNDOING)
        assert ledger.get(name).outcome is Outcome.UNDOING
        ledger.undone(name)
        assert ledger.get(name).outcome is Outcome.UNDONE
        assert Upkeep(ledger).prune(1, 0, clock.now + 99 * DAY) == 0
        assert ledger.changes(name) == [lost]

    def test_an_id_is_used_once(self, ledger: Ledger) -> None:
        name = heal(ledger)
        with pytest.raises(LedgerError, match="UNIQUE"):
            ledger.record(Record(name, failure(), "", None), Outcome.FAILED)
        assert ledger.get(name).outcome is Outcome.HEALED

    def test_what_was_taken_back_after_a_crash_is_still_open_but_counts_for_the_cap(self, ledger: Ledger) -> None:
        name = begin(ledger)
        ledger.finish(name, Outcome.FAILED, "taken back", settled=False)
        assert ledger.handled("st", "ses_1", "msg_1") is None
        assert [one.outcome for one in ledger.tries("st", "ses_1", 0)] == [Outcome.FAILED]

    def test_a_record_has_no_edits_and_settles_at_once(self, ledger: Ledger) -> None:
        name = record(ledger, Outcome.REFUSED, state="s7")
        assert ledger.get(name).edits == 0
        assert ledger.get(name).kind is None
        assert ledger.changes(name) == []
        assert ledger.handled("st", "ses_1", "msg_1") == Handled(Outcome.REFUSED, "s7", 1)

    def test_the_last_verdict_on_a_failure_is_the_one_that_counts(self, ledger: Ledger) -> None:
        record(ledger, Outcome.REFUSED)
        name = begin(ledger, state="s2")
        ledger.finish(name, Outcome.HEALED, "")
        assert ledger.handled("st", "ses_1", "msg_1") == Handled(Outcome.HEALED, "s2", 1)

    def test_an_undone_recovery_is_remembered_as_undone_and_keeps_its_words(self, ledger: Ledger) -> None:
        name = heal(ledger)
        ledger.mark(name, Outcome.UNDONE)
        assert (ledger.get(name).outcome, ledger.get(name).detail) == (Outcome.UNDONE, "healed")
        handled = ledger.handled("st", "ses_1", "msg_1")
        assert handled is not None
        assert handled.outcome is Outcome.UNDONE
        ledger.mark(name, Outcome.CONFLICT, "the client wrote")
        assert ledger.get(name).detail == "the client wrote"

    def test_an_end_without_a_beginning_is_not_found(self, ledger: Ledger) -> None:
        with pytest.raises(NotFoundError, match="raaaaaaaa"):
            ledger.finish("raaaaaaaa", Outcome.HEALED, "")

    def test_tries_are_what_wrote_or_was_the_last_since_an_answer(self, ledger: Ledger, clock: Clock) -> None:
        first = heal(ledger, answered=0)
        record(ledger, Outcome.REFUSED, failure("msg_2"))
        heal(ledger, failure("msg_3", session="ses_2"))
        clock.now -= 100
        second = heal(ledger, failure("msg_4"))
        last = record(ledger, Outcome.GAVE_UP, failure("msg_5"))
        later = heal(ledger, failure("msg_6"), answered=77)
        begin(ledger, failure("msg_7"), answered=77)
        over = Record(new_id(), failure("msg_4"), "", None, changes=(Change("key", b"x", None),), judged=OVERWRITTEN)
        ledger.begin(over, Outcome.UNDOING)
        ledger.finish(over.id, Outcome.UNDONE, "")
        assert [one.recovery for one in ledger.tries("st", "ses_1", 0)] == [first, second, last]
        assert ledger.tries("st", "ses_1", 77) == [
            PastRecovery(later, "msg_6", Outcome.HEALED, kind=str(ledger.get(later).kind))
        ]
        assert ledger.tries("st", "ses_1", 78) == []
        assert [one.recovery for one in ledger.tries("st", "ses_1", 78, "msg_4")] == [second]

    def test_an_undone_one_says_when(self, ledger: Ledger, clock: Clock) -> None:
        names = [heal(ledger), heal(ledger, failure("msg_2"))]
        clock.now += 5
        ledger.undone(names[0])
        ledger.finish(names[1], Outcome.UNDONE, "")
        assert [one.undone for one in ledger.tries("st", "ses_1", 0)] == [clock.now, clock.now]

    def test_history_is_newest_first_even_when_the_clock_goes_back(self, ledger: Ledger, clock: Clock) -> None:
        first = heal(ledger)
        clock.now -= 1000
        second = record(ledger, Outcome.REFUSED, failure("msg_2", session="ses_2"))
        assert [r.id for r in ledger.history(10)] == [second, first]
        assert [r.id for r in ledger.history(1)] == [second]
        assert [r.id for r in ledger.history(10, session="ses_1")] == [first]

    def test_later_names_what_stands_on_top_in_the_same_session(self, ledger: Ledger) -> None:
        first, second = heal(ledger), heal(ledger, failure("msg_2"))
        record(ledger, Outcome.REFUSED, failure("msg_3"))
        heal(ledger, failure("msg_4", session="ses_2"))
        third, fourth = heal(ledger, failure("msg_5")), heal(ledger, failure("msg_6"))
        ledger.mark(third, Outcome.UNDONE)
        assert [r.id for r in ledger.later(ledger.get(first))] == [fourth, second]
        assert ledger.later(ledger.get(fourth)) == []

    def test_get_takes_a_unique_beginning(self, ledger: Ledger) -> None:
        name = heal(ledger)
        assert ledger.get(f" {name[:5].upper()} ").id == name

    def test_get_says_which_are_near_and_which_fit(self, ledger: Ledger) -> None:
        with pytest.raises(NotFoundError, match="ledger is empty"):
            ledger.get("rabc")
        names = [heal(ledger, failure(f"msg_{n}")) for n in range(3)]
        with pytest.raises(NotFoundError) as several:
            ledger.get("r")
        assert all(name in str(several.value) for name in names)
        with pytest.raises(NotFoundError) as near:
            ledger.get(names[0][:8] + "1")
        assert near.value.hint.startswith("Near it: ") and names[0] in near.value.hint
        with pytest.raises(NotFoundError) as other:
            ledger.get("nope")
        assert other.value.hint == f"The newest: {', '.join(reversed(names))}"
        for odd in ("", "%", "r%", "\udcff", "r\x00"):
            with pytest.raises(NotFoundError):
                ledger.get(odd)

    def test_a_kind_of_a_newer_recoveryd_is_shown_as_none(self, ledger: Ledger) -> None:
        name = heal(ledger)
        with sqlite3.connect(ledger.file.path) as other:
            other.execute("UPDATE recovery SET kind = 'not_yet_known'")
        other.close()
        assert ledger.get(name).kind is None

    @examples(25)
    @given(texts=st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=7, max_size=7))
    def test_any_text_and_byte_comes_back_as_it_was(
        self, texts: list[str], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        store, session, message, title, key, detail, action = texts
        of = failure(message, session, store)
        change = Change(key, bytes(range(256)), None)
        with Ledger(tmp_path_factory.mktemp("any") / "ledger.db") as ledger:
            name = new_id()
            ledger.begin(Record(name, of, title, None, detail, (action,), (change,), judged=Judged(key, 1)))
            ledger.finish(name, Outcome.HEALED, detail)
            seen = SeenSessions(ledger.file)
            seen.remember(store, {session: title})
            got = ledger.get(name)
            assert (got.store, got.session, got.message, got.title, got.detail) == (
                store,
                session,
                message,
                title,
                detail,
            )
            assert got.actions == (action,)
            assert ledger.changes(name) == [change]
            assert ledger.handled(store, session, message) == Handled(Outcome.HEALED, key, 1)
            assert seen.remembered(store) == {session: title}
            assert len(ledger.tries(store, session, 0, message)) == 1
            assert len(ledger.history(5, session=session)) == 1


class TestRetention:
    def test_old_images_go_and_the_rows_and_what_was_handled_stay(self, ledger: Ledger, clock: Clock) -> None:
        old = heal(ledger)
        clock.now += 31 * DAY
        new = heal(ledger, failure("msg_2"))
        assert Upkeep(ledger).prune(30, 200, clock.now) == 1
        assert ledger.changes(old) == []
        assert ledger.changes(new) == [HARMLESS]
        assert ledger.get(old).edits == 1
        assert ledger.left(old) == {HARMLESS.key: digest(HARMLESS.after)}
        assert ledger.handled("st", "ses_1", "msg_1") is not None
        assert Upkeep(ledger).prune(30, 200, clock.now) == 0

    def test_a_title_that_is_words_of_a_prompt_goes_as_its_originals_do(self, ledger: Ledger, clock: Clock) -> None:
        old, other = heal(ledger, changes=[LOSSY], sole=True), heal(ledger, failure(store="oc"))
        clock.now += 31 * DAY
        refused, cut_off = record(ledger, Outcome.REFUSED, failure("msg_2")), begin(ledger, failure("msg_4"))
        large, new = heal(ledger, failure("msg_3")), heal(ledger, failure("msg_5"))
        upkeep = Upkeep(ledger, None, lambda store: store == "st")
        assert upkeep.quoted(30, clock.now) == [old] and upkeep.quoted(30, clock.now, [large]) == [old, large]
        assert upkeep.prune(30, 200, clock.now) == 1, "of `oc`"
        assert [ledger.get(name).title for name in (old, large)] == ["", "A title"] and ledger.changes(old) == [LOSSY]
        assert upkeep.prune(30, sum(len(i) for i in (HARMLESS.before, HARMLESS.after) if i) / 1e6, clock.now) == 1
        titles = {name: ledger.get(name).title for name in (old, other, refused, cut_off, large, new)}
        assert {name for name, title in titles.items() if not title} == {old, large}
        upkeep.clear([], upkeep.quoted(0, clock.now + 1))
        assert {n for n in titles if ledger.get(n).title} == {other, cut_off}, "what is cut off is to be ended first"

    def test_images_beyond_the_size_go_oldest_first_and_the_file_shrinks(self, ledger: Ledger, clock: Clock) -> None:
        text = '{"text":"%s"}' % ("x" * 400_000)
        big = Change("k", text.encode(), text.replace("xx", "x x", 1).encode())
        names = [heal(ledger, failure(f"msg_{n}"), [big]) for n in range(4)]
        held = heal(ledger, failure("msg_9"), [big], sole=True)
        before = ledger.file.size()
        assert Upkeep(ledger).prune(30, 1.7, clock.now) == 2
        assert [bool(ledger.changes(name)) for name in names] == [False, False, True, True]
        assert ledger.changes(held) == [big]
        assert ledger.file.size() < before / 1.4

    def test_content_that_is_nowhere_else_stays_with_all_images_of_its_recovery(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        name = heal(ledger, changes=[HARMLESS, LOSSY], sole=True)
        clock.now += 1000 * DAY
        assert Upkeep(ledger, lambda *_: False).prune(30, 0, clock.now) == 0
        assert ledger.changes(name) == [HARMLESS, LOSSY]

    @pytest.mark.parametrize("lossy", [True, False])
    def test_what_a_ledger_does_not_know_of_old_images_is_asked_once(
        self, ledger: Ledger, clock: Clock, lossy: bool
    ) -> None:
        name, asked = heal(ledger, changes=[LOSSY], sole=None), []

        def sole(store: str, changes: Sequence[Change]) -> bool:
            asked.append((store, changes))
            return lossy

        clock.now += 1000 * DAY
        assert Upkeep(ledger, sole).beyond(2000, 200, clock.now) == []
        assert asked == [("st", [LOSSY])]
        assert Upkeep(ledger).prune(30, 0, clock.now) == (0 if lossy else 1)
        assert ledger.changes(name) == ([LOSSY] if lossy else [])

    def test_images_that_nobody_can_be_asked_about_stay(self, ledger: Ledger, clock: Clock) -> None:
        name = heal(ledger, sole=None)
        clock.now += 1000 * DAY
        assert Upkeep(ledger).prune(30, 0, clock.now) == 0
        assert ledger.changes(name) == [HARMLESS]
        assert [one.entry.id for one in Upkeep(ledger).beyond(30, 0, clock.now, all_content=True)] == [name]

    def test_a_second_writing_is_told_anew(self, ledger: Ledger, clock: Clock) -> None:
        name = heal(ledger, sole=False)
        ledger.rewrite(Record(name, failure(), "", None, changes=(LOSSY,), sole=True))
        ledger.finish(name, Outcome.HEALED, "")
        assert Upkeep(ledger).prune(30, 0, clock.now + 1000 * DAY) == 0

    def test_what_is_pending_keeps_its_images(self, ledger: Ledger, clock: Clock) -> None:
        name = begin(ledger)
        assert Upkeep(ledger).prune(0, 0, clock.now + 1000 * DAY) == 0
        assert ledger.changes(name) == [HARMLESS]


class TestMemory:
    def test_stamps_of_a_store_are_replaced_and_forgotten(self, ledger: Ledger) -> None:
        seen = SeenSessions(ledger.file)
        seen.remember("a", {f"ses_{n}": "1" for n in range(100)})
        seen.remember("b", {"ses_0": "9"})
        seen.remember("a", {"ses_0": "2"}, gone=[f"ses_{n}" for n in range(2, 100)])
        assert seen.remembered("a") == {"ses_0": "2", "ses_1": "1"}
        assert seen.remembered("b") == {"ses_0": "9"}
        assert seen.remembered("c") == {}


def _begin_and_die(path: Path) -> None:
    begin(Ledger(path))
    os._exit(9)


def test_all_kinds_that_a_repair_mended_are_kept_also_when_it_is_written_once_more(ledger: Ledger) -> None:
    kinds = Kind.TOOL_RESULT_MISSING, Kind.EMPTY_CONTENT
    record = Record(new_id(), failure(), "A title", kinds[0], "d", ("cancelled",), (HARMLESS,), kinds=kinds)
    ledger.begin(record)
    assert ledger.get(record.id).kinds == kinds
    ledger.rewrite(replace(record, kinds=kinds[:1]))
    assert ledger.get(record.id).kinds == kinds[:1]
    with ledger.file.write() as db:
        db.execute("UPDATE recovery SET kinds = 'of_tomorrow empty_content' WHERE id = ?", (record.id,))
    assert ledger.get(record.id).kinds == kinds[1:]
    assert ledger.get(begin(ledger, failure("msg_2"))).kinds == ()
