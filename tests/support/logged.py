"""What recoveryd logs meanwhile, and where that goes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logged(level: int = logging.INFO, form: str = "%(message)s") -> Iterator[list[str]]:
    """A list that each record of this level or above is added to, formatted."""
    entries: list[str] = []
    handler, logger = logging.Handler(level), logging.getLogger("recoveryd")
    handler.setFormatter(logging.Formatter(form))
    handler.emit = lambda record: entries.append(handler.format(record))  # type: ignore[method-assign]
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield entries
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


@contextmanager
def as_logged_before() -> Iterator[None]:
    """Where all of the process's log goes is afterwards as it was: a command line sends it to its own streams."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        for handler in set(root.handlers) - set(handlers):
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
