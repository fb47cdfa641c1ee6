"""Write the originals of a recovery as files, for a person who wants to look at them or keep them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recoveryd.core import Change, Entry, NotFoundError, RecoverydError, RefusedError, command_line
from recoveryd.disk import private_files
from recoveryd.ledger.upkeep import FORGOTTEN


def without_originals(entry: Entry) -> str:
    """Tell, as a sentence without its end, why the ledger has no originals of a recovery."""
    if entry.detail == FORGOTTEN:
        forget = command_line("ledger", "forget")
        return f"What {entry.id} did, and its originals, were forgotten at your wish (`{forget}`)"
    if entry.edits == 0:
        return f"{entry.id} changed nothing ({entry.outcome}): it has no originals"
    return f"The originals of {entry.id} are no longer in the ledger, which keeps them as long as `[ledger]` says"


def export(entry: Entry, changes: Sequence[Change], folder: Path) -> list[str]:
    """Write the originals of a recovery into `folder` (new, 0700), and an `index.json` of what is what. Returns the
    names.

    NotFoundError when the ledger has no images of it any more; RefusedError when there is something at `folder`.
    """
    if not changes:
        raise NotFoundError(f"{without_originals(entry)}. So there is nothing to export.")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise RefusedError(
            f"{folder} is there already; nothing is written over.", "Name another with --out."
        ) from error
    except OSError as error:
        raise RecoverydError(f"{folder} can't be made: {error.strerror or error}.") from error
    index: list[dict[str, Any]] = []
    for number, change in enumerate(changes, 1):
        name = None if change.before is None else f"{number:03d}-{_safe(change.key)}"
        if name is not None:
            _write(folder / name, change.before or b"")
        index.append({"file": name, "record": change.key, "mode": change.mode, "removed": change.after is None})
    said = {"id": entry.id, "time": entry.time, "store": entry.store, "session": entry.session, "records": index}
    _write(folder / "index.json", (json.dumps(said, indent=2) + "\n").encode())
    return [*(one["file"] for one in index if one["file"]), "index.json"]


def _safe(key: str) -> str:
    """Make a file's name of the end of a record's key. The key comes from a store, so nothing in it counts as a
    path.
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "_", key).lstrip(".")[-100:]


def _write(path: Path, content: bytes) -> None:
    try:
        private_files.write(path, content, lasting=False)  # the ledger has them still
    except OSError as error:
        raise RecoverydError(f"{path} can't be written: {error.strerror or error}.") from error
