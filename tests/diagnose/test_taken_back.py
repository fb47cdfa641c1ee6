"""A refused turn that its user took back (`/undo` in OpenCode): the next prompt goes without it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config, Store
from recoveryd.core import Diagnosis, Kind, Outcome
from recoveryd.diagnose import Context, Next, Triage, diagnose, diagnosis
from recoveryd.diagnose.named_places import place_moved
from recoveryd.heal.undo import undo
from tests.conftest import Run
from tests.e2e.media import data_url, png
from tests.support.build import BINDS, SessionBuilder, api_error, write_sqlite
from tests.support.cases import case
from tests.support.database import OLD, Base
from tests.support.generate import PICTURE
from tests.support.parts import file, reasoning, text, tool
from tests.support.trees import EMPTY, MISSING, SIGNATURE, Bench, Tree, write_over

IMAGE = "Could not process image"
FIRST = "messages.0.content.1.image.source.base64: The image was specified using the image/png media type, but is none"
STEPS = ((reasoning("two"), tool(output="x")),)


def blank(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(text(" "))
    session.user("next")
    session.assistant("fine")


def thoughts(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(reasoning("one"), "done")


def picture(session: SessionBuilder) -> None:
    session.user("look", file(PICTURE))
    session.assistant("I see")


def fine(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(tool(output="x"))
    session.assistant("fine")


def undone(tree: Tree, make: Callable[[SessionBuilder], object], words: str, *parts: Any, steps: Any = ()) -> str:
    """A session whose last prompt was refused with these words, after these steps, and taken back then."""
    session = tree.ended(make)
    made = tree.made(session)
    made.user("continue", *parts)
    for step in steps:
        made.assistant(*step)
    made.assistant(error=api_error(words, 400))
    tree.keep(made)
    take_back(tree, session)
    return session


def take_back(tree: Tree, session: str, prompts: int = 1) -> str:
    """As the client stores it; return the message that it goes back to."""
    asked = [message.id for message in tree.store.load(session).messages if message.role == "user"][-prompts]
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert={"messageID": asked})
    return asked


def gone_for_good(tree: Tree, made: SessionBuilder) -> None:
    """As the client takes a turn that was taken back out of its store, with the next prompt."""
    for message in (made.messages.pop(), made.messages.pop()):
        (tree.root / "message" / made.session["id"] / f"{message['id']}.json").unlink()
        for part in made.parts.pop(message["id"]):
            (tree.root / "part" / message["id"] / f"{part['id']}.json").unlink()


def said(bench: Bench, store: Store, session: str) -> Diagnosis | None:
    return diagnose(bench.recovery.context, store, session)


def judged(bench: Bench, tree: Tree, session: str) -> Next:
    later = Context(bench.ledger, Config(), bench.state, clock=lambda: time.time() + 5)
    return Triage(later, print).judge(tree.store, session).next


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("make", "words", "parts"),
    [
        (fine, MISSING, ()),
        (fine, "Your llama is not amused by this", ()),
        (fine, "rate limit exceeded", ()),
        (fine, "prompt is too long: 210000 tokens > 200000 maximum", ()),
        (picture, IMAGE, (file(PICTURE),)),
        (picture, FIRST.replace("messages.0", "messages.2"), (file(PICTURE),)),
        (thoughts, SIGNATURE.replace("messages.1", "messages.3"), STEPS),
    ],
    ids=["nothing found", "unknown", "elsewhere", "too long", "one of two pictures", "its picture", "its thinking"],
)
def test_what_may_have_gone_with_it_is_not_stuck_and_nothing_is_edited(
    tree: Tree, bench: Bench, run: Run, make: Callable[[SessionBuilder], object], words: str, parts: tuple[Any, ...]
) -> None:
    steps = parts if parts is STEPS else ()
    session = undone(tree, make, words, *(() if steps else parts), steps=steps)
    before, found = tree.files(), said(bench, tree.store, session)
    assert found is not None and (found.reason, found.stuck) == ("taken_back", False)
    assert judged(bench, tree, session) is Next.NOTHING
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"], [one["session"] for one in data["elsewhere"]]) == (0, [], [session])
    assert tree.files() == before
    code, out, _ = run("explain", "--session", session)
    assert "taken back" in out and "not refused" not in out


@pytest.mark.parametrize(
    ("make", "words"),
    [(blank, EMPTY), (thoughts, SIGNATURE), (picture, FIRST)],
    ids=["blank", "signature", "named picture"],
)
def test_what_stands_before_it_is_healed_and_nothing_behind_it_is_touched(
    tree: Tree, bench: Bench, make: Callable[[SessionBuilder], object], words: str
) -> None:
    session = undone(tree, make, words)
    behind = [*tree.store.load(session).messages][-2:]
    assert judged(bench, tree, session) is Next.RECOVER
    found = said(bench, tree.store, session)
    assert found is not None and found.stuck and found.refused is not None
    healed = bench.recovery.attempt(case(tree.store, found.failure, found.kind))
    assert (healed.outcome, healed.event.changes != ()) == (Outcome.HEALED, True)
    assert [*tree.store.load(session).messages][-2:] == behind


GPT = {"providerID": "openai", "modelID": "gpt-5.2"}
INVALID = "Invalid image in your last message. Please remove it and try again."
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize("copied", [False, True], ids=["where it was repaired", "in a copy of the store"])
@pytest.mark.parametrize("since", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("answered", [True, False], ids=["empty account", "no answer yet"])
def test_for_an_older_refusal_of_an_image_that_went_since_no_other_goes(
    tree: Tree, bench: Bench, tmp_path: Path, answered: bool, own: bool, since: bool, copied: bool
) -> None:
    """Refused twice, healed, the last prompt taken back for good, and the account is empty then, or the next prompt on
    its way: of the images that are left one that was answered went, or one that came `since`. `own`: the last prompt
    brought one, which went, too.
    """
    first, second, third, fourth = (file(data_url(png(4 + size, 4))) for size in range(4))
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=GPT)
    made.user("look", first)
    made.assistant("I see")
    for images in ((second,), (third,) if own else ()):
        made.user("and this", *images)
        error = api_error(INVALID, 400)
        error["data"]["metadata"]["url"] = "https://api.openai.com/v1/responses"
        made.assistant(error=error)
    session = tree.keep(made)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    gone_for_good(tree, made)
    made.user("go on", *((fourth,) if since else ()))
    if answered:
        made.assistant(error=api_error(QUOTA, 429))
    tree.keep(made)
    if copied:
        there, tree = tree.root, Tree(tmp_path / "copy")
        shutil.copytree(there, tree.root, dirs_exist_ok=True)
    no_image_goes(tree, bench, session, waits=not answered)


@pytest.mark.parametrize("answered", [True, False], ids=["empty account", "no answer yet"])
@pytest.mark.parametrize("written_since", [False, True])
def test_nor_another_image_of_the_same_output_that_stands_in_its_place_since(
    tree: Tree, bench: Bench, answered: bool, written_since: bool
) -> None:
    """`written_since`: the output was, by a plugin say, so that what was repaired is not known to stand."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000)
    made.user("go")
    images = [file(data_url(png(4 + size, 4))) for size in range(2)]
    made.assistant(tool("read", {"filePath": "/a.png"}, "Image read", attachments=images))
    made.assistant("I see")
    words = FIRST.replace("messages.0.content.1", "messages.2.content.0.tool_result.content.1")
    made.failed("and?", api_error(words, 400))
    made.failed("go on", api_error(words, 400))
    session = tree.keep(made)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    gone_for_good(tree, made)
    if written_since:
        write_over(tree.part(session, "tool"), metadata={"plugin": {}})
    made.user("go on")
    if answered:
        made.assistant(error=api_error(QUOTA, 429))
    tree.keep(made)
    no_image_goes(tree, bench, session, waits=not answered)


