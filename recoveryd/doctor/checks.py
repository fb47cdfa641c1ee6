"""Is all as it should be? Each check says what it found and what to do next. Nothing is written; time is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from recoveryd.core import FAIL, Check, RecoverydError, fail
from recoveryd.doctor import client, host, ledger, stores
from recoveryd.doctor.check import Patient

# Public (`doctor --json`) and stable: what each check is about, in the order in which they are made.
CODES: Mapping[str, str] = {
    "config": "the configuration is sound, and what it names is there",
    "state_folder": "the state folder is writable, and readable by you alone",
    "disk": "there is room on the disks of the stores and of the state folder",
    "clock": "the clock is not behind what was written before",
    "stores": "there is a store",
    "store": "a store can be read and edited, and of which generation it is",
    "strangers": "no file lies in a store that the client takes for a message and is none",
    "id_wrap": "no session has messages from before the ids started again (2026-08-14) under a client that minds",
    "watches": "the kernel lets all folders be watched",
    "daemon": "each store is watched by a running recoveryd",
    "service": "the service, if it is installed, runs",
    "repairs": "what is stuck is repaired: it is no dry run, and repairs are not turned off",
    "pause": "repairs are not paused, and what to ignore can be read",
    "client": "the client that listens, if one does, is of a version that was tested",
    "toast": "a notice can be shown on this desktop",
    "ledger": "the ledger can be read and is whole",
    "ledger_size": "the ledger is within its limit",
    "conflicts": "no repair was cut off, or written over by the client",
}

_Maker: TypeAlias = Callable[[Patient], Iterable[Check]]
_CHECKS: Mapping[str, _Maker] = {
    "config": host.config,
    "state_folder": host.state_folder,
    "disk": host.disk,
    "clock": host.clock,
    "stores": stores.stores,
    "store": stores.store,
    "strangers": stores.strangers,
    "id_wrap": stores.id_wrap,
    "watches": stores.watches,
    "daemon": stores.daemon,
    "service": host.service,
    "repairs": host.repairs,
    "pause": host.pause,
    "client": client.client,
    "toast": client.toast,
    "ledger": ledger.ledger,
    "ledger_size": ledger.size,
    "conflicts": ledger.conflicts,
}


def examine(patient: Patient) -> Iterator[Check]:
    """All checks. One that itself fails is a failed check, and never the end of the others."""
    for code, make in _CHECKS.items():
        try:
            yield from make(patient)
        except RecoverydError as error:
            yield fail(code, error.message, error.hint)
        except OSError as error:
            yield fail(code, f"This could not be checked: {error}.", "")


def sound(checks: Iterable[Check]) -> bool:
    return all(check.level != FAIL for check in checks)
