"""All commands and options. The functions behind them are imported when they run: `run` must not carry the rest."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from recoveryd import __version__
from recoveryd.model import Kind

_DESCRIPTION = "Heals AI coding sessions whose stored history the provider refuses."
_EPILOG = """Exit codes: 0 fine, 1 something is wrong (a session is stuck, a check failed),
2 usage, 3 not found, 4 refused (it would lose something), 75 busy,
78 bad configuration."""


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="recoveryd", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"recoveryd {__version__}")
    parser.add_argument("--config", type=Path, metavar="FILE", help="another configuration file")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _scan(commands)
    _explain(commands)
    _history(commands)
    _show(commands)
    _undo(commands)
    _config(commands)
    _install(commands)
    _uninstall(commands)
    _demo(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """Shows examples as they are written."""

    def __init__(self, **options: object) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)  # type: ignore[arg-type]


Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def _command(commands: Commands, name: str, help: str, example: str, *, json: bool = True) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name, help=help, description=help[:1].upper() + help[1:] + ".", epilog=f"example: {example}"
    )
    if json:
        made.add_argument("--json", action="store_true", help="print the result as JSON")
    made.set_defaults(run=_later(name))
    return made


def _later(name: str) -> Callable[[argparse.Namespace], int]:
    def call(arguments: argparse.Namespace) -> int:
        module = import_module(f"recoveryd.cli.{_MODULES.get(name, name)}")
        return int(getattr(module, name)(arguments))

    return call


_MODULES = {"show": "history", "undo": "history", "uninstall": "install"}


def _run(commands: Commands) -> None:
    made = _command(commands, "run", "watch the stores and heal sessions until stopped", "recoveryd run", json=False)
    made.add_argument("--dry-run", action="store_true", help="say what would be repaired, and write nothing")
    made.add_argument(
        "--launchd", action="store_true", help="end with 0 on a bad configuration, or launchd would try it for ever"
    )
    made.add_argument("--log-level", choices=["DEBUG", "INFO", "WARNING", "ERROR"], help="how much is logged")


def _scan(commands: Commands) -> None:
    made = _command(
        commands, "scan", "list the sessions that are stuck, and what would heal them", "recoveryd scan --repair"
    )
    made.add_argument("--repair", action="store_true", help="show each repair as a diff, and make it")
    made.add_argument("--session", metavar="ID", help="this session alone; shows the diff of its repair")
    made.add_argument(
        "--kind", choices=[kind.value for kind in Kind], metavar="KIND", help="this kind of failure alone"
    )


def _explain(commands: Commands) -> None:
    help = "say what an error means, or which part killed a session"
    made = _command(commands, "explain", help, "recoveryd explain --session ses_1a2b")
    made.add_argument("text", nargs="?", metavar="TEXT", help="the error's text; - reads it from stdin")
    made.add_argument("--jsonl", action="store_true", help="read one JSON object a line from stdin, print one a line")
    made.add_argument("--session", metavar="ID", help="the session to look into")


def _history(commands: Commands) -> None:
    made = _command(commands, "history", "list the recoveries, newest first", "recoveryd history --limit 5")
    made.add_argument("--session", metavar="ID", help="those of this session")
    made.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default: 20)")


def _show(commands: Commands) -> None:
    made = _command(commands, "show", "show what a recovery changed, as a diff", "recoveryd show r1a2b3c4d")
    made.add_argument("id", metavar="ID", help="of the recovery; its beginning is enough")


def _undo(commands: Commands) -> None:
    made = _command(commands, "undo", "take a recovery back, byte for byte", "recoveryd undo r1a2b3c4d --dry-run")
    made.add_argument("id", metavar="ID", help="of the recovery; its beginning is enough")
    made.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    made.add_argument(
        "--force", action="store_true", help="also if the session changed since; what is there now is kept"
    )


def _config(commands: Commands) -> None:
    help = "where the configuration is, what it says, and whether it is sound"
    made = _command(commands, "config", help, "recoveryd config show")
    made.add_argument(
        "what", choices=["path", "show", "check"], help="the file's path; all settings; a check of the file"
    )


def _install(commands: Commands) -> None:
    help = "have recoveryd run as a service of yours, now and at each login"
    made = _command(commands, "install", help, "recoveryd install --strict")
    made.add_argument("--print", action="store_true", help="show the unit, and write nothing")
    made.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="let it write to the stores and its own state alone (systemd; default: as it was installed before)",
    )


def _uninstall(commands: Commands) -> None:
    help = "take the service out; the ledger stays, for `undo`"
    made = _command(commands, "uninstall", help, "recoveryd uninstall")
    made.add_argument("--purge", action="store_true", help="remove the ledger and the configuration, too")
    made.add_argument("--yes", action="store_true", help="purge without being asked")


def _demo(commands: Commands) -> None:
    help = "break one session of each kind in a throw-away store, and watch them being healed"
    _command(commands, "demo", help, "recoveryd demo")
