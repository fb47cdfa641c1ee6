"""The values that the whole program speaks in. No I/O here, and no imports from other rooms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from recoveryd.core.cause import Cause

Json = Mapping[str, Any]

PAGE = 50  # messages that are looked through at a time, the newest first, each with all its parts


class Kind(StrEnum):
    """Why a provider refuses a stored conversation. The names are public: config, `--json`, `explain`."""

    TOOL_RESULT_MISSING = "tool_result_missing"
    TOOL_RESULT_ORPHAN = "tool_result_orphan"
    THINKING_BLOCK_ORDER = "thinking_block_order"
    THINKING_DISABLED_VIOLATION = "thinking_disabled_violation"
    THINKING_SIGNATURE_INVALID = "thinking_signature_invalid"
    THINKING_BLOCK_MODIFIED = "thinking_block_modified"
    THINKING_FINAL_BLOCK = "thinking_final_block"
    EMPTY_CONTENT = "empty_content"
    ROLE_ORDER = "role_order"
    TOOL_CALL_INVALID = "tool_call_invalid"
    INVALID_UNICODE = "invalid_unicode"
    MEDIA_REJECTED = "media_rejected"
    ASSISTANT_PREFILL = "assistant_prefill"
    TRAILING_WHITESPACE = "trailing_whitespace"
    REASONING_ITEM = "reasoning_item"
    REASONING_MISSING = "reasoning_missing"
    FOREIGN_ITEM = "foreign_item"
    TOOL_NOT_FOUND = "tool_not_found"
    CONTEXT_OVERFLOW = "context_overflow"
    UNSENDABLE_PART = "unsendable_part"  # no provider says it: the client fails on the part before it sends anything
    WRAPPED_IDS = "wrapped_ids"  # no provider says it: the client takes each new prompt for an old one
    ENDLESS_COMPACTION = "endless_compaction"  # no provider says it: the client compacts, and what is left is too long
    INTERRUPTED_TURN = "interrupted_turn"  # no provider says it: the client went away in the middle of a turn


@dataclass(frozen=True, slots=True)
class Part:
    """One stored part. `data` is the JSON object as stored, unknown fields and all; None when it is no JSON object."""

    id: str
    message_id: str
    data: Json | None
    raw: bytes | None = None  # exactly what the store holds; None only for a part that is not stored yet

    @property
    def type(self) -> str:
        """The stored `type`, as "text" or "tool"; "" where there is none."""
        kind = self.data.get("type") if self.data is not None else None
        return kind if isinstance(kind, str) else ""


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message and its parts, in the order in which the client reads them (by part id)."""

    id: str
    data: Json
    parts: tuple[Part, ...] = ()
    raw: bytes | None = None
    at: int = 0  # the store's own time of the message, where the client orders by time before it orders by id
    row: int = 0  # its place in the store's table, where that counts among those of one time; 0: not known

    @property
    def role(self) -> str:
        """ "user" or "assistant"; "" where the record does not say."""
        role = self.data.get("role")
        return role if isinstance(role, str) else ""

    @property
    def error(self) -> Json | None:
        """The stored error object; None where there is none."""
        error = self.data.get("error")
        return error if isinstance(error, Mapping) else None

    @property
    def by_time(self) -> tuple[int, str]:
        """A sort key: sorted by it, messages are in the order in which they were made."""
        return self.created, self.id

    @property
    def created(self) -> int:
        """Milliseconds since the epoch; 0 when the message does not say."""
        return _millis(self.data, "created")

    @property
    def completed(self) -> int:
        """Milliseconds since the epoch; 0 while the message is not finished."""
        return _millis(self.data, "completed")


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session: its messages in the order in which the client reads them."""

    store: str
    id: str
    messages: tuple[Message, ...]
    title: str = ""
    directory: str = ""
    parent: str | None = None
    revert: Json | None = None

    @property
    def newest(self) -> Message | None:
        """The message that was made last, whatever the client's order."""
        return max(self.messages, key=lambda message: message.by_time, default=None)

    def message(self, message_id: str) -> Message | None:
        """Return the message of this id; None where there is none."""
        return next((message for message in self.messages if message.id == message_id), None)

    def until(self, message_id: str) -> Session:
        """Return the session as it was before this message; all of it where there is no such message."""
        at = next((at for at, message in enumerate(self.messages) if message.id == message_id), None)
        return replace(self, messages=self.messages[:at])

    def part(self, part_id: str) -> Part | None:
        """Return the part of this id; None where there is none."""
        return next((p for m in self.messages for p in m.parts if p.id == part_id), None)


