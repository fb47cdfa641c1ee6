"""With `heal_ahead`, the real client is not refused where the fault could be known before the prompt."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from recoveryd.clients.opencode.versions import TESTED, spelled
from recoveryd.heal.ahead import FORESEEN
from tests.e2e.daemon import CONFIG, Daemon, healing
from tests.e2e.install import UnavailableError, versions
from tests.shapes import BROKEN, HEALTHY
from tests.support.judge import came_last
from tests.support.values import session_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

AHEAD = f"heal_ahead = true\nheal_ahead_seconds = 1\n{CONFIG}"


def left(daemon: Daemon) -> int:
    """How many sessions are yet to be repaired before they are prompted."""
    coming = json.loads(daemon.run("scan", "--ahead", "--json").stdout)["ahead"]
    return sum(not one["action"].startswith("not repaired") for one in coming)


@pytest.mark.parametrize("version", versions([spelled(version) for version in TESTED]))
def test_what_can_be_known_before_the_prompt_is_never_refused(tmp_path: Path, version: str) -> None:
    known = [shape for shape in BROKEN if shape.kind in FORESEEN and shape.kind_for(version) == shape.kind]
    # Whether a signature is forged, only the provider knows.
    known = [shape for shape in known if not shape.deep and "forged" not in shape.name]
    one_a_kind = list({shape.kind: shape for shape in known if came_last(session_of(shape))}.values())
    sound = HEALTHY[1 :: len(HEALTHY) // 4]
    try:
        with healing(tmp_path, version, config=AHEAD) as (harness, daemon):
            made = {shape.name: shape.build(int(time.time() * 1000) + 1000) for shape in (*one_a_kind, *sound)}
            planted = {name: harness.plant(session) for name, session in made.items()}
            daemon.wait(lambda: not left(daemon) and len(daemon.history()) >= 2, "not all was repaired ahead")
            ahead = {entry["session"] for entry in daemon.history()}
            assert all(entry["detail"].startswith("Ahead of a refusal") for entry in daemon.history())
            assert not ahead & {planted[shape.name] for shape in sound}, "a healthy session was touched"
            newest = max(one["time"]["created"] for session in made.values() for one in session.messages) / 1000
            time.sleep(max(0.0, newest + 1 - time.time()))  # a prompt is the newest message
            for shape in (*one_a_kind, *sound):
                if planted[shape.name] in ahead or shape in sound:
                    outcome = harness.prompt(planted[shape.name], thinking=shape.thinking, model=harness.model)
                    assert outcome.accepted, f"{shape.name}: {outcome.result.error}"
    except UnavailableError as reason:
        pytest.skip(str(reason))