def no_image_goes(tree: Tree, bench: Bench, session: str, *, waits: bool) -> None:
    before, found = tree.files(), said(bench, tree.store, session)
    assert found is None if waits else found is not None and not found.stuck
    assert judged(bench, tree, session) is Next.NOTHING
    failure = tree.failure(session) if found is None else found.failure
    bench.recovery.attempt(case(tree.store, failure, Kind.MEDIA_REJECTED))
    assert tree.files() == before


def test_an_older_refusal_stands_where_all_that_was_repaired_since_was_taken_back(tree: Tree, bench: Bench) -> None:
    """Refused for an image by one model, and for that of the next prompt by another: the first image is sent still."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000)
    made.user("go")
    made.assistant("fine")
    failed = []
    for at in (1, 3):
        made.user("look", file(data_url(png(4 + at, 4))))
        words = FIRST.replace("messages.0.content.1", f"messages.2.content.{at}")
        failed.append(made.assistant(error=api_error(words, 400))["id"])
    session = tree.keep(made)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and (found.failure.message, found.stuck) == (failed[0], True)
    assert judged(bench, tree, session) is Next.RECOVER
    assert bench.recovery.attempt(case(tree.store, found.failure, found.kind)).outcome is Outcome.HEALED


def moved(made: SessionBuilder) -> None:
    """A call whose repair puts what was sent as "messages.2" into "messages.4", and images that were answered."""
    made.user("go")
    made.assistant(tool(), text("behind"))
    made.user("look", file(data_url(png(4, 4))))
    made.assistant("I see")
    made.user("and these", file(data_url(png(5, 4))), file(data_url(png(6, 4))))
    made.assistant("I see")


def refused_image(made: SessionBuilder) -> None:
    made.user("this", file(data_url(png(7, 4))), file(PICTURE))
    words = FIRST.replace("messages.0.content.1", "messages.6.content.2")
    made.assistant(error=api_error(words, 400))


def is_left_alone(tree: Tree, bench: Bench, session: str, reason: str) -> None:
    before, found = tree.files(), said(bench, tree.store, session)
    assert found is not None and found.reason == reason
    assert judged(bench, tree, session) is Next.NOTHING
    bench.recovery.attempt(case(tree.store, found.failure, Kind.MEDIA_REJECTED))
    assert tree.files() == before


def test_a_place_that_it_names_does_not_hold_behind_a_repair_for_the_refusal_before_it(
    tree: Tree, bench: Bench
) -> None:
    """An image is refused, its turn taken back, and a call healed: a sound image stands where that one was sent."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    moved(made)
    made.failed("continue", api_error(MISSING, 400))
    refused_image(made)
    session = tree.keep(made)
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and found.kind is Kind.TOOL_RESULT_MISSING
    assert bench.recovery.attempt(case(tree.store, found.failure, found.kind)).outcome is Outcome.HEALED
    is_left_alone(tree, bench, session, "tool_result_missing")


