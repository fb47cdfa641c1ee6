"""What people are told of sessions of Claude Code: what it mends itself, and how to go on with what was healed."""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from loguru import logger

from recoveryd.api import recover
from recoveryd.clients import Config, SessionStatus, Store, find_stores, is_of_subagent
from recoveryd.clients.claude_code.client import ClaudeCode
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from recoveryd.clients.store import About
from recoveryd.core import Failure, Kind, Outcome, StoreError
from recoveryd.diagnose import Assessment, Context, NeedsUser, Next, Triage, assess, needs_user
from recoveryd.heal.ahead import may_foresee
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import Notify, paths
from recoveryd.tell import next_step
from recoveryd.tell.desktop import Desktop
from recoveryd.tell.notifier import Delivery, Fate, Notifier
from recoveryd.tell.toast import Toast
from tests.conftest import Run
from tests.e2e import replies
from tests.e2e.claude_code.shapes import SOUND, STUCK, built
from tests.support.running import running, until
from tests.support.transcript import Transcript, call, dump, stamp, text
from tests.support.trees import Tree

MENDS = "the newest Claude Code mends nearly all such faults, so update an older one. To go on: `claude --resume {}`"
UNEXPLAINED = "the newest Claude Code mends most faults before it sends them, so update an older one"
ILLEGAL = "messages.3.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
# What an older version stored of shapes that the newest one mends by itself.
MENDED = {
    "foreign-thinking": ("messages.3.content.1: Invalid `signature` in `thinking` block", MENDS),
    "call-without-result": (
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        MENDS,
    ),
    "result-without-call": (
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_09. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        MENDS,
    ),
    "image-damaged": ("messages.4.content.0.tool_result.content.1.image.source.base64: Could not process image", MENDS),
    "half-character": ("The request body is not valid JSON: no low surrogate in string: line 1 column 9", MENDS),
    "blank-answer": ("messages: text content blocks must be non-empty", UNEXPLAINED),
    "call-twice": ("messages: `tool_use` ids must be unique", UNEXPLAINED),
    "tool-gone-of-own-search": ("Tool reference 'WaitForMcpServers' not found in available tools", UNEXPLAINED),
}


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below `.claude` is what the client finds by itself."""
    monkeypatch.setenv("HOME", str(tmp_path))


def planted(projects: Path, name: str, words: str) -> Transcript:
    made = built(Transcript(start=int(time.time() * 1000) - 90_000), {**SOUND, **STUCK}[name])
    made.user("continue")
    made.refused(words)
    path = made.write(projects)
    os.utime(path, (time.time() - 60,) * 2)
    return made


NAME = "messages.{}.content.1.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"


def went_back(made: Transcript, leaf: str | None) -> None:
    """As `/rewind` writes it."""
    made.event({"type": "last-prompt", "leafUuid": leaf, "explicit": True, "sessionId": made.session})
    made.last = leaf


def turn(made: Transcript, name: str) -> str:
    made.user("do it")
    made.assistant(text("x"), call(name=name, call_id=f"toolu_{len(made.lines)}"))
    made.result(f"toolu_{len(made.lines) - 2}")
    return made.assistant(text("done"))[0]


def test_a_refusal_is_none_of_a_session_whose_user_went_back_to_before_it(run: Run, tmp_path: Path) -> None:
    """Neither is it told as stuck, with the advice to go back, nor is anything written; the fault may be before it."""
    start = int(time.time() * 1000) - 90_000
    gone, whole, stays, again = (Transcript(start=start) for _ in range(4))
    for made, name in ((gone, "fine"), (whole, "fine"), (stays, "no name!"), (again, "fine")):
        leaf = turn(made, name)
        made.user("more")
        if made is not stays:
            turn(made, "no name!")
            made.user("on")
        made.refused(NAME.format(1 if made is stays else 5))
        if made is whole:
            made.add({"type": "system", "subtype": "informational", "content": "x"})
            went_back(made, made.last)
        else:
            went_back(made, leaf)
    turn(again, "no name!")
    again.user("once more")
    again.refused(NAME.format(5))
    paths = {made.session: made.write(tmp_path / ".claude" / "projects") for made in (gone, whole, stays, again)}
    before = paths[gone.session].read_bytes()
    code, out, _ = run("scan", "--json")
    found = {one["session"]: one["reason"] for one in json.loads(out)["stuck"]}
    assert code == 1 and found == dict.fromkeys((whole.session, stays.session, again.session), "tool_call_invalid")
    assert run("scan", "--repair", "--yes")[0] == 0
    assert [path.read_bytes().count(b'"no name!"') for path in paths.values()] == [1, 0, 0, 1], "what is not sent stays"
    assert paths[gone.session].read_bytes() == before
    assert "in a turn that was taken back since" in " ".join(run("scan")[1].split())


@pytest.mark.parametrize("before_the_fault", [False, True])
def test_a_repair_is_undone_whose_refusal_was_taken_back(run: Run, tmp_path: Path, before_the_fault: bool) -> None:
    """Its session was answered on the repair, which is undone behind that: the fault is sent again, if it still is."""
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    sound = turn(made, "fine")
    leaf = turn(made, "no name!")
    made.user("more")
    made.refused(NAME.format(5))
    path = made.write(tmp_path / ".claude" / "projects")
    assert run("scan", "--repair", "--yes")[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    went, made.lines = path.read_bytes(), []
    went_back(made, sound if before_the_fault else leaf)
    turn(made, "fine")
    path.write_bytes(went + made.raw())
    assert json.loads(run("scan", "--json")[1])["elsewhere"] == []
    assert run("undo", entry["id"], "--force")[0] == 0 and b'"no name!"' in path.read_bytes()
    told = [(one["reason"], one["undone"]) for one in json.loads(run("scan", "--json")[1])["elsewhere"]]
    assert told == ([] if before_the_fault else [("repair_undone", entry["id"])])


def test_a_session_is_healed_whose_own_compaction_was_refused(run: Run, tmp_path: Path) -> None:
    """It is as long as has it compacted before its prompt is sent (2.1.332)."""
    made = Transcript()
    turn(made, "no name!")
    made.user("more")
    said = f"Prompt is too long · automatic compaction failed: API Error: 400 {NAME.format(1)}"
    made.refused("", message={"role": "assistant", "model": "<synthetic>", "content": [text(said)]})
    del made.line(-1)["apiErrorStatus"], made.line(-1)["apiErrorType"]
    path = made.write(tmp_path / ".claude" / "projects")
    [found] = json.loads(run("scan", "--json")[1])["stuck"]
    assert found["kind"] == "tool_call_invalid"
    assert run("scan", "--repair", "--yes")[0] == 0 and b'"no name!"' not in path.read_bytes()


def test_what_an_undo_puts_back_before_a_compaction_is_not_told_as_what_may_be_refused(
    run: Run, tmp_path: Path
) -> None:
    """Of all that stood before it, the compaction kept the line of the refusal alone (2.1.332)."""
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    turn(made, "no name!")
    made.user("more")
    refused = made.refused(NAME.format(1))
    path = made.write(tmp_path / ".claude" / "projects")
    assert run("scan", "--repair", "--yes")[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    went, made.lines = path.read_bytes(), []
    made.last, summary = None, str(uuid.uuid4())
    kept = {"anchorUuid": summary, "uuids": [refused], "allUuids": [refused]}
    about = {"trigger": "manual", "preservedMessages": kept}
    made.add({"type": "system", "subtype": "compact_boundary", "content": "Compacted", "compactMetadata": about})
    made.add({"type": "user", "uuid": summary, "message": {"role": "user", "content": "S"}, "isCompactSummary": True})
    turn(made, "fine")
    path.write_bytes(went + made.raw())
    assert run("undo", entry["id"], "--force")[0] == 0 and b'"no name!"' in path.read_bytes()
    assert json.loads(run("scan", "--json")[1])["elsewhere"] == []


@pytest.mark.parametrize(
    "words",
    [
        "Could not process image",
        "messages.2.content.1.image.source.url: Could not process image",
        "messages.2.content.1: Invalid `signature` in `thinking` block",
        "Invalid `signature` in `thinking` block",
    ],
)
def test_what_is_left_is_not_blamed_for_what_was_taken_back(run: Run, tmp_path: Path, words: str) -> None:
    """A picture as well as thinking."""
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    made.user([text("look"), {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}])
    leaf = made.assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln" * 40}, text("fine"))[-1]
    made.user("more")
    made.refused(words)
    went_back(made, leaf)
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    assert run("scan", "--repair", "--yes")[0] == 0 and path.read_bytes() == before


@pytest.mark.parametrize("went_back", [False, True])
def test_a_leaf_of_zeros_takes_back_what_the_newest_line_does_not_go_on_from(
    run: Run, tmp_path: Path, went_back: bool
) -> None:
    """2.1.330 notes one behind the next prompt of a user who stopped one (Escape), and, by its code, used `/rewind`."""
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    made.user([text("look"), {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}])
    leaf = made.assistant(text("fine"))[-1]
    made.user("more")
    made.refused("messages.0.content.1.image.source.url: Could not process image")
    refused = made.last
    made.user("stopped")
    made.last = leaf if went_back else refused
    made.user("again")
    made.event({"type": "last-prompt", "leafUuid": "0" * 8 + "-0000" * 3 + "-" + "0" * 12, "explicit": True})
    made.refused("Number of requests exceeds your rate limit", 429, "rate_limit_error")
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    assert len(json.loads(run("scan", "--json")[1])["stuck"]) == (0 if went_back else 1)
    run("scan", "--repair", "--yes")
    assert (path.read_bytes() == before) is went_back, "what was refused is another one, or gone"


@pytest.mark.parametrize("words", [ILLEGAL, "messages.2.content.1.image.source.url: Could not process image"])
@pytest.mark.parametrize("mark", ["forkedFrom", "requestSessionId"])
def test_a_branch_of_what_was_healed_is_not_stuck_and_not_edited(
    run: Run, tmp_path: Path, words: str, mark: str
) -> None:
    """As `/branch` writes it: all lines again, the old refusal too, each with the session that it is from."""
    projects = tmp_path / ".claude" / "projects"
    first, new = Transcript(start=int(time.time() * 1000) - 90_000), Transcript()
    first.user([text("look"), {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}])
    turn(first, "fine")
    first.user("more")
    first.refused(words)
    for line in first.lines:
        assert isinstance(line, dict)
        is_from = {"sessionId": first.session, "messageUuid": line["uuid"]} if mark == "forkedFrom" else first.session
        new.event({**line, "sessionId": new.session, mark: is_from})
    path = new.write(projects)
    before = path.read_bytes()
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"]) == (0, [])
    assert [(one["session"], one["reason"]) for one in data["elsewhere"]] == [(new.session, "refused_before_copy")]
    assert path.read_bytes() == before
    new.last = first.last
    new.ms = int(time.time() * 1000) - 80_000
    new.user("hello")
    new.refused("Number of requests exceeds your rate limit", 429, "rate_limit_error")
    new.write(projects)
    assert json.loads(run("scan", "--json")[1])["stuck"] == [], "what is turned away leaves no copied refusal in force"
    new.user("hello")
    new.refused("messages.0.content.1.image.source.url: Could not process image")
    new.write(projects)
    assert [one["session"] for one in json.loads(run("scan", "--json")[1])["stuck"]] == [new.session]


KIMI, CLAUDE = "kimi-k2-turbo-preview", "claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("served", "asked", "then", "healed"),
    [(KIMI, KIMI, CLAUDE, True), (KIMI, CLAUDE, CLAUDE, False), (CLAUDE, CLAUDE, KIMI, False)],
)
@pytest.mark.parametrize("subagent", [False, True])
def test_a_session_is_held_to_the_rules_of_the_maker_that_it_moved_to(
    run: Run, tmp_path: Path, served: str, asked: str, then: str, healed: bool, subagent: bool
) -> None:
    """Its user tries another maker's model by ANTHROPIC_BASE_URL, and goes on with Claude; or the other way."""
    made = built(Transcript(start=int(time.time() * 1000) - 90_000), STUCK["call-id-of-another-maker"])
    made.by(served, asked)
    made.user("continue")
    made.asks(then)
    made.refused(ILLEGAL)
    path = made.write(tmp_path / ".claude" / "projects")
    if subagent:
        for line in made.lines:
            assert isinstance(line, dict)
            line["isSidechain"] = True
        path.unlink()
        path = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(made.raw())
    before = path.read_bytes()
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    told = json.loads(out)["stuck"][0]
    assert (code, path.read_bytes() != before) == (0 if healed else 1, healed), out
    if healed:
        assert b"functions.Bash:0" not in path.read_bytes()
        assert run("undo", told["recovery"])[0] == 0
    else:
        assert f"the model ({KIMI}) is not known to be Anthropic's" in told["action"]
    assert path.read_bytes() == before


