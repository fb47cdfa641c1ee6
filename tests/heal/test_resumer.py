"""A healed session is prompted through a client over HTTP, and the store is what tells whether it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import recoveryd.heal.resumer as module
from recoveryd.clients import Config
from recoveryd.clients.find import Clients
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.errors import StoreError
from recoveryd.core.model import Event, Kind, Outcome
from recoveryd.diagnose import Context
from recoveryd.heal.resumer import Resumer
from recoveryd.ledger.ledger import Judged, Ledger, Record
from recoveryd.ledger.seen_and_resumed import Resumes
from recoveryd.settings.overrides import ignore
from tests.support.build import BINDS, text
from tests.support.cases import case_of
from tests.support.fake_client import Asked, Fake, listening
from tests.support.trees import Tree


@dataclass
class Scene:
    """A session that was refused a moment ago and is healed, and a client that has it."""

    tree: Tree
    fake: Fake
    ledger: Ledger
    session: str

    def resume(
        self,
        kind: Kind = Kind.TOOL_RESULT_MISSING,
        outcome: Outcome = Outcome.HEALED,
        *,
        asked: bool = False,
        **config: Any,
    ) -> Event:
        failure = self.tree.failure(self.session)
        self.fake.message, self.fake.made = failure.message, failure.time
        event = Event("r1", failure.store, self.session, "My session", failure.message, kind, outcome, "Done")
        settings = Config(**{"auto_resume": True, **config}, opencode=OpencodeSettings(server_url=self.fake.url))
        times = iter([time.time() - 600])  # it was started ten minutes ago
        state, clients = self.ledger.file.path.parent, Clients(settings)
        context = Context(self.ledger, settings, state, clients=clients, clock=lambda: next(times, time.time()))
        return Resumer(context).go_on(case_of(self.tree.store, failure, event), asked=asked).event

    def arrives(self, body: Any) -> None:
        """What the client does with a prompt: it writes it down."""
        [part] = body["parts"]
        self.tree.prompted(self.session, text(part["text"], metadata=part["metadata"]))

    def resumes(self) -> list[str]:
        return [resumed.recovery for resumed in Resumes(self.ledger.file).of(self.tree.store.id, self.session)]

    def prompts(self) -> list[Any]:
        return [asked.body for asked in self.fake.asked if asked.path.endswith("/prompt_async")]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(module, "ARRIVES_S", 0.3)
    tree = Tree(tmp_path)
    session = tree.stuck()
    with listening(Fake(session=session, directory="/planted")) as fake, Ledger(tmp_path / "ledger.db") as ledger:
        made = Scene(tree, fake, ledger, session)
        fake.on_prompt = made.arrives
        yield made


def test_it_goes_on_as_the_user_asked(scene: Scene) -> None:
    event = scene.resume(resume_text="go on, please")
    assert (event.resumed, event.not_resumed) == (True, "")
    [body] = scene.prompts()
    assert body["parts"][0]["text"] == "go on, please"
    assert (body["agent"], body["model"]["modelID"]) == ("build", BINDS["modelID"])
    assert scene.resumes() == ["r1"]


@pytest.mark.parametrize("from_ledger", [False, True])
def test_it_goes_on_in_the_folder_where_it_was_refused(scene: Scene, from_ledger: bool) -> None:
    """OpenCode 1.1 and 1.2 work in the folder where they were started: the session's own may be another checkout."""
    scene.tree.refused(scene.session, folder="/worktree")
    if from_ledger:
        told = scene.tree.failure
        scene.tree.failure = lambda session: replace(told(session), folder="")  # type: ignore[method-assign]
    assert scene.resume(asked=from_ledger).resumed
    prompted = [asked.directory for asked in scene.fake.asked if asked.path.endswith("/prompt_async")]
    assert prompted == ["/worktree"]


def test_only_where_the_user_wants_it(scene: Scene) -> None:
    assert not scene.resume(auto_resume=False).resumed
    assert scene.fake.asked == []


def test_once_a_recovery(scene: Scene) -> None:
    scene.resume()
    scene.tree.refused(scene.session)
    assert not scene.resume().resumed
    assert len(scene.prompts()) == 1


def test_the_word_of_the_client_is_not_enough(scene: Scene) -> None:
    """1.1 and 1.18 say 204 for an agent that is not there, and store nothing."""
    scene.fake.on_prompt = lambda body: None
    event = scene.resume()
    assert (event.resumed, event.not_resumed) == (False, "the client took the prompt, but did not store it")
    assert scene.resumes() == ["r1"], "it counts: it may still arrive"


