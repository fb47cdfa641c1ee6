"""What happened, as a person would say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from recoveryd.edits import deeds
from recoveryd.model import Edit, Event, Failure, Json, Kind, Outcome
from recoveryd.plan import UNREPAIRED
from recoveryd.repairs import REPAIRS
from recoveryd.toast import BODY_LENGTH, Button, Toast, clean


@dataclass(frozen=True, slots=True)
class Deed:
    """An action of an edit in words: to do it, having done it, and what it is done to, once and `{n}` times."""

    do: str
    did: str
    one: str
    several: str

    def said(self, n: int, kind: Kind | None, *, done: bool = True) -> str:
        """ "took out 2 thinking blocks the provider no longer accepts" """
        what = (self.one if n == 1 else self.several).format(n=n, why=_WHY.get(kind, "") if kind is not None else "")
        return f"{self.did if done else self.do} {what}"


ACTIONS: Mapping[str, Deed] = {
    "cancel_tool": Deed(
        "end", "ended", "1 unfinished tool call as cancelled", "{n} unfinished tool calls as cancelled"
    ),
    "split_step": Deed(
        "put", "put", "1 tool result right behind its call", "{n} tool results right behind their calls"
    ),
    "set_aside_thinking": Deed("take out", "took out", "1 thinking block{why}", "{n} thinking blocks{why}"),
    "set_aside_blank": Deed("take out", "took out", "1 blank text", "{n} blank texts"),
    "mend_call": Deed(
        "give", "gave", "1 tool call a legal id, name or input", "{n} tool calls legal ids, names or inputs"
    ),
    "mend_unicode": Deed("replace", "replaced", "half a character in 1 part", "half characters in {n} parts"),
    "take_out_media": Deed("replace", "replaced", "1 image or file by a note", "{n} images or files by notes"),
    "set_aside_unreadable": Deed("set aside", "set aside", "1 part that can't be read", "{n} parts that can't be read"),
    "mend_part": Deed("complete", "completed", "1 part that can't be sent", "{n} parts that can't be sent"),
    "placeholder": Deed("fill", "filled", "1 gap with a placeholder", "{n} gaps with placeholders"),
    "renumber": Deed(
        "give",
        "gave",
        "1 old message and its parts ids that sort before the new ones",
        "{n} old messages and their parts ids that sort before the new ones",
    ),
    "end_tool": Deed("end", "ended", "1 tool call that was cut off", "{n} tool calls that were cut off"),
    "end_turn": Deed("close", "closed", "the turn that was cut off", "{n} turns that were cut off"),
    "close_turn": Deed("close", "closed", "the open turn", "{n} open turns"),
}
_OWN = (Kind.THINKING_BLOCK_MODIFIED, Kind.WRAPPED_IDS, Kind.INTERRUPTED_TURN)  # repaired, not by one of `REPAIRS`
_WHY = {
    Kind.THINKING_SIGNATURE_INVALID: " the provider no longer accepts",
    Kind.THINKING_BLOCK_MODIFIED: " the provider no longer accepts",
}

# What a refusal is about, for a person who never saw the provider's words.
CAUSES: Mapping[Kind, str] = {
    Kind.TOOL_RESULT_MISSING: "a tool call without its result",
    Kind.TOOL_RESULT_ORPHAN: "a tool result without its call",
    Kind.THINKING_BLOCK_ORDER: "a turn that must begin with thinking and does not",
    Kind.THINKING_DISABLED_VIOLATION: "thinking in an open turn while thinking is off",
    Kind.THINKING_SIGNATURE_INVALID: "thinking with a signature that is no longer valid",
    Kind.THINKING_BLOCK_MODIFIED: "thinking that is not as the model wrote it",
    Kind.THINKING_FINAL_BLOCK: "a message that ends in thinking",
    Kind.EMPTY_CONTENT: "an empty message or text",
    Kind.ROLE_ORDER: "messages in an order that the provider does not take",
    Kind.TOOL_CALL_INVALID: "a tool call with an illegal id, name or input",
    Kind.INVALID_UNICODE: "half a character that can't be sent",
    Kind.MEDIA_REJECTED: "an image or file that the provider does not take",
    Kind.ASSISTANT_PREFILL: "a request that ends with the assistant's words",
    Kind.TRAILING_WHITESPACE: "an answer that ends in white space",
    Kind.REASONING_ITEM: "a reasoning item that the provider does not find or can't read",
    Kind.REASONING_MISSING: "reasoning that the provider wants back",
    Kind.CONTEXT_OVERFLOW: "a conversation longer than the model can take",
    Kind.UNSENDABLE_PART: "a part that the client itself can't send",
    Kind.WRAPPED_IDS: "ids that started again, so that the client takes new prompts for old ones",
    Kind.INTERRUPTED_TURN: "a turn that was cut off when the client went away",
}


def status_line(roots: Sequence[str], healed: int) -> str:
    """What the daemon does, for `systemctl status`: the stores it watches, and how many recoveries today brought."""
    more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
    doing = f"watching {', '.join(roots[:3])}{more}" if roots else "waiting for OpenCode's first session"
    return f"{doing}; {healed or 'no'} {'recovery' if healed == 1 else 'recoveries'} today"


def actions_of(edits: Sequence[Edit]) -> tuple[str, ...]:
    """What was done, one name a deed."""
    return tuple(edit.action for edit in deeds(edits))


def sentence(actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> str:
    """ "Took out 2 thinking blocks the provider no longer accepts, closed the open turn", or "Would take out ..." """
    counts = Counter(actions)
    said = [deed.said(n, kind, done=done) for action, deed in ACTIONS.items() if (n := counts.get(action))]
    return capital(("would " if said and not done else "") + ", ".join(said))


def capital(text: str) -> str:
    """As a sentence begins; the rest stays."""
    return text[:1].upper() + text[1:]


def moment(ms: int) -> str:
    """Milliseconds since the epoch as 2026-08-14T11:19:55.136Z."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"  # no year that has a name


