"""The notifier: what is told one by one, what is told as one, and what becomes of a notice that can't be shown."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from recoveryd.tell import notifier as notify
from recoveryd.tell.notifier import Button, Delivery, Fate, Notifier, Toast

ANSWER = Toast("Undone", "It is as it was.")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "QUIET_S", 0.05)
    monkeypatch.setattr(notify, "REST_S", 0.4)


class Screen:
    """Takes what is shown, and when."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.toasts: list[Toast] = []
        self.times: list[float] = []

    def show(self, toast: Toast) -> str:
        self.toasts.append(toast)
        self.times.append(time.monotonic())
        return self.problem

    @property
    def titles(self) -> list[str]:
        return [toast.title for toast in self.toasts]


@contextmanager
def notifier(**said: Any) -> Iterator[Notifier]:
    made = Notifier(**said)
    try:
        yield made
    finally:
        made.close(5)
        assert [t.name for t in threading.enumerate() if t.name == "toasts"] == []


def news(number: int, what: str = "healed") -> Toast:
    return Toast(f"Session {what}: {number}", f"body {number}", (), what, f"ses_{number}", f"name {number}")


def fates(deliveries: list[Delivery]) -> set[Fate | None]:
    return {delivery.wait(10) for delivery in deliveries}


class TestMany:
    def test_one_or_two_are_shown_as_they_are(self) -> None:
        screen = Screen()
        with notifier(show=screen.show) as made:
            assert fates([made.send(news(1)), made.send(news(2))]) == {Fate.SHOWN}
        assert screen.toasts == [news(1), news(2)]

    def test_more_at_once_are_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notify, "QUIET_S", 2)  # a busy machine pauses between two of them
        screen = Screen()
        with notifier(show=screen.show) as made:
            assert fates([made.send(news(n)) for n in range(1000)]) == {Fate.SHOWN}
        assert screen.titles == ["1000 sessions healed"]

    def test_a_burst_is_waited_for_until_it_is_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notify, "QUIET_S", 0.25)
        screen = Screen()
        with notifier(show=screen.show) as made:
            sent = []
            for number in range(15):  # longer than the wait, one by one
                sent.append(made.send(news(number)))
                time.sleep(0.025)
            assert fates(sent) == {Fate.SHOWN}
        assert screen.titles == ["15 sessions healed"]

    def test_but_not_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notify, "QUIET_S", 5)
        monkeypatch.setattr(notify, "PATIENCE_S", 0.3)
        screen = Screen()
        with notifier(show=screen.show) as made:
            first = made.send(news(0))
            end = time.monotonic() + 5
            number = 0
            while first.wait(0.01) is None and time.monotonic() < end:
                made.send(news(number := number + 1))
            assert first.wait(0) is Fate.SHOWN
        assert screen.titles[0].endswith("sessions healed")

    def test_what_comes_soon_after_is_one_more_however_few(self) -> None:
        screen = Screen()
        with notifier(show=screen.show) as made:
            assert fates([made.send(news(n)) for n in range(3)]) == {Fate.SHOWN}
            assert fates([made.send(news(n)) for n in (3, 4)]) == {Fate.SHOWN}
            time.sleep(notify.REST_S + 0.1)
            assert fates([made.send(news(n)) for n in (5, 6)]) == {Fate.SHOWN}
        assert screen.titles == ["3 sessions healed", "2 sessions healed", "Session healed: 5", "Session healed: 6"]
        assert screen.times[1] - screen.times[0] >= notify.REST_S

    def test_an_answer_to_the_user_waits_for_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notify, "QUIET_S", 1)  # a busy machine pauses between two of them
        screen = Screen()
        with notifier(show=screen.show) as made:
            sent = [made.send(news(n)) for n in range(3)]
            assert [made.send(ANSWER).wait(5) for _ in range(3)] == [Fate.SHOWN] * 3
            assert fates(sent) == {Fate.SHOWN}
        assert screen.titles == ["Undone"] * 3 + ["3 sessions healed"]

    def test_many_that_can_not_be_shown_are_one_line(self, lines: list[str]) -> None:
        with notifier(show=Screen("there is no session bus").show) as made:
            assert fates([made.send(news(n)) for n in range(50)]) == {Fate.LOGGED}
        (line,) = lines
        assert line.startswith("INFO Notice, here because there is no session bus: 50 sessions healed: • ses_0 • ")
        assert "name" not in line


