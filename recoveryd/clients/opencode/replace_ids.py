"""Replace ids in a record of OpenCode: wherever it names a message or a part; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.clients.opencode import records
from recoveryd.core import Json, StoreError

Names = Mapping[str, str]  # old id -> new id
Path = tuple[str, ...]

# Where the records of both stores name messages and parts (the client's source, 1.1.53 and 1.2.1). What a tool took or
# gave may hold ids as well: that is content, and stays.
MESSAGE: Sequence[Path] = (("id",), ("parentID",))
PART: Sequence[Path] = (("id",), ("messageID",), ("tail_start_id",))
SESSION: Sequence[Path] = (("revert", "messageID"), ("revert", "partID"))
REVERT: Sequence[Path] = (("messageID",), ("partID",))
_KEYS = {path[-1]: re.compile(rb'"%s"\s*:\s*"' % path[-1].encode()) for path in (*MESSAGE, *PART, *REVERT)}


def replace(raw: bytes, paths: Sequence[Path], names: Names, what: str) -> bytes:
    """Replace the ids at `paths` of a record of OpenCode; `raw` as it is, when it is no JSON object. Raises StoreError
    when it can't be done.
    """
    data = records.parse(raw, what)
    if data is None:
        return raw
    for path in paths:
        old = _value(data, path)
        if isinstance(old, str) and old in names:
            data = _replaced(data, path, names[old])
            raw = _spliced(raw, path[-1], old, names[old], data, what)
    return raw


def _spliced(raw: bytes, key: str, old: str, new: str, expected: Json, what: str) -> bytes:
    """Try the places that look right, and return the bytes that then say what they are to say, and nothing else."""
    end = old.encode() + b'"'
    for found in _KEYS[key].finditer(raw):
        if raw.startswith(end, found.end()):
            spliced = raw[: found.end()] + new.encode() + raw[found.end() + len(end) - 1 :]
            if records.parse(spliced, what) == expected:
                return spliced
    raise StoreError(f"{what} names {old} in a way that recoveryd can't change.", "It is left alone.")


def _value(data: Json, path: Path) -> Any:
    found: Any = data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _replaced(data: Json, path: Path, value: str) -> dict[str, Any]:
    key, *rest = path
    return {**data, key: _replaced(data[key], tuple(rest), value) if rest else value}
