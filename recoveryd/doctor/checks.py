"""Make all checks of `doctor`: each says what it found and what to do next. Nothing is written; time is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from recoveryd.core import FAIL, Check, RecoverydError, fail
from recoveryd.doctor import client_checks, host_checks, ledger_checks, store_checks
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.host_checks import check_toast, check_watches

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
    "client": "the client that answers, by a port or the plugin, is of a version that was tested",
    "plugin": "the plugin in a client, if it is there, is of this version, unchanged and at work",
    "toast": "a notice can be shown on this desktop",
    "ledger": "the ledger can be read and is whole",
    "ledger_size": "the ledger is within its limit",
    "conflicts": "no repair was cut off, or written over by the client",
}

_Maker: TypeAlias = Callable[[Patient], Iterable[Check]]
# Who makes the checks of a code; those of the clients make the next code's as well.
_CHECKS: Mapping[str, _Maker] = {
    "config": host_checks.check_config,
    "state_folder": host_checks.check_state_folder,
    "disk": host_checks.check_disk,
    "clock": host_checks.check_clock,
    "stores": store_checks.check_stores,
    "store": store_checks.check_store,
    "strangers": store_checks.check_by_clients,
    "watches": check_watches,
    "daemon": store_checks.check_daemon,
    "service": host_checks.check_service,
    "repairs": host_checks.check_repairs,
    "pause": host_checks.check_pause,
    "client": client_checks.check_clients,
    "plugin": client_checks.check_plugins,
    "toast": check_toast,
    "ledger": ledger_checks.check_ledger,
    "ledger_size": ledger_checks.check_ledger_size,
    "conflicts": ledger_checks.check_conflicts,
}


def examine(patient: Patient) -> Iterator[Check]:
    """Make all checks of `doctor`. One that fails to run counts as a failed check, and the others are still made."""
    for code, make in _CHECKS.items():
        try:
            yield from make(patient)
        except RecoverydError as error:
            yield fail(code, error.message, error.hint)
        except OSError as error:
            yield fail(code, f"This could not be checked: {error}.", "")


def none_failed(checks: Iterable[Check]) -> bool:
    """Whether none of `doctor`'s checks failed."""
    return all(check.level != FAIL for check in checks)
