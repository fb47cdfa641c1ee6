"""The ports of a coding client: how its sessions are sent, edited, explained and cured, and the program that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from recoveryd.clients.store import Generation, Store
from recoveryd.core import (
    Change,
    Check,
    ConfigProblem,
    Edit,
    Editor,
    Failure,
    Kind,
    Marks,
    Message,
    Refusal,
    Session,
    Silence,
    Wire,
)


class Asked(StrEnum):
    """What became of a prompt."""

    NOBODY = "nobody"  # no client that listens has this session
    BUSY = "busy"  # a turn of it runs, or the client does not say
    SENT = "sent"
    REFUSED = "refused"
    UNSURE = "unsure"  # no answer came: it may have arrived


@dataclass(frozen=True, slots=True)
class Prompt:
    """How a user asked last, for asking the same way again; what is None is left to the client."""

    agent: str | None = None
    model: Mapping[str, str] | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Cure:
    """What mends a session that no provider refused. `objections` says what is still wrong as it is read back.

    `edits` are those that `changes` were made of, where they were made of edits; `also` is what else the user is told.
    """

    changes: tuple[Change, ...]
    actions: tuple[str, ...]
    objections: Callable[[Session], Sequence[str]]
    edits: tuple[Edit, ...] = ()
    also: str = ""


class Server(Protocol):
    """The running client, where it listens on this machine. Raises nothing; where none does, nothing happens."""

    def prepare(self) -> None:
        """Look for clients now, so that it need not be done when one is wanted."""

    def has(self, failure: Failure, directory: str) -> bool:
        """Whether a client that listens has the session of `failure`."""

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        """Stop the turn behind `failure` if one runs, and `still` says so right before; whether a client was asked."""

    def prompt(
        self, failure: Failure, directory: str, how: Prompt, text: str, recovery: str, sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        """Prompt the session if it is idle, marked with `recovery`; also says why not. `sending` is called before."""

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool:
        """Show a notice in the client; `variant`: info, success, warning or error. True if one took it."""


class Client(Protocol):
    """One coding client. Errors of a store pass through."""

    @property
    def name(self) -> str:
        """Its section in the configuration."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def server(self) -> Server:
        """The program that runs, where it listens."""

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        """List its stores, its own place first, also those that are not there yet; `env`: of the shell or service."""

    def config_problems(self) -> Iterator[ConfigProblem]:
        """Say which files and folders that its section of the configuration names can't be used. Writes nothing."""

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        """Every way in which the client may send the next request of a session: the model of `failure` is asked."""

    def editor(self, marks: Marks) -> Callable[[Session], Editor]:
        """Makes the editor of a session, whose edits carry `marks`."""

    def next_failure(self, session: Session) -> Failure | None:
        """What a failure of the newest prompt would be; None where there is no message."""

    def resumed_by(self, message: Message) -> str | None:
        """The recovery that sent a prompt; None for the user's own."""

    def by_shell(self, message: Message) -> bool:
        """Whether an answer is what came of a command that its user ran: no model was asked."""

    def last_prompt(self, session: Session) -> Prompt:
        """How its user last asked; prompts of ours don't count."""

    def stopped(self, message: Message) -> bool:
        """Whether an answer was ended by its user."""

    def ids_started_again(self, store: Store, session: str, now: float) -> Silence | None:
        """That the client takes, or will take, new prompts for old ones, as no turn runs. `now` in seconds."""

    def cut_off(self, session: Session) -> Silence | None:
        """That the last turn was never ended."""

    def under_way(self, store: Store, session: str) -> str | None:
        """Why a turn that was not ended may be under way, in words; None when it can't be."""

    def at_work(self, store: Store, session: Session) -> str | None:
        """Why the client may be waiting for a provider or a tool, in words; None when it can't be."""

    def unread(self, store: Store, session: str, since: float) -> str:
        """What its user does so that it goes by what is stored now, where it goes on by what it read before `since`.

        A clause; "" where it has read it since, or reads it for each prompt. `since`: seconds since the epoch.
        """

    def go_on(self, session: str) -> str:
        """How its user goes on with a session that was repaired, a sentence without its full stop."""

    def version(self) -> tuple[int, ...] | None:
        """Of one that listens, whatever it works on; None when none answers."""

    def check_server(self) -> Iterator[Check]:
        """What `doctor` has to say of the program that listens."""

    def check_stores(self, stores: Sequence[tuple[Store, Generation]], now: int) -> Iterator[Check]:
        """What `doctor` has to say of sessions that only this client stumbles over; `now` in ms."""

    def cure(self, store: Store, session: Session, kind: Kind, name: str, now: int) -> Cure | Refusal:
        """What mends what only this client is stuck on; `name` is the recovery's id, `now` in ms.

        ActiveError: it may still be under way.
        """
