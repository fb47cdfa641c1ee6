"""Errors that a person reads: what happened, where, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence


class RecoverydError(Exception):
    """The base of all errors of the program. `exit_code` is what the command line ends with, `code` its stable name.

    `recoveries`: ids that the words speak of, for a program that reads the error.
    """

    exit_code = 1
    code = "failed"

    def __init__(self, message: str, hint: str = "", *, recoveries: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.recoveries = tuple(recoveries)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    @property
    def in_a_line(self) -> str:
        """The message and what to do about it, in one line."""
        return f"{self.message} {self.hint}".rstrip()


class UsageError(RecoverydError):
    """An error: what was typed makes no sense as a command."""

    exit_code, code = 2, "usage"


class NotFoundError(RecoverydError):
    """An error: a recovery, session or store that the user named is not there."""

    exit_code, code = 3, "not_found"


class RefusedError(RecoverydError):
    """An error: what was asked for would lose something, as what it would replace has changed since."""

    exit_code, code = 4, "refused"


class BusyError(RecoverydError):
    """An error: another process holds the lock. Trying again may help."""

    exit_code, code = 75, "busy"


class ReplacedError(RecoverydError):
    """An error: the code of recoveryd was upgraded or removed while it ran. The process is to be started anew."""

    exit_code, code = 75, "busy"


class LeftAloneError(RefusedError):
    """An error: the user said to leave this session alone, and may take that back at any moment."""


class ActiveError(RefusedError):
    """An error: a turn of the session is running, and the client may be about to write whatever is edited now."""


class UnreadError(ActiveError):
    """An error: a client may not have read the last repair of the session yet; nothing is to be done until it writes
    again.
    """


class ConfigError(RecoverydError):
    """An error: the configuration is wrong; the message says which key of which file."""

    exit_code, code = 78, "bad_config"


class StoreError(RecoverydError):
    """An error: a store can't be read or written."""


class BusyStoreError(StoreError):
    """An error: another program holds the store. Nothing was written; trying again may help."""

    exit_code, code = 75, "busy"


class UnknownKeyError(StoreError):
    """An error: a record's key is none of this store's: it may be one of another sort of store."""


class FormError(StoreError):
    """An error: a session is stored in a form that is not repaired. The message says which, and what to do instead."""

    exit_code, code = 4, "refused"


class DiskError(StoreError):
    """An error: the system did not let a store be read or written: a full or broken disk, a permission. It may pass."""


class ConflictError(StoreError):
    """An error: a record is not what was read from it, as the client wrote since. Nothing of the set was left half
    written.
    """

    exit_code, code = 4, "refused"


class LedgerError(RecoverydError):
    """The ledger can't be read or written. Nothing is repaired without it."""
