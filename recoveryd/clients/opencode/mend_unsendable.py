"""Parts on which the client fails before it sends anything: each gets the least that makes it sendable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.core.model import Edit, Json, Part
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench
from recoveryd.repair.kinds.calls import legal
from recoveryd.repair.kinds.content import NO_OUTPUT
from recoveryd.repair.kinds.media import note, with_notes
from recoveryd.repair.kinds.tools import cancelled


def mended(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """What can't be read is set aside, in the ledger; what lacks something gets it."""
    stuck = next(u for u in bench.wire.unsendable if u.part_id == violation.part_id)
    part = bench.part(stuck.part_id)
    match stuck.fault:
        case "not_json":
            return ((bench.set_aside(part, "set_aside_unreadable"),),)
        case "text":
            words = (part.data or {}).get("text")
            if words is None:
                return ((bench.set_aside(part, "set_aside_blank"),),)
            return ((bench.replace(part, {"text": _spelled(words)}, "mend_part"),),)
        case "state":
            return ((cancelled(bench, part),),)
        case "name":
            return ((bench.replace(part, legal(bench, part), "mend_call"),),)
        case "file":
            return ((_file(bench, part, stuck.reason),),)
    return ((bench.replace(part, _changes(bench, part, stuck.fault), "mend_part"),),)


def _changes(bench: Bench, part: Part, fault: str) -> Json:
    data = part.data or {}
    state: Json = data["state"] if isinstance(data.get("state"), Mapping) else {}
    match fault:
        case "metadata":
            return {"metadata": _objects(data.get("metadata"))}
        case "signature":
            metadata = {key: value for key, value in _objects(data.get("metadata")).items() if key != "anthropic"}
            return {"metadata": metadata}
        case "time":
            return {"state": {**state, "time": {"start": bench.now, "end": bench.now}}}
        case "output":
            attachments = state.get("attachments")
            kept: Json = {"attachments": []} if attachments and not isinstance(attachments, list) else {}
            output = state.get("output")
            return {"state": {**state, **kept, "output": NO_OUTPUT if output is None else _spelled(output)}}
    return {"state": _without_bad_attachments(state)}


def _spelled(value: Any) -> str:
    """What was said, also where it is no text: nothing that a tool or a person said is dropped."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _objects(metadata: object) -> dict[str, Any]:
    """What the SDK takes of it: an object of objects."""
    pairs = metadata.items() if isinstance(metadata, Mapping) else ()
    return {key: value for key, value in pairs if isinstance(value, Mapping)}


def _without_bad_attachments(state: Json) -> Json:
    attachments = state.get("attachments") or []
    bad = [item for item in attachments if not _sendable(item)]
    notes = "\n".join(note(item if isinstance(item, Mapping) else {}, "the client can't send it") for item in bad)
    kept = [item for item in attachments if item not in bad]
    return {**state, "attachments": kept, "output": with_notes(state, notes)}


def _sendable(item: object) -> bool:
    if not isinstance(item, Mapping) or not isinstance(item.get("url"), str):
        return False
    mime = item.get("mime")
    return isinstance(mime, str) and (mime.startswith("image/") or mime == "application/pdf")


def _file(bench: Bench, part: Part, reason: str) -> Edit:
    data = part.data or {}
    kept = {key: data[key] for key in ("id", "sessionID", "messageID") if key in data}
    return bench.replace(
        Part(part.id, part.message_id, kept), {"type": "text", "text": note(data, reason)}, "take_out_media"
    )