@pytest.mark.parametrize("then", ["taken back", "prompted"])
def test_nor_behind_a_repair_for_another_refusal_whose_turn_is_gone(tree: Tree, bench: Bench, then: str) -> None:
    """The refused image is kept, and stands elsewhere since."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    moved(made)
    refused_image(made)
    made.failed("continue", api_error(MISSING, 400))
    session = tree.keep(made)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    take_back(tree, session)
    if then == "prompted":  # the client takes the turn out of its store then
        gone_for_good(tree, made)
        write_over(next((tree.root / "session").rglob(f"{session}.json")), revert=None)
        made.failed("go on", api_error(QUOTA, 429))
        tree.keep(made)
    is_left_alone(tree, bench, session, "refused_before_repair")


def test_nor_where_nothing_stands_at_the_place_since(tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a signature whose block can't be found all thinking would go, also what was sound."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    for answer in (
        (reasoning("sound"), text("x")),
        (tool(), text("behind")),  # its repair puts what was sent as "messages.7" into "messages.9"
        (text("fine"),),
        (text("hm"), reasoning("rejected"), text("y")),
    ):
        made.user("next")
        made.assistant(*answer)
    made.failed("continue", api_error(SIGNATURE.replace("messages.1.content.0", "messages.7.content.1"), 400))
    made.failed("continue", api_error(MISSING, 400))
    session = tree.keep(made)
    assert bench.attempt(tree, session).outcome is Outcome.HEALED
    take_back(tree, session)
    is_left_alone(tree, bench, session, "refused_before_repair")
    asked: list[str] = []

    def noted(*given: Any) -> bool:
        asked.append(given[-1].failure.message)
        return place_moved(*given)

    monkeypatch.setattr(diagnosis, "place_moved", noted)
    said(bench, tree.store, session)
    assert asked and len(asked) == len({*asked}), "the session is read, and its request built twice, for that"


def test_nor_once_a_repair_from_before_it_was_undone(tree: Tree, bench: Bench) -> None:
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=BINDS)
    moved(made)
    made.failed("continue", api_error(MISSING, 400))
    session = tree.keep(made)
    repair = bench.attempt(tree, session)
    assert repair.outcome is Outcome.HEALED
    failed = made.failed("go on", api_error(FIRST.replace("messages.0", "messages.4"), 400))
    failed["time"]["created"] = int(time.time() * 1000) + 1
    tree.keep(made)
    time.sleep(0.01)
    undo(tree.store, bench.ledger, bench.ledger.get(repair.id))
    is_left_alone(tree, bench, session, "refused_before_repair")


KIMI = {"providerID": "openrouter", "modelID": "moonshotai/kimi-k2-thinking"}


def test_what_an_error_says_of_empty_messages_holds_of_those_before_it(tree: Tree, bench: Bench) -> None:
    """Not each host of Kimi refuses them: the rules alone don't."""
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=KIMI)
    blank(made)
    made.user("continue")
    made.assistant(text("  "))
    error = api_error("the message at position 1 with role 'assistant' must not be empty", 400)
    error["data"]["metadata"]["url"] = "https://openrouter.ai/api/v1/chat/completions"
    made.assistant(error=error)
    session = tree._write(made)
    take_back(tree, session)
    assert judged(bench, tree, session) is Next.RECOVER
    found = said(bench, tree.store, session)
    assert found is not None and found.stuck
    healed = bench.recovery.attempt(case(tree.store, found.failure, found.kind))
    assert healed.outcome is Outcome.HEALED


