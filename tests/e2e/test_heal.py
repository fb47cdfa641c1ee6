"""The whole way on the real client: a session is refused, `recoveryd run` heals it, and it goes on.

Three rounds of all broken shapes, in bulk: the client takes a tenth of a second for a prompt, and the daemon works
meanwhile. The provider is one that binds thinking to what stands before it: it accepts only what the plain one does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.daemon import Daemon, healing
from tests.e2e.harness import Harness, settle
from tests.e2e.heals import (
    LEGAL,
    Files,
    Healed,
    break_all,
    collect,
    files,
    injected,
    planted_files,
    stored_parts,
    words,
)
from tests.e2e.install import UnavailableError
from tests.shapes import BROKEN
from tests.support.build import SessionBuilder
from tests.support.parts import compaction, text, tool

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SHAPES = [shape for shape in BROKEN if shape.stage == 2]
NAMES = [shape.name for shape in SHAPES]
FURTHER = ("a first prompt more", "a second one", "a third one")
# Two faults, of which a provider names one at a time, and the second shows in nothing that is stored.
TWICE = {"missing-and-forged-off", "missing-and-forged-on"}


@dataclass(repr=False)
class Rounds:
    """`same`: prompted on in the shape's own way; `other`: with thinking the other way; `undone`: taken back."""

    harness: Harness
    daemon: Daemon
    same: dict[str, Healed]
    other: dict[str, Healed]
    undone: dict[str, Healed]
    before: dict[str, Files]
    codes: dict[str, int]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rounds]:
    root = tmp_path_factory.mktemp("heal")
    try:
        with healing(root, bound=True) as (harness, daemon):
            yield _play(harness, daemon)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _play(harness: Harness, daemon: Daemon) -> Rounds:
    same, other, undone = (break_all(harness, SHAPES) for _ in range(3))
    settle(harness, undone[-1].id)
    collect(daemon, [*same, *other, *undone])
    storage = harness.client.storage
    before = {healed.shape.name: files(storage, healed.id) for healed in undone}
    with_entry = [healed for healed in undone if healed.entries]
    done = daemon.codes([["undo", healed.entries[0]["id"]] for healed in with_entry])
    codes = {healed.shape.name: code for healed, code in zip(with_entry, done, strict=True)}
    _heal_again(harness, daemon, same, other=False)
    _heal_again(harness, daemon, other, other=True)
    for healed in same:
        healed.again = [harness.prompt(healed.id, text, healed.shape.thinking) for text in FURTHER]
    for healed in other:
        healed.again = [harness.prompt(healed.id, thinking=not healed.shape.thinking)]
    one, two, three = ({healed.shape.name: healed for healed in some} for some in (same, other, undone))
    return Rounds(harness, daemon, one, two, three, before, codes)


def _heal_again(harness: Harness, daemon: Daemon, sessions: list[Healed], *, other: bool) -> None:
    """A prompt more for those that have a second fault: it is refused, and healed like the first."""
    twice = [healed for healed in sessions if healed.shape.name in TWICE]
    for healed in twice:
        healed.second = harness.prompt(healed.id, thinking=healed.shape.thinking != other)
    collect(daemon, twice, 2)


