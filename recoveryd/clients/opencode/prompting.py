"""Prompt OpenCode as the user last did, marked as a prompt of ours. Held to 1.1.53 and 1.18.33. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from recoveryd.clients.client import Prompt
from recoveryd.core import Failure, Message, Session

_MARK = {"resume": True}


def prompt_body(how: Prompt, text: str, recovery: str) -> dict[str, Any]:
    """Make the body of a prompt to OpenCode, `prompt_async` (in both clients the variant stands beside the model,
    wherever it is stored).
    """
    part = {"type": "text", "text": text, "metadata": {"recoveryd": {"recovery": recovery, **_MARK}}}
    fields = {"agent": how.agent, "model": how.model, "variant": how.variant}
    return {"parts": [part], **{name: value for name, value in fields.items() if value is not None}}


def resumed_by(message: Message) -> str | None:
    """Tell whose a prompt is: the id of the recovery that sent it; None for the user's own."""
    for part in message.parts if message.role == "user" else ():
        metadata = (part.data or {}).get("metadata")
        mark = metadata.get("recoveryd") if isinstance(metadata, Mapping) else None
        if isinstance(mark, Mapping) and mark.get("resume") is True:
            return str(mark.get("recovery"))
    return None


def on_its_way(session: Session, failure: Failure, ms: int) -> bool:
    """Whether what was refused since may have been read before `ms`: its prompt was stored by then, and no answer to it
    (seen on 1.18.34). For each further step all is read anew. Of a compaction that failed it is not said: it hides
    what stands before it, and that is not to wait.
    """
    failed = session.message(failure.message)
    asked = session.message(str(failed.data.get("parentID"))) if failed is not None else None
    if failed is None or asked is None or failed.data.get("summary") is True:
        return False
    steps = [message.id for message in session.messages if message.data.get("parentID") == asked.id]
    return asked.created <= ms and steps == [failed.id]


def by_shell(message: Message, parts: Iterable[Mapping[str, Any] | None]) -> bool:
    """Tell whose an answer is: whether it, with these `parts`, came of a command that the user ran: `!ls`, or
    one that another agent does (`/review`).

    No model was asked for it: a call, and neither how the answer finished nor a step. The second says "tool-calls" all
    the same, where a model's has the end of its step then (both seen on 1.1.53 and 1.18.34, the second on 1.2.1, too).
    What a repair added to it tells nothing: the beginning of a step and a text, or reasoning that it made up.
    """
    if message.role != "assistant" or not message.completed or message.error is not None:
        return False
    own = (part or {} for part in parts if not (by_repair(part) and (part or {}).get("type") == "reasoning"))
    there = {part.get("type") for part in own} if message.data.get("finish") in (None, "", "tool-calls") else set()
    return "tool" in there and there.isdisjoint(("step-finish", "reasoning"))


def fields_of_prompt(like: Message | None, answer: Message, at: int) -> dict[str, Any]:
    """Make the fields of a prompt that a repair adds before an answer, with agent and model as the session's own have
    them. `like`: one of those; `at`: its time.
    """
    if like is not None:
        kept = {key: like.data[key] for key in ("agent", "model") if key in like.data}
    else:
        model = {key: answer.data[key] for key in ("providerID", "modelID") if key in answer.data}
        kept = {"agent": answer.data.get("agent", "build"), "model": model}
    return {"time": {"created": at}, **kept}


def fields_of_answer(asked: Message, last: Message | None, directory: str, at: int) -> dict[str, Any]:
    """Make the fields of an answer that a repair adds to a prompt, as OpenCode stores those that it prompted a model
    for. `last`: the one before; `at`: its time.

    Its tokens are those of the last, so that the client goes on knowing how long the conversation is; but it has none
    of its own, by which `added` knows it.
    """
    fields: Mapping[str, Any] = last.data if last is not None else {}
    model = _model(asked.data) or {}
    tokens = {"input": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    known = fields.get("tokens")
    return {
        "agent": asked.data.get("agent", "build"),
        "mode": asked.data.get("agent", "build"),
        "path": {"cwd": directory, "root": directory},
        **model,
        **{key: fields[key] for key in ("agent", "mode", "path", "providerID", "modelID") if key in fields},
        "time": {"created": at, "completed": at},
        "cost": 0,
        "tokens": {**tokens, **(known if isinstance(known, Mapping) else {}), "output": 0},
        "finish": "stop",
    }


def by_repair(part: Mapping[str, Any] | None) -> bool:
    """Whether a repair put a part in or changed it."""
    metadata = (part or {}).get("metadata")
    return isinstance(metadata, Mapping) and "recoveryd" in metadata


def put_in_by_repair(message: Message, parts: Callable[[str], Iterable[Mapping[str, Any] | None]]) -> bool:
    """Tell whose an answer is: whether a repair put it in, and no model gave it. `parts` reads those of a message."""
    tokens = message.data.get("tokens")
    if message.data.get("cost") != 0 or not isinstance(tokens, Mapping) or tokens.get("output") != 0:
        return False
    own = [by_repair(part) for part in parts(message.id)]
    return bool(own) and all(own)


def last_prompt(session: Session) -> Prompt:
    """Return how the user prompted last: the settings of OpenCode's newest prompt that was not ours."""
    own = [m for m in session.messages if m.role == "user" and resumed_by(m) is None]
    asked: Mapping[str, Any] = max(own, key=lambda message: message.by_time).data if own else {}
    return Prompt(_text(asked, "agent"), _model(asked), _variant(asked))


def folder_of(message: Message) -> str:
    """Return the folder that the client worked in for an answer; "" of a prompt. 1.1 and 1.2 work in the one where they
    were started, which may be another worktree or a subfolder; 1.18 in that of the session (seen on 1.2.1, 1.18.34).
    """
    path = message.data.get("path")
    return _text(path, "cwd") or "" if isinstance(path, Mapping) else ""


def stopped(message: Message) -> bool:
    """Tell what became of a prompt: whether OpenCode's user stopped its answer (a provider's abort lands there, too).

    While it waits to ask again after a refusal, 1.18 stores no error then: an answer that ended without anything.
    """
    if message.error is not None:
        return message.error.get("name") == "MessageAbortedError"
    ended = message.role == "assistant" and message.completed and not message.data.get("finish")
    return bool(ended) and not message.parts


def _model(asked: Mapping[str, Any]) -> dict[str, str] | None:
    model = asked.get("model")
    if not isinstance(model, Mapping):
        return None
    provider, name = _text(model, "providerID"), _text(model, "modelID")
    return {"providerID": provider, "modelID": name} if provider and name else None


def _variant(asked: Mapping[str, Any]) -> str | None:
    """Return the variant: 1.1 stores it beside the model, 1.18 in it."""
    model = asked.get("model")
    return _text(asked, "variant") or (_text(model, "variant") if isinstance(model, Mapping) else None)


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
