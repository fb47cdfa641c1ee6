"""The ports of a coding client: how its sessions are sent, edited, explained and cured, and the program that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from recoveryd.clients.plugin import Plugin
from recoveryd.clients.store import Generation, Store
from recoveryd.core import (
    Block,
    Change,
    Check,
    ConfigProblem,
    Diagnosis,
    Edit,
    Editor,
    Failure,
    Kind,
    Marks,
    Message,
    RecordedError,
    RecoverydError,
    Refusal,
    Session,
    Wire,
)


class Asked(StrEnum):
    """What became of a prompt that a `Server` was asked to send."""

    NOBODY = "nobody"  # no client that listens has this session
    BUSY = "busy"  # a turn of it runs, or the client does not say
    SENT = "sent"
    REFUSED = "refused"
    UNSURE = "unsure"  # no answer came: it may have arrived


class Rest(StrEnum):
    """What became of a client's turn that a `Server` was asked to stop."""

    IDLE = "idle"  # nothing runs
    ASKED = "asked"  # something ran, and it was asked to stop that
    UNKNOWN = "unknown"  # no client has the session, or says how it is


@dataclass(frozen=True, slots=True)
class Prompt:
    """The settings of the user's last prompt, for a client to be prompted in the same way again; what is None is left
    to it.
    """

    agent: str | None = None
    model: Mapping[str, str] | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Cure:
    """What a client says mends a session that no provider refused. `objections` says what is still wrong as it is read
    back.

    `edits` are those that `changes` were made of, where they were made of edits; `also` is what else the user is told.
    """

    changes: tuple[Change, ...]
    actions: tuple[str, ...]
    objections: Callable[[Session], Sequence[str]]
    edits: tuple[Edit, ...] = ()
    also: str = ""


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """What a shell tells a client, and a service would not know: for a section of the configuration.

    `lists`: what is to be appended to keys that hold a list, of texts or of tables; `values`: keys that hold one value.
    `secrets`: the files that `values` name, each with the variable that its text is from, and the text. `section`: ""
    is the client's own.
    """

    lists: Mapping[str, tuple[str | Mapping[str, str], ...]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    section: str = ""

    def and_also(self, other: ShellSettings) -> ShellSettings:
        """Return what both tell for one section."""
        keys = dict.fromkeys((*self.lists, *other.lists))
        lists = {key: (*self.lists.get(key, ()), *other.lists.get(key, ())) for key in keys}
        return ShellSettings(lists, {**self.values, **other.values}, {**self.secrets, **other.secrets}, self.section)

    def __bool__(self) -> bool:
        """Whether anything has to be written into the configuration."""
        return any(self.lists.values()) or bool(self.values)

    def __str__(self) -> str:
        """Write "data_dirs /a, databases /b.db, username bob"."""
        lists = [f"{key} {_plain(item)}" for key, items in self.lists.items() for item in items]
        return ", ".join([*lists, *(f"{key} {value}" for key, value in self.values.items())])


def _plain(item: str | Mapping[str, str]) -> str:
    return item if isinstance(item, str) else "{" + ", ".join(f'{key} = "{text}"' for key, text in item.items()) + "}"


class Server(Protocol):
    """The running client, where it listens on this machine. Raises nothing; where none does, nothing happens."""

    def prepare(self) -> None:
        """Look for clients now, so that it need not be done when one is wanted."""

    def has(self, failure: Failure, directory: str) -> bool:
        """Whether a client that listens has the session of `failure`."""

    def abort(self, failure: Failure, directory: str, still: Callable[[], bool]) -> bool:
        """Stop the turn behind `failure` if one runs, and `still` says so right before. Returns whether a client was
        asked.
        """

    def bring_to_rest(self, failure: Failure, directory: str, still: Callable[[], bool]) -> Rest:
        """Do as `abort`, with patience for a client at work, and tell what it was found at. May take seconds."""

    def prompt(
        self, failure: Failure, directory: str, how: Prompt, text: str, recovery: str, sending: Callable[[], object]
    ) -> tuple[Asked, str]:
        """Prompt the session if it is idle, marked with `recovery`. Also returns why not. `sending` is called right
        before.
        """

    def toast(self, failure: Failure, directory: str, title: str, text: str, variant: str) -> bool | None:
        """Show a notice in the client; `variant`: info, success, warning or error. True if one took it, None if one
        that may show it was too slow: it is worth another try.
        """


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

    @property
    def mends(self) -> str:
        """What its newest version does by itself about faults that `heals` does not name, in a clause; "": nothing."""

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        """List its stores, its own place first, also those that are not there yet; `env`: of the shell or service."""

    def config_problems(self) -> Iterator[ConfigProblem]:
        """Say which files and folders that its section of the configuration names can't be used. Writes nothing."""

    def shell_settings(self, service: Client, env: Mapping[str, str], state: Path) -> ShellSettings:
        """Tell what this shell (`env`) knows of its stores and its server, and `service` would not.

        `service` is the same client as a service has it, which sees the configuration's file and no variables but HOME.
        Secrets get a file in the folder `state`. RecoverydError: a variable can't be written down.
        """

    def plugin(self, env: Mapping[str, str]) -> Plugin | None:
        """Return our plugin for it; None where there is none. `env`: of the shell or service."""

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        """List every way in which the client may send the next request of a session, to the model of `failure`."""

    def advice(self, store: Store, failure: Failure, kind: Kind) -> str:
        """Say what its user can set in the client about a failure that nothing is edited for, as a clause; "" for
        nothing.
        """

    def heals(self, kind: Kind, block: Block | None = None, error: RecordedError | None = None) -> bool:
        """Whether the client itself sends the next request without such a fault: nothing is edited because of it.

        `block`: the one that has it; None: whatever block has it. `error`: what accuses it; None: nothing yet.
        """

    def editor(self, marks: Marks) -> Callable[[Session], Editor]:
        """Make what makes the editor of a session, whose edits carry `marks`."""

    def next_failure(self, session: Session) -> Failure | None:
        """Make the failure that the newest prompt would have; None where there is no message."""

    def asks_its_maker(self, session: Session, failure: Failure) -> bool:
        """Whether the next prompt of a session goes to its provider's own service, as far as that is known here.

        `failure`: as of `next_failure`.
        """

    def resumed_by(self, message: Message) -> str | None:
        """Return the id of the recovery that sent a prompt; None for the user's own."""

    def by_shell(self, message: Message) -> bool:
        """Whether no model was asked for an answer: a command that its user ran, or a repair, put it there."""

    def last_prompt(self, session: Session) -> Prompt:
        """Return the settings of the user's last prompt; prompts of ours don't count."""

    def stopped(self, message: Message) -> bool:
        """Whether an answer was ended by its user."""

    def ids_started_again(self, store: Store, session: str, now: float) -> Diagnosis | None:
        """Find out whether the client takes, or will take, new prompts for old ones. No turn may run. `now` in
        seconds.
        """

    def cut_off(self, session: Session) -> Diagnosis | None:
        """Find out whether the last turn was never ended."""

    def under_way(self, store: Store, session: str) -> str | None:
        """Tell why a turn without an end may still run, in words; None when it can't."""

    def at_work(self, store: Store, session: Session) -> str | None:
        """Tell why the client may be waiting for a provider or a tool, in words; None when it can't be."""

    @property
    def reads_once(self) -> bool:
        """Whether it reads a session when that is opened, and goes by what it has in memory from then on."""

    @property
    def edits_shift(self) -> bool:
        """Whether its repairs take items out of a request: by its place, or by none, an error of a request that was
        built before a repair then means an item that is not stored any more.
        """

    def has_read(self, store: Store, session: Session, failure: Failure, since: float) -> bool:
        """Whether the request of a failure was surely built from what was stored after `since`, in seconds since the
        epoch.
        """

    def unread(self, store: Store, session: str, since: float, failure: Failure | None = None) -> str:
        """Tell what its user has to do so that the client reads what was stored after `since`, as a clause.

        "" where the client has read it since, or reads it for each prompt; given a `failure`: for that of its request.
        `since`: seconds since the epoch.
        """

    def sends_unknown(self, store: Store, failure: Failure) -> str:
        """Tell why what it sends of the session of `failure` is not known here, and what to do, as a clause: nothing
        can be proved of its next request then. "" where it is known.
        """

    def takes_prompts(self, store: Store, session: str) -> bool:
        """Whether its user can prompt a session: not each subagent takes any."""

    @property
    def way_back(self) -> str:
        """What its user can do where the provider refuses each prompt and nothing is repaired, as a clause."""

    def go_on(self, store: Store, session: str) -> str:
        """Tell how its user goes on with a session that was repaired, a sentence without its full stop."""

    def address_key(self) -> str:
        """Return the key that is to tell where it listens; "" where that is told, or where it never listens."""

    def version(self) -> tuple[int, ...] | None:
        """Return the version of a client that listens, whatever it works on; None when none answers."""

    def check_server(self) -> Iterator[Check]:
        """Make the checks of `doctor` about the client that listens."""

    def passed_over(self, store: Store, stores: Sequence[Store]) -> RecoverydError | None:
        """Tell what in a store may hold sessions that none of `stores` has, and what to do; None where nothing does."""

    def check_stores(self, stores: Sequence[tuple[Store, Generation]], now: int) -> Iterator[Check]:
        """Make the checks of `doctor` about faults that only this client has; `now` in ms since the epoch."""

    def cure(self, store: Store, session: Session, kind: Kind, name: str, now: int) -> Cure | Refusal:
        """Make the changes that cure what only this client is stuck on; `name` is the recovery's id, `now` in ms.

        Raises ActiveError when a turn may still run.
        """


def seen_here_alone(client: Client, service: Client, env: Mapping[str, str]) -> list[Store]:
    """List the stores that a client knows of by this shell (`env`), and `service`, the same as a service has it, does
    not: that sees HOME and no more.
    """
    known = {store.id for store in service.stores({"HOME": env.get("HOME") or str(Path.home())})}
    return [store for store in client.stores(env) if store.id not in known]


def way_back(client: Client, store: Store, session: str) -> str:
    """Tell what its user can do about a session of which nothing is repaired, as a clause."""
    of_asker = "have the session that asked this subagent go on with the task"
    return client.way_back if client.takes_prompts(store, session) else of_asker