def told(evidence: Json) -> str:
    """Evidence on one line: "message msg_1, status 400"."""
    return ", ".join(f"{key.replace('_', ' ')} {_value(value)}" for key, value in evidence.items() if value)


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        more = f" and {len(value) - 3} more" if len(value) > 3 else ""
        return " ".join(map(str, value[:3])) + more
    return "yes" if value is True else str(value)


def cause(kind: Kind | None) -> str:
    return CAUSES[kind] if kind is not None else "an error that recoveryd does not know"


def repairable(kind: Kind | None) -> bool:
    """Whether recoveryd has an edit for this kind at all."""
    return kind in REPAIRS or kind in _OWN


def remedy(kind: Kind | None) -> str:
    """What recoveryd would do, or what the user can."""
    if kind is None:
        return "Nothing is edited."
    if repairable(kind):
        return REMEDIES[kind]
    return f"Nothing is edited: {UNREPAIRED.get(kind, 'recoveryd has no repair for this yet')}."


REMEDIES: Mapping[Kind, str] = {
    Kind.TOOL_RESULT_MISSING: "The result is put right behind its call, or the unfinished call is ended as cancelled.",
    Kind.THINKING_BLOCK_ORDER: "The open turn is closed with a short text; nothing is taken out.",
    Kind.THINKING_DISABLED_VIOLATION: "The open turn is closed with a short text; nothing is taken out.",
    Kind.THINKING_SIGNATURE_INVALID: "The rejected thinking and all thinking behind it are set aside in the ledger.",
    Kind.THINKING_BLOCK_MODIFIED: "The changed thinking and all thinking behind it are set aside in the ledger.",
    Kind.THINKING_FINAL_BLOCK: "A placeholder text is put behind the thinking.",
    Kind.EMPTY_CONTENT: "The empty text is replaced by a placeholder, or set aside where there is content beside it.",
    Kind.ROLE_ORDER: "The user message that went missing gets a placeholder text.",
    Kind.TOOL_CALL_INVALID: "The call gets a legal id, name or input; its result goes with it.",
    Kind.INVALID_UNICODE: "The half character is replaced by U+FFFD; thinking that holds one is set aside.",
    Kind.MEDIA_REJECTED: "The image or file is replaced by a text that names it; the original is in the ledger.",
    Kind.UNSENDABLE_PART: "The part is completed, or set aside in the ledger if it can't be read.",
    Kind.WRAPPED_IDS: "The old messages and parts get ids that sort before the new ones; nothing else is changed.",
    Kind.INTERRUPTED_TURN: "The turn is closed as the client does when it is stopped; its open tools end as aborted.",
}


def gave_up_event(name: str, failure: Failure, kind: Kind, reason: str, title: str = "") -> Event:
    """The last notice of a session that is at its cap."""
    detail = f"{reason} It is left alone until a prompt is answered."
    return Event(name, failure.store, failure.session, title, failure.message, kind, Outcome.GAVE_UP, detail)


