"""What providers, gateways and firewalls usually answer, told for what it is in each form that a client keeps it in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core import Cause, Kind
from recoveryd.providers import classify, other_cause, turned_away
from recoveryd.providers.find import SURE
from recoveryd.providers.sentences.cause_words import WORDS
from recoveryd.providers.sentences.rows import squeeze
from tests.support.usual_errors import recorded, recorded_by_codex, usual_errors

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


# Of these nobody looked at the history: a refusal before them stands.
BEFORE_IT = (
    *(Cause.ACCOUNT, Cause.KEY, Cause.CREDENTIALS, Cause.RATE_LIMIT, Cause.PLACE, Cause.PRIVACY, Cause.OLD_CLIENT),
    *(
        Cause.MODEL_ACCESS,
        Cause.MODEL_POLICY,
        Cause.NETWORK,
        Cause.PROXY,
        Cause.CERTIFICATE,
        Cause.ADDRESS,
        Cause.SERVER,
    ),
)


def test_a_refusal_stands_behind_what_came_before_anybody_looked_at_the_history() -> None:
    rows = [row for row in ROWS if row.told in BEFORE_IT]
    assert [str(row) for row in rows if not all(turned_away(read_error(form)) for form in recorded(row))] == []
    others = [row for row in ROWS if row.told in (Cause.FILTER, Cause.TOOLS, Cause.SETTING, Cause.NO_IMAGES, None)]
    assert [str(row) for row in others if any(turned_away(read_error(form)) for form in recorded(row))] == []


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 422, 429, 500, 503])
def test_a_refusal_of_the_history_is_none_of_the_causes_whatever_its_status(status: int) -> None:
    """As far as it has a provider's own sentence, which no gateway's status makes another thing."""
    rows = [row for row in ROWS if isinstance(row.told, Kind) and any(one.find(squeeze(row.body)) for one in SURE)]
    wrong = [
        (row.body[:200], made)
        for row in rows
        for made in {told(form) for form in recorded(replace(row, status=status))}
        if isinstance(made, Cause)
    ]
    assert wrong == []


def test_what_codex_puts_around_an_answer_changes_nothing_of_what_it_is_told_as() -> None:
    """Of the body it keeps the message alone. With 404 and 413 its frame counts: those have tests of their own."""
    wrong = []
    for row in ROWS:
        form = recorded_by_codex(row) if row.status not in (404, 413) else None
        if form is not None and (made := told(form)) != row.told:
            words = form["message"].partition(": ")[2].rpartition(", url: ")[0]
            alone = told({"name": "APIError", "data": {"message": words, "statusCode": row.status}})
            wrong += [(str(row), f"wanted {row.told}, told {made}, alone {alone}")] if made != alone else []
    assert wrong == []
