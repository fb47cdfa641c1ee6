"""Plan how a conversation that is too long for its model is made shorter, by what is known of its length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recoveryd.clients import Shortening
from recoveryd.core import ByHand, Claims, Failure, RecordedError, Refusal, Session, Size, Wire, in_words
from recoveryd.diagnose import Case, of_length
from recoveryd.providers import Provider, binds_thinking, other_cause, over_rate, size_of

if TYPE_CHECKING:
    from recoveryd.repair import ShorterPlan

_NOT_BORNE_OUT = "its client takes the provider's words for a conversation that is too long, and its length is not"
_OVER_RATE = (
    "what is left after a compaction (the system prompt, the tools, a summary) is more than a rate limit of the "
    "provider has room for: turn off tools and MCP servers, shorten the instructions, or choose a plan or model with "
    "a higher limit"
)
_ROOM = 0.8  # of the limit: the rest is for the answer
_APART = 0.02  # how far what is read back may be from what was planned


@dataclass(frozen=True, slots=True)
class ShorterProposal:
    """What is proposed for a session that is too long: a plan after which it fits, checked, and the words for it.

    `wholes` are the files in which the model finds what was cut, with their texts. `lead` and `tail` are the words
    before and behind what was done.
    """

    shorter: ShorterPlan
    wholes: Mapping[Path, str]
    session: Session
    wires: Sequence[Wire]
    provider: Provider

    @property
    def lead(self) -> str:
        """The words before it: "212k of 200k tokens: ", or "188k and 21k for the answer of 200k tokens: "."""
        of = f" of {self._said(self.shorter.limit)}" if self.shorter.limit else ""
        of = f" and {self._said(self.shorter.output)} for the answer{of}" if self.shorter.output else of
        unit = "" if self.shorter.by_bytes else " tokens"
        return f"{self._said(self.shorter.before)}{of}{unit}{self.shorter.uncounted}: "

    def tail(self, *, done: bool) -> str:
        """Write the words behind it: "; nothing is deleted, and about 139k are sent now" ("would be sent then")."""
        kept = "" if self.shorter.by_bytes else "nothing is deleted, and "
        return f"; {kept}about {self._said(self.shorter.after)} {'are sent now' if done else 'would be sent then'}"

    def _said(self, amount: float) -> str:
        return in_words(amount, by_bytes=self.shorter.by_bytes)

    def objections(self, found: Session) -> list[str]:
        """List what speaks against the session as it is read back."""
        length = self.shorter.length(self.wires[0].build(found))
        said = [] if length <= self.shorter.after * (1 + _APART) + 1 else ["it is longer than was planned"]
        for wire in self.wires:
            before = {(v.kind, v.reason) for v in self.provider.check(wire.build(self.session), Claims())}
            after = self.provider.check(wire.build(found), Claims())
            said += [v.reason for v in after if (v.kind, v.reason) not in before]
        return said


def propose_shorter(
    stuck: Case,
    session: Session,
    known: Shortening,
    wires: Sequence[Wire],
    provider: Provider,
    *,
    share: float,
    by_hand: ByHand | None,
    tried: bool,
) -> ShorterProposal | Refusal:
    """Plan what makes `session` fit, to `share` of the limit, or as a person wants it. `tried`: in vain before."""
    from recoveryd.repair import ShortenInput, shorten  # late: only what is too long needs it

    if session.revert:
        return Refusal("a revert is staged in it, which is to be taken back or prompted first")
    told, wires = _told(stuck, known), _weighed(session, stuck.failure, known, wires)
    case = ShortenInput(
        session=session,
        wires=wires,
        provider=provider,
        editor=known.editor,
        usages=known.usages,
        size=_size(stuck.failure, known),
        share=share,
        without_base=known.without_base and not _logged_size(known).asked,
        by_hand=by_hand,
        refused=told and stuck.refused.by_error and by_hand is None,
        fits_below=0.0 if told else _fits_below(known),
        binds=_binds(stuck.failure, known),
        by_settings=_size(stuck.failure, replace(known, context=0)).limit == 0,
        by_itself=known.by_itself,
        cleared_since=known.cleared_since,
        tried=tried,
        begun=stuck.failure.begun,
    )
    made = shorten(case)
    if isinstance(made, Refusal):
        return made if told or by_hand is not None or made.understood else replace(made, reason=_NOT_BORNE_OUT)
    return ShorterProposal(made, known.wholes(session, made.edits), session, wires, provider)


def _weighed(session: Session, failure: Failure, known: Shortening, wires: Sequence[Wire]) -> Sequence[Wire]:
    """Return the wires with all that is sent, where it counts by what answers took; of bytes all does."""
    from recoveryd.repair import counts_thinking  # late: only what is too long needs it

    whole = [known.weighed(wire) for wire in wires]
    if all(one is wire for one, wire in zip(whole, wires, strict=True)):
        return wires  # as of most: nothing to build for it
    by_bytes = _size(failure, known).by_bytes
    return whole if by_bytes or counts_thinking(whole[0].build(session), known.usages) else wires


def not_told_yet(failure: Failure, known: Shortening) -> str:
    """Tell what a proposal to make a session shorter hangs on that its client may tell in a moment, as a clause behind
    its name; "" on nothing.
    """
    if known.unlogged:
        return "has not logged yet what the provider said"
    size = _size(failure, known)
    hangs = known.unanswered and (known.by_itself or not (size.limit or size.by_bytes))
    return "is at work and did not tell its settings" if hangs else ""


def _binds(failure: Failure, known: Shortening) -> bool:
    said = (text for error in known.earlier for text in error.texts)
    return binds_thinking(failure, said) and not known.drops_bound


def _told(stuck: Case, known: Shortening) -> bool:
    """Whether the provider said that it is too long, by what is stored or logged, and not its client alone."""
    if _size(stuck.failure, known).by_bytes:
        return True
    return _logged(known) is not None or (bool(stuck.refused.said) and not known.says_client)


def _fits_below(known: Shortening) -> float:
    """Return the share of the limit below which a conversation fits whose client alone calls it too long; 0 where
    nothing tells.
    """
    if known.logged is not None and other_cause(known.logged) is not None:
        return 1.0
    return _ROOM if known.says_client or known.logged is not None else 0.0


def _logged(known: Shortening) -> RecordedError | None:
    """Return the refusal for its length that the client's log has; None where what it has is about something else:
    OpenCode takes "too many tokens, please wait" for a length, too.
    """
    return known.logged if known.logged is not None and of_length(known.logged) else None


def _logged_size(known: Shortening) -> Size:
    """Return what the client's log tells of the length."""
    error = _logged(known)
    return size_of(error) if error is not None else Size()