def test_of_many_calls_whose_results_have_faults_of_their_own_each_keeps_its_result(tmp_path: Path) -> None:
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    made.user("go")
    for number in range(7):
        made.assistant(call(call_id=f"bad id!{number}"))
        made.result(f"bad id!{number}", f"found {number}", is_error="x")
    made.refused(ILLEGAL)
    path = made.write(tmp_path / "projects")
    os.utime(path, (time.time() - 60,) * 2)
    store = ClaudeCodeTranscripts(tmp_path / "projects")
    event = recover(made.session, Config(), state_dir=tmp_path / "state", stores=[store])
    assert event is not None and event.outcome is Outcome.HEALED
    sent = [block.body for block in ClaudeCodeWire().stored(store.load(made.session)).blocks()]
    assert [b["content"] for b in sent if b["type"] == "tool_result"] == [f"found {number}" for number in range(7)]


ORDER = "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."
DISABLED = (
    "messages.3.content.0.type: Expected `text`, but found `thinking`. When `thinking` is disabled, an `assistant`"
)


@pytest.mark.parametrize(("words", "begins", "way"), [(ORDER, [], "off"), (DISABLED, [replies.thinking("why")], "on")])
def test_of_an_open_turn_that_is_refused_for_its_thinking_it_is_told_what_its_user_can_do(
    run: Run, tmp_path: Path, words: str, begins: list[dict[str, object]], way: str
) -> None:
    """2.1.330 sends it so for good; a line of its own would close the turn."""
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    turn(made, "fine")
    made.user("go on")
    made.assistant(*begins, text("x"), call())
    made.result("toolu_01")
    made.refused(words)
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    code, out, _ = run("scan", "--repair", "--yes")
    assert code == 1 and path.read_bytes() == before
    told = " ".join(out.split())
    assert f"turn thinking {way} for one prompt, or go back with `/rewind`" in told and "newest" not in told


