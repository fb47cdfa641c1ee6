"""Parts on which the client fails before it sends anything."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.bench import Bench


def mended(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """What can't be read is set aside, in the ledger; what lacks something gets it: only the client knows what."""
    stuck = next(u for u in bench.request.unsendable if u.part_id == violation.part_id)
    return (bench.editor.mend_unsendable(stuck.part_id, stuck.fault, stuck.reason, bench.settings.cancelled_text),)
