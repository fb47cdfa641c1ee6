"""Families beside Anthropic's own on the real client: what is refused heals, what is taken keeps every byte.

A part of the shapes; all of them by `python -m tests.families`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.e2e.client import Client
from tests.e2e.codex.sealed import seal
from tests.e2e.daemon import Daemon
from tests.e2e.install import DATABASE, JSON_STORE, NEWEST, UnavailableError, ensure
from tests.e2e.media import data_url, png
from tests.families.fake import WRAPPED, Fake
from tests.families.play import Played, Stage, played, shapes_for, staged, undone
from tests.families.streams import responses_of
from tests.families.table import FAMILIES
from tests.shapes import Shape
from tests.support.build import SessionBuilder
from tests.support.parts import file, tool

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# OpenRouter's words for an error make 1.18 try again for 70 s before it stores anything.
CASES = [
    ("bedrock", NEWEST, 1),
    ("openrouter", JSON_STORE, 3),
    ("copilot", DATABASE, 5),
    ("openai", NEWEST, 7),
    ("kimi", NEWEST, 4),
    ("gemini", NEWEST, 8),
    ("mistral", NEWEST, 8),
    ("vertex-claude", NEWEST, 2),
]
EVERY = 11


@dataclass(repr=False)
class Run:
    stage: Stage
    made: list[Played]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case[:2])))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    name, version, first = request.param
    try:
        with staged(tmp_path_factory.mktemp(name), FAMILIES[name], version) as stage:
            at_once = [shape for shape in shapes_for(version) if shape.newer != "slow"]
            yield Run(stage, played(stage, at_once[first::EVERY]))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_what_is_refused_is_healed_and_goes_on_for_three_prompts(run: Run) -> None:
    stuck = [one for one in run.made if one.stuck]
    assert len(stuck) >= 3
    assert [one.tell() for one in stuck if not one.healed] == []
    assert all(len(one.again) == 3 for one in stuck)


def test_what_is_accepted_keeps_every_byte(run: Run) -> None:
    fine = [one for one in run.made if not one.stuck]
    assert fine
    assert [one.tell() for one in fine if not one.untouched or not all(one.again)] == []


def test_the_wire_is_what_the_client_sent(run: Run) -> None:
    """But of those that the daemon mends on sight, before they are prompted."""
    assert [one.tell() for one in run.made if not one.rebuilt and (one.refused is not None or not one.stuck)] == []


def test_undo_restores_every_byte(run: Run) -> None:
    """New sessions, not prompted on: an undo is refused once an answer has come."""
    shapes = [one.shape for one in run.made if one.refused is not None][:3]
    assert undone(run.stage, shapes) == [True] * len(shapes)


@pytest.mark.parametrize("version", [DATABASE, NEWEST])
def test_each_prompt_waits_for_the_repair_of_the_one_before(tmp_path: Path, version: str) -> None:
    """A template that wants turns tells one fault at a time: a part that can't be sent first, and then its turns."""
    shapes = [shape for shape in shapes_for(version) if shape.name in ("tool-without-state", "tool-output-null")]
    try:
        with staged(tmp_path, FAMILIES["gemma"], version) as stage:
            made = played(stage, shapes, further=2)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert [one.tell() for one in made if not one.healed] == []
    assert [(len(one.entries), one.again) for one in made] == [(2, [False, True])] * 2


def _neighbours(roles: str) -> Callable[[SessionBuilder], None]:
    """A session whose last two messages are of neighbouring milliseconds."""

    def build(session: SessionBuilder) -> None:
        for role in roles:
            session.user("do it") if role == "u" else session.assistant("done")
        last, before = session.messages[-1], session.messages[-2]
        last["time"]["created"] = before["time"]["created"] + 1

    return build


@pytest.mark.parametrize("version", [DATABASE, NEWEST])
def test_what_goes_between_two_of_neighbouring_milliseconds_is_sent_there(tmp_path: Path, version: str) -> None:
    """1.2 sends the row of a millisecond first that was inserted last."""
    shapes = [Shape(roles, "role_order", False, _neighbours(roles)) for roles in ("uu", "uaa")]
    try:
        with staged(tmp_path, FAMILIES["gemma"], version) as stage:
            made = played(stage, shapes, further=2)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert [(one.rebuilt, one.healed, one.again) for one in made] == [(True, True, [True, True])] * 2


SHOTS = [file(data_url(png(side, side)), filename=f"{side}.png") for side in (3, 4, 5)]


