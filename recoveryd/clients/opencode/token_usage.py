"""What OpenCode stores of the tokens that answers took. Held to 1.1.53, 1.2.1 and 1.18.33. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recoveryd.clients.javascript import truthy
from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.pruning import is_cleared
from recoveryd.core import Failure, Message, Session, Usage

# By these an answer's thinking is counted in its output, and told beside it.
_WITH_THINKING = ("openai.chat", "openai.responses", "azure.responses")


def usages(session: Session, failure: Failure) -> Iterator[Usage]:
    """Tell how many tokens each good answer took, as OpenCode stored it and as far as it can be true. That of a summary
    is of another request.
    """
    with_thinking = protocol_of(failure) in _WITH_THINKING
    for message in session.messages:
        if message.role != "assistant" or message.error is not None or truthy(message.data.get("summary")):
            continue
        given, answered = spent(message, with_thinking=with_thinking)
        if given > 0 and answered >= 0 and message.data.get("finish"):
            asked = (message.data.get("providerID"), message.data.get("modelID"))
            same_model = asked == (failure.provider, failure.model)
            yield Usage(message.id, given, answered, same_model, any(map(is_cleared, message.parts)))


def left_over(session: Session, failure: Failure) -> int:
    """Tell how many tokens the newest request took behind a compaction since the prompt that failed; 0 where none tells
    them.
    """
    since = iter(session.messages)
    if not any(message.id == failure.message for message in since):
        return 0
    if not any(message.role == "assistant" and truthy(message.data.get("summary")) for message in since):
        return 0
    behind = {message.id for message in since}
    return next((one.given for one in reversed([*usages(session, failure)]) if one.message_id in behind), 0)


def spent(message: Message, *, with_thinking: bool = False) -> tuple[int, int]:
    """Return the tokens that OpenCode stored as the usage of a request and of its answer; zeros where the message does
    not say. `with_thinking`: the provider counts an answer's thinking in its output, so that 1.1, which stores no
    total, has it twice.
    """
    tokens = message.data.get("tokens")
    if not isinstance(tokens, Mapping):
        return 0, 0
    cache = tokens.get("cache")
    cached: Mapping[str, Any] = cache if isinstance(cache, Mapping) else {}
    given = [tokens.get("input"), cached.get("read"), cached.get("write")]
    if any(_number(value) < 0 for value in given):
        return 0, 0
    asked, output, thinking = sum(map(_number, given)), _number(tokens.get("output")), _number(tokens.get("reasoning"))
    total = _number(tokens.get("total"))
    # 1.18 takes the thinking off the output; 1.2 does not, which the total tells.
    twice = total <= asked + output if total > 0 else with_thinking
    return asked, output if twice and 0 <= thinking <= output else output + thinking


def _number(value: object) -> int:
    """Return a number of tokens; -1 for what is none."""
    if value is None:
        return 0
    sound = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
    return int(value) if sound else -1  # type: ignore[call-overload]
