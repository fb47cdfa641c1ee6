"""Which failure a session is stuck on, where more was asked behind it; the daemon and `scan` agree on it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.core.diagnosis import ELSEWHERE, REFUSED, UNANSWERED
from recoveryd.core.model import Kind
from recoveryd.diagnose import Context, diagnose
from recoveryd.diagnose.decision_tree import standing_failure
from recoveryd.diagnose.triage import Next, Triage
from recoveryd.ledger.ledger import Ledger
from tests.conftest import Run
from tests.support.build import MODEL, SessionBuilder, api_error, compaction, reasoning, text, tool
from tests.support.trees import EMPTY, SIGNATURE, Tree, blank_answer, write_over

GEMINI: dict[str, Any] = {"providerID": "google", "modelID": "gemini-2.5-pro"}
ABORTED = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
LIMIT = api_error("This request would exceed your account's rate limit", 429)


class Scene:
    """A session of a store on the disk, built turn by turn."""

    def __init__(self, folder: Path) -> None:
        self.tree = Tree(folder)
        self.made = SessionBuilder(int(time.time() * 1000) - 60_000)
        blank_answer(self.made)
        self._ledger = Ledger(folder / "ledger.db")

    def found(self) -> list[object]:
        """The verdict of the daemon, its kind, and the message; then the reason and the message that `scan` tells."""
        session = self.tree._write(self.made)
        context = Context(self._ledger, Config(), self.tree.root, clock=lambda: time.time() + 5)
        verdict, told = (
            Triage(context, print).judge(self.tree.store, session),
            diagnose(context, self.tree.store, session),
        )
        failed = verdict.diagnosis.failure.message if verdict.diagnosis else None
        return [verdict.next, verdict.kind, failed, told and told.reason, told and told.failure.message]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize(
    "model",
    [GEMINI, {**MODEL, "providerID": "somewhere"}, {**MODEL, "modelID": "kimi-k2"}],
    ids=["another maker", "another provider", "other rules there"],
)
@pytest.mark.parametrize("then", ["asked", "began", "was stopped", "hit a limit", "ran a command"])
def test_a_refusal_does_not_count_once_another_provider_is_asked(
    scene: Scene, model: dict[str, Any], then: str
) -> None:
    scene.made.failed("continue", api_error(SIGNATURE, 400))
    prompt = scene.made.user("now you", model=dict(model))
    if then == "began":
        scene.made.assistant(completed=False, bare=True, **model)
    elif then == "was stopped":
        scene.made.assistant(error=ABORTED, bare=True, **model)
    elif then == "hit a limit":
        prompt = scene.made.assistant(error=LIMIT, bare=True, **model)
    elif then == "ran a command":  # `!ls`, in a client in which the other model is chosen by now
        scene.made.assistant(tool("bash"), finish=None, bare=True, **model)
    verdict, kind, failed, reason, message = scene.found()
    assert (kind, failed) == (None, None)
    assert verdict in (Next.NOTHING, Next.AGAIN)
    assert (reason, message) == {
        "asked": ("unanswered_prompt", prompt["id"]),
        "began": (None, None),
        "was stopped": (None, None),
        "hit a limit": (ELSEWHERE, prompt["id"]),
        "ran a command": (None, None),
    }[then]


@pytest.mark.parametrize("model", [MODEL, {**MODEL, "modelID": "claude-opus-4-5"}])
def test_a_refusal_counts_when_the_same_rules_are_asked_again(scene: Scene, model: dict[str, Any]) -> None:
    failed = scene.made.failed("continue", api_error(EMPTY, 400))
    scene.made.user("again", model=dict(model))
    scene.made.assistant(error=ABORTED, bare=True, **model)
    assert scene.found() == [Next.RECOVER, Kind.EMPTY_CONTENT, failed["id"], "empty_content", failed["id"]]


@pytest.mark.parametrize(("words", "status"), [("Overloaded", 529), ("rate limit", 429), ("invalid x-api-key", 401)])
def test_what_is_not_about_the_history_leaves_the_refusal_before_it_standing(
    scene: Scene, words: str, status: int
) -> None:
    failed = scene.made.failed("continue", api_error(EMPTY, 400))
    for _ in range(2):
        scene.made.failed("again", api_error(words, status))
    assert scene.found() == [Next.RECOVER, Kind.EMPTY_CONTENT, failed["id"], "empty_content", failed["id"]]


def test_a_refusal_does_not_count_once_an_answer_has_begun(scene: Scene) -> None:
    failed = scene.made.failed("continue", api_error(EMPTY, 400))
    scene.made.user("again")
    begun = scene.made.assistant(completed=False, bare=True)
    assert scene.found()[3:] == ["empty_content", failed["id"]]  # whether it is taken now, nobody knows yet
    scene.made.messages.remove(begun)
    scene.made.assistant(text("half an ans"), completed=False)
    (scene.tree.root / "message" / begun["sessionID"] / f"{begun['id']}.json").unlink()
    assert scene.found() == [Next.AGAIN, None, None, None, None]


def test_a_prompt_of_a_moment_ago_is_not_yet_one_without_an_answer(tmp_path: Path) -> None:
    tree, late = Tree(tmp_path), [0.0]
    session = tree.asked(blank_answer)
    with Ledger(tmp_path / "ledger.db") as ledger:
        context = Context(ledger, Config(), tmp_path, clock=lambda: time.time() + late[0])
        assert diagnose(context, tree.store, session) is None
        late[0] = 10.0
        told = diagnose(context, tree.store, session)
    assert told is not None and told.code == UNANSWERED


def test_an_error_of_unknown_words_is_the_one_that_counts(scene: Scene) -> None:
    scene.made.failed("continue", api_error(EMPTY, 400))
    newest = scene.made.failed("again", api_error("messages.3: a rule that is new", 400))
    assert scene.found()[1:] == [None, None, "refused_unknown", newest["id"]]


def test_a_part_that_can_not_be_read_is_told_however_far_back_and_mended_among_the_newest(scene: Scene) -> None:
    for _ in range(30):
        scene.made.user("go on")
        scene.made.assistant("fine")
    far, near = (scene.tree.part(scene.tree._write(scene.made), "text", number) for number in (0, -1))
    sound, told = far.read_bytes(), "unsendable_part"
    far.write_bytes(b'{"id": "cut o')
    assert (scene.found()[1], scene.found()[3]) == (None, told)
    far.write_bytes(sound)
    near.write_bytes(b'{"id": "cut o')
    assert (scene.found()[1], scene.found()[3]) == (Kind.UNSENDABLE_PART, told)


@pytest.mark.parametrize("name", ["MessageOutputLengthError", "StructuredOutputError"])
def test_an_answer_that_is_not_as_it_was_wanted_is_an_answer(scene: Scene, name: str) -> None:
    scene.made.failed("continue", api_error(EMPTY, 400))
    scene.made.user("again")
    newest = scene.made.assistant(error={"name": name, "data": {"message": "no"}}, bare=True)
    assert scene.found()[1:] == [None, None, ELSEWHERE, newest["id"]]


@pytest.mark.parametrize("took", ["a step", "the beginning of an answer", "an answer"])
def test_a_refusal_does_not_count_once_the_provider_took_the_history(scene: Scene, took: str) -> None:
    scene.made.failed("continue", api_error(EMPTY, 400))
    scene.made.user("again")
    if took == "the beginning of an answer":
        newest = scene.made.assistant(reasoning("hm"), error=LIMIT)
    else:
        scene.made.assistant(tool() if took == "a step" else text("fine"))
        newest = scene.made.assistant(error=LIMIT, bare=True)
    assert scene.found()[1:] == [None, None, ELSEWHERE, newest["id"]]


BROKEN_STREAM = {"name": "UnknownError", "data": {"message": "Type validation failed: expected number"}}


@pytest.mark.parametrize("begun", [text("half an ans"), reasoning("hm")], ids=["text", "reasoning"])
def test_an_answer_that_broke_off_is_no_refusal(scene: Scene, begun: Any) -> None:
    """The real client takes the next prompt (measured on 1.2.1 and 1.18.34)."""
    scene.made.failed("continue", api_error(EMPTY, 400))
    scene.made.user("again")
    newest = scene.made.assistant(begun, error=BROKEN_STREAM)
    assert scene.found() == [Next.NOTHING, None, None, ELSEWHERE, newest["id"]]
    scene.made.user("and again")
    refused = scene.made.assistant(error=BROKEN_STREAM)  # of another request, and nobody took that
    assert scene.found() == [Next.NOTHING, None, None, REFUSED, refused["id"]]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("the context is full", REFUSED),
        ("failed to find free space in the KV cache", REFUSED),
        ("the server stopped at 8192 tokens", REFUSED),
        ("Unexpected token < in JSON at position 0", ELSEWHERE),
        (
            "Reached context length of 4096 tokens, and this model does not support overflow",
            Kind.CONTEXT_OVERFLOW.value,
        ),
    ],
)
def test_an_answer_that_broke_off_since_the_context_is_full_does_so_again(
    scene: Scene, words: str, reason: str
) -> None:
    scene.made.user("again")
    newest = scene.made.assistant(text("half an ans"), error={"name": "UnknownError", "data": {"message": words}})
    assert scene.found()[3:] == [reason, newest["id"]]


@pytest.mark.parametrize("again", [True, False], ids=["the same", "other words"])
def test_an_answer_that_broke_off_twice_with_the_same_words_did_so_by_no_accident(scene: Scene, again: bool) -> None:
    scene.made.user("again")
    scene.made.assistant(text("half an ans"), error=BROKEN_STREAM)
    scene.made.user("and again")
    other = {"name": "UnknownError", "data": {"message": "Channel Error"}}
    newest = scene.made.assistant(text("half"), error=BROKEN_STREAM if again else other)
    assert scene.found()[3:] == [REFUSED if again else ELSEWHERE, newest["id"]]


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("上游返回空响应，错误码5001", "内容生成中断，请求编号20261123", False),
        ("上游返回空响应，请求编号20261122", "上游返回空响应，请求编号20261123", True),
        ('{"code":5001}', '{"code":5002}', False),
        ('{"code":5001}', '{"code":5001}', True),
    ],
)
def test_words_without_blanks_are_alike_but_for_their_numbers(
    scene: Scene, first: str, second: str, alike: bool
) -> None:
    for words in (first, second):
        scene.made.user("again")
        newest = scene.made.assistant(text("half"), error={"name": "UnknownError", "data": {"message": words}})
    assert scene.found()[3:] == [REFUSED if alike else ELSEWHERE, newest["id"]]


@pytest.mark.parametrize("older", ["another name", "no words of an answer", "stopped without an error"])
def test_what_an_older_answer_has_to_have_for_a_newer_one_to_break_off_alike(scene: Scene, older: str) -> None:
    error = {**BROKEN_STREAM, "name": "APIError"} if older == "another name" else BROKEN_STREAM
    scene.made.user("again")
    scene.made.assistant(*([] if older == "no words of an answer" else [text("half")]), error=error)
    if older == "stopped without an error":  # as 1.18 leaves it: it is passed over
        scene.made.user("and again")
        scene.made.assistant(text("ha"), finish=None)
    scene.made.user("once more")
    newest = scene.made.assistant(text("half"), error=BROKEN_STREAM)
    assert scene.found()[3:] == [REFUSED if older == "stopped without an error" else ELSEWHERE, newest["id"]]


@pytest.mark.parametrize("between", ["a step", "steps", "an answer"])
def test_an_agent_whose_turns_break_off_alike_behind_a_step_with_a_call_does_so_by_no_accident(
    scene: Scene, between: str
) -> None:
    """Behind more of them the provider took what stands before often: that a stream breaks is an accident."""
    for turn in (1, 2):
        scene.made.user("again")
        scene.made.assistant(tool())
        if between == "steps" and turn == 2:
            scene.made.assistant(text("and now"), tool(), bare=True)
        newest = scene.made.assistant(text("half an ans"), error=BROKEN_STREAM, bare=True)
        if between == "an answer" and turn == 1:
            scene.made.user("go on")
            scene.made.assistant(text("fine"))
    assert scene.found()[3:] == [REFUSED if between == "a step" else ELSEWHERE, newest["id"]]


def test_what_numbers_a_request_and_an_answer_that_was_stopped_make_no_other_words(scene: Scene) -> None:
    for number in (1, 2):
        scene.made.user("again")
        words = {
            "message": f"Compute error. (request id: req_000{number})",
            "responseBody": f'{{"id": "req_{number}"}}',
        }
        newest = scene.made.assistant(text("half an ans"), error={"name": "UnknownError", "data": words})
        if number == 1:
            scene.made.user("once more")
            scene.made.assistant(error={"name": "MessageAbortedError", "data": {"message": "Aborted"}})
    assert scene.found()[3:] == [REFUSED, newest["id"]]


@pytest.mark.parametrize(
    ("stored", "fields"),
    [
        ([], {}),
        ([tool(status="error")], {}),
        ([reasoning("")], {}),
        ([text("a plugin's", synthetic=True)], {}),
        ([text("a repair's", metadata={"recoveryd": {}})], {}),
        ([text("## Goal")], {"summary": True}),
    ],
    ids=["nothing", "a call", "an empty thought", "a plugin's", "a repair's", "a summary"],
)
def test_no_words_of_an_answer_prove_that_the_history_was_taken(
    scene: Scene, stored: list[Any], fields: dict[str, Any]
) -> None:
    scene.made.user("again")
    newest = scene.made.assistant(*stored, error=BROKEN_STREAM, **fields)
    assert scene.found() == [Next.NOTHING, None, None, REFUSED, newest["id"]]


def test_an_error_of_a_known_kind_is_told_as_that_behind_words_of_an_answer(scene: Scene) -> None:
    scene.made.user("again")
    newest = scene.made.assistant(text("half an ans"), error=api_error(EMPTY, 400))
    assert scene.found() == [Next.RECOVER, Kind.EMPTY_CONTENT, newest["id"], "empty_content", newest["id"]]
    words = {**api_error(f"{EMPTY} | {SIGNATURE}", 400)}
    newest = scene.made.assistant(text("half an ans"), error=words)
    assert scene.found() == [Next.NOTHING, None, None, REFUSED, newest["id"]]


ASKED: dict[str, Any] = {**MODEL}
TOO_LONG = api_error("prompt is too long: 212403 tokens > 200000 maximum")


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("model", "stands"), [(ASKED, True), ({**ASKED, "modelID": "claude-sonnet-5"}, False)])
def test_what_was_too_long_for_one_model_says_nothing_of_another(
    tmp_path: Path, model: dict[str, Any], waits: bool, stands: bool
) -> None:
    """Whose prompt is waiting, or was turned away before its history was read."""
    scene = Scene(tmp_path)
    scene.made.user("go on", model=dict(MODEL))
    refused = scene.made.assistant(error=TOO_LONG, **ASKED)
    scene.made.user("and on", model=dict(model))
    if not waits:
        scene.made.assistant(error=LIMIT, **model)
    session = scene.tree._write(scene.made)
    _, found = standing_failure(scene.tree.store.look(session))
    assert (found.failure.message if found else None) == (refused["id"] if stands else None)


@pytest.mark.parametrize("first", [True, False], ids=["the prompt was refused", "the summary was refused"])
@pytest.mark.parametrize("newest", ["nothing", "an abort", "a rate limit", "a prompt", "an aborted summary"])
def test_a_summary_by_a_model_that_nobody_chose_says_nothing_of_another(
    tmp_path: Path, first: bool, newest: str
) -> None:
    """OpenCode's agent for compactions may have a model of its own."""
    own = {**ASKED, "modelID": "claude-haiku-4-5"}
    scene = Scene(tmp_path)
    scene.made.user("go on", model=dict(MODEL))
    refused = scene.made.assistant(error=TOO_LONG, **ASKED) if first else None
    if not first or newest == "an aborted summary":
        scene.made.user(compaction(), model=dict(MODEL))
        error = {"name": "MessageAbortedError", "data": {"message": "stopped"}} if refused else TOO_LONG
        summary = scene.made.assistant(error=error, summary=True, **own)
        refused = refused or summary
    if newest in ("an abort", "a rate limit", "a prompt"):
        scene.made.user("and on", model=dict(MODEL))
    if newest in ("an abort", "a rate limit"):
        stopped = {"name": "MessageAbortedError", "data": {"message": "stopped"}}
        scene.made.assistant(error=stopped if newest == "an abort" else LIMIT, **ASKED)
    session = scene.tree._write(scene.made)
    _, found = standing_failure(scene.tree.store.look(session))
    assert found is not None
    assert refused is not None
    assert found.failure.message == refused["id"]


