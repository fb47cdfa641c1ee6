"""Which errors may lead to an edit at all: those of the one form of request that is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recoveryd.clients.find import read_error
from recoveryd.core.model import Failure, Kind
from recoveryd.providers.find import binds_thinking, families_with, provider_of, takes_alike, why_unknown

ANTHROPIC = "anthropic"


def failed(url: Any = None, provider: str = "anthropic", model: str = "claude-sonnet-4-5") -> Failure:
    data = {"message": "no", "metadata": {"url": url}} if url is not None else {"message": "no"}
    return Failure("st", "ses", "msg", 0, read_error({"name": "APIError", "data": data}), provider, model)


def asked(url: Any = None, provider: str = "anthropic", model: str = "claude-sonnet-4-5") -> str | None:
    return family(failed(url, provider, model))


def family(failure: Failure) -> str | None:
    """Whose rules hold."""
    found = provider_of(failure)
    return None if found is None else found.name


VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/claude"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.anthropic.com/v1/messages",
        "https://api.anthropic.com/v1/messages/",
        "https://api.anthropic.com/v1/messages?beta=true",
        "http://127.0.0.1:4000/anthropic/v1/messages",
        f"{VERTEX}:rawPredict",
        f"{VERTEX}:streamRawPredict",
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "my-proxy", ""])
def test_the_address_of_the_messages_api_is_that_form_whatever_the_provider_is_called(url: str, provider: str) -> None:
    assert asked(url, provider) == ANTHROPIC


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/chat/completions",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini:streamGenerateContent",
        f"{VERTEX.replace('anthropic', 'google')}:rawPredict",
        "https://api.example.com/v1/messages/count_tokens",
    ],
)
def test_another_api_is_another_form_even_under_the_name(url: str) -> None:
    assert asked(url) is None


@pytest.mark.parametrize("url", [None, "", "not an address", 7, {}])
def test_without_an_address_the_name_has_to_do(url: Any) -> None:
    assert asked(url) == ANTHROPIC
    assert asked(url, "google-vertex-anthropic") == ANTHROPIC
    assert asked(url, "somewhere") is None
    assert asked(url, "") is None


def test_an_error_without_data_is_read_too() -> None:
    assert family(Failure("st", "ses", "msg", 0, provider="anthropic", model="m")) == ANTHROPIC
    assert family(Failure("st", "ses", "msg", 0, read_error({"data": "text"}), "somewhere", "m")) is None


@pytest.mark.parametrize("url", ["http://[broken/v1/messages", "http://[::1/v1/messages"])
def test_an_address_that_is_none_is_no_known_form(url: str) -> None:
    assert asked(url) in (None, ANTHROPIC)


MESSAGES = "https://{}/anthropic/v1/messages"


@pytest.mark.parametrize(
    ("host", "model"),
    [
        ("api.deepseek.com", "deepseek-reasoner"),
        ("api.moonshot.ai", "kimi-k2-thinking"),
        ("api.minimax.io", "MiniMax-M2"),
        ("api.z.ai", "glm-4.6"),
        ("dashscope-intl.aliyuncs.com", "qwen3-coder-plus"),
    ],
)
def test_another_maker_that_speaks_the_messages_api_has_other_rules(host: str, model: str) -> None:
    assert asked(MESSAGES.format(host), "anthropic", model) is None
    assert asked(MESSAGES.format(host), "anthropic", "claude-sonnet-4-5") is None, "they take Claude's names for theirs"
    assert asked(MESSAGES.format("127.0.0.1:4000"), "my-proxy", model) is None
    assert asked(MESSAGES.format("opencode.ai"), "opencode", model) is None
    assert asked(None, "anthropic", model) is None
    told = why_unknown(failed(MESSAGES.format(host), "deepseek-anthropic", model))
    assert host in told and model in told and "deepseek-anthropic" in told


@pytest.mark.parametrize(
    "model", ["claude-opus-4-1", "anthropic/claude-haiku-4.5", "us.anthropic.claude-sonnet-4-5-v1:0", "sonnet-4.5"]
)
def test_a_gateway_to_anthropics_models_has_anthropics_rules(model: str) -> None:
    for host in ("127.0.0.1:4000", "openrouter.ai", "api.githubcopilot.com", "opencode.ai", "gateway.example.com"):
        assert asked(MESSAGES.format(host), "my-proxy", model) == ANTHROPIC


def test_a_name_that_says_nothing_counts_only_where_anthropics_models_are() -> None:
    assert asked("https://api.anthropic.com/v1/messages", model="next") == ANTHROPIC
    assert asked(f"{VERTEX}:rawPredict", model="next") == ANTHROPIC
    assert asked("https://gateway.example.com/v1/messages", model="next") is None
    assert asked("https://notanthropic.com/v1/messages", model="next") is None


@pytest.mark.parametrize(("provider", "host"), [("github-copilot", "api.githubcopilot.com"), ("litellm", "llm.corp")])
def test_a_model_of_openais_behind_a_door_that_is_not_known_is_not_said_to_be_anothers(
    provider: str, host: str
) -> None:
    assert asked(f"https://{host}/responses", provider, "gpt-5.1") is None
    told = why_unknown(failed(f"https://{host}/responses", provider, "gpt-5.1"))
    assert told == f"how {provider} at {host} passes this on to OpenAI's models is not known to recoveryd"
    assert "has other rules" in why_unknown(failed(f"https://{host}/responses", provider, "grok-4"))


def test_another_form_is_named_by_its_provider() -> None:
    assert "openai" in why_unknown(failed("https://api.openai.com/v1/chat/completions", "openai", "gpt-5"))


BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream"
OPENROUTER = "https://openrouter.ai/api/v1/chat/completions"
KILO = "https://api.kilo.ai/api/openrouter/chat/completions"
COPILOT = "https://api.individual.githubcopilot.com/chat/completions"


@pytest.mark.parametrize(
    ("url", "provider", "model", "name"),
    [
        (BEDROCK, "amazon-bedrock", "eu.anthropic.claude-sonnet-4-5-v1:0", "bedrock"),
        (BEDROCK, "my-gateway", "anthropic.claude-opus-4-5", "bedrock"),
        (None, "amazon-bedrock", "anthropic.claude-opus-4-5", "bedrock"),
        (BEDROCK, "amazon-bedrock", "amazon.nova-pro-v1:0", None),
        (BEDROCK, "amazon-bedrock", "meta.llama4-scout", None),
        (OPENROUTER, "openrouter", "anthropic/claude-sonnet-4.5", "openrouter"),
        (OPENROUTER, "mine", "anthropic/claude-sonnet-4.5", "openrouter"),
        ("http://127.0.0.1:4000/v1/chat/completions", "openrouter", "anthropic/claude-sonnet-4.5", "openrouter"),
        (OPENROUTER, "openrouter", "moonshotai/kimi-k2", "openrouter-kimi"),
        (OPENROUTER, "openrouter", "openrouter/auto", None),
        (KILO, "kilo", "anthropic/claude-sonnet-4.5", "kilo"),
        ("http://127.0.0.1:4000/api/openrouter/chat/completions", "kilo", "anthropic/claude-opus-4.5", "kilo"),
        ("https://api.kilo.ai/api/openrouter/messages", "kilo", "anthropic/claude-sonnet-4.5", "anthropic"),
        ("https://api.kilo.ai/api/gateway/chat/completions", "kilo", "anthropic/claude-sonnet-4.5", None),
        (KILO, "kilo", "moonshotai/kimi-k2", None),
        (KILO, "kilo", "google/gemini-3-pro-preview", None),
        (KILO, "kilo", "kilo-auto/frontier", None),
        (None, "kilo", "anthropic/claude-sonnet-4.5", "kilo"),
        (None, "kilo", "kilo-auto/frontier", None),
        (COPILOT, "github-copilot", "claude-sonnet-4.5", "copilot"),
        (None, "github-copilot-enterprise", "claude-opus-4.5", "copilot"),
        (COPILOT, "github-copilot", "gpt-5", None),
        ("https://api.githubcopilot.com/responses", "github-copilot", "claude-sonnet-4.5", None),
        ("https://api.example.com/v1/chat/completions", "mine", "claude-sonnet-4.5", None),
        ("https://api.openai.com/v1/responses", "openai", "gpt-5", "openai"),
        ("https://opencode.ai/zen/v1/responses", "opencode", "gpt-5", "openai"),
        (None, "openai", "gpt-5", "openai"),
        ("https://api.moonshot.ai/v1/chat/completions", "moonshotai", "kimi-k2-turbo-preview", "kimi"),
        ("https://api.z.ai/api/coding/paas/v4/chat/completions", "zai-coding-plan", "glm-4.6", "glm"),
        ("https://api.deepseek.com/chat/completions", "deepseek", "deepseek-chat", "deepseek"),
        ("https://api.moonshot.ai/v1/chat/completions", "moonshotai", "qwen3", None),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", "alibaba", "qwen3-max", "qwen"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", "alibaba", "kimi-k2", None),
        ("https://api.mistral.ai/v1/chat/completions", "mistral", "devstral-latest", "mistral"),
        (None, "mistral", "magistral-medium", "mistral"),
        ("https://api.x.ai/v1/chat/completions", "xai", "grok-4", "xai"),
        (None, "xai", "grok-code-fast-1", "xai"),
        ("https://api.x.ai/v1/responses", "xai", "grok-4", None),
        ("http://127.0.0.1:4000/v1/chat/completions", "mine", "grok-4", None),
        ("https://notmistral.ai/v1/chat/completions", "mine", "mistral-large", None),
        ("https://lab.openai.azure.com/openai/v1/responses", "azure", "gpt-5.1", "openai"),
        ("http://127.0.0.1:1234/v1/chat/completions", "lmstudio", "google/gemma-3-27b", None),
        ("http://127.0.0.1:4000/v1/chat/completions", "litellm", "gpt-4.1", None),
        ("http://127.0.0.1:8000/v1/chat/completions", "mine", "kimi-k2", None),
        ("https://api.x.ai/v1/responses", "xai", "grok-4", None),
        ("https://api.openai.com/v1/chat/completions", "openai", "gpt-5", None),
        ("https://notopenrouter.ai/api/v1/chat/completions", "mine", "claude-sonnet-4.5", None),
    ],
)
def test_another_family_is_known_by_its_door(url: str | None, provider: str, model: str, name: str | None) -> None:
    assert asked(url, provider, model) == name


GATEWAY = "http://127.0.0.1:4000/v1/chat/completions"
BEDROCK_URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"
RESPONSES, GOOGLE = "https://api.openai.com/v1/responses", "https://generativelanguage.googleapis.com/v1beta/models/"


def custom(model: str, said: str = "no") -> str | None:
    """Whose rules hold of a custom provider that the client's configuration gives the compatible SDK."""
    error = read_error({"name": "APIError", "data": {"message": said, "metadata": {"url": GATEWAY}}})
    return family(Failure("st", "ses", "msg", 0, error, "litellm", model, "openai.chat"))


