"""The one list of clients: their sections of the configuration, their stores, their forms of an error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from recoveryd.clients.claude_code import transcript_paths
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.client import Client
from recoveryd.clients.codex import rollout_paths
from recoveryd.clients.codex.settings import CodexSettings
from recoveryd.clients.opencode import content as opencode_content
from recoveryd.clients.opencode import error_record
from recoveryd.clients.opencode.client import Opencode
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.shortening import CanShorten, Shortening
from recoveryd.clients.store import Content, Store, is_abandoned
from recoveryd.core import Change, Failure, Marks, RecordedError, Session, UsageError, command_line
from recoveryd.settings import BaseConfig

if TYPE_CHECKING:
    from recoveryd.clients.opencode.forks import Fork


class Config(BaseConfig):
    """All settings, each with its default: the general ones, and a section for each client.

    Frozen; `Config(max_retries=5)` does as well as a file.
    """

    opencode: OpencodeSettings = Field(default=OpencodeSettings(), description="a table, [opencode]")
    codex: CodexSettings = Field(default=CodexSettings(), description="a table, [codex]")
    claude_code: ClaudeCodeSettings = Field(default=ClaudeCodeSettings(), description="a table, [claude_code]")


Clock = Callable[[], float]  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class _Known:
    """A client. What `make` and `content` import is loaded only where it is used: a machine without it pays nothing.

    `folder`: the last name in the ids of its stores, by which they are told from others' also when they are gone.
    `key` of the configuration and `variables` of the environment say where its sessions are.
    """

    title: str
    there: Callable[[Config, Mapping[str, str]], bool]  # whether this machine may have sessions of it
    make: Callable[[Config, Clock], Client]
    content: Callable[[], Content]
    places: Callable[[Config, Mapping[str, str]], Iterable[Path]] | None = None  # where its stores are looked for
    folder: str = ""
    key: str = ""
    variables: str = ""
    forked: bool = False  # from OpenCode: `[[opencode.stores]]` may name more of its databases


def _claude_code(config: Config, clock: Clock) -> Client:
    from recoveryd.clients.claude_code.client import ClaudeCode

    del clock
    return ClaudeCode(config.claude_code)


def _claude_code_content() -> Content:
    from recoveryd.clients.claude_code import content

    return content


def _codex(config: Config, clock: Clock) -> Client:
    from recoveryd.clients.codex.client import Codex

    del clock
    return Codex(config.codex)


def _codex_content() -> Content:
    from recoveryd.clients.codex import content

    return content


def _fork(name: str, title: str, database: str, variable: str) -> _Known:
    """Describe a client made from OpenCode, which `opencode.forks` knows by this name."""

    def known() -> Fork:
        from recoveryd.clients.opencode import forks

        return next(fork for fork in forks.FORKS if fork.name == name)

    def make(config: Config, clock: Clock) -> Client:
        from recoveryd.clients.opencode.forks import ForkedOpencode

        return ForkedOpencode(known(), config.interrupted_minutes, clock, _databases(config, name))

    return _Known(
        title=title,
        there=lambda config, env: os.path.lexists(known().path(env)) or bool(_databases(config, name)),
        make=make,
        content=lambda: opencode_content,
        folder=database,
        variables=variable,
        forked=True,
    )


def _fork_of(title: str) -> str:
    """Return the client that an entry of `[[opencode.stores]]` means: a fork known by this name, or one of its own."""
    known = (name for name, one in _CLIENTS.items() if one.forked and title.casefold() in (name, one.title.casefold()))
    return next(known, f"opencode/{title}")


def _databases(config: Config, client: str) -> tuple[Path, ...]:
    """Return those that the configuration names of a client."""
    return tuple(store.path for store in config.opencode.stores if _fork_of(store.name) == client)


def _configured(config: Config) -> dict[str, _Known]:
    """List the clients of `[[opencode.stores]]`, by names that no other client has."""
    titles = {_fork_of(store.name): store.name for store in config.opencode.stores}
    return {name: _configured_fork(name, title) for name, title in titles.items() if name not in _CLIENTS}


def _configured_fork(name: str, title: str) -> _Known:
    def make(config: Config, clock: Clock) -> Client:
        from recoveryd.clients.opencode.forks import ConfiguredFork, ForkedOpencode

        return ForkedOpencode(ConfiguredFork(name, title, _databases(config, name)), config.interrupted_minutes, clock)

    return _Known(title=title, there=lambda _config, _env: True, make=make, content=lambda: opencode_content)


_CLIENTS: Mapping[str, _Known] = {
    "opencode": _Known(
        title="OpenCode",
        there=lambda _config, _env: True,  # it is waited for
        make=lambda config, clock: Opencode(config.opencode, config.interrupted_minutes, clock),
        content=lambda: opencode_content,
        key="[opencode] data_dirs",
        variables="XDG_DATA_HOME, OPENCODE_DB",
    ),
    "kilo": _fork("kilo", "Kilo", "kilo.db", "KILO_DB"),
    "mimocode": _fork("mimocode", "MiMo Code", "mimocode.db", "MIMOCODE_DB"),
    "codex": _Known(
        title="Codex",
        there=lambda config, env: config.codex.enabled and bool(rollout_paths.there(env, config.codex.homes)),
        make=_codex,
        content=_codex_content,
        places=lambda config, env: rollout_paths.places(env, config.codex.homes),
        folder=rollout_paths.SESSIONS,
        key="[codex] homes",
        variables="CODEX_HOME",
    ),
    "claude_code": _Known(
        title="Claude Code",
        there=lambda config, env: config.claude_code.enabled and transcript_paths.there(env, config.claude_code),
        make=_claude_code,
        content=_claude_code_content,
        places=lambda config, env: transcript_paths.places(env, config.claude_code.config_dirs),
        folder=transcript_paths.PROJECTS,
        key="[claude_code] config_dirs",
        variables="CLAUDE_CONFIG_DIR",
    ),
}


def whereabouts() -> list[tuple[str, str, str]]:
    """List each client with the key and the environment variables that say where its sessions are; "" for none."""
    return [(known.title, known.key, known.variables) for known in _CLIENTS.values()]


def find_stores(config: Config, env: Mapping[str, str] | None = None) -> list[Store]:
    """List each store of every client once, also those that are not there yet. `env`: the process's own when None."""
    env = os.environ if env is None else env
    found = [store for client in Clients(config).on_this_machine(env) for store in client.stores(env)]
    return list({_identity(store.root): store for store in reversed(found)}.values())[::-1]


