"""Sessions that are too long for their model, healed on the real client: nothing is asked of a model, `undo` is exact.

`python -m tests.e2e.overflow` plays all of them in all ways.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import settle
from tests.e2e.install import DATABASE, JSON_STORE, NEWEST, UnavailableError, versions
from tests.e2e.overflow import LIMIT, NO_ROOM, OFF, SHARE, WAYS, Played, no_room, place, play, records
from tests.e2e.overflow_scenes import SCENES
from tests.e2e.tokens import count
from tests.support.build import SessionBuilder, reasoning
from tests.support.long_sessions import FIRST, LONG, bash, spent

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

STUCK = ("later-paste", "talk", "inputs")  # whatever the client does
BY_ITSELF = ("many-turns", "huge-output")  # it clears old outputs, or compacts, and goes on


def _play(
    root: pytest.TempPathFactory, version: str, names: Sequence[str], *, heals: bool = True, **how: Any
) -> list[Played]:
    try:
        with place(root.mktemp("long"), version, **how) as (harness, daemon):
            played = play(harness, daemon, [{**LONG, **SCENES}[name] for name in names], heals=heals)
            assert "Traceback" not in daemon.log
            assert "fault of recoveryd" not in daemon.log
            return played
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module", params=versions([JSON_STORE, DATABASE, NEWEST]))
def stuck(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Played]]:
    yield _play(tmp_path_factory, str(request.param), STUCK)


def _all_well(played: Sequence[Played]) -> None:
    """Refused, healed, undone to the byte, healed again by hand; the first task and the newest words are sent."""
    assert [one.tell() for one in played if one.problems] == []
    for one in played:
        assert one.sent <= 1.05 * SHARE * LIMIT, one.tell()
        assert one.sent >= 0.85 * SHARE * LIMIT, one.tell()


def test_what_stays_stuck_is_healed(stuck: list[Played]) -> None:
    _all_well(stuck)


@pytest.mark.parametrize("version", versions([JSON_STORE, NEWEST]))
def test_what_heals_by_itself_is_left_to_it(version: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    for one in _play(tmp_path_factory, version, BY_ITSELF, heals=False):
        assert one.again[-1].accepted, one.tell()
        assert not one.healed, one.tell()
        assert not one.touched, one.tell()


def test_with_its_own_clearing_and_compaction_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    played = _play(tmp_path_factory, NEWEST, ("long-turn", "huge-output", "thinking", "shell", "screens"), config=OFF)
    _all_well([one for one in played if one.case.name != "screens"])
    [screens] = [one for one in played if one.case.name == "screens"]
    assert screens.problems == [], f"{screens.entries}\n{screens.log}"


@pytest.mark.parametrize(("version", "names"), [(JSON_STORE, ("many-turns", "talk")), (NEWEST, ("inputs",))])
def test_where_thinking_is_bound_to_what_is_edited(
    version: str, names: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A model that binds it, and a client that does not ask to have it dropped."""
    played = _play(tmp_path_factory, version, names, config=OFF, bound=True)
    assert [one.tell() for one in played if one.problems] == []


