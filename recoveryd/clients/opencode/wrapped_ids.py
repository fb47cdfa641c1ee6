"""Sessions that OpenCode's ids left behind: ids start again near zero every 2^36 ms, last in August 2026.

An older client sorts messages by id alone. In a session with messages from before, each new prompt then stands before
the old answers, and the client stores it without ever calling the model (runs of 1.1.53 and 1.2.1). Counted are ids, so
a session that was healed (`wrapped_ids`) is none any more.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from recoveryd.clients.opencode import generations, ids, records
from recoveryd.clients.opencode.ids import WRAP_MS
from recoveryd.clients.store import Generation, Store
from recoveryd.core import Json, Message, Part, Refusal, Session, StoreError, moment
from recoveryd.disk import Database, in_time

_SESSIONS = "SELECT count(DISTINCT session_id) FROM message WHERE id > ? AND id < 'msg_g'"


def before_wrap(store: Store, generation: Generation, now_ms: int, seconds: float) -> tuple[int, bool]:
    """Count the sessions with messages from before OpenCode's ids wrapped last. Also returns whether all were looked at
    in `seconds`.
    """
    deadline = time.monotonic() + seconds
    latest = f"msg_{(now_ms + ids.DAY_MS) * 4096 % 2**48:012x}~"  # the ids of now lie below it
    if generation is generations.JSON:
        return _in_tree(store.root, latest, deadline)
    if generation in (generations.SQLITE, generations.SQLITE_EVENTS):
        return _in_database(store.root, latest, deadline)
    return 0, True


def _in_tree(root: Path, latest: str, deadline: float) -> tuple[int, bool]:
    found = 0
    try:
        with os.scandir(root / "message") as folders:
            for folder in folders:
                if time.monotonic() > deadline:
                    return found, False
                if folder.is_dir(follow_symlinks=False):
                    found += any(latest < name < "msg_g" for name in os.listdir(folder.path))  # noqa: PTH208 - names
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{root} can't be read: {error.strerror or error}.") from error
    return found, True


def _in_database(path: Path, latest: str, deadline: float) -> tuple[int, bool]:
    def work(db: sqlite3.Connection) -> tuple[int, bool]:
        found = in_time(db, deadline, lambda: int(db.execute(_SESSIONS, (latest,)).fetchone()[0]))
        return found or 0, found is not None

    return Database(path, user=records.TITLE).read(work)


_TIMED = re.compile(r"(?:msg|prt)_([0-9a-f]{12})")


_ID = re.compile(r"(msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}")


_DAY_MS = 86_400_000


_TIME = "0" * 12  # sorts in front of every id that a client makes: their counter begins at one


_TAIL = 14


_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A session whose ids wrapped: its messages from before and since, in the order of time."""

    since: int  # when ids last started again, milliseconds since the epoch
    old: tuple[Message, ...]
    new: tuple[Message, ...]

    @property
    def evidence(self) -> Json:
        """Which ids and times say that ids started again."""
        last = self.old[-1]
        first = self.new[0].id if self.new else None
        return {
            "ids_started_again": moment(self.since),
            "messages_before": len(self.old),
            "last_before": last.id,
            "last_before_created": moment(last.created),
            "messages_since": len(self.new),
            "first_since": first,
        }


def wrapped(session: Session, now_ms: int) -> Wrapped | None:
    """Return the evidence that a session's ids wrapped, so that new ones sort in front of old ones; None when they
    don't.
    """
    now = now_ms // WRAP_MS
    eras = {message.id: _era(message.id, message.created) for message in session.messages}
    order = sorted(session.messages, key=lambda message: (eras[message.id], message.id))
    old = tuple(message for message in order if eras[message.id] < now)
    new = tuple(order[len(old) :])
    first = min([now_ms % WRAP_MS, *(_clock(message.id) or 0 for message in new)])
    if not any(eras[message.id] >= 0 and (_clock(message.id) or 0) > first for message in old):
        return None
    return Wrapped(now * WRAP_MS, old, new)


def tells_old(greatest_id: str, now_ms: int) -> bool:
    """Whether the greatest id of a session sorts behind those that are made now: only then it may be `wrapped`."""
    return (_clock(greatest_id) or 0) > now_ms % WRAP_MS


def ignores_prompts(session: Session) -> bool:
    """Whether an OpenCode that sorts by ids takes the last prompt of a session, in this order, for answered."""
    asked = next((message for message in reversed(session.messages) if message.role == "user"), None)
    answer = next((message for message in reversed(session.messages) if message.role == "assistant"), None)
    if asked is None or answer is None or answer.data.get("finish") in (None, "", "tool-calls", "unknown"):
        return False
    return asked.id < answer.id


def sorts_as(session: Session, order: Sequence[str]) -> bool:
    """Whether the ids of a session that got new ones sort as these messages do; later ones stand behind them."""
    return sorted(message.id for message in session.messages)[: len(order)] == list(order)


def taken_by_revert(session: Session, found: Wrapped) -> tuple[str, ...]:
    """List the new messages of a session with old ids that OpenCode will delete at the next prompt, because a revert to
    an older message is staged.
    """
    target = (session.revert or {}).get("messageID")
    old = any(message.id == target for message in found.old)
    return tuple(message.id for message in found.new) if old else ()


def new_ids(found: Wrapped) -> Mapping[str, str] | Refusal:
    """Map the old ids of a session that ids left behind to new ones, of each message and part from before; a refusal
    where their order can't be proved.
    """
    strange = next((m for m in (*found.old, *found.new) if _clock(m.id) is None or not m.created), None)
    if strange is not None:
        return Refusal(f"the message {strange.id} does not tell when it was made, so the order can't be proved")
    order = [*found.old, *found.new]
    for before, after in pairwise(order):
        if before.created > after.created + _DAY_MS:
            return Refusal(f"the messages {before.id} and {after.id} have ids in another order than their times")
    messages = _numbered([message.id for message in found.old])
    if found.new and max(messages.values()) >= min(message.id for message in found.new):
        return Refusal("there is no room for other ids in front of those of its new messages")
    names = messages | _numbered([part.id for message in found.old for part in _in_order(message)])
    return {old: new for old, new in names.items() if old != new}


def _in_order(message: Message) -> Sequence[Part]:
    """Sort the parts as they were made: a message written while ids started again has some from before and some from
    after.
    """
    made = message.created // WRAP_MS

    def era(part: Part) -> int:
        found = _era(part.id, message.created)
        return made if found < 0 else found

    return sorted(message.parts, key=era)


def _numbered(ids: Sequence[str]) -> dict[str, str]:
    """Give the ids a number for a time. Numbered once more they stay as they are, so nothing is renamed twice."""
    width = max(_DIGITS, len(str(len(ids))))
    names = {}
    for number, old in enumerate(ids):
        names[old] = f"{old.partition('_')[0]}_{_TIME}{number:0{width}}{_tail(old, _TAIL - width)}"
    return names


def _tail(identifier: str, length: int) -> str:
    """Return the client's own random characters at the end; of any other id, a hash that tells it from the rest."""
    if _ID.fullmatch(identifier):
        return identifier[-length:]
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def _clock(identifier: str) -> int | None:
    """Return the milliseconds since ids last started again when an id was made."""
    found = _TIMED.match(identifier)
    return int(found[1], 16) >> 12 if found else None


def _era(identifier: str, near_ms: int) -> int:
    """Count how often ids had started again when this one was made, not far from `near_ms`; -1 when it does not say."""
    clock = _clock(identifier)
    return -1 if clock is None or not near_ms else round((near_ms - clock) / WRAP_MS)