FINAL = "messages.5: The final block in an assistant message cannot be `thinking`."


@pytest.mark.parametrize(("words", "goes"), [(None, False), (ILLEGAL, False), (FINAL, True)])
def test_an_answer_that_ends_in_thinking_is_mended_once_it_is_refused_for_that(
    run: Run, tmp_path: Path, words: str | None, goes: bool
) -> None:
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    turn(made, "no name!" if words == ILLEGAL else "fine")
    made.user("go on")
    STUCK["thinking-last"](made)
    if words:
        made.user("more")
        made.refused(words)
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    assert run("scan", "--repair", "--yes")[0] == 0
    after = path.read_bytes()
    assert (after != before, b'"thinking":"hm"' not in after) == (words is not None, goes)
    assert b'"thinking":"ho"' in after, "it is not sent"


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("name", ["foreign-thinking", "image-damaged"])
def test_what_is_refused_by_another_status_is_healed_though_the_client_knows_the_words(
    run: Run, tmp_path: Path, name: str, status: int
) -> None:
    """2.1.330 takes nothing away for a 422."""
    made = built(Transcript(start=int(time.time() * 1000) - 90_000), SOUND[name])
    made.user("continue")
    made.refused(MENDED[name][0], status)
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    assert run("scan", "--repair", "--yes")[0] == (1 if status == 400 else 0)
    assert (path.read_bytes() == before) is (status == 400)


