"""Our plugins in the clients of this user: put there, looked at, taken away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recoveryd.clients import Caller, Clients, Plugin, seal
from recoveryd.core import RecoverydError, RefusedError, command_line
from recoveryd.disk import private_files
from recoveryd.service.base import Say
from recoveryd.service.uninstall import remove_folder

_LONGEST = 1 << 20  # bytes of a file that may be ours
_FOLDER = "plugin"  # below the state: what clients and recoveryd leave for each other
_ASIDE = ".plugin"  # the same, on its way out

# absent: it is not there; outdated: of another version or installation; edited: somebody changed it, or it is not ours
State = Literal["absent", "current", "outdated", "edited"]


@dataclass(frozen=True, slots=True)
class PlacedPlugin:
    """A plugin that is to be put or taken away: of which client, where its file belongs, what is to be in it, and how
    it is.
    """

    name: str
    title: str
    path: Path
    text: str
    state: State
    plugin: Plugin


def list_plugins(clients: Clients, caller: Caller, env: Mapping[str, str]) -> Iterator[PlacedPlugin]:
    """List, to put or take them, the plugins of all clients that this user has. Raises RecoverydError for a file that
    can't be read.
    """
    for client in clients.all():
        plugin = client.plugin(env)
        path = plugin.path if plugin is not None else None
        if plugin is not None and path is not None:
            text = plugin.text(caller)
            yield PlacedPlugin(client.name, client.title, path, text, _state(plugin, path, caller), plugin)


def talks_in(state: Path) -> Path:
    """Return the folder in which a plugin and recoveryd leave word for each other. `put_plugin` makes it; where it is
    missing, neither hears of the other.
    """
    return state / _FOLDER


def put_plugin(one: PlacedPlugin, state: Path, say: Say, *, over: bool) -> None:
    """Put any client's plugin in its place. RefusedError: somebody changed the one that is there, and not `over`."""
    if one.state == "edited" and not over:
        hint = f"Move it away to keep it; `{command_line('plugin', 'install', '--yes')}` replaces it."
        raise RefusedError(f"{one.path} was changed since recoveryd wrote it, or is not from recoveryd.", hint)
    private_files.make_folder(talks_in(private_files.make_folder(state)))
    if one.state == "current":
        say(f"unchanged: {one.path}")
        return
    try:
        one.path.parent.mkdir(exist_ok=True)  # the client's own folder is there, or it would have no plugin
        private_files.write(one.path, one.text.encode(), mode=0o644)  # no secret
    except OSError as error:
        raise RecoverydError(f"{one.path} can't be written: {error.strerror or error}.") from error
    say(f"{'wrote' if one.state == 'absent' else 'updated'}: {one.path} ({one.title} loads it when it is started anew)")


def take_plugin(one: PlacedPlugin, say: Say, *, over: bool) -> None:
    """Take any client's plugin away again. RefusedError: somebody changed it, and not `over`."""
    if one.state == "absent":
        return
    if one.state == "edited" and not over:
        raise RefusedError(
            f"{one.path} was changed since recoveryd wrote it, or is not from recoveryd.",
            f"Remove it by hand, or have `{command_line('plugin', 'remove', '--yes')}` do it.",
        )
    try:
        one.path.unlink()
    except OSError as error:
        raise RecoverydError(f"{one.path} can't be removed: {error.strerror or error}.") from error
    say(f"removed: {one.path}")
    with suppress(OSError):
        one.path.parent.rmdir()  # where nothing else is in it


def remove_mailboxes(state: Path, say: Say) -> None:
    """Remove the folder by which the plugins of clients and recoveryd ask each other."""
    folder, aside = talks_in(state), state / _ASIDE
    if aside.is_dir():  # from one that was cut off
        remove_folder(aside)
    if not folder.is_dir() or folder.is_symlink():
        return
    folder.rename(aside)  # first: a client that runs puts its sign of life there again as soon as it is gone
    remove_folder(aside)
    say(f"removed: {folder}")


def _state(plugin: Plugin, path: Path, caller: Caller) -> State:
    try:
        if not path.is_file():
            return "edited" if path.is_symlink() or path.exists() else "absent"
        there = path.read_bytes().decode("utf-8", "replace") if path.stat().st_size <= _LONGEST else ""
    except OSError as error:
        raise RecoverydError(f"{path} can't be read: {error.strerror or error}.") from error
    if not seal(there):
        return "edited"
    return "current" if plugin.fits(there, caller) else "outdated"
