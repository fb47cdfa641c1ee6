"""A provider whose SDK is not known here: nothing is said of its requests but that none can be built at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SdkWire, SentMessage, block
from recoveryd.core import Block, Turn


@dataclass(frozen=True)
class UnknownSdk(SdkWire):
    """The `Wire` of OpenCode to a provider whose SDK is not known here: it has no turns, and only those
    parts on which the client itself fails.
    """

    protocol: ClassVar[str] = ""

    def in_results(self, mime: str) -> bool:
        del mime
        return True

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        del pieces
        return None

    def file(self, piece: Piece) -> Block:
        return block(piece, {"type": "file"})

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        del pieces
        return []

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        del entries
        return ()
