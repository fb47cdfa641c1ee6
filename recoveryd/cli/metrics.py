"""`recoveryd metrics`"""

from __future__ import annotations

import argparse
import sys

from recoveryd.cli.common import config_of, known_ledger, stores_of, whose_by
from recoveryd.cli.output import OK
from recoveryd.diagnose import Context, NeedsUser
from recoveryd.ledger import Upkeep
from recoveryd.settings import paths
from recoveryd.tell import metrics as text


def metrics(arguments: argparse.Namespace) -> int:
    """Run `recoveryd metrics`: print what came of all recoveries as OpenMetrics text."""
    config = config_of(arguments)
    stores = stores_of(config)
    with known_ledger() as ledger:
        stuck = NeedsUser().count(Context(ledger, config, paths.state_dir()), stores)
        sys.stdout.write(text(Upkeep(ledger).ended(), stuck, whose_by(config, ledger).title))
    return OK