class Picky(Fake):
    """Anthropic's API that can't process the second of the pictures, and says where it stands."""

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """Look into the results of tools."""
        for at, message in enumerate(json.loads(raw)["messages"]):
            for index, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                for place, item in enumerate(block.get("content") or ()):
                    if (
                        isinstance(item, dict)
                        and item.get("source", {}).get("data") == SHOTS[1]["url"].partition(",")[2]
                    ):
                        path = f"messages.{at}.content.{index}.tool_result.content.{place}.image.source.base64"
                        error = WRAPPED[self.family](f"{path}: Could not process image")
                        return 400, "application/json", json.dumps(error).encode()
        return super().answer(raw)


def test_of_three_pictures_of_a_tool_only_the_one_that_is_named_goes(tmp_path: Path) -> None:
    family, made = FAMILIES["vertex-claude"], SessionBuilder()
    made.user("look")
    made.assistant(tool("shots", {}, "three of them", attachments=SHOTS))
    made.assistant("seen")
    planted = family.dressed(made.planted())
    try:
        with staged(tmp_path, family, NEWEST, Picky) as stage:
            stage.write(planted)
            assert stage.client.prompt(planted.id, model=family.ids).error is not None
            [entry] = stage.daemon.wait_settled([planted.id])[planted.id]
            assert stage.client.prompt(planted.id, model=family.ids).error is None
            messages = stage.store.load(planted.id).messages
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert entry["detail"] == "Replaced 1 image or file by a note"
    [tool_part] = [part.data or {} for message in messages for part in message.parts if part.type == "tool"]
    state = tool_part["state"]
    assert [shot["filename"] for shot in state["attachments"]] == ["3.png", "5.png"]
    assert state["output"].startswith("three of them\n[The image 4.png was taken out: ")


# Words of each for an image that it can't read: none says which.
_UNREAD = {
    "gemini": "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide",
    "kimi": "Invalid request: prepare image failed error, status code: 400, message: failed to decode image",
    "glm": "图片输入格式/解析错误",
    "qwen": "<400> InternalError.Algo.InvalidParameter: The image format is illegal and cannot be opened",
    "deepseek": "You have uploaded an unsupported image. Please make sure your image is valid.",
    "gpt": "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png'].",
    "mistral": "Image, 'data:image/png;base64,iVBORw0KGgo...', could not be loaded as a valid image.",
    "xai": "base64 string of provided image cannot be decoded",
    "litellm": "litellm.BadRequestError: AnthropicException - Could not process image",
}


class Damaged(Fake):
    """An API that can't read the second of the pictures: it names none."""

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """Look for it anywhere in the request."""
        if SHOTS[1]["url"].partition(",")[2].encode() in raw:
            return 400, "application/json", json.dumps(WRAPPED[self.family](_UNREAD[self.family])).encode()
        return super().answer(raw)


@pytest.mark.parametrize(
    ("name", "version"), [("gemini", NEWEST), ("qwen", NEWEST), ("mistral", DATABASE), ("litellm", DATABASE)]
)
def test_which_of_two_new_pictures_is_meant_is_told_as_not_known_and_the_only_new_one_goes(
    tmp_path: Path, name: str, version: str
) -> None:
    family, made = FAMILIES[name], [SessionBuilder(seed=1), SessionBuilder(seed=2)]
    for shots, session in zip((SHOTS[:2], SHOTS[1:2]), made, strict=True):
        session.user("look", SHOTS[2])
        session.assistant("seen")
        session.user("and here", *shots)
    planted = [family.dressed(session.planted()) for session in made]
    two, one = (each.id for each in planted)
    try:
        with staged(tmp_path, family, version, Damaged) as stage:
            for each in planted:
                stage.write(each)
            before = stage.records(planted[0])
            for each in planted:
                assert stage.client.prompt(each.id, model=family.ids).error is not None
            found = stage.daemon.wait_settled([one, two])
            after = stage.records(planted[0])
            assert stage.client.prompt(one, model=family.ids).error is None
    except UnavailableError as reason:
        pytest.skip(str(reason))
    [left], [healed] = found[two], found[one]
    assert (left["outcome"], left["kind"]) == ("not_understood", "media_rejected")
    assert left["detail"].startswith("It is not known which image or document the error means")
    assert "prompt it again. If it is refused each time, go on in a copy: type /fork" in left["detail"]
    assert after == before
    assert healed["detail"] == "Replaced 1 image or file by a note"


