"""What the strict provider of the tests says of a session as the product's `wire` sends it, and the case it makes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.wire.anthropic import PROMPT, AnthropicMessages
from recoveryd.clients.opencode.wire.form import OLD, Form
from recoveryd.core.editor import Marks
from recoveryd.core.model import Message, Part, Session
from recoveryd.core.request import Request
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.repair.fixes import Settings
from recoveryd.repair.inputs import PlanInput
from tests.e2e import content_rules, thinking_rules
from tests.e2e.strict import Refusal, Strict, merged
from tests.support.build import MODEL, api_error
from tests.support.planted import Planted
from tests.support.refused import refused
from tests.support.values import as_failure, as_session

NOW = 1_791_000_000_000  # ms: behind all that is generated, and so are the ids of `prompted`
WIRE = AnthropicMessages(MODEL["providerID"], MODEL["modelID"])
EDITOR = partial(OpencodeEditor, marks=Marks("rtest", NOW))
SIGNATURE = frozenset({"thinking_signature_invalid", "thinking_block_modified"})


def wires(*forms: Form) -> tuple[AnthropicMessages, ...]:
    """New ones: each remembers what it converted."""
    return tuple(replace(WIRE, form=form) for form in forms)


def body(request: Request, thinking: bool) -> dict[str, Any]:
    """The request, as far as the rules look at it."""
    messages = [{"role": turn.role, "content": [dict(block.body) for block in turn.blocks]} for turn in request.turns]
    on = {"thinking": {"type": "enabled", "budget_tokens": 1000}} if thinking else {}
    return {"model": WIRE.model, "system": "be kind", "tools": [{"name": "bash"}], "messages": messages, **on}


def wire_of(session: Session, form: Form = OLD) -> Request:
    """The next request of a session."""
    return wires(form)[0].build(session)


def refusal(session: Session, thinking: bool, strict: Strict | None = None, form: Form = OLD) -> Refusal | None:
    """What the provider says to the next prompt; `strict` may know what thinking is bound to."""
    sent = body(wire_of(session, form), thinking)
    return (strict or Strict()).check(json.dumps(sent).encode())[1]


def refused_in_every_way(session: Session, form: Form = OLD) -> bool:
    """Whether the provider refuses the next prompt with thinking on and off."""
    return all(refusal(session, thinking, form=form) is not None for thinking in (True, False))


def as_it_came(planted: Planted, form: Form = OLD) -> Planted | None:
    """The session up to the answer with which its fault came: from there on the provider refuses the next prompt.

    None where it came with a prompt, which was refused at once, and where there is a way that is accepted.
    """
    session = as_session(planted)

    def refused_at(n: int) -> bool:
        return refused_in_every_way(replace(session, messages=session.messages[:n]), form)

    sound, broken = 0, len(session.messages)
    if not refused_at(broken):
        return None
    while broken - sound > 1:  # what is sound with so many messages, and broken with so many
        half = (sound + broken) // 2
        sound, broken = (sound, half) if refused_at(half) else (half, broken)
    if session.messages[broken - 1].role != "assistant":
        return None
    left = {message.id for message in session.messages[:broken]}
    return replace(planted, messages=[message for message in planted.messages if message["id"] in left])


def bound_to(session: Session, form: Form = OLD) -> Strict:
    """A provider that binds the session's thinking to what stands before it now."""
    strict = Strict(bound=True)
    sent = body(wire_of(session, form), thinking=False)
    strict.bindings.learn(sent, merged(sent["messages"]))
    return strict


def kinds(request: Request, thinking: bool) -> set[str]:
    """Every kind that the provider's rules find, but for signatures: not the first one alone."""
    messages = merged(body(request, thinking)["messages"])
    found = {
        "empty_content": content_rules.empty(messages),
        "role_order": content_rules.role_order(messages),
        "tool_result_missing": content_rules.missing(messages),
        "tool_result_orphan": content_rules.orphans(messages),
        "thinking_final_block": thinking_rules.final_block(messages),
        "thinking_block_order": thinking_rules.order(messages) if thinking else None,
        "thinking_disabled_violation": None if thinking else thinking_rules.disabled(messages),
    }
    return {kind for kind, fault in found.items() if fault}


@dataclass(frozen=True)
class Stuck:
    """A session with the prompt that was refused and the empty message of its failure, as the client leaves them."""

    case: PlanInput
    refusal: Refusal

    @property
    def session(self) -> Session:
        return self.case.session


def stuck(
    session: Session, thinking: bool, settings: Settings | None = None, forms: tuple[Form, ...] = (OLD,)
) -> Stuck | None:
    """The session after one more prompt, sent in the first of `forms`; None when the prompt was accepted."""
    why = refusal(session, thinking, form=forms[0])
    if why is None:
        return None
    error = api_error(why.message, 400)
    asked, answered = prompted(session, thinking, error)
    after = replace(session, messages=(*session.messages, asked, answered))
    evidence = refused(error)
    assert evidence is not None, why
    failure = as_failure(after, error, answered.id)
    return Stuck(PlanInput(after, failure, evidence, settings or Settings(), wires(*forms), ANTHROPIC, EDITOR), why)


def prompted(session: Session, thinking: bool, error: dict[str, Any] | None = None) -> tuple[Message, Message]:
    """The next prompt, and its answer: a failure where there is an error."""
    number = len(session.messages)
    made = NOW + number * 1000
    ids = [f"msg_f{number:011d}AAAAAAAAAAAAA{letter}" for letter in "ab"]
    variant = {"variant": "high"} if thinking else {}
    asked: dict[str, Any] = {
        "id": ids[0],
        "sessionID": session.id,
        "role": "user",
        "time": {"created": made},
        "agent": "build",
    }
    part_id = "prt_" + ids[0].removeprefix("msg_")
    part = {"id": part_id, "sessionID": session.id, "messageID": ids[0], "type": "text", "text": PROMPT}
    answer: dict[str, Any] = {"id": ids[1], "sessionID": session.id, "role": "assistant", "parentID": ids[0], **MODEL}
    answer |= {"time": {"created": made + 5, "completed": made + 9}, **({"error": error} if error else {})}
    question = Message(ids[0], {**asked, "model": dict(MODEL), **variant}, (Part(part_id, ids[0], part),))
    return question, Message(ids[1], answer)
