"""Fix images and documents that the provider does not take: a text says what was taken out; the ledger has the
original. One whose name alone is not taken gets another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from itertools import count

from recoveryd.core import Block, Edits, Json, Violation, media_of
from recoveryd.repair.inputs import RepairInput

Media = tuple[Block, Json, str]  # an image or document of a block, and why it is refused

# Of a document's name what any provider takes, and how long it may get.
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9()\[\] -]+")
_LONGEST = 100
_OF_NAMELESS = re.compile(r"document-\d+")  # what a client calls those that have no name, by their number


def mend_media(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Give a document another name where that alone is refused; else take out what is."""
    block = violation.block
    if violation.field != "title" or block is None:
        return take_out_media(given, violation)
    taken = {str(other.body.get("title")) for other in given.request.blocks()}
    return (given.editor.rename_document(block, _plain_name(block.body["title"], taken)),)


def _plain_name(name: str, taken: Container[str]) -> str:
    """Write a name in plain letters, near to what it was, as no other document has it."""
    letters = "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.combining(one))
    plain = " ".join(_NOT_PLAIN.sub("-", letters)[:_LONGEST].split()).strip("- ") or "file"
    numbered = (f"{plain} ({number})" for number in count(2))
    free = plain not in taken and not _OF_NAMELESS.fullmatch(plain)
    return plain if free else next(one for one in numbered if one not in taken)


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
