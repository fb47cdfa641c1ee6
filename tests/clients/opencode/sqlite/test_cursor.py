"""Which sessions of a database were written to: by ids that tell their time, by events, and never by reading it all."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recoveryd.clients.opencode.ids import id_ranges
from recoveryd.clients.opencode.sqlite import cursor
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.errors import StoreError
from recoveryd.disk.sqlite import Database, settled
from tests.support.database import NEW, OLD, Base
from tests.support.json_tree import NOW, REFUSED, SES, done

MINUTE = 60_000
HOUR = 60 * MINUTE


class Clock:
    def __init__(self) -> None:
        self.ms = NOW

    def __call__(self) -> float:
        return self.ms / 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[OLD, NEW])
def base(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Base:
    return Base(tmp_path / "opencode.db", request.param, clock)


@pytest.fixture
def new(tmp_path: Path, clock: Clock) -> Base:
    return Base(tmp_path / "opencode.db", NEW, clock)


def fresh(base: Base) -> list[str]:
    found = list(base.store.fresh({}, NOW - 24 * HOUR))
    assert all(mark == "" for _, mark in found)
    return sorted(session for session, _ in found)


def test_a_part_that_broke_without_a_message_written_is_found_within_a_minute(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ((25 * HOUR, "ses_old"), (HOUR, "ses_1"), (HOUR - MINUTE, "ses_2"))
    messages = [base.say("assistant", NOW - at, session=session) for at, session in made]
    for number, message in enumerate(messages):
        base.part(message, f"prt_{number}")
    assert fresh(base) == ["ses_1", "ses_2"]
    for part in ("prt_0", "prt_2"):
        base.run("UPDATE part SET data = '{' WHERE id = ?", part)
    assert fresh(base) == [], "not at each of a hundred looks a second"
    monkeypatch.setattr(cursor, "PARTS_S", 0.0)
    assert fresh(base) == ["ses_2"]


def test_the_first_call_names_the_sessions_of_the_last_hours(base: Base) -> None:
    base.say("user", NOW - 25 * HOUR, session="ses_old")
    base.say("user", NOW - 23 * HOUR, session="ses_1")
    base.say("user", NOW - HOUR, session="ses_1")
    base.say("user", NOW - 100, session="ses_2")
    base.session("ses_empty")
    assert fresh(base) == ["ses_1", "ses_2"]
    assert fresh(base) == []


@pytest.mark.parametrize(("now", "since"), [(26 * 2**36 + HOUR, 26 * 2**36 - HOUR), (26 * 2**36 - 5, 25 * 2**36 + 5)])
def test_ids_that_started_again_in_between_are_found_on_both_sides(
    base: Base, clock: Clock, now: int, since: int
) -> None:
    clock.ms = now
    base.say("user", since + MINUTE, session="ses_before")
    base.say("user", now - MINUTE, session="ses_after")
    base.say("user", since - HOUR, session="ses_old")
    assert sorted(session for session, _ in base.store.fresh({}, since)) == ["ses_after", "ses_before"]


def test_a_range_of_ids_is_two_when_they_started_again() -> None:
    wrapped = 26 * 2**36
    assert len(list(id_ranges(wrapped - 1, wrapped))) == 2
    [(low, high)] = id_ranges(wrapped, wrapped + 5)
    assert low == "msg_000000000000"
    assert low < "msg_000000005fffabc" < high


def test_new_messages_and_messages_written_over_are_told_once(base: Base, clock: Clock) -> None:
    base.say("user", NOW - HOUR, session="ses_1")
    fresh(base)
    clock.ms += MINUTE
    asked = base.say("user", clock.ms - 100, session="ses_2")
    base.say("user", clock.ms - 101, session="ses_1")
    assert fresh(base) == ["ses_1", "ses_2"]
    assert fresh(base) == []
    clock.ms += MINUTE
    base.run("UPDATE message SET data = '{}', time_updated = ? WHERE id = ?", clock.ms - 100, asked)
    assert fresh(base) == ["ses_2"]
    base.run("UPDATE session SET title = 'x'")
    assert fresh(base) == []


def test_a_message_that_becomes_visible_late_is_told(base: Base, clock: Clock) -> None:
    base.say("user", NOW - 100, session="ses_1")
    fresh(base)
    clock.ms += 9 * MINUTE
    base.say("user", NOW - 101, session="ses_2")
    assert fresh(base) == ["ses_2"]


def test_a_message_that_was_not_finished_is_looked_at_again_however_long_it_takes(base: Base, clock: Clock) -> None:
    running = base.say("assistant", NOW - 100)
    assert fresh(base) == [SES]
    for _ in range(3):
        clock.ms += HOUR
        base.run("UPDATE session SET title = title || 'x'")
        assert fresh(base) == []
    base.run("UPDATE message SET data = json_patch(data, '{\"error\":{}}'), time_updated = ?", clock.ms - 100)
    assert fresh(base) == [SES]
    clock.ms += HOUR
    base.run("UPDATE session SET title = title || 'x'")
    assert fresh(base) == []
    assert running


def test_unfinished_messages_that_go_or_grow_old_are_forgotten(base: Base, clock: Clock) -> None:
    gone = base.say("assistant", NOW - 100, session="ses_gone")
    stays = base.say("assistant", NOW - 101, session="ses_stays")
    fresh(base)
    base.run("DELETE FROM message WHERE id = ?", gone)
    clock.ms += HOUR
    assert fresh(base) == []
    assert base.store._cursor._place.open == {stays: NOW - 101}
    base.run("UPDATE session SET title = 'x'")
    assert list(base.store.fresh({}, NOW)) == []
    assert base.store._cursor._place.open == {}


def test_a_write_within_the_same_tick_of_the_clock_is_told(base: Base, clock: Clock) -> None:
    failed = base.say("assistant", NOW - 10)
    assert fresh(base) == [SES]
    base.run("UPDATE message SET data = json_patch(data, '{\"error\":{}}') WHERE id = ?", failed)
    assert fresh(base) == [SES]


def test_one_message_that_can_not_be_read_hides_no_other(new: Base, clock: Clock) -> None:
    new.message({"role": "assistant", "x": "y" * 9000}, NOW - 100, session="ses_large")
    new.message('{"a":' * 50_000 + "1" + "}" * 50_000, NOW - 101, session="ses_deep")
    new.message(b"\x00\xff", NOW - 102, session="ses_blob")
    new.say("assistant", NOW - 103, session="ses_1", **REFUSED)
    store = OpencodeSqlite(new.path, max_row=8000, clock=clock)
    found = sorted(session for session, _ in store.fresh({}, NOW - HOUR))
    assert found == ["ses_1", "ses_blob", "ses_deep", "ses_large"]
    assert store.look("ses_1").failure is not None
    for session, said in (("ses_large", "too large"), ("ses_blob", "no JSON object")):
        with pytest.raises(StoreError, match=said):
            store.look(session)
    with pytest.raises(StoreError, match="nested too deeply"):
        new.store.look("ses_deep")


def test_events_tell_of_changes_to_old_messages(new: Base) -> None:
    new.say("user", NOW - 30 * HOUR)
    new.event(SES, 1)
    assert fresh(new) == []
    new.event(SES, 2)
    new.event("../strange", 1)
    assert fresh(new) == [SES]
    assert fresh(new) == []


def test_an_answer_that_streams_in_is_no_news_until_its_message_is_written(new: Base) -> None:
    new.say("assistant", NOW - 30 * HOUR)
    new.event(SES, 1)
    fresh(new)
    new.event(SES, 2, "message.part.updated.1")
    assert fresh(new) == []
    new.event(SES, 3)
    new.event(SES, 4, "message.part.updated.1")
    assert fresh(new) == [SES]


def test_events_that_begin_later_are_told(new: Base) -> None:
    new.say("user", NOW - 30 * HOUR)
    assert fresh(new) == []
    new.event(SES, 1)
    assert fresh(new) == [SES]


@pytest.mark.parametrize("again", [1, 3])
def test_numbers_of_deleted_events_that_are_used_again_hide_nothing(new: Base, clock: Clock, again: int) -> None:
    for seq in range(3):
        new.event("ses_deleted", seq)
    fresh(new)
    new.run("DELETE FROM event")
    clock.ms += MINUTE
    new.say("assistant", clock.ms - 100, **REFUSED)
    for seq in range(again):
        new.event(SES, seq)
    assert fresh(new) == [SES]
    new.event("ses_2", 1)
    assert fresh(new) == ["ses_2"]


def test_new_messages_are_told_though_nobody_writes_events(new: Base, clock: Clock) -> None:
    fresh(new)
    clock.ms += MINUTE
    new.say("assistant", clock.ms - 100, **done(clock.ms - 100))
    assert fresh(new) == [SES]


def test_while_the_files_stay_as_they_are_nothing_is_opened(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.small()
    monkeypatch.setattr(cursor, "settled", lambda _: True)
    assert fresh(base) == [SES]
    opened: list[str] = []
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: opened.append(a[0]) or real(*a, **k))  # type: ignore[func-returns-value]
    assert fresh(base) == []
    assert opened == []
    monkeypatch.undo()
    base.say("user", NOW - 1)
    assert fresh(base) == [SES]


def test_a_file_written_a_moment_ago_is_not_believed_to_stay(base: Base) -> None:
    base.small()
    fresh(base)
    assert base.store._cursor._place.files is None


def test_after_an_error_nothing_is_skipped(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(base)
    base.say("user", NOW - 100)

    def broken(*_: object) -> None:
        raise StoreError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "read", broken)
        with pytest.raises(StoreError):
            fresh(base)
    assert fresh(base) == [SES]


def _replaced(base: Base, other: Base) -> None:
    other.path.replace(base.path)


def _removed(base: Base, other: Base) -> None:
    base.path.unlink()
    with pytest.raises(StoreError, match="is not there"):
        fresh(base)
    other.path.rename(base.path)


@pytest.mark.parametrize("how", [_replaced, _removed])
def test_a_database_in_the_place_of_another_is_read_from_the_start(
    base: Base, tmp_path: Path, how: Callable[[Base, Base], None]
) -> None:
    base.say("user", NOW - HOUR, session="ses_1")
    assert fresh(base) == ["ses_1"]
    other = Base(tmp_path / "other.db", NEW)
    other.say("user", NOW - 20 * HOUR, session="ses_2")
    how(base, other)
    assert fresh(base) == ["ses_2"]
    assert [message.id for message in base.store.load("ses_2").messages]


@pytest.mark.parametrize("column", ["time_created", "time_updated"])
@pytest.mark.parametrize("value", ["text", b"\xff", 1e300, -(2**63)])
def test_one_row_with_an_odd_time_does_not_hide_the_others(
    base: Base, clock: Clock, column: str, value: object
) -> None:
    since = NOW - HOUR
    odd = base.say("assistant", NOW - 2 * MINUTE, session="ses_odd")
    base.run(f"UPDATE message SET {column} = ? WHERE id = ?", value, odd)
    assert set(base.store.fresh({}, since)) - {("ses_odd", "")} == set()
    clock.ms += 1000
    base.say("assistant", NOW + 500, session="ses_good")
    assert ("ses_good", "") in set(base.store.fresh({}, since))


@pytest.mark.parametrize(("seconds", "passed_over"), [(1, False), (90, False), (200, True)])
def test_a_database_that_nobody_wrote_to_is_passed_over_only_after_a_sweep(seconds: float, passed_over: bool) -> None:
    """What was written to its log may become visible later, and changes no file then."""
    assert settled(((1, 2, 3, time.time_ns() - int(seconds * 1e9)), ())) is passed_over
