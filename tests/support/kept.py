"""A store with its client at work in it, as `tests/contract` asks for it: each store of each client is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from recoveryd.clients.store import About, Store
from recoveryd.core.model import Change, Json, Message
from tests.support.json_tree import SES

Raw = bytes  # the text of a record as a client that broke it may have left it


class Kept(Protocol):
    """A store, and a client that writes to it. All times are milliseconds since the epoch.

    Sessions and parts are called by labels ("ses_1", "prt_1"); `id` gives what the store knows them by.
    """

    def __init__(self, folder: Path) -> None:
        """Make an empty store in `folder`."""

    store: Store
    ms: int  # the clock of the store: now

    # Whether an edit may add a record, and a message is one of its own; else records are the lines of a file that only
    # grows: an edit writes over a line that is there.
    adds: bool
    aside: Json | None  # what stands in the place of a part that was set aside; None: nothing
    asked: tuple[str, str]  # the provider and the model of a refusal
    spoken: frozenset[str]  # by which kinds of parts a turn that was stopped shows that the provider had taken it

    # What no part can be, so that it is kept as bytes; what is read as a part that says nothing; what is read; and
    # lines that are no records at all.
    broken: Sequence[Raw]
    odd: Sequence[Raw]
    readable: Sequence[tuple[Raw, Json]]
    passed_over: Sequence[Raw]
    bad_keys: Sequence[str]  # no records of this store
    named: str  # how a record is named that can't be read, as an expression with {id}; "": the client passes over it
    too_large: tuple[str, str]  # what is said of a part `prt_huge` of 5 KB and of a session, as expressions

    def id(self, label: str) -> str:
        """The id of a session or a part; of one that is not there, one that it could have."""

    # The client writes.
    def session(self, session: str, title: str, directory: str, parent: str) -> About:
        """Say of a session what it is; what the store is to tell of it once something was asked in it."""

    def asks(self, ms: int, session: str = SES) -> str:
        """Add a user's message, of which nothing has come; its id."""

    def answers(self, ms: int, session: str = SES) -> str:
        """Add a whole answer that was finished 5 ms later; its id."""

    def calls(self, ms: int, session: str = SES) -> str:
        """Add a finished step of the model that ended in a call of a tool; its id."""

    def runs(self, ms: int, session: str = SES) -> str:
        """Have the client at work on an answer that is not finished; its id, "" where nothing of it is stored yet."""

    def is_refused(self, ms: int, session: str = SES) -> str:
        """Add a turn that the provider refused, as `asked` says; its id."""

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> None:
        """Add a turn that the user ended, with a part of each of these kinds (step-start, reasoning, text)."""

    def part(self, owner: str, label: str, raw: Raw | None = None, session: str = SES) -> None:
        """Add a part that says "hello", or this record as it is."""

    def writes(self, owner: str) -> Sequence[Callable[[], object]]:
        """All ways in which it writes to a session that is there, with the message `owner` and its part `prt_2`."""

    # Somebody writes over what the client wrote.
    def rewrites(self, owner: str, label: str) -> None:
        """Write other words over a part."""

    def removes(self, owner: str, label: str) -> None:
        """Delete a part, or its line."""

    def broken_message(self, ms: int) -> str:
        """Add a message that is no JSON; its id. Only where there is anything `broken`."""

    def line(self, raw: Raw) -> None:
        """Add what is `passed_over`."""

    # What is in the store, and what can be done to it from outside.
    def messages(self, session: str = SES) -> Sequence[Message]:
        """The messages of a loaded session with the parts that were added to them, of all that it has by itself."""

    def ordered(self, ids: Sequence[str]) -> Sequence[str]:
        """Ids of messages, or parts of one, in the order of the client: they were added in this one."""

    def key(self, owner: str, label: str) -> str:
        """The key of the record that a part is, or is in."""

    def called(self, owner: str, label: str) -> str:
        """How an error names this record."""

    def record(self, owner: str, label: str) -> bytes | None:
        """What `load` gives as its bytes."""

    def said(self, data: Json) -> Json:
        """A part, or the record that it is in, without what only says whose it is."""

    def other_layout(self, owner: str, label: str) -> Raw:
        """A part that says "a": 1, in another layout than the store would write it."""

    def words(self, words: str) -> Json:
        """A part of a prompt that says `words`, as an edit gives it."""

    def content(self) -> Mapping[str, Any]:
        """All that the client has there, byte by byte."""

    def left(self) -> list[str]:
        """What lies there that neither this client nor a person put there."""

    def cut_off(self, change: Change) -> int:
        """Leave there what a crash in the middle of the write of `change` leaves; how many things."""

    def foreign(self, owner: str) -> None:
        """Put what is no record where the client keeps them, if that can be."""

    def limited(self, patch: pytest.MonkeyPatch, record: int, session: int) -> Store:
        """The same store, with other limits in bytes."""

    def absent(self, folder: Path) -> Store:
        """A store in `folder`, where none is."""

    def is_now(self, ns: int) -> bool:
        """Whether a stamp of this time, in nanoseconds, may be of a write of now."""

    def file(self, owner: str, label: str) -> Path:
        """The file that a part is in."""

    def protect(self, number: int, patch: pytest.MonkeyPatch) -> str:
        """Let the first (0) or the second (1) thing that an edit has to write to be read alone.

        What `live` says then; "" where only a write shows it.
        """

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        """A list, empty yet, of the ids of all messages that the store reads from now on."""
