"""Fix images and documents that the provider does not take: a text says what was taken out; the ledger has the
original.
"""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Block, Edits, Json, Violation
from recoveryd.repair.inputs import RepairInput


def take_out_media(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Take out the media that is refused.

    Where one is only too large among many, any of those will do, so many as have to go: the latest, or first the parts
    that hold the most.
    """
    assert violation.block is not None
    if violation.sources:
        return (_meant(given, violation),)
    chosen = [[violation.block]]
    if violation.excess:
        latest = _refused(given)
        heaviest = sorted(latest, key=lambda block: -_count(given, block))
        chosen = [_enough(given, latest, violation.excess), _enough(given, heaviest, violation.excess)]

    def fault(source: Json) -> str | None:
        return given.provider.media_fault(source, given.request)

    return [given.editor.take_out_media(blocks, fault, violation.reason) for blocks in chosen]


def _meant(given: RepairInput, violation: Violation) -> Edits:
    """List all blocks that the error means, at once: many images may have to go before a request is small enough."""
    meant = [other for other in given.found if other.sources and other.block is not None]
    reasons = {id(source): other.reason for other in meant for source in other.sources}

    def fault(source: Json) -> str | None:
        return reasons.get(id(source))

    return given.editor.take_out_media([v.block for v in meant if v.block is not None], fault, violation.reason)


def _refused(given: RepairInput) -> list[Block]:
    """List the images and documents that are refused, the latest first."""
    request = given.request

    def faults(block: Block) -> bool:
        return any(given.provider.media_fault(source, request) for source in given.provider.sources(block.body))

    return [block for block in request.blocks() if faults(block)][::-1]


def _count(given: RepairInput, block: Block) -> int:
    return sum(1 for _ in given.provider.sources(block.body))


def _enough(given: RepairInput, large: Sequence[Block], excess: int) -> list[Block]:
    """Take the first blocks, so many that no more than the provider takes are left."""
    chosen: list[Block] = []
    for block in large:
        if excess > 0:
            chosen.append(block)
            excess -= _count(given, block)
    return chosen
