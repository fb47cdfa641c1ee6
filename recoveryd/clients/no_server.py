"""A client that does not listen on this machine: nothing can be asked of it, and it sends nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recoveryd.clients.client import Asked, Cure, Prompt, Rest
from recoveryd.clients.plugin import Plugin
from recoveryd.clients.store import Generation, Store
from recoveryd.core import Check, Diagnosis, Failure, Kind, Message, RecoverydError, Refusal, Session, warn


@dataclass(frozen=True, slots=True)
class NoServer:
    """The `Server` of a client that does not listen."""

    title: str

    def prepare(self) -> None:
        """Do nothing: there is nobody to look for."""

    def has(self, failure: Failure, directory: str) -> bool:
        del failure, directory
        return False

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        del failure, directory, still
        return False

    def bring_to_rest(self, failure: Failure, directory: str, still: Callable[[], bool]) -> Rest:
        del failure, directory, still
        return Rest.UNKNOWN

    def prompt(
        self, failure: Failure, directory: str, how: Prompt, text: str, recovery: str, sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        del failure, directory, how, text, recovery, sending
        return Asked.NOBODY, f"{self.title} takes no prompts from outside"

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool:
        del failure, directory, title, text, variant
        return False


class WithoutServer:
    """What the `Client`s of such programs have in common; each ends by itself a turn that was cut off."""

    title: str
    reads_once = True
    edits_shift = False
    mends = ""
    way_back = "start a new session"

    def plugin(self, env: Mapping[str, str]) -> Plugin | None:
        del env
        return None

    def takes_prompts(self, store: Store, session: str) -> bool:
        del store, session
        return True

    def advice(self, store: Store, failure: Failure, kind: Kind) -> str:
        del store, failure, kind
        return ""

    def under_way(self, store: Store, session: str) -> str | None:
        """Tell who has the session open, in words; None where nobody has."""
        raise NotImplementedError

    def at_work(self, store: Store, session: Session) -> str | None:
        return self.under_way(store, session.id) if store.look(session.id).running else None

    def has_read(self, store: Store, session: Session, failure: Failure, since: float) -> bool:
        """Say no: nothing tells."""
        del store, session, failure, since
        return False

    def sends_unknown(self, store: Store, failure: Failure) -> str:
        """Say nothing: all that it reads of a session is one file."""
        del store, failure
        return ""

    def asks_its_maker(self, session: Session, failure: Failure) -> bool:
        """Say no: what such a client sends next is in its memory."""
        del session, failure
        return False

    def resumed_by(self, message: Message) -> str | None:
        del message
        return None

    def last_prompt(self, session: Session) -> Prompt:
        del session
        return Prompt()

    def ids_started_again(self, store: Store, session: str, now: float) -> Diagnosis | None:
        del store, session, now
        return None

    def cut_off(self, session: Session) -> Diagnosis | None:
        del session
        return None

    def address_key(self) -> str:
        return ""

    def version(self) -> tuple[int, ...] | None:
        return None

    def check_server(self) -> Iterator[Check]:
        yield from ()

    def passed_over(self, store: Store, stores: Sequence[Store]) -> RecoverydError | None:
        del store, stores
        return None

    def check_stores(self, stores: Sequence[tuple[Store, Generation]], now: int) -> Iterator[Check]:
        del now
        for store, _ in stores:
            if (passed := self.passed_over(store, [one for one, _ in stores])) is not None:
                yield warn("store", passed.message, passed.hint, store.id)

    def cure(self, store: Store, session: Session, kind: Kind, name: str, now: int) -> Cure | Refusal:
        del store, session, name, now
        return Refusal(f"{kind} is nothing that {self.title} is stuck on")
