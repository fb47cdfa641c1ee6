"""Toasts: on a real bus of the test's own, with a service that answers, refuses or hangs, and with none at all."""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loguru import logger

from recoveryd.tell import desktop, freedesktop
from recoveryd.tell.desktop import KEPT, Desktop, can_show
from recoveryd.tell.toast import Button, Toast
from tests.live.screen import until
from tests.support.bus import Service, descriptors, running_bus

TOAST = Toast("Session healed: Fix the <build>", "Took out 1 & closed the turn.\nUndo: recoveryd undo r1")
SILENT = "the notification service did not answer in 0.2 seconds"

needs_bus = pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="dbus-daemon is not installed")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, as the path of a socket has to be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No session at all, until a test sets one."""
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit that tests have the time for."""
    monkeypatch.setattr(freedesktop, "LIMIT_S", 0.2)
    monkeypatch.setattr(desktop, "LIMIT_S", 0.2)


@pytest.fixture
def bus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_bus(folder) as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address


@pytest.fixture
def faults() -> Iterator[list[str]]:
    """What is logged as a warning or worse."""
    logged: list[str] = []
    sink = logger.add(lambda text: logged.append(str(text)), level="WARNING", format="{message}")
    yield logged
    logger.remove(sink)


def threads() -> int:
    return [t.name for t in threading.enumerate()].count("toast")


@contextmanager
def shower() -> Iterator[Desktop]:
    made = Desktop()
    try:
        yield made
    finally:
        made.close()
        until(lambda: threads() == 0, "a thread was left")


def show(toast: Toast = TOAST) -> str:
    with shower() as made:
        return made.show(toast)


