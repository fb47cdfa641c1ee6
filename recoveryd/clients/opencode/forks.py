"""Clients made from OpenCode, which keep their sessions in a database of the same tables elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recoveryd.clients.client import Client, ShellSettings, seen_here_alone
from recoveryd.clients.opencode import store_paths
from recoveryd.clients.opencode.client import Opencode
from recoveryd.clients.opencode.plugin_file import OpencodePlugin
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.store_paths import config_home
from recoveryd.clients.opencode.versions import as_signed_in, protocols_of
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import FORK, NEW, Form
from recoveryd.clients.plugin import Plugin
from recoveryd.clients.store import Store
from recoveryd.core import Check, ConfigProblem, Failure, Wire
from recoveryd.disk import distinct_places, real_path


@dataclass(frozen=True, slots=True)
class Fork:
    """What a client made from OpenCode differs in: its database is below the user's data, or where `variable` says.

    `home`: a variable that names the folder of all that it keeps, with its data in `data`; `gateway`: what the address
    of a gateway of its own ends in, which it asks by OpenRouter's SDK; `form`: how it sends, as far as that is known.
    """

    name: str
    title: str
    folder: str
    database: str
    variable: str
    home: str = ""
    takes_plugin: bool = False
    gateway: str = ""
    form: Form = NEW

    def paths(self, env: Mapping[str, str]) -> Sequence[Path]:
        """Return where its databases are, also those that are not there."""
        return (self.path(env),)

    def path(self, env: Mapping[str, str]) -> Path:
        """Return its database, which may not be there."""
        return self.data(env) / (self._named(env) or self.database)

    def is_named(self, env: Mapping[str, str]) -> bool:
        """Whether a variable of its own says where its database is."""
        return bool(self._named(env)) or self._has_home(env)

    def data(self, env: Mapping[str, str]) -> Path:
        """Return its data folder, which may not be there."""
        return Path(env[self.home]) / "data" if self._has_home(env) else store_paths.data_home(env) / self.folder

    def _named(self, env: Mapping[str, str]) -> str:
        named = env.get(self.variable, "")
        return "" if named == ":memory:" or "\0" in named else named

    def _has_home(self, env: Mapping[str, str]) -> bool:
        return bool(self.home) and Path(env.get(self.home, "")).is_absolute()


# Of Kilo 7.7.9 each request was compared with that of OpenCode 1.18 (tests/e2e/test_kilo.py). MiMo Code was never run
# (npm does not have it). By its published sources (0.1.15) its messages have a column more: they are left alone.
_GATEWAY = "/api/openrouter/chat/completions"
_AT_GATEWAY = ("openrouter.chat", "anthropic.messages")  # which of them, its list of models says (read in 7.7.9)
KILO = Fork("kilo", "Kilo", "kilo", "kilo.db", "KILO_DB", takes_plugin=True, gateway=_GATEWAY, form=FORK)
MIMO_CODE = Fork("mimocode", "MiMo Code", "mimocode", "mimocode.db", "MIMOCODE_DB", home="MIMOCODE_HOME")
FORKS = (KILO, MIMO_CODE)


@dataclass(frozen=True, slots=True)
class ConfiguredFork:
    """A client made from OpenCode that the configuration names: `[[opencode.stores]]`. Nothing else is known of it."""

    name: str
    title: str
    databases: tuple[Path, ...]
    folder: str = ""
    takes_plugin: bool = False
    gateway: str = ""
    form: Form = NEW

    def paths(self, env: Mapping[str, str]) -> Sequence[Path]:
        """Return where its databases are, also those that are not there."""
        del env
        return self.databases

    def is_named(self, env: Mapping[str, str]) -> bool:
        """Return that no variable says where it is."""
        del env
        return False

    def data(self, env: Mapping[str, str]) -> Path | None:
        """Return no data folder: nobody says where it is."""
        del env
        return None


class ForkedOpencode(Opencode):
    """The `Client` of a fork's sessions: OpenCode's, under its own name. A store is known by its tables."""

    listens = False  # what is found at a port, or as a process of that name, is OpenCode

    def __init__(
        self, fork: Fork | ConfiguredFork, minutes: float, clock: Callable[[], float], more: Sequence[Path] = ()
    ) -> None:
        self.fork = fork
        self._more = more
        self.name = fork.name
        self.title = fork.title
        self.speaks_at_limit = fork.form is not FORK  # Kilo 7.7.9 puts these words behind the user's
        super().__init__(OpencodeSettings(), minutes, clock)

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        """List those at its own place, and those that the configuration gives it by its name."""
        paths = distinct_places(path.expanduser() for path in (*self.fork.paths(env), *self._more))
        folder = self.fork.data(env)
        data = real_path(folder) if folder is not None else None
        return [OpencodeSqlite(path, client=self.name, title=self.title, data=data) for path in paths]

    def plugin(self, env: Mapping[str, str]) -> Plugin | None:
        if not self.fork.takes_plugin:
            return None
        return OpencodePlugin(self.name, config_home(env) / self.fork.folder, (self.name,))

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        """List both forms that it may have taken over, its own first: a plan is right under each. So it is under both
        protocols where its own gateway was asked for Claude, and the error tells no address.
        """
        own = self.fork.form  # of which tools it has, that is known in any case
        both = (replace(form, sends_given_files=own.sends_given_files) for form in (FORK, NEW))
        forms = tuple(dict.fromkeys((own, *both)))
        spoken = protocols_of(store, failure, forms, self.fork.gateway)
        unsaid = self.fork.gateway and not any(spoken) and not failure.error.url and failure.provider == self.name
        protocols = _AT_GATEWAY if unsaid else spoken
        sent = as_signed_in(store, failure, forms)
        return [wire for protocol in protocols for wire in wires_of(failure, protocol, sent)]

    def config_problems(self) -> Iterator[ConfigProblem]:
        yield from ()

    def check_server(self) -> Iterator[Check]:
        return super().check_server() if self.fork.takes_plugin else iter(())

    def address_key(self) -> str:
        return ""  # no key of the configuration names its server

    def shell_settings(self, service: Client, env: Mapping[str, str], state: Path) -> ShellSettings:
        """Find a database that only this shell knows of, also one that its client has not made yet where a variable of
        that client's names it.
        """
        del state
        found = [store for store in seen_here_alone(self, service, env) if store.exists() or self.fork.is_named(env)]
        named = tuple({"path": store.id, "name": self.title} for store in found)
        return ShellSettings({"stores": named}, section="opencode")
