"""A refusal of who has no rules here is named, and changes nothing; what its user can do is told where it is known."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core import Event, Outcome
from recoveryd.heal.undo import undo
from recoveryd.providers import NO_RULES, classify, other_cause, rules_for
from tests.support.build import SessionBuilder
from tests.support.examples import FULL
from tests.support.generate import generate, soup
from tests.support.parts import reasoning, text, tool
from tests.support.plant import write_tree
from tests.support.trees import MISSING, Bench, Tree

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
UNKNOWN = [
    ("groq", "llama-3.3-70b-versatile", f"https://api.groq.com/openai{CHAT}"),
    ("xai", "grok-4", f"https://api.x.ai{RESPONSES}"),
    ("cerebras", "gpt-oss-120b", f"https://api.cerebras.ai{CHAT}"),
    ("cohere", "command-a-03-2025", "https://api.cohere.com/v2/chat"),
    ("togetherai", "Qwen/Qwen3-Coder-480B", f"https://api.together.xyz{CHAT}"),
    ("minimax", "MiniMax-M2", f"https://api.minimax.io/anthropic{MESSAGES}"),
    ("vercel", "anthropic/claude-sonnet-4.5", "https://ai-gateway.vercel.sh/v1/ai/language-model"),
    ("openrouter", "openai/gpt-5.1", "https://openrouter.ai/api/v1/chat/completions"),
    ("github-copilot", "gpt-4.1", "https://api.githubcopilot.com/chat/completions"),
    (
        "amazon-bedrock",
        "amazon.nova-pro-v1:0",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream",
    ),
    ("my-gateway", "my-model", f"http://127.0.0.1:4000{CHAT}"),
]
UNSIGNED = "messages.3.content.0.thinking.signature: Field required"
WORDS = {
    "tool_result_missing": MISSING,
    "empty_content": "messages: text content blocks must be non-empty",
    "tool_call_invalid": "Invalid 'messages[3].tool_calls[0].function.name': string does not match pattern.",
    "role_order": "Conversation roles must alternate user/assistant/user/assistant/...",
    "reasoning_missing": "Missing `reasoning_content` field in the assistant message at message index 2.",
    "thinking_signature_invalid": "Corrupted thought signature.",
}


def refused(tree: Tree, provider: str, model: str, url: str, words: str) -> str:
    """A session with much that some provider or other refuses, whose last prompt this one refused."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model={"providerID": provider, "modelID": model})
    made.user("go")
    made.assistant(reasoning("a plan"), tool("no name", call_id=""), text("behind"), text(" "))
    made.user("and?")
    data = {"message": words, "statusCode": 400, "responseBody": json.dumps({"error": {"message": words}})}
    made.failed("continue", {"name": "APIError", "data": {**data, "metadata": {"url": url}}})
    write_tree(made.planted(), tree.root)
    return made.planted().id


def judged(tree: Tree, bench: Bench, *about: str) -> tuple[Event, bool]:
    """What came of it, and whether every byte is as it was."""
    session = refused(tree, *about)
    before = tree.files()
    return bench.attempt(tree, session), tree.files() == before


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(("provider", "model", "url"), UNKNOWN)
def test_it_is_named_and_left_alone_byte_for_byte(
    tree: Tree, bench: Bench, provider: str, model: str, url: str
) -> None:
    for kind, words in WORDS.items():
        event, same = judged(tree, bench, provider, model, url, words)
        assert same, kind
        assert (event.outcome, event.kind) == (Outcome.REFUSED, kind)
        named = provider in event.detail.lower() or "only the rules of Claude" in event.detail
        assert named or kind == "reasoning_missing"
        # Where it was seen to help: what only its issuer reads, and reasoning that only this one wants back.
        helps = kind in ("reasoning_missing", "thinking_signature_invalid")
        assert ("choose another model" in event.detail) is helps


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True)
    return path


PATHS = (CHAT, MESSAGES, RESPONSES, "/v2/chat", "/model/m/converse", "/v1beta/models/m:streamGenerateContent", "/")
SDKS = ("@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/cohere", "made-up-sdk")
MORE_WORDS = (
    "prompt is too long: 210000 tokens > 200000 maximum",
    "messages.1: The final block in an assistant message cannot be `thinking`.",
    "The request body is not valid JSON: no low surrogate in string: line 1 column 94 (char 93)",
    "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide",
    "The encrypted content gAAA...kifQ could not be verified.",
)


def made_up(rng: random.Random) -> tuple[str, str, str]:
    """A provider, a model and an address that nobody has; the name of the model may begin as a known one."""
    letters = ["".join(rng.choices("bcdfgklmnprstvz", k=3)) + rng.choice("aeiou") for _ in range(5)]
    begins = rng.choice(("", "", "claude-", "gpt-5-", "gemini-3-", "kimi-", "llama-", "command-"))
    host = rng.choice((f"http://127.0.0.1:{rng.randint(1024, 65000)}", f"https://api.{letters[0]}.example"))
    return "-".join(letters[:2]), begins + letters[2], host + rng.choice(PATHS)


