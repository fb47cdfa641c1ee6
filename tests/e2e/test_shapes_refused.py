"""The shapes are what they say: the broken ones are refused to the real client, for their kind, the healthy are not."""

from __future__ import annotations

import pytest

from tests.e2e.harness import Harness
from tests.shapes import BROKEN, HEALTHY, Shape, is_old


def _named(shape: Shape) -> str:
    return shape.name


def _kind(harness: Harness, shape: Shape) -> str | None:
    version = harness.client.version()
    if shape.newer == "slow" and not is_old(version):
        pytest.skip("newer clients retry this for a minute before they record it")
    if shape.json_only and harness.client.database.exists():
        return None
    return shape.kind_for(version)


@pytest.mark.parametrize("shape", BROKEN, ids=_named)
def test_a_broken_shape_stays_broken(harness: Harness, shape: Shape) -> None:
    """At every prompt the provider names the kind and the client records its words, or the client asks for nothing.

    A shape that this version of the client sends in a better form is accepted.
    """
    kind = _kind(harness, shape)
    session = harness.plant(shape.build())
    for _ in range(2):
        outcome = harness.prompt(session, thinking=shape.thinking)
        if kind is None:
            assert outcome.accepted
        elif kind == "crash":
            assert outcome.requests == []
        else:
            assert [request.kind for request in outcome.requests] == [kind]
            assert outcome.result.error is not None
            assert outcome.result.error["data"]["message"] == outcome.requests[0].refused


@pytest.mark.parametrize("shape", HEALTHY, ids=_named)
def test_a_healthy_shape_is_accepted(harness: Harness, shape: Shape) -> None:
    """The turn comes to an answer with no refusal on the way."""
    outcome = harness.prompt(harness.plant(shape.build()), thinking=shape.thinking)
    assert [request.refused for request in outcome.requests] == [None]
    assert outcome.accepted
