"""What the lines of a transcript say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from recoveryd.clients import json_leaves
from recoveryd.clients.claude_code.error_names import NAMES
from recoveryd.clients.claude_code.transcript import parse
from recoveryd.core import Change, Json, item_shape, words

# What a block loses of these, nobody wrote.
_FRAME = frozenset({"id", "type", "tool_use_id", "name", "recoveryd"})

_TYPES = words(
    "text thinking redacted_thinking tool_use tool_result image document server_tool_use web_search_tool_result "
    "user assistant system summary attachment"
)
_TEXTS = ("text", "thinking", "signature", "data", "content", "input", "source", "name")
quoting_titles = True  # the first words of a prompt stand for a title


def is_part(key: str) -> bool:
    """Whether the record of this key is a line of a transcript: all are."""
    return "#" in key


def part_at(key: str, image: bytes) -> None:
    """Return none: a line is no part of its own."""
    del key, image


def homeless(changes: Sequence[Change], messages: Collection[str]) -> Collection[str]:
    """List none: a line of a transcript belongs to its file alone."""
    del changes, messages
    return ()


def said(image: bytes) -> Json | None:
    """Read from its image what a line of a transcript says, as JSON; None when it is none."""
    return parse(image)


def shown(image: bytes) -> Any:
    """Read from its image all of a transcript's line as JSON, for people."""
    return parse(image)


def sole(changes: Sequence[Change]) -> bool:
    """Whether lines of a transcript said something before a recovery that none says after it."""
    return json_leaves.says_more(changes, parse, _FRAME)


def error_names() -> Collection[str]:
    """List the names of errors that may stand in a line of a transcript, for a bug report."""
    return NAMES


def part_shape(data: Json, call: Callable[[str], str]) -> dict[str, Any]:
    """Make the shape of what a line of a transcript says for a bug report: its type, the lengths of its texts, and of
    which call.
    """
    return item_shape(data, _TYPES, _TEXTS, call, ("id", "tool_use_id"))


def message_shape(data: Json) -> dict[str, Any]:
    """Make no shape of a transcript's message for a bug report: what it says is in its blocks."""
    del data
    return {}
