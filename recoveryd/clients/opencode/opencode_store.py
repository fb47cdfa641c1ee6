"""What OpenCode's stores answer beyond the port that the stores of all clients have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, cast

from recoveryd.clients.store import Store
from recoveryd.core import Change, Session


class OpencodeStore(Store, Protocol):
    """A tree of files or a database of OpenCode."""

    @property
    def one_form(self) -> bool:
        """Whether every version that uses a store of this sort sends the same form."""

    def forms(self) -> tuple[str, ...]:
        """List the forms ("old", "paged", "new") in which the client that uses this store may send its sessions."""

    def greatest_id(self, session_id: str) -> str:
        """Return the id of its messages that sorts last; "" when there is none. No message is read."""

    def names_tail(self, session_id: str) -> bool:
        """Whether a compaction of it may say what of the history stays. No message is read."""

    def strangers(self, session_id: str) -> list[str]:
        """List what lies among the records of a session and is none: the client may stumble over it."""

    def with_new_ids(self, session: Session, names: Mapping[str, str], keep: Collection[str] = ()) -> list[Change]:
        """Make the changes that give a session's messages and parts other ids (old to new), wherever these are named.

        Nothing else in the records changes, not even their times. Those of the messages `keep` come along as they
        are: for the ledger. StoreError: something names them in a way not known.
        """


def of_opencode(store: Store) -> OpencodeStore:
    """Take a store as one of OpenCode's: its client is given no other."""
    return cast(OpencodeStore, store)
