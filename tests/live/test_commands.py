"""The JSON that commands print is a contract: exactly these keys, on stdout alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.daemon import Daemon
from tests.live.stuck import EMPTY, HOUR_MS, MISSING, Stuck, wait_healed
from tests.support.parts import api_error


def _json(daemon: Daemon, *arguments: str, code: int = 0) -> Any:
    done = daemon.run(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_scan(daemon: Daemon) -> None:
    """1 while a session is stuck; the plan, and nothing written."""
    stuck, fine, limited = Stuck(daemon.storage), Stuck(daemon.storage), Stuck(daemon.storage)
    failed = stuck.fail(age_ms=HOUR_MS)
    fine.fail(age_ms=HOUR_MS)
    fine.answer()
    limited.fail(error=api_error("Overloaded", 529, True))
    before = stuck.files
    found = _json(daemon, "scan", "--json", code=1)
    assert found.keys() >= {"schema", "stores", "sessions_seen", "stuck", "healed", "ignored", "elsewhere"}
    assert str(daemon.storage) in found["stores"]
    assert found["sessions_seen"] == 3
    (only,) = found["stuck"]
    assert {"store", "session", "message", "kind", "action", "healed"} <= only.keys()
    assert (only["store"], only["session"], only["message"]) == (str(daemon.storage), stuck.id, failed.stem)
    assert (only["kind"], only["healed"]) == ("tool_result_missing", False)
    assert only["action"]
    assert stuck.files == before
    other = daemon.run("scan", "--json", "--kind", "role_order")
    assert (other.returncode, json.loads(other.stdout)["stuck"]) == (1, []), "it is stuck on another kind"
    assert _json(daemon, "scan", "--json", "--session", fine.id)["stuck"] == []
    assert daemon.run("scan", "--json", "--session", "ses_none").returncode == 3


def test_history_and_undo(daemon: Daemon) -> None:
    """Newest first; the keys of the design, and no others."""
    assert _json(daemon, "history", "--json") == []
    daemon.start()
    first, second = Stuck(daemon.storage), Stuck(daemon.storage)
    first.fail()
    wait_healed(daemon, first)
    second.fail()
    wait_healed(daemon, second)
    entries = _json(daemon, "history", "--json")
    assert [entry["session"] for entry in entries] == [second.id, first.id]
    for entry in entries:
        keys = {"id", "time", "store", "client", "session", "title", "kind", "outcome", "edits", "detail", "confirmed"}
        assert entry.keys() == {*keys, "overwritten"}
        assert (entry["kind"], entry["outcome"], entry["title"]) == ("tool_result_missing", "healed", "stuck")
        assert (entry["store"], entry["edits"]) == (str(daemon.storage), 1)
        assert entry["detail"]
    assert len(_json(daemon, "history", "--json", "--limit", "1")) == 1
    shown = _json(daemon, "show", "--json", entries[1]["id"])
    assert [change["record"].split("/")[0] for change in shown["changes"]] == ["part"]
    before = first.files
    assert _json(daemon, "undo", "--json", "--dry-run", entries[1]["id"])["undone"] is False
    assert first.files == before
    assert _json(daemon, "undo", "--json", entries[1]["id"])["undone"] is True
    assert [entry["outcome"] for entry in _json(daemon, "history", "--json")] == ["healed", "undone"]
    assert daemon.run("undo", "rnone").returncode == 3


def test_undo_is_refused_once_the_session_went_on(daemon: Daemon) -> None:
    """4, and nothing written; --force keeps what was there."""
    daemon.start()
    stuck = Stuck(daemon.storage)
    stuck.fail()
    wait_healed(daemon, stuck)
    stuck.answer()
    before = stuck.files
    name = daemon.history(stuck.id)[0]["id"]
    refused = daemon.run("undo", name)
    assert refused.returncode == 4
    assert "went on" in refused.stderr
    assert "--force" in refused.stderr
    assert stuck.files == before
    assert daemon.run("undo", "--force", name).returncode == 0
    assert stuck.files != before


def test_explain_lines(daemon: Daemon) -> None:
    """One line out for each line in, also for one that is none; blank ones are skipped."""
    lines = [
        json.dumps({"error": api_error(MISSING, 400)}),
        json.dumps({"text": EMPTY}),
        json.dumps({"error": api_error("Overloaded", 529, True)}),
        "",
        "garbage",
        "[1, 2]",
        '{"neither": 1}',
        '{"error": null}',
        '{"text": 7}',
        '{"text": "\\ud83d half"}',
        "[" * 5000,
        json.dumps({"text": 'messages: first message must use the "user" role'}),
    ]
    done = daemon.run("explain", "--jsonl", stdin="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len([line for line in lines if line])
    kinds = ["tool_result_missing", "empty_content", *[None] * 8, "role_order"]
    assert [answer["kind"] for answer in answers] == kinds
    assert [answer["repairable"] for answer in answers] == [kind is not None for kind in kinds]
    for answer in answers:
        assert {"kind", "repairable", "action"} <= answer.keys()
        assert isinstance(answer["action"], str)
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", [["explain", MISSING], ["explain", "-"]])
def test_explain_a_text(daemon: Daemon, arguments: list[str]) -> None:
    done = daemon.run(*arguments, "--json", stdin=MISSING)
    answer = json.loads(done.stdout)
    assert (answer["kind"], answer["repairable"]) == ("tool_result_missing", True)


def test_explain_a_session(daemon: Daemon) -> None:
    """Which part killed it; 3 for a session that is not there."""
    stuck = Stuck(daemon.storage)
    stuck.fail()
    answer = _json(daemon, "explain", "--session", stuck.id, "--json")
    assert (answer["session"], answer["kind"]) == (stuck.id, "tool_result_missing")
    assert daemon.run("explain", "--session", "ses_none").returncode == 3


@pytest.mark.parametrize("command", ["run", "scan", "explain", "history", "show", "undo", "config", "demo"])
def test_help_has_an_example(daemon: Daemon, command: str) -> None:
    done = daemon.run(command, "--help")
    assert done.returncode == 0
    assert f"example: recoveryd {command}" in done.stdout
