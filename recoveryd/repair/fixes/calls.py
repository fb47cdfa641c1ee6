"""Tool calls that no provider takes: ids, names and inputs."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput


def invalid(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """A legal id of its own, a legal name, an input that is an object; what is legal stays."""
    assert violation.block is not None
    return (given.editor.mend_call(violation.block, given.provider.call_limits),)
