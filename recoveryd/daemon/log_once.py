"""Sentences for the log that are said when they are news, not at every sweep."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from loguru import logger

from recoveryd.core import RecoverydError, note


class LogOnce:
    """Remembers what was said last about each thing."""

    def __init__(self) -> None:
        self._said: dict[Hashable, str] = {}

    def say(self, about: Hashable, text: str) -> None:
        """Log `text` unless it was said last, `about` this or anything else: a full disk is met everywhere."""
        known = text in self._said.values()
        if self.new(about, text) and not known:
            logger.warning("{}", text)

    def forget(self, about: Hashable) -> None:
        """It is over: the next time it is news again."""
        self._said.pop(about, None)

    def new(self, about: Hashable, text: str) -> bool:
        """Whether `text` is not what was said last `about` this; it counts as said from now on."""
        new = self._said.get(about) != text
        note(self._said, about, text)
        return new

    def safely(self, about: Hashable, job: Callable[[], object]) -> None:
        """One thing's trouble never stops the others: what `job` raises is said."""
        try:
            job()
        except RecoverydError as error:
            self.say(about, f"{error.message} {error.hint}".strip())
        except Exception:
            logger.exception("a fault of recoveryd; it goes on")
