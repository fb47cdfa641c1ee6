"""What is known of each kind of failure, one row a kind: in words for people, and in flags for the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recoveryd.core.command_line import command_line
from recoveryd.core.model import Entry, Kind


class KindGroup(StrEnum):
    """Kinds that a provider may name for one another: it names one fault of a request and stops.

    Which of several faults it names is its choice.
    """

    STRUCTURE = "structure"  # which blocks follow each other
    ORDER = "order"  # what a turn begins with; a fault of the structure can bring it about
    SIGNATURE = "signature"  # thinking that the provider no longer accepts; it says either of the same block
    ITEM = "item"  # an item of another provider or account: it says either of one that is reasoning


@dataclass(frozen=True, slots=True)
class KindInfo:
    """All that differs between kinds of failure. The words are parts of sentences as people read them."""

    cause: str  # what a refusal is about, for a person who never saw the provider's words
    about: str = ""  # what its recoveries are about, where nobody need have refused anything; "": the cause
    remedy: str = ""  # what recoveryd does about it, a sentence; "" for a kind that is not repaired
    unrepaired: str = ""  # why it is not repaired, and what its user can do instead; "" if it is, or has no repair yet
    undone: str = "The provider may refuse its next prompt"  # what becomes of the session when a repair is undone
    forced: str = ""  # the same where the session changed or went on since; "": the same words hold
    not_resumed: str = ""  # why a healed session is never told to go on unless a person asks for it
    instead: str = ""  # what its user can do where nothing is repaired, beside going back in the client
    group: KindGroup | None = None  # the kinds that it stands for, and that stand for it
    local: bool = False  # each such fault is settled where it stands, whatever is done about the others
    thinking: bool = False  # about thinking: when it comes again after a repair, the prompt may turn thinking off
    open_turn: bool = False  # an open turn can be the fault itself; any other repair waits until no turn runs
    cleared_by_prompt: bool = False  # no edit is needed: the request from a new prompt ends with that prompt
    waits: bool = False  # it may do no harm until the session is prompted
    new_ids: bool = False  # the repair gives records other ids, and the client goes on under those
    cured_by_client: bool = False  # no provider refuses it: the client whose session it is knows the cure
    by_client: bool = False  # the client fails on it whichever provider it asks
    stopped: bool = False  # the client repeats it until it is stopped, which is all that is done
    shortened: bool = False  # no part is to blame but the length of all of them
    foreseen: bool = False  # what is stored tells it before anybody prompts, and a repair may only add to it
    left_open: bool = False  # the client went away in the middle of a turn, and nobody is answered
    offer: str = ""  # what the user can have made up in its place, where `invent_reasoning` is on and the rules find it
    opt_in: bool = False  # repaired only if the configuration names it

    @property
    def signature(self) -> bool:
        """Whether it is thinking that the provider no longer accepts."""
        return self.group is KindGroup.SIGNATURE


# A model of another provider does not get what only the first can read.
_OTHER_MODEL = "choose another model"
_ENDS_WITH_ASSISTANT = "the request ended with the assistant's words: a new prompt clears it"

KINDS: Mapping[Kind, KindInfo] = {
    Kind.TOOL_RESULT_MISSING: KindInfo(
        cause="a tool call without its result",
        remedy="The result is put right behind its call, or the unfinished call is ended as cancelled.",
        group=KindGroup.STRUCTURE,
        local=True,
        foreseen=True,
    ),
    Kind.TOOL_RESULT_ORPHAN: KindInfo(
        cause="a tool result without its call",
        group=KindGroup.STRUCTURE,
    ),
    Kind.THINKING_BLOCK_ORDER: KindInfo(
        cause="a turn that must begin with thinking and does not",
        instead="turn thinking off for one prompt",
        remedy="The open turn is closed with a short text; nothing is taken out.",
        group=KindGroup.ORDER,
        thinking=True,
        foreseen=True,
    ),
    Kind.THINKING_DISABLED_VIOLATION: KindInfo(
        cause="thinking in an open turn while thinking is off",
        instead="turn thinking on for one prompt",
        remedy="The open turn is closed with a short text; nothing is taken out.",
        group=KindGroup.ORDER,
        thinking=True,
        foreseen=True,
    ),
    Kind.THINKING_SIGNATURE_INVALID: KindInfo(
        cause="thinking whose signature is missing or not valid, or thinking without words",
        instead=_OTHER_MODEL,
        remedy="The rejected thinking and all thinking behind it are set aside in the ledger; of thinking without "
        "words that and what may be bound to it; where the provider rejects signatures alone, those alone.",
        group=KindGroup.SIGNATURE,
        thinking=True,
    ),
    Kind.THINKING_BLOCK_MODIFIED: KindInfo(
        cause="thinking that is not as the model wrote it",
        instead=_OTHER_MODEL,
        remedy="The changed thinking and all thinking behind it are set aside in the ledger.",
        group=KindGroup.SIGNATURE,
        thinking=True,
    ),
    Kind.THINKING_FINAL_BLOCK: KindInfo(
        cause="a message that ends in thinking",
        remedy="A placeholder text is put behind the thinking.",
        group=KindGroup.STRUCTURE,
        local=True,
        thinking=True,
        foreseen=True,
    ),
    Kind.EMPTY_CONTENT: KindInfo(
        cause="an empty message or text",
        remedy="The empty text is replaced by a placeholder, or set aside where there is content beside it.",
        local=True,
        foreseen=True,
    ),
    Kind.ROLE_ORDER: KindInfo(
        cause="messages in an order that the provider does not take",
        remedy="The user message that went missing gets a placeholder text, two prompts in a row get an answer in "
        "between, an open turn is closed, and steps of one answer become one, or calls of one step several.",
        local=True,
        foreseen=True,
    ),
    Kind.TOOL_CALL_INVALID: KindInfo(
        cause="a tool call with an illegal id, name or input",
        remedy="The call gets a legal id, name or input; its result goes with it.",
        local=True,
    ),
    Kind.INVALID_UNICODE: KindInfo(
        cause="half a character that can't be sent",
        remedy="The half character is replaced by U+FFFD; thinking that holds one is set aside.",
        local=True,
    ),
    Kind.MEDIA_REJECTED: KindInfo(
        cause="an image or file that the provider does not take, or too many of them, or too many bytes",
        remedy="The image or file is replaced by a text that names it; the original is in the ledger. A document of "
        "which the provider refuses the name alone stays, under another one, where that provider's rules for names are "
        "known. Where words are too many bytes, the oldest tool outputs are no longer sent.",
    ),
    Kind.ASSISTANT_PREFILL: KindInfo(
        cause="a request that ends with the assistant's words",
        unrepaired=_ENDS_WITH_ASSISTANT,
        cleared_by_prompt=True,
    ),
    Kind.TRAILING_WHITESPACE: KindInfo(
        cause="an answer that ends in white space",
        unrepaired=_ENDS_WITH_ASSISTANT,
        cleared_by_prompt=True,
    ),
    Kind.REASONING_ITEM: KindInfo(
        cause="reasoning, or the id of an item, that the provider does not take or can't read",
        remedy="What the provider does not take is set aside in the ledger, whole and all of it at once. An id is "
        "emptied, and its item stays.",
        instead=_OTHER_MODEL,
        group=KindGroup.ITEM,
    ),
    Kind.REASONING_MISSING: KindInfo(
        cause="reasoning that the provider wants back",
        unrepaired="this provider wants its reasoning back, and taking parts away would make it worse: "
        "choose another model, or start a new session",
        local=True,
        offer="let recoveryd make it up, in words that say so: recoveryd config set invent_reasoning true",
    ),
    Kind.FOREIGN_ITEM: KindInfo(
        cause="an item that the provider does not know",
        instead="go on with the provider that it is from",
        remedy="The field that it does not take is emptied; an item goes on as words, or is set aside in the ledger.",
        group=KindGroup.ITEM,
        local=True,
    ),
    Kind.TOOL_NOT_FOUND: KindInfo(
        cause="a tool that a search for tools had found, and that the provider does not find any more",
        remedy="It is taken out of what the search had found; all else stays.",
        local=True,
    ),
    Kind.CONTEXT_OVERFLOW: KindInfo(
        cause="a conversation longer than the model can take",
        about="the length of the conversation",  # `recoveryd compact` is of this kind, too
        instead="choose a model that takes more",
        remedy="Old tool outputs, and what else does the least harm, are no longer sent; nothing is deleted.",
        undone="Its next prompt is as long as it was",  # also where nobody had refused it: `recoveryd compact`
        forced="Its next prompt may be too long",
        shortened=True,
    ),
    Kind.UNSENDABLE_PART: KindInfo(
        cause="a part that the client itself can't send",
        remedy="The part is completed, or set aside in the ledger if it can't be read.",
        undone="The client will fail on the part again",
        forced="The client may fail on the part again",
        by_client=True,
        local=True,
        open_turn=True,
    ),
    Kind.WRAPPED_IDS: KindInfo(
        cause="ids that started again, so that the client takes new prompts for old ones",
        remedy="The old messages and parts get ids that sort before the new ones; nothing else is changed.",
        undone="Its prompts will stay unanswered again",
        forced="Its prompts may stay unanswered again",
        waits=True,
        new_ids=True,
        cured_by_client=True,
    ),
    Kind.ENDLESS_COMPACTION: KindInfo(
        cause="a conversation that the client compacts again and again",
        unrepaired="what is left after a compaction (the system prompt, the tools, a summary) is still too long for "
        "the model: turn off tools and MCP servers, shorten the instructions, choose a model that takes more, or "
        "correct its limit in the client's settings",
        stopped=True,
    ),
    Kind.INTERRUPTED_TURN: KindInfo(
        cause="a turn that was cut off when the client went away",
        remedy="The turn is closed as the client does when it is stopped; its open tools end as aborted.",
        undone="Its turn is open again",
        forced="Its turn may be open again",
        not_resumed="it was cut off, not refused",
        open_turn=True,
        cured_by_client=True,
        left_open=True,
        opt_in=True,
    ),
}

_UNKNOWN = KindInfo(cause="an error that recoveryd does not know")


def kind_info(kind: Kind | None) -> KindInfo:
    """Return the row of a kind, or that of an error of no known kind."""
    return _UNKNOWN if kind is None else KINDS[kind]


def explained_by(kind: Kind) -> frozenset[Kind]:
    """List the kinds of fault that a provider may have met when it said `kind`."""
    group = KINDS[kind].group
    if group is None:
        return frozenset({kind})
    groups = {group, KindGroup.STRUCTURE} if group is KindGroup.ORDER else {group}
    return frozenset(other for other, row in KINDS.items() if row.group in groups)


def answered_by(repair: Entry) -> frozenset[Kind]:
    """List the kinds of refusal that a repair may have answered: its own, and what the rules found beside it."""
    own = (repair.kind,) if repair.kind is not None else ()
    return frozenset().union(*map(explained_by, (*own, *repair.kinds)))


def why_off(kind: Kind) -> str:
    """Tell that the user's configuration leaves a kind out, and what names it there."""
    added = command_line("config", "set", "kinds", f"+{kind}")
    return f"{kind} is not among the kinds that your configuration names (`{added}` adds it)"


def is_repairable(kind: Kind | None) -> bool:
    """Whether recoveryd has an edit for this kind at all."""
    return bool(kind_info(kind).remedy)