@dataclass(frozen=True, slots=True)
class RecordedError:
    """The value of what a client recorded of an error, read by the client into what all of them have in common.

    `texts` are the words of the provider, unescaped, without what repeats the request. `kind` and `cause` are what the
    client's own name for the error says, and `blameless` that it is of something else than the history: an abort, say.
    """

    texts: tuple[str, ...] = ()
    name: str = ""  # the client's own
    kind: Kind | None = None
    cause: Cause | None = None
    blameless: bool = False
    status: int | None = None  # of the answer, as HTTP has it
    url: str = ""  # where the request went; "" where it is not told
    answered: bool = False  # by a provider: a status or a body of an answer was recorded
    continued: bool = False  # the request may have held only what came behind an earlier one: so its places count


class Limit(StrEnum):
    """What a provider takes no more of, where it speaks of images or documents."""

    BYTES = "bytes"  # of one
    SIDES = "sides"  # of one, its pixels
    SIZE = "size"  # bytes or sides: the words do not say
    NUMBER = "number"  # of those in a request
    REQUEST = "request"  # bytes of all that is sent together


@dataclass(frozen=True, slots=True)
class Refused:
    """The value of why a session is refused: as a provider's words say, or found without any (then the `kind` alone).

    `ids` are those of the tool calls that the words name; `position` is the `messages.N[.content.M]`, or `input[N]`, of
    the sentence that told the kind, and counts what was sent, not what is stored. `field` is what follows it
    ("call_id", "tool_result.content.1"). `said` is the sentence of the tables that fitted. `sort`: "image",
    "document" or "file", where they speak of that alone; `over`: what there is too much of. `by_length`: something of a
    tool call is too long. `by_error`: a recorded error says it.
    """

    kind: Kind
    ids: tuple[str, ...] = ()
    position: tuple[int, int | None] | None = None
    field: str = ""
    said: str = ""
    names: tuple[str, ...] = ()  # of items, of their types, of tools, or the ends of what is encrypted ("gAAA...c90=")
    limit: int = 0  # bytes that a request may have; 0: not told
    sent: int = 0  # bytes that it had; 0: not told
    most_media: int = 0  # images that a request may have, or what `sort` says; 0: not told
    sort: str = ""
    over: Limit | None = None
    longest_name: int = 0  # characters that one of a tool call may have; 0: not told
    longest_id: int = 0  # as well
    by_length: bool = False
    by_error: bool = False
    media_types: frozenset[str] = frozenset()  # of files ("image/heic"), where they name one
    said_by: str = ""  # whose sentence it is, as the tables name them ("Anthropic", "several")
    continued: bool = False  # `position` may count from behind what earlier requests had
    of_one: bool = False  # one image or document is not as it should be
    of_none: bool = False  # or maybe none: the model takes no such, or a server fails for a while


@dataclass(frozen=True, slots=True)
class Failure:
    """The value of a turn that failed, as its client recorded it: on a new message, empty where it was refused."""

    store: str
    session: str
    message: str
    time: int  # milliseconds since the epoch
    error: RecordedError = RecordedError()
    provider: str = ""
    model: str = ""
    protocol: str = ""  # what was spoken, as a `Wire` names it, where the client speaks but one
    of_summary: bool = False  # the client asked for a summary, maybe of a model that nobody chose
    begun: bool = False  # words of the model stand in its message, in answer to the request that failed
    folder: str = ""  # where the client worked then; "": where its session was begun, as far as is known
    called: str = ""  # the model by its name at the provider, where the client has another for it


@dataclass(frozen=True, slots=True)
class Edit:
    """The value of one edit of a session: put `after` in the place of a part (of the message itself where `part_id` is
    None); None sets it aside.

    What is not there yet is added: a new message's own edit comes before those of its parts.
    """

    message_id: str
    part_id: str | None
    after: Json | None
    action: str  # a name of `ACTIONS`: what a person is told
    companion: bool = False  # it comes along with another edit of the same deed: told and counted as one
    also: tuple[str, ...] = ()  # what else was done to the same record, or how often: names of `ACTIONS`

    @property
    def record(self) -> tuple[str, str]:
        """What is edited: message and part id, the latter "" for the message itself."""
        return self.message_id, self.part_id or ""