@pytest.mark.parametrize(
    ("words", "status", "goes"),
    [
        ("Request size is too large. Request size is 40.1 MB. Max size is 32 MB", 400, False),  # LiteLLM's
        ("Request exceeds the maximum size", 413, False),
        ("Too many images in request", 422, False),
        ("Unsupported image type", 400, True),
    ],
)
def test_no_image_has_the_fault_of_all_that_is_sent_together(
    run: Run, tmp_path: Path, words: str, status: int, goes: bool
) -> None:
    """One that the rules find bad is left to the client, as it is where nothing is said of images."""
    made = built(Transcript(start=int(time.time() * 1000) - 90_000), SOUND["image-damaged"])
    made.user("continue")
    made.refused(words, status)
    path = made.write(tmp_path / ".claude" / "projects")
    before = path.read_bytes()
    assert run("scan", "--repair", "--yes")[0] == (0 if goes else 1)
    assert (path.read_bytes() != before) is goes


@pytest.mark.parametrize("name", MENDED)
def test_a_fault_that_the_client_mends_by_itself_is_left_to_its_update(tree: Tree, run: Run, name: str) -> None:
    words, said = MENDED[name]
    made = planted(Path(os.environ["HOME"]) / ".claude" / "projects", name, words)
    code, out, _ = run("explain", "--session", made.session)
    assert (code, said.format(made.session).casefold() in " ".join(out.split()).casefold()) == (0, True), out
    code, out, _ = run("scan", "--repair", "--session", made.session)
    assert (code, said.format(made.session).casefold() in " ".join(out.split()).casefold()) == (1, True), out
    [path] = (Path(os.environ["HOME"]) / ".claude").rglob("*.jsonl")
    assert path.read_bytes() == made.raw()


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "send `/compact`"),
        ("The frobnicator is not well", "go back with `/rewind` to a prompt before it"),
    ],
)
def test_where_nothing_is_repaired_the_clients_own_way_on_is_named(run: Run, words: str, way: str) -> None:
    made = planted(Path(os.environ["HOME"]) / ".claude" / "projects", "healthy", words)
    assert way in " ".join(run("explain", "--session", made.session)[1].split())


def test_a_report_names_no_type_of_a_block_that_is_anybodys_word(run: Run) -> None:
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    made = planted(projects, "healthy", ILLEGAL)
    [path] = projects.rglob("*.jsonl")
    path.write_bytes(made.raw().replace(b'"type":"text","text":"done"', b'"type":"my_secret","text":"done"'))
    said = run("report", made.session)[1]
    assert '"block": "other"' in said and "my_secret" not in said


@pytest.mark.live
def test_the_notice_of_a_heal_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Toast] = []

    def send(_: Notifier, toast: Toast) -> Delivery:
        sent.append(toast)
        return Delivery(Fate.SHOWN)

    monkeypatch.setattr(Notifier, "send", send)
    made = planted(tmp_path / ".claude" / "projects", "call-id", ILLEGAL)
    with running(tmp_path, ClaudeCodeTranscripts(tmp_path / ".claude" / "projects"), notify=Notify(tui=False)):
        until(lambda: sent)
    assert sent[0].title.startswith("Claude Code session healed")
    assert f"claude --resume {made.session}" in sent[0].body


