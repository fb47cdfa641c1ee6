"""Sessions without an error: what `scan` says of them, what `run` does, and what both leave alone."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recoveryd import recover
from recoveryd.cli import main
from recoveryd.clients import Config
from recoveryd.clients.client import Prompt
from recoveryd.clients.opencode import client_faults
from recoveryd.clients.opencode.running_turns import RunningTurns
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.model import Failure, Kind, Outcome
from recoveryd.diagnose import Context, diagnose
from recoveryd.diagnose.triage import Next, Triage
from recoveryd.heal.resume_policy import Leave, Situation, decide_resume
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import paths
from tests.e2e.media import data_url, png
from tests.support.build import MODEL, Planted, SessionBuilder, compaction, file, raw, reasoning, text, tool
from tests.support.cases import case
from tests.support.database import NEW, OLD, Base
from tests.support.old_sessions import STARTED_AGAIN, plain
from tests.support.parts import api_error
from tests.support.plant import write_sqlite
from tests.support.trees import EMPTY, Bench, Tree, write_over

MINUTE = 60_000
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def tree(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("RECOVERYD_OPENCODE_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("recoveryd.clients.opencode.running_turns.first_process_using", lambda _: None)
    monkeypatch.setattr(RunningTurns, "under_way", lambda *_: None)
    return tree


@pytest.fixture
def scan(tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*argv: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        capsys.readouterr()
        code = main(["scan", "--json", *argv])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def triage(tmp_path: Path) -> Iterator[Callable[..., Triage]]:
    opened: list[Ledger] = []

    def make(**config: Any) -> Triage:
        opened.append(Ledger(tmp_path / f"ledger{len(opened)}.db"))
        context = Context(opened[-1], Config(**config), tmp_path, clock=lambda: time.time() + 5)
        return Triage(context, lambda *_: None)

    yield make
    for ledger in opened:
        ledger.close()


def write(tree: Tree, session: SessionBuilder) -> str:
    tree._builders[session.session["id"]] = session
    return tree._write(session)


def old(tree: Tree, prompts: int, *, answer: str = "answer", **fields: Any) -> str:
    """A session from before, and so many prompts since."""
    session = SessionBuilder(STARTED_AGAIN - 86_400_000, title="an old one")
    session.user("question")
    session.assistant(answer, **fields)
    session._ms = int(time.time() * 1000) - MINUTE
    for number in range(prompts):
        session.user(f"prompt {number}")
    return write(tree, session)


def recent(tree: Tree, make: Callable[[SessionBuilder], object]) -> str:
    session = SessionBuilder(int(time.time() * 1000) - 10 * MINUTE, title="a recent one")
    make(session)
    return write(tree, session)


def one(found: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    code, data = found
    assert code == 1, data
    [finding] = data["stuck"]
    return dict(finding)


def unanswered(found: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    """The one prompt without an answer: nobody may have asked for one (`noReply`), so it is told and not stuck."""
    code, data = found
    assert (code, data["stuck"]) == (0, []), data
    [finding] = data["elsewhere"]
    assert finding["reason"] == "unanswered_prompt"
    return dict(finding)


def test_prompts_that_are_ignored_are_told_with_ids_and_times_and_healed(tree: Tree, scan: Run) -> None:
    session = old(tree, 2)
    before = tree.files()
    found = one(scan())
    prompts = [m.id for m in tree.store.load(session).messages if m.created > STARTED_AGAIN]
    assert (found["reason"], found["kind"], found["session"]) == ("wrapped_ids", "wrapped_ids", session)
    assert found["evidence"]["unanswered"] == prompts and found["evidence"]["ignored"] is True
    assert found["evidence"]["ids_started_again"] == "2026-08-14T11:19:55.136Z"
    assert tree.files() == before
    code, data = scan("--repair", "--kind", "wrapped_ids")
    assert code == 0 and data["stuck"][0]["healed"]
    assert scan()[1]["healed"][0]["healed"]
    assert main(["undo", newest()]) == 0
    assert tree.files() == before
    assert one(scan())["reason"] == "wrapped_ids"


def newest() -> str:
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        return ledger.history(1)[0].id


def test_one_that_was_not_prompted_is_listed_and_healed_only_when_asked(
    tree: Tree, scan: Run, triage: Callable[..., Triage]
) -> None:
    session = old(tree, 0)
    assert triage().judge(tree.store, session).next is Next.NOTHING
    found = one(scan())
    assert (found["reason"], found["evidence"]["unanswered"]) == ("wrapped_ids", [])
    code, data = scan("--repair", "--kind", "empty_content")
    assert (code, data["stuck"]) == (1, []), "it is stuck on another kind"
    before = tree.files()
    code, data = scan("--repair")
    assert (code, data["stuck"][0]["healed"], tree.files()) == (1, False, before), "nobody asked for this one"
    assert scan("--repair", "--kind", "wrapped_ids")[0] == 0
    assert scan() == (0, {**scan()[1], "stuck": []})


def test_the_daemon_heals_one_with_a_prompt_that_is_ignored(tree: Tree, triage: Callable[..., Triage]) -> None:
    session = old(tree, 1)
    verdict = triage().judge(tree.store, session)
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.WRAPPED_IDS)


@pytest.mark.parametrize("finish", ["tool-calls", "unknown", None])
def test_the_daemon_leaves_one_alone_whose_client_would_go_on(
    tree: Tree, triage: Callable[..., Triage], finish: str | None
) -> None:
    """There a model may just be asked; what it is asked is out of order, so `scan` tells."""
    session = old(tree, 1, finish=finish)
    assert triage().judge(tree.store, session).next is Next.NOTHING


def test_a_database_with_events_is_of_a_client_that_goes_by_time(tmp_path: Path, tree: Tree, scan: Run) -> None:
    for version, folder in ((NEW, "new"), (OLD, "old")):
        base = Base(tmp_path / folder / "opencode.db", version)
        write_sqlite(plain(), base.path)
        del base
    assert tree.root.exists()
    from recoveryd.clients.opencode.versions import goes_by_ids

    client = OpencodeServer(OpencodeSettings(server_url="http://127.0.0.1:9"))
    assert not goes_by_ids(OpencodeSqlite(tmp_path / "new" / "opencode.db"), client, "ses_1")
    assert goes_by_ids(OpencodeSqlite(tmp_path / "old" / "opencode.db"), client, "ses_1")
    assert goes_by_ids(tree.store, client, "ses_1")
    assert scan()[0] == 0


@pytest.mark.parametrize(("version", "by_ids"), [((1, 2, 1), True), ((1, 18, 14), True), ((1, 18, 15), False)])
def test_the_running_client_tells_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], by_ids: bool
) -> None:
    from recoveryd.clients.opencode.versions import goes_by_ids

    base = Base(tmp_path / "opencode.db", OLD)
    monkeypatch.setattr(OpencodeServer, "versions", lambda *_: (version,))
    assert goes_by_ids(base.store, OpencodeServer(OpencodeSettings()), "ses_1") is by_ids


def cut_off(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(text("half a word"), tool(status="running", time={"start": 1}), completed=False)


def test_a_turn_that_was_cut_off_is_shown_and_ended_only_where_it_is_named(
    tree: Tree, scan: Run, triage: Callable[..., Triage], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = recent(tree, cut_off)
    before = tree.files()
    code, told = scan("--repair")
    [found] = told["elsewhere"]
    assert (code, told["stuck"], found["reason"]) == (0, [], "turn_left_open"), "its client goes on from there"
    assert found["evidence"]["open_tools"] == [tree.part(session, "tool").stem]
    assert "Prompt it" in found["action"] and tree.files() == before
    assert triage().judge(tree.store, session).next is Next.AGAIN
    verdict = triage(kinds=("interrupted_turn",)).judge(tree.store, session)
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.INTERRUPTED_TURN)
    monkeypatch.setenv("RECOVERYD_KINDS", "interrupted_turn")
    assert scan("--repair")[0] == 0
    [_, message] = tree.store.load(session).messages
    state = (message.parts[2].data or {})["state"]
    assert (state["status"], state["error"]) == ("error", "Tool execution aborted")
    assert state["metadata"] == {"interrupted": True} and state["time"]["start"] == 1
    assert message.completed and (message.error or {})["name"] == "MessageAbortedError"
    assert not tree.store.look(session).running
    assert main(["undo", newest()]) == 0 and tree.files() == before


def test_a_turn_that_may_be_under_way_is_neither_shown_nor_ended(
    tree: Tree, scan: Run, triage: Callable[..., Triage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = recent(tree, cut_off)
    monkeypatch.setattr(RunningTurns, "under_way", lambda *_: "a running OpenCode has its store")
    assert scan("--repair") == (0, {**scan()[1], "stuck": []})
    assert triage(kinds=("interrupted_turn",)).judge(tree.store, session).next is Next.AGAIN
    bench = Bench(tmp_path, kinds=("interrupted_turn",))
    from recoveryd.clients.opencode.client_faults import cut_off as found

    silence = found(tree.store.load(session), tree.store.client)
    assert silence is not None
    before = tree.files()
    event = bench.recovery.attempt(case(tree.store, silence.failure, Kind.INTERRUPTED_TURN)).event
    assert (event.outcome, tree.files()) == ("pending", before) and bench.ledger.history(9) == []
    bench.ledger.close()


def test_what_is_off_is_put_on_no_record(tree: Tree, scan: Run, tmp_path: Path) -> None:
    """A refusal on record would keep the daemon from the session once the kind is named."""
    session = recent(tree, cut_off)
    assert [found["reason"] for found in scan("--repair")[1]["elsewhere"]] == ["turn_left_open"]
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        assert ledger.history(9) == []
    given: dict[str, Any] = {"state_dir": tmp_path / "api", "stores": [tree.store]}
    assert recover(session, Config(), **given) is None
    with Ledger(paths.ledger_file(tmp_path / "api")) as ledger:
        assert ledger.history(9) == []
    event = recover(session, Config(kinds=(Kind.INTERRUPTED_TURN,)), **given)
    assert event is not None and event.outcome == "healed"
    assert event.places == ("turn 1, tool bash", "turn 1, answer")
    assert recover(session, Config(), **given) is None


def test_a_turn_that_was_cut_off_behind_a_refusal_is_what_it_ended_in(
    tree: Tree, scan: Run, triage: Callable[..., Triage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model spoke again, so the refusal is over; while the turn may run, nothing is wrong with the session."""

    def refused(session: SessionBuilder) -> None:
        session.user("before")
        session.assistant(error=api_error(EMPTY))
        cut_off(session)

    session = recent(tree, refused)
    assert [found["reason"] for found in scan()[1]["elsewhere"]] == ["turn_left_open"]
    verdict = triage(kinds=tuple(Kind)).judge(tree.store, session)
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.INTERRUPTED_TURN)
    monkeypatch.setattr(RunningTurns, "under_way", lambda *_: "a running OpenCode has its store")
    assert (scan()[0], scan()[1]["stuck"], scan()[1]["elsewhere"]) == (0, [], [])


