"""Sessions that recoveryd does not repair: what `explain` names as the next step, and whether the session goes on then.

`python -m tests.e2e.next_steps 1.18.34` prints the table of a version of the real client.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e import replies
from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.harness import Harness, Outcome, running
from tests.e2e.provider import Forced, Provider
from tests.e2e.replies import Reply
from tests.e2e.tui import PlainTui, plain_tui
from tests.support.build import BINDS, MODEL, SessionBuilder
from tests.support.trees import MISSING

_POISON = "an unlucky word"
_ORPHAN = (
    "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01. Each `tool_result` block "
    "must have a corresponding `tool_use` block in the previous message."
)
_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."
_BLANK_END = "messages: final assistant content cannot end with trailing whitespace"
_REASONING = "Missing `reasoning_content` field in the assistant message at message index 2."

Refuses = Callable[[dict[str, Any]], bool]
Step = Callable[[Harness, str], Outcome]


def in_words_of(role: str) -> Refuses:
    """Whatever holds the unlucky word is refused, each time."""
    return lambda body: any(m["role"] == role and _POISON in json.dumps(m) for m in body["messages"])


def this_model(body: dict[str, Any]) -> bool:
    return in_words_of("assistant")(body) and body["model"] == MODEL["modelID"]


def prompt_again(harness: Harness, session: str) -> Outcome:
    return harness.prompt(session, "again")


def another_model(harness: Harness, session: str) -> Outcome:
    return harness.prompt(session, "again", model=dict(BINDS))


def fork(harness: Harness, session: str) -> Outcome:
    """As `/fork` of the TUI does where the last prompt is chosen that was answered."""
    listed = [message["info"] for message in harness.client.messages(session)]
    answered = [info["parentID"] for info in listed if info["role"] == "assistant" and not info.get("error")]
    status, made = harness.client.call("POST", f"/session/{session}/fork", {"messageID": answered[-1]})
    assert status == 200, made
    return harness.prompt(made["id"], "again")


def whole_fork(harness: Harness, session: str) -> Outcome:
    """As `opencode --session ID --fork` does."""
    status, made = harness.client.call("POST", f"/session/{session}/fork", {})
    assert status == 200, made
    return harness.prompt(made["id"], "again")


@dataclass(frozen=True)
class Case:
    """A session whose prompt is refused with `words` where `refuses` says so; None: once, whatever it is.

    `named`: of the step in what `explain` says. `steps`: does it go on, and what does not help.
    """

    title: str
    words: str
    named: str
    step: Step
    refuses: Refuses | None = None
    in_vain: tuple[Step, ...] = ()


_BACK = "type /fork, and choose the last prompt that was answered"
CASES = (
    Case(
        "an error that nobody knows, for what was answered",
        "something that nobody ever said",
        _BACK,
        fork,
        in_words_of("assistant"),
        (prompt_again, whole_fork),
    ),
    Case(
        "an error that nobody knows, for the prompt",
        "something that nobody ever said",
        _BACK,
        fork,
        in_words_of("user"),
        (prompt_again, whole_fork),
    ),
    Case("tool_result_orphan", _ORPHAN, _BACK, fork, in_words_of("assistant")),
    Case("a known kind that the rules don't explain", MISSING, _BACK, fork, in_words_of("assistant")),
    Case("reasoning_missing", _REASONING, "choose another model", another_model, this_model, (prompt_again,)),
    Case("assistant_prefill", _PREFILL, "a new prompt clears it", prompt_again),
    Case("trailing_whitespace", _BLANK_END, "a new prompt clears it", prompt_again),
)


@dataclass(frozen=True)
class Tried:
    case: str
    named: str
    goes_on: bool
    says: str
    in_vain: tuple[str, ...] = ()  # of `in_vain`, what helped all the same


def tried(harness: Harness, daemon: Daemon, case: Case) -> Tried:
    """Get a session refused, read the next step in `explain`, and take it."""
    session = refused(harness, case)
    says = str(json.loads(daemon.run("explain", "--session", session, "--json").stdout)["action"])
    helped = tuple(step.__name__ for step in case.in_vain if step(harness, refused(harness, case)).accepted)
    goes_on = case.step(harness, session).accepted
    harness.provider.force_when(None)
    return Tried(case.title, case.named, goes_on, says, helped)


def refused(harness: Harness, case: Case) -> str:
    """A session of two answers whose third prompt was just refused."""
    provider, session = harness.provider, str(harness.client.new_session()["id"])
    provider.force_when(None)
    provider.script.extend([Reply([replies.text("fine")]), Reply([replies.text(_POISON)])])
    for words in ("one", "two"):
        assert harness.prompt(session, words).accepted
    if case.refuses is None:
        provider.force(case.words)
    else:
        refuses = case.refuses
        provider.force_when(lambda body: Forced(case.words) if refuses(body) else None)
    assert not harness.prompt(session, _POISON).accepted
    return session


def unanswered(harness: Harness, daemon: Daemon) -> Tried:
    """A prompt of which nothing came: the client was killed before it asked, say."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("one")
    session.assistant("fine")
    session.user("two")
    planted = harness.plant(session.planted())
    says = str(json.loads(daemon.run("explain", "--session", planted, "--json").stdout)["action"])
    return Tried("unanswered_prompt", "prompt it again", prompt_again(harness, planted).accepted, says)


def by_keys(name: str, root: Path) -> bool:
    """Whether a person goes on by `/fork` in the TUI itself: chooses the prompt in its list, and types another."""
    refuses = in_words_of("assistant")
    answers = {"prompt one": "fine", "prompt two": _POISON, "prompt four": "it goes on"}
    with Provider() as provider:
        provider.force_when(lambda body: Forced("something that nobody ever said") if refuses(body) else None)
        provider.reply_when(lambda body: Reply([replies.text(_answer(answers, body))]))
        with plain_tui(name, root, provider.url) as tui:
            assert isinstance(tui, PlainTui)
            tui.enter("prompt one", "fine")
            tui.enter("prompt two", _POISON)
            tui.enter("prompt three", "something that nobody")
            tui.choose("/fork", "two")
            tui.enter("prompt four", "it goes on")
    return True


def _answer(answers: dict[str, str], body: dict[str, Any]) -> str:
    asked = json.dumps(body["messages"][-1])
    return next((words for prompt, words in answers.items() if prompt in asked), "fine")


def main() -> int:
    """Print the table; with `--keys` only go on by `/fork` in the TUI."""
    version, *how = sys.argv[1:]
    if how == ["--keys"]:
        with tempfile.TemporaryDirectory() as folder:
            print(version, "goes on by /fork, typed in its TUI:", by_keys(version, Path(folder)))
        return 0
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "client", version) as harness:
        daemon = Daemon(Path(folder) / "daemon", harness.client.root / "data", config=CONFIG)
        found = [*(tried(harness, daemon, case) for case in CASES), unanswered(harness, daemon)]
    for one in found:
        ends = "goes on" if one.goes_on else "REFUSED"
        named = "named" if one.named in one.says else "NOT NAMED"
        print(f"{one.case}: {one.named} ({named}): {ends}; helped as well: {', '.join(one.in_vain) or 'nothing'}")
        print(f"    {one.says}")
    return 0 if all(one.goes_on and one.named in one.says for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
