"""Print the result of a command: for people on a terminal, or as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from recoveryd.cli.pager import pages
from recoveryd.core import UNKNOWN, Change, RecoverydError, clean, shown

if TYPE_CHECKING:
    from rich.console import Console

    from recoveryd.clients import Content

OK, WRONG = 0, 1
WARNING = "warning: "  # before what is told beside a result
SCHEMA = 1  # of all documents; a key that goes or changes its meaning makes it the next number
_NARROW = 76  # columns


@dataclass(frozen=True, slots=True)
class Result:
    """`data` is the JSON form (a published contract), `show` prints the same for a person."""

    data: Any
    show: Callable[[Console], None]
    code: int = OK


def render(result: Result, *, as_json: bool, paged: bool = False) -> int:
    """Print a result to stdout and return the exit code. `paged`: in a terminal, through a pager if it is long."""
    try:
        if as_json:
            document(result.data)
        elif paged and sys.stdout.isatty():
            out = console()
            with out.capture() as held:
                result.show(out)
            if not pages(text := held.get()):
                sys.stdout.write(text)
        else:
            result.show(console())
        sys.stdout.flush()
    except BrokenPipeError:  # `recoveryd scan | head`: the result is what it is, though nobody reads all of it
        to_nowhere(sys.stdout)
    return result.code


def document(data: Any) -> None:
    """Print what docs/json.md describes. A list is printed as it is: it has no room for the number."""
    said = {"schema": SCHEMA, **data} if isinstance(data, Mapping) else data
    sys.stdout.write(json.dumps(said, indent=2, ensure_ascii=True) + "\n")


def error_document(error: RecoverydError) -> None:
    """Print why there is no result, for a program that waits for one on stdout."""
    said = {"code": error.code, "exit": error.exit_code, "message": error.message, "hint": error.hint}
    document({"ok": False, "error": {**said, "recoveries": list(error.recoveries)}})


def complain(text: str, mark: str = "") -> None:
    """Print to stderr: folded on a terminal; a log or a pipe gets the lines as they are."""
    try:
        for line in f"recoveryd: {mark}{text}".splitlines():
            if sys.stderr.isatty():
                print_wrapped(console(stderr=True), line)
            else:
                print(line, file=sys.stderr)  # noqa: T201
    except OSError:  # the exit code tells it
        to_nowhere(sys.stderr)


def to_nowhere(stream: TextIO) -> None:
    """Drop what is still to be written to a stream, so that Python does not fail on it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def console(*, stderr: bool = False, soft_wrap: bool = True, goes_on: bool = False) -> Console:
    """Make a console: colours only on a terminal, none with NO_COLOR; markup in untrusted text stays text. `goes_on`:
    without a word where nobody reads any more.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            if not goes_on:
                raise BrokenPipeError  # rich would end the process, with 1
            to_nowhere(sys.stderr if stderr else sys.stdout)

    return Plain(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)


def table(out: Console, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a plain table.

    In a terminal its last column folds, or stands below the others where it is narrow; elsewhere each row is one line,
    with two spaces or more between its cells.
    """
    if not out.is_terminal:
        _lines_of(out, [headers, *([plain(cell) for cell in row] for row in rows)])
        return
    if out.width < _NARROW:
        for *cells, last in rows:
            print_wrapped(out, "  ".join(cells))
            print_wrapped(out, last, 4)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(headers):
        made.add_column(header, no_wrap=index < len(headers) - 1, overflow="fold")
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    out.print(made, soft_wrap=False)


def _lines_of(out: Console, rows: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for *cells, last in rows:
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=False)]
        out.print("  ".join([*padded, last]).rstrip())


def folded(out: Console, text: str, width: int) -> list[str]:
    """Cut untrusted text into lines of a terminal that have `width` columns left; elsewhere into one line."""
    from rich.text import Text

    if not out.is_terminal:
        return [plain(text)]
    return [line.plain.rstrip() for line in Text(plain(text)).wrap(out, max(20, width))]


def print_wrapped(out: Console, text: str, indent: int = 0) -> None:
    """Print untrusted text, folded to the width of the terminal."""
    for line in folded(out, text, out.width - indent):
        out.print(" " * indent + line)


def print_labelled(out: Console, label: str, text: str, style: str = "", width: int = 10) -> None:
    """Print a label, and untrusted text beside it, folded to the width of the terminal."""
    from rich.text import Text

    for number, line in enumerate(folded(out, text, out.width - width) or [""]):
        made = Text(label.ljust(width) if number == 0 else " " * width, style=style if number == 0 else "")
        out.print(made.append(line, style="" if label else style))


def print_field(out: Console, name: str, text: str, more: str = "") -> None:
    """Print a field of a result as `hung` does, if there is anything to say."""
    if text:
        print_labelled(out, name, f"{text} ({more})" if more else text)


def plain(text: str) -> str:
    """Put untrusted text on one line of a command's output, without what a terminal or a reader's eye would obey."""
    return clean(text, instead=UNKNOWN)


def show_changes(out: Console, content: Content, changes: Sequence[Change], most: int | None = None) -> None:
    """Print each record before and after, as a diff; of more than `most` the rest is counted. `content` reads them."""
    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "cyan"}
    for change in changes[:most]:
        for line in diff(content, change):
            style = "bold" if line[:3] in ("+++", "---") else styles.get(line[:1], "")
            out.print(Text(line, style=style), soft_wrap=True)
    if most is not None and len(changes) > most:
        out.print(
            "... and 1 more record" if len(changes) == most + 1 else f"... and {len(changes) - most:,} more records"
        )


def diff(content: Content, change: Change) -> list[str]:
    """Make the diff of a record that commands print, as its client lays it open.

    Bytes that are no text are shown with replacement characters; the ledger has them as they are.
    """
    import difflib  # late: most commands show no diff

    before, after = _lines(change.before, content), _lines(change.after, content)
    names = (
        change.key if change.before is not None else "(new)",
        change.key if change.after is not None else "(set aside)",
    )
    return [
        shown(line, keep="\t", instead=UNKNOWN)
        for line in difflib.unified_diff(before, after, *names, lineterm="", n=2)
    ]


def _lines(image: bytes | None, content: Content) -> list[str]:
    if image is None:
        return []
    laid_open = content.shown(image)
    text = image.decode("utf-8", "replace")
    if laid_open is not None:
        with suppress(RecursionError):  # what is nested too deeply is shown as it is
            text = json.dumps(laid_open, indent=2, ensure_ascii=False)
    return text.splitlines()


def local_time(seconds: float) -> str:
    """Write seconds since the epoch as commands print a time, in the user's zone: "2026-11-22 05:27:44"."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
