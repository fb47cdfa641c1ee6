"""What OpenCode's two stores share: ids and their times, JSON as the client writes it, and which message failed."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recoveryd.errors import StoreError
from recoveryd.model import WRAP_MS, Edit, Failure, Json, Message, Part, Session
from recoveryd.stores.base import Look

DAY_MS = 86_400_000
# Release builds (latest, beta, prod) use `opencode.db`, an older beta its own; `local` is a build from source, `stable`
# that of Nix. A channel may have any name, so others have to be configured.
CHANNELS = ("beta", "canary", "dev", "local", "next", "nightly", "preview", "prod", "snapshot", "stable")
MAX_RECORD = 256 * 1024 * 1024  # weight
MAX_SESSION = 256 * 1024 * 1024  # weight of all its records
_ID = re.compile(r"[A-Za-z0-9_-]+")
_TIMED = re.compile("msg_[0-9a-f]{12}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def valid_id(text: str) -> bool:
    """Whether an id may become a part of a path."""
    return _ID.fullmatch(text) is not None


def code_units(text: str) -> bytes:
    """A key that sorts as the client does: JavaScript compares UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def id_time(identifier: str, now_ms: int) -> int | None:
    """When a message's id was made, in milliseconds since the epoch; None when it does not say.

    The 12 hex digits are (ms * 4096 + counter) cut to 48 bits, so the time is known only modulo 2^36 ms (795 days):
    the newest one up to a day from now is meant.
    """
    if not _TIMED.match(identifier):
        return None
    latest = now_ms + DAY_MS
    return latest - (latest - (int(identifier[4:16], 16) >> 12)) % WRAP_MS


