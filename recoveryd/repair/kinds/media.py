"""Images and documents that the provider does not take: a text says what was taken out; the ledger has the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.clients.opencode.wire.anthropic_media import media_source
from recoveryd.core.model import Edit, Json, Part
from recoveryd.core.request import Block
from recoveryd.core.violation import Violation
from recoveryd.providers.anthropic.media import MANY, fault, sources
from recoveryd.repair.bench import Bench


def rejected(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """Take out what is refused. Where it is only too large among many, any of those will do, so many as have to go: the
    latest, or first the parts that hold the most."""
    assert violation.block is not None
    chosen = [[violation.block]]
    if violation.reason.endswith("images"):
        latest = _too_large(bench)
        heaviest = sorted(latest, key=lambda block: -_count(block))
        excess = sum(map(_count, bench.wire.blocks())) - MANY
        chosen = [_enough(latest, excess), _enough(heaviest, excess)]
    return [
        tuple(_taken_out(bench, bench.part(block.part_id), violation.reason) for block in blocks if block.part_id)
        for blocks in chosen
    ]


def _too_large(bench: Bench) -> list[Block]:
    """What is refused of the images and documents, the latest first."""
    many = _many(bench)
    return [b for b in bench.wire.blocks() if any(fault(source, many=many) for source in sources(b.body))][::-1]


def _count(block: Block) -> int:
    return sum(1 for _ in sources(block.body))


def _enough(large: Sequence[Block], excess: int) -> list[Block]:
    """The first of them, so many that no more than the provider takes are left."""
    chosen: list[Block] = []
    for block in large:
        if excess > 0:
            chosen.append(block)
            excess -= _count(block)
    return chosen


def _many(bench: Bench) -> bool:
    return sum(map(_count, bench.wire.blocks())) > MANY


def _refused(bench: Bench, source: Json) -> str | None:
    return fault(source, many=_many(bench))


def _taken_out(bench: Bench, part: Part, reason: str) -> Edit:
    data = part.data or {}
    if part.type == "tool":
        return bench.replace(part, {"state": _without_media(bench, data["state"], reason)}, "take_out_media")
    kept = {key: data[key] for key in ("id", "sessionID", "messageID") if key in data}
    bare = Part(part.id, part.message_id, kept)
    return bench.replace(bare, {"type": "text", "text": note(data, reason)}, "take_out_media")


def _without_media(bench: Bench, state: Json, reason: str) -> Json:
    attachments = [item for item in state.get("attachments") or [] if isinstance(item, Mapping)]
    refused = [item for item in attachments if (s := media_source(item)) is not None and _refused(bench, s)]
    refused = refused or attachments  # the error accuses them without saying which
    kept: list[Any] = [item for item in attachments if item not in refused]
    notes = "\n".join(note(item, _why(bench, item) or reason) for item in refused)
    return {**state, "attachments": kept, "output": with_notes(state, notes)}


def with_notes(state: Json, notes: str) -> str:
    """The tool's own output, whole, and the notes behind it."""
    output = state.get("output")
    return f"{output}\n{notes}" if isinstance(output, str) and output.strip() else notes


def _why(bench: Bench, item: Json) -> str | None:
    source = media_source(item)
    return _refused(bench, source) if source is not None else None


def note(item: Json, reason: str) -> str:
    """ "[The image a.png was taken out: it has 6.1 MB, and the provider takes 5]" """
    noun = "image" if str(item.get("mime", "")).startswith("image/") else "file"
    name = item.get("filename")
    named = f" {name}" if isinstance(name, str) and name else ""
    return f"[The {noun}{named} was taken out: {reason}]"