def read_error(error: object) -> RecordedError:
    """Read an error as any client records it, or a text that somebody copied."""
    from recoveryd.clients.claude_code import error_record as claude_code_error_record
    from recoveryd.clients.codex import error_record as codex_error_record

    line = claude_code_error_record.read_copied(error)
    if line is not None:
        return line
    return codex_error_record.read_copied(error) or error_record.read(error)


def _by_place(store_id: str) -> str:
    """Return the name of the client of a store, which may be gone, by the store's id alone."""
    last = os.path.basename(store_id)  # noqa: PTH119 - an id, not a path to be looked at
    return next((name for name, known in _CLIENTS.items() if known.folder == last), "opencode")


class Whose:
    """Tell whose a store is by its id, also of one that is gone.

    By `stores` (those that are found now when None; a view that changes may be given), by the configuration, by what
    the ledger has `recorded` (names by the ids of stores), else by its place.
    """

    def __init__(
        self, config: Config, stores: Iterable[Store] | None = None, recorded: Mapping[str, str] | None = None
    ) -> None:
        self._stores = find_stores(config) if stores is None else stores
        self._config = config
        self._recorded = recorded or {}
        self.several = len({store.client for store in self._stores if store.exists()}) > 1  # people need to be told
        self._titles = {name: known.title for name, known in (_configured(config) | dict(_CLIENTS)).items()}
        self._titles |= {name: _title(name) for name in self._recorded.values() if name not in self._titles}

    def name(self, store_id: str) -> str:
        """Return the name by which programs know the client."""
        found = next((store.client for store in self._stores if store.id == store_id), None)
        named = (one.name for one in self._config.opencode.stores if os.path.realpath(one.path) == store_id)
        return found or next(map(_fork_of, named), None) or self._recorded.get(store_id) or _by_place(store_id)

    def title(self, store_id: str) -> str:
        """Return what people call the client."""
        return self.called(self.name(store_id))

    def told(self, store_id: str) -> str:
        """Tell people a store as far as there are others: whose it is, and its path where its client has another one in
        use; "" where there is no other.
        """
        alone = {store_id} >= self._in_use.get(self.name(store_id), set())
        return ", ".join(filter(None, (self.title(store_id) * self.several, "" if alone else store_id)))

    @cached_property
    def _in_use(self) -> dict[str, set[str]]:
        """The stores that clients use now, by the client."""
        found: dict[str, set[str]] = {}
        for store in self._stores:
            if store.exists() and not is_abandoned(store):
                found.setdefault(store.client, set()).add(store.id)
        return found

    def called(self, name: str) -> str:
        """Return what people call the client that programs know by this name."""
        return self._titles.get(name) or _title(name)

    def content(self, store_id: str) -> Content:
        """Return the reader of a store's records, which for a store that is gone only the ledger has."""
        known = _CLIENTS.get(self.name(store_id))
        return known.content() if known is not None else opencode_content

    def sole(self, store_id: str, changes: Sequence[Change]) -> bool:
        """Whether the before-images of a recovery hold content that none of its after-images has: `Content.sole`."""
        return self.content(store_id).sole(changes)

    def quoting_titles(self, store_id: str) -> bool:
        """Whether what stands for the title of a store's sessions may be words of theirs: `Content.quoting_titles`."""
        return self.content(store_id).quoting_titles

    def missing(self, store_id: str, recovery: str) -> tuple[str, str]:
        """Tell why the store of a recovery is not found, in a sentence, and what to do about it."""
        if not os.path.lexists(store_id):
            hint = "Is its disk mounted, and the configuration as it was? If it was copied to another place: "
            export = command_line("ledger", "export", recovery)
            return f"The store {store_id} is not there.", f"{hint}`{export}` gives the originals."
        known = _CLIENTS.get(name := self.name(store_id))
        says = f"{store_id} ({_title(name)}) is there, but no configuration or variable names it any more."
        if known is None or known.forked:
            entry = f'[[opencode.stores]] with path = "{store_id}" and name = "{_title(name)}"'
            return says, f"Put it back into the configuration, and try again: {entry}."
        return says, f"Put it back, and try again: {known.key} in the configuration, or {known.variables}."

    def meant(self, text: str) -> str:
        """Return the name of the client that is called so by programs or people. Raises UsageError."""
        called = [(name, name) for name in self._titles] + [(name, title) for name, title in self._titles.items()]
        for name, known in called:  # programs' names first: a fork may be called as another client is
            if text.casefold() == known.casefold():
                return name
        raise UsageError(f'There is no client "{text}".', f"Known are: {', '.join(self._titles)}")


