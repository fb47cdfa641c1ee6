"""The real client and the provider together: turns, tools, aborts, and thinking that is bound to its conversation."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.harness import Harness, running, settle
from tests.e2e.install import UnavailableError
from tests.e2e.replies import Reply
from tests.support.build import SessionBuilder, reasoning, text


def test_a_scripted_tool_call_is_run_and_answered(harness: Harness) -> None:
    """The client runs the tool, comes back with its result and signed thinking in front, and ends the turn."""
    called = replies.tool_use("bash", {"command": "echo hi", "description": "say hi"})
    harness.provider.script.extend([[replies.thinking("a plan"), called], [replies.text("done")]])
    outcome = harness.prompt(harness.client.new_session()["id"], "go", thinking=True)
    assert outcome.accepted
    assert len(outcome.requests) == 2
    assert outcome.requests[1].body is not None
    answer, results = outcome.requests[1].body["messages"][-2:]
    assert [block["type"] for block in answer["content"]] == ["thinking", "tool_use"]
    assert results["content"][0]["content"] == "hi\n"


def test_a_held_reply_can_be_aborted(harness: Harness) -> None:
    """The turn is busy while the stream stands still, and ends as an abort with the parts that came."""
    session, hold = harness.client.new_session()["id"], threading.Event()
    harness.provider.script.append(Reply([replies.text("half a")], hold))
    assert harness.client.prompt_async(session, "go") == 204
    deadline = time.monotonic() + 20
    while not (listed := harness.client.messages(session)) or len(listed[-1]["parts"]) < 2:
        assert time.monotonic() < deadline, "the first words never came"
        time.sleep(0.02)
    assert session in harness.client.status()
    assert harness.client.abort(session)
    settle(harness, session)
    hold.set()
    last = harness.client.messages(session)[-1]
    assert last["info"]["error"]["name"] == "MessageAbortedError"
    assert [part["type"] for part in last["parts"]][:2] == ["step-start", "text"]


def test_planted_files_read_back_as_they_were_planted(harness: Harness) -> None:
    """What the builder makes is what the client itself lists, field by field."""
    session = SessionBuilder(title="as planted")
    session.user("go")
    session.assistant(reasoning("a plan"), text("done"))
    planted = session.planted()
    harness.plant(planted)
    listed = harness.client.messages(planted.id)
    assert [message["info"] for message in listed] == planted.messages
    assert [message["parts"] for message in listed] == [planted.parts[message["id"]] for message in planted.messages]


def test_bound_thinking_notices_an_edit_on_disk(tmp_path: Path) -> None:
    """Through the real client, too: an edit before thinking is refused, and accepted once that thinking is gone."""
    session = SessionBuilder(title="bound")
    session.user("go")
    session.assistant(reasoning("one"), text("done"))
    session.user("next")
    session.assistant(reasoning("two"), text("fine"))
    planted = session.planted()
    try:
        with running(tmp_path, bound=True) as harness:
            harness.plant(planted)
            assert harness.prompt(planted.id, thinking=True).accepted
            question = planted.parts[planted.messages[0]["id"]][0]
            storage = harness.client.storage / "part"
            file = storage / question["messageID"] / f"{question['id']}.json"
            file.write_text(json.dumps({**question, "text": "another"}))
            refused = harness.prompt(planted.id, thinking=True)
            assert [request.kind for request in refused.requests] == ["thinking_signature_invalid"]
            settle(harness, planted.id)
            thoughts = [p for m in harness.client.messages(planted.id) for p in m["parts"] if p["type"] == "reasoning"]
            for part in thoughts:
                (storage / part["messageID"] / f"{part['id']}.json").unlink()
            assert len(thoughts) == 3, "two were planted, and one came with the answer"
            assert harness.prompt(planted.id, thinking=True).accepted
    except UnavailableError as reason:
        pytest.skip(str(reason))
