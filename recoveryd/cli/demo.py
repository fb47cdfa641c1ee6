"""`recoveryd demo`"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from recoveryd.cli.output import OK, WRONG, Result, console, print_labelled, print_wrapped, render, show_changes
from recoveryd.clients import SETTLE_S
from recoveryd.core import uncapital
from recoveryd.demo import Demo, Row
from recoveryd.settings import setup

_FINAL = ("healed", "untouched", "wrong")
_LABELS = {"broken": "refused", "repaired": "repaired", "healed": "healed", "untouched": "untouched", "wrong": "WRONG"}
_STYLES = {"broken": "yellow", "repaired": "cyan", "healed": "bold green", "untouched": "green", "wrong": "bold red"}
_WIDEST = 100
_INTRO = "Throw-away stores of OpenCode and Codex, and the real daemon on them. Yours are not touched."


def demo(arguments: argparse.Namespace) -> int:
    """Run `recoveryd demo`: break and heal sessions in a store that is thrown away."""
    log = io.StringIO()
    setup("WARNING", stream=log)
    out = console(soft_wrap=False)
    with _signals(), Demo() as run:
        if arguments.json:
            for _ in run.steps():
                pass  # the rows tell
            undone = _undo(run)
        elif out.is_terminal and not out.is_dumb_terminal:
            _live(run, out)
            undone = _tell(run, out)
        else:
            _plain(run, out)
            undone = _tell(run, out)
    problems = run.problems() if undone else [*run.problems(), "The undo did not put every byte back."]
    if problems:
        print("\n".join([*(f"recoveryd: {problem}" for problem in problems), log.getvalue()]).rstrip(), file=sys.stderr)  # noqa: T201
    code = WRONG if problems else OK
    return render(Result([_json(run, row) for row in run.rows], lambda _: None, code), as_json=arguments.json)


@contextmanager
def _signals() -> Iterator[None]:
    """Turn the signals that end a process into an exception, so that the throw-away folder is removed."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _json(run: Demo, row: Row) -> dict[str, Any]:
    timed = row.seconds > 0
    return {
        "session": row.example.id,
        "title": row.example.title,
        "kind": row.example.kind,
        "cause": row.cause,
        "state": row.state,
        "action": row.action,
        "recovery": row.event.id if row.event else None,
        "ms": round(row.seconds * 1000, 1) if timed else None,
        "floor_ms": round(run.floor * 1000, 2),
        "ratio": round((row.seconds - SETTLE_S) / run.floor, 1) if timed else None,
        "undone": row.undone,
    }


def _live(run: Demo, out: Console) -> None:
    """Show what is done as lines that scroll up, and below them what is under way: no terminal is too low for that."""
    out.print(Text(f"{_INTRO}\n"))
    active: dict[str, RenderableType] = {}
    with Live(console=out, refresh_per_second=12, transient=True) as live:
        for row in run.steps():
            active.pop(row.example.id, None)
            if row.state in _FINAL:
                out.print(_line(row, out))
            elif row.example.kind:
                active[row.example.id] = _line(row, out)
            live.update(Group(*active.values()), refresh=True)


def _line(row: Row, out: Console) -> RenderableType:
    text = Text(row.example.title, style="bold")
    text.append(f"\n{row.cause}", style="not bold")
    if row.action:
        text.append(f"\n{row.action}", style="not bold dim")
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.width = min(out.width, _WIDEST)
    grid.add_column(width=10)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_column(width=7, justify="right")
    state = Text(_LABELS[row.state], style=_STYLES[row.state])
    mark = state if row.state in _FINAL else Spinner("line", state)
    grid.add_row(mark, text, Text(_time(row)))
    return grid


def _time(row: Row) -> str:
    return f"{row.seconds * 1000:.0f} ms" if row.seconds else ""


def _plain(run: Demo, out: Console) -> None:
    """Print a line when a session is done, for a pipe or a log."""
    out.print(f"{_INTRO}\n", soft_wrap=not out.is_terminal)
    for row in run.steps():
        if row.state in _FINAL:
            time = f" ({_time(row)})" if row.seconds else ""
            words = f"{row.example.title}: {row.cause}; {uncapital(row.action)}{time}"
            if out.is_terminal:  # a dumb one
                print_labelled(out, _LABELS[row.state], words, width=11)
            else:
                out.print(f"{_LABELS[row.state]:11}{words}", soft_wrap=True)


def _undo(run: Demo) -> int:
    """Undo one repair; returns how many files are as they were, 0 when not all are."""
    row = run.example()
    return run.take_back(row) if row is not None else 0


def _tell(run: Demo, out: Console) -> int:
    row = run.example()
    if row is None or row.event is None:
        return 0
    _say(out, f"One of the repairs ({row.example.title}, {row.event.id}), as `recoveryd show` would:")
    show_changes(out, run.store(row).content, run.changes(row))
    files = run.take_back(row)
    if files:
        _say(
            out,
            f"It was undone, to show that it can be: all {files} files of the session are as before, byte for byte.",
        )
    work = (run.median() - SETTLE_S) * 1000
    _say(
        out,
        f"Median {run.median() * 1000:.0f} ms from the refusal to the repair being safe on the disk: "
        f"{SETTLE_S * 1000:.0f} ms until the client is quiet, then {work:.1f} ms, {run.ratio():.1f} times the floor "
        f"({run.floor * 1000:.1f} ms: a bare watcher and one synced write).",
    )
    if not run.problems():
        _next(out)
    return files


def _say(out: Console, text: str) -> None:
    """Print a paragraph: folded on a terminal, one line in a pipe."""
    out.print()
    if out.is_terminal:
        print_wrapped(out, text)
    else:
        out.print(text, soft_wrap=True)


def _next(out: Console) -> None:
    out.print()
    for command, what in (
        ("Next:  recoveryd scan", "list your own sessions that are stuck; changes nothing"),
        ("       recoveryd run", "watch them, and heal what gets stuck"),
    ):
        if out.width < 60:
            out.print(command)
            print_wrapped(out, what, 9)
        else:
            print_labelled(out, command, what, width=24)
