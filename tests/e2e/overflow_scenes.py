"""Sessions that get too long for their model while they are used, as nothing planted does: each scene is a play of its
user and its model on the real client, up to where a request is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e import replies
from tests.e2e.client import WIDE
from tests.e2e.harness import Harness, Outcome, settle
from tests.e2e.install import DATABASE
from tests.e2e.replies import Reply
from tests.support.build import SessionBuilder, reasoning
from tests.support.long_sessions import FIRST, Long, bash, talk, words
from tests.support.parts import file

LINES = 1_500  # of one output: fewer than the client cuts, 13,000 tokens
DELEGATE = "have somebody look at all of it"
CHILD = "look at every file of the parser"


@dataclass(frozen=True)
class Lived:
    """What a scene came to: the session that is refused, its prompt, and the newest words that it has to send.

    `thinking`: whether its model thinks; that of a subagent does not.
    """

    session: str
    refused: Outcome
    newest: str
    thinking: bool = True


@dataclass(frozen=True)
class Scene(Long):
    """A session that is played: `live` does what its user and its model do."""

    live: Callable[[Harness, str], Lived]


def _ask(harness: Harness, session: str, words: str, **fields: Any) -> Outcome:
    outcome = harness.prompt(session, words, thinking=True, **{"model": harness.model, **fields})
    settle(harness, session)
    return outcome


def _last(of: str, lines: int = LINES) -> str:
    return f"{of}: line {lines} of what it printed"


def _calls(body: dict[str, Any], step: int, many: int, lines: int) -> Reply:
    """An answer with so many calls at a time, which print so many lines each."""
    command = "seq -f '{}.{}: line %g of what it printed' 1 {}"
    calls = ({"command": command.format(step, call, lines), "description": "look"} for call in range(many))
    on = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    thought = [replies.thinking(f"step {step}")] if on else []
    return Reply([*thought, *(replies.tool_use("bash", call) for call in calls)])


def _steps(harness: Harness, *steps: tuple[int, int]) -> None:
    """Have the model take steps with so many calls of so many lines each, and summarise without a thought."""
    left = list(enumerate(steps))

    def choose(body: dict[str, Any]) -> Reply | None:
        if not body.get("tools"):
            return Reply([replies.text("all in short")])
        return _calls(body, left[0][0], *left.pop(0)[1]) if left else None

    harness.provider.reply_when(choose)


def _half_full(s: SessionBuilder, rng: random.Random) -> None:
    """About 140,000 tokens of turns with tools, all answered."""
    s.user(FIRST)
    for turn in range(10):
        s.assistant(reasoning(words(rng, 200)), bash(rng, 52_000))
        s.assistant(f"step {turn}")
        s.user(f"on, {turn}")
    s.assistant("done")


def _nearly_full(s: SessionBuilder, rng: random.Random) -> None:
    """About 185,000 tokens: it fits, and the client compacts it before the next prompt."""
    talk(s, rng, turns=30, answer=20_000)


def _short(s: SessionBuilder, _: random.Random) -> None:
    s.user(FIRST)
    s.assistant("done")


def _live_paste(harness: Harness, session: str) -> Lived:
    """One prompt is longer than all that the model takes."""
    paste = words(random.Random(5), 860_000)
    return Lived(session, _ask(harness, session, paste), paste.splitlines()[-1][-40:])


def _compacted_within_a_turn(harness: Harness, session: str) -> Lived:
    """By its usage: a step took more than the client lets it, and the turn goes on behind it."""
    _steps(harness, (4, LINES), (1, 20), (1, 20))
    refused = _ask(harness, session, "look at all of it")
    harness.provider.reply_when(None)
    return Lived(session, refused, _last("1.0", 20))


def _refused_within_a_turn(harness: Harness, session: str) -> Lived:
    """The outputs of one step are more than is left."""
    _steps(harness, (1, LINES), (5, LINES))
    refused = _ask(harness, session, "look at all of it")
    harness.provider.reply_when(None)
    return Lived(session, refused, _last("1.4"))


def _smaller_model(harness: Harness, session: str) -> Lived:
    """It was talked with a model that takes a million tokens; then another one is chosen."""
    limit, harness.provider.strict.limit = harness.provider.strict.limit, 1_000_000
    for turn in range(3):
        wide = {"providerID": "anthropic", "modelID": WIDE}
        assert _ask(harness, session, f"{turn}: " + words(random.Random(turn), 60_000), model=wide).accepted
    harness.provider.strict.limit = limit
    return Lived(session, _ask(harness, session, "go on with the other model"), "go on with the other model")


def _no_credit(harness: Harness, session: str) -> Lived:
    """The client's own compaction fails for want of credit.

    1.18 goes on with its tail alone. Older ones summarise under the next prompt, and then never again.
    """
    harness.provider.force("Your credit balance is too low to access the Anthropic API.")
    refused = _ask(harness, session, "go on")
    if harness.client.database.exists() and harness.client.version() != DATABASE:
        return Lived(session, refused, "that is all")
    for turn in range(4):
        refused = _ask(harness, session, f"{turn}: " + words(random.Random(turn), 60_000))
        if not refused.accepted:
            break
    return Lived(session, refused, words(random.Random(turn), 60_000).splitlines()[-1][-40:])


def _subagent(harness: Harness, session: str) -> Lived:
    """The session of a subagent gets too long; its parent goes on with nothing from it."""
    left = list(enumerate((5, 5, 6)))

    def choose(body: dict[str, Any]) -> Reply | None:
        said = json.dumps(body["messages"])
        if not body.get("tools"):
            return None
        if CHILD in json.dumps(body["messages"][0]):
            return _calls(body, *left.pop(0), LINES) if left else None
        if DELEGATE in said and "tool_use" not in json.dumps(body["messages"][-2:]):
            asked = {"description": "look", "prompt": f"{FIRST}. {CHILD}", "subagent_type": "general"}
            return Reply([replies.thinking("somebody else"), replies.tool_use("task", asked)])
        return None

    harness.provider.reply_when(choose)
    outcome = _ask(harness, session, DELEGATE)
    harness.provider.reply_when(None)
    [child] = harness.client.call("GET", f"/session/{session}/children")[1]
    of_child = [one for one in outcome.requests if DELEGATE not in json.dumps((one.body or {}).get("messages"))]
    refused = Outcome(outcome.result, of_child)
    return Lived(child["id"], refused, _last("2.5"), thinking=False)


def _large_file(harness: Harness, session: str) -> Lived:
    """The user names a file of 900 KB, and the model prints another: the client cuts both."""
    path = harness.client.directory / "large.txt"
    path.write_text(words(random.Random(3), 900_000))
    command = {"command": "seq -f 'line %g of a long output' 1 40000", "description": "print"}
    harness.provider.script.append(Reply([replies.thinking("so"), replies.tool_use("bash", command)]))
    named = file(path.as_uri(), "text/plain", "large.txt")
    body = {"parts": [{"type": "text", "text": "look at @large.txt"}, named], "model": harness.model, "variant": "high"}
    before = len(harness.provider.requests)
    harness.client.call("POST", f"/session/{session}/message", body)
    settle(harness, session)
    asked = [one for one in harness.provider.requests[before:] if not one.is_title]
    assert len(asked) == 2
    assert all(one.refused is None for one in asked)
    return Lived(session, _ask(harness, session, "go on"), "go on")


SCENES = {
    scene.name: scene
    for scene in (
        Scene("live-paste", _short, _live_paste),
        Scene("usage-mid-turn", _half_full, _compacted_within_a_turn),
        Scene("refused-mid-turn", _half_full, _refused_within_a_turn),
        Scene("smaller-model", _nearly_full, _smaller_model),
        Scene("no-credit", _nearly_full, _no_credit),
        Scene("subagent", _short, _subagent),
        Scene("large-file", _short, _large_file),
    )
}
