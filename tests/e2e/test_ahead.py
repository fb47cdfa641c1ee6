"""With `heal_ahead`, the real client is not refused where the fault could be known before the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from recoveryd.clients.opencode.versions import TESTED, version_text
from tests.e2e.ahead import AHEAD, coming, played
from tests.e2e.daemon import healing
from tests.e2e.install import UnavailableError, versions
from tests.shapes import HEALTHY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.mark.parametrize("version", versions([version_text(version) for version in TESTED]))
def test_what_can_be_known_before_the_prompt_is_never_refused(tmp_path: Path, version: str) -> None:
    # Whether a signature is forged, only the provider knows.
    known = [shape for shape in coming(version) if "forged" not in shape.name]
    one_a_kind = list({shape.kind: shape for shape in reversed(known)}.values())
    sound = HEALTHY[1 :: len(HEALTHY) // 4]
    try:
        with healing(tmp_path, version, config=AHEAD) as (harness, daemon):
            found = played(harness, daemon, version, one_a_kind, sound)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert found.refused == {}
    assert found.touched == []
