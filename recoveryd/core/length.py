"""How long a conversation is and may be, in tokens: what refusals, answers and clients tell of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """What a refusal told of a conversation's length, in tokens; 0 where it does not.

    `asked` is the length of the request, `limit` what the model takes, `output` what was asked for the answer where
    that counts too. `by_bytes`: not its tokens were too many but its bytes, of which it may have `most_bytes`.
    """

    asked: int = 0
    limit: int = 0
    output: int = 0
    by_bytes: bool = False
    most_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ByHand:
    """A person's wish that a session has fewer tokens, be it refused or not: `target`, and no more, as a share of what
    its model takes; None: as the configuration has it.
    """

    target: float | None = None


def in_words(amount: float, *, by_bytes: bool = False) -> str:
    """Write an amount of tokens (212403 as "212k"), or of bytes (604120 as "604 kB")."""
    if not by_bytes:
        return f"{amount / 1000:.0f}k" if amount >= 1000 else f"{amount:.0f}"
    if amount < 1e6:
        return f"{amount / 1000:.0f} kB"
    return f"{amount / 1e6:.0f} MB" if amount >= 1e7 else f"{amount / 1e6:.1f} MB"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider told of a conversation's length with an answer: `given` are the tokens of the request, `answered`
    those of the answer.

    `same_model`: it came from the model that is asked now; another one counts in another way. `cleared`: what its calls
    gave back was taken away since, so that the next request had more.
    """

    message_id: str
    given: int
    answered: int
    same_model: bool = True
    cleared: bool = False
