"""`recoveryd watch`: a live view of the sessions in a terminal, with the change of the selected one."""

from __future__ import annotations

import argparse
import os
import queue
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recoveryd.cli.common import client_meant, config_of, in_brackets, open_ledger, stores_of, tell_client_undone
from recoveryd.cli.live_sessions import LiveSession, LiveSessions, State
from recoveryd.cli.output import OK, console, diff, plain
from recoveryd.clients import Config, Whose
from recoveryd.core import ConfigError, Outcome, RecoverydError, UsageError, command_line
from recoveryd.diagnose import Context, case_from_ledger
from recoveryd.heal import Answer, Resumer, by_hand
from recoveryd.settings import load, paths

_REFRESH_S = 1.0
_ESCAPE_S = 0.05  # the rest of an arrow's code comes at once
_ROOMY = 20  # lines of a terminal in which a sentence may take more than one
_KEYS = "q quit; up, down select; space next page; u undo; c continue"
_ARROWS = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down"}
_NAMES = {b"k": "up", b"j": "down", b" ": "page", b"\x03": "q", b"\x04": "q"}
_STYLES = {State.STUCK: "bold red", State.HEALED: "green", State.RUNNING: "cyan", State.ERROR: "yellow"}


@dataclass
class WatchScreen:
    """What is on the screen of `watch`. The worker's thread sets `rows`, `problems`, `idle`, `lines` and `said`.

    `ended`: by what fault of the program the worker ended; then what is shown stands still.
    """

    whose: Whose
    rows: Sequence[LiveSession] = ()
    problems: Sequence[str] = ()
    idle: str = ""  # why nothing is repaired now
    said: str = "Looking at your sessions ..."
    selected: tuple[str, str] | None = None
    asked: tuple[str, LiveSession] | None = None  # the key that waits for a yes, and its session: the list moves on
    lines: dict[str, list[str]] = field(default_factory=dict)  # of the diff of each recovery that was selected
    page: int = 0
    ended: str = ""

    @property
    def row(self) -> LiveSession | None:
        """The selected session: the first one until another is chosen."""
        rows = self.rows
        return next((row for row in rows if _key(row) == self.selected), rows[0] if rows else None)

    @property
    def question(self) -> str:
        """What is asked now; "" for nothing."""
        if self.asked is None:
            return ""
        key, row = self.asked
        if key == "u":
            return f"Undo {row.recovery}, and put the session back as it was? [y/N]"
        return f"Tell {row.title or row.session} to go on? [y/N]"

    def move(self, by: int) -> None:
        """Select another session, `by` rows below."""
        rows, row = self.rows, self.row
        if row is not None:
            place = [_key(one) for one in rows].index(_key(row)) if row in rows else 0
            self.selected, self.page = _key(rows[max(0, min(place + by, len(rows) - 1))]), 0


def _key(row: LiveSession) -> tuple[str, str]:
    return row.store.id, row.session


class _Worker(threading.Thread):
    """Looks at the stores, and does what a key asks for, so that the terminal never waits for either."""

    def __init__(self, live: LiveSessions, view: WatchScreen) -> None:
        super().__init__(daemon=True, name="watch")
        self._live, self._view = live, view
        self.jobs: queue.SimpleQueue[Callable[[], str]] = queue.SimpleQueue()

    def run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._view.ended = f"{type(error).__name__}: {error}"

    def _work(self) -> None:
        said = ""
        while True:
            self._refresh(said)
            try:
                job = self.jobs.get(timeout=_REFRESH_S)
            except queue.Empty:
                said = self._view.said
                continue
            try:
                said = job()
            except RecoverydError as error:
                said = f"{error.message} {error.hint}".strip()

    def _refresh(self, said: str) -> None:
        try:
            self._view.rows = self._live.refresh()
            self._view.problems = tuple(self._live.problems.values())
            self._view.idle = self._live.idle()
            row = self._view.row
            if row is not None and row.recovery and row.recovery not in self._view.lines:
                lines = [line for change in self._live.changes(row) for line in diff(row.store.content, change)]
                self._view.lines[row.recovery] = lines
        except RecoverydError as error:
            said = error.message
        self._view.said = said


