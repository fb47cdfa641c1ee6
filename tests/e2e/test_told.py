"""What no edit of the store heals is named, told once a session with what the user can do, and no byte is changed.

On the real clients, each kind from a provider of the family that says so: Anthropic, OpenAI, DeepSeek and Google.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from recoveryd.tell.notifier import QUIET_S, REST_S
from tests.e2e.client import Client
from tests.e2e.crowd import Records, records
from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness
from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError, ensure
from tests.e2e.provider import Provider
from tests.support.build import Planted, SessionBuilder
from tests.support.bus import Service, running_bus
from tests.support.fake_api import ApiHandler, FakeApi
from tests.support.parts import reasoning, text, tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="dbus-daemon is not installed"),
]

VERSIONS = (JSON_STORE, NEWEST)


@dataclass(frozen=True)
class Said:
    """The words of a provider, the kind that they are of, and what the user is told to do."""

    provider: str
    body: dict[str, Any]
    kind: str
    advice: str
    outcome: str = "refused"


def _anthropic(message: str, kind: str, advice: str) -> Said:
    error = {"type": "invalid_request_error", "message": message}
    return Said("anthropic", {"type": "error", "error": error}, kind, advice)


def _openai(provider: str, message: str, kind: str, advice: str, outcome: str = "refused") -> Said:
    error = {"message": message, "type": "invalid_request_error", "param": "input", "code": None}
    return Said(provider, {"error": error}, kind, advice, outcome)


SAID = {
    "prefill": _anthropic(
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "assistant_prefill",
        "a new prompt clears it",
    ),
    "whitespace": _anthropic(
        "messages: final assistant content cannot end with trailing whitespace",
        "trailing_whitespace",
        "a new prompt clears it",
    ),
    "overflow": _anthropic(
        "prompt is too long: 210338 tokens > 200000 maximum", "context_overflow", "prompt and tools alone"
    ),
    "reasoning-item": _openai(
        "openai",
        "Item 'rs_04962823ecde01b9' of type 'reasoning' was provided without its required following item.",
        "reasoning_item",
        "find nothing in the stored session",  # it holds no such item
        "not_understood",
    ),
    "reasoning-missing": _openai(
        "deepseek",
        "Missing `reasoning_content` field in the assistant message at message index 2.",
        "reasoning_missing",
        "choose another model",
    ),
    "thought-signature": Said(
        "google",
        {"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}},
        "thinking_signature_invalid",
        "choose another model",
    ),
}
# A model that is not known to be Anthropic's, or OpenAI's, is asked under rules that are not known either.
MODELS = {"anthropic": "claude-m", "openai": "gpt-m", "deepseek": "m", "google": "m"}
PACKAGES = {
    "anthropic": "@ai-sdk/anthropic",
    "openai": "@ai-sdk/openai",
    "deepseek": "@ai-sdk/openai-compatible",
    "google": "@ai-sdk/google",
}


class _Handler(ApiHandler):
    api: Refuser

    def do_POST(self) -> None:
        self.body()
        self.send(400, "application/json", self.api.content)


class Refuser(FakeApi):
    """Answers every request with the body that is set."""

    handler = _Handler

    content = b"{}"


def _config(url: str) -> dict[str, Any]:
    model = {"name": "m", "reasoning": True, "tool_call": True, "limit": {"context": 200_000, "output": 32_000}}
    options = {"baseURL": url, "apiKey": "x"}
    providers = {
        name: {"npm": package, "options": options, "models": {MODELS[name]: model}}
        for name, package in PACKAGES.items()
    }
    asked = f"anthropic/{MODELS['anthropic']}"
    # Else 1.18 answers an overflow with a compaction of its own.
    return {"provider": providers, "model": asked, "small_model": asked, "compaction": {"auto": False}}


@dataclass(repr=False)
class Told:
    """A session that was refused twice: what is stored, and what was said of it."""

    planted: Planted
    before: Records = field(default_factory=dict)
    after: Records = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Play:
    """All sessions, and the notices of both rounds as title and body."""

    cases: dict[str, Told]
    toasts: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture(scope="module", params=VERSIONS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    root = tmp_path_factory.mktemp("told")
    try:
        binary = ensure(str(request.param))
    except UnavailableError as reason:
        pytest.skip(str(reason))
    # Short, as the path of a socket has to be.
    with Refuser() as refuser, tempfile.TemporaryDirectory() as short, running_bus(Path(short)) as address:
        service = Service(address)
        with (
            Client(binary, root / "client", refuser.url, config=_config(refuser.url)) as client,
            Daemon(
                root / "daemon",
                root / "client" / "data",
                config="[notify]\ndesktop = true\n",
                env={"DBUS_SESSION_BUS_ADDRESS": address},
            ) as daemon,
        ):
            client.call("GET", "/session")
            yield _play(Harness(client, Provider()), daemon, refuser, service)
        service.stop()


def _play(harness: Harness, daemon: Daemon, refuser: Refuser, service: Service) -> Play:
    cases = {name: Told(_session(name, said.provider)) for name, said in SAID.items()}
    for case in cases.values():
        harness.plant(case.planted)
        case.before = records(harness.client, case.planted.id)
    first, *others = cases
    _refuse(harness, refuser, cases, [first])
    daemon.wait(lambda: len(service.toasts) == 1, "the first notice is missing")
    _refuse(harness, refuser, cases, others)
    daemon.wait_settled([case.planted.id for case in cases.values()], 1)
    daemon.wait(lambda: len(service.toasts) == 2, "the notice of the others is missing")
    _refuse(harness, refuser, cases, list(cases))
    found = daemon.wait_settled([case.planted.id for case in cases.values()], 2)
    time.sleep(REST_S + QUIET_S + 1)  # one too many would come now
    for case in cases.values():
        case.entries = found.get(case.planted.id, [])
        case.after = records(harness.client, case.planted.id)
    return Play(cases, [(toast[3], toast[4]) for toast in service.toasts])


def _refuse(harness: Harness, refuser: Refuser, cases: dict[str, Told], names: list[str]) -> None:
    for name in names:
        refuser.content = json.dumps(SAID[name].body).encode()
        model = {"providerID": SAID[name].provider, "modelID": MODELS[SAID[name].provider]}
        result = harness.client.prompt(cases[name].planted.id, model=model, timeout=90)
        cases[name].errors.append(result.error or {})
        harness.client.wait_idle(cases[name].planted.id)


def _session(name: str, provider: str) -> Planted:
    """A healthy one, of that provider's model, with all that a repair might be tempted by."""
    session = SessionBuilder(title=f"about {name}")
    model: dict[str, Any] = {"providerID": provider, "modelID": MODELS[provider]}
    session.user("go", model=model)
    session.assistant(reasoning("a plan"), text("so"), tool(), **model)
    session.assistant("done", **model)
    return session.planted()


@pytest.mark.parametrize("name", SAID)
def test_it_is_named_and_left_alone(told: Play, name: str) -> None:
    """Each refusal is on record under its kind, with what the user can do, and nothing was written to the session."""
    case, said = told.cases[name], SAID[name]
    assert [(entry["kind"], entry["outcome"], entry["edits"]) for entry in case.entries] == [
        (said.kind, said.outcome, 0)
    ] * 2, case.errors
    assert [entry["detail"] for entry in case.entries if said.advice not in entry["detail"]] == []
    assert {key: case.after.get(key) for key in case.before} == case.before
    assert not any("recoveryd" in content for content in case.after.values())


def test_each_is_told_once(told: Play) -> None:
    """One notice for two refusals: which session and what to do, and one for all that came right behind it."""
    first, *others = SAID
    alone, together = told.toasts
    assert f"about {first}" in alone[0]
    assert SAID[first].advice in alone[1]
    assert together[0] == f"1 session unanswered, {len(others) - 1} stuck"  # its next prompt is accepted
    assert sum(f"about {name}" in together[1] for name in others) == 4
