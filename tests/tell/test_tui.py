"""Toasts in the client never hold up who sends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.model import Failure
from recoveryd.tell import tui
from recoveryd.tell.tui import TuiToasts
from tests.support.fake_client import DIRECTORY, FAILURE, Fake, listening


class Slow(OpencodeServer):
    """A client that shows nothing until it is let."""

    def __init__(self) -> None:
        super().__init__(OpencodeSettings())
        self.go = threading.Event()
        self.shown: list[str] = []

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool | None:
        self.go.wait(10)
        self.shown.append(title)
        return True


def send(toasts: TuiToasts, server: OpencodeServer, title: str) -> None:
    toasts.send(server, FAILURE, DIRECTORY, title, "text", "success")


def test_toasts_are_shown_in_their_order_and_the_last_ones_at_the_end() -> None:
    with listening(Fake()) as fake:
        toasts, server = TuiToasts(), OpencodeServer(OpencodeSettings(server_url=fake.url))
        for title in ("first", "second"):
            send(toasts, server, title)
        toasts.close()
    shown = [asked.body["message"] for asked in fake.asked if asked.path == "/tui/show-toast"]
    assert shown == ["first\n\ntext", "second\n\ntext"]


def test_a_slow_client_holds_nobody_up_and_too_many_are_dropped() -> None:
    client = Slow()
    toasts, begun = TuiToasts(), time.monotonic()
    for number in range(100):
        send(toasts, client, str(number))
    assert time.monotonic() - begun < 1
    client.go.set()
    deadline = time.monotonic() + 10
    while len(client.shown) < 16:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    toasts.close()
    assert client.shown[:16] == [str(number) for number in range(16)] and len(client.shown) <= 17


def test_nothing_is_sent_and_no_thread_begun_where_nobody_wants_it() -> None:
    before = threading.active_count()
    toasts = TuiToasts(enabled=False)
    send(toasts, Slow(), "title")
    toasts.close()
    assert threading.active_count() == before


class Busy(Slow):
    """A client that does not answer in time, so often."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.asked = 0

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool | None:
        self.asked += 1
        return None if self.asked <= self.times else super().toast(failure, directory, title, text, variant)


def _wait(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_client_that_was_too_slow_is_tried_again_and_others_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toast was lost for good where a TUI had no answer for six seconds."""
    monkeypatch.setattr(tui, "_AGAIN_S", (0.05, 0.05, 0.05))
    busy, never, other, toasts = Busy(3), Busy(99), Slow(), TuiToasts()
    busy.go.set()
    send(toasts, busy, "late")
    send(toasts, never, "never")
    send(toasts, other, "another")
    _wait(lambda: busy.asked and never.asked)
    other.go.set()
    _wait(lambda: busy.shown and other.shown and never.asked == 4)
    toasts.close()
    assert (busy.shown, other.shown, never.shown) == (["late"], ["another"], [])
    assert (busy.asked, never.asked) == (4, 4)


def test_what_holds_no_more_is_not_shown_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that a session was healed, behind the notice that this was undone."""
    monkeypatch.setattr(tui, "_AGAIN_S", (0.05, 0.05, 0.05))
    undone, other, toasts = Busy(1), Busy(1), TuiToasts()
    undone.go.set()
    other.go.set()
    toasts.send(undone, FAILURE, DIRECTORY, "healed", "text", "success", lambda: False)
    toasts.send(other, FAILURE, DIRECTORY, "other", "text", "success", lambda: True)
    _wait(lambda: other.shown)
    toasts.close()
    assert (undone.shown, undone.asked, other.shown) == ([], 1, ["other"])
