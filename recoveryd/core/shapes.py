"""Shapes of values for a bug report: lengths, flags and listed words, and nothing of what was said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from recoveryd.core.model import Json

OTHER = "other"  # in the place of a word that is not listed
_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}


def words(text: str) -> tuple[str, ...]:
    """Make the list of words that a shape may name, of a text with blanks between them."""
    return tuple(text.split())


def known_word(value: object, allowed: Collection[str]) -> str:
    """Return a word that is listed, "other" for one that is not, and the JSON type of what is no text."""
    if isinstance(value, str):
        return value if value in allowed else OTHER
    return type_name(value)


def type_name(value: object) -> str:
    """Return the name of a value's type in JSON."""
    return "null" if value is None else _JSON_TYPES.get(type(value), "object" if isinstance(value, Mapping) else OTHER)


def text_shape(text: object) -> dict[str, Any]:
    """Make the shape of a text: its length, and what is odd about it."""
    if not isinstance(text, str):
        return {"is": type_name(text)}
    shape: dict[str, Any] = {"length": len(text)}
    if not text.strip():
        shape["blank"] = True
    elif text != text.rstrip():
        shape["ends_in_space"] = True
    if any("\ud800" <= char <= "\udfff" for char in text):
        shape["half_characters"] = True
    return shape


def item_shape(
    data: Json, types: Collection[str], texts: Iterable[str], call: Callable[[str], str], calls: Iterable[str]
) -> dict[str, Any]:
    """Make the shape of a piece of a conversation: its type, the shapes of its `texts`, and which call it is of.

    `calls` are the keys that may hold the id of a call; `call` gives what stands for that id.
    """
    shape = {"type": known_word(data.get("type"), types), **text_shapes(data, texts)}
    of = next((data[key] for key in calls if key in data), None)
    return {**shape, "call": call(of)} if isinstance(of, str) else shape


def text_shapes(data: Json, keys: Iterable[str]) -> dict[str, Any]:
    """Make the shapes of those of the `keys` that a record has: of a text its shape, of another value its type."""
    found = {key: data[key] for key in keys if key in data}
    return {key: text_shape(value) if isinstance(value, str) else type_name(value) for key, value in found.items()}
