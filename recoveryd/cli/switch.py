"""`recoveryd start`, `stop` and `restart`: the service that is installed, or else a process in the background."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from recoveryd.cli.common import config_of
from recoveryd.cli.output import Result, render
from recoveryd.cli.plugin import say_which_are_missing
from recoveryd.cli.steps import Steps
from recoveryd.clients import Config
from recoveryd.core import BusyError, RefusedError, command_line, going_by
from recoveryd.disk import LockOwner
from recoveryd.doctor import HOW, daemons
from recoveryd.service import Background, Manager, base, of_this_system
from recoveryd.settings import load, load_sound, paths

_RUNNING = ("active", "activating", "reloading", "restarting")  # states of a service that runs, or will by itself


def start(arguments: argparse.Namespace) -> int:
    """Run `recoveryd start`: the service, or else a process in the background."""
    return _switched(arguments, _by_manager(arguments, "start"), _begin)


def stop(arguments: argparse.Namespace) -> int:
    """Run `recoveryd stop`: end the service, or the process in the background."""

    def service(manager: Manager, say: base.Say) -> None:
        manager.switch("stop", say)
        _refuse_what_stays(arguments)

    return _switched(arguments, service, _end)


def restart(arguments: argparse.Namespace) -> int:
    """Run `recoveryd restart`: end it and start it again."""

    def again(arguments: argparse.Namespace, background: Background, say: base.Say) -> None:
        if arguments.config is None:
            arguments.config = background.config()  # another one may write what this one is not to write
        config_of(arguments)  # one that is not sound leaves the process that runs as it is
        background.stop(say)
        with going_by(str(arguments.config.absolute()) if arguments.config else ""):
            _begin(arguments, background, say)

    return _switched(arguments, _by_manager(arguments, "restart"), again)


def _by_manager(arguments: argparse.Namespace, verb: base.Verb) -> Callable[[Manager, base.Say], None]:
    """Make what starts the service, which goes by its own configuration: one that is named here is not heeded, so that
    is said. One that is not sound leaves the service that runs as it is.
    """

    def switch(manager: Manager, say: base.Say) -> None:
        its = manager.named_config() or paths.config_file()
        if arguments.config is not None and arguments.config.absolute() != its:
            say(f"note: the service goes by {its}. For it to go by the one that you name: {command_line('install')}")
        if verb == "restart" or manager.state() not in _RUNNING:
            load(Config, its, {})  # what the service does not see of this shell can't spoil it
        manager.switch(verb, say)

    return switch


def _switched(
    arguments: argparse.Namespace,
    service: Callable[[Manager, base.Say], None],
    process: Callable[[argparse.Namespace, Background, base.Say], None],
) -> int:
    base.refuse_sudo(os.environ)
    manager, background = of_this_system(os.environ), Background(paths.state_dir())
    steps = Steps(shown=not (arguments.json or arguments.quiet))
    installed = manager.state() not in ("absent", "none")
    if installed and background.pid() is None:
        service(manager, steps.say)
    else:
        process(arguments, background, steps.say)
    running = manager.state() == "active" or background.pid() is not None
    data = {"steps": steps.said, "service": installed, "running": running}
    return render(Result(data, lambda _: None), as_json=arguments.json)


def _begin(arguments: argparse.Namespace, background: Background, say: base.Say) -> None:
    if _runs_already(background, say):
        return
    sound = config_of(arguments)  # one that is not sound is said here, and not in the log
    if other := _others(arguments):
        hint = "Two would be in each other's way: end that one first."
        if other[0].doing == "service":
            hint = f"Two would be in each other's way. {base.how_to_end(other[0].pid)}"
        raise BusyError(f"recoveryd runs already, {HOW.get(other[0].doing, '')} ({other[0]}).", hint)
    config = arguments.config.absolute() if arguments.config else None
    named = ("--config", str(config)) if config else ()
    if not background.start((*base.command(), *named, "run"), os.environ, say, config):
        _runs_already(background, say)  # by a `start` of the same moment
        return
    if config:
        say(f"its configuration: {config}")
    if of_this_system(os.environ).state() != "none":
        say(f"it ends when the machine does; `{command_line('install')}` starts it at each login")
        return
    say("it ends when the machine or its container does: no service manager that starts it again can be reached here")
    say_which_are_missing(sound, arguments, say)  # which `install` would bring


def _runs_already(background: Background, say: base.Say) -> bool:
    if pid := background.pid():
        say(f"it runs already, in the background (pid {pid})")
    return pid is not None


def _end(arguments: argparse.Namespace, background: Background, say: base.Say) -> None:
    ended, manager = background.stop(say), of_this_system(os.environ)
    if manager.state() in _RUNNING:  # it waits until the one in the background has ended, or watches other stores
        manager.switch("stop", say)
        ended = True
    _refuse_what_stays(arguments)
    if not ended:
        say("nothing runs")


def _refuse_what_stays(arguments: argparse.Namespace) -> None:
    """Raise RefusedError for a recoveryd that `stop` does not end, with what does."""
    if other := _others(arguments):
        if other[0].doing == "service":
            says = f"recoveryd runs as a service ({other[0]}), which can't be ended from here."
            raise RefusedError(says, base.how_to_end(other[0].pid))
        kill = f"`kill {other[0].pid}`"  # of a job of that terminal, too (`recoveryd run &`)
        there = f"Ctrl-C, or {kill}" if other[0].doing == "terminal" else f"{kill}, where nothing starts it again"
        hint = f"End it there: {there}."
        raise RefusedError(f"recoveryd runs {HOW.get(other[0].doing, '')} ({other[0]}), not by `start`.", hint)


def _others(arguments: argparse.Namespace) -> list[LockOwner]:
    """List who runs as `status` tells it: one that looks after other stores is in nobody's way."""
    config, _ = load_sound(Config, arguments.config or paths.config_file())
    return daemons(config, (), paths.state_dir())
