"""What the classifier says of an error as a test has it: as the client stores it, as a text, or as it was read."""

from __future__ import annotations

from recoveryd.clients.find import read_error
from recoveryd.core.model import Kind, RecordedError, Refused
from recoveryd.providers.sentences.classify import classify


def refused(error: object) -> Refused | None:
    return classify(error if isinstance(error, RecordedError) else read_error(error))


def kind_of(error: object) -> Kind | None:
    told = refused(error)
    return told.kind if told is not None else None


def position_of(error: object) -> tuple[int, int | None] | None:
    told = refused(error)
    return told.position if told is not None else None
