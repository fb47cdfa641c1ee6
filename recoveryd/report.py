"""What happened, as a person would say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from recoveryd.model import Edit, Event, Failure, Json, Kind, Outcome
from recoveryd.plan import UNREPAIRED
from recoveryd.repairs import REPAIRS

# Action of an edit -> what was done, for one and for several.
ACTIONS: Mapping[str, tuple[str, str]] = {
    "cancel_tool": ("ended 1 unfinished tool call as cancelled", "ended {n} unfinished tool calls as cancelled"),
    "split_step": ("put 1 tool result right behind its call", "put {n} tool results right behind their calls"),
    "set_aside_thinking": ("took out 1 thinking block{why}", "took out {n} thinking blocks{why}"),
    "set_aside_blank": ("took out 1 blank text", "took out {n} blank texts"),
    "mend_call": ("gave 1 tool call a legal id, name or input", "gave {n} tool calls legal ids, names or inputs"),
    "mend_unicode": ("replaced half a character in 1 part", "replaced half characters in {n} parts"),
    "take_out_media": ("replaced 1 image or file by a note", "replaced {n} images or files by notes"),
    "set_aside_unreadable": ("set aside 1 part that can't be read", "set aside {n} parts that can't be read"),
    "mend_part": ("completed 1 part that can't be sent", "completed {n} parts that can't be sent"),
    "placeholder": ("filled 1 gap with a placeholder", "filled {n} gaps with placeholders"),
    "renumber": (
        "gave 1 old message and its parts ids that sort before the new ones",
        "gave {n} old messages and their parts ids that sort before the new ones",
    ),
    "end_tool": ("ended 1 tool call that was cut off", "ended {n} tool calls that were cut off"),
    "end_turn": ("closed the turn that was cut off", "closed {n} turns that were cut off"),
    "close_turn": ("closed the open turn", "closed {n} open turns"),
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
    Kind.ROLE_ORDER: "a conversation that does not begin with the user",
    Kind.TOOL_CALL_INVALID: "a tool call with an illegal id, name or input",
    Kind.INVALID_UNICODE: "half a character that can't be sent",
    Kind.MEDIA_REJECTED: "an image or file that the provider does not take",
    Kind.ASSISTANT_PREFILL: "a request that ends with the assistant's words",
    Kind.TRAILING_WHITESPACE: "an answer that ends in white space",
    Kind.REASONING_ITEM: "a reasoning item that the provider does not find",
    Kind.REASONING_MISSING: "reasoning that the provider wants back",
    Kind.CONTEXT_OVERFLOW: "a conversation longer than the model can take",
    Kind.UNSENDABLE_PART: "a part that the client itself can't send",
    Kind.WRAPPED_IDS: "ids that started again, so that the client takes new prompts for old ones",
    Kind.INTERRUPTED_TURN: "a turn that was cut off when the client went away",
}


def actions_of(edits: Sequence[Edit]) -> tuple[str, ...]:
    """The deeds behind `edits`, one name each; two parts of one deed (a closed turn, a new message) count once."""
    halves = {(e.message_id, e.action) for e in edits if e.part_id is None}
    names = []
    for edit in edits:
        opens = edit.action == "close_turn" and (edit.after or {}).get("type") == "step-start"
        if opens or (edit.part_id is not None and (edit.message_id, edit.action) in halves):
            continue
        names.append(edit.action)
    return tuple(names)


def sentence(actions: Sequence[str], kind: Kind | None) -> str:
    """ "Took out 2 thinking blocks the provider no longer accepts, closed the open turn" """
    counts = Counter(actions)
    said = []
    for action, (one, several) in ACTIONS.items():
        if n := counts.get(action):
            why = _WHY.get(kind, "") if kind is not None else ""
            said.append((one if n == 1 else several).format(n=n, why=why))
    text = ", ".join(said)
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
        return "Nothing in the stored session is to blame, so nothing is edited."
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


def gave_up_event(name: str, failure: Failure, kind: Kind, reason: str) -> Event:
    """The last notice of a session that is at its cap."""
    detail = f"{reason} It is left alone until a prompt is answered."
    return Event(name, failure.store, failure.session, "", failure.message, kind, Outcome.GAVE_UP, detail)


def headline(event: Event) -> str:
    """One line for the log: what was wrong, and what became of it."""
    return f"{event.session}: {cause(event.kind)}: {event.outcome} ({event.detail})"


def notice(event: Event) -> tuple[str, str]:
    """Title and body of a desktop notice: which session, what was done, how to go on."""
    title = event.title or event.session
    if event.outcome is Outcome.HEALED:
        taken = "set_aside_thinking" in event.actions
        degraded = " The model goes on without that thinking." if taken else ""
        body = (
            f"{event.detail}.{degraded} Say “continue” to go on; an open TUI shows it once the session is loaded again."
        )
        return f"Session healed: {title}", f"{body} Undo: recoveryd undo {event.id}"
    if event.outcome is Outcome.GAVE_UP:
        return f"Session given up: {title}", event.detail
    about = cause(event.kind)
    return f"Session stuck: {title}", f"{about[:1].upper()}{about[1:]}. {event.detail}"
