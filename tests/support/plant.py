"""How a planted session is written: into the JSON store, or into the client's database."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.support.planted import Planted, dump, escaped

__all__ = ["dump", "write_sqlite", "write_tree"]


def write_tree(planted: Planted, storage: Path, project_id: str = "global", directory: str | None = None) -> Path:
    """Write a session into a JSON store and return its session file. `directory` is the project's own folder."""
    session = {**planted.session, "projectID": project_id, "directory": directory or planted.session["directory"]}
    for message in planted.messages:
        for part in planted.parts.get(message["id"], []):
            content = planted.raw.get(part["id"])
            _write(storage / "part" / message["id"] / f"{part['id']}.json", dump(part) if content is None else content)
        _write(storage / "message" / planted.id / f"{message['id']}.json", dump(message))
    target = storage / "session" / project_id / f"{planted.id}.json"
    _write(target, dump(session))
    return target


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_sqlite(planted: Planted, database: Path, project_id: str = "global", directory: str | None = None) -> None:
    """Write a session into the client's database, in one transaction; the client itself must have made its tables.

    To a session that is there its messages are added.
    """
    session = planted.session
    row = {"id": planted.id, "project_id": project_id, "directory": directory or session["directory"]}
    row |= {name: session[name] for name in ("slug", "title", "version")}
    row |= {f"time_{name}": session["time"][name] for name in ("created", "updated")}
    if "revert" in session:
        row["revert"] = json.dumps(session["revert"])
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as db, db:
        known = ("id", "worktree", "time_created", "time_updated", "sandboxes")
        _insert(db, "project", dict(zip(known, (project_id, "/", 0, 0, "[]"), strict=True)), "OR IGNORE ")
        _insert(db, "session", row, "OR IGNORE ")  # one that goes on is there
        for message in planted.messages:
            made = message["time"]["created"]
            times = {"session_id": planted.id, "time_created": made, "time_updated": made}
            _insert(db, "message", {"id": message["id"], **times, "data": _compact(message)})
            for part in planted.parts.get(message["id"], []):
                content = planted.raw.get(part["id"])
                data = _compact(part) if content is None else content.decode("utf-8", "replace")
                _insert(db, "part", {"id": part["id"], "message_id": message["id"], **times, "data": data})


def _insert(db: sqlite3.Connection, table: str, row: dict[str, Any], how: str = "") -> None:
    names = ", ".join(row)
    db.execute(f"INSERT {how}INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def _compact(value: Any) -> str:
    """The JSON of a row's `data`: without the ids, which are columns of their own."""
    kept = {name: item for name, item in value.items() if name not in ("id", "sessionID", "messageID")}
    return escaped(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