def marked(event: Event) -> str:
    """How each line of the log about a recovery begins: its session, its id, and what became of it so far."""
    return f"{event.session} {event.id} {event.outcome}"


def headline(event: Event) -> str:
    """One line for the log: what was wrong, and what became of it."""
    return f"{marked(event)}: {cause(event.kind)} ({event.detail})"


def notice(event: Event, buttons: tuple[Button, ...] = ()) -> Toast:
    """A desktop notice: which session, what was done and where, how to go on."""
    news = "resumed" if event.resumed and event.outcome is not Outcome.HEALED else _NEWS.get(event.outcome, "stuck")
    name = clean(event.title, 80) or event.session
    body = _healed(event) if event.outcome is Outcome.HEALED else f"{_unhealed(event)}\n{_next_step(event)}"
    return Toast(f"Session {news}: {name}", body.strip(), buttons, news, event.session, name)


_NEWS = {Outcome.HEALED: "healed", Outcome.GAVE_UP: "given up"}
_LINES = 5  # deeds that "Show" shows


def _healed(event: Event) -> str:
    degraded = " The model goes on without that thinking." if "set_aside_thinking" in event.actions else ""
    place = where(event.places)
    did = f"{place}: {event.detail[:1].lower()}{event.detail[1:]}" if place else event.detail
    rest = f"{degraded}\n{_going_on(event)}\nUndo: recoveryd undo {event.id}"
    return clean(f"{capital(did)}.", BODY_LENGTH - len(rest)) + rest


def _going_on(event: Event) -> str:
    """What there is to do after a repair: nothing, if the session was told to go on."""
    if event.resumed:
        return "It was told to go on."
    problem = f"It could not be resumed: {event.not_resumed}. " if event.not_resumed else ""
    return f"{problem}Say “continue” to go on; an open TUI shows it once the session is loaded again."


def _unhealed(event: Event) -> str:
    if event.resumed:
        return f"It was refused for {cause(event.kind)}."
    if event.outcome is Outcome.GAVE_UP or event.kind is Kind.CONTEXT_OVERFLOW:  # said in the detail
        return event.detail
    return f"{capital(cause(event.kind))}. {event.detail}"


def _next_step(event: Event) -> str:
    """What a refusal asks of the user is in its detail."""
    if event.resumed or event.not_resumed:
        return _going_on(event)
    if event.outcome in (Outcome.GAVE_UP, Outcome.NOT_UNDERSTOOD):
        return f"What it is: recoveryd explain --session {event.session}"
    if event.outcome in (Outcome.CONFLICT, Outcome.FAILED):
        return f"To try again: recoveryd scan --repair --session {event.session}"
    return ""


def where(places: Sequence[str]) -> str:
    """ "turn 14, tool bash and 2 more places"; the end of a turn only where that is all."""
    named = list(dict.fromkeys(place for place in places if not place.startswith("end of"))) or list(places[:1])
    more = len(named) - 1
    rest = f" and {more} more place{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{named[0]}{rest}" if named else ""


def details(event: Event) -> Toast:
    """What the button "Show" shows: the deeds of a recovery, one line each, and no content."""
    lines = [f"• {line}" for line in by_place(event.places, event.actions, event.kind)]
    more = [f"and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    body = "\n".join([*(lines[:_LINES] or [f"{event.detail}."]), *more, f"All of it: recoveryd show {event.id}"])
    return Toast(f"What was done: {clean(event.title, 80) or event.session}", body)


def by_place(places: Sequence[str], actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> list[str]:
    """ "turn 14, tool bash: ended 1 unfinished tool call as cancelled", a line for each; to do, if not `done`."""
    counts = Counter(zip(places, actions, strict=False))
    return [f"{place}: {ACTIONS[action].said(n, kind, done=done)}" for (place, action), n in counts.items()]


def buttons(
    event: Event, press: Callable[[str, Event], object], *, can_continue: Callable[[], bool] | None = None
) -> tuple[Button, ...]:
    """The buttons under a healed session; each calls `press(its title, event)`.

    "Continue" is among them unless `can_continue` is None, and offered if that says so: it needs a client.
    """
    if event.outcome is not Outcome.HEALED:
        return ()
    going_on = () if can_continue is None else (Button("Continue", partial(press, "Continue", event), can_continue),)
    return (*going_on, *(Button(title, partial(press, title, event)) for title in ("Undo", "Show")))
