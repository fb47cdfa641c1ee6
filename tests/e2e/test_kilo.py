"""The real Kilo: it sends what OpenCode 1.18 sends, and its stuck sessions heal under its own name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode.configured_sdks import protocol_of
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import FORK, NEW
from recoveryd.clients.opencode.wire.openrouter import OpenRouterChat
from recoveryd.clients.opencode.wire.prompt import ENVIRONMENT
from recoveryd.core.model import Session
from tests.e2e.client import MODEL
from tests.e2e.daemon import Daemon
from tests.e2e.install import UnavailableError
from tests.e2e.kilo import VERSION, Kilo
from tests.e2e.media import data_url, png
from tests.e2e.provider import Provider, Request
from tests.families.fake import Fake, Handler
from tests.families.play import Stage, played, undone
from tests.families.table import FAMILIES
from tests.shapes import SHAPES, Shape
from tests.support.build import Planted, SessionBuilder
from tests.support.long_sessions import LONG
from tests.support.parts import file, text, tool
from tests.support.plant import write_sqlite

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

FULL = bool(os.environ.get("TEST_RECOVERYD_FULL_CLIENTS"))
STUCK = ("forged-earlier-off", "blank-answer-off", "picture-too-heavy")
_TRANSIENT = {"kilocode.lifecycle": "transient"}
SENT = tuple(SHAPES) if FULL else (*tuple(SHAPES)[::30], "tool-then-text-open", "aborted-with-text-behind-tool-on")


@dataclass(frozen=True)
class There:
    kilo: Kilo
    provider: Provider

    def prompt(self, session: str, thinking: bool) -> list[Request]:
        before = len(self.provider.requests)
        self.kilo.prompt(session, "continue", thinking)
        return [request for request in self.provider.requests[before:] if not request.is_title]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    try:
        with Provider() as provider, Kilo(tmp_path_factory.mktemp("kilo"), provider.url) as started:
            kilo = started
            assert isinstance(kilo, Kilo)
            kilo.call("GET", "/session")
            yield There(kilo, provider)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _plain(blocks: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Without what Kilo adds to the newest prompt alone; of what it puts behind each, how that begins."""
    own = {"type": "text", "text": ENVIRONMENT}
    told = [(role, block, str(block.get("text")).lstrip()) for role, block in blocks]
    kept = [one for one in told if not one[2].startswith("<system-reminder>")]
    return [(role, own if words.startswith(ENVIRONMENT) else dict(block)) for role, block, words in kept]


@pytest.mark.parametrize("name", SENT)
def test_it_sends_what_opencode_sends(there: There, name: str) -> None:
    planted = SHAPES[name].build()
    write_sqlite(planted, there.kilo.database, directory=str(there.kilo.directory))
    session = OpencodeSqlite(there.kilo.database, client="kilo", title="Kilo").load(planted.id)
    there.provider.force("captured")
    requests = there.prompt(planted.id, SHAPES[name].thinking)
    if not requests:
        there.provider.unforce()
    forms = [AnthropicMessages("anthropic", MODEL, form).build(session) for form in (FORK, NEW)]
    assert bool(requests) is not all(request.unsendable for request in forms)
    sent: list[tuple[str, dict[str, Any]]] = []
    body = json.loads(requests[0].raw) if requests else {"messages": ()}
    for message in body["messages"]:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        plain = ({key: value for key, value in block.items() if key != "cache_control"} for block in blocks)
        sent += _plain((message["role"], block) for block in plain)
    asked = ("user", {"type": "text", "text": ENVIRONMENT})  # behind what the user types next
    built = [_plain((turn.role, b.body) for turn in request.turns for b in turn.blocks) for request in forms]
    bare = [one for one in sent if one != asked]
    assert not requests or sent == [*built[0], asked] or bare == built[1]


def test_stuck_sessions_heal_and_healthy_ones_keep_every_row(there: There, tmp_path: Path) -> None:
    shapes = [SHAPES[name] for name in STUCK]
    planted = [shape.build() for shape in shapes]
    healthy = next(shape for shape in SHAPES.values() if shape.kind is None).build()
    planted[0] = _behind_what_is_not_sent(shapes[0])
    for one in (*planted, healthy):
        write_sqlite(one, there.kilo.database, directory=str(there.kilo.directory))
    store = OpencodeSqlite(there.kilo.database, client="kilo", title="Kilo")
    kept = _not_sent(store.load(planted[0].id))
    before = store.load(healthy.id)
    for one, shape in zip(planted, shapes, strict=True):
        assert there.prompt(one.id, shape.thinking)[-1].refused, shape.name
    with Daemon(tmp_path / "daemon", there.kilo.root / "data") as daemon:
        found = daemon.wait_settled(one.id for one in planted)
        assert [found[one.id][0]["outcome"] for one in planted] == ["healed"] * len(planted), daemon.log[-3000:]
        assert str(there.kilo.database) in daemon.run("status", "--json").stdout
    for one, shape in zip(planted, shapes, strict=True):
        assert [request.refused for request in there.prompt(one.id, shape.thinking)] == [None], shape.name
    assert store.load(healthy.id) == before
    assert len(kept) == 2 and _not_sent(store.load(planted[0].id)) == kept


