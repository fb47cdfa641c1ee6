"""Fix images and documents that the provider does not take: a text says what was taken out; the ledger has the
original.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recoveryd.core import Block, Edits, Json, Violation, media_of
from recoveryd.repair.inputs import RepairInput

Media = tuple[Block, Json, str]  # an image or document of a block, and why it is refused


def take_out_media(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Take out all media that is refused, and no other: many may have to go before a request is small enough.

    Where one is only too large among many, any of those will do, so many as have to go: the latest, or first the parts
    that hold the most.
    """
    refused = _refused(given, among_many=bool(violation.excess))
    if not violation.excess:
        return (_taken_out(given, refused),)
    latest = refused[::-1]
    held = [block.part_id for block, _, _ in latest]
    heaviest = sorted(latest, key=lambda one: -held.count(one[0].part_id))
    return [_taken_out(given, chosen[: violation.excess]) for chosen in (latest, heaviest)]


def _refused(given: RepairInput, *, among_many: bool) -> list[Media]:
    """List what is refused, in the order of the request: only because there are so many, or for itself."""
    found = [(one.block, one) for one in given.found if one.block is not None and bool(one.excess) == among_many]
    return [(block, source, why) for block, one in found for source, why in one.media]


def _taken_out(given: RepairInput, refused: Iterable[Media]) -> Edits:
    """Go by the data of each: the records hold it in other forms than the request."""
    reasons = {media_of(block, source): why for block, source, why in refused}
    blocks = {block.part_id: (block, why) for block, _, why in refused}
    found: list[Edits] = []
    for block, why in blocks.values():

        def fault(source: Json, of: Block = block) -> str | None:
            return reasons.get(media_of(of, source))

        found.append(given.editor.take_out_media(block, fault, why))
    return tuple(edit for edits in found for edit in edits)
