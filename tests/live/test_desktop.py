"""Toasts on a real desktop (Xvfb, a D-Bus session, dunst): what it shows, and what it does when it is not well."""

from __future__ import annotations

import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recoveryd.core.model import Event, Kind, Outcome
from recoveryd.heal.lifecycle import CONFIRM_S
from recoveryd.tell import freedesktop, notifier
from recoveryd.tell.desktop import Desktop, can_show
from recoveryd.tell.event_words import notice_buttons, show_notice
from recoveryd.tell.notifier import Fate, Notifier
from recoveryd.tell.toast import Toast
from tests.e2e.daemon import Daemon
from tests.live.screen import Screen, missing, running_screen, until
from tests.live.stuck import Stuck, outcomes
from tests.support.bus import descriptors
from tests.support.cases import notice

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "all there")

HOSTILE = '<b>x</b><img src="http://127.0.0.1/x.png">&#x202e;&lt;\u202egnp\x00\x1b[31m\n--\u2066Z' + "\u0301" * 99
SHOWN_AS = '‹b›x‹/b›‹img src="http://127.0.0.1/x.png"›＆#x202e;＆lt;gnp[31m --Z\u0301'
HEALED = Event(
    "r3k9x2",
    "store",
    "ses_1",
    "Fix the flaky build",
    "msg_1",
    Kind.TOOL_RESULT_MISSING,
    Outcome.HEALED,
    "Ended 1 unfinished tool call as cancelled, closed the open turn",
    ("cancel_tool", "close_turn"),
    places=("turn 14, tool bash", "end of turn 14"),
)
TOAST = Toast(
    "OpenCode session healed: Fix the build", "Took out 1 blank text.", (), "healed", "ses_1", "Fix the build"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, as the path of a socket has to be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def screen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """A desktop that is this process's session."""
    with running_screen(folder) as made:
        for name, value in made.session.items():
            monkeypatch.setenv(name, value)
        yield made


def healed(number: int, title: str = "") -> Toast:
    return notice(Event(f"r{number}", "store", f"ses_{number}", title, "", None, Outcome.HEALED, f"Deed {number}"))


def toast_threads() -> int:
    return [t.name for t in threading.enumerate()].count("toast")


def test_what_a_user_sees(screen: Screen, tmp_path: Path) -> None:
    """As dunst was told, and drawn: a heal, a refusal, a session given up, many at once, the details."""
    gave_up = Event(
        "r2", "store", "ses_2", "Rename", "", Kind.EMPTY_CONTENT, Outcome.GAVE_UP, "It was repaired 3 times."
    )
    long = "The conversation is longer than the model can take: /compact it, or start a new session."
    refused = Event("r3", "store", "ses_3", "اصلاح البناء", "", Kind.CONTEXT_OVERFLOW, Outcome.REFUSED, long)
    nothing = screen.picture(tmp_path / "nothing.png").read_bytes()
    shown = [notice(HEALED), notice(gave_up), notice(refused), show_notice(HEALED)]
    desktop = Desktop()
    assert [desktop.show(toast) for toast in shown] == [""] * len(shown)
    assert screen.displayed() == len(shown)
    assert screen.picture(tmp_path / "toasts.png").read_bytes() != nothing
    told = screen.history()[::-1]
    assert [toast["summary"] for toast in told] == [toast.title for toast in shown]
    assert [toast["body"] for toast in told] == [toast.body for toast in shown]
    assert told[0]["appname"] == "recoveryd"
    with_buttons = Desktop()
    assert with_buttons.show(notice(HEALED, notice_buttons(HEALED, lambda *_: None, can_continue=lambda: True))) == ""
    screen.picture(tmp_path / "buttons.png")
    with_buttons.close()
    assert screen.displayed() == 0, "a button that does nothing stands"


def test_a_hostile_title_is_plain_text(screen: Screen, tmp_path: Path) -> None:
    """In the title and in the body: no markup, no entity, no picture, no line of its own, nothing written backwards."""
    desktop = Desktop()
    assert desktop.show(healed(1, HOSTILE)) == ""
    assert desktop.show(Toast("Twice", f"{HOSTILE}\n<a href='http://127.0.0.1'>here</a>")) == ""
    screen.picture(tmp_path / "hostile.png")
    in_body, in_title = screen.history()
    assert in_title["summary"] == f"OpenCode session healed: {SHOWN_AS}"[:79] + "…"
    assert in_title["message"].splitlines()[0].startswith("<b>OpenCode session healed: ‹b›x‹/b›‹img src=")
    assert in_body["body"].startswith(
        '&lt;b&gt;x&lt;/b&gt;&lt;img src="http://127.0.0.1/x.png"&gt;&amp;#x202e;&amp;lt;gnp'
    )
    assert in_body["body"].endswith("&lt;a href='http://127.0.0.1'&gt;here&lt;/a&gt;")
    for toast in (in_title, in_body):
        assert not set(toast["summary"] + toast["body"]) & set("\0\x1b\u202e\u2066")
        assert "127.0.0.1" not in toast["icon_path"]


def test_many_at_once_are_one_toast(screen: Screen, tmp_path: Path, lines: list[str]) -> None:
    """A thousand in a moment, and what comes right behind them: two toasts."""
    made = Notifier()
    sent = [made.send(healed(number, f"Title <{number}>")) for number in range(1000)]
    assert {delivery.wait(20) for delivery in sent} == {Fate.SHOWN}
    screen.picture(tmp_path / "many.png")
    late = [made.send(healed(number, "late")) for number in (1, 2)]
    made.close(5)
    assert {delivery.wait(0) for delivery in late} == {Fate.SHOWN}
    told = screen.history()[::-1]
    assert [toast["summary"] for toast in told] == ["1000 sessions healed", "2 sessions healed"]
    assert told[0]["body"].splitlines()[0] == "• Title &lt;0&gt; (OpenCode)"
    assert lines == []


def test_a_service_that_was_ended_hung_or_lost_is_used_again(
    screen: Screen, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same notifier all along; one line for each notice that was not shown, and nothing worse."""
    monkeypatch.setattr(freedesktop, "LIMIT_S", 0.5)
    made = Notifier()

    def fate() -> Fate | None:
        return made.send(Toast("An answer", "at once")).wait(10)

    assert (fate(), can_show()[0]) == (Fate.SHOWN, True)
    screen.end()
    assert (fate(), can_show()[0]) == (Fate.LOGGED, False)
    screen.start()
    assert (fate(), can_show()[0]) == (Fate.SHOWN, True)
    assert screen.dunst is not None
    screen.dunst.send_signal(signal.SIGSTOP)
    assert (fate(), can_show()[0]) == (Fate.LOGGED, False)
    screen.dunst.send_signal(signal.SIGCONT)
    assert (fate(), can_show()[0]) == (Fate.SHOWN, True)
    screen.bus.send_signal(signal.SIGSTOP)
    assert (fate(), can_show()[0]) == (Fate.LOGGED, False)
    screen.bus.send_signal(signal.SIGCONT)
    assert (fate(), can_show()[0]) == (Fate.SHOWN, True)
    screen.bus.kill()
    screen.bus.wait(10)
    assert (fate(), can_show()[0]) == (Fate.LOGGED, False)
    made.close(5)
    assert [line[:26] for line in lines] == ["INFO Notice, here because "] * 4
    assert "ServiceUnknown" in lines[0] or "not provided by any" in lines[0]
    assert "did not answer in 0.5 seconds" in lines[1] and "did not answer in 0.5 seconds" in lines[2]


def test_two_hundred_toasts_to_a_stopped_service_leave_no_thread_and_no_descriptor(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of them was handed to it, to be shown all at once when it goes on."""
    desktop = Desktop()
    assert desktop.show(TOAST) == ""
    monkeypatch.setattr(freedesktop, "LIMIT_S", 0.01)
    assert screen.dunst is not None
    screen.dunst.send_signal(signal.SIGSTOP)
    assert desktop.show(TOAST)
    before = descriptors(), threading.active_count()
    assert all(desktop.show(Toast(f"{number}", "")) for number in range(200))
    assert (descriptors(), threading.active_count()) <= before
    assert descriptors() <= before[0] and toast_threads() == 0
    screen.dunst.send_signal(signal.SIGCONT)
    until(lambda: can_show()[0], "it does not come back")
    assert len(screen.history()) == 1


def test_a_button_that_is_pressed_in_the_desktops_menu_is_called(screen: Screen) -> None:
    """Of two toasts the right one; then it is gone, with its thread. Nothing wakes up while it is waited for."""
    pressed: list[tuple[str, Event]] = []
    desktop = Desktop()
    toast = notice(HEALED, notice_buttons(HEALED, lambda *said: pressed.append(said), can_continue=lambda: True))
    assert desktop.show(toast) == ""
    (talk,) = [thread for thread in threading.enumerate() if thread.name == "toast"]
    before = switches(talk.native_id)
    time.sleep(1)
    assert switches(talk.native_id) - before <= 1
    screen.press("Undo")
    until(lambda: pressed == [("Undo", HEALED)], "it was not called")
    until(lambda: screen.displayed() == 0 and toast_threads() == 0, "it stands, with a button that does nothing")
    desktop.close()


def switches(thread: int | None) -> int:
    """How often a thread of this process went to sleep by itself."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_the_daemon_heals_in_its_time_whatever_becomes_of_its_notices(
    screen: Screen, tmp_path: Path, data: Path
) -> None:
    """The first goes to a stopped service, while the next session is healed; that one to the service that goes on."""
    assert screen.dunst is not None
    screen.dunst.send_signal(signal.SIGSTOP)
    with Daemon(tmp_path / "daemon", data, config="", env=screen.session) as daemon:
        first, second = Stuck(daemon.storage), Stuck(daemon.storage)
        heal(daemon, first)
        time.sleep(CONFIRM_S + notifier.QUIET_S + 0.1)  # its notice is tried now
        heal(daemon, second)
        assert "Notice" not in daemon.log, "the repair waited for the notice before it"
        daemon.wait(lambda: "did not answer" in daemon.log, "nobody was told")
        screen.dunst.send_signal(signal.SIGCONT)
        daemon.wait(lambda: screen.displayed() == 1, "it is not used again")
        (toast,) = screen.history()
        assert toast["summary"] == "OpenCode session healed: stuck"
        assert toast["body"].startswith("Turn 1, tool bash: put 1 tool result right behind its call.")
        assert set(daemon.by_session()) == {first.id, second.id}
        assert_quiet(daemon, notices=1)


def heal(daemon: Daemon, stuck: Stuck) -> None:
    """Break a session, and wait until it is edited."""
    stuck.fail()
    before = stuck.files
    daemon.wait(lambda: stuck.files != before, "it was not healed")


@pytest.mark.parametrize("bus", ["none", "dead", "dumb"])
def test_the_daemon_without_a_desktop_says_where_the_notice_went(
    bus: str, tmp_path: Path, data: Path, folder: Path
) -> None:
    """No bus, an address that points nowhere, a socket that accepts and never answers."""
    address = {"none": "", "dead": "unix:path=/nonexistent/bus", "dumb": f"unix:path={folder}/dumb"}[bus]
    env = {"DBUS_SESSION_BUS_ADDRESS": address, "XDG_RUNTIME_DIR": str(folder)}
    with socket.socket(socket.AF_UNIX) as dumb:
        dumb.bind(f"{folder}/dumb")
        dumb.listen()
        with Daemon(tmp_path / "daemon", data, config="", env=env) as daemon:
            stuck = Stuck(daemon.storage)
            heal(daemon, stuck)
            daemon.wait(lambda: "Notice, here because" in daemon.log, "nobody was told")
            assert outcomes(daemon, stuck.id) == ["healed"]
            assert_quiet(daemon, notices=1)


def assert_quiet(daemon: Daemon, notices: int) -> None:
    """So many notices went to the log, one line each, and nothing else was amiss."""
    lines = daemon.log.splitlines()
    assert sum("Notice, here because" in line for line in lines) == notices
    assert [line for line in lines if "INFO" not in line] == []
