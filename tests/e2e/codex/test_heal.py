"""The whole way on the real Codex: a thread is refused, `recoveryd run` heals it in its length, and it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.codex.healing import Rounds, play
from tests.e2e.codex.shapes import MENDED, SOUND, STUCK, Shape
from tests.e2e.install import UnavailableError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUICK = [shape for shape in STUCK.values() if not shape.slow]
WHOLE = [*MENDED.values(), *SOUND.values()]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rounds]:
    try:
        with play(tmp_path_factory.mktemp("codex"), QUICK, WHOLE) as played:
            yield played
    except UnavailableError as reason:
        pytest.skip(str(reason))


def named(shape: Shape) -> str:
    return shape.name


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_without_a_daemon_it_is_refused_at_every_prompt(rounds: Rounds, shape: Shape) -> None:
    undone = rounds.undone[shape.name]
    assert len(undone.refused) == 2
    assert None not in undone.refused, undone.tell()
    assert all(turn.error for turn in undone.planted.turns)


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_a_refused_thread_is_healed_and_goes_on(rounds: Rounds, shape: Shape) -> None:
    """One refusal and one recovery for each fault that the provider names, and then three more prompts."""
    healed = rounds.stuck[shape.name]
    assert healed.kinds == list(shape.kinds), healed.tell()
    assert [entry["outcome"] for entry in healed.entries] == ["healed"] * len(shape.kinds), healed.tell()
    assert [turn.error for turn in healed.again] == [None] * 3, healed.tell()


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_no_byte_moves(rounds: Rounds, shape: Shape) -> None:
    """The file is the same one and as long, and all lines but those that were written over are as they were."""
    healed = rounds.stuck[shape.name]
    assert healed.planted.path.stat().st_ino == healed.planted.inode
    before, after = healed.planted.before, healed.after[: len(healed.planted.before)]
    lines = list(zip(before.split(b"\n"), after.split(b"\n"), strict=True))
    assert all(len(old) == len(new) for old, new in lines)
    written = [new for old, new in lines if old != new]
    assert written, healed.tell()
    assert all(isinstance(json.loads(new), dict) for new in written)


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_the_client_still_reads_and_forks_it(rounds: Rounds, shape: Shape) -> None:
    healed = rounds.stuck[shape.name]
    assert healed.turns >= 5
    assert healed.fork not in (None, healed.planted.thread)


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_nothing_that_was_said_is_lost(rounds: Rounds, shape: Shape) -> None:
    """What a person wrote, what was answered and what a tool gave back is sent again, all of it."""
    healed = rounds.stuck[shape.name]
    assert healed.lost == [], healed.tell()


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_the_next_request_is_foreseen_item_by_item(rounds: Rounds, shape: Shape) -> None:
    assert rounds.stuck[shape.name].unforeseen == []


@pytest.mark.parametrize("shape", QUICK, ids=named)
def test_undo_brings_back_every_byte(rounds: Rounds, shape: Shape) -> None:
    undone = rounds.undone[shape.name]
    assert undone.undo == 0, undone.tell()
    assert undone.after_undo.startswith(undone.planted.before), undone.tell()


@pytest.mark.parametrize("shape", WHOLE, ids=named)
def test_a_sound_thread_keeps_every_byte(rounds: Rounds, shape: Shape) -> None:
    """Beside the daemon the client leaves what it leaves alone: the same lines, in all but ids and times."""
    watched, control = rounds.whole[shape.name], rounds.control[shape.name]
    assert [turn.error for turn in watched.turns] == [None]
    assert watched.path.read_bytes().startswith(watched.before)
    assert _types(watched.path) == _types(control.path)


def test_nothing_is_said_of_sound_threads(rounds: Rounds) -> None:
    sound = {planted.thread for planted in rounds.whole.values()}
    assert [entry for entry in rounds.history if entry["session"] in sound] == []
    assert "Traceback" not in rounds.log


def test_what_the_provider_blocks_is_left_alone(rounds: Rounds) -> None:
    """It does not say what of the request it blocks: named, with what a person can do, and not a byte is written."""
    assert rounds.blocked.entries == []
    assert rounds.blocked.planted.path.read_bytes().startswith(rounds.blocked.planted.before)
    assert "Go back by a turn" in rounds.blocked_words


def _types(path: Path) -> list[tuple[str, Any]]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        found.append((data["type"], data["payload"].get("type")))
    return found