def test_enough_shapes_are_tried() -> None:
    """Every kind that is repaired by now, often enough, and with thinking on and off."""
    kinds = {shape.kind for shape in SHAPES}
    assert len(SHAPES) >= 40
    assert len(kinds) == 8
    for kind in kinds:
        assert sum(shape.kind == kind for shape in SHAPES) >= 5
    assert {shape.thinking for shape in SHAPES} == {True, False}


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_session_is_healed_and_goes_on(rounds: Rounds, name: str) -> None:
    """The prompt is refused for the shape's kind; one recovery later three more prompts are asked and answered."""
    healed = rounds.same[name]
    assert [request.kind for request in healed.refused.requests] == [healed.shape.kind]
    assert [entry["outcome"] for entry in healed.entries] == ["healed"] * (1 + (name in TWICE)), healed.tell()
    assert all(entry["edits"] > 0 for entry in healed.entries)
    for outcome in healed.again:
        assert [request.refused for request in outcome.requests] == [None], healed.tell()
        assert outcome.accepted, healed.tell()


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_with_thinking_the_other_way(rounds: Rounds, name: str) -> None:
    """The user may turn thinking on or off before the next prompt: the repair holds for both."""
    healed = rounds.other[name]
    assert [entry["outcome"] for entry in healed.entries] == ["healed"] * (1 + (name in TWICE)), healed.tell()
    assert healed.again[0].accepted, healed.tell()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_was_said_is_lost(rounds: Rounds, name: str) -> None:
    """All text and tool output is still in the store and in the client's list; what is new is marked."""
    healed = rounds.same[name]
    storage = rounds.harness.client.storage
    parts = stored_parts(storage, healed.planted)
    said = words([part for parts in healed.planted.parts.values() for part in parts])
    kept = words(parts)
    assert said - kept == {}
    planted = {part["id"] for parts in healed.planted.parts.values() for part in parts}
    assert [part for part in parts if part["id"] not in planted and not injected(part)] == []
    assert words([part for part in parts if not injected(part)]) - said == {}
    listed = rounds.harness.client.messages(healed.id)
    assert said - words([part for message in listed for part in message["parts"]]) == {}
    asked = [part["text"] for message in listed for part in message["parts"] if part["type"] == "text"]
    assert [text for text in asked if text in FURTHER] == list(FURTHER)


@pytest.mark.parametrize("name", NAMES)
def test_only_legal_files_are_left(rounds: Rounds, name: str) -> None:
    """The client lists every file that it finds, so there is none but messages and parts, each of them JSON."""
    healed = rounds.same[name]
    left = files(rounds.harness.client.storage, healed.id)
    strange = [path for path in left if not path.startswith("session/") and not LEGAL.fullmatch(path.split("/")[-1])]
    assert strange == []
    for path, content in left.items():
        record = json.loads(content)
        assert record["id"] == path.split("/")[-1].removesuffix(".json")


@pytest.mark.parametrize("name", NAMES)
def test_undo_restores_every_byte(rounds: Rounds, name: str) -> None:
    """What the recovery touched is again as it was planted, what it added is gone, and all else is as it stood."""
    undone = rounds.undone[name]
    assert rounds.codes.get(name) == 0, undone.tell()
    now, healed, planted = (
        files(rounds.harness.client.storage, undone.id),
        rounds.before[name],
        planted_files(undone.planted),
    )
    assert healed != now
    for path, content in planted.items():
        assert now.get(path) == content, path
    added = now.keys() - planted.keys()
    assert {path: now[path] for path in added} == {path: healed[path] for path in added}


def test_a_compaction_that_is_refused_is_healed(rounds: Rounds) -> None:
    """It carries the same history, and fails the same way; after the heal, the client makes up for it."""
    built = SessionBuilder(title="compaction")
    built.user("go")
    built.assistant(tool(), text("behind"))
    built.user(compaction())
    planted = built.planted()
    rounds.harness.plant(planted)
    first = rounds.harness.prompt(planted.id)
    assert [request.kind for request in first.requests] == ["tool_result_missing"]
    entries = rounds.daemon.wait_settled([planted.id])[planted.id]
    assert [entry["outcome"] for entry in entries] == ["healed"], entries
    for _ in range(2):  # the summary, and an answer
        assert rounds.harness.prompt(planted.id).accepted


def test_each_failure_had_one_recovery(rounds: Rounds) -> None:
    """Once more at the end, when everything was read back: no session was repaired twice, none got stuck again."""
    history = rounds.daemon.by_session()
    both = [*rounds.same.items(), *rounds.other.items()]
    expected = {healed.id: ["healed"] * (1 + (name in TWICE)) for name, healed in both}
    expected |= {healed.id: ["undone"] for healed in rounds.undone.values()}
    found = {session: [entry["outcome"] for entry in entries] for session, entries in history.items()}
    assert {session: found[session] for session in found if found[session] != expected.get(session, ["healed"])} == {}
    assert expected.keys() <= found.keys()
    assert "Traceback" not in rounds.daemon.log
