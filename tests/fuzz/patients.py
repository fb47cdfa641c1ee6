"""The sessions that are made hostile: refused ones of every shape, with the provider's own words for each."""

from __future__ import annotations

import random
import time
from functools import cache

from tests.shapes import BROKEN
from tests.support.build import Planted, SessionBuilder, api_error
from tests.support.generate import generate, soup
from tests.support.judge import refusal
from tests.support.long_sessions import small
from tests.support.values import as_session


@cache
def _words() -> dict[str, str]:
    """What the strict provider says of each shape; where a client sends no request at all, its own words."""
    found = {}
    for shape in BROKEN:
        said = None if shape.kind == "crash" else refusal(as_session(shape.build(seed=1)), shape.thinking)
        found[shape.name] = said.message if said else "messages must be a ModelMessage[]"
    return found


def patient(rng: random.Random) -> Planted:
    """A session whose last prompt was refused some seconds ago."""
    seed = rng.getrandbits(32)
    now = int(time.time() * 1000) - 120_000
    if rng.random() < 0.1:
        session = SessionBuilder(now, seed=seed, title="long")
        session.failed("continue", api_error(small(session, rng), 400))
        return session.planted()
    if rng.random() < 0.8:
        shape = rng.choice([shape for shape in BROKEN if not shape.deep])
        session = SessionBuilder(now, seed=seed, title=shape.name)
        shape.turns(session)
        error = api_error(_words()[shape.name], 400)
        if shape.kind == "crash":
            error = {"name": "UnknownError", "data": {"message": _words()[shape.name]}}
        session.failed("continue", error)
        return session.planted()
    made = soup(rng) if rng.random() < 0.5 else generate(rng, rng.randint(1, 3))
    said = refusal(as_session(made.planted), made.thinking)
    session = SessionBuilder(now, seed=seed, title="generated")
    session.failed("continue", api_error(said.message if said else "messages: odd", 400))
    ids = {"sessionID": made.planted.id}
    messages = [*made.planted.messages, *({**message, **ids} for message in session.messages)]
    parts = {**made.planted.parts, **{m: [{**p, **ids} for p in ps] for m, ps in session.parts.items()}}
    return Planted(made.planted.session, messages, parts, made.planted.raw)
