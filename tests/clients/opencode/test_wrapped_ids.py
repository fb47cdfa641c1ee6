"""Which sessions have ids from before they started again, and which ids they get. Values alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode.ids import WRAP_MS
from recoveryd.clients.opencode.wrapped_ids import Wrapped, ignores_prompts, new_ids, sorts_as, tells_old, wrapped
from recoveryd.core.model import Message, Part, Refusal, Session
from tests.support.examples import examples
from tests.support.old_sessions import STARTED_AGAIN, across, plain
from tests.support.planted import ascending
from tests.support.values import as_session

NOW = STARTED_AGAIN + 98 * 86_400_000
NEXT = STARTED_AGAIN + WRAP_MS  # 2028-10-17
RNG = random.Random(7)


def identifier(ms: int, prefix: str = "msg") -> str:
    return ascending(prefix, ms, 1, RNG)


def message(ms: int, role: str = "user", parts: int = 1, **fields: object) -> Message:
    name = identifier(ms)
    made = [identifier(ms + n, "prt") for n in range(parts)]
    data = {"id": name, "role": role, "time": {"created": ms}, **fields}
    return Message(name, data, tuple(Part(part, name, {"id": part, "type": "text"}) for part in made))


def session(*messages: Message) -> Session:
    return Session("store", "ses_1", tuple(sorted(messages, key=lambda m: m.id)))


def renamed(found: Session, names: dict[str, str]) -> Session:
    messages = [
        replace(m, id=names.get(m.id, m.id), parts=tuple(replace(p, id=names.get(p.id, p.id)) for p in m.parts))
        for m in found.messages
    ]
    return replace(found, messages=tuple(sorted(messages, key=lambda m: m.id)))


def names_of(found: Session, now: int = NOW) -> dict[str, str]:
    evidence = wrapped(found, now)
    assert evidence is not None
    names = new_ids(evidence)
    assert not isinstance(names, Refusal), names
    return dict(names)


OLD = [message(STARTED_AGAIN - 5000), message(STARTED_AGAIN - 4000, "assistant", finish="stop")]
SINCE = [message(NOW - 3000), message(NOW - 2000)]


def test_a_session_with_messages_from_before_is_told_with_its_ids_and_times() -> None:
    found = wrapped(session(*OLD, *SINCE), NOW)
    assert isinstance(found, Wrapped)
    assert ([m.id for m in found.old], [m.id for m in found.new]) == ([m.id for m in OLD], [m.id for m in SINCE])
    assert found.evidence == {
        "ids_started_again": "2026-08-14T11:19:55.136Z",
        "messages_before": 2,
        "last_before": OLD[1].id,
        "last_before_created": "2026-08-14T11:19:51.136Z",
        "messages_since": 2,
        "first_since": SINCE[0].id,
    }


def test_one_that_was_not_prompted_since_is_told_too() -> None:
    found = wrapped(session(*OLD), NOW)
    assert found is not None and found.new == () and found.evidence["first_since"] is None


@pytest.mark.parametrize("now", [STARTED_AGAIN - 1, STARTED_AGAIN - 60_000])
def test_before_ids_start_again_nothing_is_wrong(now: int) -> None:
    assert wrapped(session(*OLD), now) is None


def test_a_session_that_began_since_is_in_order() -> None:
    assert wrapped(session(*SINCE), NOW) is None
    assert wrapped(session(), NOW) is None


def test_a_copy_made_since_has_new_ids_and_old_times() -> None:
    """A fork: the client gives new ids and keeps the times."""
    copies = [replace(m, id=identifier(NOW - 9000 + n)) for n, m in enumerate(OLD)]
    assert wrapped(session(*copies, *SINCE), NOW) is None


def test_the_new_ids_sort_first_and_in_order_and_look_like_the_clients() -> None:
    found = session(*OLD, *SINCE)
    names = names_of(found)
    after = renamed(found, names)
    order = [names[m.id] for m in OLD] + [m.id for m in SINCE]
    assert [m.id for m in after.messages] == order and sorts_as(after, order)
    assert not sorts_as(found, order)
    assert names.keys() == {m.id for m in OLD} | {p.id for m in OLD for p in m.parts}
    for old, new in names.items():
        assert (len(new), new[:4], new[-8:]) == (len(old), old[:4], old[-8:])
    assert wrapped(after, NOW) is None


def test_the_parts_of_an_answer_written_across_keep_the_order_in_which_they_were_made() -> None:
    planted = across()
    answer = planted.messages[-1]["id"]
    names = names_of(as_session(planted))
    parts = [names[part["id"]] for part in planted.parts[answer]]
    assert parts == sorted(parts)


def test_what_was_renamed_is_not_renamed_again_and_once_more_only_behind_it() -> None:
    """In 2028 the ids of today are the old ones; those from before are in front of them already."""
    once = session(*OLD, *SINCE)
    once = renamed(once, names_of(once))
    later = replace(once, messages=(*once.messages, message(NEXT + 86_400_000)))
    names = names_of(later, NEXT + 2 * 86_400_000)
    assert names.keys() == {m.id for m in SINCE} | {p.id for m in SINCE for p in m.parts}
    assert wrapped(renamed(later, names), NEXT + 2 * 86_400_000) is None


@pytest.mark.parametrize(
    ("strange", "why"),
    [
        (Message("msg_by_hand", {"role": "user", "time": {"created": NOW - 5}}), "does not tell when it was made"),
        (Message(identifier(NOW - 5), {"role": "user"}), "does not tell when it was made"),
        (message(NOW, time={"created": STARTED_AGAIN - 90_000_000}), "another order than their times"),
    ],
)
def test_what_can_not_be_ordered_is_refused(strange: Message, why: str) -> None:
    found = wrapped(session(*OLD, *SINCE, strange), NOW)
    refused = new_ids(found) if found else None
    assert isinstance(refused, Refusal) and why in refused.reason


def test_ids_of_another_make_keep_apart() -> None:
    parts = tuple(Part(f"prt_{n}", OLD[0].id, {"type": "text"}) for n in ("b", "a", "c"))
    names = names_of(session(replace(OLD[0], parts=parts), OLD[1]))
    made = [names[part.id] for part in parts]
    assert made == sorted(made) and len(set(made)) == 3 and {len(new) for new in made} == {30}


def test_the_client_takes_a_new_prompt_for_answered() -> None:
    found = session(*OLD, *SINCE)
    assert ignores_prompts(found)
    by_time = replace(found, messages=tuple(sorted(found.messages, key=lambda m: m.created)))
    assert ignores_prompts(by_time)
    after = renamed(found, names_of(found))
    assert not ignores_prompts(after)


@pytest.mark.parametrize("finish", ["tool-calls", "unknown", None])
def test_it_goes_on_where_the_old_answer_was_not_finished(finish: str | None) -> None:
    assert not ignores_prompts(session(OLD[0], message(STARTED_AGAIN - 4000, "assistant", finish=finish), *SINCE))
    assert not ignores_prompts(session(*SINCE))


def test_one_look_at_the_greatest_id_is_enough() -> None:
    assert tells_old(OLD[1].id, NOW)
    assert not tells_old(SINCE[1].id, NOW)
    assert not tells_old("", NOW) and not tells_old("msg_x", NOW)


@examples(200)
@given(
    before=st.lists(st.integers(1, 700 * 86_400_000), min_size=1, max_size=12, unique=True),
    since=st.lists(st.integers(0, 90 * 86_400_000), max_size=6, unique=True),
)
def test_any_session_is_put_in_the_order_of_time(before: list[int], since: list[int]) -> None:
    old = [message(STARTED_AGAIN - ms, parts=3) for ms in sorted(before, reverse=True)]
    new = [message(STARTED_AGAIN + ms) for ms in sorted(since)]
    found = session(*old, *new)
    if wrapped(found, NOW) is None:
        assert max(m.id for m in old) < identifier(NOW)
        return
    after = renamed(found, names_of(found))
    assert [m.created for m in after.messages] == sorted(m.created for m in (*old, *new))
    assert wrapped(after, NOW) is None
    assert all([p.id for p in m.parts] == sorted(p.id for p in m.parts) for m in after.messages)


def test_the_planted_ones_are_what_they_are_planted_for() -> None:
    assert wrapped(as_session(plain()), NOW) is not None
