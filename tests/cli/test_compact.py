"""`recoveryd compact`, and what `scan`, `show` and `undo` say of sessions that are too long."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recoveryd.cli import compact as module
from recoveryd.clients import Config, SessionStatus, Store
from recoveryd.clients.opencode import client
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.diagnosis import Diagnosis
from recoveryd.core.errors import ConflictError
from recoveryd.core.model import Change, Outcome
from recoveryd.diagnose import Context, Next, Triage, assessment, diagnose
from recoveryd.ledger import Ledger
from recoveryd.settings import paths
from tests.cli.test_cli import read_by_head
from tests.conftest import Run
from tests.e2e.tokens import count
from tests.support.build import MODEL, SessionBuilder
from tests.support.cases import case, notice
from tests.support.database import Base
from tests.support.judge import body
from tests.support.long_sessions import BASE, LONG, bash, many_turns, spent
from tests.support.parts import api_error, compaction, text, tool
from tests.support.plant import write_sqlite
from tests.support.terminal import in_terminal
from tests.support.trees import EMPTY, MISSING, Tree, write_over

TOO_LONG = "prompt is too long: 217000 tokens > 200000 maximum"
TOO_LARGE = "request_too_large: Request exceeds the maximum size"


@pytest.fixture(autouse=True)
def cleared_a_while_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCode clears within seconds of a refusal, and then is waited for: a slow machine gets to its command there."""
    monkeypatch.setattr(client, "_CLEARS_S", 0.0)


def turns(name: str = "many-turns") -> Callable[[SessionBuilder], object]:
    def build(session: SessionBuilder) -> None:
        LONG[name].turns(session, random.Random(7))
        spent(session.planted())

    return build


def _fine(tree: Tree) -> str:
    """A long session that was answered."""

    def build(session: SessionBuilder) -> None:
        many_turns(session, random.Random(7))
        session.assistant("done")
        spent(session.planted())

    return tree.answered(tree.stuck(build, TOO_LONG, model=MODEL), **MODEL)


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize(
    ("name", "words"), [("many-turns", TOO_LONG), ("many-turns", TOO_LARGE), ("screens", TOO_LARGE)]
)
def test_a_session_that_was_made_shorter_is_not_cut_again_for_an_older_refusal(
    run: Run, tree: Tree, name: str, words: str, other: bool
) -> None:
    """Refused twice, made shorter, and the last prompt taken back (`/undo`): the first one's refusal is left, by the
    daemon as well, which told it as healed once more. `other`: it was healed of something else since.
    """
    made = SessionBuilder()  # an hour ago
    made.user("go")
    made.assistant(text(" " if other else "gone"))
    turns(name)(made)
    session = tree.keep(made)
    for _ in range(2):
        tree.refused(session, words)
    assert run("scan", "--repair")[0] == 0
    if other:
        tree.refused(session, EMPTY)
        assert run("scan", "--repair")[0] == 0
    asked = [message.id for message in tree.store.load(session).messages if message.role == "user"][-1 - other]
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert={"messageID": asked})
    code, out, _ = run("scan", "--json")
    scanned = json.loads(out)
    assert (code, scanned["stuck"], [one["session"] for one in scanned["healed"]]) == (0, [], [session])
    before, state = tree.files(), paths.state_dir()
    assert run("scan", "--repair")[0] == 0 and tree.files() == before
    with Ledger(paths.ledger_file(state)) as ledger:
        later = Context(ledger, Config(), state, clock=lambda: time.time() + 5)
        assert Triage(later, print).judge(tree.store, session).next is Next.NOTHING


def test_a_session_that_was_made_shorter_for_a_larger_model_is_still_too_long_for_a_smaller(
    run: Run, tree: Tree
) -> None:
    """Of two refusals the older one was of less than what is sent since."""
    made = SessionBuilder()
    turns()(made)
    session = tree.keep(made)
    for limit in (100_000, 200_000):
        tree.refused(session, f"prompt is too long: 217000 tokens > {limit} maximum")
    assert run("scan", "--repair")[0] == 0
    asked = [message.id for message in tree.store.load(session).messages if message.role == "user"][-1]
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert={"messageID": asked})
    assert [one["session"] for one in json.loads(run("scan", "--json")[1])["stuck"]] == [session]