@pytest.mark.parametrize("seed", range(40 if FULL else 6))
def test_generated_sessions_of_made_up_providers_are_named_and_left_alone(
    tmp_path: Path, tree: Tree, bench: Bench, config: Path, seed: int
) -> None:
    rng = random.Random(seed)
    sdks: dict[str, Any] = {}
    sessions: dict[str, str] = {}
    for _ in range(12):
        provider, model, url = made_up(rng)
        if rng.random() < 0.3:
            sdks[provider] = {"npm": rng.choice(SDKS), "models": {model: {}}}
        made = (generate(rng, faults=2) if rng.random() < 0.5 else soup(rng, wild=True)).planted
        words = rng.choice((*WORDS.values(), *MORE_WORDS))
        data = {"message": words, "statusCode": 400, "responseBody": json.dumps({"error": {"message": words}})}
        now = int(time.time() * 1000) - 60_000
        failing = SessionBuilder(now, seed=rng.getrandbits(32), model={"providerID": provider, "modelID": model})
        failing.session = made.session
        failing.failed("on", {"name": "APIError", "data": {**data, "metadata": {"url": url}}})
        made.messages.extend(failing.messages)
        made.parts.update(failing.parts)
        made.session.pop("revert", None)
        write_tree(made, tree.root)
        sessions[made.id] = provider
    config.write_text(json.dumps({"provider": sdks}))
    client = bench.recovery.context.clients.of(tree.store)
    failures = {session: tree.failure(session) for session in sessions}
    unknown = [
        session
        for session, failure in failures.items()
        if rules_for(failure, client.wires(tree.store, failure)) is NO_RULES
    ]
    assert len(unknown) >= 6
    before = tree.files()
    for session in unknown:
        event = bench.attempt(tree, session)
        assert event.outcome is Outcome.REFUSED, event
        door = "only the rules of" in event.detail  # known by its address alone
        named = door or sessions[session] in event.detail.lower()
        assert named or event.kind == "reasoning_missing", event.detail
    assert tree.files() == before


@pytest.mark.parametrize(
    ("provider", "model", "told"),
    [("lab", "kimi-k2-thinking", True), ("lab", "qwen3", False), ("moonshotai", "kimi-k2-thinking", False)],
)
def test_a_custom_kimi_is_told_the_line_that_heals_it(
    tree: Tree, bench: Bench, config: Path, provider: str, model: str, told: bool
) -> None:
    config.write_text(json.dumps({"provider": {"lab": {"npm": "@ai-sdk/openai-compatible"}}}))
    words = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
    event, same = judged(tree, bench, provider, model, f"http://127.0.0.1:4000{CHAT}", words)
    assert same
    assert (event.outcome, event.kind) == (Outcome.REFUSED, "reasoning_missing")
    assert ('"interleaved": {"field": "reasoning_content"}' in event.detail) is told
    assert (model in event.detail) is told


@pytest.mark.parametrize(
    ("interleaved", "there"),
    [
        ({"field": "reasoning_content"}, True),
        ({"field": "reasoning_details"}, False),  # Kimi does not read that one
        (True, False),
        ({"field": ""}, False),
    ],
)
def test_a_line_that_is_there_already_is_not_advised(
    tree: Tree, bench: Bench, config: Path, interleaved: object, there: bool
) -> None:
    models = {"kimi-k2-thinking": {"interleaved": interleaved}, "another": {"interleaved": {"field": "x"}}}
    config.write_text(json.dumps({"provider": {"lab": {"npm": "@ai-sdk/openai-compatible", "models": models}}}))
    words = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
    event, same = judged(tree, bench, "lab", "kimi-k2-thinking", f"http://127.0.0.1:4000{CHAT}", words)
    assert same
    assert (event.outcome, event.kind) == (Outcome.REFUSED, "reasoning_missing")
    assert ('give kimi-k2-thinking `"interleaved"' in event.detail) is not there
    assert ('prompt it again if `"interleaved"` was put into opencode.json since' in event.detail) is there


def kimi(tree: Tree) -> str:
    """A session with a call of another model, which Kimi on OpenRouter refused."""
    model = {"providerID": "openrouter", "modelID": "moonshotai/kimi-k2-thinking"}
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=model)
    made.user("go")
    made.assistant(tool(), text("done"), providerID="anthropic", modelID="claude-sonnet-4-5")
    words = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    raw = json.dumps({"error": {"message": words}})
    body = {"error": {"message": "Provider returned error", "metadata": {"raw": raw, "provider_name": "Moonshot AI"}}}
    data = {"message": f"[Moonshot AI] {words}", "statusCode": 400, "responseBody": json.dumps(body)}
    made.failed("on", {"name": "APIError", "data": {**data, "metadata": {"url": f"https://openrouter.ai/api{CHAT}"}}})
    write_tree(made.planted(), tree.root)
    return made.planted().id


