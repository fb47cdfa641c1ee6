"""Log a sentence when it is new, not again at every sweep."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from loguru import logger

from recoveryd.core import RecoverydError, keep_newest


class LogOnce:
    """Remembers what was logged last about each thing."""

    def __init__(self) -> None:
        self._said: dict[Hashable, str] = {}

    def say(self, about: Hashable, text: str, reason: str = "") -> None:
        """Log `text` unless its `reason` (none: all of it) was said last, `about` this or anything else.

        A full disk is met everywhere, and a bad record by each who reads it.
        """
        known = self.knows(reason or text)
        if self.new(about, reason or text) and not known:
            logger.warning("{}", text)

    def knows(self, reason: str) -> bool:
        """Whether this was said last about anything, with or without what can be done about it."""
        return any(
            f"{said} ".startswith(f"{reason} ") or f"{reason} ".startswith(f"{said} ") for said in self._said.values()
        )

    def forget(self, about: Hashable) -> None:
        """Forget what was logged about a thing that is over: the next time it is new again."""
        self._said.pop(about, None)

    def new(self, about: Hashable, text: str) -> bool:
        """Whether `text` differs from what was noted last about a thing; it is noted from now on."""
        new = self._said.get(about) != text
        keep_newest(self._said, about, text)
        return new

    def safely(self, about: Hashable, job: Callable[[], object]) -> None:
        """Run `job` and log what it raises: the trouble of one thing never stops the others."""
        try:
            job()
        except RecoverydError as error:
            self.say(about, f"{error.message} {error.hint}".strip())
        except Exception:
            logger.exception("a fault of recoveryd; it goes on")