def test_a_part_that_is_broken_behind_a_turn_that_was_cut_off_is_what_it_is_stuck_on(tree: Tree, scan: Run) -> None:
    session = recent(tree, cut_off)
    tree.part(session, "text").write_bytes(b"{")
    assert [found["kind"] for found in [one(scan())]] == ["unsendable_part"]


def test_what_is_refused_of_a_turn_that_was_cut_off_is_healed_and_nothing_else_is_foretold(
    tree: Tree, scan: Run
) -> None:
    """Of 38 places in an answer of Claude at which OpenCode 1.18.34 was killed, the next prompt was refused at 15."""

    def blank(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(reasoning("hm"), text(" "), completed=False)

    def prompted(session: SessionBuilder) -> None:
        blank(session)
        session.failed("go on", api_error("messages: text content blocks must contain non-whitespace text"))

    recent(tree, blank)
    [found] = scan()[1]["elsewhere"]
    assert (found["reason"], found["action"]) == (
        "turn_left_open",
        "left alone until a prompt is refused, if one is: its client goes on from there. Prompt it",
    )
    session = recent(tree, prompted)
    code, told = scan("--repair", "--session", session)
    assert (code, [(found["kind"], found["healed"]) for found in told["stuck"]]) == (0, [("empty_content", True)])


def test_a_session_that_is_to_be_left_alone_is_not_listed(tree: Tree, scan: Run) -> None:
    session = old(tree, 1)
    assert main(["ignore", session]) == 0
    assert scan("--repair")[1]["stuck"] == []
    code, named = scan("--session", session)
    assert (code, named["stuck"], [found["session"] for found in named["ignored"]]) == (0, [], [session])


def test_an_answer_without_any_part_is_no_interruption(tree: Tree, scan: Run) -> None:
    def crashed(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(completed=False, bare=True)

    recent(tree, crashed)
    assert unanswered(scan())["kind"] is None


def test_a_prompt_without_an_answer_is_explained_by_the_rule_and_the_part(tree: Tree, scan: Run) -> None:
    def blank(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(text(" \n"))
        session.user("and then?")

    session = recent(tree, blank)
    found = one(scan())
    part = tree.part(session, "text", 1).stem
    assert (found["reason"], found["evidence"]["part"]) == ("empty_content", part)
    assert found["evidence"]["rule"] == "empty_content" and found["evidence"]["unanswered"] == [found["message"]]
    assert found["parts"] == [part]
    assert scan("--repair")[0] == 0
    assert scan()[1]["healed"][0]["healed"]


@pytest.mark.parametrize("by", [{}, {"providerID": "openai", "modelID": "gpt-5"}], ids=["same", "other"])
def test_a_prompt_without_an_answer_behind_what_was_answered_since_is_no_stuck_session(
    tree: Tree, scan: Run, by: dict[str, Any]
) -> None:
    """The rules may be stricter than who answered it: only a refusal tells. A note may name another model."""

    def taken(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(text(" \n"), **by)
        session.user("and then?")
        session.assistant(text("so"), **by)
        session.user("a note")

    recent(tree, taken)
    before = tree.files()
    unanswered(scan())
    scan("--repair")
    assert tree.files() == before


def test_what_only_the_prompt_without_an_answer_makes_illegal_is_not_sound_for_having_been_sent(
    tree: Tree, scan: Run
) -> None:
    """Of more than 20 images none may be wider than 2000 px."""

    def wide(session: SessionBuilder) -> None:
        for number in range(20):
            session.user("look", file(data_url(png(3000 if number == 3 else 40 + number, 4, 10))))
            session.assistant(text("fine"))
        session.user("look", file(data_url(png(90, 4, 10))))

    session = recent(tree, wide)
    found = one(scan())
    assert found["reason"] == "media_rejected"
    assert found["evidence"]["part"] == found["parts"][0] == tree.part(session, "file", 3).stem


@pytest.mark.parametrize(
    "last",
    [
        (text("fine"), text("so")),
        (reasoning("only a thought"), text("so")),
        (tool(output="x"),),  # cut off within a turn: sound with thinking off
        (reasoning("a thought"), tool(output="x")),  # and with thinking on
    ],
)
def test_a_prompt_that_nothing_explains_is_told_and_not_stuck(
    tree: Tree, scan: Run, triage: Callable[..., Triage], last: tuple[dict[str, Any], ...]
) -> None:
    def asked(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant(*last)
        session.user("and then?")

    session = recent(tree, asked)
    before = tree.files()
    found = unanswered(scan("--repair"))
    assert (found["kind"], found["healed"]) == (None, False)
    assert found["action"].endswith("prompt it again") and found["evidence"]["unanswered"] == [found["message"]]
    assert triage().judge(tree.store, session).next is Next.NOTHING
    assert tree.files() == before


def test_a_prompt_to_another_provider_is_not_judged(tree: Tree, scan: Run) -> None:
    def other(session: SessionBuilder) -> None:
        model: dict[str, Any] = {"providerID": "openai", "modelID": "gpt"}
        session.user("go", model=model)
        session.assistant(text(" \n"), **model)
        session.user("and then?", model=model)

    recent(tree, other)
    assert unanswered(scan())["kind"] is None


def test_what_people_read_names_the_code_and_the_evidence(
    tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    old(tree, 2)
    main(["scan"])
    out = capsys.readouterr().out
    assert "stuck: ids that started again" in out and "(wrapped_ids)" in out
    assert "messages before 2" in out and "recoveryd scan --repair" in out
    main(["explain", "--session", tree.store.load(next(tree.store.session_ids())).id])
    assert "evidence" in capsys.readouterr().out


def test_the_provider_spoke_then_the_code_is_its_kind(tree: Tree, scan: Run) -> None:
    tree.stuck()
    found = one(scan())
    assert (found["reason"], found["evidence"]["status"]) == (found["kind"], 400)


def test_planted_sessions_are_values() -> None:
    assert isinstance(plain(), Planted)


GEMINI: dict[str, Any] = {"providerID": "google", "modelID": "gemini-2.5-pro"}
OPENAI: dict[str, Any] = {"providerID": "openai", "modelID": "gpt-5"}
BROKEN = raw(b'{"id": "prt_x", "type": "to')


def limited(url: str) -> dict[str, Any]:
    error = api_error("rate limited", 429)
    error["data"]["metadata"] = {"url": url}
    return error


def test_a_prompt_to_another_model_is_not_taken_for_the_one_that_was_refused_before(
    tree: Tree, scan: Run, triage: Callable[..., Triage]
) -> None:
    """A recording is nothing that Anthropic's client can send; Gemini's can, and the turn is under way."""

    def switched(session: SessionBuilder) -> None:
        session.user("hello")
        session.assistant("hi")
        session.failed("go on", limited("https://api.anthropic.com/v1/messages"))
        session.user("listen", model=dict(GEMINI))
        wav = {"type": "file", "mime": "audio/wav", "url": "data:audio/wav;base64,UklGRg==", "filename": "rec.wav"}
        session.assistant(tool(attachments=[wav]), **GEMINI)
        session.assistant("I heard it.", **GEMINI)
        session.user("and what did she say?", model=dict(GEMINI))
        session.assistant(completed=False, bare=True, **GEMINI)

    session = recent(tree, switched)
    before = tree.files()
    assert triage().judge(tree.store, session).next is Next.AGAIN
    unanswered(scan("--repair"))
    assert tree.files() == before


@pytest.mark.parametrize("told", [True, False])
def test_what_another_provider_refused_before_keeps_no_prompt_from_being_healed(
    tree: Tree, triage: Callable[..., Triage], told: bool
) -> None:
    def switched(session: SessionBuilder) -> None:
        session.user("go on", model=dict(OPENAI))
        session.assistant(error=limited("https://api.openai.com/v1/responses"), **OPENAI)
        session.user("go")
        session.assistant("one", tool(status=""), "two")
        session.user("continue")
        if not told:  # then its answer says whose it is
            del session.messages[-1]["model"]
            session.assistant(completed=False, bare=True)

    verdict = triage().judge(tree.store, recent(tree, switched))
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.UNSENDABLE_PART)


def test_a_turn_that_may_wait_for_its_provider_is_not_edited_whoever_asks(
    tree: Tree, scan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that no client known here can send: another version may, and is being answered."""

    def asked(session: SessionBuilder) -> None:
        session.user("sum this up", file("data:text/csv;base64,YSxiCg==", "text/csv", filename="q3.csv"))
        session.assistant(completed=False, bare=True)

    session = recent(tree, asked)
    before = tree.files()
    busy = "a running OpenCode (pid 1) has its store"
    monkeypatch.setattr(RunningTurns, "at_work", lambda *_: busy)
    found = one(scan("--repair"))
    assert (found["reason"], found["healed"]) == ("unsendable_part", False) and busy in found["action"]
    event = recover(session, Config(), state_dir=tmp_path / "api", stores=[tree.store])
    assert event is not None and event.outcome == "pending" and busy in event.detail
    assert tree.files() == before
    monkeypatch.setattr(RunningTurns, "at_work", lambda *_: None)
    assert scan("--repair")[0] == 0 and tree.files() != before


def answered(*parts: Any, **fields: Any) -> Callable[[SessionBuilder], None]:
    def make(session: SessionBuilder) -> None:
        session.user("go", model=dict(fields) or dict(MODEL))
        session.assistant(*parts, **fields)

    return make


def test_a_part_that_can_not_be_read_is_found_without_a_prompt(
    tree: Tree, scan: Run, triage: Callable[..., Triage]
) -> None:
    """`opencode serve` reads the session for the model of a prompt that names none, and stores nothing."""
    session = recent(tree, answered("one", BROKEN, "two"))
    verdict = triage().judge(tree.store, session)
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.UNSENDABLE_PART)
    assert triage(lookback_hours=0.01).judge(tree.store, session).next is Next.NOTHING, "as whatever is too old"
    found = one(scan())
    assert (found["reason"], found["kind"]) == ("unsendable_part", "unsendable_part")
    assert found["evidence"]["parts"] == found["parts"]
    assert scan("--repair")[0] == 0
    assert triage().judge(tree.store, session).next is Next.NOTHING
    assert scan()[1]["stuck"] == []


def test_one_that_was_half_written_when_its_client_died_too(tree: Tree, triage: Callable[..., Triage]) -> None:
    def killed(session: SessionBuilder) -> None:
        session.user("go")
        session.assistant("half an answer", BROKEN, completed=False)

    verdict = triage().judge(tree.store, recent(tree, killed))
    assert (verdict.next, verdict.kind) == (Next.RECOVER, Kind.UNSENDABLE_PART)


def test_of_another_provider_it_is_mended_too(tree: Tree, scan: Run) -> None:
    recent(tree, answered("one", BROKEN, "two", **OPENAI))
    code, found = scan("--repair")
    assert (code, [stuck["healed"] for stuck in found["stuck"]]) == (0, [True])
    assert scan()[1]["stuck"] == []


def test_what_one_sdk_alone_fails_on_is_left_alone_under_another(tree: Tree, scan: Run) -> None:
    def asked(session: SessionBuilder) -> None:
        session.user(
            "look", file("data:audio/x;base64,AAAA", "image/png"), model={"providerID": "somewhere", "modelID": "m"}
        )

    recent(tree, asked)
    before = tree.files()
    unanswered(scan("--repair"))
    assert tree.files() == before


def test_what_the_client_does_not_read_is_no_fault(
    tree: Tree, tmp_path: Path, scan: Run, triage: Callable[..., Triage]
) -> None:
    """Behind a compaction: files are read no further, a database to the end of the page, or whole."""

    def compacted(session: SessionBuilder) -> None:
        session.user("before")
        session.assistant("one", BROKEN)
        asked = session.user(compaction())
        session.assistant("a summary", summary=True, parentID=asked["id"])

    session = recent(tree, compacted)
    assert triage().judge(tree.store, session).next is Next.NOTHING
    assert scan()[1]["stuck"] == []
    for version in (OLD, NEW):
        made = SessionBuilder(int(time.time() * 1000) - 10 * MINUTE)
        compacted(made)
        base = Base(tmp_path / version / "opencode.db", version)
        write_sqlite(made.planted(), base.path)
        assert triage().judge(base.store, made.session["id"]).kind is Kind.UNSENDABLE_PART, version


def test_an_answered_session_that_is_healed_is_not_told_to_go_on(tree: Tree) -> None:
    session = tree.store.load(recent(tree, answered("fine")))
    newest = session.newest
    assert newest is not None
    failure = Failure(session.store, session.id, newest.id, newest.created)
    case = Situation(
        "r",
        Outcome.HEALED,
        Kind.UNSENDABLE_PART,
        failure,
        session,
        (),
        0,
        newest.completed / 1000,
        0,
        max_retries=3,
        prompt=Prompt(),
    )
    assert decide_resume(case) == Leave("its last prompt was answered")


@pytest.mark.parametrize(("later", "does"), [(False, Next.RECOVER), (True, Next.NOTHING)])
def test_what_a_failed_compaction_hid_is_given_back_by_itself_only_at_the_time(
    tmp_path: Path, triage: Callable[..., Triage], later: bool, does: Next
) -> None:
    """A rate limit of weeks later is no reason to change what is sent: `scan` tells of it."""
    base = Base(tmp_path / "data" / "opencode.db", clock=time.time)
    s = SessionBuilder(int(time.time() * 1000) - MINUTE, version="1.18.33")
    s.user("the first thing")
    s.assistant("said early")
    tail = s.user("the second thing")
    s.assistant("said late")
    marker = s.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    s.assistant(error=api_error("Your credit balance is too low"), finish=None, summary=True, parentID=marker["id"])
    if later:
        s.user("go on")
        s.assistant("went on")
        s.user("and on")
        s.assistant(error=api_error("Number of requests has exceeded your rate limit", 429), finish=None)
    write_sqlite(s.planted(), base.path)
    session = s.session["id"]
    assert triage().judge(base.store, session).next is does
    with Ledger(tmp_path / "asked.db") as ledger:
        told = diagnose(Context(ledger, Config(), tmp_path), base.store, session)
    assert told is not None and told.kind is Kind.CONTEXT_OVERFLOW


def test_prompts_that_are_ignored_count_also_where_they_were_taken_back(
    tree: Tree, triage: Callable[..., Triage]
) -> None:
    session = old(tree, 2)
    prompts = [message for message in tree.store.load(session).messages if message.role == "user"]
    first = sorted(prompts, key=lambda message: message.created)[-2].id
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert={"messageID": first})
    assert triage().judge(tree.store, session).kind is Kind.WRAPPED_IDS


def test_a_fault_of_a_prompt_is_where_the_newest_answer_worked(tree: Tree) -> None:
    """No prompt says its folder. OpenCode 1.1 and 1.2 work where they were started, which may be another worktree."""
    session = tree.stuck()
    for folder in ("/worktree", ""):
        tree.refused(session, folder=folder)
        failure = client_faults.next_failure(tree.store.load(session), "opencode")
        assert failure is not None and failure.folder == (folder or "/planted")
    tree.refused(session, folder="/worktree")
    stored = tree.store.load(session)
    prompt = replace(stored, messages=tuple(m for m in stored.messages if m.id != tree.failure(session).message))
    failure = client_faults.next_failure(prompt, "opencode")
    assert failure is not None and failure.message != tree.failure(session).message
    assert failure.folder == "/planted", "its own answer is not stored"
