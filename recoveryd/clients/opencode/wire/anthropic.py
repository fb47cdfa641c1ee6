"""What the client sends for a stored session: the Anthropic messages, each block remembering its part.

OpenCode turns stored messages into the AI SDK's UI messages, those into model messages, and the SDK's Anthropic
provider turns them into the request. This module does the three steps in one, and is held to the bodies that the
real client sent (tests/e2e/test_wire.py). Only what differs between client versions stands in `Form`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from recoveryd.clients.opencode.wire.anthropic_media import CannotSend
from recoveryd.clients.opencode.wire.anthropic_parts import JS_SPACE, assistant_part, signed, user_part
from recoveryd.clients.opencode.wire.form import OLD, Form
from recoveryd.clients.opencode.wire.history import history, left_out, read_along
from recoveryd.core import Block, Message, Part, Request, Session, Turn, Unsendable

PROMPT = "continue"  # stands for what the user will type next


@dataclass(slots=True)
class _Draft:
    """Model messages of one stored message: (role, blocks, origin), and what of it can't be sent."""

    out: list[tuple[str, list[Block], tuple[str, str]]] = field(default_factory=list)
    unsendable: list[Unsendable] = field(default_factory=list)

    def fail(self, part: Part, error: CannotSend) -> None:
        self.unsendable.append(Unsendable(part.message_id, part.id, str(error), error.fault))

    def unreadable(self) -> list[Unsendable]:
        return [stuck for stuck in self.unsendable if stuck.fault == "not_json"]


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The `Wire` of OpenCode to an Anthropic provider: what the session alone does not say.

    `provider` and `model` are those of the next prompt. A message that did not change is converted once, however often
    its session is edited: keep one no longer than the work on one session takes.
    """

    provider: str
    model: str
    form: Form = OLD
    protocol: ClassVar[str] = "anthropic.messages"
    # By identity of the message, which is held, so it stays its own.
    _drafts: dict[int, tuple[Message, _Draft]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def form_name(self) -> str:
        return self.form.name

    def build(self, session: Session) -> Request:
        """The request that the client would send with a prompt of the user behind what is stored."""
        return self._built(session, [("user", [Block({"type": "text", "text": PROMPT}, "", "")], ("", ""))])

    def stored(self, session: Session) -> Request:
        """The request that the client sent for what is stored."""
        return self._built(session, [])

    def _built(self, session: Session, more: list[tuple[str, list[Block], tuple[str, str]]]) -> Request:
        drafts = [self._draft(message) for message in history(session, self.form)]
        read = read_along(session, self.form)
        broken = [message for message in read if any(part.data is None for part in message.parts)]
        drafts += [_Draft([], self._draft(message).unreadable()) for message in broken]
        out = [entry for draft in drafts for entry in draft.out]
        return Request(
            _merge(out + more), tuple(dict.fromkeys(stuck for draft in drafts for stuck in draft.unsendable))
        )

    def _draft(self, message: Message) -> _Draft:
        known = self._drafts.get(id(message))
        if known is not None:
            return known[1]
        draft = _Draft()
        for part in message.parts:
            if part.data is None:
                draft.fail(part, CannotSend("not_json", "the stored part is not JSON"))
        if not left_out(message):
            (_user if message.role == "user" else _assistant)(draft, message, self)
        self._drafts[id(message)] = message, draft
        return draft


def _user(draft: _Draft, message: Message, wire: AnthropicMessages) -> None:
    blocks: list[Block] = []
    for part in message.parts:
        try:
            body = user_part(part, wire.form)
        except CannotSend as error:
            draft.fail(part, error)
            continue
        if body is not None and body.get("text") != "":
            blocks.append(Block(body, message.id, part.id))
    if blocks:
        draft.out.append(("user", blocks, (message.id, message.parts[-1].id)))


def _assistant(draft: _Draft, message: Message, wire: AnthropicMessages) -> None:
    data = message.data
    foreign = (data.get("providerID"), data.get("modelID")) != (wire.provider, wire.model)
    # An empty text is sent as a blank where there is thinking that its provider signed.
    blank = " " if wire.form.spaces_empty_text and any(signed(part) for part in message.parts) else ""
    for step in _steps(message.parts):
        origin = (message.id, step[-1].id)
        content: list[Block] = []
        results: list[Block] = []
        silent = False
        for part in step:
            try:
                sent = assistant_part(part, foreign, wire.model, wire.form, blank)
            except CannotSend as error:
                draft.fail(part, error)
                continue
            content += [Block(body, message.id, part.id) for body in sent.content]
            results += [Block(body, message.id, part.id, sent.unfinished) for body in sent.results]
            silent = silent or sent.silent
        if content or silent:
            moved = _text_first(content) if wire.form.moves_text else content
            draft.out.append(("assistant", moved, origin))
        if results:
            draft.out.append(("user", results, origin))


def _text_first(content: Sequence[Block]) -> list[Block]:
    """Text in front of the calls that stand before it, up to the last thinking."""
    out: list[Block] = []
    calls: list[Block] = []
    for block in content:
        if block.type == "tool_use":
            calls.append(block)
            continue
        if block.is_thinking:
            out += calls
            calls = []
        out.append(block)
    return out + calls


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
