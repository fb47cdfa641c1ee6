"""What is known of each kind of failure, whatever the client and the provider."""

from __future__ import annotations

from collections.abc import Mapping

from recoveryd.core.model import Kind

UNREPAIRED: Mapping[Kind, str] = {
    Kind.CONTEXT_OVERFLOW: "the conversation is longer than the model can take: /compact it, or start a new session",
    Kind.REASONING_MISSING: "this provider wants its reasoning back, and taking parts away would make it worse: "
    "choose another model, or start a new session",
    Kind.REASONING_ITEM: "this is OpenAI's form of a conversation, which recoveryd can't check yet: "
    "choose another model, or start a new session",
    Kind.ASSISTANT_PREFILL: "the request ended with the assistant's words: a new prompt clears it",
    Kind.TRAILING_WHITESPACE: "the request ended with the assistant's words: a new prompt clears it",
}


# No edit is needed: the request from a new prompt ends with that prompt (held to the real client).
CLEARED_BY_PROMPT = frozenset({Kind.ASSISTANT_PREFILL, Kind.TRAILING_WHITESPACE})


# Of these an open turn is the fault itself; any other repair waits until no turn runs.
OPEN_TURNS = frozenset({Kind.UNSENDABLE_PART, Kind.INTERRUPTED_TURN})

# What no provider refuses: the client whose session it is knows the cure.
CURED_BY_CLIENT = frozenset({Kind.WRAPPED_IDS, Kind.INTERRUPTED_TURN})
