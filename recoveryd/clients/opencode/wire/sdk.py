"""The way from a stored session to a request, for any SDK: which messages go, what each becomes, how they merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import ClassVar

from recoveryd.clients.opencode.pruning import as_last_sent
from recoveryd.clients.opencode.wire.form import OLD, Form
from recoveryd.clients.opencode.wire.history import failed_on, history, read_along
from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import JS_SPACE, AskedModel, Origin, Piece, Said, model_messages
from recoveryd.core import Block, Json, Message, Part, Request, Session, Turn, Unsendable

PROMPT = "continue"  # stands for what the user will type next
_DONE = Block({"type": "text", "text": "Done."}, "", "")


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that is merged with its neighbours into what the AI SDK sends."""

    role: str
    blocks: tuple[Block, ...]
    origin: Origin
    by_tool: bool = False  # results, which most SDKs send as the user's


@dataclass(slots=True)
class _Draft:
    """What one stored message becomes, and what of it can't be sent. `unread`: files that the SDK can't send, with
    their type; words take their place where the model, by what the client knows of it, does not read them.
    """

    out: list[SentMessage] = field(default_factory=list)
    unsendable: list[Unsendable] = field(default_factory=list)
    unread: list[tuple[str, Unsendable]] = field(default_factory=list)

    def fail(self, part: Part, error: CannotSend) -> None:
        self.unsendable.append(_unsendable(part, error))

    def unreadable(self) -> list[Unsendable]:
        return [stuck for stuck in self.unsendable if stuck.fault == "not_json"]


