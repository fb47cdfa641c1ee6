"""What is stuck now, where ids and times tell different things; the rest is in `tests/contract/test_store.py`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode import ids as ids_module
from tests.support.json_tree import NOW, REFUSED, SES, Tree, done, message, name
from tests.support.kept import Kept
from tests.support.stores import STORES, Files, Rows


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "opencode" / "storage")


@pytest.mark.parametrize("made", [made for name, made in STORES.items() if name.startswith("opencode")])
def test_time_counts_and_not_the_id_where_ids_started_again(made: type[Kept], tmp_path: Path) -> None:
    kept, wrapped = made(tmp_path), 26 * 2**36
    old = kept.is_refused(wrapped - 1000)
    new = kept.answers(wrapped + 1000)
    assert new < old
    assert kept.store.look(SES).failure is None
    by_time = [old, new] if isinstance(kept, Rows) else [new, old]  # the client sorts files by id alone
    assert [message.id for message in kept.store.load(SES).messages] == by_time


@pytest.mark.parametrize("ids", [("msg_a", "msg_b"), ("msg_b", "msg_a")])
def test_ids_without_a_time_are_ordered_by_their_messages(tree: Tree, ids: tuple[str, str]) -> None:
    tree.put(f"message/{SES}/{ids[0]}.json", message(ids[0], "assistant", NOW - 400, **REFUSED))
    tree.put(f"message/{SES}/{ids[1]}.json", message(ids[1], "assistant", NOW - 300, **done(NOW - 300)))
    assert tree.store.look(SES).failure is None


def test_ids_that_tell_another_time_than_their_messages_are_not_believed(tree: Tree) -> None:
    early, late = name(NOW - 5), name(NOW - 3)
    tree.put(f"message/{SES}/{late}.json", message(late, "assistant", NOW - 10**11, **REFUSED))
    tree.put(f"message/{SES}/{early}.json", message(early, "assistant", 0, **done(NOW - 10**11 + 9)))
    assert tree.store.look(SES).failure is None


def test_sessions_are_named_until_they_are_remembered_and_again_when_a_message_comes(tree: Tree) -> None:
    tree.say("user", NOW - 500)
    tree.put("message/ses_2/msg_1.json", {"role": "user"})
    marks = dict(tree.store.fresh({"ses_gone": "1"}, NOW))
    assert marks.keys() == {SES, "ses_2", "ses_gone"}
    assert (marks["ses_gone"], all((marks[SES], marks["ses_2"]))) == ("", True)
    del marks["ses_gone"]
    assert list(tree.store.fresh(marks, NOW)) == []
    tree.put("message/ses_2/msg_1.json", {"role": "assistant"})
    assert list(tree.store.fresh(marks, NOW)) == []
    tree.put("message/ses_2/msg_2.json", {"role": "user"})
    assert [session for session, _ in tree.store.fresh(marks, NOW)] == ["ses_2"]
    assert sorted(session for session, _ in tree.store.fresh({**marks, SES: ""}, NOW)) == [SES, "ses_2"]


@pytest.mark.parametrize("made", [made for name, made in STORES.items() if name.startswith("opencode")])
@pytest.mark.parametrize("repaired", [False, True])
@pytest.mark.parametrize("finish", [None, "tool-calls"])
def test_a_command_of_the_user_in_the_session_is_no_answer(
    made: type[Files | Rows], tmp_path: Path, *, repaired: bool, finish: str | None
) -> None:
    """As `POST /session/{id}/shell` leaves it: a prompt of the client's own, and one call that no model made; and as
    `/review` does (or another of `subtask: true`), which says "tool-calls" as a model's answer.
    """
    kept = made(tmp_path)
    kept.answers(NOW - 900)
    failed = kept.is_refused(NOW - 700)
    prompt = kept.asks(NOW - 600)
    ended = {"time": {"created": NOW - 500, "completed": NOW - 400}, "finish": finish}
    ran = kept.says("assistant", NOW - 500, parentID=prompt, **ended)
    for number, kind in enumerate(["tool", "step-start", "text"][: 3 if repaired else 1]):
        kept.part(ran, f"prt_{number}", b'{"type": "%s"}' % kind.encode())
    found = kept.store.look(SES)
    assert found.failure is not None
    assert (found.failure.message, found.newest_user, found.last_answer) == (failed, None, NOW - 895)
    kept.part(ran, "prt_9", b'{"type": "step-finish"}')
    assert kept.store.look(SES).failure is None


@pytest.mark.parametrize("made", [made for name, made in STORES.items() if name.startswith("opencode")])
def test_reasoning_that_a_repair_made_up_for_a_command_makes_no_answer_of_it(
    made: type[Files | Rows], tmp_path: Path
) -> None:
    """Kimi on OpenRouter wants reasoning before each call, also before that of `!ls`."""
    kept = made(tmp_path)
    kept.answers(NOW - 900)
    failed = kept.is_refused(NOW - 700)
    prompt = kept.asks(NOW - 600)
    ended = {"time": {"created": NOW - 500, "completed": NOW - 400}}
    ran = kept.says("assistant", NOW - 500, parentID=prompt, **ended)
    kept.part(ran, "prt_0", b'{"type": "reasoning", "metadata": {"openrouter": {}, "recoveryd": {"recovery": "r1"}}}')
    kept.part(ran, "prt_1", b'{"type": "tool"}')
    found = kept.store.look(SES)
    assert found.failure is not None
    assert (found.failure.message, found.last_answer) == (failed, NOW - 895)


@pytest.mark.parametrize("made", [made for name, made in STORES.items() if name.startswith("opencode")])
@pytest.mark.parametrize("repaired", [False, True])
def test_a_text_that_a_repair_added_makes_no_answer_of_a_turn_that_was_stopped(
    made: type[Files | Rows], tmp_path: Path, *, repaired: bool
) -> None:
    """It only thought until it was stopped, so the last answer is the one before, with the repair and without."""
    kept = made(tmp_path)
    kept.answers(NOW - 900)
    prompt = kept.asks(NOW - 700)
    ended = {"time": {"created": NOW - 650, "completed": NOW - 640}}
    stopped = kept.says("assistant", NOW - 650, parentID=prompt, error={"name": "MessageAbortedError"}, **ended)
    kept.part(stopped, "prt_0", b'{"type": "reasoning", "text": "plan"}')
    if repaired:
        kept.part(stopped, "prt_1", b'{"type": "text", "text": "x", "synthetic": true, "metadata": {"recoveryd": {}}}')
    failed = kept.is_refused(NOW - 500)
    found = kept.store.look(SES)
    assert found.failure is not None
    assert (found.failure.message, found.last_answer) == (failed, NOW - 895)


@pytest.mark.parametrize(
    ("finish", "kinds"), [("length", ["tool"]), ("unknown", ["tool"]), ("tool-calls", ["reasoning", "tool"])]
)
def test_an_answer_of_a_model_that_has_a_call_is_no_command(tmp_path: Path, finish: str, kinds: list[str]) -> None:
    kept = Files(tmp_path)
    kept.is_refused(NOW - 700)
    prompt = kept.asks(NOW - 600)
    ended = {"time": {"created": NOW - 500, "completed": NOW - 400}, "finish": finish}
    ran = kept.says("assistant", NOW - 500, parentID=prompt, **ended)
    for number, kind in enumerate(kinds):
        kept.part(ran, f"prt_{number}", b'{"type": "%s"}' % kind.encode())
    assert kept.store.look(SES).failure is None


def test_a_part_that_is_written_over_is_seen_where_a_message_came_lately(tree: Tree) -> None:
    _, answered = tree.small()
    lately, long_ago = 0, int(time.time() * 1000) + 60_000
    marks = {since: dict(tree.store.fresh({}, since)) for since in (lately, long_ago)}
    part = tree.part(answered, "prt_2", b"")
    os.utime(part, ns=(1, time.time_ns() + 10**9))
    assert [session for session, _ in tree.store.fresh(marks[lately], lately)] == [SES]
    assert list(tree.store.fresh(marks[long_ago], long_ago)) == []


@given(st.integers(0, 2**41), st.integers(0, 4095), st.integers(0, 700 * 86_400_000))
def test_an_id_tells_its_time_for_two_years(ms: int, counter: int, age: int) -> None:
    assert ids_module.id_time(name(ms, counter), ms + age) == ms
