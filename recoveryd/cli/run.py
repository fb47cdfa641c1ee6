"""`recoveryd run`"""

from __future__ import annotations

import argparse

from recoveryd import paths
from recoveryd.cli.common import config_of
from recoveryd.daemon import Daemon
from recoveryd.logs import setup


def run(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    if arguments.dry_run:
        config = config.model_copy(update={"dry_run": True})
    state = paths.make_private(paths.state_dir())
    setup(arguments.log_level or config.log.level, paths.log_file(state))
    Daemon(config, state_dir=state).run(signals=True)
    return 0
