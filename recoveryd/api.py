"""For a parent system: one error, or one session, without a daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger

from recoveryd.clients import Clients, Config, Store, find_stores, look_up, not_found, read_error
from recoveryd.core import Event, Outcome, is_repairable
from recoveryd.diagnose import Case, Context, diagnose, holding_repair
from recoveryd.disk import private_files
from recoveryd.heal import Recovery, follow_moved, recover_one
from recoveryd.ledger import Ledger
from recoveryd.providers import classify
from recoveryd.settings import paths
from recoveryd.tell import Callbacks


def is_recoverable(error: Mapping[str, Any] | str | BaseException) -> bool:
    """Whether recoveryd has a repair for `error`: as the client records it, as a text, or an exception with one."""
    refused = classify(read_error(error if isinstance(error, Mapping) else str(error)))
    return refused is not None and is_repairable(refused.kind)


def recover(
    session_id: str,
    config: Config | None = None,
    *,
    callbacks: Callbacks | None = None,
    state_dir: Path | None = None,
    stores: Sequence[Store] | None = None,
) -> Event | None:
    """Repair one session now, whatever was tried before, also beside a running daemon; None when it is not stuck
    on anything that is known, or was healed already and waits for a prompt.

    It takes more than a second: what is repaired is read back after one, and made again if the client wrote over it.
    `Event.outcome` says what became of it; `pending` means "not now" (a turn runs, or `dry_run` is set), `detail` says
    why. `state_dir` and `stores` are found as the daemon finds them. `enabled` and `auto_resume` are settings of the
    daemon, and a pause is for it alone: who calls this wants the repair. Raises `NotFoundError` when no store has a
    message of the session, `RecoverydError` when the ledger can't be used; troubles with the store are outcomes.
    """
    config = config or Config()
    state = private_files.make_folder(state_dir or paths.state_dir())
    if stores is None:
        stores = find_stores(config)
    found, unread = look_up(Clients(config), stores, session_id)
    for error in unread.values():  # one broken store never stops the others
        logger.warning("{}", error.message)
    if not found:
        raise not_found(stores, session_id, unread.values())
    with Ledger(paths.ledger_file(state)) as ledger:
        for store in found:
            follow_moved(store, ledger)
            recovery = Recovery(Context(ledger, config, state), callbacks=callbacks)
            event = _recover(store, session_id, recovery)
            if event is not None:
                return event
    return None


def _recover(store: Store, session: str, recovery: Recovery) -> Event | None:
    context = recovery.context
    found = diagnose(context, store, session)
    if found is None or found.refused is None or holding_repair(context, store, found) is not None:
        return None
    event = recover_one(recovery, Case.begin(store, found.failure, found.refused))
    if event.outcome is not Outcome.PENDING:
        recovery.on_complete(event)
    return event