def test_a_custom_provider_is_known_by_its_sdk_and_the_name_of_the_model() -> None:
    names = {"openai/gpt-4.1": "gpt", "gpt-6.1-sol": "gpt", "o5-mini": "gpt", "qwen3-coder": "qwen", "kimi-k2": "kimi"}
    assert {model: custom(model) for model in names} == names
    for model in ("claude-sonnet-4.5", "openai/gpt-oss-120b", "llama-3.3-70b", "mistral-large", "my-model", ""):
        assert custom(model) is None, model


PROXY = "http://127.0.0.1:4000/v1/messages"


@pytest.mark.parametrize(
    ("url", "model", "called", "name"),
    [
        (PROXY, "smart", "claude-sonnet-4-5", "anthropic"),
        (PROXY, "claude-sonnet-4-5", "MiniMax-M2", None),
        (PROXY, "claude-sonnet-4-5", "our-deployment", "anthropic"),
        (PROXY, "claude-sonnet-4-5", "billing-prod", "anthropic"),
        (PROXY, "smart", "our-deployment", None),
        (PROXY, "kimi-k2", "claude-sonnet-4-5", None),
        (BEDROCK_URL, "claude", "arn:aws:bedrock:us-east-1:1:application-inference-profile/a3o4k", "bedrock"),
        (BEDROCK_URL, "smart", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "bedrock"),
        (GATEWAY, "gpt-5", "prod-gpt-5", "gpt"),
        (GATEWAY, "smart", "openai/gpt-5", "gpt"),
        (GATEWAY, "qwen3-coder", "gpt-4", None),
        (f"{GOOGLE}x:streamGenerateContent", "smart", "gemini-3-pro-preview", "gemini"),
        ("https://openrouter.ai/api/v1/chat/completions", "smart", "anthropic/claude-sonnet-4.5", "openrouter"),
        ("https://a.openai.azure.com/openai/v1/responses", "llama-3", "prod", None),
    ],
)
def test_the_name_that_a_provider_gets_goes_before_the_clients_own_where_it_tells_whose_the_model_is(
    url: str, model: str, called: str, name: str | None
) -> None:
    asks = replace(failed(url, "lab", model), called=called, protocol="openai.chat" if url == GATEWAY else "")
    assert family(asks) == name
    if name is None:
        assert ("(MiniMax-M2)" in why_unknown(asks)) is (called == "MiniMax-M2")
        assert ("by the name gpt-4" in why_unknown(asks)) is (called == "gpt-4")  # it is known how that is asked


