"""Tell what a recovery came to: in the log, to callbacks, on the desktop and in the client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from loguru import logger

from recoveryd.clients import About, Clients, Store
from recoveryd.core import Entry, Event, Failure, Outcome, RecoverydError, clean
from recoveryd.diagnose import Case, Context
from recoveryd.ledger import Ledger, peek
from recoveryd.tell.event_words import headline, log_prefix, name_of, notice, notice_buttons, show_notice
from recoveryd.tell.failure_words import NOT_AGAIN
from recoveryd.tell.notifier import Notifier
from recoveryd.tell.toast import BODY_LENGTH, TITLE_LENGTH, Toast
from recoveryd.tell.tui import TuiToasts

Press = Callable[[str, Case], object]


class Teller:
    """Tells each recovery once. `press(title, case)` is called for the buttons "Continue" and "Undo".

    It is called in a thread of the notice's own; "Show" is answered here.
    """

    def __init__(
        self, context: Context, notifier: Notifier, on_complete: Callable[[Event], object], press: Press
    ) -> None:
        config = context.config
        self._ledger = context.ledger
        self._notifier = notifier
        self._on_complete = on_complete
        self._press = press
        # One of its own: what a slow toast costs in patience with a client may not cost a resume.
        self._clients = Clients(config)
        self._tui = TuiToasts(enabled=config.notify.tui and not config.notify.quiet)
        self.told = 0  # recoveries that came to an end, healed or not

    def tell(self, case: Case, *, logged: bool = False) -> None:
        """Tell everywhere what a case came to: as a notice only if it is news, in the log unless it was `logged`."""
        event = case.event
        if event.repeated:
            logger.debug("{}", headline(event))
            return
        self.told += 1
        well = event.outcome is Outcome.HEALED and not event.refused_since
        level = "DEBUG" if logged else "INFO" if well else "WARNING"
        logger.log(level, "{}", headline(event))
        self._on_complete(event)
        case = case.updated(changes=())  # buttons wait for minutes, and read them in the ledger
        if self._told_before(event):
            return
        about, failure = _about(case.store, case.session), case.failure
        directory = about.directory
        client = self._clients.of(case.store)
        server = client.server
        goes_on = None if event.resumed or event.ahead else partial(server.has, failure, directory)
        pressed = notice_buttons(case.event, partial(self._pressed, case), can_continue=goes_on)
        go_on, of_subagent = client.go_on(case.store, event.session), about.parent is not None
        toast = notice(case.event, pressed, go_on, client.title, of_subagent=of_subagent)
        self._notifier.send(toast)
        title, text = clean(toast.title, TITLE_LENGTH), clean(toast.body, BODY_LENGTH, keep="\n")
        variant = "success" if well else "warning"
        self._tui.send(server, failure, directory, title, text, variant, partial(self._holds, event))

    def answer(self, event: Event, title: str, says: str) -> None:
        """Show in a notice what came of a button."""
        logger.info("{}: {}: {}", log_prefix(event), title, says)
        self._notifier.send(Toast(title, f"{name_of(event)}: {says}", logged=f"{title}: {event.session}: {says}"))

    def undone(self, store: Store, event: Event) -> None:
        """Show in the client that a recovery was taken back."""
        show_undone(self._clients, store, event, self._tui.send)

    def close(self) -> None:
        """Give the notices in the client up to two seconds."""
        self._tui.close()

    def _pressed(self, case: Case, title: str, event: Event) -> None:
        if title == "Show":
            self._notifier.send(show_notice(event))
        else:
            self._press(title, case)

    def _holds(self, event: Event) -> bool:
        """Whether what was told of a recovery still is so: it was not undone, and its session not repaired again. Asked
        in another thread, so the ledger is opened for it.
        """

        def work(ledger: Ledger) -> bool:
            known = ledger.find(event.id)
            return known is None or not (known.outcome.taken_back or ledger.later(known))

        return peek(self._ledger.file.path, work) is not False

    def _told_before(self, event: Event) -> bool:
        """Whether the user knows: what is not repaired (a conversation that is too long, say) is told once a
        session.
        """
        if event.not_resumed or event.outcome not in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD):
            return False
        now = (event.kind, event.outcome, event.detail)
        said = self._ledger.history(50, event.session, event.store)
        return any(e.id != event.id and (e.kind, e.outcome, e.detail) == now for e in said)


def show_undone(clients: Clients, store: Store, what: Event | Entry, send: Callable[..., object]) -> None:
    """Tell in the client that has the session that a recovery was taken back; `send(server, …)` as `Server.toast`."""
    try:
        session, found = store.load(what.session), store.look(what.session).failure
    except RecoverydError:  # it is undone all the same
        return
    failed = session.message(what.message)
    if failed is not None:
        known = found is not None and found.message == what.message
        failure = found if found and known else Failure(what.store, what.session, what.message, failed.created)
        says = f"{what.id} was taken back, and the session {NOT_AGAIN}."
        title = clean(f"Undone: {what.title or what.session}", TITLE_LENGTH)
        send(clients.of(store).server, failure, session.directory, title, says, "info")


def _about(store: Store, session: str) -> About:
    try:
        return store.about(session)
    except RecoverydError:  # the session is gone, or its store
        return About()
