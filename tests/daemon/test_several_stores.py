"""One daemon and the stores of several clients: none of them waits for another."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.store import Store
from recoveryd.core import StoreError
from recoveryd.daemon.sd_notify import SdNotify
from tests.support.rollouts import Rollout
from tests.support.running import is_healed, running, until
from tests.support.trees import Tree

pytestmark = pytest.mark.live


class Endless(CodexThreads):
    """A store that has always one more session to look at, until it is let go."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.listing, self.let_go = threading.Event(), threading.Event()

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        for number in itertools.count():
            if self.let_go.is_set():
                return
            time.sleep(0.001)  # the disk
            yield f"01a201b9-82b1-7263-872f-{number:012x}", "mark"
            self.listing.set()


def test_what_is_refused_in_a_small_store_is_healed_while_a_huge_one_is_looked_through(tmp_path: Path) -> None:
    Rollout(tmp_path / "codex").healthy()
    huge, tree = Endless(tmp_path / "codex" / "sessions"), Tree(tmp_path)
    before = tree.stuck()
    stores: tuple[Store, ...] = (huge, tree.store)
    with running(tmp_path, *stores) as daemon:
        until(lambda: is_healed(tree, before), "what was stuck at the start waits for the huge store")
        until(huge.listing.is_set)
        during = tree.stuck()
        until(lambda: len(daemon.events) == 2, "what was refused meanwhile waits for the huge store")
        assert huge.id not in daemon.daemon._swept
        huge.let_go.set()
        daemon.idle()
    assert [event.session for event in daemon.events] == [before, during]
    assert is_healed(tree, during)


class Closed(CodexThreads):
    """A store that can't be read, until it is opened."""

    let_in = False

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        if not self.let_in:
            raise StoreError(f"Can't open {self.root}: permission is denied.")
        return super().fresh(known, since_ms)


def test_a_store_that_cannot_be_read_is_not_told_as_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(SdNotify, "status", lambda _, line: said.append(line))
    Rollout(tmp_path / "codex").healthy()
    closed, tree = Closed(tmp_path / "codex" / "sessions"), Tree(tmp_path)
    with running(tmp_path, closed, tree.store) as daemon:
        until(lambda: said)
        closed.let_in = True
        daemon.daemon._inbox.put((closed.id, None))
        until(lambda: len(said) > 1)
    assert said == [
        f"watching {tree.root}; can't use {closed.root}; nothing healed today",
        f"watching {closed.root}, {tree.root}; nothing healed today",
    ]
    said.clear()
    closed.let_in = False
    with running(tmp_path, closed):
        until(lambda: said)
    assert said == [f"watching nothing yet; can't use {closed.root}; nothing healed today"]


class ReadOnly(CodexThreads):
    """A store that can't be written to, until it is opened."""

    let_in = False

    def live(self) -> str | None:
        return super().live() if self.let_in else f"{self.root} can't be written to."


def test_a_store_that_cannot_be_written_to_is_not_told_as_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(SdNotify, "status", lambda _, line: said.append(line))
    monkeypatch.setattr("recoveryd.daemon.daemon.SWEEP_S", 0.5)
    Rollout(tmp_path / "codex").healthy()
    closed, tree = ReadOnly(tmp_path / "codex" / "sessions"), Tree(tmp_path)
    with running(tmp_path, closed, tree.store):
        until(lambda: said)
        closed.let_in = True
        until(lambda: len(said) > 1)
        closed.let_in = False
        until(lambda: len(said) > 2)
    alone = f"watching {tree.root}; can't use {closed.root}; nothing healed today"
    assert said == [alone, f"watching {closed.root}, {tree.root}; nothing healed today", alone]