@pytest.mark.live
def test_the_notice_of_a_subagent_says_that_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its title is that of the session which a person began, and which was not refused."""
    sent: list[Toast] = []

    def send(_: Notifier, toast: Toast) -> Delivery:
        sent.append(toast)
        return Delivery(Fate.SHOWN)

    monkeypatch.setattr(Notifier, "send", send)
    projects = tmp_path / ".claude" / "projects"
    side = planted(projects, "call-id", ILLEGAL)
    [path] = projects.rglob("*.jsonl")
    parent = Transcript(start=side.ms - 90_000)
    parent.user("What the user began")
    parent.assistant(text("ok"))
    own = parent.write(projects).with_suffix("") / "subagents" / "agent-a1.jsonl"
    own.parent.mkdir(parents=True)
    path.rename(own)
    with running(tmp_path, ClaudeCodeTranscripts(projects), notify=Notify(tui=False)):
        until(lambda: sent)
    assert sent[0].title == "Claude Code subagent healed: What the user began"
    assert f"To go on: `claude --resume {parent.session}`." in sent[0].body


def test_what_is_healed_says_how_to_go_on_and_a_subagent_by_its_parent(run: Run) -> None:
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    made = planted(projects, "call-id", ILLEGAL)
    [path] = projects.rglob("*.jsonl")
    side = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    side.parent.mkdir(parents=True)
    side.write_bytes(path.read_bytes())
    for argv in (["scan", "--repair"], ["scan"]):
        out = " ".join(run(*argv)[1].split())
        assert out.count(f"To go on: `claude --resume {made.session}`") == 2 and "resume agent" not in out, argv


@pytest.mark.parametrize(
    ("words", "went_on", "stuck"),
    [
        ("The frobnicator is not well", False, ["refused_unknown"]),
        ("The frobnicator is not well", True, []),
        (ILLEGAL, True, ["tool_call_invalid"]),
    ],
)
def test_a_subagent_whose_parent_went_on_is_stuck_only_on_what_is_stored(
    run: Run, words: str, went_on: bool, stuck: list[str]
) -> None:
    """Claude Code gives its refusal to the parent as what the tool said; asked again, it would be refused again."""
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    side = planted(projects, "call-id", words)
    [path] = projects.rglob("*.jsonl")
    parent = built(Transcript(start=side.ms + (5_000 if went_on else -90_000)), SOUND["healthy"])
    file = parent.write(projects)
    own = file.with_suffix("") / "subagents" / "agent-a1.jsonl"
    own.parent.mkdir(parents=True)
    path.rename(own)
    code, out, _ = run("scan", "--json")
    assert ([one["reason"] for one in json.loads(out)["stuck"]], code) == (stuck, int(bool(stuck)))
    told = " ".join(run("explain", "--session", "agent-a1")[1].split())
    assert ("the session that asked it went on" in told) is not bool(stuck)
    assert run("scan", "--repair", "--yes")[0] == (1 if stuck == ["refused_unknown"] else 0)
    assert (b'"recoveryd"' in own.read_bytes()) is (stuck == ["tool_call_invalid"])


@pytest.mark.parametrize("words", [ILLEGAL, "messages.3.content.1.image.source.url.url: field required", "Odd"])
def test_a_subagent_that_goes_on_from_its_parents_conversation_is_left_alone(run: Run, words: str) -> None:
    """`/subtask` (2.1.330): the parent's lines are sent before its own, and stand in the parent's file alone."""
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    side = planted(projects, "call-id", words)
    [path] = projects.rglob("*.jsonl")
    parent = built(Transcript(start=side.ms - 90_000), SOUND["healthy"])
    own = parent.write(projects).with_suffix("") / "subagents" / "agent-a1.jsonl"
    own.parent.mkdir(parents=True)
    told = {"type": "fork-context-ref", "agentId": "a1", "parentSessionId": parent.session, "contextLength": 19}
    own.write_bytes(dump(told) + path.read_bytes())
    path.unlink()
    before = own.read_bytes()
    for argv in (["scan"], ["scan", "--repair", "--yes"], ["scan", "--repair", "--session", "agent-a1"]):
        code, out, _ = run(*argv, "--json")
        found = json.loads(out)
        assert (code, found["stuck"]) == (0, []), argv
        assert [(one["session"], one["reason"]) for one in found["elsewhere"]] == [("agent-a1", "refused_with_parent")]
    explained = " ".join(run("explain", "--session", "agent-a1")[1].split())
    assert "what is to blame in that conversation is repaired there" in explained and "report" not in explained
    assert own.read_bytes() == before and json.loads(run("history", "--json")[1]) == []


def test_nobody_is_told_to_prompt_or_shorten_a_subagent(tmp_path: Path) -> None:
    root, side, client = Transcript(), Transcript(), ClaudeCode(ClaudeCodeSettings())
    root.user("q")
    side.user("do it", isSidechain=True)
    path = root.write(tmp_path).with_suffix("") / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(side.raw())
    store = ClaudeCodeTranscripts(tmp_path)
    step = {
        name: next_step(Kind.ROLE_ORDER, client, store, name)
        + client.advice(store, Failure(store.id, name, "m", 1), Kind.CONTEXT_OVERFLOW)
        for name in (root.session, "agent-a1")
    }
    assert "/rewind" in step[root.session] and "/compact" in step[root.session]
    assert step["agent-a1"] == "have the session that asked this subagent go on with the task"


def test_nothing_is_foreseen_of_a_subagent_without_what_is_sent_of_its_parent(tmp_path: Path) -> None:
    store, side = ClaudeCodeTranscripts(tmp_path), Transcript()
    side.user("do it", isSidechain=True)
    side.assistant(text("done"), isSidechain=True)
    path = tmp_path / "-work" / side.session / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(side.raw())
    assert may_foresee(store.look("agent-a1"))
    path.write_bytes(dump({"type": "fork-context-ref", "agentId": "a1"}) + side.raw())
    assert not may_foresee(store.look("agent-a1"))


def test_a_repair_is_read_by_a_client_that_was_started_after_it(tmp_path: Path) -> None:
    made = Transcript()
    made.user("q")
    made.write(tmp_path / ".claude" / "projects")
    store, client = ClaudeCodeTranscripts(tmp_path / ".claude" / "projects"), ClaudeCode(ClaudeCodeSettings())
    session = store.load(made.session)

    def read(since: float, failed: int) -> tuple[bool, str]:
        failure = Failure(store.id, made.session, "m", failed)
        return client.has_read(store, session, failure, since), client.unread(store, made.session, since)

    assert read(4.0, 6000) == (False, ""), "it may have been any client"
    notes = tmp_path / ".claude" / "sessions"
    notes.mkdir()
    (notes / f"{os.getpid()}.json").write_text(json.dumps({"sessionId": made.session, "startedAt": 5000}))
    assert read(4.0, 6000) == (True, "")
    assert read(4.0, 4500) == (False, ""), "another one, that has ended since"
    assert read(5.5, 6000) == (
        False,
        f"Claude Code may have this session open as it was before: quit it, then `claude --resume {made.session}`",
    )


def asked(made: Transcript, name: str, base: str = "") -> None:
    """A request, as the client notes it; `base`: the one before it of the same process."""
    made.ms += 1000
    told = {"id": name, "timestamp": stamp(made.ms), **({"base": base} if base else {})}
    made.event({"type": "api-request", "sessionId": made.session, **told, "params": {"model": "claude-opus-5-5"}})


@pytest.mark.parametrize(
    ("since", "name", "base", "held"),
    [
        (0, "r4", "r3", True),  # of the process that was refused before the repair
        (0, "r4", "", False),  # of one that was begun since
        (0, "r4", "r0", False),  # nothing tells
        (0, "", "", False),  # no request of it
        (1, "r4", "r3", False),  # of one that was begun and answered since
        (2, "r4", "r3", False),  # of the same process, which was answered since
    ],
)
def test_what_was_refused_in_a_client_that_had_it_in_memory_tells_nothing_also_once_that_ended(
    tmp_path: Path, since: int, name: str, base: str, held: bool
) -> None:
    """It is not stuck: what is stored was repaired meanwhile."""
    made = Transcript()
    made.user("q")
    asked(made, "r1")
    made.assistant(text("a"))
    made.user("go on")
    asked(made, "r2", "r1")
    made.refused(ILLEGAL)
    repaired = made.ms / 1000 + 0.5
    made.user("continue")
    asked(made, "r3", "" if since == 1 else "r2")
    if since:
        made.assistant(text("a"))
    else:
        made.refused(ILLEGAL)
    made.user("and now")
    if name:
        asked(made, name, base)
    message = made.refused(ILLEGAL)
    made.user("later")
    asked(made, "r5")
    made.write(tmp_path / ".claude" / "projects")
    store, client = ClaudeCodeTranscripts(tmp_path / ".claude" / "projects"), ClaudeCode(ClaudeCodeSettings())
    failure = Failure(store.id, made.session, message, made.ms)
    says = "it was refused again in a Claude Code that had it open as it was before: go on with "
    assert store.session_ids()
    assert client.unread(store, made.session, repaired, failure) == held * f"{says}`claude --resume {made.session}`"
    assert client.unread(store, made.session, repaired) == "", "no client has it open now"
    assert client.unread(store, "gone", repaired, replace(failure, session="gone")) == ""


@pytest.mark.parametrize("since", ["", "another process", "the same, loaded again", "the same, shorter"])
def test_what_another_process_was_answered_since_is_not_in_the_memory_of_the_one_that_was_refused(
    tmp_path: Path, since: str
) -> None:
    """Its lines go on from its own. One that has the other's loaded, or got a summary, has another conversation."""
    made = Transcript()
    made.user("q")
    asked(made, "r1")
    first = made.refused(ILLEGAL)
    repaired = made.ms / 1000 + 0.5
    if since:
        made.user("in a second terminal")
        asked(made, "p1")
        made.assistant(text("fine"))
    if since == "another process":
        made.last = first
    elif since == "the same, shorter":
        made.add({"type": "system", "subtype": "compact_boundary", "parentUuid": None})
    made.user("in the old one")
    asked(made, "r2", "r1")
    if since == "another process":  # that answers while this one asks
        prompt = made.last
        made.assistant(text("more"), parentUuid="p")
        made.last = prompt
    message = made.refused(ILLEGAL)
    made.write(tmp_path / ".claude" / "projects")
    store, client = ClaudeCodeTranscripts(tmp_path / ".claude" / "projects"), ClaudeCode(ClaudeCodeSettings())
    assert store.session_ids()
    held = client.unread(store, made.session, repaired, Failure(store.id, made.session, message, made.ms))
    assert bool(held) == (since in {"", "another process"})


