"""Name a command of recoveryd in a message, as its reader has to type it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

_call: list[str] = []  # what the options of this call add to each command that it names


@contextmanager
def going_by(config: str) -> Iterator[None]:
    """Let the commands that are named meanwhile go by the configuration that this call was given by name; "" where it
    was given none. `config`: its whole path.
    """
    before = _call[:]
    _call[:] = ["--config", config] if config else []
    try:
        yield
    finally:
        _call[:] = before


def command_line(*words: str, **options: str | None) -> str:
    """Name a command to type: its words, those of its options that have a value, and this call's configuration."""
    named = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    return shlex.join(["recoveryd", *words, *named, *_call])
