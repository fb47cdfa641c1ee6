"""Log a sentence when it is new, not again at every sweep."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from loguru import logger

from recoveryd.core import RecoverydError, note


class LogOnce:
    """Remembers what was logged last about each thing."""

    def __init__(self) -> None:
        self._said: dict[Hashable, str] = {}

    def say(self, about: Hashable, text: str) -> None:
        """Log `text` as a warning, unless it is what was logged last about this or anything else: a full disk is met
        everywhere.
        """
        known = text in self._said.values()
        if self.new(about, text) and not known:
            logger.warning("{}", text)

    def forget(self, about: Hashable) -> None:
        """Forget what was logged about a thing that is over: the next time it is new again."""
        self._said.pop(about, None)

    def new(self, about: Hashable, text: str) -> bool:
        """Whether `text` differs from what was noted last about a thing; it is noted from now on."""
        new = self._said.get(about) != text
        note(self._said, about, text)
        return new

    def safely(self, about: Hashable, job: Callable[[], object]) -> None:
        """Run `job` and log what it raises: the trouble of one thing never stops the others."""
        try:
            job()
        except RecoverydError as error:
            self.say(about, f"{error.message} {error.hint}".strip())
        except Exception:
            logger.exception("a fault of recoveryd; it goes on")
