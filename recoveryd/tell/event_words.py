"""Tell what happened in sentences for a person: log lines and notices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recoveryd.core import Event, Outcome, capital, clean, command_line, kind_info, uncapital
from recoveryd.tell.actions import deeds_by_place
from recoveryd.tell.failure_words import cause
from recoveryd.tell.toast import AHEAD, BODY_LENGTH, Button, Toast
from recoveryd.tell.where import places_line


def log_prefix(event: Event) -> str:
    """Write the words that each log line of a recovery begins with: its session, its id if it is on record, and its
    outcome so far.
    """
    return " ".join(filter(None, (event.session, event.id, event.outcome)))


def name_of(event: Event) -> str:
    """Name the session of an event in a notice: short enough for what is said of it to stand beside it."""
    return clean(event.title, 80) or event.session


def headline(event: Event) -> str:
    """Write one line for the log: what was wrong, and what became of it."""
    since = "; a later prompt was refused for a reason that is not known" if event.refused_since else ""
    return f"{log_prefix(event)}: {cause(event.kind)} ({event.detail}){since}"


def notice(event: Event, buttons: tuple[Button, ...], go_on: str, who: str, *, of_subagent: bool = False) -> Toast:
    """Make the desktop notice of an event: whose session, what was done and where, how to go on (`Client.go_on`).

    `who`: what people call its client. A subagent's is told as such: title and way on are those of who asked it.
    """
    healed = event.outcome is Outcome.HEALED
    stays = "unanswered" if kind_info(event.kind).cleared_by_prompt else "stuck"
    news = "resumed" if event.resumed and event.outcome is not Outcome.HEALED else _NEWS.get(event.outcome, stays)
    news = "refused again" if event.refused_since else AHEAD if event.ahead and healed else news
    name = name_of(event)
    body = _healed(event, go_on) if healed else f"{_unhealed(event)}\n{_next_step(event, go_on)}"
    says, body = f"{who} {'subagent' if of_subagent else 'session'} {news}", body.strip()
    who = f"{who} subagent" if of_subagent else who
    return Toast(f"{says}: {name}", body, buttons, news, event.session, name, who, f"{says}: {event.session}: {body}")


_NEWS = {Outcome.HEALED: "healed", Outcome.GAVE_UP: "given up"}
_LINES = 5  # deeds that "Show" shows


def _healed(event: Event, go_on: str) -> str:
    degraded = " The model goes on without that thinking." if "set_aside_thinking" in event.actions else ""
    place = (
        "" if kind_info(event.kind).shortened else places_line(event.places)
    )  # all of it was too long, no place in it
    did = f"{place}: {uncapital(event.detail)}" if place else event.detail
    undo = f"Undo: {command_line('undo', event.id)}"
    told = clean(f"{capital(did)}.", BODY_LENGTH - len(f"{degraded}\n{_going_on(event, go_on)}\n{undo}"))
    return "\n".join(filter(None, (told + degraded, _going_on(event, still_to_tell(told, go_on)), undo)))


def still_to_tell(told: str, go_on: str) -> str:
    """Return how to go on (`Client.go_on`); "" where the command for it was told already."""
    return "" if go_on.rpartition(": ")[2].strip("`") in told else go_on


def _going_on(event: Event, go_on: str) -> str:
    """Tell what there is to do after a repair: nothing, if the session was told to go on."""
    if event.refused_since:
        since = "Since then a prompt was refused for a reason that recoveryd does not know"
        return f"{since}: {command_line('explain', session=event.session)}"
    if event.resumed:
        return "It was told to go on."
    if event.ahead:
        return "Go on as usual: its next prompt would have been refused."
    problem = f"It could not be resumed: {event.not_resumed}." if event.not_resumed else ""
    then = still_to_tell(problem, go_on)
    return " ".join(filter(None, (problem, then and f"{then}.")))


def _unhealed(event: Event) -> str:
    if event.resumed:
        return f"It was refused for {cause(event.kind)}."
    if event.outcome is Outcome.GAVE_UP:  # said in the detail
        return event.detail
    return f"{capital(cause(event.kind))}. {event.detail}"


def _next_step(event: Event, go_on: str) -> str:
    """Tell what to do after a failure. What a refusal asks of the user is in its detail already."""
    if event.resumed or event.not_resumed:
        return _going_on(event, go_on)
    if event.outcome in (Outcome.GAVE_UP, Outcome.NOT_UNDERSTOOD):
        return f"What it is: {command_line('explain', session=event.session)}"
    if event.outcome in (Outcome.CONFLICT, Outcome.FAILED):
        return f"To try again: {command_line('scan', '--repair', session=event.session)}"
    return ""


def show_notice(event: Event) -> Toast:
    """Make the notice that the button "Show" shows: the deeds of a recovery, one line each, and no content."""
    lines = [f"• {line}" for line in deeds_by_place(event.places, event.actions, event.kind)]
    more = [f"and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    whole = f"All of it: {command_line('show', event.id)}"
    body = "\n".join([*(lines[:_LINES] or [f"{event.detail}."]), *more, whole])
    logged = f"What was done: {event.session}: {body}"
    return Toast(f"What was done: {name_of(event)}", body, logged=logged)


def notice_buttons(
    event: Event, press: Callable[[str, Event], object], *, can_continue: Callable[[], bool] | None = None
) -> tuple[Button, ...]:
    """Make the buttons below the notice of a healed session; each calls `press(its title, event)`.

    "Continue" is among them unless `can_continue` is None, and offered if that says so: it needs a client.
    """
    if event.outcome is not Outcome.HEALED:
        return ()
    going_on = () if can_continue is None else (Button("Continue", partial(press, "Continue", event), can_continue),)
    return (*going_on, *(Button(title, partial(press, title, event)) for title in ("Undo", "Show")))
