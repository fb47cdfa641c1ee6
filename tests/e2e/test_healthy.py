"""Sessions without a fault beside a running daemon: nothing of them is written, and the client's own writes stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, running, settle
from tests.e2e.heals import Files, files
from tests.e2e.install import UnavailableError
from tests.shapes import HEALTHY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

NAMES = [shape.name for shape in HEALTHY]
# What differs from run to run: ids, signatures, the provider's counted answers, and times.
_PASSING = re.compile(r"((?:ses|msg|prt)_[0-9a-f]{12}\w{14}|toolu_\w+|c2lnL[\w+/]+=*|(?:ok|thinking about) \d+)")


@dataclass(repr=False)
class Runs:
    """Each shape prompted beside the daemon, and without one; `later` is `watched` once a daemon had looked at it."""

    watched: dict[str, Files]
    control: dict[str, Files]
    later: dict[str, Files]
    history: list[dict[str, Any]]
    log: str
    accepted: dict[str, bool]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    root = tmp_path_factory.mktemp("healthy")
    try:
        with running(root / "client") as harness:
            yield _play(harness, root / "daemon", root / "client" / "data")
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _play(harness: Harness, root: Path, data: Path) -> Runs:
    daemon = Daemon(root, data)
    with daemon:
        sessions, accepted = _prompt_all(harness)
    watched = _all_files(harness, sessions)
    with Daemon(root / "fresh", data) as fresh:  # knows none of these sessions: it looks at all of them
        later = _all_files(harness, sessions)
        history = [*daemon.history(), *fresh.history()]
        log = daemon.log + fresh.log
    control, _ = _prompt_all(harness)
    return Runs(watched, _all_files(harness, control), later, history, log, accepted)


def _prompt_all(harness: Harness) -> tuple[dict[str, str], dict[str, bool]]:
    sessions = {shape.name: harness.plant(shape.build()) for shape in HEALTHY}
    accepted = {shape.name: harness.prompt(sessions[shape.name], thinking=shape.thinking).accepted for shape in HEALTHY}
    settle(harness, sessions[NAMES[-1]])
    return sessions, accepted


def _all_files(harness: Harness, sessions: dict[str, str]) -> dict[str, Files]:
    return {name: files(harness.client.storage, session) for name, session in sessions.items()}


def _comparable(found: Files) -> list[tuple[str, Any]]:
    """Files in the order of the client, with ids counted through and times left out."""
    known: dict[str, str] = {}

    def count(match: re.Match[str]) -> str:
        kind = "sig" if match[0].startswith("c2ln") else re.split(r"[_\s]", match[0])[0]
        return known.setdefault(match[0], f"<{kind} {sum(v.startswith(f'<{kind} ') for v in known.values())}>")

    return [
        (_PASSING.sub(count, path), _timeless(json.loads(_PASSING.sub(count, found[path].decode()))))
        for path in sorted(found)
    ]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted(item) if key == "time" else _timeless(item) for key, item in value.items()}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_the_client_leaves_the_same_files_beside_the_daemon_and_alone(runs: Runs, name: str) -> None:
    """The same turn, once with `recoveryd run` beside it and once without: the same files, in all but ids and times."""
    assert runs.accepted[name]
    assert _comparable(runs.watched[name]) == _comparable(runs.control[name])
    assert not any(b"recoveryd" in content for content in runs.watched[name].values())


@pytest.mark.parametrize("name", NAMES)
def test_a_daemon_that_looks_at_it_changes_no_byte(runs: Runs, name: str) -> None:
    assert runs.later[name] == runs.watched[name]


def test_nothing_is_said_of_them(runs: Runs) -> None:
    """No recovery, of whatever outcome, and no warning."""
    assert runs.history == []
    assert "WARNING" not in runs.log
    assert "ERROR" not in runs.log
    assert runs.log.count("watching ") == 2
