"""`recoveryd pause`, `unpause` and `ignore`"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from recoveryd.cli.common import config_of, known_ledger, recovery_hint, sound_of, stores_of
from recoveryd.cli.output import WARNING, Result, complain, local_time, plain, print_wrapped, render
from recoveryd.clients import Config, is_empty, stores_having
from recoveryd.core import NotFoundError, RecoverydError, UsageError, command_line, is_session_id
from recoveryd.diagnose import ignored_by, is_in
from recoveryd.disk import REPLACED, path_exists, private_files
from recoveryd.doctor import daemons, quick_status
from recoveryd.settings import load_sound, overrides, paths, variable_of


def pause(arguments: argparse.Namespace) -> int:
    """Run `recoveryd pause`: repair nothing for a while, or until `unpause`."""
    state = private_files.make_folder(paths.state_dir())
    made = overrides.pause(state, time.time(), arguments.seconds)
    until = f"`{command_line('unpause')}`" if made.until is None else local_time(made.until)
    config, _ = load_sound(Config, arguments.config or paths.config_file())  # a broken one is no matter of a pause
    idle = _idle(config, state)
    words = f"Nothing is repaired by itself until {until}"
    words += f", nor after that, as it is configured: {idle}." if idle else _meanwhile(config, state)
    data = {"paused": True, "since": made.since, "until": made.until}
    return render(Result(data, lambda out: print_wrapped(out, words)), as_json=arguments.json)


def _idle(config: Config, state: Path) -> str:
    """Tell why nothing is repaired by itself after a pause, either; "" where it is. One that runs may go by another
    configuration than is in the file: one that was named for it, or the one before a change.
    """
    by = [config.idle if one.idle == REPLACED else one.idle for one in daemons(config, (), state)] or [config.idle]
    if all(by):
        return by[0]
    return "" if config.kinds else "the configuration names no kind (`kinds = []`)"


def _by_hand(config: Config) -> bool:
    """Whether `scan --repair` heals: it goes by the file, whatever the recoveryd that runs goes by."""
    return bool(config.kinds) and not config.dry_run


def _meanwhile(config: Config, state: Path) -> str:
    repair = command_line("scan", "--repair")
    none = "" if daemons(config, (), state) else f" by a recoveryd that runs (none does now: `{command_line('start')}`)"
    hours = f"`lookback_hours` ({Config().lookback_hours:g} unless you set it)"
    words = f". What gets stuck meanwhile is healed after that{none}, if it is not older than {hours} then"
    return f"; `{repair}` does it by hand{words}: `{repair}` heals what is." if _by_hand(config) else f"{words}."


def unpause(arguments: argparse.Namespace) -> int:
    """Run `recoveryd unpause`: end the pause."""
    now = time.time()
    found = overrides.paused(paths.state_dir(), now)
    ended = overrides.unpause(paths.state_dir())
    config = sound_of(arguments)[0]
    if found is not None:
        going = _goes_on(
            config, "The pause is over, but nothing is repaired yet", "Repairs go on; what got stuck meanwhile"
        )
    else:
        was = "The pause was over by itself." if ended else "It was not paused."
        going = f"{was} {_goes_on(config, 'Nothing is repaired all the same', 'What gets stuck')}"
    hours, old = config.lookback_hours, ""
    if found is not None and (found.since is None or now - found.since > hours * 3600):
        by_hand = f": `{command_line('scan', '--repair')}` does that" if _by_hand(config) else ""
        old = f"What got stuck more than {hours:g} hours ago is not healed by itself{by_hand}."

    def say(out: Console) -> None:
        print_wrapped(out, going)
        if old:
            print_wrapped(out, old)

    return render(Result({"paused": False, "was": found is not None}, say), as_json=arguments.json)


def _goes_on(config: Config, not_yet: str, what: str) -> str:
    """Tell what comes of what may be repaired again, as things are: `what` is healed soon, or why `not_yet`."""
    found = quick_status(config, stores_of(config), paths.state_dir(), paths.config_file(), time.time())
    if found.unrepaired:
        then = ""
        if found.stores and not found.running:
            idle = _idle(config, paths.state_dir())  # a start heals nothing then
            then = f" Nor would it, as it is configured: {idle}." if idle else f" To start it: {command_line('start')}"
        return f"{not_yet}: {found.unrepaired.removesuffix('.')}.{then}"
    return f"{what} is healed within a minute."


def ignore(arguments: argparse.Namespace) -> int:
    """Run `recoveryd ignore`: leave sessions or folders alone, no longer do so, or list them."""
    config = config_of(arguments)
    if arguments.what is None:
        if arguments.remove:
            raise UsageError("What is no longer to be ignored?", f"{command_line('ignore', '--remove')} SESSION|FOLDER")
        return _list(arguments, config.ignore)
    what = _named(arguments.what)
    if not arguments.remove and not is_session_id(what) and not what.startswith("/"):
        hint = "Name a session by its id, as `scan` shows it, or a project folder that is there, or by its whole path."
        with suppress(RecoverydError), known_ledger() as ledger:
            hint = recovery_hint(ledger, what) or hint
        raise UsageError(f"{plain(what)} is neither a session's id nor a folder.", hint)
    if arguments.remove:
        by = variable_of("ignore", os.environ) or f"`ignore` in {arguments.config or paths.config_file()}"
        words, still = _heeded(config, what, by)
    else:
        overrides.ignore(private_files.make_folder(paths.state_dir()), what)
        kind = "This folder and all in it" if what.startswith("/") else "This session"
        words = f"{kind} is left alone from now on, without a word: {plain(what)}"
        if not _may_be_there(config, what):
            complain(f"{plain(what)} is not there now; what is named so is ignored. Is it spelled right?", WARNING)
    data = {"what": what, "ignored": not arguments.remove or still}
    return render(Result(data, lambda out: print_wrapped(out, words)), as_json=arguments.json)


def _heeded(config: Config, what: str, by: str) -> tuple[str, bool]:
    """Take a session or folder off the list. Returns what comes of that, and whether another entry still covers it.

    `by` is what ignores those of the configuration.
    """
    if what in (*config.ignore, *map(_named, config.ignore)):
        raise RecoverydError(f"{what} is ignored by {by}.", "Take it out there.")
    was = overrides.unignore(paths.state_dir(), what)
    still = _covering(config, what)
    how = f"Take {still} out of {by}."
    if still is not None and still not in config.ignore:
        how = f"To have all of that looked after again: {command_line('ignore', '--remove', still)}"
    if not was and still is None:
        raise NotFoundError(f"{what} is not ignored.", f"`{command_line('ignore')}` lists what is.")
    if not was:
        raise NotFoundError(f"{what} is not on the list itself: it is ignored with {still}.", how)
    if still is not None:
        return f"{plain(what)} is off the list, and still ignored with {plain(still)}. {how}", True
    then = _goes_on(config, "Nothing is repaired yet", "What is stuck there now, and was not undone,")
    return f"{plain(what)} is no longer ignored. {then}", False


def _covering(config: Config, what: str) -> str | None:
    """Name what else has a session or folder left alone: a folder that it is in, or of what it is a subagent."""
    names = (*config.ignore, *overrides.ignored(paths.state_dir()))
    if what.startswith("/"):
        return next((name for name in names if is_in(what, name)), None)
    found, _ = stores_having(stores_of(config), what)
    with suppress(RecoverydError):  # of a store that can't be read it is not known
        return next(filter(None, (ignored_by(names, store, what) for store in found)), None)
    return None


def _may_be_there(config: Config, what: str) -> bool:
    """Whether a folder is there, or a session in any store, or may be: a folder above, or a store, can't be read."""
    if what.startswith("/"):
        return path_exists(what) is not False
    found, unread = stores_having(stores := stores_of(config), what)
    return bool(found or unread) or is_empty(stores, what)


def _list(arguments: argparse.Namespace, configured: tuple[str, ...]) -> int:
    named = overrides.ignored(paths.state_dir())

    def show(out: Console) -> None:
        for what in configured:
            out.print(f"{plain(what)} (configuration)")
        for what in named:
            out.print(plain(what))
        if not configured and not named:
            out.print("Nothing is ignored.")

    return render(Result({"configured": list(configured), "named": list(named)}, show), as_json=arguments.json)


def _named(what: str) -> str:
    """Make a folder absolute, as a client has it; what is none stays as it is."""
    path = Path(what).expanduser()
    return str(path.resolve()) if what and (path.is_absolute() or path.is_dir()) else what