def test_scan_says_what_would_go_and_repairs_it(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), TOO_LONG, model=MODEL)
    before = tree.files()
    code, out, _ = run("scan", "--repair", "--session", session)
    assert code == 0
    assert "of 200k tokens: the outputs of 2" in out.replace("\n", " ")
    assert "nothing is deleted" in " ".join(out.split())
    assert "no longer seen: bash 2" in " ".join(out.split())
    [entry] = json.loads(run("history", "--json")[1])
    assert (entry["kind"], entry["outcome"]) == ("context_overflow", "healed")
    shown = " ".join(run("show", entry["id"])[1].split())
    assert "cause the length of the conversation (context_overflow)" in shown
    assert '+ "compacted":' in shown.replace("'", '"')
    assert run("undo", entry["id"])[0] == 0
    assert tree.files() == before


def test_a_share_is_of_what_is_there_where_nothing_tells_what_the_model_takes(run: Run, tree: Tree) -> None:
    """As `--help` says: half, and half of that. Of a model that said in a refusal what it takes, it is half of that."""
    never = SessionBuilder(int(time.time() * 1000) - 180_000, model=MODEL)  # ended long ago: nothing is cleared now
    many_turns(never, random.Random(7))
    never.assistant("done")
    spent(never.planted())
    tree.keep(never)
    names = never.session["id"], _fine(tree), tree.stuck(turns(), TOO_LONG, model=MODEL)
    for name in names:
        assert run("compact", name, "--target", "0.5", "--yes")[0] == 0
    again = [" ".join(run("compact", name, "--target", "0.5", "--dry-run")[1].split()) for name in names]
    assert "tokens: would leave out" in again[0], "it was short enough for half of 200k"
    assert all("of 200k tokens, and 100k are aimed at" in words for words in again[1:])
    assert "or of what is there where that is not known" in " ".join(run("compact", "--help")[1].split())


SUM = "input length and `max_tokens` exceed context limit: 217000 + 64000 > 250000, decrease input length"
REFUSALS = {"the sum": (SUM, 250_000 - 64_000 - 25_000), "no number": ("Prompt exceeds max length", 0.61 * 217_000)}


@pytest.mark.parametrize("how", REFUSALS)
def test_other_ways_to_say_that_it_is_too_long(run: Run, tree: Tree, how: str) -> None:
    words, most = REFUSALS[how]
    session = tree.stuck(turns(), words, model=MODEL)
    before = tree.files()
    assert run("scan", "--repair", "--yes", "--session", session)[0] == 0
    wire = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named("old"))
    assert 0.85 * most < BASE + count(body(wire.build(tree.store.load(session)), thinking=True)) <= most
    [entry] = json.loads(run("history", "--json")[1])
    assert run("undo", entry["id"])[0] == 0
    assert tree.files() == before


TOLD = {
    "many-turns": "217k of 200k tokens: the outputs of 21 old tool calls are no longer sent; nothing is deleted, "
    "and about 136k are sent now; no longer seen: bash 21",
    "talk": "put an extract in the place of the oldest messages; nothing is deleted, and about 135k are sent now; "
    "no longer seen: 38 messages",
    "inputs": "cut the long inputs of 17 old tool calls; nothing is deleted, and about 139k are sent now; "
    "cut: write 17",
}


