"""One thing that a provider would refuse, and what only the provider's error can tell."""

from __future__ import annotations

from dataclasses import dataclass

from recoveryd.core.image_header import media_mark
from recoveryd.core.model import Json, Kind, Limit
from recoveryd.core.request import Block


@dataclass(frozen=True, slots=True)
class Violation:
    """`turn` is the index in the request (`messages.N`); `block` is None when the whole turn is meant."""

    kind: Kind
    turn: int
    block: Block | None
    reason: str
    part_id: str = ""  # of a part that is in no block, because the client can't send it
    excess: int = 0  # it is refused only because there are many such: with so many fewer of them, none is
    field: str = ""  # of the block, where no more than that is refused
    media: tuple[tuple[Json, str], ...] = ()  # of the block, the images and documents that are meant, and why each is


@dataclass(frozen=True, slots=True)
class Claims:
    """What only a provider's error can tell of a request: the blocks that it accuses, and whether thinking is on.

    A signature can't be verified from outside. Whether thinking will be on is not stored, and what is right for an open
    tool loop with thinking on is wrong with it off: so a request must be right in both.
    """

    accused: frozenset[str] = frozenset()  # part ids of thinking blocks, of what is signed, of whole items
    media: frozenset[tuple[str, str]] = frozenset()  # of images and documents: part id, and `media_mark`
    over: Limit | None = None  # what of `media` there is too much of, as the error says
    fields: frozenset[tuple[str, str]] = frozenset()  # of items: part id, and the field that is refused
    tools: frozenset[str] = frozenset()  # names of tools that a search had found, and that the provider does not find
    lonely: frozenset[str] = frozenset()  # of `accused`: part ids of reasoning that lacks what it needs behind it
    followed: frozenset[str] = frozenset()  # part ids of reasoning that has what it needs behind it, as it was sent
    unfinished: frozenset[str] = frozenset()  # part ids of tool calls that the error names and that have no result
    thinking: frozenset[bool] = frozenset({True, False})
    image_bytes: int = 0  # that one image may have, as the error tells; 0: it does not
    longest_name: int = 0  # characters that the name of a tool call may have, as the error tells; 0: it does not
    longest_id: int = 0  # the same of its id
    empty: bool = False  # it speaks of messages without content
    alone: bool = False  # it means just the thinking that is accused, not what may be bound to it

    @property
    def accuses(self) -> bool:
        """Whether parts are meant by what the error says of them alone, beside any rule."""
        return bool(self.accused or self.media or self.fields or self.unfinished or self.tools)

    def means(self, block: Block, source: Json) -> bool:
        """Whether the error means this image or document of a block."""
        return any(part == block.part_id for part, _ in self.media) and media_of(block, source) in self.media


def media_of(block: Block, source: Json) -> tuple[str, str]:
    """Name an image or document of a block for `Claims.media`."""
    return block.part_id, media_mark(source)
