"""Providers of a user's own on the real client: told by their package, the address in the error, and its sentences.

Each is asked with a session that it refuses. Where it is not sure whose rules hold, no byte of it changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.client import Client
from tests.e2e.daemon import Daemon
from tests.e2e.install import NEWEST, UnavailableError, ensure
from tests.e2e.provider import Provider, _Handler
from tests.families.fake import Fake
from tests.families.play import Played, Stage
from tests.families.table import FAMILIES, Family
from tests.shapes import SHAPES
from tests.support.build import MODEL
from tests.support.long_sessions import LONG
from tests.support.plant import write_sqlite

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MESSAGES = Family("messages", "", "@ai-sdk/anthropic", "", lambda step: None)
CHAT = "@ai-sdk/openai-compatible"


@dataclass(frozen=True)
class Custom:
    """A provider of a user's configuration. `speaks`: the family that answers there, "messages" for Anthropic's own.

    `host`: what its address names, where that is not loopback: it is reached through the proxy of the environment.
    """

    name: str
    speaks: str
    npm: str
    model: str
    shape: str = "picture-that-is-none"
    host: str = ""

    def family(self) -> Family:
        """How the client is configured for it."""
        made = FAMILIES.get(self.speaks, MESSAGES)
        return replace(made, provider=self.name, npm=self.npm, model=self.model)


# The package and the model's name, or the words of the error, tell whose rules hold.
SURE = [
    Custom("my-claude", "messages", "@ai-sdk/anthropic", "claude-sonnet-4-5"),
    Custom("my-google", "gemini", "@ai-sdk/google", "gemini-3-pro-preview", "tool-name-with-spaces"),
    Custom("my-openai", "openai", "@ai-sdk/openai", "gpt-5.1"),
    Custom("my-kimi", "kimi", CHAT, "kimi-k2-turbo-preview", "blank-answer-off"),
    Custom("my-gateway", "litellm", CHAT, "claude-sonnet-4-5", "tool-name-with-a-dot"),
    Custom("my-xai", "xai", "@ai-sdk/xai", "grok-4"),
    Custom("my-local", "gemma", CHAT, "my-model", "neighbouring-users-off"),
]
UNSURE = [
    # Others that speak Anthropic's API, told by the model or by the host.
    Custom("glm-as-claude", "messages", "@ai-sdk/anthropic", "glm-4.6"),
    Custom("kimi-as-claude", "messages", "@ai-sdk/anthropic", "kimi-k2-turbo-preview"),
    Custom("minimax-as-claude", "messages", "@ai-sdk/anthropic", "MiniMax-M2"),
    Custom("some-model", "messages", "@ai-sdk/anthropic", "my-model"),
    Custom("zai-as-claude", "messages", "@ai-sdk/anthropic", "claude-sonnet-4-5", host="api.z.ai"),
    Custom("minimax-by-host", "messages", "@ai-sdk/anthropic", "claude-sonnet-4-5", host="api.minimax.io"),
    # Nothing of the model's name in chat completions, or one of Claude behind nobody knows what.
    Custom("some-chat", "kimi", CHAT, "my-model", "blank-answer-off"),
    Custom("claude-by-chat", "copilot", CHAT, "claude-sonnet-4-5", "tool-name-with-a-dot"),
    # Google's and OpenAI's form with models of others.
    Custom("some-google", "gemini", "@ai-sdk/google", "my-model", "tool-name-with-spaces"),
    Custom("qwen-by-responses", "openai", "@ai-sdk/openai", "qwen3-coder"),
    # Packages whose requests are not known.
    Custom("my-groq", "kimi", "@ai-sdk/groq", "moonshotai/kimi-k2-instruct", "blank-answer-off"),
    Custom("some-xai", "xai", "@ai-sdk/xai", "my-model"),
]


class _Proxied(_Handler):
    def do_POST(self) -> None:
        """Answer also what is asked of a proxy, by a whole address."""
        self.path = urlsplit(self.path).path
        super().do_POST()


class Messages(Provider):
    """Anthropic's API under any host, as a proxy of the environment reaches it."""

    handler = _Proxied


