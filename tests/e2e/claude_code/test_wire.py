"""What recoveryd expects Claude Code to send of a transcript is what the real one sends, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from recoveryd.clients.claude_code import transcript
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from tests.e2e.claude_code import chains
from tests.e2e.claude_code.attached import ATTACHED
from tests.e2e.claude_code.client import ClaudeCode, sent
from tests.e2e.claude_code.left_out import LEFT_OUT
from tests.e2e.claude_code.run import client
from tests.e2e.claude_code.shapes import SOUND, STUCK, Shape, built
from tests.e2e.install import UnavailableError
from tests.support.transcript import Transcript

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

FULL = bool(os.environ.get("TEST_RECOVERYD_FULL_CLIENTS"))
EVERY: dict[str, Shape] = {
    **chains.CHAINS,
    **ATTACHED,
    **LEFT_OUT,
    **{f"stuck-{n}": s for n, s in STUCK.items()},
    **SOUND,
}
SOME = [
    *chains.CHAINS,
    *ATTACHED,
    *LEFT_OUT,
    "stuck-combined",
    "stuck-images-too-many-attached",
    "stuck-compacted",
    "stuck-many",
    "stuck-nested-string",
    "blank-answer",
    "tool-gone-of-own-search",
]
NAMES = list(EVERY) if FULL else SOME


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaudeCode]:
    try:
        with client(tmp_path_factory.mktemp("wire") / "home") as started:
            started.provider.force_when(None)
            started.provider.lenient = True
            yield started
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", NAMES)
def test_the_request_is_the_one_that_the_client_sends(there: ClaudeCode, name: str) -> None:
    _is_sent(there, built(there.new(), EVERY[name]))


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-7", "claude-opus-4-8"])
def test_prompts_that_waited_go_before_files_where_the_model_is_older(there: ClaudeCode, model: str) -> None:
    """The client goes by the model's name."""
    made = built(there.new(), ATTACHED["attached-queued-files"])
    made.by(model)
    _is_sent(there, made, model)


def _is_sent(there: ClaudeCode, made: Transcript, model: str = "") -> None:
    made.write(there.projects)
    asked = there.prompt(made.session, model=model)
    assert asked.requests, asked.output
    read = transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)
    expected = [(turn.role, dict(block.body)) for turn in ClaudeCodeWire().build(read).turns for block in turn.blocks]
    assert sent(asked.requests[0]) == expected
