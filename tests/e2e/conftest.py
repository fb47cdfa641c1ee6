"""One client for a whole module: it takes seconds to start and a fifth of a second to prompt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.harness import Harness, running
from tests.e2e.install import DEFAULT_VERSION, UnavailableError, versions


@pytest.fixture(scope="module", params=versions([DEFAULT_VERSION]))
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """The running client of each version in TEST_RECOVERYD_VERSIONS, with a strict provider; skips with a reason."""
    try:
        with running(tmp_path_factory.mktemp("client"), str(request.param)) as started:
            yield started
    except UnavailableError as reason:
        pytest.skip(str(reason))
