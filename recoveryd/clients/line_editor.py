"""What editors have in common that write over lines where they stand: no line can be put between two others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recoveryd.core import Block, Edits, Marks, Part, Session, Turn


@dataclass(frozen=True, slots=True)
class LineEditor:
    """The half of an `Editor` that makes no edit: what asks for a new line, and what these clients do themselves."""

    session: Session
    marks: Marks

    def cancel_call(self, block: Block, words: str) -> Edits:
        """Edit nothing: the client gives such a call its output itself."""
        del block, words
        return ()

    def own_step(self, block: Block) -> Edits:
        del block
        return ()

    def reasoning_before(self, block: Block, words: str) -> Edits:
        del block, words
        return ()

    def words_behind(self, message_id: str, part_id: str | None, words: str) -> Edits:
        del message_id, part_id, words
        return ()

    def join_step(self, turn: Turn) -> Edits:
        del turn
        return ()

    def user_words_before(self, turns: Sequence[Turn], at: int, words: str) -> Sequence[Edits]:
        del turns, at, words
        return ()

    def answer_behind(self, turns: Sequence[Turn], at: int, words: str) -> Edits:
        del turns, at, words
        return ()

    def close_turn(self, turn: Turn, words: str) -> Edits:
        del turn, words
        return ()

    def mend_unicode(self, block: Block) -> Edits:
        """Edit nothing: the client does so itself."""
        del block
        return ()

    def rename_document(self, block: Block, name: str) -> Edits:
        """Edit nothing: no provider that the client asks refuses a document for its name."""
        del block, name
        return ()

    def _part(self, part_id: str) -> Part:
        part = self.session.part(part_id)
        assert part is not None, part_id
        return part

    def _parts(self) -> Iterator[Part]:
        for message in self.session.messages:
            yield from message.parts
