"""The completion of each shell, and the manual page: put where shell and man(1) look for them, and taken away."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from recoveryd.cli.completion import script
from recoveryd.cli.manual import manual
from recoveryd.cli.parser import make_parser
from recoveryd.core import RecoverydError
from recoveryd.service import base

_NOTE = f"From `{base.MARK}`, which writes this file anew."
_FILES = {
    "bash": Path("bash-completion", "completions", "recoveryd"),
    "zsh": Path("zsh", "site-functions", "_recoveryd"),
    "fish": Path("fish", "vendor_completions.d", "recoveryd.fish"),
    "man": Path("man", "man1", "recoveryd.1"),
}


def put_shell_files(say: base.Say) -> None:
    """Write the completion and the manual page for each of these programs that there is. What can't be written is said:
    the service does without.
    """
    for name, file in _FILES.items():
        if shutil.which(name):
            try:
                base.write(_folder() / file, _text(name), say)
            except RecoverydError as error:
                say(f"not written: {error.message}")


def take_shell_files(say: base.Say) -> list[Path]:
    """Remove the completion and the manual page; return the folders that may be empty now."""
    folders = []
    for place in {_folder(), _usual()}:
        for file in _FILES.values():
            base.remove(place / file, say)
            folders += [(place / file).parent, (place / file).parent.parent]
    return folders if _folder() == _usual() else [*folders, _folder()]


def what_is_left_to_do() -> Iterator[str]:
    """Tell what a person has to do that the shell finds its completion, and the program by its name."""
    if not shutil.which("recoveryd"):
        yield f"recoveryd is not on the PATH{_way_to_its_name(Path(base.command()[0]))}."
    if shutil.which("zsh"):
        yield f"zsh looks for completion in $fpath: put fpath+=({(_folder() / _FILES['zsh']).parent}) before compinit."


def _way_to_its_name(program: Path) -> str:
    """Tell how a shell finds the program by its name. What is typed must work where ~/.local/bin is not there yet, is
    not on the PATH, or has the program already (pipx and uv put it there).
    """
    usual = Path.home() / ".local" / "bin"
    on_it = str(usual) in (folder.rstrip("/") for folder in os.environ.get("PATH", "").split(os.pathsep))
    if program.name != "recoveryd":  # an interpreter: there is no program that could be linked
        return ""
    if program.parent == usual:
        known = {"pipx": "`pipx ensurepath`", "uv": "`uv tool update-shell`"}
        puts = next((f"{typed} puts it there, and " for name, typed in known.items() if shutil.which(name)), "")
        return f", as ~/.local/bin is not; {puts}many systems do at the next login"
    link = f"; `mkdir -p ~/.local/bin && ln -sf {shlex.quote(str(program))} ~/.local/bin/` has it answer to its name"
    return link if on_it else f"{link}, once that folder is on it (on many systems at the next login)"


def _text(name: str) -> str:
    if name == "man":
        return f'.\\" {_NOTE}\n{manual(make_parser())}'
    return f"{script(name)}# {_NOTE}\n"


def _folder() -> Path:
    """Where programs of the user's own have their files: the XDG specification."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return named if named.is_absolute() else _usual()


def _usual() -> Path:
    return Path.home() / ".local" / "share"
