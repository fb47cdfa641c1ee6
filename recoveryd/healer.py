"""What the daemon does about one session: look, repair, read back, tell."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from loguru import logger

from recoveryd.callbacks import Callbacks
from recoveryd.config import Config
from recoveryd.errors import RecoverydError
from recoveryd.hooks import Commands
from recoveryd.ledger import Ledger, new_id
from recoveryd.memory import give_back
from recoveryd.model import Event, Failure, Kind, Outcome
from recoveryd.news import News
from recoveryd.notify import Notifier, Toast
from recoveryd.recovery import Recovery
from recoveryd.report import gave_up_event, headline, notice
from recoveryd.rules import VERSION
from recoveryd.schedule import Schedule
from recoveryd.stores.base import Store
from recoveryd.triage import SETTLE_S, Next, Triage

CONFIRM_S = 1.0
REST_S = 3.0

# open: to be looked at again at the next sweep; old: stuck for too long to be news; done: nothing more to do
Attended = Literal["open", "old", "done"]


class Healer:
    """Attends to sessions, one at a time, in the thread of the daemon. What is due later goes into `schedule`."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        state_dir: Path,
        schedule: Schedule,
        notifier: Notifier,
        news: News,
        callbacks: Callbacks | None = None,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._schedule = schedule
        self._notifier = notifier
        self._news = news
        self._triage = Triage(ledger, config, lambda store, why: news.say((store, "live"), why))
        self._hooks = Commands(config.hooks)
        both = (callbacks or Callbacks()).then(self._hooks.callbacks)
        self._recovery = Recovery(ledger, config, state_dir, callbacks=both)
        self._unconfirmed: dict[str, tuple[float, Callable[[], Event]]] = {}  # by recovery: when it is due, and how
        self._open: set[tuple[str, str]] = set()
        self.told = 0  # recoveries that came to an end, healed or not

    def open(self, store: Store) -> list[str]:
        """The sessions that the next sweep looks at again."""
        return [session for store_id, session in self._open if store_id == store.id]

    def later(self, store: Store, session: str, seconds: float = SETTLE_S) -> None:
        """Attend to a session once nobody has touched it for a moment."""
        self._schedule.at(seconds, (store.id, session), lambda: self.attend(store, session))

    def attend(self, store: Store, session: str) -> Attended:
        """Look at a session now, and repair it if it is to be repaired. Raises nothing."""
        attended: Attended = "open"
        try:
            attended = self._look(store, session)
        except RecoverydError as error:
            self._news.say((store.id, session), f"session {session}: {error.message} {error.hint}".strip())
        except Exception:
            logger.exception("session {}: a fault of recoveryd; the session is left alone", session)
        (self._open.add if attended == "open" else self._open.discard)((store.id, session))
        return attended

    def finish(self) -> None:
        """Before the daemon goes: what was repaired a moment ago is read back and told, hooks end."""
        for recovery in list(self._unconfirmed):
            self._news.safely("confirm", partial(self._confirm, recovery))
        self._hooks.close()

    def _look(self, store: Store, session: str) -> Attended:
        verdict = self._triage.judge(store, session)
        if verdict.next is Next.AGAIN:
            if verdict.wait:
                self.later(store, session, verdict.wait)
            return "open"
        if verdict.next is Next.TOO_OLD:
            return "old"
        failure, kind = verdict.failure, verdict.kind
        if failure is None or kind is None or verdict.next is Next.NOTHING:
            if verdict.reason:
                logger.debug("session {}: {}", session, verdict.reason)
            return "done"
        if verdict.next is Next.RECOVER:
            self._confirm_what_is_due()
            return self._recover(store, failure, kind)
        event = gave_up_event(new_id(), failure, kind, verdict.reason)
        self._ledger.record(
            event.id,
            failure,
            "",
            kind,
            Outcome.GAVE_UP,
            event.detail,
            session_state=verdict.state,
            rules_version=VERSION,
        )
        self._tell(event)
        return "done"

    def _recover(self, store: Store, failure: Failure, kind: Kind) -> Attended:
        about = (store.id, failure.message)
        if self._config.dry_run or not self._config.enabled:
            self._news.say(about, f"session {failure.session}: {kind}; nothing is written (dry run)")
            return "open"  # a dry run does not count
        event = self._recovery.attempt(store, failure, kind)
        if event.outcome is Outcome.HEALED:
            name, waiting = event.id, replace(event, changes=())  # a thousand may wait: their images are in the ledger
            due = time.monotonic() + CONFIRM_S
            self._unconfirmed[name] = due, lambda: self._recovery.confirm(store, failure, waiting)
            self._schedule.at(CONFIRM_S, ("confirm", name), lambda: self._confirm(name))
        elif event.outcome is Outcome.PENDING:
            self._news.say(about, f"session {failure.session}: {event.detail}")
            return "open"
        else:
            self._tell(event)
        return "done"

    def _confirm_what_is_due(self) -> None:
        """While a thousand sessions fail at once: what waits to be read back may not add up behind them."""
        for recovery, (due, _) in list(self._unconfirmed.items()):
            if due > time.monotonic():
                break
            self._news.safely("confirm", partial(self._confirm, recovery))

    def _confirm(self, recovery: str) -> None:
        if recovery in self._unconfirmed:
            _, confirm = self._unconfirmed[recovery]
            event = confirm()
            del self._unconfirmed[recovery]
            self._tell(event)
            self._schedule.at(REST_S, "rest", give_back)  # once no other recovery follows

    def _tell(self, event: Event) -> None:
        self.told += 1
        level = "INFO" if event.outcome is Outcome.HEALED else "WARNING"
        logger.log(level, "{}", headline(event))
        self._recovery.on_complete(event)
        if not self._told_before(event):
            self._notifier.send(Toast(*notice(event)))

    def _told_before(self, event: Event) -> bool:
        """What is not repaired (a conversation that is too long, say) is said once a session, not at each prompt."""
        if event.outcome not in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD):
            return False
        now = (event.store, event.kind, event.outcome, event.detail)
        said = self._ledger.history(50, event.session)
        return any(e.id != event.id and (e.store, e.kind, e.outcome, e.detail) == now for e in said)
