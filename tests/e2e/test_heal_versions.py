"""Every shape that a version of the client can be broken with, healed by `recoveryd run` while the server runs.

The JSON store with the kinds that `test_heal` leaves out, the newest database with all, the one before with half of
them (all where TEST_RECOVERYD_FULL_CLIENTS is set). The provider binds thinking to what stands before it: it accepts
only what the plain one does.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.versions import TESTED, version_text
from tests.e2e.daemon import Daemon, healing
from tests.e2e.harness import Harness, Outcome, settle
from tests.e2e.heals import Healed, collect, words
from tests.e2e.install import JSON_STORE, UnavailableError, versions
from tests.e2e.media import data_url, png
from tests.e2e.provider import Forced
from tests.e2e.strict import merged
from tests.shapes import BROKEN, HEALTHY, Shape, is_old
from tests.support.build import SessionBuilder
from tests.support.parts import file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

# Before 1.14 these have two faults: the first error names the one, the other is a signature, which nothing but the
# provider can tell.
TWICE = {"missing-and-forged-off", "missing-and-forged-on"}
VERSIONS = versions([version_text(version) for version in TESTED])
FULL = bool(os.environ.get("TEST_RECOVERYD_FULL_CLIENTS"))


def shapes_of(version: str) -> list[Shape]:
    """Those that this version is refused for, or fails on.

    Without the images of more than 5 MB on 1.18: it takes the 524 in "5242880" for a status, and tries again for a
    minute before it records anything. And a part that is `null` is broken in files alone.
    """
    if version == JSON_STORE:
        return [shape for shape in BROKEN if shape.stage == 4]
    found = [shape for shape in BROKEN if shape.kind_for(version) is not None and shape.name != "part-null"]
    found = [shape for shape in found if is_old(version) or shape.newer != "slow"]
    # Most come in pairs, with thinking on and off: one of each pair, now the one and now the other.
    half = (shape for at, shape in enumerate(found) if (at + at // 2) % 2 == 0)
    return list(half) if is_old(version) and not FULL else found


# Drops the oldest prompt of a session that asks for it, with its answer, as plugins that save tokens do.
DROPS = """export const Drops = async () => ({
  "experimental.chat.messages.transform": async (_, { messages }) => {
    if (JSON.stringify(messages).includes("drop the oldest")) messages.splice(0, 2)
  },
})
"""
NO_IMAGE = "image.source.base64.data: Could not process image"
DAMAGED = png(4, 9) + b"damaged further in"

Rows = list[tuple[object, ...]]
Undone = tuple[Healed, int, Rows, Rows]  # the code of `undo`, and the rows before the repair and after the undo


@dataclass(repr=False)
class Played:
    """What became of each shape, and of healthy sessions that were prompted in between."""

    harness: Harness
    daemon: Daemon
    version: str
    broken: dict[str, Healed]
    healthy: dict[str, Outcome]
    undone: list[Undone]


@pytest.fixture(scope="module", params=VERSIONS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    root = tmp_path_factory.mktemp("versions")
    plugins = root / "client" / "config" / "opencode" / "plugin"
    plugins.mkdir(parents=True)
    (plugins / "drops.js").write_text(DROPS)
    try:
        with healing(root, str(request.param), bound=True) as (harness, daemon):
            yield _play(harness, daemon, str(request.param))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _prompt(harness: Harness, session: str, shape: Shape) -> Outcome:
    """As a TUI does, which always names the model: a client that fails on a part then stores the prompt at least."""
    return harness.prompt(session, thinking=shape.thinking, model=harness.model)


def _play(harness: Harness, daemon: Daemon, version: str) -> Played:
    broken = []
    for shape in shapes_of(version):
        planted = shape.build()
        harness.plant(planted)
        broken.append(Healed(shape, planted, _prompt(harness, planted.id, shape)))
    healthy = {}
    for shape in HEALTHY[:: len(HEALTHY) // 12]:
        planted = shape.build()
        harness.plant(planted)
        healthy[f"{shape.name} {planted.id}"] = _prompt(harness, planted.id, shape)
    settle(harness, broken[-1].id)
    collect(daemon, broken)
    undone = _undo_some(harness, daemon) if harness.client.database.exists() else []
    for healed in broken:
        healed.again = [_prompt(harness, healed.id, healed.shape)]
    twice = [healed for healed in broken if is_old(version) and healed.shape.name in TWICE]
    if twice:
        collect(daemon, twice, 2)
    for healed in twice:
        healed.again = [_prompt(harness, healed.id, healed.shape)]
    return Played(harness, daemon, version, {healed.shape.name: healed for healed in broken}, healthy, undone)


def _undo_some(harness: Harness, daemon: Daemon) -> list[Undone]:
    """A few more sessions: their rows right after the refusal, and after the undo of the repair."""
    found = []
    for name in ("blank-answer-off", "forged-earlier-on", "open-thinking-and-tool", "tool-without-state"):
        shape = next(shape for shape in BROKEN if shape.name == name)
        planted = shape.build()
        harness.plant(planted)
        before = _rows(harness, planted.id, [message["id"] for message in planted.messages])
        healed = Healed(shape, planted, _prompt(harness, planted.id, shape))
        collect(daemon, [healed])
        code = daemon.codes([["undo", healed.entries[0]["id"]]])[0]
        after = _rows(harness, planted.id, [message["id"] for message in planted.messages])
        found.append((healed, code, before, after))
    return found


def _rows(harness: Harness, session: str, messages: Sequence[str]) -> Rows:
    """Every column of the parts of these messages."""
    store = OpencodeSqlite(harness.client.database)
    loaded = store.load(session)
    return [(part.id, part.raw) for message in loaded.messages if message.id in messages for part in message.parts]


def test_every_shape_is_refused_healed_and_goes_on(played: Played) -> None:
    """One recovery each (two where the second fault shows in nothing that is stored), and the next is answered."""
    wrong = []
    for name, healed in played.broken.items():
        outcomes = [entry["outcome"] for entry in healed.entries]
        fine = not healed.refused.accepted and outcomes == ["healed"] * (1 + (is_old(played.version) and name in TWICE))
        if not (fine and healed.again[-1].accepted):
            wrong.append(healed.tell())
    assert wrong == []
    assert len(played.broken) >= 40


def test_nothing_that_was_said_is_lost(played: Played) -> None:
    """All text and tool output is still in the client's own list, which answers for every session."""
    for name, healed in played.broken.items():
        said = words([p for ps in healed.planted.parts.values() for p in ps if p["id"] not in healed.planted.raw])
        listed = played.harness.client.messages(healed.id)
        kept = words([part for message in listed for part in message["parts"]])
        lost = {text for text in said - kept if not _mended(text, kept)}
        assert lost == set(), name


