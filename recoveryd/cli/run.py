"""`recoveryd run`"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import time
from typing import TextIO, cast

from loguru import logger

from recoveryd.cli.common import config_of
from recoveryd.clients import Config
from recoveryd.core import ConfigError, RecoverydError, ReplacedError, __version__
from recoveryd.daemon import Daemon
from recoveryd.disk import private_files
from recoveryd.settings import paths, setup

_SINCE = "_RECOVERYD_SINCE"  # tells the program that goes on in this process when the first one began


class _Nowhere(io.TextIOBase):
    """A stream that drops all: launchd keeps what is on stderr in a file that nobody rotates, and the log has its
    own.
    """

    def write(self, text: str) -> int:
        return len(text)


def run(arguments: argparse.Namespace) -> int:
    """Run `recoveryd run`: the daemon, until a signal ends it."""
    started = float(os.environ.pop(_SINCE, time.time()))
    log = paths.log_file(state := private_files.make_folder(paths.state_dir()))
    stream = cast(TextIO, _Nowhere()) if arguments.launchd else sys.stderr

    def load() -> Config:
        config = config_of(arguments)
        if arguments.dry_run:
            config = config.model_copy(update={"dry_run": True})
        shown = "WARNING" if arguments.quiet else "DEBUG" if arguments.verbose else None
        setup(arguments.log_level or config.log.level, log, stream, shown)
        return config

    try:
        config = load()
    except ConfigError as error:
        if not arguments.launchd:
            raise
        setup("INFO", log, stream)
        logger.error("recoveryd does not run:\n{}", error)
        return 0
    logger.info("recoveryd {} starts (pid {}){}", __version__, os.getpid(), _idle(config))
    try:
        Daemon(config, state_dir=state, load=load, started=started).run(signals=True)
    except ReplacedError:
        os.environ[_SINCE] = str(started)
        return _anew()
    except RecoverydError as error:
        logger.error("recoveryd ends: {}", error)
        return error.exit_code
    except Exception:
        logger.exception("recoveryd ends by a fault of its own")
        return 1
    logger.info("recoveryd ends")
    return 0


def _anew() -> int:
    """Start the program that is installed now in this process; return only where that fails."""
    logger.info("recoveryd ends; what is installed now, if anything is, starts in its place")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # stays so over exec, until `handle_signals`: it reads all anew anyway
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    except OSError as error:
        logger.error("recoveryd can't be started anew after an upgrade or removal: {}", error.strerror or error)
    return ReplacedError.exit_code


def _idle(config: Config) -> str:
    """Tell why nothing will be repaired, if that is so."""
    if not config.enabled:
        return ": nothing is written (`enabled = false`)"
    return ": nothing is written (dry run)" if config.dry_run else ""
