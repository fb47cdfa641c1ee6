"""Fix parts on which the client fails before it sends anything."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput


def mend_unsendable(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Set aside what can't be read; complete what lacks something. Only the client knows what its parts lack."""
    stuck = next(u for u in given.request.unsendable if u.part_id == violation.part_id)
    return (given.editor.mend_unsendable(stuck.part_id, stuck.fault, stuck.reason, given.settings.cancelled_text),)
