"""What the client sends for a stored session: the Anthropic messages, each block remembering its part.

OpenCode turns stored messages into the AI SDK's UI messages, those into model messages, and the SDK's Anthropic
provider turns them into the request. This module does the three steps in one, and is held to the bodies that the
real client sent (tests/e2e/test_wire.py). Only what differs between client versions stands in `Form`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recoveryd.model import Json, Message, Part, Session
from recoveryd.wire_parts import CannotSend, file, reasoning, sound_metadata, text, tool

PROMPT = "continue"  # stands for what the user will type next
# What JavaScript's trim() takes away, which is not what str.strip() does.
JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Block:
    """One content block as it is sent, without `cache_control`, and the stored part that it comes from."""

    body: Json
    message_id: str
    part_id: str

    @property
    def type(self) -> str:
        return str(self.body["type"])

    @property
    def is_thinking(self) -> bool:
        return self.type in _THINKING


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the request: neighbours of a role are one. `origins`: the stored messages it is made of,
    each with the part behind which its step ends, also where nothing of them is sent."""

    role: str
    blocks: tuple[Block, ...]
    origins: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Unsendable:
    """A part for which the client can't build any request at all."""

    message_id: str
    part_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wire:
    turns: tuple[Turn, ...]
    unsendable: tuple[Unsendable, ...] = ()

    def blocks(self) -> Iterator[Block]:
        for turn in self.turns:
            yield from turn.blocks

    def at(self, message: int, content: int | None) -> Block | None:
        """The block that a provider calls `messages.<message>.content.<content>`."""
        if not 0 <= message < len(self.turns):
            return None
        blocks = self.turns[message].blocks
        index = 0 if content is None else content
        return blocks[index] if 0 <= index < len(blocks) else None


@dataclass(frozen=True, slots=True)
class Request:
    """What the session alone does not say: the model that is asked, and the client's own prompt, if one is to come."""

    provider: str
    model: str
    prompt: str | None = PROMPT


@dataclass(slots=True)
class _Draft:
    """Model messages while they are made: (role, blocks, origin). Neighbours are merged at the end."""

    request: Request
    out: list[tuple[str, list[Block], tuple[str, str]]] = field(default_factory=list)
    unsendable: list[Unsendable] = field(default_factory=list)

    def fail(self, part: Part, reason: str) -> None:
        self.unsendable.append(Unsendable(part.message_id, part.id, reason))


def build(session: Session, request: Request) -> Wire:
    """The request that the client would send for `session`, with `request.prompt` typed by the user behind it."""
    draft = _Draft(request)
    for message in sent_messages(session):
        for part in message.parts:
            if part.data is None:
                draft.fail(part, "the stored part is not JSON")
        if message.role == "user":
            _user(draft, message)
        elif message.role == "assistant" and not _left_out(message):
            _assistant(draft, message)
    if request.prompt is not None:
        draft.out.append(("user", [Block({"type": "text", "text": request.prompt}, "", "")], ("", "")))
    return Wire(_merge(draft.out), tuple(draft.unsendable))


def sent_messages(session: Session) -> Sequence[Message]:
    """The stored messages that a request is made of: not what is reverted, not what a compaction replaced."""
    messages = list(session.messages)
    target = session.revert.get("messageID") if session.revert else None
    cut = next((i for i, m in enumerate(messages) if m.id == target), len(messages))
    messages = messages[:cut]
    answered: set[Any] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.id in answered and any(p.type == "compaction" for p in message.parts):
            return messages[index:]
        if message.role == "assistant" and message.data.get("summary") and message.data.get("finish"):
            answered.add(message.data.get("parentID"))
    return messages


def _left_out(message: Message) -> bool:
    """A failed turn is not sent, but for an aborted one that had got somewhere."""
    error = message.data.get("error")
    if not error:
        return False
    aborted = isinstance(error, Mapping) and error.get("name") == "MessageAbortedError"
    return not (aborted and any(p.type not in ("step-start", "reasoning") for p in message.parts))


def _user(draft: _Draft, message: Message) -> None:
    blocks: list[Block] = []
    for part in message.parts:
        try:
            body = _user_part(part)
        except CannotSend as error:
            draft.fail(part, str(error))
            continue
        if body is not None and body.get("text") != "":
            blocks.append(Block(body, message.id, part.id))
    if blocks:
        draft.out.append(("user", blocks, (message.id, message.parts[-1].id)))


def _user_part(part: Part) -> Json | None:
    data = part.data or {}
    match part.type:
        case "text" if not data.get("ignored"):
            return text(data)
        case "file" if data.get("mime") not in ("text/plain", "application/x-directory"):
            return file(data)
        case "compaction":
            return {"type": "text", "text": "What did we do so far?"}
        case "subtask":
            return {"type": "text", "text": "The following tool was executed by the user"}
    return None


def _assistant(draft: _Draft, message: Message) -> None:
    data = message.data
    foreign = (data.get("providerID"), data.get("modelID")) != (draft.request.provider, draft.request.model)
    for step in _steps(message.parts):
        origin = (message.id, step[-1].id)
        content: list[Block] = []
        results: list[Block] = []
        silent = False
        for part in step:
            try:
                body, result = _assistant_part(part, foreign, draft.request.model)
            except CannotSend as error:
                draft.fail(part, str(error))
                continue
            if body is not None:
                content.append(Block(body, message.id, part.id))
            if result is not None:
                results.append(Block(result, message.id, part.id))
            # Reasoning that is not sent still keeps its message in the request, as `content: []`.
            silent = silent or (part.type == "reasoning" and (part.data or {}).get("text") != "")
        if content or silent:
            draft.out.append(("assistant", content, origin))
        if results:
            draft.out.append(("user", results, origin))


def _steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    step: list[Part] = []
    for part in parts:
        if part.type == "step-start":
            if step:
                yield step
            step = []
        else:
            step.append(part)
    if step:
        yield step


def _assistant_part(part: Part, foreign: bool, model: str) -> tuple[Json | None, Json | None]:
    """The block, and the tool result that follows the step. Another model's metadata is not sent."""
    data = part.data or {}
    metadata = None if foreign else data.get("metadata")
    if part.type in ("text", "reasoning", "tool") and not sound_metadata(metadata):
        raise CannotSend("its metadata is not an object of objects")
    match part.type:
        case "text":
            body = text(data)
            return (body if body["text"] != "" else None), None
        case "reasoning":
            return reasoning(data, metadata), None
        case "tool":
            return tool(data, model)
    return None, None


def _merge(out: Sequence[tuple[str, list[Block], tuple[str, str]]]) -> tuple[Turn, ...]:
    turns: list[tuple[str, list[Block], list[tuple[str, str]]]] = []
    for role, blocks, origin in out:
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
            turns[-1][2].append(origin)
        else:
            turns.append((role, list(blocks), [origin]))
    if turns and turns[-1][0] == "assistant" and turns[-1][1]:
        last = turns[-1][1][-1]
        if last.type == "text":
            text = str(last.body["text"]).strip(JS_SPACE)
            turns[-1][1][-1] = Block({**last.body, "text": text}, last.message_id, last.part_id)
    return tuple(Turn(role, tuple(blocks), tuple(origins)) for role, blocks, origins in turns)
