"""`recoveryd metrics`"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from recoveryd.cli.common import config_of, known_ledger, stores_of
from recoveryd.cli.output import OK
from recoveryd.clients import client_title
from recoveryd.diagnose import needs_user
from recoveryd.ledger import Upkeep
from recoveryd.tell import metrics as text


def metrics(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    stores, titles = stores_of(config), partial(client_title, config=config)
    with known_ledger() as ledger:
        sys.stdout.write(text(Upkeep(ledger).ended(), needs_user(ledger, stores), titles))
    return OK