def _title(name: str) -> str:
    return _CLIENTS[name].title if name in _CLIENTS else name.partition("/")[2] or name


def _identity(root: Path) -> object:
    """Return what two paths to one store have in common, say through a bind mount."""
    try:
        here = root.stat()
    except OSError:
        return root
    return here.st_dev, here.st_ino


class Clients:
    """The clients of this machine, each made once for a configuration, when it is asked for."""

    def __init__(self, config: Config, clock: Clock = time.time) -> None:
        self._config = config
        self._clock = clock
        self._known = {**_configured(config), **_CLIENTS}  # what the configuration names comes first
        self._made: dict[str, Client] = {}

    def of(self, store: Store) -> Client:
        """Return the client whose sessions are in a store, be it one that this configuration does not name."""
        if store.client not in self._known:
            self._known[store.client] = _configured_fork(store.client, store.client.partition("/")[2])
        return self._named(store.client)

    def shortening(self, store: Store, session: Session, failure: Failure, marks: Marks) -> Shortening | None:
        """Return what is known of a session's length; None where its client is none that can make it shorter."""
        client = self.of(store)
        return client.shortening(store, session, failure, marks) if isinstance(client, CanShorten) else None

    def places(self, name: str, env: Mapping[str, str]) -> Sequence[Path]:
        """Return where the sessions of a client are looked for, be they there or not; nowhere when it is turned off."""
        known = self._known.get(name)
        if known is None or not getattr(getattr(self._config, name, None), "enabled", True):
            return ()
        own = known.places and known.places(self._config, env)
        return tuple(own or (store.root for store in self._named(name).stores(env)))

    def all(self) -> Iterable[Client]:
        """Return all clients, also those that are not installed."""
        return [self._named(name) for name in self._known]

    def on_this_machine(self, env: Mapping[str, str]) -> Iterable[Client]:
        """Return the clients that may have sessions here."""
        return [self._named(name) for name, known in self._known.items() if known.there(self._config, env)]

    def version(self) -> tuple[int, ...] | None:
        """Return the version of a client that listens; None when none answers."""
        return next(filter(None, (client.version() for client in self.all())), None)

    def _named(self, name: str) -> Client:
        if name not in self._made:
            self._made[name] = self._known[name].make(self._config, self._clock)
        return self._made[name]