@dataclass(frozen=True, slots=True)
class Change:
    """The value of one record of a store before and after: what the ledger keeps, and what `apply` and `undo` write.
    `key` means something to its store alone (a path relative to its root, or a table and an id). None stands for "no
    such record". `mode` is the permission bits of a file, None where there are none.
    """

    key: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None

    def reversed(self) -> Change:
        """Return the change that takes this one back."""
        return Change(self.key, self.after, self.before, self.mode)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The value of why nothing is edited, in words for the user. `understood`: the rules explain the failure.
    `again_s`: after so many seconds another look may end otherwise; 0: it will not.
    """

    reason: str
    understood: bool = True
    again_s: float = 0.0


class Outcome(StrEnum):
    """How a recovery ended. The names are public (`history --json`)."""

    PENDING = "pending"  # images are in the ledger, the store is being written; only a crash leaves this behind
    HEALED = "healed"
    REFUSED = "refused"  # understood, and not repaired on purpose
    NOT_UNDERSTOOD = "not_understood"  # the rules do not explain the error
    CONFLICT = "conflict"  # the client wrote in between; its version stays
    GAVE_UP = "gave_up"  # the session is at its cap
    FAILED = "failed"  # reading or writing went wrong
    UNDOING = "undoing"  # an undo is being written; only a crash leaves this behind
    UNDONE = "undone"

    @property
    def taken_back(self) -> bool:
        """Whether it was undone, or an undo of it was begun."""
        return self in (Outcome.UNDONE, Outcome.UNDOING)


CUT_OFF = (Outcome.PENDING, Outcome.UNDOING)  # the store may hold any mixture of the images


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of one recovery as the ledger has it."""

    id: str
    time: float  # seconds since the epoch
    store: str
    session: str
    message: str
    title: str
    kind: Kind | None
    outcome: Outcome
    edits: int
    detail: str
    actions: tuple[str, ...] = ()
    confirmed: bool = True  # false of a repair that was not read back yet, after the client had its time
    sent: int = 0  # tokens that are sent since, of a session that was made shorter
    kinds: tuple[Kind, ...] = ()  # that the rules found before it: all are mended; () where that is not recorded
    overwritten: bool = False  # what a forced undo wrote over: kept beside the recoveries, and counted as none


@dataclass(frozen=True, slots=True)
class Event:
    """The value of what a recovery came to, for callbacks and notices. `seconds`: from the start of the repair to the
    disk.

    `places`: where each of `actions` was done ("turn 14, tool bash"). `id`: "" of a failure of the disk, on no record.
    """

    id: str
    store: str
    session: str
    title: str
    message: str
    kind: Kind | None
    outcome: Outcome
    detail: str
    actions: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    seconds: float = 0.0
    places: tuple[str, ...] = ()
    resumed: bool = False  # it was told to go on, and the prompt is in the store
    not_resumed: str = ""  # why that went wrong, where it was tried
    refused_since: bool = False  # a later prompt was refused in words that are not known: it may not be healed
    ahead: bool = False  # nothing was refused yet: it was kept from that
    again_s: float = 0.0  # after so many seconds it is looked at again, where nothing came of it; 0: at the next sweep
    until_written: bool = False  # nothing is to be done before the client writes to the session again
    sent: int = 0  # tokens that are sent since, of a session that was made shorter
    kinds: tuple[Kind, ...] = ()  # as of `Entry`
    repeated: bool = False  # the same came of the same failure before, and was told


@dataclass(frozen=True, slots=True)
class PastRecovery:
    """The value of an earlier recovery of a session that wrote something, told it to go on, or was its last: given up.
    `message` had failed, of this `kind`; `undone`: when the user took it back, in seconds since the epoch, if known.
    """

    recovery: str
    message: str
    outcome: Outcome
    undone: float | None = None
    kind: str = ""


def _millis(data: Json, key: str) -> int:
    time = data.get("time")
    value = time.get(key) if isinstance(time, Mapping) else None
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e15 else 0
