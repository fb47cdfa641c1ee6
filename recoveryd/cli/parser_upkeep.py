"""The other half of the commands and options: how recoveryd is, what it is to leave alone, and what it keeps."""

from __future__ import annotations

import argparse
from pathlib import Path

from recoveryd.cli.declare import Commands, add_client_option, add_command, filled, later, read_count, read_span


def add_upkeep(commands: Commands) -> None:
    """Add the commands that look after recoveryd."""
    _status(commands)
    add_command(commands, "metrics", "print what came of it as OpenMetrics text", "recoveryd metrics", json=False)
    _logs(commands)
    _switches(commands)
    _doctor(commands)
    _pause(commands)
    _ignore(commands)
    _ledger(commands)
    _report(commands)


def _status(commands: Commands) -> None:
    help = "say what is watched, and what came of it"
    add_client_option(add_command(commands, "status", help, "recoveryd status"))


def _logs(commands: Commands) -> None:
    made = add_command(commands, "logs", "show what the daemon logged", "recoveryd logs -f", json=False)
    made.add_argument("-f", "--follow", action="store_true", help="go on with what is logged from now on")
    made.add_argument("--session", type=filled, metavar="ID", help="what is about this session alone")
    made.add_argument(
        "-n", "--lines", type=read_count, default=200, metavar="N", help="the newest so many (default: 200)"
    )


def _switches(commands: Commands) -> None:
    """Return the service that is installed, or else a process in the background."""
    add_command(commands, "start", "have it run now: the service, or in the background", "recoveryd start")
    add_command(commands, "stop", "end it; an installed service starts at the next login", "recoveryd stop")
    add_command(commands, "restart", "end it and start it again", "recoveryd restart")


def _doctor(commands: Commands) -> None:
    made = add_command(commands, "doctor", "check that all is as it should be, and say what to do", "recoveryd doctor")
    made.add_argument("--toast", action="store_true", help="show a notice on the desktop")


def _pause(commands: Commands) -> None:
    help = "repair nothing by itself for a while"
    made = add_command(commands, "pause", help, "recoveryd pause --for 2h")
    made.add_argument(
        "--for",
        dest="seconds",
        type=read_span,
        metavar="TIME",
        help="such as 90s, 30m, 2h or 1d (default: until `recoveryd unpause`)",
    )
    help = "repair again, also what got stuck meanwhile"
    add_command(commands, "unpause", help, "recoveryd unpause")


def _ignore(commands: Commands) -> None:
    help = "leave a session or a project folder alone"
    made = add_command(commands, "ignore", help, "recoveryd ignore ~/secret-project")
    made.add_argument(
        "what",
        nargs="?",
        metavar="WHAT",
        help="a session id, or a folder: all projects in it; without it: list what is ignored",
    )
    made.add_argument("--remove", action="store_true", help="no longer ignore it")


def _ledger(commands: Commands) -> None:
    made = commands.add_parser("ledger", help="take content out of the ledger (prune, forget, export)")
    made.description = (
        "Take originals out of the ledger.\n\nIt holds what was repaired as it was before: a second copy of what your\n"
        "sessions say."
    )
    made.epilog = "example: recoveryd ledger forget ses_1a2b --dry-run"
    # Named in the usage, which is all that is shown where none is typed.
    actions = made.add_subparsers(title="actions", metavar="{prune,forget,export}", required=True)

    def action(name: str, help: str, example: str) -> argparse.ArgumentParser:
        one = add_command(actions, name, help, example)
        one.set_defaults(run=later("ledger", name))
        return one

    prune = action("prune", "remove the originals beyond the limits of [ledger]", "recoveryd ledger prune --dry-run")
    prune.add_argument("--keep-days", type=read_count, metavar="N", help="another limit than that of the configuration")
    prune.add_argument("--all-content", action="store_true", help="also what now exists nowhere else")
    prune.add_argument("--yes", action="store_true", help="remove it for good without being asked")
    prune.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    forget = action("forget", "remove all that a session said, for good", "recoveryd ledger forget ses_1a2b --dry-run")
    forget.add_argument("session", metavar="SESSION", help="its id; its repairs can't be undone any more")
    forget.add_argument("--yes", action="store_true", help="remove it for good without being asked")
    forget.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    export = action("export", "write the originals of a recovery into a folder", "recoveryd ledger export r1a2b3c4d")
    export.add_argument("id", metavar="ID", help="of the recovery; its beginning is enough")
    export.add_argument("--out", type=Path, metavar="FOLDER", help="a new folder (default: ./recoveryd-ID)")


def _report(commands: Commands) -> None:
    help = "print a session for a bug report, without its content"
    made = add_command(commands, "report", help, "recoveryd report r1a2b3c4d --out report.json")
    made.add_argument("id", metavar="ID", help="of a recovery (its beginning is enough), or of a session")
    made.add_argument("--out", type=Path, metavar="FILE", help="write it there instead")


def add_shell(commands: Commands) -> None:
    """Add the commands that print the completion script and the manual page."""
    help = "print the completion script of a shell"
    made = add_command(commands, "completion", help, 'eval "$(recoveryd completion bash)"', json=False)
    made.add_argument(
        "shell",
        choices=["bash", "zsh", "fish", "recoveries", "sessions"],
        help="the shell; `recoveryd man` says where it goes. The last two: the ids that the scripts offer",
    )
    add_command(commands, "man", "print the manual page", "recoveryd man | man -l -", json=False)