@needs_bus
class TestOnABus:
    def test_a_toast_is_shown_and_safe_to_show(self, bus: str) -> None:
        service = Service(bus)
        assert show() == ""
        service.stop()
        ((app, replaces, _icon, title, body, actions, _hints, _timeout),) = service.toasts
        assert (app, replaces) == ("recoveryd", 0)
        assert title == "Session healed: Fix the ‹build›"
        assert body == "Took out 1 &amp; closed the turn.\nUndo: recoveryd undo r1"
        assert actions == ["default", ""]

    def test_many_toasts_leave_no_descriptor(self, bus: str) -> None:
        service = Service(bus)
        with shower() as made:
            made.show(TOAST)
            before = descriptors()
            assert [made.show(Toast(f"{n}", "")) for n in range(12)] == [""] * 12
            assert descriptors() <= before
        service.stop()
        assert [toast[3] for toast in service.toasts[1:]] == [f"{n}" for n in range(12)]

    def test_a_bus_that_was_restarted_is_found_again(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with shower() as made:
            for works in (True, False, True):
                if not works:
                    assert made.show(TOAST)
                    continue
                with running_bus(folder) as address:
                    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
                    service = Service(address)
                    assert made.show(TOAST) == ""
                    service.stop()

    def test_without_a_service_it_is_said_at_once(self, bus: str) -> None:
        can_show()  # the import
        start = time.monotonic()
        assert "org.freedesktop.Notifications" in show()
        assert can_show()[0] is False
        assert time.monotonic() - start < freedesktop.LIMIT_S

    @pytest.mark.live
    @pytest.mark.parametrize("call", ["Introspect", "GetCapabilities", "Notify"])
    def test_a_hung_service_costs_its_time_limit(self, bus: str, short: None, call: str) -> None:
        service = Service(bus, silent=call)
        with shower() as made:
            made.show(TOAST)
            before = descriptors()
            start = time.monotonic()
            assert [made.show(TOAST) for _ in range(3)] == [SILENT] * 3
            assert time.monotonic() - start >= 0.6
            assert descriptors() <= before
        service.stop()

    @pytest.mark.live
    def test_many_to_a_hung_service_leave_nothing(
        self, bus: str, faults: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freedesktop, "LIMIT_S", 0.02)
        service = Service(bus, silent="GetCapabilities")
        with shower() as made:
            made.show(TOAST)
            before = descriptors(), threading.active_count()
            assert all("did not answer" in made.show(TOAST) for _ in range(50))
            assert descriptors() <= before[0]
            assert threading.active_count() <= before[1]
        service.stop()
        # On a loaded machine the bus itself may take longer than that to be told whom we listen to.
        assert [fault for fault in faults if not fault.startswith("add match request failed")] == []

    @pytest.mark.parametrize("call", ["GetCapabilities", "Notify"])
    def test_a_service_that_refuses_is_not_believed(self, bus: str, call: str) -> None:
        service = Service(bus, refusing=call)
        assert show()
        service.stop()

    def test_the_usual_place_is_tried_when_nothing_names_one(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with running_bus(folder) as address:
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
            service = Service(address)
            assert show() == ""
            service.stop()

    def test_a_cut_never_goes_through_markup(self, bus: str) -> None:
        service = Service(bus)
        assert show(Toast("", "&" * 500)) == ""
        service.stop()
        assert service.toasts[0][3] == "recoveryd"
        assert service.toasts[0][4] == "&amp;" * 399 + "…"

    def test_whether_one_can_be_shown_is_asked_without_showing_one(self, bus: str, short: None) -> None:
        service = Service(bus)
        assert can_show() == (True, "the notification service answers")
        service.silent = "GetCapabilities"
        assert can_show() == (False, SILENT)
        service.stop()
        assert service.toasts == []


@needs_bus
class TestButtons:
    """What is pressed is called, once; and no button stands that would do nothing."""

    @pytest.fixture
    def pressed(self) -> list[str]:
        return []

    @pytest.fixture
    def toast(self, pressed: list[str]) -> Toast:
        return Toast("a", "b", tuple(Button(t, lambda t=t: pressed.append(t)) for t in ("Undo", "Show")))  # type: ignore[misc]

    @pytest.fixture
    def service(self, bus: str) -> Iterator[Service]:
        made = Service(bus, can=("body", "actions"))
        yield made
        made.stop()

    def test_a_button_that_is_pressed_is_called_once(self, service: Service, toast: Toast, pressed: list[str]) -> None:
        with shower() as made:
            assert made.show(toast) == ""
            assert service.toasts[0][5][1::2] == ["", "Undo", "Show"]
            service.press(1, "Show")
            until(lambda: pressed == ["Show"] and threads() == 0, "it was not called")
            service.press(1, "Show")
            service.press(1, "Undo")
            until(lambda: service.closed == [1], "dunst leaves it there")
        assert pressed == ["Show"]
        assert service.closed == [1]

    def test_a_service_without_buttons_gets_none_and_nothing_is_kept(self, service: Service, toast: Toast) -> None:
        service.can = ["body"]
        with shower() as made:
            assert made.show(toast) == ""
            until(lambda: threads() == 0, "it stays for nothing")
        assert service.toasts[0][5] == ["default", ""]

    @pytest.mark.parametrize("reason", [1, 2, 3])
    def test_a_toast_that_is_closed_is_forgotten(
        self, service: Service, toast: Toast, pressed: list[str], reason: int
    ) -> None:
        with shower() as made:
            made.show(toast)
            before = descriptors()
            service.dismiss(1, reason)
            until(lambda: threads() == 0, "it stays for nothing")
            assert descriptors() < before
        assert (pressed, service.closed) == ([], [])

    def test_signals_of_other_toasts_change_nothing(self, service: Service, toast: Toast, pressed: list[str]) -> None:
        with shower() as made:
            made.show(toast)
            made.show(toast)
            service.dismiss(1)
            until(lambda: threads() == 1, "it stays for nothing")
            service.press(2, "Undo")
            until(lambda: pressed == ["Undo"], "it was not called")

    def test_of_many_the_oldest_are_taken_away(self, service: Service, toast: Toast) -> None:
        with shower() as made:
            for _ in range(KEPT + 2):
                made.show(toast)
            until(lambda: threads() == KEPT, "too many stay")
            made.show(TOAST)
            assert service.closed == [1, 2]
        until(lambda: sorted(service.closed) == list(range(1, KEPT + 3)), "buttons that do nothing stand")

    def test_after_a_while_it_is_taken_away(
        self, service: Service, toast: Toast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freedesktop, "STAY_S", 0.1)
        with shower() as made:
            made.show(toast)
            until(lambda: service.closed == [1], "a button that does nothing stands")

    def test_a_bus_that_goes_takes_the_buttons_with_it(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, toast: Toast, faults: list[str]
    ) -> None:
        with shower() as made:
            with running_bus(folder) as address:
                monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
                service = Service(address, can=("body", "actions"))
                made.show(toast)
                service.stop()
            until(lambda: threads() == 0, "it waits for a bus that is gone")
        assert faults == []

    def test_what_a_button_raises_is_logged(self, service: Service, faults: list[str]) -> None:
        def fails() -> None:
            raise ValueError("not now")

        with shower() as made:
            made.show(Toast("a", "b", (Button("Undo", fails),)))
            service.press(1, "Undo")
            until(lambda: faults, "nobody was told")
        assert "the button Undo failed" in faults[0] and "not now" in faults[0]

    def test_a_slow_button_holds_up_nothing(self, service: Service) -> None:
        free, entered = threading.Event(), threading.Event()

        def slow() -> None:
            entered.set()
            free.wait(5)

        with shower() as made:
            made.show(Toast("a", "b", (Button("Undo", slow),)))
            service.press(1, "Undo")
            assert entered.wait(5)
            assert made.show(TOAST) == ""
            free.set()

    def test_a_service_that_hangs_when_it_is_over_costs_its_time_limit(
        self, service: Service, toast: Toast, short: None
    ) -> None:
        made = Desktop()
        made.show(toast)
        service.silent = "CloseNotification"
        start = time.monotonic()
        made.close()
        assert time.monotonic() - start < 5
        until(lambda: threads() == 0, "a thread was left")


class TestWithoutABus:
    def test_no_bus_is_said_at_once(self) -> None:
        assert show() == "there is no session bus"
        assert can_show() == (False, "there is no session bus")

    @pytest.mark.parametrize(
        "address", ["unix:path=/nonexistent/bus", "nonsense", "unix:", "tcp:host=127.0.0.1,port=1"]
    )
    def test_a_dead_address_is_said(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        assert show()
        assert can_show()[0] is False

    @pytest.mark.parametrize("backlog", [0, 100])
    def test_a_bus_that_never_speaks_costs_its_time_limit(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, short: None, backlog: int
    ) -> None:
        """Also when it takes no more connections."""
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={folder}/dumb")
        with socket.socket(socket.AF_UNIX) as dumb, shower() as made:
            dumb.bind(f"{folder}/dumb")
            dumb.listen(backlog)
            assert made.show(TOAST) == SILENT
            before = descriptors(), threading.active_count()
            start = time.monotonic()
            assert all(made.show(TOAST) for _ in range(10))
            assert time.monotonic() - start < 10
            assert descriptors() <= before[0]
            assert threading.active_count() <= before[1]


class TestMac:
    """With a fake `osascript`: its arguments and what it says are the test's, macOS itself was not there."""

    @pytest.fixture(autouse=True)
    def mac(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return folder

    def fake(self, folder: Path, script: str) -> Path:
        """Writes its arguments to a file, NUL between them, then does what `script` says."""
        path = folder / "osascript"
        path.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" > "{folder}/arguments"\n{script}\n')
        path.chmod(0o700)
        return folder / "arguments"

    def test_the_texts_are_arguments_and_the_script_is_always_the_same(self, folder: Path) -> None:
        arguments = self.fake(folder, "exit 0")
        body = '-e do shell script "touch /tmp/x"\n\x00`id` $(id) \\ \' "'
        assert show(Toast('--" & (do shell script "id") & "', body)) == ""
        script = ["-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)"]
        script += ["-e", "end run", "--", '--" & (do shell script "id") & "']
        assert arguments.read_text().split("\0")[:-1] == [*script, body.replace("\0", "")]

    def test_a_failure_is_said_in_its_words(self, folder: Path) -> None:
        self.fake(folder, "echo 'execution error: no (-1743)' >&2; exit 1")
        assert show() == "osascript failed: execution error: no (-1743)"
        self.fake(folder, "exit 7")
        assert show() == "osascript failed: exit code 7"

    def test_one_that_hangs_costs_its_time_limit(self, folder: Path, short: None) -> None:
        self.fake(folder, "sleep 3 & wait")
        start = time.monotonic()
        assert show() == "osascript did not end in 0.2 seconds"
        assert time.monotonic() - start < 2

    def test_without_one_it_is_said(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert can_show() == (False, "osascript is not there")
        assert show() == "osascript can't be run (No such file or directory)"
        self.fake(folder, "exit 0")
        assert can_show() == (True, str(folder / "osascript"))