@pytest.mark.parametrize("folder", [".claude", "my work"])
def test_a_session_in_the_background_is_to_be_stopped_by_its_job(tmp_path: Path, folder: str) -> None:
    """`claude --resume` only shows what runs there, and `/exit` lets it run (2.1.330)."""
    made = Transcript()
    made.user("q")
    home = tmp_path / folder
    made.write(home / "projects")
    store, client = ClaudeCodeTranscripts(home / "projects"), ClaudeCode(ClaudeCodeSettings())
    assert store.load(made.session)
    (home / "sessions").mkdir()

    def told(**of: object) -> str:
        note = {"sessionId": made.session, "startedAt": 5000, "kind": "bg", "jobId": "d1486caf", **of}
        (home / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(note))
        return client.unread(store, made.session, 6.0)

    claude = f"CLAUDE_CONFIG_DIR='{home}' claude" if folder != ".claude" else "claude"
    stopped = f"in the background as it was before: `{claude} stop d1486caf`, then `{claude} --resume {made.session}`"
    assert told() == f"Claude Code has this session open {stopped}"
    for terminal in ({"kind": "interactive"}, {"jobId": None}, {"jobId": "$(x)"}, {"jobId": ["a"]}):
        assert "quit it, then" in told(**terminal), terminal
    assert told(startedAt=7000) == "", "it was started after the repair"