def test_the_refusal_before_it_stands(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank, EMPTY)
    first = tree.failure(session).message
    tree.refused(session, "Your llama is not amused by this")
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and (found.reason, found.failure.message) == ("empty_content", first)


@pytest.mark.parametrize("back", [False, True], ids=["healed", "and undone"])
def test_the_refusal_before_it_is_no_riddle_once_what_is_stored_was_healed(
    tree: Tree, bench: Bench, back: bool
) -> None:
    """Two prompts were refused for the same, and the second was taken back before anything was healed."""
    session = tree.stuck(blank, EMPTY)
    first = tree.failure(session).message
    tree.refused(session, EMPTY)
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and found.failure.message != first
    healed = bench.recovery.attempt(case(tree.store, found.failure, found.kind))
    assert healed.outcome is Outcome.HEALED
    if back:
        undo(tree.store, bench.ledger, bench.ledger.get(healed.event.id))
    before, found = tree.files(), said(bench, tree.store, session)
    assert found is not None
    if back:
        assert found.failure.message != first
        return
    assert (found.failure.message, found.reason, found.stuck) == (first, "taken_back", False)
    assert judged(bench, tree, session) is Next.NOTHING
    assert tree.files() == before


@pytest.mark.parametrize("prompts", [1, 2, 3], ids=["the last", "two", "all"])
def test_a_session_is_not_stuck_once_what_it_was_refused_for_was_healed_and_taken_back(
    tree: Tree, run: Run, prompts: int
) -> None:
    session = tree.stuck(blank, EMPTY)
    for _ in range(2):
        tree.refused(session, EMPTY)
    assert run("scan", "--repair")[0] == 0
    take_back(tree, session, prompts)
    before = tree.files()
    code, out, _ = run("scan", "--repair", "--json")
    scanned = json.loads(out)
    assert (code, scanned["stuck"], [one["session"] for one in scanned["healed"]]) == (0, [], [session])
    assert tree.files() == before
    write_over(next((tree.root / "session").rglob(f"{session}.json")), revert=None)
    made = tree.made(session)
    made.user("go")
    made.assistant(text("  "))
    made.failed("more", api_error(EMPTY, 400))
    tree.keep(made)
    code, out, _ = run("scan", "--repair", "--json")
    assert (code, [one["healed"] for one in json.loads(out)["stuck"]]) == (0, [True]), "what is new is healed"


@pytest.mark.parametrize("words", [(EMPTY, SIGNATURE), (SIGNATURE, EMPTY)], ids=["both", "the second alone"])
def test_one_repair_may_mend_what_two_prompts_were_refused_for(tree: Tree, run: Run, words: tuple[str, str]) -> None:
    """A provider names one fault of a request: of the blank the rules know without words, of the signature not."""

    def two(made: SessionBuilder) -> None:
        blank(made)
        thoughts(made)

    session = tree.stuck(two, words[0])
    tree.refused(session, words[1])
    code, out, _ = run("scan", "--repair", "--json")
    assert (code, [one["healed"] for one in json.loads(out)["stuck"]]) == (0, [True])
    take_back(tree, session)
    code, out, _ = run("scan", "--json")
    scanned = json.loads(out)
    if words[0] == EMPTY:
        assert (code, scanned["stuck"], [one["session"] for one in scanned["healed"]]) == (0, [], [session])
    else:
        assert (code, [one["kind"] for one in scanned["stuck"]]) == (1, ["thinking_signature_invalid"])