class Narrow(Fake):
    """LiteLLM's proxy with `max_request_size_mb: 0.5`: it says so with the status 400, before any model is asked."""

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """Count what came."""
        if len(raw) > 512 * 1024:
            words = f"Request size is too large. Request size is {len(raw) / 1024**2} MB. Max size is 0.5 MB"
            error = {"message": words, "type": "bad_request_error", "param": "content-length", "code": "400"}
            return 400, "application/json", json.dumps({"error": error}).encode()
        return super().answer(raw)


def test_a_request_with_more_bytes_than_a_proxy_says_that_it_takes_is_made_shorter(tmp_path: Path) -> None:
    family, made = FAMILIES["gpt"], SessionBuilder(seed=1)
    for number in range(8):
        made.user(f"look at {number}")
        made.assistant(tool("bash", {"command": f"cat {number}"}, f"line {number}\n" * 12_000))
        made.assistant("seen")
    planted = family.dressed(made.planted())
    try:
        with staged(tmp_path, family, NEWEST, Narrow) as stage:
            stage.write(planted)
            assert stage.client.prompt(planted.id, model=family.ids).error is not None
            [entry] = stage.daemon.wait_settled([planted.id])[planted.id]
            assert stage.client.prompt(planted.id, model=family.ids).error is None
            sent = len(json.dumps(stage.fake.asked[-1].body))
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert (entry["outcome"], entry["kind"]) == ("healed", "media_rejected")
    assert " of 524 kB: " in entry["detail"]
    assert 512 * 1024 * 0.5 < sent < 512 * 1024


@pytest.mark.parametrize("version", [JSON_STORE, DATABASE, NEWEST])
def test_a_document_that_the_client_put_into_words_stays(tmp_path: Path, version: str) -> None:
    """Its model reads none, so words were sent in its place; the SDK could not have sent it."""
    document = file(data_url(b"%PDF-1.4\n%%EOF\n", "application/pdf"), "application/pdf", "spec.pdf")

    def documents(session: SessionBuilder) -> None:
        session.user("read this", document)
        session.assistant(tool("read", {"filePath": "/spec.pdf"}, "PDF read successfully", attachments=[document]))
        session.assistant(" \n")
        session.user("next")
        session.assistant("fine")

    family = replace(FAMILIES["copilot"], reads=("text", "image"))
    try:
        with staged(tmp_path, family, version) as stage:
            [one] = played(stage, [Shape("documents", "empty_content", False, documents)], further=2)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert (one.rebuilt, one.again) == (True, [True, True])
    assert [entry["detail"] for entry in one.entries] == ["Filled 1 gap with a placeholder"]
    changed = [key for key, value in one.before.items() if one.after[key] != value]
    assert len(changed) == 1 and b"spec.pdf" not in (one.before[changed[0]] or b"")


class Anew(Fake):
    """OpenAI's API where nobody's encrypted reasoning is ever taken, also what it has just given out."""

    REFUSED = "reasoning `encrypted_content` was not issued to this caller"

    def answer(self, raw: bytes) -> tuple[int, str, bytes]:
        """Think and call a tool, as long as no reasoning comes back."""
        if b"title generator" in raw:
            return super().answer(raw)
        if any(item.get("type") == "reasoning" for item in json.loads(raw)["input"]):
            return 400, "application/json", json.dumps(WRAPPED[self.family](self.REFUSED)).encode()
        thought = {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": seal()}
        call = {"type": "function_call", "id": "fc_x", "call_id": "call_x", "name": "glob", "status": "completed"}
        return 200, *responses_of([thought, {**call, "arguments": '{"pattern": "*"}'}])


def test_reasoning_that_is_rejected_anew_with_each_step_ends_at_the_cap(tmp_path: Path) -> None:
    """As in anomalyco/opencode#49116: what is taken out is given out again, and refused again."""
    family = FAMILIES["openai"]
    try:
        with (
            Anew(family.name) as fake,
            Client(
                ensure(NEWEST), tmp_path / "c", "", config=family.config(fake.address), model=family.model
            ) as client,
        ):
            session = client.new_session()["id"]
            with Daemon(tmp_path / "daemon", tmp_path / "c" / "data") as daemon:
                for number in range(1, 5):
                    assert client.prompt(session, model=family.ids).error is not None
                    daemon.wait_settled([session], number)
                entries = daemon.history(session)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert [entry["outcome"] for entry in entries] == ["gave_up", "healed", "healed", "healed"]
    told = entries[0]["detail"]
    assert told.startswith("The session was repaired 3 times and is refused again.")
    assert "choose another model" in told