def test_thinking_is_bound_by_the_name_that_the_provider_gets() -> None:
    """A number of tokens is no version: a name of one's own for a model that thinks with so many."""
    for model, called, binds in (
        ("opus", "claude-opus-5-5", True),
        ("opus-16k", "claude-opus-4-5-20251101", False),
        ("opus-16k", "", False),
        ("claude-opus-5-5", "our-deployment", True),
        ("claude-opus-5-2", "anthropic/claude-opus-latest", True),
        ("sonnet", "claude-sonnet-4-5-1M", False),
        ("claude-opus-5-1m", "", False),
        ("think-16", "claude-opus-4-5", False),
        ("think-16", "claude-opus-5-5", True),
    ):
        assert binds_thinking(replace(failed(PROXY, "lab", model), called=called), []) is binds, model


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Conversation roles must alternate user/assistant/user/assistant/...", "alternating"),
        (
            "Error rendering prompt with jinja template: After the optional system message, conversation roles must "
            "alternate user and assistant roles except for tool calls and results. at row 189, column 164:",
            "alternating",
        ),
        ("Failed to load image or audio file", "local"),
        ("messages must alternate", None),
    ],
)
def test_a_template_is_known_by_its_words(said: str, name: str | None) -> None:
    assert custom("my-model", said) == name


