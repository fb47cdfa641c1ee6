"""The whole way on the real Claude Code: a session is refused, `recoveryd run` heals it, and it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.claude_code.client import ClaudeCode
from tests.e2e.claude_code.run import Broken, break_all, client, heal_all, lines, watching
from tests.e2e.claude_code.shapes import CHOSEN, SOUND, STUCK, built
from tests.e2e.daemon import Daemon
from tests.e2e.install import UnavailableError
from tests.support.transcript import project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

FULL = bool(os.environ.get("TEST_RECOVERYD_FULL_CLIENTS"))
NAMES = tuple(STUCK) if FULL else CHOSEN
KEPT = (
    tuple(SOUND) if FULL else ("healthy", "call-without-result", "foreign-thinking", "image-damaged", "given-up-branch")
)
# Nothing stands in its place.
ONLY_TAKEN = (
    "blank-text-in-a-line",
    "thinking-blank",
    "thinking-blank-of-a-call",
    "thinking-last",
    "thinking-behind-a-call",
    "blank-between-thinking",
)
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Broken], Daemon, ClaudeCode]]:
    root = tmp_path_factory.mktemp("claude-code")
    try:
        with client(root / "home") as there:
            stuck = break_all(there, {name: STUCK[name] for name in NAMES})
            sound = break_all(there, {name: SOUND[name] for name in KEPT})
            with watching(there, root) as daemon:
                heal_all(there, daemon, stuck)
                yield {one.name: one for one in (*stuck, *sound)}, daemon, there
    except UnavailableError as reason:
        pytest.skip(str(reason))


Played = tuple[dict[str, Broken], Daemon, ClaudeCode]


@pytest.mark.parametrize("name", NAMES)
def test_a_stuck_session_heals_goes_on_for_three_prompts_and_can_be_taken_back(played: Played, name: str) -> None:
    one = played[0][name]
    assert not one.first.answered, f"{name} is not stuck"
    assert [entry["outcome"] for entry in one.entries] == ["healed"], one.tell()
    before, after = one.refused.split(b"\n"), one.healed.split(b"\n")
    assert len(before) == len(after)
    changed = [json.loads(line) for line, old in zip(after, before, strict=True) if line != old]
    marks = [line["recoveryd"]["recovery"] for line in changed if "recoveryd" in line]
    assert changed and set(marks) <= {one.entries[0]["id"]}
    assert len(marks) == len(changed) or name in ONLY_TAKEN
    assert (one.undo, one.undone) == (0, one.refused), one.tell()
    assert [asked.answered for asked in one.again] == [True] * 3, one.tell()
    assert list(one.file.parent.glob(".*")) == []


@pytest.mark.parametrize("name", KEPT)
def test_what_the_client_mends_itself_keeps_every_byte(played: Played, name: str) -> None:
    one = played[0][name]
    assert one.first.answered, one.tell()
    assert one.file.read_bytes() == one.refused
    assert one.refused.startswith(one.planted)
    assert played[1].history(one.session) == []


def test_of_too_many_images_no_more_go_than_the_request_has(played: Played) -> None:
    """Some are stored that the client leaves out since a refusal of images."""
    one = played[0]["images-too-many-and-left-out"]
    assert one.healed.count(b" was taken out: ") == played[0]["images-too-many"].healed.count(b" was taken out: ") == 4


def test_a_session_whose_own_compaction_is_refused_heals(played: Played) -> None:
    """It is so long that the client compacts it before it sends a prompt, and the summary is refused."""
    _, daemon, there = played
    transcript = built(there.new(), STUCK["call-id"])
    transcript.line(-1)["message"]["usage"]["input_tokens"] = 990_000
    file = transcript.write(there.projects)
    assert not there.prompt(transcript.session).answered
    assert "automatic compaction failed: API Error: 400 " in file.read_text()
    [entry] = daemon.wait_settled([transcript.session])[transcript.session]
    assert (entry["kind"], entry["outcome"]) == ("tool_call_invalid", "healed")
    assert there.prompt(transcript.session).answered and "compact_boundary" in file.read_text()


def test_a_heal_beside_a_client_that_runs_loses_no_line(played: Played) -> None:
    """The client goes on by what it has in memory, and appends; all of it is there, and the next start is sound."""
    _, daemon, there = played
    transcript = built(there.new(), STUCK["call-id"])
    file = transcript.write(there.projects)
    arguments = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    process = subprocess.Popen(
        there.command(*arguments, "--resume", transcript.session),
        env=there.env,
        cwd=there.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    said: list[str] = []
    deadline, behind = time.monotonic() + PATIENCE_S, 0
    while behind < 3 and time.monotonic() < deadline:
        behind += bool(said) and any(e["outcome"] == "healed" for e in daemon.history(transcript.session))
        said.append(f"prompt {len(said)}")
        process.stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": said[-1]}}) + "\n")
        process.stdin.flush()
        while '"type":"result"' not in (line := process.stdout.readline()) and line:
            pass
    told = daemon.run("scan").stdout  # while it is open
    process.stdin.close()
    process.stdout.read()
    process.stdout.close()
    process.wait(PATIENCE_S)
    stored = lines(file.read_bytes())
    prompts = [line["message"]["content"] for line in stored if line.get("promptSource") == "sdk"]
    assert [prompt for prompt in prompts if prompt in said] == said
    assert sum(bool(line.get("isApiErrorMessage")) for line in stored) == len(said)
    healed = [entry for entry in daemon.history(transcript.session) if entry["outcome"] == "healed"]
    assert len(healed) == 1 and f"quit it, then `claude --resume {transcript.session}`" in " ".join(told.split())
    assert there.prompt(transcript.session).answered


def test_a_healed_session_that_was_moved_is_taken_back_and_goes_on_where_it_is(played: Played) -> None:
    """As `/cd` moves it (2.1.330), or a user who renames a project and keeps its sessions."""
    _, daemon, there = played
    transcript = built(there.new(), STUCK["call-id"])
    file = transcript.write(there.projects)
    assert daemon.run("pause").returncode == 0  # else it may be healed before it is looked at
    assert not there.prompt(transcript.session).answered
    refused = file.read_bytes()
    assert daemon.run("unpause").returncode == 0
    [healed] = daemon.wait_settled([transcript.session])[transcript.session]
    folder = there.home / "other"
    folder.mkdir()
    moved = there.projects / project(str(folder)) / file.name
    moved.parent.mkdir()
    file.rename(moved)
    told = daemon.run("scan", "--session", transcript.session).stdout
    assert healed["outcome"] == "healed" and f"({healed['id']}). To go on: `claude --resume" in " ".join(told.split())
    assert (daemon.run("undo", healed["id"]).returncode, moved.read_bytes()) == (0, refused)
    assert daemon.run("scan", "--repair", "--yes", "--session", transcript.session).returncode == 0
    assert there.prompt(transcript.session, folder=folder).answered
    assert not file.exists() and list(moved.parent.glob(".*")) == []


def test_a_session_in_two_folders_heals_where_its_client_was_refused(played: Played) -> None:
    """The client goes on with the file of the folder that it is started in, whichever is the newer one."""
    _, daemon, there = played
    transcript = built(there.new(), SOUND["healthy"])
    file = transcript.write(there.projects)
    assert there.prompt(transcript.session).answered
    kept = file.read_bytes()
    folder = there.home / "copy"
    folder.mkdir()
    STUCK["call-id"](transcript)
    copy = there.projects / project(str(folder)) / file.name
    copy.parent.mkdir()
    copy.write_bytes(transcript.raw())
    assert not there.prompt(transcript.session, folder=folder).answered
    refused = copy.read_bytes()
    [healed] = daemon.wait_settled([transcript.session])[transcript.session]
    assert healed["outcome"] == "healed"
    assert copy.read_bytes() != refused and file.read_bytes() == kept
    assert there.prompt(transcript.session, folder=folder).answered
    assert there.prompt(transcript.session).answered and file.read_bytes().startswith(kept)


def test_a_subagents_own_transcript_heals(played: Played) -> None:
    """Its refusal is its own; the session is its parent."""
    _, daemon, there = played
    parent = built(there.new(), SOUND["healthy"])
    file = parent.write(there.projects)
    side = there.new()
    side.session = parent.session
    side.user("do it", isSidechain=True, agentId="a1")
    STUCK["server-id"](side)
    side.refused("messages.1.content.1.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'")
    for number in range(len(side.lines)):
        side.line(number)["isSidechain"] = True
    side.line(-1)["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    folder = Path(str(file).removesuffix(".jsonl")) / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(side.raw())
    found = daemon.wait_settled(["agent-a1"])
    assert [entry["outcome"] for entry in found.get("agent-a1", [])] == ["healed"], daemon.log[-2000:]
    assert b'"call_abc"' not in (folder / "agent-a1.jsonl").read_bytes()
    assert file.read_bytes() == parent.raw()
