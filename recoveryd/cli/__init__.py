"""The command line: one parser, one function a command, one place that prints."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from recoveryd.cli.output import complain, error_document, to_nowhere
from recoveryd.core import RecoverydError, going_by

__all__ = ["main"]


# What the system says of a stream that takes no more; all else that goes wrong with files is a RecoverydError by now.
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 fine, 1 something is wrong, 2 usage, 3 not found, 4 refused, 75 busy,
    78 bad configuration."""
    _make_streams_usable()
    code = 0
    try:
        try:
            code = _run(argv)
        finally:
            sys.stdout.flush()  # what can't be written, the help too, is found out here and not when Python ends
    except BrokenPipeError:
        to_nowhere(sys.stdout)  # `recoveryd history | head`: nobody reads on, which is no error, nor hides one
    except OSError as error:
        if error.filename is not None or error.errno not in _NOT_WRITTEN:
            raise
        to_nowhere(sys.stdout)
        complain(f"The output can't be written: {error.strerror or error}.")
        return 1
    return code


def _run(argv: Sequence[str] | None) -> int:
    from recoveryd.cli.parser import make_parser

    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    as_json = "--json" in words
    try:
        arguments = make_parser().parse_args(words or ["--help"])
        import_logging()
        from recoveryd.settings import paths, setup  # late: the help needs no configuration

        paths.check_home()
        setup(
            "ERROR" if arguments.quiet else "DEBUG" if arguments.verbose else "WARNING"
        )  # `run` and `demo` set their own; loguru's default prints DEBUG, and variables in a traceback
        with going_by(str(arguments.config.absolute()) if arguments.config else ""):
            return int(arguments.run(arguments))
    except RecoverydError as error:
        if as_json:
            try:
                error_document(error)
            except BrokenPipeError:
                to_nowhere(sys.stdout)
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def import_logging() -> None:
    """Import loguru without asyncio, which, with TLS, is 3 MiB of an idle daemon that uses neither.

    What loguru takes from it is one function, for sinks that are coroutines.
    """
    if "asyncio" in sys.modules:
        return
    stand_in = ModuleType("asyncio")
    vars(stand_in)["get_running_loop"] = lambda: import_module("asyncio").get_running_loop()
    sys.modules["asyncio"] = stand_in
    with suppress(ImportError, AttributeError):  # of a loguru that takes more: it is imported in the usual way then
        import_module("loguru")
    del sys.modules["asyncio"]


def _make_streams_usable() -> None:
    """Make the streams usable: one that was closed before we began leads nowhere; a title may hold what this terminal
    can't show; a size that is none counts as not told.
    """
    for name in ("COLUMNS", "LINES"):  # 0 is no size, and rich would print nothing
        if not (said := os.environ.get(name, "1")).isdecimal() or not int(said):
            del os.environ[name]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  open until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