class TestNotifier:
    def test_switched_off_it_does_nothing(self, lines: list[str]) -> None:
        with notifier(enabled=False, show=lambda _: pytest.fail("asked for")) as made:
            assert made.send(ANSWER).wait(0) is Fate.OFF
            assert made._thread is None
        assert lines == []

    def test_it_starts_no_thread_before_the_first_notice_and_one_in_all(self) -> None:
        with notifier(show=lambda _: "") as made:
            assert made._thread is None
            assert [made.send(ANSWER).wait(5) for _ in range(3)] == [Fate.SHOWN] * 3
            assert [t.name for t in threading.enumerate()].count("toasts") == 1

    def test_an_error_of_the_desktop_is_logged_and_the_next_gets_its_chance(self, lines: list[str]) -> None:
        def show(toast: Toast) -> str:
            if toast.title == "a":
                raise OSError("no\nsuch desktop")
            return ""

        with notifier(show=show) as made:
            assert made.send(Toast("a", "b")).wait(5) is Fate.LOGGED
            assert made.send(Toast("c", "d")).wait(5) is Fate.SHOWN
        assert lines == ["INFO Notice, here because OSError: no such desktop: a: b"]

    def test_sending_never_waits_and_what_does_not_fit_is_logged(
        self, lines: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(notify, "_WAITING", 16)
        free, busy = threading.Event(), threading.Event()

        def show(_: Toast) -> str:
            busy.set()
            free.wait(10)
            return ""

        with notifier(show=show) as made:
            first = made.send(ANSWER)
            assert busy.wait(5)
            waiting = [made.send(news(n)) for n in range(16)]
            assert made.send(news(99)).wait(0) is Fate.LOGGED
            assert first.wait(0) is None
            free.set()
            assert fates([first, *waiting]) == {Fate.SHOWN}
        assert len(lines) == 1
        assert "too many at once" in lines[0]

    def test_closing_shows_what_waits_or_logs_it_in_time(self, lines: list[str]) -> None:
        free, busy = threading.Event(), threading.Event()

        def show(_: Toast) -> str:
            busy.set()
            free.wait(10)
            return ""

        screen = Screen()
        quick, hung = Notifier(show=screen.show), Notifier(show=show)
        sent = [quick.send(news(n)) for n in range(5)]
        quick.close()
        assert {fate.wait(0) for fate in sent} == {Fate.SHOWN}
        assert screen.titles == ["5 sessions healed"]
        hung.send(ANSWER)
        assert busy.wait(5)
        sent = [hung.send(news(n)) for n in range(3)]
        start = time.monotonic()
        hung.close(0.1)
        assert time.monotonic() - start < 9
        assert {fate.wait(0) for fate in sent} == {Fate.LOGGED}
        assert hung.send(ANSWER).wait(0) is Fate.LOGGED
        assert len(lines) == 2
        assert all("shutting down" in line for line in lines)
        free.set()
        hung.close()

    def test_what_is_shown_at_the_end_has_no_buttons(self) -> None:
        screen = Screen()
        made = Notifier(show=screen.show)
        made.send(replace(news(1), buttons=(Button("Undo", lambda: None),)))
        made.close()
        assert screen.toasts == [news(1)]

    def test_a_notifier_that_sent_nothing_closes(self) -> None:
        Notifier().close()

    @pytest.mark.live
    def test_nothing_heavy_is_imported_before_there_is_a_bus_to_show_it_on(self) -> None:
        code = (
            "import sys; from recoveryd.tell.notifier import *; n = Notifier(); d = n.send(Toast('a', 'b'));"
            "print(d.wait(5), sorted({m.partition('.')[0] for m in sys.modules} & {'desktop_notifier', 'dbus_fast'}))"
        )
        env = {"XDG_RUNTIME_DIR": "/nonexistent"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=env)
        assert (done.returncode, done.stdout.strip()) == (0, "logged []"), done.stderr
