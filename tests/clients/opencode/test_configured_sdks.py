"""Which SDK the client's own configuration gives a provider: of a custom one nothing else tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from recoveryd.clients.opencode.configured_sdks import protocol_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "opencode").mkdir()
    return tmp_path / "opencode"


def test_a_custom_provider_speaks_as_its_sdk_does(folder: Path) -> None:
    (folder / "opencode.json").write_text('{"provider": {"lab": {"npm": "@openrouter/ai-sdk-provider"}, "x": {}}}')
    assert (protocol_of("lab"), protocol_of("x"), protocol_of("other")) == ("openrouter.chat", "", "")


def test_a_later_file_wins_and_comments_are_read_over(folder: Path) -> None:
    (folder / "opencode.json").write_text('{"provider": {"lab": {"npm": "@ai-sdk/anthropic"}}}')
    (folder / "opencode.jsonc").write_text(
        '{ // "npm": "x"\n "provider": {"lab": {"npm": "@ai-sdk/amazon-bedrock", /* http://x */ }, // last\n },\n}'
    )
    assert protocol_of("lab") == "bedrock.converse"


def test_a_change_is_seen(folder: Path) -> None:
    path = folder / "opencode.json"
    path.write_text('{"provider": {"lab": {"npm": "@ai-sdk/anthropic"}}}')
    assert protocol_of("lab") == "anthropic.messages"
    path.write_text('{"provider": {"lab": {"npm": "@ai-sdk/github-copilot"}}}')
    assert protocol_of("lab") == "copilot.chat"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"provider": 7}', b'{"provider": {"lab": {"npm": 7}}}', b"\xff"]
)
def test_what_can_not_be_read_tells_nothing(folder: Path, content: bytes) -> None:
    (folder / "opencode.json").write_bytes(content)
    assert protocol_of("lab") == ""


def test_an_sdk_that_is_not_known_tells_nothing(folder: Path) -> None:
    (folder / "opencode.json").write_text('{"provider": {"lab": {"npm": "my-own-sdk"}}}')
    assert protocol_of("lab") == ""
    assert protocol_of("") == ""