@pytest.mark.parametrize("name", TOLD)
def test_notice_and_show_tell_what_is_no_longer_seen(run: Run, tree: Tree, name: str) -> None:
    session = tree.stuck(turns(name), TOO_LONG, model=MODEL)
    would = json.loads(run("explain", "--session", session, "--json")[1])["action"]
    assert "would be sent then" in would and "sent now" not in would
    assert run("scan", "--repair", "--yes", "--session", session)[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    event = replace(case(tree.store, tree.failure(session)).event, outcome=Outcome.HEALED, detail=entry["detail"])
    shown = notice(replace(event, places=("turn 1, tool bash",))).body
    assert shown.startswith("217k of 200k tokens: "), "no place before it: all of it was too long"
    assert TOLD[name] in shown
    assert TOLD[name] in " ".join(run("show", entry["id"])[1].split())


def test_what_was_asked_for_the_answer_is_told_beside_the_length(run: Run, tree: Tree) -> None:
    openrouter = (
        "This endpoint's maximum context length is 230000 tokens. However, you requested about 249000 tokens "
        "(217000 of text input, 32000 in the output). Please reduce the length of either one."
    )
    session = tree.stuck(turns("many-turns"), openrouter, model=MODEL)
    assert run("scan", "--repair", "--yes", "--session", session)[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    told = " ".join(run("show", entry["id"])[1].split())
    assert "217k and 32k for the answer of 230k tokens: the outputs of" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Too many tokens, please wait before trying again.", "rate limit"),  # Bedrock
        ("max_tokens (64000) exceeds the limit of 32000", "setting"),
        ("Daily token limit exceeded", "too long, and its length is not"),
    ],
)
def test_what_the_client_alone_calls_too_long_is_not_cut(run: Run, tree: Tree, words: str, told: str) -> None:
    """1.18 goes by single words ("too many tokens", "exceeds the limit of 32000", "token limit exceeded")."""

    def build(session: SessionBuilder) -> None:
        many_turns(session, random.Random(7))
        del session.messages[-1]
        spent(session.planted())
        session.failed("go on", {"name": "ContextOverflowError", "data": {"message": words, "responseBody": words}})

    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=MODEL)
    build(made)
    tree.keep(made)
    before = tree.files()
    run("scan", "--repair", "--yes", "--session", made.session["id"])
    said = " ".join(run("explain", "--session", made.session["id"])[1].split())
    assert tree.files() == before
    assert told in said and words in said


@pytest.mark.parametrize(
    ("sort", "name"), [("files", "later-paste"), ("database", "later-paste"), ("database", "huge-output")]
)
def test_what_was_cut_is_in_a_file_that_goes_when_it_is_undone(run: Run, tree: Tree, sort: str, name: str) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 60_000, title="long", version="1.18.33")
    turns(name)(session)
    session.failed("go on", api_error(TOO_LONG))
    if sort == "files":
        tree.keep(session)
    else:
        database = tree.root.parent / "opencode.db"
        Base(database, clock=time.time)
        write_sqlite(session.planted(), database)
    folder = tree.root.parent / "tool-output"

    def healed() -> str:
        assert run("scan", "--repair", "--yes", "--session", session.session["id"])[0] == 0
        return str(json.loads(run("history", "--json")[1])[0]["id"])

    first = healed()
    [file] = folder.iterdir()
    assert len(file.read_text()) == 860_000
    assert run("undo", first)[0] == 0
    assert list(folder.iterdir()) == []
    second = healed()
    [file] = folder.iterdir()
    file.write_text("something of the user's")
    assert run("undo", second)[0] == 0
    assert [path.read_text() for path in folder.iterdir()] == ["something of the user's"]


