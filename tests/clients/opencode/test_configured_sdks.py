"""Which SDK the client's own configuration gives a provider: of a custom one nothing else tells it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from recoveryd.clients.opencode import protocols
from recoveryd.clients.opencode.configured_sdks import as_asked, asks_its_maker, protocol_of
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import NEW
from recoveryd.core import Failure, RecordedError
from recoveryd.providers.find import provider_of, rules_for, why_unknown


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


def test_a_model_with_an_sdk_of_its_own_is_asked_by_that(folder: Path) -> None:
    """As a gateway is configured that serves Claude by Anthropic's API, and the others by chat completions."""
    own = {"provider": {"npm": "@ai-sdk/anthropic"}}
    models = {"claude-sonnet-4-5": own, "kimi-k2": {}, "odd": {"provider": {"npm": 7}}, "mine": own}
    (folder / "opencode.json").write_text(
        json.dumps({"provider": {"lab": {"npm": "@ai-sdk/openai-compatible", "models": models}}})
    )
    spoken = {model: protocol_of("lab", model=model) for model in (*models, "other", "")}
    assert {model for model, protocol in spoken.items() if protocol == "anthropic.messages"} == {
        "claude-sonnet-4-5",
        "mine",
    }
    assert set(spoken.values()) == {"anthropic.messages", "openai.chat"}
    said = RecordedError(url="http://127.0.0.1:4000/v1/messages")
    failure = as_asked(Failure("st", "ses", "msg", 0, said, "lab", "claude-sonnet-4-5"))
    assert rules_for(failure, wires_of(failure, protocols.protocol_of(failure), [NEW])).name == "anthropic"
    (folder / "opencode.jsonc").write_text(
        '{"provider": {"lab": {"npm": "@ai-sdk/mistral", "models": {"mine": {"provider": {"npm": "my-sdk"}}}}}}'
    )
    assert protocol_of("lab", model="claude-sonnet-4-5") == "anthropic.messages", "the model's goes before, in any file"
    assert protocol_of("lab", model="kimi-k2") == "mistral.chat"
    assert protocol_of("lab", model="mine") == "", "an SDK that is not known"


def test_a_model_may_have_another_name_at_its_provider(folder: Path) -> None:
    profile = "arn:aws:bedrock:us-east-1:1:application-inference-profile/a"
    models = {"claude": {"id": profile}, "odd": {"id": 7}, "x": 7}
    (folder / "opencode.json").write_text(json.dumps({"provider": {"lab": {"models": models}}}))

    def called(model: str, provider: str = "lab") -> str:
        return as_asked(Failure("st", "ses", "msg", 0, provider=provider, model=model)).called

    assert called("claude") == profile
    assert {called(model) for model in ("odd", "x", "other", "")} | {called("claude", "mine")} == {""}
    (folder / "opencode.jsonc").write_text(
        '{"provider": {"lab": {"models": {"claude": {}, "odd": {"id": "claude-x"}}}}}'
    )
    assert (called("claude"), called("odd")) == (profile, "claude-x")
    (folder / "opencode.jsonc").write_text('{"provider": {"lab": {"models": {"claude": {"id": "later"}}}}}')
    assert called("claude") == "later"
    (folder / "opencode.jsonc").write_text('{"provider": {"lab": {"models": {"claude": {"id": "{env:PROFILE}"}}}}}')
    assert called("claude") == "", "only the client's shell knows it"


def say(path: Path, package: str, provider: str = "lab") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"provider": {{"{provider}": {{"npm": "{package}"}}}}}}')


@pytest.fixture
def project(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a project of its own, below a home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    inner = tmp_path / "work" / "project" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "work" / "project" / ".git").mkdir()
    say(folder / "opencode.json", "@ai-sdk/anthropic")
    return inner


def asked_in(project: Path, root: str = "") -> str:
    return protocol_of("lab", str(project), root)


def test_the_configuration_of_the_project_wins_over_that_of_the_user(project: Path) -> None:
    assert asked_in(project) == "anthropic.messages"
    say(project.parent / "opencode.json", "@ai-sdk/mistral")
    assert (asked_in(project), protocol_of("lab"), protocol_of("lab", "/")) == (
        "mistral.chat",
        "anthropic.messages",
        "anthropic.messages",
    )
    say(project / "opencode.jsonc", "@ai-sdk/openai-compatible")
    assert asked_in(project) == "openai.chat", "the nearer one"
    say(project.parent / ".opencode" / "opencode.json", "@ai-sdk/openai")
    assert asked_in(project) == "openai.responses", "its folder comes behind its files"


