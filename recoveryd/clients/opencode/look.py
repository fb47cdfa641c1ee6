"""What the newest messages of a session tell: failed, running, answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from recoveryd.clients.base import Look
from recoveryd.core.model import Failure, Json, Message


def look(store: str, session: str, newest: Iterable[Message], spoke: Callable[[str], bool]) -> Look:
    """What the newest messages (see `newest_first`) tell; stops at the first that settles it.

    An aborted message settles it only if the model `spoke` in it: an abort may also cut off a refusal.
    """
    failure: Failure | None = None
    running, silent = 0, False
    newest_user: str | None = None
    for message in newest:
        error = message.error
        if message.role == "user":
            newest_user = newest_user or (message.id if failure is None else None)
        elif message.role != "assistant":
            continue
        elif error is not None and error.get("name") != "MessageAbortedError":
            failure = failure or _failure(store, session, message, error)
        elif error is None and not message.completed:
            if not running and failure is None:
                # Behind a turn that was cut off, say by a crash, a newer prompt may wait.
                running, silent = message.created or 1, newest_user is not None or not spoke(message.id)
        # A step that ended in a tool call proves that nothing older is stuck, but it is no answer yet.
        elif (failure is None or message.data.get("finish") != "tool-calls") and (error is None or spoke(message.id)):
            return Look(failure, running, newest_user, message.completed or message.created, silent)
    return Look(failure, running, newest_user, silent=silent)


def _failure(store: str, session: str, message: Message, error: Json) -> Failure:
    provider, model = message.data.get("providerID"), message.data.get("modelID")
    return Failure(
        store=store,
        session=session,
        message=message.id,
        time=message.created or message.completed,
        error=error,
        provider=provider if isinstance(provider, str) else "",
        model=model if isinstance(model, str) else "",
    )


def speaks(part: Json | None) -> bool:
    """Whether a part of an aborted message is one that the client goes on sending."""
    return part is not None and part.get("type") not in ("step-start", "reasoning")
