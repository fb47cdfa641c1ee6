"""The port of a store: what the program asks of a place that sessions are kept in, be it files or rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from recoveryd.core import (
    Change,
    Diagnosis,
    Edit,
    Entry,
    Failure,
    FormError,
    Json,
    RecoverydError,
    RefusedError,
    Session,
)
from recoveryd.disk import path_exists

State = Literal["before", "after", "other"]


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """What a store's look tells of the newest end of a session. All times are milliseconds since the epoch."""

    failure: Failure | None = None  # stuck now: nothing was answered since
    running: int = 0  # when the newest unfinished assistant message was made; 0 when the last one is finished
    newest_user: str | None = None  # the newest user message, if it is newer than the failure or the last answer
    last_answer: int = 0  # when the model last finished a whole answer (a tool call alone is none); 0: never
    silent: bool = False  # the unfinished message has nothing in it yet, or is older than the newest prompt
    earlier: tuple[Failure, ...] = ()  # those before it, the newest first, if nothing was answered in between
    asked: tuple[str, str] = ("", "")  # provider and model of the newest prompt, answer or command that names them
    chosen: str = ""  # the model of the newest prompt, where prompts name it
    endless: Diagnosis | None = None  # the client does the same again and again, and is to be stopped
    kept: SessionStatus | None = None  # its state without the failure, where that tells of what is not there any more
    copied: bool = False  # so since it is a copy, and failed in the session before; else its user took the turn back
    directories: tuple[str, ...] = ()  # in which it went on last, and to which it was moved; none: not told
    copied_at: int = 0  # when, of a session of the same store; 0: it may come from elsewhere
    broke_off_alike: bool = False  # the answer before the failure broke off with the same error
    of_parent: bool = False  # a subagent that is sent its parent's conversation before its own: the fault may be there

    @property
    def newer(self) -> bool:
        """Whether there is a prompt, or a turn, behind the failure: then that is not what the session is stuck on."""
        return self.newest_user is not None or self.running > 0

    @property
    def waits(self) -> bool:
        """Whether something was asked that nothing has come of: the client may have failed on a stored part."""
        return self.silent if self.running else self.failure is not None or self.newest_user is not None


@dataclass(frozen=True, slots=True)
class About:
    """What a store tells of a session without what was said in it: title, folder and parent."""

    title: str = ""
    directory: str = ""
    parent: str | None = None  # whose subagent it is