def test_another_prompt_is_not_taken_for_ours(scene: Scene) -> None:
    scene.fake.on_prompt = lambda body: scene.tree.prompted(scene.session, text("continue"))
    assert scene.resume().not_resumed == "the client took the prompt, but did not store it"


def test_a_refused_call_is_a_failure(scene: Scene) -> None:
    scene.fake.accepts = 400
    assert scene.resume().not_resumed == "the client refused the prompt (HTTP 400)"


@pytest.mark.parametrize("stores", [True, False])
def test_without_an_answer_the_store_tells(scene: Scene, stores: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recoveryd.clients.opencode.server.PROMPT_CALL_S", 0.8)

    def slow(body: Any) -> None:
        if stores:
            scene.arrives(body)
        time.sleep(3)

    scene.fake.on_prompt = slow
    event = scene.resume()
    assert (event.resumed, event.not_resumed) == ((True, "") if stores else (False, "the client did not answer"))


def _busy(scene: Scene) -> None:
    scene.fake.status = {scene.session: {"type": "busy"}}


def _another(scene: Scene) -> None:
    scene.fake.session = "ses_2"


@pytest.mark.parametrize("hinder", [_busy, _another])
def test_what_is_not_asked_counts_for_nothing(scene: Scene, hinder: Callable[[Scene], None]) -> None:
    hinder(scene)
    event = scene.resume()
    assert (event.resumed, event.not_resumed, scene.resumes(), scene.prompts()) == (False, "", [], [])


def test_a_prompt_clears_what_is_not_edited(scene: Scene) -> None:
    assert scene.resume(Kind.ASSISTANT_PREFILL, Outcome.REFUSED).resumed


@pytest.mark.parametrize("config", [{"ignore": ("/planted",)}, {"kinds": (Kind.EMPTY_CONTENT,)}])
def test_what_is_to_be_left_alone_is_not_prompted_either(scene: Scene, config: dict[str, Any]) -> None:
    assert not scene.resume(Kind.ASSISTANT_PREFILL, Outcome.REFUSED, **config).resumed
    assert scene.fake.asked == []


def test_what_was_named_by_the_command_is_not_prompted_either(scene: Scene) -> None:
    ignore(scene.ledger.file.path.parent, scene.session)
    assert not scene.resume(Kind.ASSISTANT_PREFILL, Outcome.REFUSED).resumed
    assert scene.fake.asked == []


def test_who_asks_is_answered(scene: Scene) -> None:
    """A person who presses "Continue": whatever the configuration says, and they hear why not."""
    scene.fake.status = {scene.session: {"type": "busy"}}
    assert scene.resume(asked=True, auto_resume=False).not_resumed == "the client is at work in this session"
    scene.fake.status = {}
    assert scene.resume(asked=True, auto_resume=False).resumed
    assert scene.resume(asked=True, auto_resume=False).not_resumed == "there is a newer prompt"


def test_a_store_that_fails_is_said_and_stops_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: str) -> None:
        raise StoreError("The disk is gone.")

    failure = scene.tree.failure(scene.session)
    monkeypatch.setattr(scene.tree, "failure", lambda session: failure)
    monkeypatch.setattr(scene.tree.store, "load", fails)
    assert scene.resume().not_resumed == "The disk is gone"
    assert scene.fake.asked == []


def test_the_cap_counts_tries_that_wrote_nothing(scene: Scene) -> None:
    """A resume that needed no edit is a try, too: what is refused for ever is given up."""
    scene.resume(Kind.ASSISTANT_PREFILL, Outcome.REFUSED)
    failure, store = scene.tree.failure(scene.session), scene.tree.store.id
    assert scene.ledger.tries(store, scene.session, 5) == [], "not one that the history does not know"
    record = Record("r1", failure, "", Kind.ASSISTANT_PREFILL, judged=Judged(answered=5))
    scene.ledger.record(record, Outcome.REFUSED)
    assert [one.recovery for one in scene.ledger.tries(store, scene.session, 5)] == ["r1"]
    assert scene.ledger.tries(store, scene.session, 6) == []
    assert [resumed.answered for resumed in Resumes(scene.ledger.file).of(store, scene.session)] == [5]


def test_it_is_not_prompted_once_its_user_went_on_while_the_client_was_asked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client at work takes seconds for its answers, and the prompt may have been given to another one."""
    answer = scene.fake.answer

    def slowly(asked: Asked) -> tuple[int, bytes]:
        if asked.path == "/session/status":
            scene.tree.answered(scene.session)
        return answer(asked)

    monkeypatch.setattr(scene.fake, "answer", slowly)
    event = scene.resume(asked=True)
    assert (event.resumed, event.not_resumed) == (False, "the session went on meanwhile")
    assert scene.prompts() == [] and scene.resumes() == []
