"""The same without a client: what a fake refuses of the request that the product's wire builds, and what a plan heals.

The wire is held to the real client by `play`; so all shapes in all forms can be tried here in seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from recoveryd.clients.find import read_error
from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import KINDS, Edit, Failure, Kind, Marks, RecordedError, Refusal, Refused, Request, Session, edited
from recoveryd.providers import classify, rules_for
from recoveryd.repair import PlanInput, Settings, plan
from tests.families.fake import REFUSALS, WRAPPED
from tests.families.table import EVERY_FAMILY, FAMILIES, Family
from tests.shapes import Shape
from tests.support.planted import Planted
from tests.support.values import as_session, at_times

PATHS = {
    "bedrock": "/model/m/converse-stream",
    "vertex-claude": "/v1/projects/p/locations/us-east5/publishers/anthropic/models/m:streamRawPredict",
    "openrouter": "/v1/chat/completions",
    "openrouter-kimi": "/v1/chat/completions",
    "openrouter-kimi-default": "/v1/chat/completions",
    "copilot": "/chat/completions",
    "openai": "/v1/responses",
    "kimi": "/v1/chat/completions",
    "glm": "/v1/chat/completions",
    "deepseek": "/v1/chat/completions",
    "qwen": "/compatible-mode/v1/chat/completions",
    "litellm": "/v1/chat/completions",
    "gpt": "/v1/chat/completions",
    "mistral": "/v1/chat/completions",
    "xai": "/v1/chat/completions",
    "ministral": "/v1/chat/completions",
    "gemma": "/v1/chat/completions",
    "azure": "/openai/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro-preview:streamGenerateContent",
    "gemini-2": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
    "vertex": "/v1/publishers/google/models/gemini-3-pro-preview:streamGenerateContent",
}
WANTS_REASONING = KINDS[Kind.REASONING_MISSING].unrepaired
THINKING: dict[bool, dict[str, Any]] = {
    True: {"additionalModelRequestFields": {"thinking": {}}, "thinking": {}, "reasoning": {}},
    False: {},
}
EDITOR = partial(OpencodeEditor, marks=Marks("rtest", 1_791_000_000_000))


@dataclass(frozen=True)
class Judged:
    """What was refused of a shape at first (None: it is accepted), the edits of each repair, and what is left."""

    first: str | None
    repairs: tuple[tuple[Edit, ...], ...] = ()
    left: str | None = None


@cache
def session_of(name: str, shape: Shape) -> Session:
    """A shape as a family would have stored it, built once in a process."""
    return as_session(EVERY_FAMILY[name].dressed(_planted(shape)))


@cache
def _planted(shape: Shape) -> Planted:
    return shape.build(1_790_000_000_000, seed=1)


def with_times(session: Session) -> Session:
    """The session as a database has it, which keeps the times of messages, and has the client order by them."""
    session = at_times(session, (message.created for message in session.messages))
    return replace(session, messages=tuple(sorted(session.messages, key=lambda message: (message.at, message.id))))


@cache
def judged(family: Family, shape: Shape, form: str) -> Judged:
    """Try a shape: refused, planned, refused again for another fault perhaps, and so on, three times at the most."""
    session = session_of(family.name, shape)
    if form != "old":
        session = with_times(session)
    first = said = refusal(family, session, form, thinking=shape.thinking)
    repairs: list[tuple[Edit, ...]] = []
    while said is not None and len(repairs) < 3:
        made = planned(family, session, form, said)
        if made == Refusal(WANTS_REASONING):
            return Judged(first, tuple(repairs), WANTS_REASONING)
        if isinstance(made, Refusal):
            return Judged(first, tuple(repairs), f"{said} -> {made.reason}")
        repairs.append(made)
        session = edited(session, made)
        said = refusal(family, session, form, thinking=shape.thinking)
    return Judged(first, tuple(repairs), said)


# What the template of a local server takes is known once it has refused, not before (docs/limits.md): these it takes,
# the family behind it refuses, and it refuses them after the repair. Then they heal there too.
TOLD_BY_ITS_REFUSAL = {
    ("ministral", "compaction-that-keeps-a-tool-off"),  # the words before the kept call let two prompts stand in a row
    ("gemma", "tool-executed-by-the-provider"),  # the result that the call gets, and the next prompt, do
}


class StillRefusedError(Exception):
    """A session is refused by a family, and no repair helps."""


def healed(session: Session, name: str, form: str, shape: Shape) -> Session:
    """The session once it is accepted by a family, after three repairs at the most; as it is where it is accepted."""
    said = refusal(FAMILIES[name], session, form, thinking=shape.thinking)
    for _ in range(3):
        if said is None:
            break
        made = planned(FAMILIES[name], session, form, said)
        if isinstance(made, Refusal):
            raise StillRefusedError(f"{name}: {said} -> {made.reason}")
        session = edited(session, made)
        said = refusal(FAMILIES[name], session, form, thinking=shape.thinking)
    if said is not None:
        raise StillRefusedError(f"{name}: {said}")
    return session


def made_worse(before: str, now: str, form: str, shape: Shape) -> str | None:
    """What is wrong with a session of one family once another has refused it and it is repaired: the one is stuck on
    it, or the other no longer takes it as it did. None where nothing is.
    """
    session = session_of(before, shape)
    taken = refusal(FAMILIES[before], session, form, thinking=shape.thinking) is None
    try:
        after = healed(session, now, form, shape)
        if (before, shape.name) in TOLD_BY_ITS_REFUSAL or not taken:
            after = healed(after, before, form, shape)
    except StillRefusedError as stuck:
        return str(stuck)
    return refusal(FAMILIES[before], after, form, thinking=shape.thinking)


def failure_of(family: Family, session: Session, said: str) -> Failure:
    """The failure that the client would have recorded of these words; "crash" is one that it did not send."""
    who = (family.provider, family.model, family.protocol)
    if said == "crash":
        return Failure(session.store, session.id, "msg_zzz", 0, RecordedError(), *who)
    data = {"message": said, "statusCode": 400, "responseBody": json.dumps(WRAPPED[family.name](said))}
    url = {"url": f"http://127.0.0.1:1{PATHS[family.name]}"}
    error = read_error({"name": "APIError", "data": {**data, "metadata": url}})
    return Failure(session.store, session.id, "msg_zzz", 0, error, *who)


def built(family: Family, session: Session, form: str) -> Request:
    """The next request of a session."""
    failure = failure_of(family, session, family.said or "crash")
    return wires_of(failure, protocol_of(failure), [Form.named(form)])[0].build(session)


def refusal(family: Family, session: Session, form: str, *, thinking: bool) -> str | None:
    """What the fake says of it."""
    request = built(family, session, form)
    if request.unsendable:
        return "crash"
    messages: list[dict[str, Any]] = [
        {"role": turn.role, "content": [dict(b.body) for b in turn.blocks]} for turn in request.turns
    ]
    if request.flat:
        messages = [{"role": m["role"], "content": [_joined(m["content"])]} for m in messages]
    return REFUSALS[family.name](THINKING[thinking], messages)


def _joined(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    if len(blocks) < 2:
        return blocks[0]
    return {**blocks[0], "content": [block["content"][-1] for block in blocks]}


def planned(family: Family, session: Session, form: str, said: str, *also: str) -> tuple[Edit, ...] | Refusal:
    """The product's plan for what was said of a prompt that asked this family; `also` for these forms of the client."""
    session = _asking(family, session)
    failure = failure_of(family, session, said)
    evidence = Refused(Kind.UNSENDABLE_PART) if said == "crash" else classify(failure.error)
    if evidence is None:
        return Refusal("the words have no kind")
    if KINDS[evidence.kind].unrepaired and "invent_reasoning" not in family.settings:
        return Refusal(KINDS[evidence.kind].unrepaired)
    wires = wires_of(failure, protocol_of(failure), [Form.named(name) for name in (form, *also)])
    made = plan(PlanInput(session, failure, evidence, Settings(), wires, rules_for(failure, wires), EDITOR))
    return made if isinstance(made, Refusal) else made.edits


def _asking(family: Family, session: Session) -> Session:
    """The session whose last prompt names the model of this family, as the one that was refused does."""
    last = next((m for m in reversed(session.messages) if "model" in m.data), None)
    if last is None:
        return session
    asking = replace(last, data={**last.data, "model": dict(family.ids)})
    return replace(session, messages=tuple(asking if one is last else one for one in session.messages))
