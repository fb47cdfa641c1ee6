"""The port through which repairs edit: what is wanted, in blocks and turns; the client writes it in its own records."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from recoveryd.core.model import Edit, Json
from recoveryd.core.request import Block, Turn
from recoveryd.core.violation import Claims

Edits = tuple[Edit, ...]
_NONE = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What an editor keeps to in a tool call: its id, name and input, as the provider takes them. `illegal` matches one
    character that it refuses in a name, `illegal_in_id` one in an id: most take any there. A name that is too long is
    cut to `cut` characters, where not all that speak so take as many (None: they do).
    """

    illegal: re.Pattern[str]
    longest_name: int
    longest_id: int | None = None  # None: any
    longest_input: int | None = None  # characters of the JSON; None: any
    counted: int | None = None  # letters and digits of an id, by which alone the calls of a message differ; None: all
    illegal_in_id: re.Pattern[str] = _NONE
    cut: int | None = None

    def legal_name(self, name: str) -> str:
        """Return a name as it may be; of one that is too long, the beginning."""
        legal = self.illegal.sub("_", name)
        return legal if len(legal) <= self.longest_name else legal[: min(self.cut or len(legal), self.longest_name)]

    def as_told(self, claims: Claims) -> CallLimits:
        """Return the limits with the lengths that an error names."""
        name, own = claims.longest_name or self.longest_name, claims.longest_id or self.longest_id
        return replace(self, longest_name=name, longest_id=own)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks on every record that a repair adds: the id of the recovery, and the time in milliseconds since the
    epoch.
    """

    recovery: str
    now: int


class Editor(Protocol):
    """Makes the edits of one session. Nothing is written to a store; every method is idempotent on its own result.

    A method returns the edits of one deed, () where the stored record leaves nothing to do. ValueError: there is no
    room for a new record between two others.
    """

    def cancel_call(self, block: Block, words: str) -> Edits:
        """Give an unfinished call the result that the client gives to one that was cancelled."""

    def mend_call(self, block: Block, limits: CallLimits) -> Edits:
        """Give a call, and its result with it, a legal id of its own, a legal name, an input that is an object."""

    def own_step(self, block: Block) -> Edits:
        """Begin a new step at `block`, or at the thinking that led to it: the results of the calls before it are then
        sent first.
        """

    def reasoning_before(self, block: Block, words: str) -> Edits:
        """Have `words` sent as the reasoning that led to a call, () where the client keeps none that it could send."""

    def words_behind(self, message_id: str, part_id: str | None, words: str) -> Edits:
        """Append a text of the assistant behind a part of an answer."""

    def join_step(self, turn: Turn) -> Edits:
        """Send `turn` as one with the step before it, where both are steps of one answer."""

    def user_words_before(self, turns: Sequence[Turn], at: int, words: str) -> Sequence[Edits]:
        """Insert a user message before the one of a request's `turns` that stands there. Returns the possible edits,
        the best first.
        """

    def answer_behind(self, turns: Sequence[Turn], at: int, words: str) -> Edits:
        """Insert an answer of the assistant, `words`, behind the user's one of `turns` that stands there."""

    def close_turn(self, turn: Turn, words: str) -> Edits:
        """End the assistant's turn: append a step with `words` behind all records of the turn."""

    def replace_text(self, block: Block, words: str) -> Edits:
        """Replace a text, or a tool's output, by `words`."""

    def mend_unicode(self, block: Block) -> Edits:
        """Replace each half character of a record by U+FFFD."""

    def take_out_media(self, block: Block, fault: Callable[[Json], str | None], reason: str) -> Edits:
        """Replace by a note each image or file in the record of `block` for which `fault(source)` gives a reason.

        A record that is one image or file itself is replaced, for `reason`.
        """

    def rename_document(self, block: Block, name: str) -> Edits:
        """Have a document sent under another name; () where the client sends none."""

    def set_aside(self, blocks: Iterable[Block], action: str) -> Edits:
        """Take the records of `blocks` out of the store; the ledger keeps them."""

    def without_field(self, block: Block, field: str, action: str) -> Edits:
        """Take one field out of the record of `block`; the ledger keeps it."""

    def as_message(self, block: Block, action: str) -> Edits:
        """Put a message of the assistant with the words of an item in its place; () where it has none, or no room."""

    def mend_unsendable(self, part_id: str, fault: str, reason: str, cancelled: str) -> Edits:
        """Give a part on which the client fails what it lacks, or set it aside; `fault` is the wire's name for it.

        `cancelled`: the words of a call without a state.
        """


class Shortener(Editor, Protocol):
    """The port that makes a session shorter to its model, in its client's own forms. Nothing is lost to the store and
    the ledger.

    As those of an `Editor`, its methods return () where nothing is to be done.
    """

    def give_back(self) -> Sequence[Edits]:
        """Take away what compactions that failed left behind: what they hid is sent again."""

    def clear_output(self, block: Block) -> Edits:
        """Mark a tool's output as cleared: the client sends a few words in its place."""

    def cut(self, block: Block, kept: int) -> Edits:
        """Send so many characters of a text or an output, of its head and its tail, and where the whole can be read."""

    def cut_input(self, block: Block, longest: int) -> Edits:
        """Cut each text of more than `longest` characters in the input of a call."""

    def summaries(self) -> Collection[str]:
        """List the messages in which a compaction tells what stood before it, and those that asked for it."""

    def compact(self, before: str, words: str) -> Edits:
        """Have nothing sent of what stands before a message but `words`. ValueError as in `Editor`."""

    def lower_usage(self, whole: float, since: Callable[[str], float]) -> Edits:
        """Let the newest answer say that it was given no more than is sent before it now: of `whole`, what is not sent
        `since` that message. In tokens.
        """