def test_a_session_of_another_folder_is_opened_with_it(tmp_path: Path) -> None:
    """Who has two accounts; `claude --resume` alone finds no such conversation (2.1.330)."""
    made = Transcript()
    made.user("q")
    made.write(tmp_path / "my work" / "projects")
    store, client = ClaudeCodeTranscripts(tmp_path / "my work" / "projects"), ClaudeCode(ClaudeCodeSettings())
    command = f"CLAUDE_CONFIG_DIR='{tmp_path}/my work' claude --resume {made.session}"
    assert client.go_on(store, made.session) == f"To go on: `{command}`"


def test_that_a_client_has_to_be_quit_is_told_only_while_it_runs(run: Run) -> None:
    """`history` and `show` tell what was done: by then another Claude Code may have the session open, or none."""
    claude = Path(os.environ["HOME"]) / ".claude"
    made = planted(claude / "projects", "call-id", ILLEGAL)
    (claude / "sessions").mkdir()
    note = claude / "sessions" / f"{os.getpid()}.json"
    note.write_text(json.dumps({"sessionId": made.session, "startedAt": int(time.time() * 1000) - 90_000}))
    says = "Claude Code may have this session open as it was before: quit it"

    def told(*argv: str) -> bool:
        return says in " ".join(run(*argv)[1].split())

    assert told("scan") and told("scan", "--repair", "--yes") and told("scan")
    [entry] = json.loads(run("history", "--json")[1])
    assert entry["outcome"] == "healed" and "may have" not in entry["detail"]
    assert not told("history") and not told("show", entry["id"])
    note.unlink()
    assert not told("scan")


def test_nor_is_one_told_to_be_prompted_as_it_is_that_went_back_behind_its_repair(run: Run) -> None:
    """By `/rewind`, in the client that has it in memory as it was before."""
    claude = Path(os.environ["HOME"]) / ".claude"
    made = Transcript(start=int(time.time() * 1000) - 90_000)
    leaf = turn(made, "no name!")
    made.user("on")
    made.refused(NAME.format(1))
    file = made.write(claude / "projects")
    os.utime(file, (time.time() - 60,) * 2)
    (claude / "sessions").mkdir()
    note = {"sessionId": made.session, "startedAt": int(time.time() * 1000) - 90_000}
    (claude / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(note))
    assert run("scan", "--repair", "--yes")[0] == 0
    went_back(made, leaf)
    file.write_bytes(file.read_bytes() + dump(made.line(-1)))
    code, out, _ = run("scan", "--json")
    scanned = json.loads(out)
    assert (code, scanned["stuck"], [one["kind"] for one in scanned["healed"]]) == (0, [], ["tool_call_invalid"])
    assert "Claude Code may have this session open as it was before: quit it" in " ".join(run("scan")[1].split())


def prompted_again(claude: Path, run: Run, base: str, words: str) -> str:
    """Have a session healed, and refused since in a client that has ended; `base` names a request before its repair."""
    made = planted(claude / "projects", "call-id", ILLEGAL)
    file = next(claude.rglob(f"{made.session}.jsonl"))
    assert run("scan", "--repair", "--yes")[0] == 0
    healed, made.lines = file.read_bytes(), []
    asked(made, "r1")
    early, made.lines = made.raw(), []
    made.ms = int(time.time() * 1000) + 1000
    made.user("continue")
    asked(made, "r2", base)
    made.refused(words)
    file.write_bytes(healed + early + made.raw())
    os.utime(file, (time.time() - 60,) * 2)
    return made.session


@pytest.mark.parametrize(
    ("base", "words", "code", "says"),
    [
        ("r1", ILLEGAL, 0, "go on with `claude --resume {}`"),
        ("", ILLEGAL, 1, "by a client that may not have read it since"),
        ("r1", "prompt is too long: 210000 tokens > 200000 maximum", 1, "send `/compact`"),
        ("r1", "The flux capacitor is not charged", 1, "(refused_unknown)"),
    ],
)
def test_a_healed_session_that_was_refused_again_before_its_client_was_quit_is_not_stuck(
    run: Run, base: str, words: str, code: int, says: str
) -> None:
    """But of what was not repaired: of that it is told as any other."""
    session = prompted_again(Path(os.environ["HOME"]) / ".claude", run, base, words)
    told, out, _ = run("scan")
    assert told == code and says.format(session) in " ".join(out.split())
    assert ("none is stuck" in out, "1 stuck" in out) == (not code, bool(code))
    assert ("need you" in run("status")[1]) == bool(code)


