"""The short form of `python -m tests.soak`: that it holds, and that what it watches is there."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path

import pytest

from recoveryd.daemon.own_process import release_memory
from tests.soak.day import a_day
from tests.soak.long import long_session
from tests.soak.sound import sound
from tests.soak.streams import streams

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors, threads and memory are read from /proc")


def test_after_a_little_use_the_daemon_holds_what_it_held_before(tmp_path: Path) -> None:
    result = a_day(tmp_path, 1.5, warm_up=5)
    for store in ("files", "database"):
        found = result[store]
        assert found["holds"], found
        assert found["prompts"] > 0
        assert found["pruned"]["ledger_kib"] < found["end"]["ledger_kib"]
        assert found["end"]["descriptors"] > 5 < found["end"]["rss_mib"]


def test_failures_are_healed_while_fifty_sessions_stream(tmp_path: Path) -> None:
    result = streams(tmp_path, 1)
    assert result["holds"], result
    assert result["failures"] == 5
    assert result["writes_per_second"] > 50


def test_looking_ahead_touches_no_session_that_is_sound(tmp_path: Path) -> None:
    result = sound(tmp_path, 20, 30)
    assert result.pop("holds"), result
    assert all(looks["looked_at"] > 30 for looks in result.values())


class Ring:
    def __init__(self) -> None:
        self.me = self


def test_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what a ring of objects holds, and without a fault where the C library has no such call."""
    held = weakref.ref(Ring())
    release_memory()
    assert held() is None
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    release_memory()


def test_a_long_session_is_healed(tmp_path: Path) -> None:
    result = long_session(tmp_path, 120, rest=0.1)
    assert result["holds"], result
    assert all(result[store][figure] > 0 for store in ("files", "database") for figure in ("load_ms", "plan_ms"))