TURNED_AWAY = [
    ("invalid x-api-key", 401, "key"),
    ("Insufficient Balance", 402, "account"),
    ("model: claude-opus-9", 404, "model"),
    ("Not Found", 404, "address"),
    ("Overloaded", 529, "server"),
    ("upgrade_required", 426, "too old"),
]


@pytest.mark.parametrize(("words", "status", "about"), TURNED_AWAY)
def test_a_healed_session_is_told_by_what_its_next_prompt_met(
    tree: Tree, run: Run, words: str, status: int, about: str
) -> None:
    session = tree.stuck()
    made = tree.made(session)
    assert run("scan", "--repair", "--yes")[0] == 0
    failed = made.failed("again", api_error(words, status))
    failed["time"] = {"created": 0, "completed": 1}  # before the repair
    tree._write(made)
    assert json.loads(run("explain", "--session", session, "--json")[1])["healed"]
    later = int(time.time() * 1000) + 1_000
    write_over(tree.root / "message" / session / f"{failed['id']}.json", time={"created": later, "completed": later})
    code, out, _ = run("explain", "--session", session, "--json")
    told = json.loads(out)
    assert (code, told["reason"], told["message"]) == (0, ELSEWHERE, failed["id"])
    assert about in told["evidence"]["about"]
    assert json.loads(run("scan", "--json")[1])["stuck"] == []


@pytest.mark.parametrize(("words", "status", "about"), TURNED_AWAY)
def test_an_error_of_unknown_words_behind_a_refusal_stands_behind_what_is_not_about_the_history(
    scene: Scene, words: str, status: int, about: str
) -> None:
    scene.made.failed("continue", api_error(EMPTY, 400))
    unknown = scene.made.failed("again", api_error("a rule that is new", 400))
    newest = scene.made.failed("again", api_error(words, status))
    assert scene.found() == [Next.NOTHING, None, None, REFUSED, unknown["id"]], f"and not as {about} of {newest['id']}"
