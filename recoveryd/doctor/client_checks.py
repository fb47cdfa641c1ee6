"""What `doctor` asks of the clients: those that listen, and our plugins in them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from recoveryd.clients import Caller
from recoveryd.core import Check, command_line, ok, warn
from recoveryd.doctor.examined import Patient
from recoveryd.service import base, plugins


def check_clients(patient: Patient) -> Iterator[Check]:
    """Check the clients that listen: their versions, and whether they are this user's."""
    for one in patient.clients.on_this_machine(os.environ):
        yield from one.check_server()


def check_plugins(patient: Patient) -> Iterator[Check]:
    """Check our plugins in the clients that take one: there, of this version, as they were written, and at work."""
    caller = Caller(base.command(), base.environment(os.environ), patient.state_dir)
    placed = list(plugins.list_plugins(patient.clients, caller, os.environ))
    if not placed:
        yield ok("plugin", "No client that takes a plugin keeps its settings here.")
    for one in placed:
        if one.state == "absent":
            says = f"{one.title} has no plugin of recoveryd; without it a plain TUI shows no notices."
            yield ok("plugin", says, f"To have it: {command_line('plugin', 'install')}")
        elif one.state == "edited":
            says = f"{one.path} was changed, or is not from recoveryd: it is left as it is."
            yield warn("plugin", says, f"{command_line('plugin', 'install', '--yes')} replaces it")
        elif one.state == "outdated":
            yield warn(
                "plugin", f"{one.path} is of another version or installation.", command_line("plugin", "install")
            )
        elif not (folder := plugins.talks_in(patient.state_dir)).is_dir():
            says = f"The plugin of {one.title} shows nothing: {folder}, by which it hears of recoveryd, is missing."
            yield warn("plugin", says, command_line("plugin", "install"))
        else:
            yield _at_work(one)


def _at_work(one: plugins.PlacedPlugin) -> Check:
    missing, silent, loaded = one.plugin.missing(), one.plugin.silent(one.path.stat().st_mtime), one.plugin.loaded()
    if missing:
        says = f"{one.title} has changed: the plugin finds no {', '.join(missing)} in it, and does without."
        return warn("plugin", says, "A newer recoveryd may know it. All else works as without the plugin.")
    if silent:
        pids = ", ".join(map(str, silent[:3]))
        says = f"The plugin is silent: {one.title} (pid {pids}) was started after it came, and did not load {one.path}."
        return warn("plugin", says, f"Does {one.title} load plugins (--pure turns them off)? Its log says why not.")
    if not all(loaded):
        return ok("plugin", f"{one.title} runs with an older plugin.", "It loads the new one when it is started anew.")
    running = f"{len(loaded)} running" if loaded else "none running"
    return ok("plugin", f"{one.path} is in place ({running}).")
