"""Records that no client wrote: JSON changed in its structure or in its bytes. All chance is an argument."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Slots = list[str]
Place = tuple[Any, Any]  # a dict or list, and a key or index of it

# JSON (or nearly so) that `json.dumps` does not write.
HOSTILE = (
    *("null", "true", "0", "-0", "-1", "1.5", '""', '" "', "[]", "{}", "[[]]", "[null]", '{"":""}', '[""]', "[{}]"),
    *("1e999", "1e308", "1e-999", "NaN", "Infinity", "-Infinity", "9007199254740993", "9" * 400, "9" * 10_000),
    *("1." + "3" * 10_000, "-" + "8" * 5_000, "1e15", "999999999999999", "99999999999999999999"),
    *("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 900 + "]" * 900, "[" * 10_000),
    *("[" + "0," * 20_000 + "0]", "{" + ",".join(f'"k{n}":{{}}' for n in range(2_000)) + "}"),
    *('"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\uffff"', '"' + "a" * 100_000 + '"'),
    *('"../../x"', '"/etc/passwd"', '"..\\\\..\\\\x"', '"."', '".."', '"a/b"', '"prt_x\\n"', '"__proto__"'),
    *("undefined", "'single'", "{,}", "01", '"\t"', '"\\x41"'),
)
# What the program reads, to be put where it is not expected.
NAMES = (
    *("id", "sessionID", "messageID", "parentID", "role", "time", "created", "completed", "error", "name", "data"),
    *("message", "responseBody", "providerID", "modelID", "model", "finish", "summary", "type", "text", "synthetic"),
    *("ignored", "metadata", "anthropic", "signature", "redactedData", "tool", "callID", "state", "status", "input"),
    *("output", "attachments", "compacted", "interrupted", "providerExecuted", "url", "mime", "filename", "auto"),
    *("prompt", "agent", "raw", "title", "directory", "revert", "partID", "mode", "variant", "recoveryd", "start"),
)
WORDS: tuple[str, ...] = (
    "user",
    "assistant",
    "text",
    "tool",
    "reasoning",
    "file",
    "compaction",
    "subtask",
    "step-start",
    "pending",
)
WORDS += ("running", "completed", "error", "patch", "thinking", "MessageAbortedError", "tool-calls", "anthropic")


def mutated(rng: random.Random, record: Any) -> bytes:
    """A record with one to four changes of its structure, and now and then of its bytes."""
    value, slots = json.loads(json.dumps({"": record})), Slots()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_CHANGES)(rng, value, slots)
    text = json.dumps(value[""], indent=rng.choice((2, None)), ensure_ascii=rng.random() < 0.5)
    for number, slot in enumerate(slots):
        text = text.replace(f'"@{number}@"', slot, 1)
    raw = text.encode("utf-8", "surrogatepass")
    return garbled(rng, raw) if rng.random() < 0.2 else raw


def garbled(rng: random.Random, raw: bytes) -> bytes:
    """The bytes with one change that knows nothing of JSON."""
    at = rng.randrange(len(raw) + 1)
    some = rng.randbytes(rng.randint(1, 40))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: raw[:at],
        lambda: raw[:at] + some + raw[at:],
        lambda: raw[:at] + some + raw[at + len(some) :],
        lambda: raw[at:] + raw[:at],
        lambda: raw + raw,
        lambda: b"\xef\xbb\xbf" + raw,
        lambda: raw.decode("utf-8", "replace").encode("utf-16"),
        lambda: raw.replace(b"a", rng.choice((b"\x00", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf"))),
        lambda: raw[:at] + bytes([rng.randrange(256)]) * rng.choice((1, 300, 70_000)) + raw[at:],
        lambda: some,
        lambda: b"",
    )
    return rng.choice(ways)()


def hostile(rng: random.Random) -> Any:
    """A value as Python has it: for errors that don't come out of a store."""
    text = rng.choice(HOSTILE)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _places(value: Any) -> Iterator[Place]:
    stack = [value]
    while stack:
        inner = stack.pop()
        for key, item in list(inner.items() if isinstance(inner, dict) else enumerate(inner)):
            yield inner, key
            if isinstance(item, (dict, list)):
                stack.append(item)


def _place(rng: random.Random, value: Any) -> Place:
    """Any place: the record as a whole is one of them, its own fields come before those further in."""
    found = list(_places(value))
    return found[min(rng.randrange(len(found)), rng.randrange(len(found)))]


def _slot(slots: Slots, raw: str) -> str:
    slots.append(raw)
    return f"@{len(slots) - 1}@"


def _replace(rng: random.Random, value: Any, slots: Slots) -> None:
    inner, key = _place(rng, value)
    inner[key] = _slot(slots, rng.choice(HOSTILE))


def _other_word(rng: random.Random, value: Any, slots: Slots) -> None:
    found = [(inner, key) for inner, key in _places(value) if isinstance(inner[key], str)]
    if found:
        inner, key = rng.choice(found)
        inner[key] = rng.choice(WORDS)


def _drop(rng: random.Random, value: Any, slots: Slots) -> None:
    inner, key = _place(rng, value)
    if inner is not value:
        del inner[key]


def _add(rng: random.Random, value: Any, slots: Slots) -> None:
    found = [inner[key] for inner, key in _places(value) if isinstance(inner[key], (dict, list))]
    if found:
        inner, item = rng.choice(found), rng.choice((_slot(slots, rng.choice(HOSTILE)), rng.choice(WORDS)))
        if isinstance(inner, dict):
            inner[rng.choice(NAMES)] = item
        else:
            inner.insert(rng.randint(0, len(inner)), item)


def _swap(rng: random.Random, value: Any, slots: Slots) -> None:
    """Two values change places, or one comes to stand in another's: whatever types they are of."""
    (one, here), (other, there) = _place(rng, value), _place(rng, value)
    if value not in (one, other):
        copies = json.loads(json.dumps([one[here], other[there]]))
        one[here], other[there] = copies[1], copies[0]


def _double(rng: random.Random, value: Any, slots: Slots) -> None:
    """The same key twice."""
    inner, key = _place(rng, value)
    if isinstance(inner, dict) and inner is not value:
        old = json.dumps(inner[key])
        inner[key] = _slot(slots, f"{old},{json.dumps(key)}:{rng.choice(HOSTILE)}")


def _wrap(rng: random.Random, value: Any, slots: Slots) -> None:
    inner, key = _place(rng, value)
    inner[key] = rng.choice(([inner[key]], {"": inner[key]}, json.dumps(inner[key]), [inner[key]] * 3))


_CHANGES: tuple[Callable[[random.Random, Any, Slots], None], ...]
_CHANGES = (_replace, _replace, _replace, _other_word, _other_word, _drop, _add, _add, _swap, _double, _wrap)