def test_of_one_that_was_refused_again_before_its_client_was_quit_a_client_that_has_it_open_since_is_named(
    run: Run,
) -> None:
    claude = Path(os.environ["HOME"]) / ".claude"
    session = prompted_again(claude, run, "r1", ILLEGAL)
    (claude / "sessions").mkdir()
    note = {"sessionId": session, "startedAt": int(time.time() * 1000) + 3000}
    (claude / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(note))
    code, out, _ = run("scan")
    says = (
        "it was refused again in a Claude Code that had it open as it was before: prompt it in the one that has it now"
    )
    assert code == 0 and says in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "besides", "then"),
    [("Unable to download the file.", True, Next.RECOVER), (ILLEGAL, False, Next.NOTHING)],
)
def test_what_it_was_refused_for_besides_is_looked_at_by_the_daemon_once_the_client_was_quit(
    run: Run, words: str, besides: bool, then: Next
) -> None:
    """One that is killed writes nothing."""
    claude = Path(os.environ["HOME"]) / ".claude"
    session = prompted_again(claude, run, "r1", words)
    (claude / "sessions").mkdir()
    note = claude / "sessions" / f"{os.getpid()}.json"
    note.write_text(json.dumps({"sessionId": session, "startedAt": 5000}))
    code, out, _ = run("scan")
    told = " ".join(out.split())
    assert code == 0 and f"quit it, then `claude --resume {session}`" in told
    assert ("; what else it was refused for is looked at then" in told) is besides
    now = time.time()
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        triage = Triage(Context(ledger, Config(), paths.state_dir(), clock=lambda: now), print)
        [store] = [one for one in find_stores(Config()) if isinstance(one, ClaudeCodeTranscripts)]

        def judged() -> Next:
            """As each sweep looks at one that is open."""
            nonlocal now
            now += 60
            return triage.judge(store, session).next

        assert {judged() for _ in range(3)} == {Next.AGAIN if besides else Next.NOTHING}
        note.unlink()
        assert {judged() for _ in range(3)} == {then}


def test_one_that_was_refused_again_is_read_again_only_while_a_client_has_it_open(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = Path(os.environ["HOME"]) / ".claude"
    session = prompted_again(claude, run, "r1", ILLEGAL)
    (claude / "sessions").mkdir()
    note, looked = claude / "sessions" / f"{os.getpid()}.json", []
    note.write_text(json.dumps({"sessionId": session, "startedAt": 5000}))

    def counted(context: Context, store: Store, session: str, look: SessionStatus) -> Assessment | None:
        looked.append(session)
        return assess(context, store, session, look)

    monkeypatch.setattr(needs_user, "assess", counted)
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        context, known = Context(ledger, Config(), paths.state_dir()), NeedsUser()
        for times in (1, 2, 3, 3):
            assert known.find(context, find_stores(Config())) == []
            assert len(looked) == times
            if times == 2:
                note.unlink()


def test_one_whose_parent_cannot_be_read_hides_none_of_the_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    odd, other = (planted(projects, "call-id", ILLEGAL).session for _ in range(2))
    about = ClaudeCodeTranscripts.about

    def fails(store: ClaudeCodeTranscripts, session: str) -> About:
        if session == odd:
            raise StoreError("can't be read now")
        return about(store, session)

    monkeypatch.setattr(ClaudeCodeTranscripts, "about", fails)
    code, out, err = run("scan")
    assert (code, err) == (1, "") and odd in out and other in out
    store, client = ClaudeCodeTranscripts(projects), ClaudeCode(ClaudeCodeSettings())
    assert client.way_back in next_step(Kind.EMPTY_CONTENT, client, store, odd), "it is told as one of its user's own"
    assert is_of_subagent(store, odd, unknown=True), "and is looked at again"


@pytest.mark.live
def test_the_log_has_no_word_of_the_prompt_that_a_session_is_called_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Desktop, "show", lambda *_: "there is none")
    made = planted(tmp_path / ".claude" / "projects", "call-id", ILLEGAL)
    [path] = (tmp_path / ".claude").rglob("*.jsonl")
    title = ClaudeCodeTranscripts(tmp_path / ".claude" / "projects").about(made.session).title
    assert title and title.encode() in path.read_bytes()
    lines: list[str] = []
    sink = logger.add(lines.append, level="INFO", format="{message}")
    store = ClaudeCodeTranscripts(tmp_path / ".claude" / "projects")
    with running(tmp_path, store, notify=Notify(tui=False, desktop=True)):
        until(lambda: any("Notice, here because" in line for line in lines))
    logger.remove(sink)
    assert made.session in "".join(lines) and title not in "".join(lines)


def test_what_the_client_says_in_the_place_of_an_answer_is_no_models(run: Run, tmp_path: Path) -> None:
    """ "No response requested.", which it writes behind a prompt that was cut off, with the one after it."""
    projects = tmp_path / ".claude" / "projects"
    made = planted(projects, "call-id", ILLEGAL)
    [path] = projects.rglob("*.jsonl")
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])

    def goes_on() -> None:
        before = len(made.lines)
        made.ms = int(time.time() * 1000) - 10_000
        made.user("cut off")
        made.no_response()
        made.user("now")
        if refused:
            made.refused(ILLEGAL)
        with path.open("ab") as file:
            file.write(b"".join(dump(made.line(n)) for n in range(before, len(made.lines))))
        os.utime(path, (time.time() - 5,) * 2)

    refused = False
    goes_on()
    code, _, told = run("undo", healed["id"])
    assert (code, told) == (0, ""), "no model answered on the repaired history"
    refused = True
    goes_on()
    assert f"it was healed ({healed['id']}), and you undid that" in " ".join(run("scan")[1].split())