@pytest.mark.parametrize(
    ("version", "names"),
    [(JSON_STORE, ("no-credit", "subagent")), (NEWEST, ("usage-mid-turn", "live-paste"))],
)
def test_what_gets_too_long_while_it_is_used(
    version: str, names: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A compaction that fails for want of credit, a subagent, a compaction within a turn, a prompt that is too long."""
    played = _play(tmp_path_factory, version, names)
    assert [one.tell() for one in played if one.problems] == []


@pytest.mark.parametrize(("version", "way"), [(NEWEST, "bytes, Qwen"), (DATABASE, "bytes, Moonshot")])
def test_where_a_400_says_that_it_has_too_many_bytes(
    version: str, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Which no client takes for a length, as it does a 413: nothing but a repair helps."""
    played = _play(tmp_path_factory, version, ("talk", "inputs", "screens"), **WAYS[way])
    assert [one.tell() for one in played if one.problems] == []


def test_what_a_failed_compaction_hid_is_sent_again(tmp_path: Path) -> None:
    """Its summary failed for want of credit, and the client goes on with the last turn alone, without a word."""
    rng, session = random.Random(3), SessionBuilder(title="silent")
    session.user(FIRST)
    for turn in range(12):
        session.assistant(reasoning("so"), bash(rng, 52_000))
        session.assistant(f"step {turn}")
        session.user(f"on, {turn}")
    session.assistant("done")
    planted = spent(session.planted())
    try:
        with place(tmp_path, NEWEST) as (harness, daemon):
            harness.plant(planted)
            harness.provider.force("Your credit balance is too low to access the Anthropic API.")
            harness.prompt(planted.id, "go on", thinking=True, model=harness.model)
            settle(harness, planted.id)
            [entry] = daemon.wait_settled([planted.id])[planted.id]
            assert (entry["kind"], entry["outcome"]) == ("context_overflow", "healed"), entry["detail"]
            [sent] = harness.prompt(planted.id, "and on", thinking=True, model=harness.model).requests
            assert sent.refused is None
            assert sent.body is not None
            assert FIRST in json.dumps(sent.body)
            assert 0.85 * SHARE * LIMIT <= count(sent.body) <= 1.05 * SHARE * LIMIT
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("version", "name"), [(JSON_STORE, "later-paste"), (NEWEST, "huge-output")])
def test_what_is_cut_twice_names_the_file_that_has_all(version: str, name: str, tmp_path: Path) -> None:
    """Behind the first repair its model takes less."""
    planted = LONG[name].build()
    whole = max((_said(part) for parts in planted.parts.values() for part in parts), key=len)
    try:
        with place(tmp_path, version, config=OFF) as (harness, daemon):
            harness.plant(planted)
            stored = {key: raw for key, raw in records(harness, planted.id).items() if "prt_" in key}
            for times, limit in enumerate((LIMIT, 60_000), 1):
                harness.provider.strict.limit = limit
                assert not harness.prompt(planted.id, f"go on, {times}", thinking=True, model=harness.model).accepted
                settle(harness, planted.id)
                assert daemon.wait_settled([planted.id], times)[planted.id][0]["outcome"] == "healed"
                [sent] = harness.prompt(planted.id, f"and on, {times}", thinking=True, model=harness.model).requests
                settle(harness, planted.id)
                assert sent.refused is None
                file = _file_of_the_one_excerpt(whole, sent.body)
                assert file.read_text() == whole
            undone = daemon.codes([["undo", entry["id"], "--force"] for entry in daemon.history(planted.id)])
            assert undone == [0, 0]
            now = records(harness, planted.id)
            assert {key: now.get(key) for key in stored} == stored
            assert not file.exists()
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _said(part: dict[str, Any]) -> str:
    return str(part.get("text") or part.get("state", {}).get("output") or "")


def _file_of_the_one_excerpt(whole: str, sent: Any) -> Path:
    """What is sent of a text names one file, and counts all that it leaves out."""
    [said] = (text for text in _strings(sent) if " bytes truncated" in text)
    head, _, note = said.partition("\n\n...")
    told, _, tail = note.partition("sections.\n\n")
    [(left, file)] = re.findall(r"(\d+) bytes truncated\.\.\.\n\n.* saved to: (.*)\n", told)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert int(left) == len(whole) - len(head) - len(tail)
    return Path(file)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def test_a_client_that_compacts_without_end_is_stopped(tmp_path: Path) -> None:
    """Its own words and tools are longer than the model takes; left alone it asks for ever.

    One word to stop it may not hear, between two requests: it is told until it stops.
    """
    try:
        with place(tmp_path, NEWEST, **NO_ROOM["limit"]) as (harness, daemon):
            found = no_room(harness, daemon)
            [entry] = found.entries  # once
            assert (entry["kind"], entry["outcome"]) == ("endless_compaction", "refused")
            assert entry["detail"].endswith("it was told to stop.")
            assert (found.later, found.touched) == (0, False)
    except UnavailableError as reason:
        pytest.skip(str(reason))
