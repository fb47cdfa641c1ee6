"""What `doctor` asks of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from recoveryd.core import WARN, Check, RecoverydError, command_line, fail, first_of, ok, warn
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import ledger_summary, watched_by, why_unwritable
from recoveryd.ledger import Upkeep, damage, is_there, peek

_MB = 1_000_000


def check_ledger(patient: Patient) -> Iterator[Check]:
    """Check that the ledger can be read and is whole."""
    path = patient.ledger
    try:
        if not is_there(path):
            yield ok("ledger", "There is no ledger yet; the first start makes it.")
            return
        count = peek(path, lambda opened: len(Upkeep(opened).ended())) or 0
        found = damage(path)
    except RecoverydError as error:
        yield fail("ledger", error.message, error.hint or "Nothing is repaired without it.")
        return
    if unwritable := why_unwritable(path):
        hint = f"chmod 600 {path}; chmod 700 {path.parent}; is its disk read-only?"
        yield fail("ledger", unwritable, hint)
    elif found:
        hint = (
            "Stop recoveryd and copy the file (with its -wal and -shm) to a safe place: it holds the originals of what "
        )
        yield fail("ledger", f"The ledger {path} is damaged: {found}.", hint + "was repaired.")
    else:
        yield ok("ledger", f"{path} is whole: {count} recover{'y' if count == 1 else 'ies'}.")


def check_ledger_size(patient: Patient) -> Iterator[Check]:
    """Check that the ledger is within its limit."""
    limits = patient.config.ledger
    try:
        if not is_there(patient.ledger):
            return
        held = peek(patient.ledger, lambda opened: Upkeep(opened).image_bytes()) or 0
    except RecoverydError:
        return  # said by the check of the ledger itself
    total = patient.ledger.stat().st_size
    words = f"The ledger takes {total / _MB:.1f} MB; {held / _MB:.1f} MB of it originals (limit: {limits.keep_mb} MB)."
    if held > limits.keep_mb * _MB:
        yield warn(
            "ledger_size",
            words + " What exists nowhere else now is kept beyond the limit.",
            f"{command_line('ledger', 'prune', '--all-content', '--dry-run')} shows what could go.",
        )
    else:
        yield ok("ledger_size", words)


def check_conflicts(patient: Patient) -> Iterator[Check]:
    """Check that no repair was cut off, or written over by the client."""
    found = ledger_summary(patient.config, patient.stores, patient.state_dir, patient.now)
    if found.problem:
        return  # said by the check of the ledger itself
    watched = any(watched_by(store, patient.state_dir) for store in patient.stores)
    if found.pending and not watched:
        ids = [entry.id for entry in found.pending]
        cut = "1 repair was" if len(ids) == 1 else f"{len(ids)} repairs were"
        says = f"{cut} cut off by a crash: {first_of(ids)}."
        yield Check("conflicts", WARN, says, f"`{command_line('start')}` brings that to an end", recoveries=ids)
    if found.conflicts:
        ids = [entry.id for entry in found.conflicts]
        one, many = "1 repair does not stand as it was", f"{len(ids)} repairs do not stand as they were"
        stand = one if len(ids) == 1 else many
        says = f"{stand} written, and what is there stays: {first_of(ids)}."
        hint = f"{command_line('show', ids[0])}; {command_line('scan')} tells what is stuck now."
        yield Check("conflicts", WARN, says, hint, recoveries=ids)
    if not found.conflicts and not (found.pending and not watched):
        yield ok("conflicts", "No repair was cut off or written over.")
