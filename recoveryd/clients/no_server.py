"""The server of a client that does not listen on this machine: nothing can be asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recoveryd.clients.client import Asked, Prompt
from recoveryd.core import Failure


@dataclass(frozen=True, slots=True)
class NoServer:
    """`go_on` says how a user goes on with a session, given its id."""

    title: str
    go_on: Callable[[str], str]

    def prepare(self) -> None:
        """There is nobody to look for."""

    def has(self, failure: Failure, directory: str) -> bool:
        del failure, directory
        return False

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        del failure, directory, still
        return False

    def prompt(
        self, failure: Failure, directory: str, how: Prompt, text: str, recovery: str, sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        del directory, how, text, recovery, sending
        return Asked.NOBODY, f"{self.title} takes no prompts from outside: {self.go_on(failure.session)}"

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool:
        del failure, directory, title, text, variant
        return False
