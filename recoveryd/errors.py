"""Errors that a person reads: what happened, where, and what to do next."""

from __future__ import annotations


class RecoverydError(Exception):
    """The base of all errors of the program. `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class NotFoundError(RecoverydError):
    """A recovery, session or store that the user named is not there."""

    exit_code = 3


class RefusedError(RecoverydError):
    """The thing asked for would lose something: what it would replace has changed since."""

    exit_code = 4


class BusyError(RecoverydError):
    """Another process holds the lock. Trying again may help."""

    exit_code = 75


class LeftAloneError(RefusedError):
    """The user said to leave this session alone, and may take that back at any moment."""


class ActiveError(RefusedError):
    """A turn of the session is running: whatever is edited now, the client may be about to write."""


class ConfigError(RecoverydError):
    exit_code = 78


class StoreError(RecoverydError):
    """A store can't be read or written."""


class BusyStoreError(StoreError):
    """Another program holds the store. Nothing was written; trying again may help."""

    exit_code = 75


class DiskError(StoreError):
    """The system did not let a store be read or written: a full or broken disk, a permission. It may pass."""


class ConflictError(StoreError):
    """A record is not what was read from it: the client wrote since. Nothing of the set was left half written."""

    exit_code = 4
