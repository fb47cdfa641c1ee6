"""What is stuck now: the newest end of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.base import About, Look
from recoveryd.clients.opencode import ids as ids_module
from recoveryd.disk import tree as reading
from tests.support.json_tree import ABORTED, NOW, REFUSED, SES, Tree, done, message, name


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "opencode" / "storage")


def test_a_refused_turn_is_the_failure(tree: Tree) -> None:
    tree.say("user", NOW - 500)
    tree.say("assistant", NOW - 400, **done(NOW - 400))
    tree.say("user", NOW - 300)
    failed = tree.say("assistant", NOW - 200, **REFUSED)
    found = tree.store.look(SES)
    assert found.failure is not None
    assert (found.failure.message, found.failure.session, found.failure.time) == (failed, SES, NOW - 200)
    assert (found.failure.provider, found.failure.model) == ("anthropic", "m")
    assert (found.running, found.newest_user, found.last_answer) == (0, None, NOW - 395)


def test_a_later_success_clears_a_failure(tree: Tree) -> None:
    tree.say("assistant", NOW - 400, **REFUSED)
    tree.say("assistant", NOW - 300, **done(NOW - 300))
    assert tree.store.look(SES) == Look(None, 0, None, NOW - 295)


def test_the_newest_of_several_failures_is_meant_and_a_newer_prompt_and_a_running_turn_are_told(tree: Tree) -> None:
    tree.say("assistant", NOW - 500, **REFUSED)
    newest = tree.say("assistant", NOW - 400, **REFUSED)
    prompt = tree.say("user", NOW - 300)
    tree.say("assistant", NOW - 200)
    found = tree.store.look(SES)
    assert found.failure is not None
    assert (found.failure.message, found.newest_user, found.running) == (newest, prompt, NOW - 200)


def test_an_unfinished_message_of_a_crash_before_the_failure_is_no_running_turn(tree: Tree) -> None:
    tree.say("assistant", NOW - 500)
    tree.say("assistant", NOW - 400, **REFUSED)
    assert tree.store.look(SES).running == 0


def test_a_tool_call_clears_an_older_failure_but_is_no_answer(tree: Tree) -> None:
    tree.say("assistant", NOW - 900, **done(NOW - 900))
    tree.say("assistant", NOW - 800, **{**done(NOW - 800), "finish": "tool-calls"})
    tree.say("assistant", NOW - 700, **REFUSED)
    assert tree.store.look(SES).last_answer == NOW - 895
    tree.say("assistant", NOW - 600, **{**done(NOW - 600), "finish": "tool-calls"})
    assert tree.store.look(SES).failure is None


@pytest.mark.parametrize(
    ("types", "cleared"), [(["step-start", "reasoning"], False), (["step-start", "text"], True), ([], False)]
)
def test_an_abort_clears_a_failure_only_if_the_model_spoke(tree: Tree, types: list[str], cleared: bool) -> None:
    tree.say("assistant", NOW - 400, **REFUSED)
    aborted = tree.say("assistant", NOW - 300, **ABORTED)
    for number, kind in enumerate(types):
        tree.part(aborted, f"prt_{number}", {"type": kind})
    assert (tree.store.look(SES).failure is None) == cleared


def test_time_counts_and_not_the_id_where_ids_started_again(tree: Tree) -> None:
    wrapped = 26 * 2**36
    old = tree.say("assistant", wrapped - 1000, **REFUSED)
    new = tree.say("assistant", wrapped + 1000, **done(wrapped + 1000))
    assert new < old
    assert tree.store.look(SES).failure is None


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


def test_a_glance_reads_one_message_of_a_healthy_session(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        tree.say("assistant", NOW - 1000 + number, **done(NOW - 1000 + number))
    reads: list[str] = []
    real = reading.read

    def read(fd: int, file: str, *rest: Any) -> bytes:
        reads.append(file)
        return real(fd, file, *rest)

    monkeypatch.setattr(reading, "read", read)
    tree.store.look(SES)
    assert reads == [name(NOW - 981) + ".json"]


@given(st.integers(0, 2**41), st.integers(0, 4095), st.integers(0, 700 * 86_400_000))
def test_an_id_tells_its_time_for_two_years(ms: int, counter: int, age: int) -> None:
    assert ids_module.id_time(name(ms, counter), ms + age) == ms


def test_title_folder_and_parent_are_told_without_the_session(tree: Tree) -> None:
    tree.put(f"session/global/{SES}.json", {"title": "My session", "directory": "/work", "parentID": "ses_0"})
    assert tree.store.about(SES) == About("My session", "/work", "ses_0")
    assert tree.store.about("ses_gone") == tree.store.about("../x") == About()
