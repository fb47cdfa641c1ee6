"""`recoveryd install` and `recoveryd uninstall`"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from recoveryd.cli import plugin, shell_files
from recoveryd.cli.asking import insist
from recoveryd.cli.common import config_of
from recoveryd.cli.output import Result, print_wrapped, render
from recoveryd.cli.steps import Steps, short_paths
from recoveryd.clients import Clients, Config, Whose, find_stores
from recoveryd.core import RecoverydError, __version__, command_line
from recoveryd.disk import private_files
from recoveryd.service import Background, Manager, Service, base, lingers, of_this_system, plugins, shell_settings
from recoveryd.service import uninstall as leave
from recoveryd.settings import load, load_sound, paths, variables


def install(arguments: argparse.Namespace) -> int:
    """Run `recoveryd install`: the service, the plugins, the completion and the manual page."""
    manager = _manager()
    made = _as_before(arguments, manager)  # first: a bad configuration is told before the manager is asked anything
    if arguments.print:
        return _print(manager, made, as_json=arguments.json)
    base.refuse_sudo(os.environ)
    manager.check()
    made = _as_before(arguments, manager)  # again: its files may be elsewhere, as is known now
    config, place = config_of(arguments), arguments.config or paths.config_file()
    manager.unit(made)  # what can't be written in one is said before anything is
    base.try_command(base.command(), os.environ)
    steps = Steps(shown=not (arguments.json or arguments.quiet))
    state = private_files.make_folder(paths.state_dir())
    private_files.make_folder(paths.lock_dir(state))
    found = shell_settings.settings_of_shell(config, load(Config, place, {}), os.environ, state)
    shell_settings.write_shell_settings(found, place, state, steps.say)
    clients = dict.fromkeys(Whose(config).title(store.id) for store in find_stores(config) if store.exists())
    steps.say(f"clients found: {', '.join(clients) or 'none yet; they are waited for'}")
    for note in _notes(config, made, place):
        steps.say(f"note: {note}")
    if arguments.plugin:  # before it starts, which it may not yet: another one may run
        plugin.put_or_leave_plugins(plugin.put_plugins, config, arguments, steps.say)
    shell_files.put_shell_files(steps.say)
    manager.start(made, steps.say, partial(_make_room, state, arguments.config, steps.say))
    for note in shell_files.what_is_left_to_do():
        steps.say(f"note: {note}")
    log = paths.log_file(state)

    def show(out: Console) -> None:
        print_wrapped(out, f"recoveryd {__version__} is installed. The log: {manager.log_command}")
        print_wrapped(out, f"To take it out again: {command_line('uninstall')}")

    data = {"steps": steps.said, "strict": made.strict, "log": str(log), "log_command": manager.log_command}
    return render(Result(data, show), as_json=arguments.json)


@leave.removing()
def uninstall(arguments: argparse.Namespace) -> int:
    """Run `recoveryd uninstall`: take away what `install` put there."""
    base.refuse_sudo(os.environ)
    manager, state = _manager(), paths.state_dir()
    background = Background(state)
    if arguments.purge and (count := leave.count_recoveries(state)) != 0:
        insist(_lost(count), yes=arguments.yes)
    steps = Steps(shown=not (arguments.json or arguments.quiet))
    try:
        manager.check()  # the manager says where its files are; without it they are removed all the same
    except RecoverydError:
        leave.while_no_service(state)
    named = arguments.config or manager.named_config() or background.config()  # before they are gone
    config = named or paths.config_file()
    manager.stop(steps.say)
    background.stop(steps.say)
    empty = [*manager.gone(steps.say), *shell_files.take_shell_files(steps.say)]
    code = plugin.put_or_leave_plugins(plugin.take_plugins, load_sound(Config, config)[0], arguments, steps.say)
    leave.while_alone(state)
    plugins.remove_mailboxes(state, steps.say)
    locks = leave.remove_locks(state)
    kept = None if arguments.purge else leave.remove_state(state, config, steps.say)
    if arguments.purge:
        leave.remove_everything(state, arguments.config or paths.config_file(), config, steps.say)
    leave.remove_empty_folders([*empty, locks, state, paths.config_file().parent])

    def show(out: Console) -> None:
        if kept:
            purge = command_line("uninstall", "--purge")
            print_wrapped(out, short_paths(f"The ledger stays: {kept} (`{purge}` takes that too)"))
        print_wrapped(
            out,
            "The program goes as it came: pipx uninstall recoveryd, uv tool uninstall recoveryd, or remove its venv.",
        )

    data = {"steps": steps.said, "kept": str(kept) if kept else None}
    return render(Result(data, show, code), as_json=arguments.json)


def _as_before(arguments: argparse.Namespace, manager: Manager) -> Service:
    """Describe the service: what is not asked for now as it was before. ConfigError."""
    if arguments.config is None:
        # Of the service, or of what `start` began: another one may let it write where this one does not.
        arguments.config = manager.named_config() or Background(paths.state_dir()).config()
    strict = manager.was_strict() if arguments.strict is None else arguments.strict
    return _service(arguments, config_of(arguments), strict=strict)


def _make_room(state: Path, config: Path | None, say: base.Say) -> None:
    """End what `start` began: beside it the service would not begin."""
    if Background(state).stop(say) and config:
        say(f"the configuration of the service: {config}")


def _manager() -> Manager:
    return of_this_system(os.environ)


def _service(arguments: argparse.Namespace, config: Config, *, strict: bool) -> Service:
    named = ("--config", str(arguments.config.absolute())) if arguments.config else ()
    state, bare = paths.state_dir(), {"HOME": str(Path.home())}
    there = load(Config, arguments.config or paths.config_file(), {})
    # What this shell sees is what the service will see, which looks in the usual place besides.
    folders = {state, paths.lock_dir(state), *_folders(config, os.environ), *_folders(there, bare)}
    folders |= {there.metrics.textfile.parent} if there.metrics.textfile else set()
    outer = {folder for folder in folders if not any(other in folder.parents for other in folders)}
    command = (*base.command(), *named)
    return Service(command, base.environment(os.environ), state, tuple(sorted(outer)), strict)


def _folders(config: Config, env: Mapping[str, str]) -> set[Path]:
    """List the folders of the stores that repairs write to."""
    return {folder for store in find_stores(config, env) for folder in store.writes_to}


def _print(manager: Manager, made: Service, *, as_json: bool) -> int:
    units = {str(path): text for path, text in manager.unit(made).items()}

    def show(out: Console) -> None:
        for path, text in units.items():
            if len(units) > 1:
                out.print(f"# {path}")
            out.file.write(text)  # as it is: a plist has tabs

    return render(Result({"units": units}, show), as_json=as_json)


def _notes(config: Config, made: Service, place: Path) -> Iterator[str]:
    """List what a person should know of this service and would otherwise find out late."""
    for name in variables(os.environ):
        yield f"{name} is set in this shell, which the service does not see: what it says belongs in {place}."
    if any(part in (".cache", "tmp") for part in Path(made.command[0]).parts):
        yield f"{made.command[0]} looks temporary; the service needs it as long as it is installed."
    if os.environ.get("SSH_CONNECTION") and sys.platform != "darwin" and not lingers():
        yield "it ends when you log out; `loginctl enable-linger` keeps it running on a server."
    if not made.strict:
        return
    here = _folders(config, os.environ)
    for folder in made.writable:
        if folder in here and not folder.is_dir():
            yield f"{folder} is not there yet. Once the client has made it: {command_line('install', '--strict')}"
        if folder == Path.home() or folder in Path.home().parents:
            yield f"a store lies in {folder} itself, so all of that may be written to."
    for client in Clients(config).on_this_machine(os.environ):
        if key := client.address_key():
            yield (
                f"--strict keeps it from looking into other processes. If {client.title} listens on a port, write that "
                f"address to {key} of {place}, or it will not be found."
            )


def _lost(count: int | None) -> str:
    if count is None:
        return "This removes the ledger, which can't be read now: nothing that it holds can be had back any more."
    what = "1 recovery that it tells of" if count == 1 else f"{count} recoveries that it tells of"
    return f"This removes the ledger: of the {what}, none can be undone any more, and what was set aside is gone."
