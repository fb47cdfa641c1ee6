"""What the lines of a rollout say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from recoveryd.clients import json_leaves
from recoveryd.clients.codex.error_names import NAMES
from recoveryd.core import Change, Json, item_shape, json_of, words

# What a line loses of these, nobody wrote.
_FRAME = frozenset({"type", "timestamp", "ordinal", "id", "role", "name", "call_id", "turn_id", "recoveryd"})

_TYPES = words(
    "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call "
    "web_search_call image_generation_call compaction context_compaction agent_message ghost_snapshot"
)
_TEXTS = ("name", "namespace", "arguments", "input", "output", "encrypted_content", "result", "id")
quoting_titles = True  # the first words of a prompt stand for a title


def is_part(key: str) -> bool:
    """Whether the record of this key is a line of a rollout: all are."""
    return key.startswith("line/")


def part_at(key: str, image: bytes) -> None:
    """Return none: a line is no part of its own."""
    del key, image


def homeless(changes: Sequence[Change], messages: Collection[str]) -> Collection[str]:
    """List none: a line of a rollout belongs to its file alone."""
    del changes, messages
    return ()


def said(image: bytes) -> Json | None:
    """Read from its image what a line of a rollout says; None when it is no JSON."""
    line = shown(image)
    carried = line.get("payload") if isinstance(line, dict) else None
    return carried if isinstance(carried, dict) else None


def shown(image: bytes) -> Any:
    """Read from its image a rollout's line as JSON, for people; None when it is none."""
    return json_of(image)


def sole(changes: Sequence[Change]) -> bool:
    """Whether lines of a rollout said something before a recovery that none says after it."""
    return json_leaves.says_more(changes, shown, _FRAME)


def error_names() -> Collection[str]:
    """List the names of errors that may stand in a line of a rollout, for a bug report."""
    return NAMES


def part_shape(data: Json, call: Callable[[str], str]) -> dict[str, Any]:
    """Make the shape of what a line of a rollout says for a bug report: its type, the lengths of its texts, and which
    call it is of.
    """
    return item_shape(data, _TYPES, _TEXTS, call, ("call_id",))


def message_shape(data: Json) -> dict[str, Any]:
    """Make no shape of a rollout's turn for a bug report: it says nothing beside its items."""
    del data
    return {}
