"""The ways in which OpenCode has kept its sessions. Their names are public (`status --json`, `doctor --json`)."""

from __future__ import annotations

from recoveryd.clients.store import Generation

JSON = Generation("json", "a tree of JSON files (OpenCode up to 1.1)")
JSON_DEAD = Generation(
    "json_dead", "a tree of JSON files that OpenCode left behind when it moved to a database", "left"
)
SQLITE = Generation("sqlite", "a database without events (OpenCode 1.2 to about 1.13)")
SQLITE_EVENTS = Generation("sqlite_events", "a database with events (OpenCode 1.14 to 1.18)")
OPENCODE_2 = Generation(
    "opencode_2", "a database of OpenCode 2; what recoveryd knows of is frozen there", "unknown", says_why=True
)
UNKNOWN = Generation("unknown", "a database that recoveryd does not know", "unknown")