@dataclass(frozen=True, slots=True)
class Stamp:
    """A store's fingerprint of all records of a session: equal stamps mean that nobody wrote in between."""

    newest_mtime_ns: int  # the latest write, nanoseconds since the epoch; 0 when there are no records
    fingerprint: Hashable = ()

    @property
    def digest(self) -> str:
        """A short form of the fingerprint, for keeping."""
        return hashlib.sha256(repr(self.fingerprint).encode("utf-8", "surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Generation:
    """A way in which a client keeps, or kept, its sessions: each client has its own.

    `name` is public (`status --json`, `doctor --json`) and stable; `words` say it to people, as "a tree of JSON files".
    """

    name: str
    words: str
    use: Literal["edited", "left", "unknown"] = "edited"  # left: the client keeps its sessions elsewhere by now
    says_why: bool = False  # `words` say, too, why nothing is repaired there


class Content(Protocol):
    """Reads a client's records, given images of them. Pure: the store is not asked, which may be gone."""

    @property
    def quoting_titles(self) -> bool:
        """Whether what stands for a session's title may be words of its conversation."""

    def sole(self, changes: Sequence[Change]) -> bool:
        """Whether the before-images of a recovery have content that none of its after-images has."""

    def is_part(self, key: str) -> bool:
        """Whether the record of this key is a part of a message."""

    def part_at(self, key: str, image: bytes) -> tuple[str, str] | None:
        """Return the ids of message and part of this record; None where it is no part, or they are not known."""

    def homeless(self, changes: Sequence[Change], messages: Collection[str]) -> Collection[str]:
        """List the keys of the changes whose before-image is a part of a message that is not among `messages` (ids),
        nor comes back with them; or such a message itself, where the client deleted it since.
        """

    def said(self, image: bytes) -> Json | None:
        """Return the JSON object that a record says; None when it says none."""

    def shown(self, image: bytes) -> Any:
        """Return all of a record as JSON for people; None when it is no JSON."""

    def error_names(self) -> Collection[str]:
        """List the names that the client has for errors: they may stand in a bug report."""

    def part_shape(self, data: Json, call: Callable[[str], str]) -> dict[str, Any]:
        """Make the shape of a part for a bug report: listed words, lengths and flags, no word of what it says.

        `call` gives what stands for the id of a tool call.
        """

    def message_shape(self, data: Json) -> dict[str, Any]:
        """Make the shape of what a message says beside its role and its parts."""


class Store(Protocol):
    """A place that sessions are kept in.

    Errors of every method that reads or writes: `StoreError` (with a sentence for the user), its `ConflictError`,
    and `NotFoundError` for a session that is not there. Nothing else gets out, and nothing waits without end.
    """

    @property
    def id(self) -> str:
        """Its resolved path: the same after a restart."""

    @property
    def client(self) -> str:
        """The name of the client whose sessions are in it."""

    @property
    def root(self) -> Path:
        """Its place, as a person would name it."""

    @property
    def home(self) -> Path:
        """The folder in which its client keeps what belongs to it: where it is, unless that is elsewhere by a link."""

    @property
    def lock_path(self) -> Path:
        """A folder, to be locked by the one daemon that watches this store."""

    @property
    def watch_path(self) -> Path:
        """The folder to be watched; it may not exist yet."""

    @property
    def writes_to(self) -> tuple[Path, ...]:
        """The folders that a repair may write to, with all below them: what a service in a sandbox is let into."""

    @property
    def watch_files(self) -> tuple[Path, ...]:
        """The files in `watch_path` to be watched, where many writes come; empty: all that are there and below."""

    @property
    def kept_open(self) -> bool:
        """Whether the client keeps its files open: then only the write itself is an event, and no close follows."""

    @property
    def keyed_by_place(self) -> bool:
        """Whether a record is known by where it stands in a file: with none there now, its client wrote it anew."""

    @property
    def content(self) -> Content:
        """The reader of its records."""

    def touched(self, names: Sequence[str]) -> Iterable[str | None]:
        """Name the sessions to look at after a write to `names` (a path below `watch_path`, cut up); None: all."""

    def exists(self) -> bool:
        """Whether there is a store yet."""

    def live(self) -> str | None:
        """Tell why the store can't be edited, in a sentence; None when it can."""

    def generation(self) -> Generation:
        """Tell in which way the client keeps, or kept, its sessions here."""

    def session_ids(self) -> Iterator[str]:
        """List the ids of all sessions that have messages, in no order."""

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        """List the sessions that may have changed, each with the mark to remember it by; cheap when none has.

        `known` are the marks that were remembered. "" is none: the session is gone, or the store keeps its own place
        in memory, which begins at the messages made since `since_ms` (milliseconds since the epoch).
        """

    def written_since(self, since_ms: int) -> Iterator[str]:
        """List the sessions that got a message since then (milliseconds since the epoch), and perhaps some more.

        Unlike `fresh` it remembers nothing.
        """

    def look(self, session_id: str) -> SessionStatus:
        """Tell whether a session is stuck now, from as few records as possible. An unknown session is an empty
        `SessionStatus`.
        """

    def about(self, session_id: str) -> About:
        """Return title, folder and parent. An unknown session is an empty `About`."""

    def has(self, session_id: str) -> bool:
        """Whether it has a message of the session. No message is read. FormError: it is there, and not to be read."""

    def unreadable(self, session_id: str, *, whole: bool = False) -> bool:
        """Whether the newest messages (`PAGE`), or all, seem to have a part that is no JSON; false of an unknown one.

        Cheaper than `load`, which tells for sure.
        """

    def load(self, session_id: str) -> Session:
        """Load the whole session, with the raw bytes of every record, in the order of the client."""

    def stamp(self, session_id: str) -> Stamp:
        """Return a fingerprint that changes with every write to the session. Cheap: no record is read."""

    def changes(self, session: Session, edits: Sequence[Edit]) -> list[Change]:
        """Make the records that `edits` stand for, before (as loaded) and after. What changes nothing is left out."""

    def apply(self, changes: Sequence[Change]) -> None:
        """Write all of `changes`, durably, or none of them.

        ConflictError: a record is not its `before` any more, the client wrote since.
        """

    def read(self, key: str) -> bytes | None:
        """Read one record as it is now; None when there is none. The key is checked like any foreign text."""

    def read_all(self, keys: Sequence[str]) -> list[bytes | None]:
        """Read many records, each as `read` does."""

    def located(self, changes: Sequence[Change]) -> list[Change]:
        """Give changes of the ledger the keys of their records today: an older recoveryd may have made others."""

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        """Tell why the before-images of a recovery must not be put back as the session is now, whoever asks for it."""

    def clean(self, changes: Sequence[Change]) -> int:
        """Remove what a crash left behind where `changes` were being written, in either direction.

        A record is one of its images then, or somebody else's. Returns how many things.
        """


def is_there(store: Store, session_id: str) -> bool:
    """Whether a session is in a store, be it in a form that can't be read now. StoreError."""
    try:
        return store.has(session_id)
    except FormError:
        return True


def is_store_of(store: Store, store_id: str) -> bool:
    """Whether a store is the one that an id means, also after it was moved away and linked to."""
    return store.id == store_id or store.id == os.path.realpath(store_id)


def stored_images(store: Store, changes: Sequence[Change]) -> list[State]:
    """Tell which image of each change the store holds now; "other" when somebody else wrote since."""
    return [found for _, found in _found(store, changes)]


def all_written(store: Store, changes: Sequence[Change]) -> bool:
    """Whether all of `changes` are in the store as they were written, and nobody wrote over one."""
    return all(found == "after" for found in stored_images(store, changes))


def untouched(store: Store, changes: Sequence[Change]) -> bool:
    """Whether a store holds nothing of `changes` as they were to be written, but what changes nothing and is there for
    the ledger.
    """
    return all(change.before == change.after or found == "before" for change, found in _found(store, changes))


def _found(store: Store, changes: Sequence[Change]) -> list[tuple[Change, State]]:
    now = store.read_all([change.key for change in changes])
    return [(change, _state(record, change)) for record, change in zip(now, changes, strict=True)]


def _state(now: bytes | None, change: Change) -> State:
    return "after" if now == change.after else "before" if now == change.before else "other"


def is_abandoned(store: Store) -> bool:
    """Whether a store was left behind: its client keeps these sessions elsewhere by now. What can't be told is not."""
    try:
        return store.generation().use == "left"
    except RecoverydError:
        return False


def may_be_there(stores: Sequence[Store]) -> list[Store]:
    """Leave of some stores those that are there, and of those behind a folder that may not be entered one a folder: to
    read it fails, which is to be told.
    """
    hidden = {store.root.parent: store for store in reversed(stores) if not store.exists() and is_hidden(store)}
    return [store for store in stores if store.exists() or hidden.get(store.root.parent) is store]


def is_hidden(store: Store) -> bool:
    """Whether nobody can tell if a store is there: a folder above it may not be entered, say."""
    return path_exists(store.root) is None
