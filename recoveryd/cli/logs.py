"""`recoveryd logs`: the log's own file, which is written with and without a journal."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from recoveryd.cli.output import OK, complain
from recoveryd.cli.pager import pages
from recoveryd.core import UNKNOWN, RecoverydError, shown
from recoveryd.settings import paths

_PAUSE_S = 0.25
_FIRST = re.compile(rb"\d{4}-\d\d-\d\d \d\d:")  # of an entry; the lines below it belong to it


def logs(arguments: argparse.Namespace) -> int:
    """Run `recoveryd logs`: print the end of the log's own file, and follow it with `-f`."""
    file = paths.log_file(paths.state_dir())
    wanted = _about(arguments.session)
    try:
        entries, read = _kept(file)
        entries = list(filter(wanted, entries))
        text = "".join(map(_shown, entries[-arguments.lines :] if arguments.lines else []))
        if arguments.follow or not pages(text):
            sys.stdout.write(text)
        if not entries:
            about = f" about {arguments.session}" if arguments.session else ""
            yet = " yet; what comes is shown" if arguments.follow else ""
            complain(f"The log says nothing{about}{yet} ({file}).")
        if arguments.follow:
            sys.stdout.flush()
            for entry in _new(file, read):
                if wanted(entry):
                    sys.stdout.write(_shown(entry))
                    sys.stdout.flush()
    except (PermissionError, NotADirectoryError) as error:
        raise RecoverydError(f"{file} can't be read: {error.strerror}.") from error
    return OK


def _about(session: str | None) -> Callable[[bytes], object]:
    """Make what tells whether an entry names a session."""
    if session is None:
        return len
    return re.compile(rb"(?<![\w-])" + re.escape(session.encode("utf-8", "replace")) + rb"(?![\w-])").search


def _kept(file: Path) -> tuple[list[bytes], int]:
    """All entries, oldest first, those too of files that were put aside when they were full; how many bytes of the
    newest file they are."""
    entries: list[bytes] = []
    content = b""
    for one in (*sorted(file.parent.glob(f"{file.stem}.*{file.suffix}")), file):
        try:
            content = one.read_bytes()
        except FileNotFoundError:  # there is none yet, or it was removed just now
            content = b""
        entries += _entries(content)
    return entries, len(content)


def _entries(content: bytes) -> Iterator[bytes]:
    entry = b""
    for line in content.splitlines(keepends=True):
        if _FIRST.match(line) and entry:
            yield entry
            entry = b""
        entry += line
    if entry:
        yield entry


def _new(file: Path, read: int) -> Iterator[bytes]:
    """Go through what is written behind the first `read` bytes, also into the file that takes the place of a full one;
    no end.
    """
    while True:
        try:
            with file.open("rb") as opened:
                opened.seek(read if os.fstat(opened.fileno()).st_size >= read else 0)
                while _is_at(opened, file):
                    yield from _entries(opened.read())
                    time.sleep(_PAUSE_S)
                yield from _entries(opened.read())
        except FileNotFoundError:
            time.sleep(_PAUSE_S)
        read = 0


def _is_at(opened: BinaryIO, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened.fileno()), file.stat())
    except FileNotFoundError:
        return False


def _shown(entry: bytes) -> str:
    return shown(entry.decode("utf-8", "replace"), keep="\t\n", instead=UNKNOWN)
