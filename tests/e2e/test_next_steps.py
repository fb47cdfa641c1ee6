"""What a person is told to do where nothing is repaired was tried: the real client goes on then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, running
from tests.e2e.install import NEWEST, UnavailableError
from tests.e2e.next_steps import CASES, Case, Tried, tried, unanswered

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Harness, Daemon]]:
    root = tmp_path_factory.mktemp("steps")
    try:
        with running(root / "client", NEWEST) as harness:
            yield harness, Daemon(root / "daemon", root / "client" / "data")
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_next_step_that_explain_names_works(there: tuple[Harness, Daemon], case: Case) -> None:
    hold(tried(*there, case))


def test_a_prompt_that_was_never_answered_is_answered_when_it_is_sent_again(there: tuple[Harness, Daemon]) -> None:
    hold(unanswered(*there))


def hold(found: Tried) -> None:
    assert found.named in found.says
    assert found.goes_on
    assert found.in_vain == (), "what is not named helps as well"
