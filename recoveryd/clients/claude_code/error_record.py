"""How Claude Code records a refusal: a line of the assistant's with `isApiErrorMessage`, in the provider's words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recoveryd.clients.claude_code import error_names
from recoveryd.core import Json, RecordedError, parsed, texts_of

# What it puts before its usual words for an error where what failed is the summary that it asked for by itself; of one
# that the model did not write it has words of its own, which say nothing else (2.1.330, 2.1.332).
_SUMMARY = (
    "Prompt is too long \N{MIDDLE DOT} automatic compaction failed: "
    "(?!Failed to generate|summarization produced|no assistant message|an internal error|API error$|$)"
)
_ANSWER = re.compile(rf"^(?:{_SUMMARY})?API Error: (\d{{3}}) ")
_PREFIX = re.compile(rf"^(?:{_SUMMARY})?(?:API Error: (?:\d{{3}} )?)?")


def is_refusal(line: Json) -> bool:
    """Whether Claude Code recorded that a provider's error ended the turn; not where the client mended it by itself and
    went on.
    """
    return line.get("isApiErrorMessage") is True and line.get("apiError") != "media_removed"


def read_copied(error: object) -> RecordedError | None:
    """Read a whole line of a transcript that somebody copied, or what it says of a summary that was refused; None for
    anything else.
    """
    if isinstance(error, str) and re.match(_SUMMARY, error.strip()):
        return read({"message": {"content": error.strip()}})
    line = parsed(error) if isinstance(error, str) else error
    return read(line) if isinstance(line, Mapping) and line.get("isApiErrorMessage") is True else None


def read(line: Json) -> RecordedError:
    """Read the error that Claude Code recorded, of a line that `is_refusal`."""
    name, status, details = line.get("error"), line.get("apiErrorStatus"), line.get("errorDetails")
    says = _texts(line)
    if any(re.match(_SUMMARY, text) for text in says):
        status = details = None  # of the refusal as too long, for which it asked for the summary
    texts = [_PREFIX.sub("", text) for text in says]
    told = [texts, _PREFIX.sub("", re.sub(r"^\d{3} ", "", details))] if isinstance(details, str) else [texts]
    known = status if isinstance(status, int) and not isinstance(status, bool) else _status(says)
    cause = error_names.cause_of(line, known, " ".join(texts))
    elsewhere = error_names.is_elsewhere(line, known)
    return RecordedError(
        texts=texts_of([*told, name] if elsewhere else told, frozenset()),  # its words alone may not say so
        name=name if isinstance(name, str) else "",
        cause=cause,
        blameless=elsewhere or cause is not None,
        status=known,
        answered=known is not None,
    )


def _texts(line: Json) -> list[str]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [b["text"] for b in blocks if isinstance(b, Mapping) and isinstance(b.get("text"), str)]


def _status(texts: list[str]) -> int | None:
    """Read the status from the text: older versions say it nowhere else."""
    found = (_ANSWER.match(text) for text in texts)
    return next((int(match[1]) for match in found if match), None)