@pytest.mark.parametrize("conflicts", [1, 3])
def test_what_could_not_be_written_leaves_no_file_with_what_was_to_be_cut(
    run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    session = tree.stuck(turns("later-paste"), TOO_LONG, model=MODEL, version="1.18.33")
    apply, left, folder = type(tree.store).apply, [ConflictError("a part changed")] * conflicts, tree.root.parent

    def fails(store: OpencodeFiles, changes: Sequence[Change]) -> None:
        assert [path.stat().st_size for path in (folder / "tool-output").iterdir()] == [860_000]
        if left:
            raise left.pop()
        apply(store, changes)

    monkeypatch.setattr(type(tree.store), "apply", fails)
    run("scan", "--repair", "--yes", "--session", session)
    assert len(list((folder / "tool-output").iterdir())) == (conflicts == 1)


def test_by_hand_it_shows_turn_by_turn_what_would_go(run: Run, tree: Tree) -> None:
    session = _fine(tree)
    before = tree.files()
    code, out, _ = run("compact", session, "--dry-run", "--target", "0.3")
    assert code == 0
    assert "Would leave out the outputs of" in out or "would leave out the outputs of" in out
    assert "turn 1, tool bash: leave out the outputs of 3 old tool calls" in " ".join(out.split())
    assert "Dry run: nothing was written." in out
    assert tree.files() == before


@pytest.mark.live
def test_it_is_done_though_nobody_reads_all_of_it(run: Run, tree: Tree) -> None:
    """`recoveryd compact SESSION --yes | head -1` did nothing, and ended with 0."""
    assert read_by_head("compact", _fine(tree), "--target", "0.5", "--yes") == (0, b"")
    assert [entry["outcome"] for entry in json.loads(run("history", "--json")[1])] == ["healed"]


def test_by_hand_it_is_done_and_taken_back(run: Run, tree: Tree) -> None:
    session = _fine(tree)
    before = tree.files()
    code, out, _ = run("compact", session, "--target", "0.5", "--json")
    said = json.loads(out)
    assert (code, said["compacted"], said["session"]) == (0, True, session)
    assert "nothing is deleted" in said["action"]
    assert tree.files() != before
    again = json.loads(run("compact", session, "--target", "0.9", "--json")[1])
    assert "compacted" in again, again
    assert (again["compacted"], again["recovery"]) == (False, None)
    code, out, _ = run("undo", said["recovery"])
    assert code == 0
    assert "Its next prompt is as long as it was" in " ".join(out.split()), "nobody had refused it"
    assert tree.files() == before


@pytest.mark.parametrize("since", ["turns taken back", "prompted"])
def test_an_undo_does_not_tell_the_length_of_a_session_that_changed(run: Run, tree: Tree, since: str) -> None:
    session = _fine(tree)
    recovery = json.loads(run("compact", session, "--target", "0.5", "--json")[1])["recovery"]
    if since == "prompted":
        tree.prompted(session)
    else:
        asked = [message.id for message in tree.store.load(session).messages if message.role == "user"]
        write_over(next(tree.root.glob(f"session/*/{session}.json")), revert={"messageID": asked[-1]})
    code, out, err = run("undo", recovery, "--force")
    assert code == 0, err
    assert "Its next prompt may be too long, and the session is not repaired" in " ".join(out.split())


def test_no_refusal_is_told_of_what_was_made_shorter_unrefused(run: Run, tree: Tree) -> None:
    assert run("compact", _fine(tree), "--target", "0.5", "--yes")[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    shown = " ".join(run("show", entry["id"])[1].split())
    assert "than the model can take" not in shown
    assert "cause the length of the conversation (context_overflow)" in shown
    told = " ".join(run("history", "--stats")[1].split())
    assert "context_overflow: also what `recoveryd compact` made shorter, refused or not." in told


def test_a_stuck_session_by_hand(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    said = json.loads(run("compact", session, "--target", "0.4", "--json")[1])
    assert said["compacted"]
    assert "about 7" in said["action"] or "about 8" in said["action"]
    assert json.loads(run("scan", "--json")[1])["stuck"] == []


def test_a_short_session_by_hand_is_told_no_more_than_that(run: Run, tree: Tree) -> None:
    """What helps a session that is refused is none of its business."""

    def build(session: SessionBuilder) -> None:
        session.user("hello")
        session.assistant("hello")
        spent(session.planted())

    session = tree.answered(tree.stuck(build, TOO_LONG, model=MODEL), **MODEL)
    code, out, _ = run("compact", session)
    assert (code, " ".join(out.split())) == (0, "It has about 11k of 200k tokens, and 140k are aimed at.")


def test_who_is_asked_and_says_no(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _fine(tree)
    before = tree.files()
    monkeypatch.setattr(module, "is_asked", lambda _: True)
    monkeypatch.setattr(module, "agreed", lambda _: False)
    code, out, _ = run("compact", session)
    assert code == 1
    assert "Nothing was changed." in out
    assert tree.files() == before


def test_a_turn_that_runs_is_left_alone(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    tree.running(session)
    before = tree.files()
    code, _, err = run("compact", session, "--yes")
    assert code == 4
    assert "running" in err
    assert tree.files() == before


def test_a_staged_revert_is_to_be_decided_first(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    first = next(m.id for m in tree.store.load(session).messages if m.role == "user")
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert={"messageID": first})
    before = tree.files()
    code, out, _ = run("scan", "--repair", "--yes", "--session", session)
    assert (code, "taken back since" in " ".join(out.split())) == (0, True)
    code, _, err = run("compact", session, "--yes")
    assert (code, "A revert is staged in it" in " ".join(err.split())) == (4, True)
    assert tree.files() == before


def test_a_person_is_asked_also_where_the_output_goes_into_a_file(tree: Tree) -> None:
    session = _fine(tree)
    before = tree.files()
    shown = in_terminal("compact", session, "--target", "0.5", typed="n\n")
    assert shown.text.index("would leave out") < shown.text.index("Make it shorter? [y/N]")
    assert (shown.code, shown.out, tree.files()) == (1, "Nothing was changed.\n", before)


def test_a_compaction_that_runs_right_now_is_waited_for(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    tree.prompted(session, compaction(auto=True))
    tree.made(session).assistant("so f", summary=True, completed=False)
    tree.keep(tree.made(session))
    before = tree.files()
    run("scan", "--repair", "--yes", "--session", session)
    assert run("compact", session, "--yes")[0] == 4
    assert tree.files() == before


def test_a_subagent_is_healed_alone_and_told_under_the_title_of_its_root(run: Run, tree: Tree) -> None:
    outer, inner = tree.stuck(title="The root"), tree.stuck(turns(), TOO_LONG, title="A subagent")
    tree.began(outer, inner)
    before = tree.files()
    assert run("scan", "--repair", "--yes", "--session", inner)[0] == 0
    [entry] = json.loads(run("history", "--json")[1])
    assert (entry["session"], entry["title"], entry["outcome"]) == (inner, "The root", "healed")
    messages = {message.id for message in tree.store.load(inner).messages}
    changed = {path for path, content in tree.files().items() if before.get(path) != content}
    assert changed
    assert all(path.split("/")[-2] in messages | {inner} for path in changed)
    assert run("undo", entry["id"])[0] == 0
    assert tree.files() == before


def test_usage_of_another_model_is_not_believed_over_the_refusal(run: Run, tree: Tree) -> None:
    """Its tokens are not those of the model that refuses."""

    def build(session: SessionBuilder) -> None:
        turns()(session)
        for message in session.messages:
            if message["role"] == "assistant":
                message["modelID"] = "gpt-5"
                message["tokens"]["cache"]["read"] *= 2

    session = tree.stuck(build, TOO_LONG, model=MODEL)
    assert run("scan", "--repair", "--yes", "--session", session)[0] == 0
    wire = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named("old"))
    sent = count(body(wire.build(tree.store.load(session)), thinking=True))
    assert 0.6 * 0.7 * 200_000 < sent < 0.75 * 200_000


def test_the_tools_alone_near_the_limit(run: Run, tree: Tree) -> None:
    def build(session: SessionBuilder) -> None:
        session.user("hello")
        session.assistant("hello")
        spent(session.planted(), base=195_000)

    session = tree.stuck(build, "prompt is too long: 200300 tokens > 200000 maximum")
    said = " ".join(run("scan", "--session", session)[1].split())
    assert "not repaired: system prompt and tools alone take about" in said
    assert run("compact", session)[0] == 4


@pytest.mark.parametrize("target", ["0", "1", "many", "-1"])
def test_a_target_that_is_none(run: Run, tree: Tree, target: str) -> None:
    code, _, err = run("compact", tree.stuck(turns(), TOO_LONG), "--target", target)
    assert code == 2 and "share" in err and "_share" not in err


def test_turned_off_it_is_told_and_by_hand_it_is_done(run: Run, tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    config = tmp_path / "off.toml"
    config.write_text("[compact]\nenabled = false\n")
    stuck: list[dict[str, Any]] = json.loads(run("--config", str(config), "scan", "--json")[1])["stuck"]
    assert "`[compact] enabled` is off" in stuck[0]["action"]
    assert json.loads(run("--config", str(config), "compact", session, "--json")[1])["compacted"]


def test_what_is_stuck_on_something_else_is_repaired_first(run: Run, tree: Tree) -> None:
    """Else it would count as repaired, and nobody would repair it any more."""

    def build(session: SessionBuilder) -> None:
        many_turns(session, random.Random(7))
        session.user("go")
        session.assistant(tool(), text("behind"))
        spent(session.planted())

    session = tree.stuck(build, MISSING)
    before = tree.files()
    code, out, _ = run("compact", session, "--target", "0.3", "--json")
    said = json.loads(out)
    assert (code, said["error"]["code"]) == (4, "refused")
    assert "tool_result_missing" in said["error"]["message"]
    assert tree.files() == before
    assert run("scan")[0] == 1
    assert run("scan", "--repair", "--session", session)[0] == 0
    made = json.loads(run("compact", session, "--target", "0.3", "--json")[1])
    assert made["compacted"], "what was repaired and not prompted yet can be made shorter"
    assert "tool_result_missing" in run("scan")[1], "it is still told what healed it"


def _ignored(run: Run, tree: Tree) -> str:
    session = tree.stuck()
    assert run("ignore", session)[0] == 0
    return session


def _not_json(_: Run, tree: Tree) -> str:
    """A session in which a message is no JSON: nothing can be planned for it."""
    session = tree.answered(tree.stuck(), **MODEL)
    max((tree.root / "message" / session).iterdir()).write_bytes(b"{")
    return session


def _dry_run(_: Run, tree: Tree) -> str:
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text("dry_run = true\n")
    return tree.stuck()


NO_REPAIR: dict[str, Callable[[Run, Tree], str]] = {
    "ignored": _ignored,
    "a dry run by the configuration": _dry_run,
    "of a provider without rules": lambda _, tree: tree.stuck(model={"providerID": "own", "modelID": "m"}),
    "not explained": lambda _, tree: tree.stuck(turns("talk"), MISSING),
    "unreadable": _not_json,
}


@pytest.mark.parametrize("how", NO_REPAIR)
def test_where_a_repair_does_nothing_none_is_advised(run: Run, tree: Tree, how: str) -> None:
    """The cause, and what is said of it, are those of `scan` and `explain`."""
    session = NO_REPAIR[how](run, tree)
    listed = json.loads(run("scan", "--session", session, "--json")[1])
    [found] = listed["stuck"] or listed["ignored"]
    explained = json.loads(run("explain", "--session", session, "--json")[1])
    code, out, _ = run("compact", session, "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (4, "refused")
    assert f"({found['reason']})" in error["message"]
    assert explained["reason"] == found["reason"]
    assert error["hint"].lower() == f"{explained['action'].rstrip('.')}.".lower()
    assert "scan --repair" not in error["hint"]


def test_a_refusal_that_nobody_knows_stays_one_when_the_session_is_made_shorter(run: Run, tree: Tree) -> None:
    session = tree.stuck(turns(), "the moon is in the wrong house")
    assert run("compact", session, "--target", "0.3", "--json")[0] == 0
    [found] = json.loads(run("scan", "--json")[1])["stuck"]
    assert (found["session"], found["reason"]) == (session, "refused_unknown")


def _unanswered(tree: Tree) -> str:
    def build(session: SessionBuilder) -> None:
        turns()(session)
        session.assistant("done")
        session.user("are you there?")

    return tree.ended(build)


NOT_STUCK: dict[str, Callable[[Tree], str]] = {
    "refused_elsewhere": lambda tree: tree.stuck(turns(), "rate limit exceeded", model=MODEL),
    "unanswered_prompt": _unanswered,
}


@pytest.mark.parametrize("reason", NOT_STUCK)
def test_by_hand_it_is_done_where_nothing_stored_is_refused(run: Run, tree: Tree, reason: str) -> None:
    """A rate limit that counts tokens, say: the session need not be stuck."""
    session = NOT_STUCK[reason](tree)
    before = tree.files()
    assert json.loads(run("explain", "--session", session, "--json")[1])["reason"] == reason
    code, out, _ = run("compact", session, "--target", "0.3", "--json")
    said = json.loads(out)
    assert (code, said["compacted"]) == (0, True), said["action"]
    assert run("undo", said["recovery"])[0] == 0
    assert tree.files() == before


def test_what_a_failed_compaction_hid_is_found_and_given_back_where_no_limit_is_known(run: Run, tree: Tree) -> None:
    database = tree.root.parent / "opencode.db"
    Base(database, clock=time.time)
    s = SessionBuilder(int(time.time() * 1000) - 60_000, version="1.18.33")
    s.user("the first thing")
    s.assistant("said early")
    tail = s.user("the second thing")
    s.assistant("said late")
    marker = s.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    s.assistant(error=api_error("Your credit balance is too low"), finish=None, summary=True, parentID=marker["id"])
    s.user("go on")
    s.assistant("went on")
    write_sqlite(s.planted(), database)
    code, out, _ = run("scan", "--repair", "--session", s.session["id"])
    assert code == 0
    assert "took away the mark of 1 compaction that failed" in " ".join(out.split())


SUMMARY_REFUSED = {
    "nothing stored explains it": 'messages: first message must use the "user" role',
    "what is stored explains it": MISSING,
}


@pytest.mark.parametrize("why", SUMMARY_REFUSED)
def test_where_a_summary_is_refused_for_what_is_not_stored_the_session_is_made_shorter_by_hand(
    run: Run, tree: Tree, why: str
) -> None:
    """Kilo cuts a long conversation for its summary, and a piece of it may begin with an answer."""
    s = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=MODEL)
    many_turns(s, random.Random(7))
    s.assistant("done")
    spent(s.planted())
    if why == "what is stored explains it":
        s.assistant(tool(), text("behind"))
    s.user("go on")
    marker = s.user(compaction(auto=True))
    s.assistant(error=api_error(SUMMARY_REFUSED[why], 400), finish=None, summary=True, parentID=marker["id"])
    session = tree.keep(s)
    before = tree.files()
    said = " ".join(run("explain", "--session", session)[1].split())
    code, _, error = run("compact", session)
    if why == "what is stored explains it":
        assert code == 4 and "stuck on something else" in error and tree.files() == before
        return
    assert "what was refused is the summary that OpenCode asks for: prompt it again" in said
    assert f"go on without one (`recoveryd compact {session}`)" in said and "/fork" not in said
    assert code == 0 and tree.files() != before, error
    assert json.loads(run("scan", "--json")[1])["stuck"] == []


@pytest.mark.parametrize("tail", [True, False], ids=["with a tail", "without"])
def test_a_compaction_of_1_18_in_which_the_model_called_a_tool_is_healed_and_counts_as_that(
    run: Run, tree: Tree, tail: bool
) -> None:
    """Without a tail nothing is hidden, and 1.18 asks for that summary again with each prompt."""
    database = tree.root.parent / "opencode.db"
    Base(database, clock=time.time)
    s = SessionBuilder(int(time.time() * 1000) - 200_000, version="1.18.34", model=MODEL, title="My session")
    if not tail:
        many_turns(s, random.Random(7))
        s.assistant("done")
        spent(s.planted())
    s.user("the first thing")
    s.assistant("said early")
    newest = s.user("the second thing")
    s.assistant("said late")
    marker = s.user({**compaction(auto=False), **({"tail_start_id": newest["id"]} if tail else {})})
    error = {"name": "UnknownError", "data": {"message": "Tool call not allowed while generating summary: _noop"}}
    s.assistant(error=error, finish=None, summary=True, parentID=marker["id"])
    write_sqlite(s.planted(), database)
    session = s.session["id"]
    found = json.loads(run("scan", "--json")[1])["stuck"]
    if tail:
        assert [one["reason"] for one in found] == ["context_overflow"]
        assert run("scan", "--repair", "--yes")[0] == 0
    else:
        assert "what failed is the summary that OpenCode asks for: prompt it again" in found[0]["action"]
        assert f"go on without one (`recoveryd compact {session}`)" in found[0]["action"]
        assert "/fork" not in found[0]["action"]
        assert run("compact", session, "--yes")[0] == 0
    code, out, _ = run("scan", "--json")
    assert (code, json.loads(out)["stuck"]) == (0, [])
    assert [one["session"] for one in json.loads(out)["healed"]] == [session]


def test_a_summary_for_which_there_was_no_credit_is_healed_by_nothing_stored(run: Run, tree: Tree) -> None:
    s = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=MODEL)
    many_turns(s, random.Random(7))
    s.assistant("done")
    spent(s.planted())
    marker = s.user(compaction(auto=True))
    s.assistant(error=api_error("Your credit balance is too low"), finish=None, summary=True, parentID=marker["id"])
    session = tree.keep(s)
    told = [json.loads(run("explain", "--session", session, "--json")[1])["reason"]]
    assert run("compact", session)[0] == 0
    told += [json.loads(run("explain", "--session", session, "--json")[1])["reason"]]
    assert told == ["refused_elsewhere", "refused_elsewhere"]


def test_no_more_is_given_back_than_the_model_is_known_to_take(run: Run, tree: Tree) -> None:
    """A session that goes on with the tail alone works: it may not be made too long."""
    database = tree.root.parent / "opencode.db"
    base = Base(database, clock=time.time)
    s = SessionBuilder(int(time.time() * 1000) - 200_000, version="1.18.33")
    rng = random.Random(3)
    s.user("the first thing")
    for _ in range(60):
        s.assistant(bash(rng, 14_000))
    s.assistant("said early")
    tail = s.user("the second thing")
    s.assistant("said late")
    spent(s.planted())
    marker = s.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    s.assistant(error=api_error("Your credit balance is too low"), finish=None, summary=True, parentID=marker["id"])
    s.user("go on")
    tokens = {"input": 10, "output": 20, "reasoning": 0, "cache": {"read": 12_000, "write": 0}}
    s.assistant("went on")["tokens"] = tokens
    write_sqlite(s.planted(), database)
    accepted = max(message["tokens"]["cache"]["read"] for message in s.messages if message.get("finish"))
    assert run("scan", "--repair", "--session", s.session["id"])[0] == 0
    wire = AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named("new"))
    sent = count(body(wire.build(base.store.load(s.session["id"])), thinking=True))
    assert 20_000 < sent < 0.75 * accepted, "as much as is aimed at of what it took"


def test_a_fault_at_one_session_does_not_end_the_scan(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    odd, _ = tree.stuck(), tree.stuck()

    def fails(context: Context, store: Store, session: str, look: SessionStatus | None = None) -> Diagnosis | None:
        if session == odd:
            raise OverflowError("too odd")
        return diagnose(context, store, session, look)

    monkeypatch.setattr(assessment, "diagnose", fails)
    code, out, _ = run("scan", "--json")
    reasons = [found["reason"] for found in json.loads(out)["stuck"]]
    assert (code, sorted(reasons)) == (1, ["tool_result_missing", "unreadable"])


@pytest.mark.parametrize("after", ["a repair", "itself"])
def test_until_the_next_answer_it_goes_by_what_was_told_then(run: Run, tree: Tree, after: str) -> None:
    session = tree.stuck(turns(), TOO_LONG)
    code, out, _ = run("scan", "--repair", "--yes", "--json", "--session", session)
    [told] = json.loads(out)["stuck"]
    assert code == 0
    if after == "itself":
        code, out, _ = run("compact", session, "--yes", "--json", "--target", "0.5")
        told = json.loads(out)
    left = re.search(r"about (\S+) are sent now", told["action"])
    assert code == 0 and left is not None
    _, out, _ = run("compact", session, "--dry-run", "--json", "--target", "0.2")
    assert json.loads(out)["action"].startswith(f"{left[1]} of ")
    tree.answered(session)
    _, out, _ = run("compact", session, "--dry-run", "--json", "--target", "0.2")
    assert not json.loads(out)["action"].startswith(f"{left[1]} of ")


def test_a_refused_summary_of_a_short_conversation_names_another_way(run: Run, tree: Tree) -> None:
    """`compact` would find nothing that it need not send."""
    s = SessionBuilder(int(time.time() * 1000) - 60_000, title="My session", model=MODEL)
    s.user("go")
    s.assistant("done")
    marker = s.user(compaction(auto=False))
    refused = api_error(SUMMARY_REFUSED["nothing stored explains it"], 400)
    s.assistant(error=refused, finish=None, summary=True, parentID=marker["id"])
    session = tree.keep(s)
    said = " ".join(run("explain", "--session", session)[1].split())
    assert "what was refused is the summary that OpenCode asks for: prompt it again" in said
    assert "recoveryd compact" not in said and "/fork" in said
    assert run("compact", session, "--dry-run")[1].count("would be sent then") == 0


def test_where_no_conversation_can_be_made_shorter_a_refused_summary_names_another_way(run: Run, tree: Tree) -> None:
    """By the Responses API."""
    s = SessionBuilder(
        int(time.time() * 1000) - 60_000, model={"providerID": "openai", "modelID": "gpt-6.1-sol"}, title="My session"
    )
    s.user("go")
    s.assistant("done")
    marker = s.user(compaction(auto=True))
    refused = api_error("No tool output found for function call call_1.", 400)
    refused["data"]["metadata"]["url"] = "https://api.openai.com/v1/responses"
    s.assistant(error=refused, finish=None, summary=True, parentID=marker["id"])
    said = " ".join(run("explain", "--session", tree.keep(s))[1].split())
    assert "what was refused is the summary that OpenCode asks for: prompt it again" in said
    assert "recoveryd compact" not in said and "/fork" in said