LITELLM = """litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error",\
"message":"messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"}}"""


@pytest.mark.parametrize(
    ("model", "said", "name"),
    [
        ("claude-sonnet-4-5", LITELLM, "litellm"),
        ("team/sonnet", LITELLM, "litellm"),
        ("claude-sonnet-4-5", LITELLM.replace("Anthropic", "Bedrock"), None),
        ("claude-sonnet-4-5", "messages.1: all messages must have non-empty content", None),
        ("my-model", LITELLM, None),
        ("MiniMax-M2", LITELLM, None),
        ("glm-4.6", LITELLM, "glm"),
    ],
)
def test_claude_behind_litellm_is_known_by_its_name_and_whose_api_the_error_names(
    model: str, said: str, name: str | None
) -> None:
    assert custom(model, said) == name


def test_another_model_behind_a_known_door_is_said_to_have_other_rules() -> None:
    assert "only the rules of Claude" in why_unknown(failed(OPENROUTER, "openrouter", "openai/gpt-5.1"))
    told = why_unknown(failed(KILO, "kilo", "kilo-auto/free"))
    assert told == "of the models of Kilo's gateway only the rules of Claude are known to recoveryd"
    configured = replace(failed(None, "mine", "openai/gpt-5.1"), protocol="openrouter.chat")
    assert why_unknown(configured).startswith("of the models of OpenRouter only")


