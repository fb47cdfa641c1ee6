"""Tool calls that no provider takes: ids, names and inputs."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.bench import Bench


def invalid(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """A legal id of its own, a legal name, an input that is an object; what is legal stays."""
    assert violation.block is not None
    return (bench.editor.mend_call(violation.block, bench.provider.call_limits),)
