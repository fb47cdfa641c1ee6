"""The kinds of failures in words: what is wrong, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping

from recoveryd.core.kinds import UNREPAIRED
from recoveryd.core.model import Json, Kind
from recoveryd.repair.kinds import REPAIRS

_OWN = (Kind.THINKING_BLOCK_MODIFIED, Kind.WRAPPED_IDS, Kind.INTERRUPTED_TURN)  # repaired, not by one of `REPAIRS`


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
