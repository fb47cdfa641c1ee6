"""How long a conversation is and may be, in tokens: what refusals, answers and clients tell of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """What a refusal for size tells, in tokens; 0 where it does not.

    `asked` is the length of the request, `limit` what the model takes, `output` what was asked for the answer where
    that counts too. `by_bytes`: not its tokens were too many but its bytes.
    """

    asked: int = 0
    limit: int = 0
    output: int = 0
    by_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider said that an answer took: `given` are the tokens of the request, `answered` those of the answer.

    `same_model`: it came from the model that is asked now; another one counts in another way.
    """

    message_id: str
    given: int
    answered: int
    same_model: bool = True
