"""Toasts: on a real bus of the test's own, with a service that answers, refuses or hangs, and with none at all."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loguru import logger

from recoveryd import notify
from recoveryd.notify import Fate, Notifier, Toast, clean

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
TOAST = Toast("Session healed: Fix the <build>", "Took out 1 & closed the turn.\nUndo: recoveryd undo r1")
INTROSPECTION = f"""<node><interface name="{NAME}">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{{sv}}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
<method name="GetCapabilities"><arg type="as" direction="out"/></method>
<method name="GetServerInformation"><arg type="s" direction="out"/><arg type="s" direction="out"/>
<arg type="s" direction="out"/><arg type="s" direction="out"/></method></interface></node>"""
BUS = """<busconfig><type>session</type><listen>unix:path={path}</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""

needs_bus = pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="dbus-daemon is not installed")


class Service:
    """A notification service. `silent` and `refusing` name the calls it never answers, or answers with an error."""

    def __init__(self, address: str, silent: str = "", refusing: str = "") -> None:
        self.silent, self.refusing = silent, refusing
        self.toasts: list[Any] = []
        self._up = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(address),), daemon=True)
        self._thread.start()
        assert self._up.wait(5)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(5)
        assert not self._thread.is_alive()

    async def _serve(self, address: str) -> None:
        from dbus_fast.aio import MessageBus

        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        bus = await MessageBus(address).connect()
        bus.add_message_handler(self._answer)
        await bus.request_name(NAME)
        self._up.set()
        await self._done.wait()
        bus.disconnect()
        await asyncio.sleep(0)

    def _answer(self, message: Any) -> Any:
        from dbus_fast import Message

        answers: dict[str, tuple[str, list[Any]]] = {
            "Introspect": ("s", [INTROSPECTION]),
            "GetServerInformation": ("ssss", ["fake", "test", "1", "1.2"]),
            "GetCapabilities": ("as", [["body", "body-markup"]]),
            "Notify": ("u", [len(self.toasts) + 1]),
        }
        if message.path != PATH or message.member not in answers:
            return None
        if message.member == self.silent:
            return True
        if message.member == self.refusing:
            return Message.new_error(message, "org.example.No", "not today")
        if message.member == "Notify":
            self.toasts.append(message.body)
        return Message.new_method_return(message, *answers[message.member])


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def running_bus(folder: Path) -> Iterator[str]:
    config = folder / "bus.conf"
    config.write_text(BUS.format(path=folder / "bus"))
    command = ["dbus-daemon", f"--config-file={config}", "--print-address", "--nofork"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        try:
            yield daemon.stdout.readline().strip()
        finally:
            daemon.terminate()


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
def bus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_bus(folder) as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged from INFO on."""
    logged: list[str] = []
    sink = logger.add(lambda text: logged.append(str(text).rstrip("\n")), level="INFO", format="{level} {message}")
    yield logged
    logger.remove(sink)


@contextmanager
def notifier(**said: Any) -> Iterator[Notifier]:
    made = Notifier(**said)
    try:
        yield made
    finally:
        made.close(5)
        assert [t.name for t in threading.enumerate() if t.name == "toasts"] == []


def send(toast: Toast = TOAST) -> tuple[Fate | None, float]:
    """A toast's fate, and the seconds until it was known."""
    with notifier() as made:
        start = time.monotonic()
        fate = made.send(toast).wait(10)
        return fate, time.monotonic() - start


@needs_bus
class TestOnABus:
    def test_a_toast_is_shown_and_safe_to_show(self, bus: str, lines: list[str]) -> None:
        service = Service(bus)
        assert send()[0] is Fate.SHOWN
        service.stop()
        ((app, replaces, _icon, title, body, _actions, _hints, _timeout),) = service.toasts
        assert (app, replaces) == ("recoveryd", 0)
        assert title == "Session healed: Fix the <build>", "a title is no markup"
        assert body == "Took out 1 &amp; closed the turn.\nUndo: recoveryd undo r1"
        assert lines == []

    def test_many_toasts_are_shown_in_order_and_leave_no_descriptor(self, bus: str) -> None:
        service = Service(bus)
        with notifier() as made:
            made.send(TOAST).wait(10)
            before = descriptors()
            fates = [made.send(Toast(f"{n}", "")) for n in range(12)]
            assert [fate.wait(10) for fate in fates] == [Fate.SHOWN] * 12
            assert descriptors() <= before
        service.stop()
        assert [toast[3] for toast in service.toasts[1:]] == [f"{n}" for n in range(12)]

    def test_a_bus_that_was_restarted_is_found_again(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
    ) -> None:
        with notifier() as made:
            for expected in (Fate.SHOWN, Fate.LOGGED, Fate.SHOWN):
                if expected is Fate.LOGGED:
                    assert made.send(TOAST).wait(10) is expected
                    continue
                with running_bus(folder) as address:
                    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
                    service = Service(address)
                    assert made.send(TOAST).wait(10) is expected
                    service.stop()
        assert len(lines) == 1

    def test_without_a_service_there_is_one_line_and_no_delay(self, bus: str, lines: list[str]) -> None:
        send()  # the import
        lines.clear()
        fate, seconds = send()
        assert fate is Fate.LOGGED
        assert seconds < notify._LIMIT
        (line,) = lines
        assert line.startswith("INFO Notice, here because ")
        assert line.endswith("Session healed: Fix the <build>: Took out 1 & closed the turn. Undo: recoveryd undo r1")

    @pytest.mark.parametrize("call", ["Introspect", "GetCapabilities", "Notify"])
    def test_a_hung_service_costs_its_time_limit_and_delays_nobody(
        self, bus: str, lines: list[str], monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        monkeypatch.setattr(notify, "_LIMIT", 0.2)
        service = Service(bus, silent=call)
        with notifier() as made:
            made.send(TOAST).wait(10)
            before = descriptors()
            start = time.monotonic()
            fates = [made.send(TOAST) for _ in range(3)]
            assert fates[0].wait(0) is None
            assert [fate.wait(10) for fate in fates] == [Fate.LOGGED] * 3
            assert time.monotonic() - start >= 0.6
            assert descriptors() <= before
        service.stop()
        assert len(lines) == 4
        assert "did not answer in 0.2 seconds" in lines[0]

    @pytest.mark.parametrize("call", ["GetCapabilities", "Notify"])
    def test_a_service_that_refuses_is_not_believed(self, bus: str, lines: list[str], call: str) -> None:
        service = Service(bus, refusing=call)
        assert send()[0] is Fate.LOGGED
        service.stop()
        assert len(lines) == 1

    def test_the_usual_place_is_tried_when_nothing_names_one(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with running_bus(folder) as address:
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
            service = Service(address)
            assert send()[0] is Fate.SHOWN
            service.stop()


class TestWithoutABus:
    def test_no_bus_is_one_line_at_once(self, lines: list[str]) -> None:
        fate, seconds = send()
        assert fate is Fate.LOGGED
        assert seconds < notify._LIMIT
        (line,) = lines
        assert line.startswith("INFO Notice, here because there is no session bus: Session healed: ")

    @pytest.mark.parametrize(
        "address", ["unix:path=/nonexistent/bus", "nonsense", "unix:", "tcp:host=127.0.0.1,port=1"]
    )
    def test_a_dead_address_is_one_line(self, address: str, monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        assert send()[0] is Fate.LOGGED
        assert len(lines) == 1

    def test_a_bus_that_never_speaks_costs_its_time_limit(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
    ) -> None:
        monkeypatch.setattr(notify, "_LIMIT", 0.2)
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={folder}/dumb")
        with socket.socket(socket.AF_UNIX) as dumb:
            dumb.bind(f"{folder}/dumb")
            dumb.listen()
            assert send()[0] is Fate.LOGGED
        assert "did not answer" in lines[0]

    def test_nothing_heavy_is_imported_before_there_is_a_bus_to_show_it_on(self) -> None:
        code = (
            "import sys; from recoveryd.notify import *; n = Notifier(); d = n.send(Toast('a', 'b'));"
            "print(d.wait(5), sorted({m.partition('.')[0] for m in sys.modules} & {'desktop_notifier', 'dbus_fast'}))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.strip() == "logged []"


class TestNotifier:
    def test_switched_off_it_does_nothing(self, lines: list[str]) -> None:
        with notifier(enabled=False, show=lambda _: pytest.fail("asked for")) as made:
            assert made.send(TOAST).wait(0) is Fate.OFF
            assert made._thread is None
        assert lines == []

    def test_it_starts_no_thread_before_the_first_toast_and_one_in_all(self) -> None:
        with notifier(show=lambda _: "") as made:
            assert made._thread is None
            assert [made.send(TOAST).wait(5) for _ in range(3)] == [Fate.SHOWN] * 3
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

    def test_what_does_not_fit_the_queue_is_logged_at_once(self, lines: list[str]) -> None:
        free, busy = threading.Event(), threading.Event()

        def show(_: Toast) -> str:
            busy.set()
            free.wait(10)
            return ""

        with notifier(show=show) as made:
            first = made.send(TOAST)
            assert busy.wait(5)
            waiting = [made.send(TOAST) for _ in range(16)]
            assert made.send(TOAST).wait(0) is Fate.LOGGED
            free.set()
            assert {fate.wait(5) for fate in (first, *waiting)} == {Fate.SHOWN}
        assert len(lines) == 1
        assert "too many at once" in lines[0]

    def test_closing_shows_what_waits_or_logs_it_in_time(self, lines: list[str]) -> None:
        free = threading.Event()

        def show(_: Toast) -> str:
            free.wait(10)
            return ""

        quick, hung = Notifier(show=lambda _: ""), Notifier(show=show)
        fates = [quick.send(TOAST) for _ in range(5)]
        quick.close()
        assert [fate.wait(0) for fate in fates] == [Fate.SHOWN] * 5
        fates = [hung.send(TOAST) for _ in range(3)]
        start = time.monotonic()
        hung.close(0.1)
        assert time.monotonic() - start < 9
        assert fates[2].wait(0) is Fate.LOGGED
        assert hung.send(TOAST).wait(0) is Fate.LOGGED
        assert all("shutting down" in line for line in lines)
        free.set()
        hung.close()

    def test_a_notifier_that_sent_nothing_closes(self) -> None:
        Notifier().close()


class TestText:
    @given(st.text(st.characters(codec=None, exclude_categories=())), st.integers(1, 100))
    def test_any_text_fits_and_is_visible_and_is_utf8(self, text: str, length: int) -> None:
        fit = clean(text, length)
        assert len(fit) <= length
        fit.encode()
        kept = {"\u200c", "\u200d"}
        assert not {c for c in fit if unicodedata.category(c)[0] == "C"} - kept
        assert not re.search(r"\s\s|^\s|\s$|\n", fit)
        assert clean(fit, length) == fit

    def test_what_is_removed_and_what_stays(self) -> None:
        assert clean("a\x1b[31mb\u202ec\u2066d\u200be\x00", 80) == "a[31mbcde"
        assert clean(" a\t\u00a0b\r\nc\u2028d ", 80) == "a b c d"
        assert clean("a \n b\n\nc", 80, keep="\n") == "a\nb\n\nc"
        assert clean("half \ud83d of it", 80) == "half \ufffd of it"
        assert clean("👩\u200d💻 läuft، हिन्दी", 80) == "👩\u200d💻 läuft، हिन्दी"

    def test_what_is_cut_says_so(self) -> None:
        assert clean("x" * 80, 80) == "x" * 80
        assert clean("x" * 81, 80) == "x" * 79 + "…"
        assert clean("x" * 10_000_000, 80) == "x" * 79 + "…"

    @needs_bus
    def test_a_cut_never_goes_through_markup(self, bus: str) -> None:
        service = Service(bus)
        assert send(Toast("", "&" * 400))[0] is Fate.SHOWN
        service.stop()
        assert service.toasts[0][3] == "recoveryd"
        assert service.toasts[0][4] == "&amp;" * 299 + "…"
