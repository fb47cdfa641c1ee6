"""What providers, gateways and firewalls usually answer, told for what it is in each form that a client keeps it in."""

from __future__ import annotations

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core import Cause, Kind
from recoveryd.providers import classify, other_cause
from recoveryd.providers.sentences.cause_words import WORDS
from tests.support.usual_errors import recorded, usual_errors

ROWS = usual_errors()


def told(error: object) -> Cause | Kind | None:
    """What a person is told of an error."""
    read = read_error(error)
    refused, about = classify(read), other_cause(read)
    if refused is not None:
        return refused.kind
    return next((cause for cause, words in WORDS.items() if about == f"It seems to be about {words}"), None)


@pytest.mark.parametrize("said_by", sorted({row.said_by for row in ROWS}))
def test_usual_errors_are_told_for_what_they_are(said_by: str) -> None:
    wrong = [
        (str(row), f"wanted {row.told}, told {made}")
        for row in ROWS
        if row.said_by == said_by
        for made in sorted({str(told(form)) for form in recorded(row)})
        if made != str(row.told)
    ]
    assert wrong == []