@dataclass(frozen=True)
class SdkWire(ABC):
    """A `Wire` of OpenCode through one SDK: what the session alone does not say, and what that SDK makes of it.

    `provider` and `model` are those of the next prompt; `named`: the model by its name at the provider, where the
    client has another for it. A message that did not change is converted once, however often its session is edited:
    keep one no longer than the work on one session takes.
    """

    provider: str
    model: str
    form: Form = OLD
    named: str = ""
    protocol: ClassVar[str]
    # By identity of the message, which is held, so it stays its own.
    _drafts: dict[int, tuple[Message, _Draft]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _asked(self) -> AskedModel:
        return AskedModel(self.provider, self.model, self.called, self.form, self.in_results)

    @property
    def called(self) -> str:
        """The name that the provider gets, by which client and SDK tell what a model is."""
        return self.named or self.model

    @property
    def form_name(self) -> str:
        return self.form.name

    def build(self, session: Session) -> Request:
        """Build the request that the client would send with a prompt of the user behind what is stored."""
        return self._built(session, [SentMessage("user", (Block({"type": "text", "text": PROMPT}, "", ""),), ("", ""))])

    def stored(self, session: Session) -> Request:
        """Build the request that the client sent for what is stored."""
        return self._built(as_last_sent(session), [])

    def in_results(self, mime: str) -> bool:
        """Whether the client leaves a file of this type in the result of a tool."""
        del mime
        return False

    @abstractmethod
    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        """Make the blocks of an answer; None where the SDK sends no message for it. Raises `CannotSend`."""

    @abstractmethod
    def file(self, piece: Piece) -> Block:
        """Make the block of a file of the user. Raises `CannotSend`."""

    def prompt(self, pieces: Sequence[Piece]) -> list[Block] | None:
        """Make the blocks of a prompt; None where the SDK sends no message for it."""
        return [self.file(piece) if piece.kind == "file" else text_block(piece) for piece in pieces]

    @abstractmethod
    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        """Make the blocks of the results of calls."""

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        """Join the turns that the provider sees: neighbours of one role are one."""
        return merge_neighbours(entries)

    def _built(self, session: Session, more: list[SentMessage]) -> Request:
        drafts = [self._draft(message) for message in history(session, self.form)]
        read = read_along(session, self.form)
        broken = [message for message in read if any(part.data is None for part in message.parts)]
        drafts += [_Draft([], self._draft(message).unreadable()) for message in broken]
        entries = [*(entry for draft in drafts for entry in draft.out), *more]
        if self.form.mends_for_mistral(self.provider, self.called):
            entries = list(_answered_results(entries))
        types = {mime for draft in drafts for mime, _ in draft.unread}
        stop = {mime for mime in types if failed_on(session, self.provider, self.model, mime)}
        found = ((*draft.unsendable, *(stuck for mime, stuck in draft.unread if mime in stop)) for draft in drafts)
        stuck = tuple(dict.fromkeys(chain.from_iterable(found)))
        return Request(self.merge(entries), stuck)

    def _draft(self, message: Message) -> _Draft:
        known = self._drafts.get(id(message))
        if known is not None:
            return known[1]
        draft = _Draft()
        for part in message.parts:
            if part.data is None:
                draft.fail(part, CannotSend("not_json", "the stored part is not JSON"))
        said = model_messages(message, self._asked, draft.fail)
        draft.out = [entry for one in said for entry in self._entry(one, draft)]
        self._drafts[id(message)] = message, draft
        return draft

    def _entry(self, one: Said, draft: _Draft) -> Iterable[SentMessage]:
        try:
            blocks = self._blocks(one.role, one.pieces)
        except CannotSend:  # the whole request fails; all pieces that are to blame are named
            taken = (self._taken(one.role, piece, draft) for piece in one.pieces)
            blocks = self._blocks(one.role, [piece for piece in taken if piece is not None])
        if blocks is not None:
            role = "assistant" if one.role == "assistant" else "user"
            yield SentMessage(role, tuple(blocks), one.origin, by_tool=one.role == "tool")

    def _blocks(self, role: str, pieces: Sequence[Piece]) -> list[Block] | None:
        if role == "tool":
            return self.results(pieces)
        return (self.prompt if role == "user" else self.answer)(pieces)

    def _taken(self, role: str, piece: Piece, draft: _Draft) -> Piece | None:
        """Return a piece that the SDK can send, or the words that the client may have for it; None without any."""
        try:
            self._blocks(role, [piece])
        except CannotSend as error:
            words = piece.body.get("unread")
            if words is None:
                draft.fail(piece.part, error)
                return None
            draft.unread.append((piece.body["mime"], _unsendable(piece.part, error)))
            return Piece("text", {"text": words}, piece.part)
        return piece


def _unsendable(part: Part, error: CannotSend) -> Unsendable:
    return Unsendable(part.message_id, part.id, str(error), error.fault)


def block(piece: Piece, body: Json) -> Block:
    """Make, for an SDK's request, a block that comes from the part of `piece`."""
    return Block(body, piece.part.message_id, piece.part.id, piece.unfinished)


def text_block(piece: Piece) -> Block:
    """Make, for an SDK's request, the block of a text as it is."""
    return block(piece, {"type": "text", "text": piece.body["text"]})


def _answered_results(entries: Sequence[SentMessage]) -> Iterator[SentMessage]:
    """Put the client's words between a tool's result and a prompt, where Mistral's models want an answer."""
    for index, entry in enumerate(entries):
        yield entry
        following = entries[index + 1] if index + 1 < len(entries) else None
        if entry.by_tool and following is not None and following.role == "user" and not following.by_tool:
            yield SentMessage("assistant", (_DONE,), ("", ""))


def unmerged(entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
    """Make a request's turns by an SDK that merges nothing: each message is a turn of its own."""
    return tuple(Turn(entry.role, entry.blocks, (entry.origin,)) for entry in entries)


def merge_neighbours(entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
    """Merge messages of one role that are neighbours into one turn, as an SDK does; white space at the end of the last
    answer goes.
    """
    turns: list[tuple[str, list[Block], list[Origin]]] = []
    for entry in entries:
        if turns and turns[-1][0] == entry.role:
            turns[-1][1].extend(entry.blocks)
            turns[-1][2].append(entry.origin)
        else:
            turns.append((entry.role, list(entry.blocks), [entry.origin]))
    if turns and turns[-1][0] == "assistant" and turns[-1][1]:
        last = turns[-1][1][-1]
        if last.type == "text":
            text = str(last.body["text"]).strip(JS_SPACE)
            turns[-1][1][-1] = Block({**last.body, "text": text}, last.message_id, last.part_id)
    return tuple(Turn(role, tuple(blocks), tuple(origins)) for role, blocks, origins in turns)