@pytest.mark.parametrize(
    ("url", "provider", "model", "binds"),
    [
        (None, "anthropic", "claude-opus-5-1", True),
        (None, "anthropic", "claude-sonnet-5.2-20260801", True),
        (None, "anthropic", "claude-opus-6", True),
        (None, "anthropic", "claude-mythos-5-1", False),
        (None, "anthropic", "claude-mythos-5-2", True),
        (None, "anthropic", "claude-opus-6-20270101", True),
        (None, "anthropic", "claude-opus-5-20260101", False),
        (None, "anthropic", "claude-opus-4-5-20251101", False),
        (None, "anthropic", "claude-3-7-sonnet-latest", False),
        (BEDROCK_URL, "amazon-bedrock", "us.anthropic.claude-opus-5-1-20260801-v1:0", True),
        (BEDROCK_URL, "amazon-bedrock", "us.anthropic.claude-opus-4-1-20250805-v1:0", False),
        (None, "openrouter", "anthropic/claude-opus-5.1", True),
        ("https://api.openai.com/v1/responses", "openai", "gpt-5.2", False),
    ],
)
def test_thinking_is_bound_by_the_model_wherever_it_is_asked(
    url: str | None, provider: str, model: str, binds: bool
) -> None:
    asks = failed(url, provider, model)
    assert provider_of(asks) is not None
    assert binds_thinking(asks, []) is binds
    said = [
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation"
    ]
    assert binds_thinking(asks, said) is (provider != "openai")


def test_on_azure_a_model_has_any_name() -> None:
    for provider, known in (("azure", "openai"), ("azure-cognitive-services", "openai"), ("openai", None)):
        assert family(failed(None, provider, "our-deployment")) == known
    assert family(failed(None, "azure", "DeepSeek-R1")) is None


@pytest.mark.parametrize("provider", ["azure", "Azure", "AzureOpenAI"])
def test_on_azure_a_model_has_any_name_however_the_user_of_codex_wrote_the_providers(provider: str) -> None:
    """Codex tells the protocol, and of a refused request no address."""
    asks = replace(failed(None, provider, "our-deployment"), protocol="openai.responses")
    assert family(asks) == "openai"
    assert family(replace(asks, model="DeepSeek-R1")) is None


@pytest.mark.parametrize(
    ("url", "model", "protocol", "holds"),
    [
        ("https://api.openai.com/v1/responses", "an-alias-of-ours", "", True),
        ("https://chatgpt.com/backend-api/codex/responses", "gpt-5.2-codex", "openai.responses", True),
        ("https://api.openai.com/v1/responses/compact", "gpt-5.2", "openai.responses", True),
        ("https://ours.openai.azure.com/openai/responses?api-version=1", "our-deployment", "openai.responses", True),
        ("http://127.0.0.1:4000/v1/responses", "gpt-5.2", "", True),
        ("http://127.0.0.1:4000/v1/responses", "openai/o4-mini", "openai.responses", True),
        (None, "gpt-5.2", "", True),
        (None, "", "openai.responses", True),
        ("http://127.0.0.1:1234/v1/responses", "my-model", "openai.responses", False),
        ("http://127.0.0.1:1234/v1/responses", "my-model", "", False),
        ("http://127.0.0.1:11434/v1/responses", "gpt-oss:20b", "openai.responses", False),
        ("http://127.0.0.1:11434/v1/responses", "qwen3-coder", "", False),
        ("https://api.x.ai/v1/responses", "gpt-5.2", "openai.responses", False),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1/responses", "gpt-5.2", "", False),
        ("https://api.openai.com/v1/chat/completions", "gpt-5.2", "", False),
        (None, "grok-4", "openai.responses", False),
    ],
)
def test_who_answers_at_responses_is_openai_by_the_host_or_the_model(
    url: str | None, model: str, protocol: str, holds: bool
) -> None:
    """Others speak this API, too, with rules of their own: they are named and left alone."""
    asks = replace(failed(url, "openai", model), protocol=protocol)
    assert (family(asks) == "openai") is holds
    if not holds and "chat" not in str(url):
        assert "in the form of OpenAI's" in why_unknown(asks)


