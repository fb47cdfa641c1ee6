"""`recoveryd plugin`, and what `install` and `uninstall` do about plugins"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console

from recoveryd.cli.asking import agreed, somebody_there
from recoveryd.cli.common import config_of
from recoveryd.cli.output import OK, Result, console, print_labelled, print_wrapped, render
from recoveryd.cli.steps import Steps, short_paths
from recoveryd.clients import Caller, Clients, Config
from recoveryd.core import RecoverydError, command_line
from recoveryd.service import base, plugins
from recoveryd.service.uninstall import removing
from recoveryd.settings import paths

_STATES = {
    "absent": "not there: {install}",
    "current": "there",
    "outdated": "of another version or installation: {install}",
    "edited": "changed by somebody, or not from recoveryd: left alone",
}


def plugin(arguments: argparse.Namespace) -> int:
    """Run `recoveryd plugin`: put our plugins into the clients, take them out, or tell how they are."""
    base.refuse_sudo(os.environ)
    config, steps = config_of(arguments), Steps(shown=not (arguments.json or arguments.quiet))
    if arguments.what != "status":
        work = put_plugins if arguments.what == "install" else take_plugins
        if not work(config, arguments, steps.say):
            steps.say("no client that takes a plugin is here")
        if arguments.what == "remove":
            with removing("plugin", "remove"):
                plugins.remove_mailboxes(paths.state_dir(), steps.say)
    found = _placed(config, arguments)

    def show(out: Console) -> None:
        if arguments.what != "status":
            return
        install = command_line("plugin", "install")
        for one in found:
            now = len(one.plugin.loaded())
            running = f"; loaded {now} time{'' if now == 1 else 's'} now" if one.state != "absent" else ""
            print_labelled(
                out,
                one.title,
                f"{short_paths(str(one.path))}: {_STATES[one.state].format(install=install)}{running}",
                width=10,
            )
        if not found:
            print_wrapped(out, "No client that takes a plugin is here.")

    said = [{"client": one.name, "path": str(one.path), "state": one.state, **_running(one)} for one in found]
    return render(Result({"steps": steps.said, "plugins": said}, show), as_json=arguments.json)


def _running(one: plugins.PlacedPlugin) -> dict[str, object]:
    return {"loaded": len(one.plugin.loaded()), "missing": list(one.plugin.missing())}


def put_plugins(config: Config, arguments: argparse.Namespace, say: base.Say) -> bool:
    """Put the plugins into the clients for the commands `install` and `plugin install`, telling each step; return
    whether there are any. RefusedError: one was edited.
    """
    state = paths.state_dir()
    return _each(config, arguments, "replaced", lambda one, over: plugins.put_plugin(one, state, say, over=over))


def take_plugins(config: Config, arguments: argparse.Namespace, say: base.Say) -> bool:
    """Take the plugins out of the clients for `uninstall` and `plugin remove`, telling each step."""
    return _each(config, arguments, "removed", lambda one, over: plugins.take_plugin(one, say, over=over))


def put_or_leave_plugins(
    work: Callable[[Config, argparse.Namespace, base.Say], bool],
    config: Config,
    arguments: argparse.Namespace,
    say: base.Say,
) -> int:
    """Put or take plugins as a step of a greater command: what can't be done is told, and stays. Returns the exit code
    of that.
    """
    try:
        work(config, arguments, say)
    except RecoverydError as error:
        say(f"left: {error.message} {error.hint}".strip())
        return error.exit_code
    return OK


def say_which_are_missing(config: Config, arguments: argparse.Namespace, say: base.Say) -> None:
    """Say which clients have no plugin, and what brings it; nothing where that can't be told."""
    with suppress(RecoverydError):
        for one in _placed(config, arguments):
            if one.state == "absent":
                say(f"{one.title} has no plugin: `{command_line('plugin', 'install')}` brings it")


def _each(
    config: Config, arguments: argparse.Namespace, done: str, work: Callable[[plugins.PlacedPlugin, bool], None]
) -> bool:
    """Do something about each plugin: what can't be done about one keeps no other from it, and is raised at the end."""
    found, problems = _placed(config, arguments), list[RecoverydError]()
    for one in found:
        over = bool(getattr(arguments, "yes", False))
        if one.state == "edited" and not over and somebody_there():
            print_wrapped(console(stderr=True), short_paths(f"{one.path} was changed, or is not from recoveryd."))
            over = agreed(f"Have it {done}?")
        try:
            work(one, over)
        except RecoverydError as error:
            problems.append(error)
    if problems:
        also = (f"{error.message} {error.hint}".strip() for error in problems[1:])
        raise type(problems[0])("\n".join((problems[0].message, *also)), problems[0].hint)
    return bool(found)


def _placed(config: Config, arguments: argparse.Namespace) -> list[plugins.PlacedPlugin]:
    named = ("--config", str(arguments.config.absolute())) if arguments.config else ()
    caller = Caller((*base.command(), *named), base.environment(os.environ), paths.state_dir())
    return list(plugins.list_plugins(Clients(config), caller, os.environ))
