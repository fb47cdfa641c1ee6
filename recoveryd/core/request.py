"""What is sent to a provider: turns of blocks, each with the stored part that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recoveryd.core.model import Json

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
    fault: str  # as in `CannotSend`


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
