"""What repairs are made from: what a single fix is given, and all that a plan, or a plan to shorten, goes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recoveryd.core import (
    ByHand,
    Claims,
    Editor,
    Edits,
    Failure,
    Kind,
    Refused,
    Request,
    Session,
    Shortener,
    Size,
    Usage,
    Violation,
    Wire,
)
from recoveryd.providers import Provider

ALL_KINDS = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's choices that repairs follow (config keys of the same names)."""

    placeholder: str = "[user interrupted]"
    cancelled_text: str = "Operation cancelled by user (ESC pressed)"
    keep_thinking: bool = True


@dataclass(frozen=True, slots=True)
class RepairInput:
    """What a fix is given. `found`: all that the provider refuses of `request`; `editor` edits the session that it was
    built from. `claims`: what the error tells.
    """

    request: Request
    found: Sequence[Violation]
    provider: Provider
    editor: Editor
    settings: Settings
    claims: Claims


@dataclass(frozen=True, slots=True)
class PlanInput:
    """What the cheapest edits are planned from (`plan`).

    `wires`: how the client may send it; a plan is right under each. `editor` makes the one of a session that is edited
    so far. `kinds`: those that may be repaired; each edit of a plan answers a violation of one of them. `claims` and
    `known` are those of an earlier plan for the same failure, and the kinds that it found: once something is edited,
    the place that the error names is another one, and what the error is about may be healed while the rest is not.
    `binds`: the model may tie its thinking to all that stands before it. `by_others`: as in `Request`.
    """

    session: Session
    failure: Failure
    evidence: Refused
    settings: Settings
    wires: Sequence[Wire]
    provider: Provider
    editor: Callable[[Session], Editor]
    claims: Claims | None = None
    kinds: frozenset[Kind] = ALL_KINDS
    known: tuple[Kind, ...] = ()
    binds: bool = True
    by_others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShortenInput:
    """What a plan to shorten a session is made from (`shorten`). `editor` makes the one of a session that is edited so
    far.

    `size`: what the refusal, or else the client, tells; `by_settings`: its limit is that of the client's settings,
    which may be wrong; `share`: of the limit, what is aimed at; `without_base`: what was refused had neither system nor
    tools. `by_hand`: nothing need have been refused, a person wants it, maybe to another share. `binds`: the provider
    ties thinking to all before it. `by_itself`: the edits that the client is about to make. `cleared_since`: outputs
    were cleared since the refusal; `refused`: it was refused for its length; `fits_below`: the share of the limit (of
    any length where none is known) below which it was refused for something else, as far as is known; `tried`: it was
    made shorter in vain; `begun`: it was refused within its answer.
    """

    session: Session
    wires: Sequence[Wire]
    provider: Provider
    editor: Callable[[Session], Shortener]
    usages: Sequence[Usage]
    size: Size
    share: float
    without_base: bool = False
    by_hand: ByHand | None = None
    binds: bool = False
    by_itself: Edits = ()
    cleared_since: bool = False
    refused: bool = True
    fits_below: float = 0.0
    by_settings: bool = False
    tried: bool = False
    begun: bool = False

    @property
    def aim(self) -> float:
        """The share of the limit that it is to have."""
        return (self.by_hand and self.by_hand.target) or self.share