def test_nobody_is_named_for_a_fault_that_no_client_sends_there() -> None:
    """LiteLLM gets no thinking, and may want some at the head of a turn; Codex and Claude Code have items of others."""
    sent = (Kind.THINKING_SIGNATURE_INVALID, Kind.THINKING_DISABLED_VIOLATION, Kind.THINKING_FINAL_BLOCK)
    assert all(
        "Claude on LiteLLM" not in families_with(kind) and "Claude on OpenRouter" in families_with(kind)
        for kind in sent
    )
    assert "Claude on LiteLLM" in families_with(Kind.THINKING_BLOCK_ORDER)
    assert sorted(name.split()[0] for name in families_with(Kind.FOREIGN_ITEM)) == ["Claude", "models"]


@pytest.mark.parametrize(
    ("url", "provider", "protocol", "told"),
    [
        ("http://127.0.0.1:1234/v1/chat/completions", "lmstudio", "openai.chat", True),
        (None, "llama.cpp", "openai.chat", True),
        ("https://api.groq.com/openai/v1/chat/completions", "groq", "", False),
        ("http://127.0.0.1:1234/v1/responses", "mine", "openai.chat", False),
    ],
)
def test_of_a_model_of_chat_completions_whose_maker_is_not_known_it_is_told(
    url: str | None, provider: str, protocol: str, told: bool
) -> None:
    asks = replace(failed(url, provider, "google/gemma-3-27b"), protocol=protocol)
    assert family(asks) is None
    words = f"{provider} is asked by chat completions, and what its model (google/gemma-3-27b) takes is not known"
    assert why_unknown(asks).startswith(words) is told
    if provider == "groq":
        assert why_unknown(asks) == "how the client talks to groq is not known to recoveryd"
    assert "asked by chat completions" not in why_unknown(replace(asks, model="qwen3")), "its rules are known"


@pytest.mark.parametrize(
    ("url", "provider", "asked_for", "answered_by", "alike"),
    [
        (RESPONSES, "openai", "gpt-5.2", "gpt-4o", True),
        (RESPONSES, "openai", "gpt-5.2", "gpt-4.1-mini", True),
        (RESPONSES, "openai", "gpt-5.2", "gpt-10-sol", True),
        (RESPONSES, "openai", "gpt-5.2", "gpt-4-turbo", False),
        (RESPONSES, "openai", "gpt-5.2", "gpt-35-turbo", False),
        (RESPONSES, "openai", "gpt-5.2", "gpt-5.3-codex-spark", False),
        (RESPONSES, "openai", "gpt-5.3-codex-spark", "gpt-5.3-codex-spark", True),
        (f"{GOOGLE}gemini-2.5-pro:streamGenerateContent", "google", "gemini-2.5-pro", "gemini-2.5-flash", True),
        (None, "anthropic", "claude-opus-4-5", "claude-sonnet-4-5", True),
        (
            "https://openrouter.ai/api/v1/chat/completions",
            "openrouter",
            "moonshotai/kimi-k2",
            "anthropic/claude",
            False,
        ),
    ],
)
def test_which_models_of_one_provider_take_the_same_images(
    url: str | None, provider: str, asked_for: str, answered_by: str, alike: bool
) -> None:
    failure = failed(url, provider, asked_for)
    assert takes_alike(failure, provider, answered_by) is alike
    assert not takes_alike(failure, "another", answered_by)