def test_nor_once_what_its_client_could_not_send_was(tree: Tree, run: Run) -> None:
    """The words are of the client's own: no provider was asked."""
    session = tree.stuck(lambda made: (made.user("go"), made.assistant("one", tool(status=""), "two")))
    made = tree.made(session)
    del made.messages[-2:]
    for _ in range(2):
        made.failed("continue", {"name": "UnknownError", "data": {"message": "undefined is not an object"}})
    tree.keep(made)
    code, out, _ = run("scan", "--repair", "--json")
    assert (code, [one["kind"] for one in json.loads(out)["stuck"]]) == (0, ["unsendable_part"])
    take_back(tree, session)
    code, out, _ = run("scan", "--json")
    scanned = json.loads(out)
    assert (code, scanned["stuck"], [one["kind"] for one in scanned["healed"]]) == (0, [], ["unsendable_part"])


def test_another_fault_before_it_is_told_as_not_explained(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(blank, MISSING)
    tree.refused(session, EMPTY)
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None
    assert bench.recovery.attempt(case(tree.store, found.failure, found.kind)).outcome is Outcome.HEALED
    found = said(bench, tree.store, session)
    assert found is not None and found.kind is Kind.TOOL_RESULT_MISSING
    assert bench.recovery.attempt(case(tree.store, found.failure, found.kind)).outcome is Outcome.NOT_UNDERSTOOD


def test_a_refusal_of_unknown_words_before_it_stands(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(fine, "Your llama is not amused by this")
    first = tree.failure(session).message
    tree.refused(session, MISSING)
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and (found.reason, found.failure.message) == ("refused_unknown", first)


def test_a_prompt_without_an_answer_is_not_stuck_whether_or_not_it_was_taken_back(tree: Tree, bench: Bench) -> None:
    """As long as it is stored it may be one that the client ignores, as it will the next."""
    session = tree.asked(fine, ago_s=20)
    for _ in range(2):
        found = said(bench, tree.store, session)
        assert found is not None and (found.reason, found.stuck) == ("unanswered_prompt", False)
        take_back(tree, session)


def test_it_may_be_taken_back_while_its_repair_is_planned(tree: Tree, bench: Bench) -> None:
    session = tree.stuck(picture, IMAGE)
    made = tree.made(session)
    made.user("this one", file(PICTURE))
    made.assistant(error=api_error(IMAGE, 400))
    tree.keep(made)
    stuck = case(tree.store, tree.failure(session))
    take_back(tree, session, prompts=2)
    before = tree.files()
    assert bench.recovery.attempt(stuck).outcome is Outcome.PENDING
    assert tree.files() == before


@pytest.mark.parametrize("words", [EMPTY, "Your llama is not amused by this"])
def test_a_database_tells_it_too(tmp_path: Path, bench: Bench, words: str) -> None:
    made = SessionBuilder(model=BINDS)
    blank(made)
    asked = made.user("continue")
    made.assistant(error=api_error(words, 400))
    made.session["revert"] = {"messageID": asked["id"]}
    store = Base(tmp_path / "opencode.db", OLD).store
    write_sqlite(made.planted(), tmp_path / "opencode.db")
    found = said(bench, store, made.session["id"])
    assert found is not None and found.reason == ("empty_content" if words == EMPTY else "taken_back")


def test_an_old_refusal_before_a_newer_prompt_does_not_count_again_where_a_later_turn_was_taken_back(
    tree: Tree, bench: Bench
) -> None:
    session = tree.stuck(fine, "Your llama is not amused by this")
    tree.made(session).user("and then?")
    tree.keep(tree.made(session))
    found = said(bench, tree.store, session)
    assert found is None or not found.stuck, "what comes of the newest prompt is not known"
    tree.made(session).failed("more", api_error(IMAGE, 400))
    tree.keep(tree.made(session))
    take_back(tree, session)
    found = said(bench, tree.store, session)
    assert found is not None and not found.stuck, found