def test_reasoning_is_made_up_only_where_the_configuration_says_so(tree: Tree, bench: Bench) -> None:
    session = kimi(tree)
    before = tree.files()
    told = bench.attempt(tree, session)
    assert tree.files() == before
    assert (told.outcome, told.kind) == (Outcome.REFUSED, "reasoning_missing")
    offer = "or let recoveryd make it up, in words that say so: recoveryd config set invent_reasoning true"
    assert offer in told.detail


def test_made_up_reasoning_says_that_it_is_and_is_undone(tree: Tree, tmp_path: Path) -> None:
    session = kimi(tree)
    before = tree.files()
    bench = Bench(tmp_path, invent_reasoning=True)
    event = bench.attempt(tree, session)
    assert (event.outcome, event.actions) == (Outcome.HEALED, ("invent_reasoning", "close_turn")), event.detail
    after = tree.files()
    parts = [json.loads((tree.root / path).read_bytes()) for path in after if path not in before]
    [part] = [part for part in parts if part["type"] == "reasoning"]
    assert part["text"].startswith("[The reasoning before this tool call was not kept.]")
    assert part["metadata"]["recoveryd"] == {"recovery": event.id}
    undo(tree.store, bench.ledger, bench.ledger.get(event.id))
    bench.ledger.close()
    assert tree.files() == before


def said(words: str, **data: Any) -> str | None:
    """The kind of a sentence; None where it has none."""
    found = classify(read_error({"name": "APIError", "data": {"message": words, "statusCode": 400, **data}}))
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("input item ID does not belong to this connection", "reasoning_item"),
        (
            "Invalid value at 'contents[2].parts[1].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"x\"",
            "thinking_signature_invalid",
        ),
        ("The messages parameter is illegal. Please check the documentation.", "empty_content"),
        (
            "Please ensure that function call turn comes immediately after a user turn or after a function "
            "response turn.",
            "role_order",
        ),
        ("Function name was a b but must be a-z, A-Z, 0-9, or contain underscores and dashes", "tool_call_invalid"),
        (
            "Image data:image/png;base64,aGk has an invalid format.Allowed formats are JPEG,PNG,WEBP,GIF.",
            "media_rejected",
        ),
        ("Failed to load image or audio file", "media_rejected"),
        ("Conversation roles must alternate user/assistant/user/assistant/...", "role_order"),
    ],
)
def test_the_sentences_of_the_families_bare_and_wrapped_by_gateways(words: str, kind: str) -> None:
    body = json.dumps({"error": {"message": f"litellm.BadRequestError: {words}", "code": "400"}})
    raw = json.dumps(
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"message": words})}}}
    )
    assert said(words) == said(f"Error from provider (Console): Upstream request failed: [x] {words}") == kind
    assert (
        said("Provider returned error", responseBody=body) == said("Provider returned error", responseBody=raw) == kind
    )


def test_a_model_that_takes_no_images_is_named_and_no_fault_of_the_history() -> None:
    words = "Failed to deserialize the JSON body into the target type: messages[3]: unknown variant "
    words += "`image_url`, expected `text`"
    assert said(words) is None
    told = other_cause(read_error({"name": "APIError", "data": {"message": words, "statusCode": 400}}))
    assert told is not None and "takes no images" in told


@pytest.mark.parametrize(
    "words",
    [
        f"RequestExecutor.execute: Provider request failed with HTTP 400: {UNSIGNED}",
        "ProviderShared.request: Anthropic Messages does not support media type application/pdf",
    ],
)
def test_a_client_that_asked_without_an_sdk_is_named_and_its_sound_thinking_stays(
    tree: Tree, bench: Bench, words: str
) -> None:
    """It sends the thinking that nobody signed, where the SDK leaves it out: no signed one is to blame (1.18.34)."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000)
    made.user("go")
    made.assistant(reasoning("sound"), "done")
    made.user("and?")
    made.assistant(reasoning("cut off", signature=None), "half")
    made.failed("continue", {"name": "UnknownError", "data": {"message": words}})
    write_tree(made.planted(), tree.root)
    before = tree.files()
    event = bench.attempt(tree, made.planted().id)
    assert (event.outcome, tree.files()) == (Outcome.REFUSED, before)
    assert "OPENCODE_EXPERIMENTAL_NATIVE_LLM" in event.detail