Run = dict[str, Played]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    root = tmp_path_factory.mktemp("custom")
    try:
        with ExitStack() as stack:
            yield _run(root, stack)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _run(root: Path, stack: ExitStack) -> Run:
    """Ask every provider with a session of its own, all at once; wait for the daemon; ask again."""
    customs = [*UNSURE, *SURE]
    fakes = {name: stack.enter_context(Fake(name)) for name in {one.speaks for one in customs} - {"messages"}}
    messages = stack.enter_context(Messages())
    config = FAMILIES["gpt"].config(messages.address)
    for one in customs:
        fake = fakes.get(one.speaks, messages)
        address = f"http://{one.host}" if one.host else fake.address
        config["provider"] |= one.family().config(address)["provider"]
    proxy = {"HTTP_PROXY": messages.address, "http_proxy": messages.address, "NO_PROXY": "127.0.0.1,localhost"}
    client = Client(ensure(NEWEST), root / "client", messages.url, config=config, env=proxy)
    with client, Daemon(root / "daemon", root / "client" / "data") as daemon:
        (client.directory / "opencode.json").write_text(json.dumps({"provider": config["provider"]}))
        client.call("GET", "/session")
        stages = [Stage(client, fakes["kimi"], daemon, one.family(), NEWEST) for one in customs]
        made = [stage.plant(SHAPES[one.shape]) for stage, one in zip(stages, customs, strict=True)]
        for _ in range(2):
            with ThreadPoolExecutor(4) as pool:
                results = list(pool.map(Stage.prompt, stages, made))
            for played, result in zip(made, results, strict=True):
                played.again.append(result.info is not None and result.error is None)
                played.first = played.first or result
            daemon.wait_settled(played.planted.id for played in made[len(UNSURE) :])
        history = daemon.by_session()
        for stage, played in zip(stages, made, strict=True):
            played.entries, played.after = history.get(played.planted.id, []), stage.records(played.planted)
    return {one.name: played for one, played in zip(customs, made, strict=True)}


@pytest.mark.parametrize("custom", SURE, ids=lambda one: one.name)
def test_where_it_is_known_whose_rules_hold_it_heals(run: Run, custom: Custom) -> None:
    one = run[custom.name]
    assert ([entry["outcome"] for entry in one.entries], one.again) == (["healed"], [False, True]), one.tell()


@pytest.mark.parametrize("custom", UNSURE, ids=lambda one: one.name)
def test_where_it_is_not_sure_no_byte_changes_and_it_is_named(run: Run, custom: Custom) -> None:
    one = run[custom.name]
    assert one.again == [False, False], one.tell()
    assert {key: one.after.get(key) for key in one.before} == one.before
    assert {(entry["outcome"], entry["edits"]) for entry in one.entries} == {("refused", 0)}, one.tell()
    assert [entry["detail"] for entry in one.entries if "so nothing can be proved" not in entry["detail"]] == []


PROXY, MAKER = (
    Custom("my-claude", "messages", "@ai-sdk/anthropic", "claude-sonnet-4-5", host=host)
    for host in ("claude.example.com", "api.z.ai")
)


@pytest.mark.parametrize(("custom", "healed"), [(PROXY, True), (MAKER, False)], ids=lambda one: str(one))
def test_too_long_is_made_shorter_behind_a_proxy_and_not_at_another_maker(
    tmp_path: Path, custom: Custom, healed: bool
) -> None:
    """The client records no address of it: its configuration tells one."""
    planted = LONG["many-turns"].build()
    planted.rename(MODEL, custom.family().ids)
    try:
        with Messages(limit=200_000) as messages:
            proxy = {"HTTP_PROXY": messages.address, "http_proxy": messages.address, "NO_PROXY": "127.0.0.1,localhost"}
            config = custom.family().config(f"http://{custom.host}") | {"compaction": {"auto": False, "prune": False}}
            client = Client(ensure(NEWEST), tmp_path / "client", messages.url, config=config, env=proxy)
            with client, Daemon(tmp_path / "daemon", tmp_path / "client" / "data") as daemon:
                (client.directory / "opencode.json").write_text(json.dumps({"provider": config["provider"]}))
                client.call("GET", "/session")
                write_sqlite(planted, client.database, directory=str(client.directory))
                refused = client.prompt(planted.id, "go on", thinking=True, model=custom.family().ids)
                (found,) = daemon.wait_settled([planted.id])[planted.id]
                after = client.prompt(planted.id, thinking=True, model=custom.family().ids)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert refused.error is not None and refused.error["name"] == "ContextOverflowError"
    assert (found["outcome"], after.error is None) == (("healed", True) if healed else ("refused", False)), found
    assert healed or "z.ai" in found["detail"]