def newest_first(ids: Sequence[str], read: Callable[[str], Json | None], now_ms: int) -> Iterator[Message]:
    """Messages without their parts, from the newest back; only those asked for are read. `ids` are sorted.

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


def look(store: str, session: str, newest: Iterable[Message], spoke: Callable[[str], bool]) -> Look:
    """What the newest messages (see `newest_first`) tell; stops at the first that settles it.

    An aborted message settles it only if the model `spoke` in it: an abort may also cut off a refusal.
    """
    failure: Failure | None = None
    running, silent = 0, False
    newest_user: str | None = None
    for message in newest:
        error = message.error
        if message.role == "user":
            newest_user = newest_user or (message.id if failure is None else None)
        elif message.role != "assistant":
            continue
        elif error is not None and error.get("name") != "MessageAbortedError":
            failure = failure or _failure(store, session, message, error)
        elif error is None and not message.completed:
            if not running and failure is None:
                # Behind a turn that was cut off, say by a crash, a newer prompt may wait.
                running, silent = message.created or 1, newest_user is not None or not spoke(message.id)
        # A step that ended in a tool call proves that nothing older is stuck, but it is no answer yet.
        elif (failure is None or message.data.get("finish") != "tool-calls") and (error is None or spoke(message.id)):
            return Look(failure, running, newest_user, message.completed or message.created, silent)
    return Look(failure, running, newest_user, silent=silent)


def _failure(store: str, session: str, message: Message, error: Json) -> Failure:
    provider, model = message.data.get("providerID"), message.data.get("modelID")
    return Failure(
        store=store,
        session=session,
        message=message.id,
        time=message.created or message.completed,
        error=error,
        provider=provider if isinstance(provider, str) else "",
        model=model if isinstance(model, str) else "",
    )


def speaks(part: Json | None) -> bool:
    """Whether a part of an aborted message is one that the client goes on sending."""
    return part is not None and part.get("type") not in ("step-start", "reasoning")


def weight(raw: bytes) -> int:
    """About how many bytes a record takes in memory: those of its text, and 32 for each value that may be in it.

    A file of 60 MB can say `[],[],...` twenty million times, which took 1.5 GB and half a minute (measured). One emoji
    makes Python keep four bytes for each character of the whole text.
    """
    return len(raw) * (1 if raw.isascii() else 4) + 32 * sum(raw.count(mark) for mark in b"[{,")


def parse(raw: bytes, what: str = "A record") -> Json | None:
    """A record as the client reads it; None when it is no JSON object to the client.

    Broken UTF-8 becomes U+FFFD there, so it does here; NaN is no JSON there. StoreError: it is nested too deeply, or
    holds too much.
    """
    data = _value(raw, what)
    return data if isinstance(data, dict) else None


def parse_part(raw: bytes, what: str, *, null: Json | None) -> Json | None:
    """As `parse`, but other JSON is a part that says nothing: the client passes over it. `null`: what a null is."""
    data = _value(raw, what)
    if data is None:
        return null
    return None if data is _BROKEN else data if isinstance(data, dict) else {}


_BROKEN = object()


def _value(raw: bytes, what: str) -> Any:
    if len(raw) > MAX_RECORD // 200 and weight(raw) > MAX_RECORD:
        raise StoreError(f"{what} holds too many values to be read.")
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return _loads(text)
    except RecursionError:
        raise StoreError(f"{what} is nested too deeply to be read.") from None
    except ValueError:
        return _BROKEN


def _loads(text: str) -> Any:
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # int() refuses thousands of digits; the client reads them, so such a record is not broken.
        return json.loads(text, parse_constant=_no_constant, parse_int=lambda n: int(n) if len(n) < 1000 else float(n))


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_constant)


def dump(data: Json, *, compact: bool = False) -> bytes:
    """A record as the client writes it: `JSON.stringify(x, null, 2)`, where a lone surrogate becomes an escape.

    `compact` is how it writes into a database: without any white space.
    """
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 2}
    try:
        text = json.dumps(data, ensure_ascii=False, default=_plain, allow_nan=False, **layout)
    except (TypeError, ValueError) as error:
        raise StoreError(f"This can't be written as JSON: {error}") from error
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} can't be stored")


def targets(session: Session, edits: Iterable[Edit]) -> Iterator[tuple[Edit, Message | Part | None]]:
    """Each edit with the stored record that it replaces; the last one counts where two mean the same record.

    StoreError: an edit in a message that neither is there nor comes with them, and an id that can't be one.
    """
    messages = {message.id: message for message in session.messages}
    parts = {part.id: part for message in session.messages for part in message.parts}
    latest = {edit.record: edit for edit in edits}
    new = {edit.message_id for edit in latest.values() if edit.part_id is None and edit.after is not None}
    for edit in latest.values():
        if not valid_id(edit.message_id) or not (edit.part_id is None or valid_id(edit.part_id)):
            raise StoreError(f"An edit of session {session.id} names an id that can't be one: {edit.record}.")
        stored = messages.get(edit.message_id) if edit.part_id is None else parts.get(edit.part_id)
        elsewhere = isinstance(stored, Part) and stored.message_id != edit.message_id
        if elsewhere or edit.message_id not in messages.keys() | new:
            raise StoreError(f"An edit of session {session.id} names a record that is not there: {edit.record}.")
        yield edit, stored


def data_folders(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """OpenCode's data folders, resolved, each once: its own place first (the same on macOS), then those configured."""
    base = env.get("XDG_DATA_HOME", "")
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    folders = [Path(base) if Path(base).is_absolute() else home / ".local" / "share"]
    folders = [folders[0] / "opencode", *(path.expanduser() for path in configured)]
    return list(dict.fromkeys(path.resolve() for path in folders))


def databases(folder: Path) -> list[Path]:
    """What the client may keep its sessions in: `opencode.db`, and `opencode-<channel>.db` of builds that name theirs.

    Any other name is a copy that somebody made, or is named by `OPENCODE_DB` or the configuration.
    """
    names = ["opencode.db", *(f"opencode-{channel}.db" for channel in CHANNELS)]
    return [folder / name for name in names]
