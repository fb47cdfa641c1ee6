"""What is sent to a provider, each block with the stored part that it comes from, and the port that tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from recoveryd.core.model import Json, Session

_THINKING = ("thinking", "redacted_thinking", "reasoning")
_SUMMARIES = ("compaction", "context_compaction")


@dataclass(slots=True)  # not frozen: of a long session there are 100,000, and that takes four times as long
class Block:
    """One content block as it is sent, without `cache_control`, and the stored part that it comes from."""

    body: Json
    message_id: str
    part_id: str
    unfinished: bool = False  # a result that the client makes up, for a call that never ended
    carriers: tuple[tuple[str, str], ...] = ()  # message and part ids of all that hold it, where not that part alone

    @property
    def type(self) -> str:
        """The block's `type`, as the protocol spells it."""
        return str(self.body["type"])

    @property
    def is_thinking(self) -> bool:
        """Whether the block is the model's thinking, in whatever protocol."""
        return self.type in _THINKING

    @property
    def is_summary(self) -> bool:
        """Whether the block is what a compaction made of all before it, in whatever protocol."""
        return self.type in _SUMMARIES


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
    fault: str  # as in `CannotSend`


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sends for a session: its turns, and the parts because of which it can send nothing.

    `flat`: the protocol sends no turns but a list of items (OpenAI's Responses). Each item is a turn of one block then,
    whose body is the item, and a place in an item's content is a place in that block. A prompt of several parts is one
    item, too, and has a block for each.

    `padded`: the client sends messages of its own between these, two for each of the user's at the most, and blocks of
    its own before theirs; so a place in an error lies further on.

    `by_others`: the stored answers that the model which is asked did not give, as far as is known. `models_told`: the
    session tells of its answers which model gave them.
    """

    turns: tuple[Turn, ...]
    unsendable: tuple[Unsendable, ...] = ()
    flat: bool = False
    padded: bool = False
    by_others: frozenset[str] = frozenset()
    models_told: bool = False

    def blocks(self) -> Iterator[Block]:
        """Go through all blocks, in the order of the request."""
        for turn in self.turns:
            yield from turn.blocks

    def at(self, message: int, content: int | None) -> Block | None:
        """Find the block that a provider calls `messages.<message>.content.<content>`, or that holds
        `input[<message>]`; None where it has no such place.
        """
        if not 0 <= message < len(self.turns):
            return None
        blocks = self.turns[message].blocks
        if self.flat and len(blocks) == 1 and content is not None:
            held = blocks[0].body.get("content", blocks[0].body.get("output"))
            return None if isinstance(held, (list, tuple)) and content >= len(held) else blocks[0]
        index = content or 0
        return blocks[index] if 0 <= index < len(blocks) else None

    def may_be_at(self, message: int, content: int | None) -> list[Block]:
        """List the blocks that a provider may mean by a place: that of `at`, or of a padded request those before it."""
        if not self.padded:
            named = self.at(message, content)
            return [named] if named is not None else []
        end = None if content is None else content + 1
        return [block for turn in self.turns[message // 2 : message + 1] for block in turn.blocks[:end]]

    def may_be_behind(self, message: int, content: int | None) -> list[Block]:
        """List the blocks that a provider may mean by a place of a request that goes on from an earlier one: it counts
        from the begin, from behind what the client tells the model there, or from behind the model's last answer.
        """
        told = next((at for at, turn in enumerate(self.turns) if any(b.part_id for b in turn.blocks)), 0)
        answered = max((at + 1 for at, turn in enumerate(self.turns) if turn.role == "assistant"), default=0)
        found = (self.at(begin + message, content) for begin in sorted({0, told, answered}))
        return [block for block in found if block is not None]


class Wire(Protocol):
    """The port that makes a request: one way in which a client may send a session, by version, model and protocol."""

    @property
    def protocol(self) -> str:
        """The provider's API that is spoken, as "anthropic.messages"."""

    @property
    def form_name(self) -> str:
        """The form of the client's versions, as a bug report names it."""

    def build(self, session: Session) -> Request:
        """Build the next request: what is stored, with a prompt of the user behind it."""

    def stored(self, session: Session) -> Request:
        """Build the request for what is stored alone, as it was when its last prompt was sent."""