def watch(arguments: argparse.Namespace) -> int:
    """Run `recoveryd watch`: show the sessions live in a terminal."""
    instead = f"{command_line('logs', '-f')}, {command_line('history', '--json')}"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("This needs a terminal.", f"In a pipe: {instead}")
    if console().is_dumb_terminal:  # in which rich would draw nothing
        raise UsageError(f"This terminal writes lines only (TERM={os.environ['TERM']}).", f"In it: {instead}")
    config = config_of(arguments)
    whose = Whose(config)
    only = client_meant(arguments, whose)
    view = WatchScreen(whose)

    def reread() -> Config:
        try:
            return load(Config, arguments.config or paths.config_file())
        except ConfigError:  # which recoveryd does not take, either
            return sessions.config

    sessions = LiveSessions(config, lambda: stores_of(sessions.config, only), reread=reread)
    worker = _Worker(sessions, view)
    worker.start()
    return show_screen(view, worker, arguments)


def show_screen(view: WatchScreen, worker: _Worker, arguments: argparse.Namespace) -> int:
    """Draw the screen of `watch` until its user ends it. Raises RecoverydError when it can't go on."""
    out = console(soft_wrap=False)
    with Live(console=out, screen=True, auto_refresh=False) as live, _keys(live.stop, live.start) as key:
        while not view.ended:
            live.update(draw_screen(view, out), refresh=True)
            pressed = key(_REFRESH_S / 4)
            if pressed == "q" and not view.question:
                return OK
            _obey(pressed, view, worker, arguments)
    scan = command_line("scan")
    hint = f"Nothing of it touches your sessions, or a recoveryd that runs. `{scan}` says what is stuck."
    raise RecoverydError(f"The view ended by a fault of recoveryd: {view.ended}.", hint)


def _obey(pressed: str, view: WatchScreen, worker: _Worker, arguments: argparse.Namespace) -> None:
    row = view.row
    if view.asked is not None:
        if pressed:
            (asked, of), view.asked = view.asked, None
            doing, does, nothing = _ASKED[asked]
            view.said = doing if pressed == "y" else nothing
            if pressed == "y":
                worker.jobs.put(partial(does, of, arguments))
    elif pressed in ("up", "down"):
        view.move(1 if pressed == "down" else -1)
        worker.jobs.put(lambda: "")
    elif pressed == "page":
        view.page += 1
    elif pressed in ("u", "c") and row is not None:
        if not row.recovery:
            view.said = "No recovery of this session stands."
        else:
            view.asked, view.selected = (pressed, row), _key(row)


def _undo(row: LiveSession, arguments: argparse.Namespace) -> str:
    config = config_of(arguments)
    if config.dry_run:
        return "Nothing is written: `dry_run` is set in the configuration."
    with open_ledger() as ledger:
        context = Context(ledger, config, paths.state_dir())
        answer = by_hand.undo_by_hand(context, case_from_ledger(row.store, ledger.get(row.recovery)))
    if answer.event.outcome is Outcome.UNDONE:
        tell_client_undone(config, row.store, answer.event, quiet=arguments.quiet)
    return _told(answer)


def _continue(row: LiveSession, arguments: argparse.Namespace) -> str:
    with open_ledger() as ledger:
        context = Context(ledger, config_of(arguments), paths.state_dir())
        case = case_from_ledger(row.store, ledger.get(row.recovery))
        return _told(by_hand.go_on_by_hand(context, Resumer(context), case))


# What is said while a key's wish is carried out, what does that, and what is said if it is none.
_ASKED = {
    "u": ("Undoing ...", _undo, "Nothing was undone."),
    "c": ("Asking its client to go on ...", _continue, "Nothing was asked."),
}


def _told(answer: Answer) -> str:
    return f"{answer.heading}: {answer.says}"


