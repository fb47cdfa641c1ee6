"""What is spoken to a provider whose refusal tells no address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Clients, Config
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core import Failure, RecordedError
from recoveryd.providers import rules_for
from tests.support.build import SessionBuilder
from tests.support.database import NEW, OLD, Base
from tests.support.parts import api_error, reasoning, text
from tests.support.plant import write_sqlite

COPILOT = {"providerID": "github-copilot", "modelID": "claude-sonnet-4.5"}
MESSAGES, CHAT = "anthropic.messages", "copilot.chat"
OPAQUE = {"type": "reasoning", "text": "hm", "metadata": {"copilot": {"reasoningOpaque": "sealed"}}}
SIGNED = reasoning("hm")


def spoken_to(
    path: Path,
    *answers: dict[str, Any],
    version: str = NEW,
    client: str = "opencode",
    url: str = "",
    said: str = "",
    words: str = "",
) -> list[str]:
    """What is spoken in the wires of a session with these answers: a thinking or a text each, or an error. `said`: by
    the configuration.
    """
    session = SessionBuilder(model=COPILOT)
    for answer in answers:
        session.user("go on")
        if "error" in answer:
            session.assistant(error=answer["error"])
        else:
            session.assistant(answer, text("said"))
    planted, base = session.planted(), Base(path / "x.db", version)
    write_sqlite(planted, base.path)
    store = OpencodeSqlite(base.path, client=client, title=client)
    failed = Failure(
        store.id, planted.id, "m", 0, RecordedError((words,), url=url), "github-copilot", COPILOT["modelID"], said
    )
    wires = Clients(Config()).of(store).wires(store, failed)
    assert rules_for(failed, wires).name == "copilot"
    return list(dict.fromkeys(wire.protocol for wire in wires))


def refused_at(path: str) -> dict[str, Any]:
    error = api_error("no", 400)
    error["data"]["metadata"]["url"] = f"https://api.githubcopilot.com{path}"
    return {"error": error}


@pytest.mark.parametrize("client", ["opencode", "kilo"])
@pytest.mark.parametrize(
    ("answers", "spoken"),
    [
        ([SIGNED], [MESSAGES]),
        ([OPAQUE], [CHAT]),
        ([OPAQUE, SIGNED, text("no thinking")], [MESSAGES]),
        ([refused_at("/v1/messages"), text("fine")], [MESSAGES]),
        ([SIGNED, refused_at("/chat/completions")], [CHAT]),
        ([text("no thinking")], [CHAT, MESSAGES]),
    ],
)
def test_claude_on_copilot_is_asked_as_its_answers_tell(
    tmp_path: Path, client: str, answers: list[dict[str, Any]], spoken: list[str]
) -> None:
    """Without an address, as of a conversation that is too long; where none tells, a plan is to be right under both."""
    assert spoken_to(tmp_path, *answers, client=client) == spoken


def test_what_the_refusal_or_the_configuration_says_of_it_counts_for_more(tmp_path: Path) -> None:
    assert spoken_to(tmp_path / "1", SIGNED, url="https://api.githubcopilot.com/chat/completions") == [CHAT]
    assert spoken_to(tmp_path / "2", SIGNED, said=CHAT) == [CHAT]


def test_where_the_client_failed_on_a_document_itself_it_is_asked_by_chat_completions(tmp_path: Path) -> None:
    """Anthropic's SDK has documents."""
    words = "AI_UnsupportedFunctionalityError: 'file part media type application/pdf' functionality not supported."
    assert spoken_to(tmp_path, text("no thinking"), words=words) == [CHAT]


def test_before_1_14_copilot_was_asked_by_chat_completions_alone(tmp_path: Path) -> None:
    assert spoken_to(tmp_path, text("no thinking"), version=OLD) == [CHAT]


@pytest.mark.parametrize(
    ("login", "provider", "version", "at_head"),
    [
        ({"type": "oauth", "access": "x"}, "openai", NEW, "user"),
        ({"type": "api", "key": "x"}, "openai", NEW, "developer"),
        (None, "openai", NEW, "developer"),
        ("{", "openai", NEW, "developer"),
        ({"type": "oauth", "access": "x"}, "openai", OLD, "developer"),
        ({"type": "oauth", "access": "x"}, "azure", NEW, "developer"),
    ],
)
@pytest.mark.parametrize("client", ["opencode", "kilo"])
def test_with_a_login_of_chatgpt_the_system_prompt_is_no_item(
    tmp_path: Path, client: str, login: Any, provider: str, version: str, at_head: str
) -> None:
    """1.18.34 and Kilo 7.7.9, held to their requests; 1.1.53 and 1.2.1 send it as an item all the same."""
    if client == "kilo" and version == OLD:
        return  # it has no such database
    session = SessionBuilder(model={"providerID": provider, "modelID": "gpt-6.1-sol"})
    session.user("go on")
    base = Base(tmp_path / "x.db", version)
    write_sqlite(session.planted(), base.path)
    if login is not None:
        text_of = login if isinstance(login, str) else json.dumps({provider: login, "anthropic": {"type": "oauth"}})
        (tmp_path / "auth.json").write_text(text_of)
    store = OpencodeSqlite(base.path, client=client, title=client)
    failed = Failure(store.id, session.planted().id, "m", 0, RecordedError(), provider, "gpt-6.1-sol")
    wires = Clients(Config()).of(store).wires(store, failed)
    built = [wire.stored(store.load(failed.session)).turns[0].role for wire in wires]
    assert built and set(built) == {at_head}