def _mended(text: str, kept: object) -> bool:
    """Half a character is kept as U+FFFD; an output that an image was taken from has a note behind it."""
    assert isinstance(kept, dict)
    whole = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= char <= "\udfff" else char for char in text)
    return whole in kept or any(str(known).startswith(text + "\n[The ") for known in kept)


def test_healthy_sessions_are_left_alone(played: Played) -> None:
    history = played.daemon.by_session()
    assert played.healthy
    for name, outcome in played.healthy.items():
        assert outcome.accepted, name
        assert name.split()[-1] not in history


def test_undo_restores_the_rows_exactly(played: Played) -> None:
    assert bool(played.undone) is played.harness.client.database.exists()
    for healed, code, before, after in played.undone:
        assert code == 0, healed.tell()
        assert before == after, healed.shape.name


def test_a_place_that_a_plugin_moved_costs_no_sound_image(played: Played) -> None:
    """An answered image stands at it in the store."""
    built = SessionBuilder(title="dropped")
    for side in (4, 5, 6):
        built.user("drop the oldest", file(data_url(png(4, side)), filename=f"{side}.png"))
        built.assistant("seen")
    built.user("and this", file(data_url(DAMAGED), filename="damaged.png"))
    harness, session = played.harness, played.harness.plant(built.planted())
    harness.provider.force_when(_damaged)
    try:
        refused = harness.prompt(session)
        assert [request.refused for request in refused.requests] == [f"messages.4.content.1.{NO_IMAGE}"]
        [entry] = played.daemon.wait_settled([session])[session]
        assert (entry["kind"], entry["outcome"]) == ("media_rejected", "healed"), entry
        assert harness.prompt(session).accepted
    finally:
        harness.provider.force_when(None)
    parts = [part for message in harness.client.messages(session) for part in message["parts"]]
    assert [part["filename"] for part in parts if part["type"] == "file"] == ["4.png", "5.png", "6.png"]


def _damaged(body: dict[str, Any]) -> Forced | None:
    """Refuse an image as the provider does that decodes all of it, at its place in what was sent."""
    coded = base64.b64encode(DAMAGED).decode()
    for at, message in enumerate(merged(body["messages"])):
        for index, block in enumerate(message["content"]):
            if (block.get("source") or {}).get("data") == coded:
                return Forced(f"messages.{at}.content.{index}.{NO_IMAGE}")
    return None


def test_the_daemon_met_no_fault_of_its_own(played: Played) -> None:
    assert "Traceback" not in played.daemon.log
    assert "fault of recoveryd" not in played.daemon.log
