"""Ids that sort where they must: the client orders the parts of a message by their id, by code unit."""

from __future__ import annotations

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in the order of their code units
_MIDDLE = len(_DIGITS) // 2


def between(low: str, high: str | None) -> str:
    """An id that sorts behind `low` and before `high` (None: nothing follows), and leaves room on both of its sides.

    `low` must sort before `high`; both hold only characters that an id may have.
    """
    if high is None or low + _DIGITS[_MIDDLE] < high:
        return low + _DIGITS[_MIDDLE]
    if not high.startswith(low):
        raise ValueError(f"{low!r} does not sort right before {high!r}")
    return low + _below(high[len(low) :])


def unique_between(low: str, high: str | None, mark: str) -> str:
    """As `between`, but with `mark` in it: no other gap of the store gets the same id."""
    middle = between(low, high)
    while high is not None and middle + mark >= high:
        middle = between(middle, high)  # ends once `high` no longer begins with it: then all that begins with it fits
    return middle + mark


def _below(rest: str) -> str:
    """A text that sorts behind "" and before `rest`, and does not end in the lowest digit: nothing fits below that."""
    first = _DIGITS.find(rest[:1]) if rest else -1
    if first > 1:
        return _DIGITS[first // 2]
    if first == 1:
        return _DIGITS[0] + _DIGITS[_MIDDLE]
    if rest[:1] == "_":  # sorts between the capital and the small letters
        return _DIGITS[_MIDDLE]
    if first == 0 and rest[1:].strip("-"):
        return _DIGITS[0] + _below(rest[1:])
    if first == 0:
        return "-" + _DIGITS[_MIDDLE]  # the one character that sorts below the digits
    if len(rest) < 2:
        raise ValueError("no id sorts in between")
    return "-" if rest == "--" else "-" + _below(rest[1:])
