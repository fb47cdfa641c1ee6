"""What several commands need: the configuration, the stores, the ledger."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from recoveryd.cli.output import WARNING, complain
from recoveryd.clients import Clients, Config, Store, Whose, find_stores, may_be_there, not_found, whereabouts
from recoveryd.core import ConfigError, Entry, Event, NotFoundError, RecoverydError, any_of, command_line
from recoveryd.disk import is_read_only, private_files
from recoveryd.heal import find_store
from recoveryd.ledger import KnownStores, Ledger, LedgerFile, is_there, peek
from recoveryd.settings import load, load_sound, paths
from recoveryd.tell import show_undone


def config_of(arguments: argparse.Namespace) -> Config:
    """Load the configuration that a command goes by. Raises ConfigError for one that is not sound; a
    file that was named must be there.
    """
    _must_be_there(arguments)
    return load(Config, arguments.config or paths.config_file())


def sound_of(
    arguments: argparse.Namespace, *, forbidden: Callable[[Path, ConfigError], bool] = lambda *_: False
) -> tuple[Config, ConfigError | None]:
    """Load what of the configuration is sound; what is not is only told, on stderr: `undo` can't wait. Where that is
    `forbidden`, by the file and what is wrong, it is raised.
    """
    _must_be_there(arguments)
    file = arguments.config or paths.config_file()
    config, problem = load_sound(Config, file)
    if problem is not None and forbidden(file, problem):
        raise problem
    if problem is not None:
        complain(f"{problem.message}\nThat is left out here; `{command_line('run')}` does not start with it.", WARNING)
    return config, problem


def _must_be_there(arguments: argparse.Namespace) -> None:
    if arguments.config is not None and not arguments.config.exists():
        raise NotFoundError(f"There is no configuration file {arguments.config}.")


def open_ledger() -> Ledger:
    """Open the ledger for a command that writes to it; its folder is made where there is none."""
    return Ledger(paths.ledger_file(private_files.make_folder(paths.state_dir())))


def known_ledger() -> Ledger:
    """Open the ledger for a command that only asks: the one that is there, else an empty one in memory.

    So it leaves no file behind. From a disk that went read-only, its originals can be saved.
    """
    path = paths.ledger_file(paths.state_dir())
    if not is_there(path):
        return Ledger(LedgerFile.empty(path))
    return Ledger(LedgerFile.unchanging(path) if is_read_only(path.parent) else path)


def stores_of(config: Config, only: str | None = None) -> list[Store]:
    """List for a command the stores that are there. `only`: of the client that programs know by this name."""
    return [store for store in may_be_there(find_stores(config)) if only in (None, store.client)]


def none_found(config: Config, whose: Whose, only: str | None) -> str:
    """Tell where no store was found, of any client or of the one that programs know as `only`, and what to do."""
    known = {title: (key, variables) for title, key, variables in whereabouts()}
    if only is None:
        clients, keys = any_of(known), any_of(key for key, _ in known.values() if key)
        return (
            f"No store of {clients} was found. If yours is elsewhere, set {keys} (`{command_line('config', 'path')}`)."
        )
    title, looked = whose.called(only), Clients(config).places(only, os.environ)
    where = f"was found in {', '.join(map(str, looked))}" if looked else "is looked for, by the configuration"
    others = sorted({whose.title(store.id) for store in stores_of(config)})
    here = f" There are stores of: {', '.join(others)}." if others else ""
    named = [*filter(None, known.get(title, ("[[opencode.stores]]",)))]
    return f"No store of {title} {where}.{here} If yours is elsewhere, set {any_of(named)}."


def client_meant(arguments: argparse.Namespace, whose: Whose) -> str | None:
    """Return the name by which programs know the client of `--client`; None without it. Raises UsageError."""
    return whose.meant(arguments.client) if arguments.client else None


def store_named(config: Config, ledger: Ledger, recovery: str) -> Store:
    """Find for a command the store of a recovery, where it is now. Raises NotFoundError when it is not
    there any more.
    """
    wanted = ledger.get(recovery).store
    found = find_store(stores_of(config), ledger, wanted)
    if found is not None:
        return found
    raise NotFoundError(*whose_by(config, ledger).missing(wanted, recovery))


def tell_client_undone(config: Config, store: Store, what: Entry | Event, *, quiet: bool) -> None:
    """Show in its client that a command took a recovery back, unless the user wants no notices there, or none now
    (`quiet`).
    """
    if config.notify.tui and not (config.notify.quiet or quiet):
        show_undone(Clients(config), store, what, lambda server, *said: server.toast(*said))


def whose_of(arguments: argparse.Namespace) -> Whose:
    """Tell whose the stores of the ledger are; of the configuration, what is sound is enough for that."""
    return whose_by(load_sound(Config, arguments.config or paths.config_file())[0])


def whose_by(config: Config, ledger: Ledger | None = None) -> Whose:
    """Tell whose stores are, those too that only the ledger (the one that is there, when None) still knows."""
    with suppress(RecoverydError):  # a damaged one is told by what wants more of it
        if ledger is not None:
            return Whose(config, recorded=_clients(ledger))
        return Whose(config, recorded=peek(paths.ledger_file(paths.state_dir()), _clients))
    return Whose(config)


def _clients(ledger: Ledger) -> dict[str, str]:
    return KnownStores(ledger.file).clients()


def in_brackets(whose: Whose, store_id: str) -> str:
    """Tell of which store what is named before this is, where there are several: " (OpenCode)"; else ""."""
    told = whose.told(store_id)
    return f" ({told})" if told else ""


def with_clients(data: Any, whose: Whose) -> Any:
    """Name the client beside each store that a document names."""
    if isinstance(data, list):
        return [with_clients(one, whose) for one in data]
    if not isinstance(data, dict):
        return data
    named = {"client": whose.name(data["store"])} if isinstance(data.get("store"), str) else {}
    return {key: value if key == "evidence" else with_clients(value, whose) for key, value in data.items()} | named


def recovery_hint(ledger: Ledger, name: str) -> str:
    """Give a hint where `name`, which is no session's, is the id of a recovery; else ""."""
    entry = ledger.find(name)
    return f"That is the id of a recovery; its session is {entry.session}." if entry is not None else ""


def no_session(
    session: str, stores: Iterable[Store], unreadable: Iterable[str], hint: str = "", *, of: str = ""
) -> NotFoundError:
    """Make a command's error for a session that none of these stores has. `unreadable`: why some could not be asked;
    `of`: of which client they are (" of Codex"), if not all were.
    """
    with suppress(RecoverydError), known_ledger() as ledger:
        hint = recovery_hint(ledger, session) or hint
    return not_found(stores, session, unreadable, hint, of=of)