def _behind_what_is_not_sent(shape: Shape) -> Planted:
    """This shape behind two parts of Kilo's own that would be at fault if it sent them: what it showed as it was ended
    while it prepared a turn, and a damaged image that it gave its user.
    """
    session = SessionBuilder()
    session.user("go")
    left = session.assistant(text("Initializing…", synthetic=True, metadata=_TRANSIENT), bare=True)
    del left["time"]["completed"]
    session.user("send it")
    session.assistant(tool("send_file", attachments=[file(data_url(png(4, 4), "image/jpeg"), "image/jpeg")]))
    shape.turns(session)
    return session.planted()


def _not_sent(session: Session) -> list[bytes | None]:
    parts = [(part.raw, part.data or {}) for message in session.messages for part in message.parts]
    return [raw for raw, data in parts if data.get("tool") == "send_file" or data.get("metadata") == _TRANSIENT]


def _named(file: Path, package: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lab = {"npm": package, "api": "http://127.0.0.1:9/v1", "models": {"m": {}}}
    said = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**said, "provider": {**said.get("provider", {}), "lab": lab}}))


def test_its_configuration_is_read_as_it_merges_it(
    there: There, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project for each place: there it says something, and so do all places before it."""
    home, config = there.kilo.root / "home", there.kilo.root / "config"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    for name in ("KILO_CONFIG", "KILO_CONFIG_DIR", "KILO_CONFIG_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    pairs = [f"{name}.{form}" for name in ("kilo", "opencode") for form in ("json", "jsonc")]
    folders = ("", "src/", "src/.kilocode/", "src/.kilo/", ".kilocode/", ".kilo/")
    places = [f"{folder}{name}" for folder in folders for name in pairs]
    found = []
    for at in range(len(places) + 1):
        project = tmp_path / f"project{at}"
        (project / "src").mkdir(parents=True)
        (project / ".git").mkdir()
        for which, place in enumerate(places[:at]):
            _named(project / place, f"@ai-sdk/{('openai', 'mistral', 'xai')[which % 3]}")
        for of_opencode in (project / ".opencode" / "opencode.json", config / "opencode" / "opencode.json"):
            _named(of_opencode, "@ai-sdk/anthropic")
        asked = str(project / "src")
        _, merged = there.kilo.call("GET", "/config", directory=asked)
        lab = (merged.get("provider") or {}).get("lab", {})
        found.append((places[at - 1] if at else "", lab.get("npm", ""), protocol_of("lab", asked, client="kilo")))
    spoken = {"": ""} | {f"@ai-sdk/{name}": name for name in ("openai", "mistral", "xai")}
    assert [one for one in found if not one[2].startswith(spoken[one[1]]) or bool(one[1]) != bool(one[2])] == []
    assert found[0][1:] == ("", "") and {one[1] for one in found} == {
        "",
        *(f"@ai-sdk/{n}" for n in spoken.values() if n),
    }


@pytest.mark.parametrize("place", ["project/kilo.json", "config/kilo/kilo.jsonc"])
def test_a_custom_provider_that_its_own_configuration_names_heals(tmp_path: Path, place: str) -> None:
    family = FAMILIES["gpt"]
    try:
        with Fake("gpt") as fake, Kilo(tmp_path / "kilo", fake.address) as kilo:
            for file in (kilo.root / "config/opencode/opencode.json", kilo.root / "config/kilo/kilo.json"):
                file.write_text(json.dumps({"autoupdate": False, "permission": {"*": "allow"}}))
            (kilo.root / place).write_text(json.dumps(family.config(fake.address)))
            shutil.copytree(kilo.root / "config", tmp_path / "daemon" / "config")
            kilo.call("GET", "/session")
            with Daemon(tmp_path / "daemon", kilo.root / "data") as daemon:
                [made] = played(Stage(kilo, fake, daemon, family, VERSION), [SHAPES["tool-name-with-a-dot"]])
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert made.stuck and made.healed and len(made.again) == 3, made.tell()


CLAUDE = replace(FAMILIES["openrouter"], provider="kilo", protocol="openrouter.chat")
AT_ITS_GATEWAY = ("forged-earlier-off", "blank-answer-off", "tool-errors-on", "pictures-and-documents-off")


class _Listed(Handler):
    """Kilo's own gateway: its list of models, and chat completions at one path."""

    def do_GET(self) -> None:
        described = {"id": CLAUDE.model, "name": CLAUDE.model, "created": 1, "context_length": 200_000}
        described |= {"supported_parameters": ["tools", "reasoning", "temperature"]}
        described |= {"architecture": {"input_modalities": ["text", "image", "pdf"], "output_modalities": ["text"]}}
        listed = json.dumps({"data": [described]}).encode()
        self.send(200 if self.path.endswith("/models") else 404, "application/json", listed)

    def do_POST(self) -> None:
        asked = self.path == "/api/openrouter/chat/completions"
        body = self.body()
        self.send(*(self.api.answer(body) if asked else (404, "application/json", b"{}")))


class Gateway(Fake):
    """As strict as OpenRouter; the maker's words stand alone, since those around them have Kilo ask again for 70 s."""

    handler = _Listed

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        status, kind, body = super().answer(raw)
        if status == 400:
            said = json.loads(json.loads(body)["error"]["metadata"]["raw"])["error"]["message"]
            body = json.dumps({"error": {"message": said, "code": 400}}).encode()
        return status, kind, body


@contextmanager
def _at_gateway(folder: Path, gateway: Gateway) -> Iterator[Stage]:
    """Kilo in front of its own gateway, beside a daemon; skips where there is no Kilo, with the reason."""
    try:
        with gateway as fake, Kilo(folder / "kilo", fake.address, CLAUDE.model) as kilo:
            kilo.call("GET", "/session")
            with Daemon(folder / "daemon", kilo.root / "data") as daemon:
                yield Stage(kilo, fake, daemon, CLAUDE, VERSION)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_claude_on_its_own_gateway_heals_and_is_asked_as_openrouter_is(tmp_path: Path) -> None:
    with _at_gateway(tmp_path, Gateway("openrouter")) as stage:
        made = played(stage, [SHAPES[name] for name in AT_ITS_GATEWAY], at_once=6)
        stuck = [one for one in made if one.stuck]
        back = undone(stage, [one.shape for one in stuck][:1])
        store = OpencodeSqlite(stage.client.database, client="kilo", title="Kilo")
        after = [store.load(one.planted.id) for one in made]
    assert len(stuck) == 2 and back == [True]
    assert [one.tell() for one in stuck if not one.healed or len(one.again) != 3] == []
    assert [one.tell() for one in made if not one.stuck and not (one.untouched and all(one.again))] == []
    sent = [
        _as_json([(m["role"], block) for m in asked.messages for block in m["content"]]) for asked in stage.fake.asked
    ]
    for session in after:
        forms = [OpenRouterChat("kilo", CLAUDE.model, form).stored(session) for form in (FORK, NEW)]
        built = [[(turn.role, b.body) for turn in request.turns for b in turn.blocks] for request in forms]
        assert any(_as_json(one[:-1]) in sent for one in built), session.id


class Full(Gateway):
    """Takes no conversation of this length; no long request for a summary either."""

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        if len(raw) > (740_000 if b'"tools"' in raw else 60_000):
            said = {"error": {"message": "prompt is too long: 218758 tokens > 200000 maximum", "code": 400}}
            return 400, "application/json", json.dumps(said).encode()
        return super().answer(raw)


def test_claude_on_its_own_gateway_that_is_too_long_is_made_shorter_and_goes_on(tmp_path: Path) -> None:
    """Kilo records no address of such a refusal: what the model answered tells how it is asked."""
    with _at_gateway(tmp_path, Full("openrouter")) as stage:
        planted = CLAUDE.dressed(LONG["talk"].build())
        stage.write(planted)
        stage.client.prompt(planted.id, "go on", thinking=True)
        found = stage.daemon.wait_settled([planted.id])[planted.id]
        assert [one["outcome"] for one in found] == ["healed"], stage.daemon.log[-3000:]
        stage.client.prompt(planted.id, "continue", thinking=True)
        main = [one for one in stage.fake.asked if one.body.get("tools")]
        assert [one.refused for one in main] == [None]


def test_a_conversation_of_which_kilo_gets_no_summary_is_made_shorter_by_hand(tmp_path: Path) -> None:
    """It cuts what is to be summed up, and a piece that begins with an answer is refused, with each prompt anew."""
    try:
        with Provider(limit=200_000) as provider, Kilo(tmp_path / "kilo", provider.url) as kilo:
            kilo.call("GET", "/session")
            with Daemon(tmp_path / "daemon", kilo.root / "data") as daemon:
                planted = LONG["talk"].build()
                write_sqlite(planted, kilo.database, directory=str(kilo.directory))
                kilo.prompt(planted.id, "go on", thinking=True)
                [found] = daemon.wait_settled([planted.id])[planted.id]
                refused = [request.refused for request in provider.main]
                made = daemon.run("compact", planted.id, "--yes")
                kilo.prompt(planted.id, "continue", thinking=True)
                last = provider.main[-1]
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert any("first message must use" in (said or "") for said in refused), refused
    assert found["outcome"] == "not_understood" and f"`recoveryd compact {planted.id}`" in found["detail"], found
    assert made.returncode == 0, made.stderr
    assert last.refused is None and b'"tools"' in last.raw, "it is not asked for a summary again"


def _as_json(blocks: list[tuple[str, Mapping[str, Any]]]) -> str:
    return json.dumps(_plain(blocks), sort_keys=True, default=dict)
