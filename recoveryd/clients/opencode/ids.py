"""Make ids that sort where they must: the client orders the parts of a message by their id, by code unit."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from recoveryd.core import Json, Message

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in the order of their code units
_MIDDLE = len(_DIGITS) // 2


def between(low: str, high: str | None) -> str:
    """Make an id that sorts behind `low` and before `high` (None: nothing follows), and leaves room on both of its
    sides.

    `low` must sort before `high`; both hold only characters that an id may have.
    """
    if high is None or low + _DIGITS[_MIDDLE] < high:
        return low + _DIGITS[_MIDDLE]
    if not high.startswith(low):
        raise ValueError(f"{low!r} does not sort right before {high!r}")
    return low + _below(high[len(low) :])


def unique_between(low: str, high: str | None, mark: str) -> str:
    """Make an id as `between` does, but with `mark` in it: no other gap of the store gets the same id."""
    middle = between(low, high)
    while high is not None and middle + mark >= high:
        middle = between(middle, high)  # ends once `high` no longer begins with it: then all that begins with it fits
    return middle + mark


def _below(rest: str) -> str:
    """Make a text that sorts behind "" and before `rest`, and does not end in the lowest digit: nothing fits below
    that.
    """
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


# Milliseconds. OpenCode's ids hold the time modulo this: every 795 days they start again near zero.
WRAP_MS = 1 << 36


DAY_MS = 86_400_000


_TIMED = re.compile("msg_[0-9a-f]{12}")
_DESCENDING = re.compile("ses_[0-9a-f]{12}")


def id_time(identifier: str, now_ms: int) -> int | None:
    """Tell when a message's id was made, in milliseconds since the epoch; None when it does not say.

    The 12 hex digits are (ms * 4096 + counter) cut to 48 bits, so the time is known only modulo 2^36 ms (795 days):
    the newest one up to a day from now is meant.
    """
    if not _TIMED.match(identifier):
        return None
    latest = now_ms + DAY_MS
    return latest - (latest - (int(identifier[4:16], 16) >> 12)) % WRAP_MS


def copied_at(session_id: str, message: Message) -> int:
    """Tell when a message was copied, in milliseconds since the epoch, if it is older than its session and has an id
    that is not: a fork copies what there was. 0: it was not.
    """
    if not (_DESCENDING.match(session_id) and _TIMED.match(message.id) and message.created):
        return 0
    began = (2**48 - 1 - int(session_id[4:16], 16)) >> 12
    named = int(message.id[4:16], 16) >> 12
    half = WRAP_MS // 2  # all are known modulo `WRAP_MS`
    if not (0 < (began - message.created) % WRAP_MS < half and (named - began) % WRAP_MS < half):
        return 0
    return message.created + (named - message.created) % WRAP_MS


def newest_first(ids: Sequence[str], read: Callable[[str], Json | None], now_ms: int) -> Iterator[Message]:
    """Go, by their ids, through messages without their parts, from the newest back; only those asked for are read.
    `ids` are sorted.

    By time, not by id: ids started again near zero in August 2026. Where an id tells no time, or another than its
    message does, all that is left is read and sorted by what the messages say. `read` returns None for what is gone.
    """
    rest = list(ids)
    if all(map(_TIMED.match, rest)):
        # What sorts behind the latest id of now was made before ids started again.
        older = bisect_right(rest, f"msg_{((now_ms + DAY_MS) * 4096 + 4095) % 2**48:012x}~")
        rest = [*rest[:older][::-1], *rest[older:][::-1]]
        for place, identifier in enumerate(rest):
            data = read(identifier)
            if data is None:
                continue
            message = Message(identifier, data)
            if message.created and abs(message.created - (id_time(identifier, now_ms) or 0)) > DAY_MS:
                rest = rest[place:]
                break
            yield message
        else:
            return
    messages = [Message(identifier, data) for identifier in rest if (data := read(identifier)) is not None]
    yield from sorted(messages, key=lambda message: message.by_time, reverse=True)


def id_ranges(since_ms: int, now_ms: int) -> Iterator[tuple[str, str]]:
    """Return the ranges of ids of the messages made since then: two when the ids started again in between."""
    latest = now_ms + DAY_MS
    low, high = (f"msg_{ms * 4096 % 2**48:012x}" for ms in (since_ms, latest))
    if latest - since_ms >= WRAP_MS:
        yield "msg_", "msg_g"
    elif low < high:
        yield low, high
    else:
        yield low, "msg_g"
        yield "msg_", high