def _size(failure: Failure, known: Shortening) -> Size:
    """Return all that is known of the length: by the refusal, or else by the client's log, or its settings."""
    size, logged = size_of(failure.error), _logged_size(known)
    if not (size.limit or size.by_bytes):
        before = next((limit for error in known.earlier if (limit := size_of(error).limit)), 0)
        limit = logged.limit or before or known.context
        size = logged if logged.by_bytes else replace(size, limit=limit, asked=size.asked or logged.asked)
    return replace(size, asked=known.sent or size.asked)


def why_left_over(known: Shortening | None, why: str) -> str:
    """Say why a client compacts again and again: for a limit of another kind, as its log tells, or else `why`, with how
    long what a compaction left was and what the model takes, where that is known: "8,197 of 8,000 tokens: ...".
    """
    if known is None:
        return why
    logged, context = _logged_size(known), known.context
    if known.logged is not None and _logged(known) is None and (about := other_cause(known.logged)):
        at_once = over_rate(known.logged)
        if at_once is None:
            return f"its client takes for a length what the provider said of something else. {about.removesuffix('.')}"
        logged, context, why = at_once, 0, _OVER_RATE
    limit, asked = logged.limit or context, logged.asked or known.left
    return f"{asked:,} of {limit:,} tokens: {why}" if limit and asked else why