def draw_screen(view: WatchScreen, out: Console) -> RenderableType:
    """Draw the screen of `watch` for a terminal of this size: half of it for the list at the most."""
    rows, row = view.rows, view.row
    width, most = out.size.width, 3 if out.size.height >= _ROOMY else 1
    idle = _folded(view.idle, "red", width, most) if view.idle else []
    problems = [*idle, *(line for one in view.problems[:2] for line in _folded(one, "red", width, most))]
    foot = [*_folded(view.question or view.said, "bold", width, most), *_folded(_KEYS, "dim", width, most)]
    free = out.size.height - len(problems) - len(foot) - 3  # what is always there
    room = max(1, min(len(rows), free // 2))
    chosen = rows.index(row) if row in rows else 0
    first = max(0, min(chosen - room // 2, len(rows) - room))
    stuck = sum(one.state is State.STUCK for one in rows)
    count = f"{len(rows)} {'session' if len(rows) == 1 else 'sessions'}"
    return Group(
        _line(f"{count}, {stuck} stuck; {time.strftime('%H:%M:%S')}, {command_line('watch')}", "bold"),
        *problems,
        _table(rows[first : first + room], row, view.whose),
        Rule(style="dim"),
        *_details(view, row, free - room, width),
        Rule(style="dim"),
        *foot,
    )


def _line(text: str, style: str) -> Text:
    return Text(plain(text) or " ", style=style, no_wrap=True, overflow="ellipsis")


def _folded(text: str, style: str, width: int, most: int) -> list[Text]:
    """Fold what its reader needs the end of; of more than `most` lines the last one breaks off."""
    lines = Text(plain(text) or " ").wrap(console(), width)
    rest = " ".join(line.plain.rstrip() for line in lines[most - 1 :])
    return [_line(one, style) for one in (*(line.plain.rstrip() for line in lines[: most - 1]), rest)][: len(lines)]


def _table(rows: Sequence[LiveSession], selected: LiveSession | None, whose: Whose) -> Table:
    made = Table(box=None, expand=True, pad_edge=False, show_header=False)
    for width in (1, 8, 8, 12 if whose.several else 0):
        made.add_column(width=width, no_wrap=True, overflow="ellipsis")
    made.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for row in rows:
        chosen = selected is not None and _key(row) == _key(selected)
        said = f"{row.title or '(no title)'}{f': {row.says}' if row.says else ''}"
        made.add_row(
            ">" if chosen else "",
            time.strftime("%H:%M:%S", time.localtime(row.at)),
            Text(row.state, style=_STYLES.get(row.state, "")),
            whose.title(row.store.id) if whose.several else "",
            Text(plain(said)),
            style="reverse" if chosen else "",
        )
    return made


def _details(view: WatchScreen, row: LiveSession | None, room: int, width: int) -> list[Text]:
    """Draw the selected session, and a page of what its recovery changed, in at most `room` lines."""
    if row is None:
        return [_line("No session changed lately.", "dim")][:room]
    done = f", repaired by {row.recovery}" if row.recovery else ""
    named = row.session + in_brackets(view.whose, row.store.id)
    lines = view.lines.get(row.recovery, [])
    most = max(room // 3, room - 1 - len(lines))  # what the diff does not need
    head = [_line(f"{named}{done}", "bold"), *(_folded(row.says, "", width, most) if row.says and most else [])]
    page = max(1, room - len(head))
    start = view.page % max(1, -(-len(lines) // page)) * page
    styles = {"+": "green", "-": "red", "@": "cyan"}
    shown = (Text(line, styles.get(line[:1], ""), no_wrap=True, overflow="ellipsis") for line in lines)
    return [*head, *islice(shown, start, start + page)][: max(0, room)]


@contextmanager
def _keys(hide: Callable[[], object], show: Callable[[], object]) -> Iterator[Callable[[float], str]]:
    """Yield what waits so many seconds for a key, and names it; "" when none came. The terminal is as before, after.

    Ctrl-Z puts the program aside: `hide` clears the screen for the shell, `show` draws it again behind `fg`.
    """
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    aside = before[6][termios.VSUSP]
    _listen(terminal)

    def key(seconds: float) -> str:
        if not select.select([terminal], [], [], seconds)[0]:
            return ""
        typed = os.read(terminal, 1)
        while typed.startswith(b"\x1b") and len(typed) < 3 and select.select([terminal], [], [], _ESCAPE_S)[0]:
            typed += os.read(terminal, 1)
        if typed and typed == aside:
            hide()
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            os.kill(0, signal.SIGTSTP)  # the whole job, as the terminal does
            _listen(terminal)
            show()
            return ""
        return _ARROWS.get(typed) or _NAMES.get(typed) or ("q" if not typed else typed.decode("ascii", "replace"))

    try:
        yield key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _listen(terminal: int) -> None:
    """Have each key come at once, Ctrl-Z as one of them: the terminal has to be given back before the program stops."""
    tty.setcbreak(terminal)
    mode = termios.tcgetattr(terminal)
    mode[6][termios.VSUSP] = bytes([os.fpathconf(terminal, "PC_VDISABLE")])
    termios.tcsetattr(terminal, termios.TCSADRAIN, mode)
