"""Show a bar on stderr while a command goes through many sessions, where a person sits in front of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from recoveryd.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress

MANY = 200  # sessions; fewer are looked at in less than a moment

T = TypeVar("T")


class Bar:
    """A bar of progress on stderr; nothing is shown unless that is a terminal that can draw, and there
    are many; nor if not `shown`.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._bar: Progress | None = None

    def over(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Go through `items` one by one; the bar is gone from the screen when they are through."""
        out = console(stderr=True)
        if not self._shown or total < MANY or not out.is_terminal or out.is_dumb_terminal:
            yield from items
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("sessions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        out.soft_wrap = False
        bar = Progress(*columns, console=out, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._bar = bar
        try:
            bar.start()
            yield from bar.track(items, total=total)
        finally:
            bar.stop()
            self._bar = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while something else is printed."""
        if self._bar is not None:
            self._bar.stop()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.start()