def test_what_is_above_the_project_is_not_its_own(project: Path) -> None:
    say(project.parent.parent / "opencode.json", "@ai-sdk/mistral")
    assert asked_in(project) == "anthropic.messages"
    assert asked_in(project, str(project.parent.parent)) == "mistral.chat", "the client said where it ends"
    assert asked_in(project, str(project)) == "anthropic.messages"
    (project.parent / ".git").rmdir()
    assert asked_in(project) == "mistral.chat", "no project: all the way up"


def test_the_variables_of_the_client_are_heeded_where_they_are_ours_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(project / "mine.json", "@ai-sdk/mistral")
    monkeypatch.setenv("OPENCODE_CONFIG", str(project / "mine.json"))
    assert asked_in(project) == "mistral.chat"
    say(project / "opencode.json", "@ai-sdk/openai")
    assert asked_in(project) == "openai.responses", "the project's own comes behind it"
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", '{"provider": {"lab": {"npm": "@ai-sdk/openai-compatible"}}}')
    assert asked_in(project) == "openai.chat"
    for broken in ("{", "[]", "[" * 100_000):
        monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", broken)
        assert asked_in(project) == "openai.responses"


def test_what_is_no_file_is_not_opened(project: Path) -> None:
    os.mkfifo(project / "opencode.json")
    (project / "opencode.jsonc").mkdir()
    assert asked_in(project) == "anthropic.messages"


@pytest.mark.parametrize("directory", ["", "relative", "/nowhere", "/a\0b", "/" + "x" * 5000])
def test_a_folder_that_tells_nothing(project: Path, directory: str) -> None:
    assert protocol_of("lab", directory) == "anthropic.messages"


# From the least to what wins over all others, as the real client merged them (tests/e2e/test_kilo.py).
BOTH = tuple(f"work/project/{place}opencode.{form}" for place in ("", "src/") for form in ("json", "jsonc"))
IN_A_KILO_FOLDER = ("kilo.jsonc", "kilo.json", "opencode.jsonc", "opencode.json")
OF_KILO = (
    *(f"kilo/{name}" for name in ("config.json", "kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")),
    "named.json",
    *(f"work/project/{place}kilo.{form}" for place in ("", "src/") for form in ("json", "jsonc")),
    *BOTH,
    *(
        f"{place}/{hidden}/{name}"
        for place in ("work/project/src", "work/project", ".")
        for hidden in (".kilocode", ".kilo")
        for name in IN_A_KILO_FOLDER
    ),
    *(f"dir/{name}" for name in IN_A_KILO_FOLDER),
)
OF_OPENCODE_ALONE = ("opencode/opencode.json", "work/project/.opencode/opencode.json", ".opencode/opencode.json")


