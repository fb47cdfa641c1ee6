"""All commands and options."""

from __future__ import annotations

import argparse
from contextlib import suppress

from recoveryd.cli import parser_upkeep
from recoveryd.cli.declare import Commands, Parser, add_client_option, add_command, everywhere, filled, read_count
from recoveryd.core import Kind, __version__

_DESCRIPTION = "Heals AI coding sessions whose stored history the provider refuses."
_EPILOG = """Exit codes: 0 fine, 1 something is wrong (a session is stuck, a check failed),
2 usage, 3 not found, 4 refused (it would lose something), 75 busy,
78 bad configuration."""


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line with all commands."""
    parser = Parser(prog="recoveryd", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"recoveryd {__version__}")
    everywhere(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _watch(commands)
    _scan(commands)
    _explain(commands)
    _compact(commands)
    _history(commands)
    _show(commands)
    _undo(commands)
    parser_upkeep.add_upkeep(commands)
    _config(commands)
    _install(commands)
    _uninstall(commands)
    _plugin(commands)
    _demo(commands)
    parser_upkeep.add_shell(commands)
    return parser


def _run(commands: Commands) -> None:
    made = add_command(commands, "run", "watch the stores and heal sessions until stopped", "recoveryd run", json=False)
    made.add_argument("--dry-run", action="store_true", help="say what would be repaired, and write nothing")
    made.add_argument(
        "--launchd", action="store_true", help="end with 0 on a bad configuration, or launchd would try it for ever"
    )
    made.add_argument("--log-level", choices=["DEBUG", "INFO", "WARNING", "ERROR"], help="how much is logged")


def _watch(commands: Commands) -> None:
    help = "show the sessions live, as they run, fail and are healed"
    add_client_option(add_command(commands, "watch", help, "recoveryd watch", json=False))


def _scan(commands: Commands) -> None:
    made = add_command(
        commands, "scan", "list the sessions that are stuck, and what would heal them", "recoveryd scan --repair"
    )
    made.add_argument("--repair", action="store_true", help="show each repair as a diff, and make them")
    made.add_argument("--dry-run", action="store_true", help="show each repair as a diff, and write nothing")
    made.add_argument("--ahead", action="store_true", help="also those that the next prompt would be refused in")
    made.add_argument("--yes", action="store_true", help="repair without being asked, as --json does, or no terminal")
    add_client_option(made)
    made.add_argument("--session", type=filled, metavar="ID", help="this session alone; shows the diff of its repair")
    made.add_argument(
        "--kind", choices=[kind.value for kind in Kind], metavar="KIND", help="this kind of failure alone"
    )


def _explain(commands: Commands) -> None:
    help = "say what an error means, or which part killed a session"
    made = add_command(commands, "explain", help, "recoveryd explain --session ses_1a2b")
    made.add_argument("text", nargs="?", metavar="TEXT", help="the error's text; - reads it from stdin")
    made.add_argument("--jsonl", action="store_true", help="read one JSON object a line from stdin, print one a line")
    made.add_argument("--session", type=filled, metavar="ID", help="the session to look into")


def _compact(commands: Commands) -> None:
    help = "make a session shorter, without asking a model"
    made = add_command(commands, "compact", help, "recoveryd compact ses_1a2b --target 0.5 --dry-run")
    made.add_argument("session", metavar="SESSION", help="the session to make shorter")
    share = "of what the model takes, or of what is there where that is not known (default: that of [compact], 0.7)"
    made.add_argument("--target", type=_share, metavar="SHARE", help=share)
    made.add_argument("--dry-run", action="store_true", help="show what would no longer be sent, and write nothing")
    made.add_argument("--yes", action="store_true", help="do it without being asked, as --json does, or no terminal")


def _share(text: str) -> float:
    """Read a share of the limit, 0.1 to 0.95."""
    with suppress(ValueError):
        share = float(text)
        if 0.1 <= share <= 0.95:
            return share
    raise argparse.ArgumentTypeError(f"{text!r} is no share from 0.1 to 0.95")


_share.__name__ = "share"  # what argparse calls it when it is none


def _history(commands: Commands) -> None:
    made = add_command(commands, "history", "list the recoveries, newest first", "recoveryd history --limit 5")
    made.add_argument("--session", type=filled, metavar="ID", help="those of this session")
    add_client_option(made)
    made.add_argument("--limit", type=read_count, metavar="N", help="how many (default: all)")
    made.add_argument("--stats", action="store_true", help="figures of all of them, by kind")


def _show(commands: Commands) -> None:
    made = add_command(commands, "show", "show what a recovery changed, as a diff", "recoveryd show r1a2b3c4d")
    made.add_argument("id", metavar="ID", help="of the recovery; its beginning is enough")


def _undo(commands: Commands) -> None:
    made = add_command(commands, "undo", "take a recovery back, byte for byte", "recoveryd undo r1a2b3c4d --dry-run")
    made.add_argument("id", metavar="ID", help="of the recovery; its beginning is enough")
    made.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    made.add_argument(
        "--force", action="store_true", help="also if the session changed since; what is there now is kept"
    )


def _config(commands: Commands) -> None:
    help = "say where the configuration is, show, check, change it"
    made = add_command(commands, "config", help, "recoveryd config show")
    made.add_argument(
        "what",
        choices=["path", "show", "check", "init", "set"],
        metavar="{path,show,check,init,set}",
        help="the file's path; all settings; a check of the file; a new file with all keys; one key of it",
    )
    made.add_argument("key", nargs="?", metavar="KEY", help="of `set`: such as notify.desktop")
    made.add_argument(
        "value",
        nargs="?",
        metavar="VALUE",
        help="of `set`: such as false; of a list: a,b; of `kinds` also +KIND (that one, too) and default",
    )


def _install(commands: Commands) -> None:
    help = "have it run as a service, now and at each login"
    made = add_command(commands, "install", help, "recoveryd install --strict")
    made.add_argument("--print", action="store_true", help="show the unit, and write nothing")
    made.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="let it write to the stores and its own state alone (systemd; default: as it was installed before)",
    )
    made.add_argument(
        "--no-plugin", dest="plugin", action="store_false", help="put no plugin into the clients that take one"
    )


def _uninstall(commands: Commands) -> None:
    help = "take the service out; the ledger stays, for `undo`"
    made = add_command(commands, "uninstall", help, "recoveryd uninstall")
    made.add_argument(
        "--purge", action="store_true", help="remove the ledger, what is ignored and the configuration, too"
    )
    made.add_argument("--yes", action="store_true", help="purge, and remove an edited plugin, without being asked")


def _plugin(commands: Commands) -> None:
    help = "put the plugin into your clients, or take it out"
    made = add_command(commands, "plugin", help, "recoveryd plugin install")
    made.add_argument(
        "what",
        choices=["install", "remove", "status"],
        metavar="{install,remove,status}",
        help="put it into the clients that are here; take it out; say how it is",
    )
    made.add_argument("--yes", action="store_true", help="also one that somebody edited, without being asked")


def _demo(commands: Commands) -> None:
    help = "break sessions in a throw-away store, and watch them healed"
    add_command(commands, "demo", help, "recoveryd demo")
