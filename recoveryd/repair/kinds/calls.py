"""Tool calls that no provider takes: ids, names and inputs. Call and result are one part, so both change as one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.core.model import Edit, Json, Part
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME = 200


def invalid(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """A legal id of its own, a legal name, an input that is an object; what is legal stays."""
    assert violation.block is not None
    part = bench.part(violation.block.part_id)
    return ((bench.replace(part, legal(bench, part), "mend_call"),),)


def legal(bench: Bench, part: Part) -> Json:
    """The fields of a tool part that have to change for its call to be legal."""
    data = part.data or {}
    changes: dict[str, Any] = {}
    call_id, name = data.get("callID"), data.get("tool")
    if not isinstance(call_id, str) or not call_id or _taken(bench, part, call_id):
        changes["callID"] = "toolu_" + part.id.removeprefix("prt_")  # as unique as the part's own id
    elif _ILLEGAL.search(call_id):
        mended = _ILLEGAL.sub("_", call_id)
        changes["callID"] = "toolu_" + part.id.removeprefix("prt_") if _taken(bench, part, mended) else mended
    if not isinstance(name, str) or not name:
        changes["tool"] = "unknown"
    elif _ILLEGAL.search(name) or len(name) > _MAX_NAME:
        changes["tool"] = _ILLEGAL.sub("_", name)[:_MAX_NAME]
    state = data.get("state")
    if isinstance(state, Mapping) and not isinstance(state.get("input"), Mapping):
        changes["state"] = {**state, "input": as_object(state.get("input"))}
    return changes


def as_object(value: object) -> Json:
    """An input that is no object, as one: the object that a text spells, else the value under a key of its own."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict):
            return parsed
    return {"input": value}


def _taken(bench: Bench, part: Part, call_id: str) -> bool:
    """Whether an earlier call of the session has this id, or one that the client would make the same."""
    for message in bench.session.messages:
        for other in message.parts:
            if other.id == part.id:
                return False
            theirs = (other.data or {}).get("callID")
            if other.type == "tool" and isinstance(theirs, str) and _ILLEGAL.sub("_", theirs) == call_id:
                return True
    return False