def test_kilo_goes_by_its_own_files_in_its_own_order(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILO_CONFIG", str(tmp_path / "named.json"))
    monkeypatch.setenv("KILO_CONFIG_DIR", str(tmp_path / "dir"))
    for name in OF_OPENCODE_ALONE:
        say(tmp_path / name, "@ai-sdk/anthropic")
    assert protocol_of("lab", str(project), client="kilo") == ""
    for at, name in enumerate(OF_KILO):
        package, spoken = (("@ai-sdk/openai", "openai.responses"), ("@ai-sdk/mistral", "mistral.chat"))[at % 2]
        say(tmp_path / name, package)
        assert protocol_of("lab", str(project), client="kilo") == spoken, name
    monkeypatch.setenv("KILO_CONFIG_CONTENT", '{"provider": {"lab": {"npm": "@ai-sdk/xai"}}}')
    assert protocol_of("lab", str(project), client="kilo") == "xai.chat"


def test_opencode_does_not_go_by_the_files_of_kilo(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILO_CONFIG", str(tmp_path / "named.json"))
    monkeypatch.setenv("KILO_CONFIG_CONTENT", '{"provider": {"lab": {"npm": "@ai-sdk/xai"}}}')
    for name in OF_KILO:
        if name not in BOTH:
            say(tmp_path / name, "@ai-sdk/mistral")
    assert protocol_of("lab", str(project)) == "anthropic.messages"


def test_a_fork_of_which_nothing_is_known_goes_by_the_files_of_opencode(project: Path) -> None:
    assert protocol_of("lab", str(project), client="opencode/Fork") == "anthropic.messages"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("word", ['\\"', '"', "/* ", "//", ","])
def test_what_never_ends_is_read_once(folder: Path, word: str) -> None:
    (folder / "opencode.json").write_text("{" + word * 200_000)
    assert protocol_of("lab") == ""


ELSEWHERE = {
    "another service of the same form": {"options": {"baseURL": "https://api.z.ai/api/anthropic/v1"}},
    "a proxy": {"options": {"baseURL": "http://localhost:4000"}},
    "a name that only looks like its own": {"options": {"baseURL": "https://api.anthropic.com.example/v1"}},
    "what a variable says": {"options": {"baseURL": "{env:MY_PROXY}"}},
    "the address as the list of models names it": {"api": "https://example.com/v1"},
    "an SDK that nobody knows": {"npm": "file:///home/me/sdk.js"},
    "one of its models": {"models": {"claude": {"provider": {"api": "https://example.com"}}}},
    "what is no address": {"options": {"baseURL": "http://[::1"}},
    "as Bedrock's SDK is led": {"options": {"endpoint": "http://localhost:4000"}},
}


@pytest.mark.parametrize("settings", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("place", ["config/kilo/kilo.jsonc", "project/opencode.json", "project/.kilocode/kilo.json"])
def test_a_provider_that_is_led_elsewhere_is_not_asked_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, settings: object
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / ".git").mkdir(parents=True)
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    asked = str(tmp_path / "project")
    file.write_text(json.dumps({"provider": {"other": settings}}))
    assert asks_its_maker("anthropic", asked)
    file.write_text(json.dumps({"provider": {"other": {}, "anthropic": settings}}))
    assert not asks_its_maker("anthropic", asked)


@pytest.mark.parametrize("content", [b"{", b'{"a": {env:A}}', b"[" * 100_000, b'{"a": "' + b"x" * 1024 * 1024 + b'"}'])
def test_a_configuration_that_can_not_be_read_may_lead_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    assert asks_its_maker("anthropic")
    (folder / "opencode.json").write_bytes(content)
    assert not asks_its_maker("anthropic")
    (folder / "opencode.json").unlink()
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", "{")
    assert not asks_its_maker("anthropic")


def test_a_mark_of_the_byte_order_is_read_over(folder: Path) -> None:
    settings = {"lab": {"npm": "@ai-sdk/anthropic"}, "anthropic": {"options": {"baseURL": "http://localhost:4000"}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": settings}), encoding="utf-8-sig")
    assert protocol_of("lab") == "anthropic.messages" and not asks_its_maker("anthropic")


OWN = {"baseURL": "https://api.anthropic.com/v1"}


@pytest.mark.parametrize("settings", [{}, {"options": {"apiKey": "x"}}, {"npm": "@ai-sdk/anthropic"}, {"options": OWN}])
def test_a_provider_at_its_own_address_is_asked_itself(folder: Path, settings: object) -> None:
    (folder / "opencode.json").write_text(json.dumps({"provider": {"anthropic": settings}}))
    assert asks_its_maker("anthropic")
    assert asks_its_maker("anthropic", "", "https://api.anthropic.com/v1/messages")
    assert not asks_its_maker("anthropic", "", "http://127.0.0.1:1/v1/messages")


def test_the_address_in_a_variable_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:4000")
    assert not asks_its_maker("anthropic")
    assert asks_its_maker("openai")


LONG = Failure("st", "ses", "msg", 0, provider="lab", model="claude-sonnet-4-5")  # its error tells no address
NPM = "@ai-sdk/anthropic"


@pytest.mark.parametrize(
    ("said", "model", "held"),
    [
        ({"npm": NPM, "options": {"baseURL": "https://gateway.example.com/v1/"}}, "claude-sonnet-4-5", True),
        ({"npm": NPM, "api": "http://127.0.0.1:4000/v1"}, "team/sonnet", True),
        ({"npm": NPM, "options": {"baseURL": "https://gateway.example.com/v1"}}, "MiniMax-M2", False),
        ({"npm": NPM, "options": {"baseURL": "https://api.deepseek.com/anthropic"}}, "claude-sonnet-4-5", False),
        ({"npm": NPM, "options": {"baseURL": "{env:MY_PROXY}"}}, "claude-sonnet-4-5", False),
        ({"npm": NPM, "options": {"baseURL": "https://{env:MY_HOST}/v1"}}, "claude-sonnet-4-5", False),
        ({"npm": NPM}, "claude-sonnet-4-5", False),
        (
            {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": "https://gateway.example.com/v1"},
                "models": {"claude-sonnet-4-5": {"provider": {"npm": NPM}}},
            },
            "claude-sonnet-4-5",
            True,
        ),
        (
            {
                "npm": NPM,
                "options": {"baseURL": "https://gateway.example.com/v1"},
                "models": {"claude-sonnet-4-5": {"provider": {"npm": "@ai-sdk/openai-compatible"}}},
            },
            "claude-sonnet-4-5",
            False,
        ),
        ({"npm": "@ai-sdk/openai-compatible", "api": "http://127.0.0.1:4000/v1"}, "claude-sonnet-4-5", False),
        (
            {
                "npm": NPM,
                "api": "http://127.0.0.1:4000/v1",
                "models": {"x": {"provider": {"api": "https://api.z.ai/api/anthropic"}}},
            },
            "claude-sonnet-4-5",
            False,
        ),
    ],
)
def test_where_an_error_tells_no_address_the_configuration_tells_it_of_a_proxy_of_the_messages_api(
    folder: Path, said: object, model: str, held: bool
) -> None:
    (folder / "opencode.json").write_text(json.dumps({"provider": {"lab": said}}))
    found = provider_of(as_asked(replace(LONG, model=model)))
    assert (found.name if found else None) == ("anthropic" if held else None)


def test_the_address_of_the_last_file_counts_and_none_beside_one_that_cant_be_read(
    folder: Path, tmp_path: Path
) -> None:
    project = tmp_path / "work"
    (project / ".git").mkdir(parents=True)
    in_project = project / "opencode.json"
    (folder / "opencode.json").write_text(json.dumps({"provider": {"lab": {"npm": NPM, "api": "http://a/v1"}}}))
    for base in ("http://b/v1", "http://c/v1"):
        in_project.write_text(json.dumps({"provider": {"lab": {"options": {"baseURL": base}}}}))
        assert as_asked(LONG, str(project)).error.url == f"{base}/messages"
    in_project.write_text(json.dumps({"provider": {"lab": {"api": "http://d/v1"}}}))
    assert as_asked(LONG, str(project)).error.url == "", "which models it is of is not told"
    in_project.write_text("{")
    assert as_asked(LONG, str(project)).error.url == ""


def test_anthropic_itself_led_to_another_maker_has_that_makers_rules(folder: Path) -> None:
    at_home = replace(LONG, provider="anthropic")
    assert provider_of(as_asked(at_home)) is not None
    led = {"anthropic": {"options": {"baseURL": "https://api.z.ai/api/anthropic"}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": led}))
    failure = as_asked(at_home)
    assert provider_of(failure) is None and "api.z.ai" in why_unknown(failure)


def test_claude_on_the_clients_own_gateway_is_asked_as_anthropic_is(folder: Path) -> None:
    zen = replace(LONG, provider="opencode")
    found = provider_of(as_asked(zen))
    assert found is not None and found.name == "anthropic"
    assert provider_of(as_asked(replace(zen, model="kimi-k2"))) is None
    (folder / "opencode.json").write_text(json.dumps({"provider": {"opencode": {"options": {"apiKey": "k"}}}}))
    assert provider_of(as_asked(zen)) is found, "nothing is said of where it is"
    led = {"opencode": {"options": {"baseURL": "https://example.com/v1"}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": led}))
    assert provider_of(as_asked(zen)) is None


def test_gpt_on_the_clients_own_gateway_is_asked_by_the_responses_api(folder: Path) -> None:
    zen = replace(LONG, provider="opencode", model="gpt-5.2-codex")
    failure = as_asked(zen)
    assert rules_for(failure, wires_of(failure, protocols.protocol_of(failure), [NEW])).name == "openai"
    for model in ("gpt-oss-120b", "gemini-3-pro"):
        assert as_asked(replace(zen, model=model)).error.url == ""
    led = {"opencode": {"options": {"baseURL": "https://example.com/v1"}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": led}))
    assert as_asked(zen).error.url == ""


def test_the_address_in_the_error_goes_before_that_of_the_configuration(folder: Path) -> None:
    told = {"lab": {"npm": NPM, "options": {"baseURL": "https://gateway.example.com/v1"}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": told}))
    error = RecordedError(url="https://api.minimax.io/anthropic/v1/messages")
    assert as_asked(replace(LONG, error=error)).error.url == error.url


@pytest.mark.parametrize(
    ("provider", "others"),
    [
        ("google-vertex", {"gemini-3-pro-preview": "gemini"}),
        ("azure", {"gpt-5.1": "openai"}),
        ("azure-cognitive-services", {}),
    ],
)
def test_who_serves_claude_among_others_is_asked_for_it_in_anthropics_form(
    folder: Path, provider: str, others: dict[str, str]
) -> None:
    """A conversation that is too long tells no address; the client's catalog gives these models an SDK of their own."""
    for model, rules in {"claude-sonnet-4-5@20250929": "anthropic", "kimi-k2": "unknown", **others}.items():
        failure = as_asked(Failure("st", "ses", "msg", 0, provider=provider, model=model))
        wires = wires_of(failure, protocols.protocol_of(failure), [NEW])
        assert rules_for(failure, wires).name == rules, model
