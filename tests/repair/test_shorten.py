"""The plan for a conversation that is too long: what goes, in which order, how much is kept, and what is refused."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode import token_usage
from recoveryd.clients.opencode.client import _text_in
from recoveryd.clients.opencode.pruning import pruned
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import deed_names
from recoveryd.core.editor import Marks
from recoveryd.core.edits import edited
from recoveryd.core.length import ByHand, Size, Usage
from recoveryd.core.model import Refusal, Session
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.repair import ShortenInput, ShorterPlan, shorten
from recoveryd.repair.measure import measure
from recoveryd.tell import no_longer_seen
from tests.e2e.strict import Strict
from tests.e2e.tokens import count
from tests.support.build import Planted, SessionBuilder, compaction, reasoning, text, tool
from tests.support.generate import PICTURE
from tests.support.judge import body, bound_to, refusal
from tests.support.long_sessions import BASE, FIRST, IMAGE, LONG, bash, spent, words
from tests.support.parts import Part, file
from tests.support.values import as_failure, as_session, session_of

LIMIT, SHARE = 200_000, 0.7
FORMS = ("old", "paged", "new")
BY_TOKENS = sorted(set(LONG) - {"screens"})
NOW = 1_791_000_000_000
OWN = BASE - 100  # tokens of system and tools, but for those that `judge.body` makes up


def _wire(form: str) -> AnthropicMessages:
    return AnthropicMessages("anthropic", "claude-sonnet-4-5", Form.named(form))


def _long(session: Session, form: str = "new", **fields: Any) -> ShortenInput:
    """Refused as it is, with its length told."""
    failure = as_failure(session, {"name": "APIError", "data": {"message": "x"}})
    wire = _wire(form)
    case = ShortenInput(
        session,
        (wire,),
        ANTHROPIC,
        partial(OpencodeShortener, marks=Marks("rtest", NOW), folder="/data/tool-output"),
        tuple(token_usage.usages(session, failure)),
        Size(OWN + count(body(wire.build(session), thinking=True)), LIMIT),
        SHARE,
    )
    return replace(case, **fields)


def _shorter(case: ShortenInput) -> ShorterPlan:
    made = shorten(case)
    assert isinstance(made, ShorterPlan), made
    return made


def _sent(session: Session, made: ShorterPlan, form: str = "new") -> dict[str, Any]:
    return body(_wire(form).build(edited(session, made.edits)), thinking=True)


def _actions(made: ShorterPlan) -> Counter[str]:
    return Counter(edit.action for edit in made.edits if not edit.companion)


def _session(turns: Callable[[SessionBuilder, random.Random], None]) -> Session:
    builder = SessionBuilder(seed=7)
    turns(builder, random.Random(7))
    return as_session(spent(builder.planted()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BY_TOKENS)
def test_it_fits_and_most_of_what_fits_is_kept(name: str, form: str) -> None:
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session, form))
    sent = _sent(session, made, form)
    tokens = OWN + count(sent)
    assert 0.85 * SHARE * LIMIT <= tokens <= 1.05 * SHARE * LIMIT
    assert abs(tokens - made.after) < 0.04 * tokens
    said = json.dumps(sent)
    assert FIRST in said
    assert refusal(edited(session, made.edits), thinking=True, form=Form.named(form)) is None


@pytest.mark.parametrize("name", BY_TOKENS)
def test_without_the_length_it_is_told_by_what_answers_took(name: str) -> None:
    """1.18 stores no number: the limit alone is known, from its log or its settings."""
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session, size=Size(limit=LIMIT)))
    assert 0.85 * SHARE * LIMIT <= OWN + count(_sent(session, made)) <= SHARE * LIMIT


@pytest.mark.parametrize("name", BY_TOKENS)
def test_what_was_refused_within_its_answer_is_as_long_as_answers_tell(name: str) -> None:
    """The request itself fitted: how much of the limit the answer took is not told."""
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session, size=Size(limit=LIMIT), begun=True))
    assert 0.85 * SHARE * LIMIT <= OWN + count(_sent(session, made)) <= SHARE * LIMIT


def test_a_short_one_whose_answer_alone_was_too_long_is_not_cut() -> None:
    short = shorten(_long(session_of(LONG["talk"], seed=7), size=Size(limit=1_000_000), begun=True))
    assert isinstance(short, Refusal) and short.understood
    assert "of 1000k tokens, and its answer did not fit behind it: prompt it again" in short.reason


def test_a_limit_of_the_settings_that_answers_disprove_is_none() -> None:
    """A model that takes less than its client's settings say refuses a session of a third of them, without a number."""
    session = session_of(LONG["talk"], seed=7)
    real = _long(session).size.asked
    made = _shorter(_long(session, size=Size(limit=3 * real), by_settings=True))
    assert abs(made.before - real) < 0.05 * real
    assert (made.limit, made.after < 0.65 * real) == (0, True)


def test_a_limit_of_the_settings_holds_where_nobody_knows_how_long_the_newest_paste_is() -> None:
    def turns(s: SessionBuilder, rng: random.Random) -> None:
        s.user(FIRST)
        s.assistant("done")
        s.user(words(rng, 500_000))

    made = _shorter(_long(_session(turns), size=Size(limit=LIMIT), by_settings=True))
    assert (made.limit, made.before > LIMIT) == (LIMIT, True)


@pytest.mark.parametrize("held", [False, True], ids=["answers near it", "a PDF in the prompt"])
def test_a_limit_of_the_settings_is_not_disproved_by_what_may_reach_it(held: bool) -> None:
    """Answers of more than half of it, and a document of which nobody knows what its pages take."""

    def turns(s: SessionBuilder, rng: random.Random) -> None:
        s.user(FIRST)
        for turn in range(9 if held else 20):
            s.assistant(bash(rng, 26_000))
            s.assistant("done")
            s.user(f"on, {turn}")
        s.user(*([file("data:application/pdf;base64,JVBERi0=", "application/pdf")] if held else []), "what now?")

    made = _shorter(_long(_session(turns), size=Size(limit=LIMIT), by_settings=True))
    assert (made.limit, made.before > LIMIT) == (LIMIT, True)


def _talked_on(session: Session, since: int) -> Session:
    """The session with as many words behind it as it had at first."""
    more = SessionBuilder(since, seed=8)
    LONG["talk"].turns(more, random.Random(8))
    return replace(session, messages=(*session.messages, *as_session(more.planted()).messages[1:]))


def _sent_ids(session: Session) -> set[str]:
    return {block.message_id for block in _wire("new").build(session).blocks() if block.message_id}


def test_a_second_extract_tells_what_the_first_told() -> None:
    session = session_of(LONG["talk"], seed=7)
    once = edited(session, _shorter(_long(session)).edits)
    again = _talked_on(once, once.messages[-1].created + 60_000)
    made = _shorter(_long(again))
    assert "compact" in _actions(made)
    said = json.dumps(_sent(again, made))
    assert FIRST in said
    assert said.count("was made without a model") == 1
    gone = _sent_ids(again) - _sent_ids(edited(again, made.edits))
    assert f"no longer seen: {len(gone)} messages" in no_longer_seen(again, made.edits)


def test_what_is_worked_on_is_told_whole_by_an_extract_within_its_turn() -> None:
    rules = [f"Rule {number}: each name that begins with {number} is spelled out in full." for number in range(40)]

    def turns(builder: SessionBuilder, rng: random.Random) -> None:
        builder.user(FIRST)
        builder.assistant("done")
        builder.user("\n".join(rules))
        for number in range(300):
            edit = {"filePath": f"/src/m{number}.py", "oldString": words(rng, 900), "newString": words(rng, 900)}
            builder.assistant(tool("edit", edit, "done"))
        builder.user("go on")

    session = _session(turns)
    made = _shorter(_long(session))
    assert "compact" in _actions(made)
    said = json.dumps(_sent(session, made))
    assert FIRST in said and all(rule in said for rule in rules)


def test_what_a_summary_of_the_client_told_goes_on_in_an_extract() -> None:
    """Its tail is counted with what is no longer seen: it was."""

    def turns(builder: SessionBuilder, rng: random.Random) -> None:
        builder.user(FIRST)
        tail = builder.assistant("begun")
        marker = builder.user({"type": "compaction", "auto": True, "tail_start_id": tail["id"]})
        builder.assistant("The parser is rewritten; lexer.py is left.", summary=True, parentID=marker["id"])
        builder.user("go on")
        LONG["talk"].turns(builder, rng)

    session = _session(turns)
    made = _shorter(_long(session))
    assert "compact" in _actions(made)
    said = json.dumps(_sent(session, made))
    assert "What a summary told before:\\nThe parser is rewritten; lexer.py is left." in said
    assert "The user's first words" not in said
    gone = _sent_ids(session) - _sent_ids(edited(session, made.edits))
    assert f"no longer seen: {len(gone)} messages" in no_longer_seen(session, made.edits)


@pytest.mark.parametrize("name", BY_TOKENS)
def test_room_is_left_for_the_answer_where_the_refusal_tells_that_alone(name: str) -> None:
    """VLLM counts no further than that a prompt is too long."""
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session, size=Size(limit=131_072, output=32_000)))
    assert OWN + count(_sent(session, made)) <= 131_072 - 32_000
    assert made.after > 0.85 * (131_072 - 32_000 - 0.1 * 131_072)


def test_an_answer_that_may_have_all_is_named_and_nothing_is_cut() -> None:
    session = session_of(LONG["long-turn"], seed=7)
    for size in (Size(20_000, 32_768, 32_768), Size(0, 32_768, 32_000), Size(81_000, 131_072, 131_072)):
        made = shorten(_long(session, size=size))
        assert isinstance(made, Refusal)
        assert f"the answer may have {size.output / 1000:.0f}k of the {size.limit / 1000:.0f}k tokens" in made.reason


def test_an_output_that_is_cut_is_whole_in_its_file_whatever_else_is_done_to_its_call() -> None:
    def turns(builder: SessionBuilder, rng: random.Random) -> None:
        builder.user("question")
        for output in (230_000, *(10,) * 8):
            write = tool(name="write", input={"content": words(rng, 60_000)}, output=words(rng, output))
            builder.assistant(write)

    session = _session(turns)
    made = _shorter(_long(session))
    editor = OpencodeShortener(session, Marks("rtest", NOW), folder="/data/tool-output")
    stored = json.dumps([part.data for message in edited(session, made.edits).messages for part in message.parts])
    [(file, whole)] = editor.wholes(made.edits).items()
    assert file in stored and len(whole) >= 230_000
    assert {"cut_output", "clear_output", "cut_input"} <= set(deed_names(made.edits))
    assert no_longer_seen(session, made.edits).startswith("; no longer seen: write 1; cut: write")


_SAVED = "/data/tool-output/tool_" + "a" * 26
_CALL = "The tool call succeeded but the output was truncated. Full output saved to: " + _SAVED
_HOW = "Use Grep to search the full content or Read with offset/limit to view specific sections."
_ALL = words(random.Random(1), 9_000)
_NOTES = {  # as clients leave an output that they cut: its beginning, its end, the end of a shell's; and as we do
    "beginning": f"{_ALL[:4000]}\n\n...90 lines truncated...\n\n{_CALL}\n{_HOW}",
    "end": f"...5000 bytes truncated...\n\n{_CALL}\n{_HOW}\n\n{_ALL[-4000:]}",
    "shell": f"...output truncated...\n\nFull output saved to: {_SAVED}\n\n{_ALL[-4000:]}",
    "both": f"{_ALL[:2000]}\n\n...5000 bytes truncated...\n\n{_CALL}\n{_HOW}\n\n{_ALL[-2000:]}",
}


def _cut_again(shown: str, files: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What the model is shown of an output that is cut to 300 characters, and the files that are to be written."""
    builder = SessionBuilder(seed=7)
    builder.user("question")
    builder.assistant(tool("bash", {"command": "log"}, shown))
    session = as_session(spent(builder.planted()))
    editor = OpencodeShortener(session, Marks("rtest", NOW), folder="/data/tool-output", saved=files.get)
    [block] = [b for turn in _wire("new").stored(session).turns for b in turn.blocks if b.type == "tool_result"]
    edits = editor.cut(block, 300)
    [data] = [edit.after or {} for edit in edits]
    return data["state"]["output"], dict(editor.wholes(edits))


@pytest.mark.parametrize("form", _NOTES)
def test_what_was_cut_before_is_cut_of_its_whole(form: str) -> None:
    said, written = _cut_again(_NOTES[form], {_SAVED: _ALL})
    assert written == {}
    assert said.startswith(_ALL[:200])
    assert said.endswith(_ALL[-100:])
    assert re.findall(r"[.]{3}(\d+) bytes truncated[.]{3}\n\n(.*)\n", said) == [(str(len(_ALL) - 300), _CALL)]


@pytest.mark.parametrize("form", _NOTES)
@pytest.mark.parametrize("files", [{}, {_SAVED: "another text"}], ids=["gone", "another"])
def test_what_was_cut_before_is_told_as_that_where_its_whole_is_gone(form: str, files: dict[str, str]) -> None:
    said, written = _cut_again(_NOTES[form], files)
    [(file, text)] = written.items()
    assert text == _NOTES[form]
    assert f"The output was truncated once more. As it was before that it is saved to: {file}\n" in said


def test_the_file_of_what_was_cut_is_read_as_it_is(tmp_path: Path) -> None:
    """Else a text with the line ends of Windows would not be found in it."""
    file = tmp_path / "tool_1"
    assert _text_in(str(file)) is None
    for raw, read in ((b"a\r\nb\rc\n", "a\r\nb\rc\n"), (b"\xff", None)):
        file.write_bytes(raw)
        assert _text_in(str(file)) == read


@pytest.mark.parametrize("name", ["long-turn", "many-turns", "inputs", "thinking"])
def test_the_measure_is_within_a_hundredth(name: str) -> None:
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session))
    assert abs(made.after - (OWN + count(_sent(session, made)))) < 0.012 * made.after


def test_each_sort_goes_in_its_turn() -> None:
    def only(name: str) -> str:
        [(action, _)] = _actions(_shorter(_long(session_of(LONG[name], seed=7)))).items()
        return action

    assert only("long-turn") == only("many-turns") == "clear_output"
    assert only("huge-output") == "cut_output"
    assert only("first-paste") == only("later-paste") == "cut_paste"
    assert only("inputs") == "cut_input"
    assert only("thinking") == "set_aside_old_thinking"
    assert only("talk") == "compact"


def test_the_newest_outputs_and_the_last_turns_are_spared_where_that_does() -> None:
    session = session_of(LONG["many-turns"], seed=7)
    cleared = [edit.part_id for edit in _shorter(_long(session)).edits if edit.action == "clear_output"]
    outputs = [part.id for message in session.messages for part in message.parts if part.type == "tool"]
    assert cleared[:-1] == outputs[: len(cleared) - 1], "the oldest; as the last the smallest that does"
    assert set(outputs[-8:]).isdisjoint(cleared)


def test_what_is_told_to_count_for_the_answer_leaves_room_for_it() -> None:
    session = session_of(LONG["many-turns"], seed=7)
    asked = OWN + count(body(_wire("new").build(session), thinking=True))
    made = _shorter(_long(session, size=Size(asked, LIMIT, 64_000)))
    assert made.target == LIMIT - 64_000 - LIMIT // 10
    assert OWN + count(_sent(session, made)) <= made.target * 1.01


@pytest.mark.parametrize("name", ["talk", "inputs", "long-turn"])
def test_stored_usage_is_set_right(name: str) -> None:
    """Or the client compacts again at once, by what its newest answer told. What came behind it is not its own: of a
    long turn's newest outputs a third of all.
    """
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session))
    lowered = next(edit for edit in made.edits if edit.action == "lower_usage")
    after = edited(session, made.edits)
    at = next(number for number, message in enumerate(after.messages) if message.id == lowered.message_id)
    given = OWN + count(body(_wire("new").build(replace(after, messages=after.messages[:at])), thinking=True))
    assert lowered.after is not None
    told = lowered.after["tokens"]
    assert abs(told["input"] - given) < 0.012 * made.after
    assert told["cache"] == {"read": 0, "write": 0}
    assert told["total"] == told["input"] + told["output"]


def test_the_usage_of_a_summary_stays() -> None:
    """No client goes by it, and it was of another request."""

    def turns(session: SessionBuilder, rng: random.Random) -> None:
        session.user(FIRST)
        session.assistant(words(rng, 20_000))
        marker = session.user(compaction())
        session.assistant("all in short", summary=True, parentID=marker["id"])

    session = _session(turns)
    assert token_usage.spent(session.messages[-1])[0] > 10_000
    assert not OpencodeShortener(session, Marks("rtest", NOW)).lower_usage(200, lambda _: 100)


def test_an_answer_that_was_cut_itself_says_no_more_than_all_that_is_left() -> None:
    session = session_of(LONG["inputs"], seed=7)
    answered = token_usage.spent(session.messages[-1])[1]
    assert answered > 60_000
    [lowered] = OpencodeShortener(session, Marks("rtest", NOW)).lower_usage(100_000, lambda _: 30_000)
    assert lowered.after is not None
    assert lowered.after["tokens"]["total"] == 100_000


@pytest.mark.parametrize("name", BY_TOKENS)
def test_thinking_goes_only_where_it_is_bound(name: str) -> None:
    session = session_of(LONG[name], seed=7)
    free = _actions(_shorter(_long(session)))
    assert "set_aside_thinking" not in free
    made = _shorter(_long(session, binds=True))
    provider = bound_to(session, Form.named("new"))
    assert refusal(edited(session, made.edits), True, provider, Form.named("new")) is None


def test_the_oldest_thinking_goes_from_the_start_so_that_the_rest_stays_bound() -> None:
    session = session_of(LONG["thinking"], seed=7)
    actions = _actions(_shorter(_long(session, binds=True)))
    assert set(actions) == {"set_aside_old_thinking"}


def test_planned_again_on_its_own_result_it_proposes_nothing() -> None:
    for name in set(BY_TOKENS) - {"first-paste"}:  # of that no answer ever told how much the client's own words take
        session = session_of(LONG[name], seed=7)
        after = edited(session, _shorter(_long(session)).edits)
        again = shorten(_long(after, by_hand=ByHand(), refused=False))
        assert isinstance(again, Refusal), name
        assert not again.understood


@pytest.mark.parametrize("name", BY_TOKENS)
def test_what_is_told_after_it_is_what_was_planned(name: str) -> None:
    """The numbers of the refusal hold no more then: what no answer was given yet is known to a tenth."""
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session))
    after = edited(session, made.edits)
    usages = tuple(token_usage.usages(after, as_failure(after, {"name": "APIError", "data": {"message": "x"}})))
    request = _wire("new").build(after)
    told = measure(request, usages, Size(), sent=request).total(request)
    known = name in ("inputs", "long-turn", "many-turns", "talk", "thinking")
    assert abs(told - made.after) <= (0.02 if known else 0.1) * made.after


def test_media_by_the_bytes_of_a_request() -> None:
    session = session_of(LONG["screens"], seed=7)
    made = _shorter(_long(session, size=Size(by_bytes=True)))
    assert set(_actions(made)) == {"take_out_media"}
    taken = [edit.part_id for edit in made.edits]
    images = [part.id for message in session.messages for part in message.parts if part.type == "file"]
    assert taken == images[: len(taken)], "the oldest"
    assert 12_000_000 < len(json.dumps(_sent(session, made))) <= 16 * 1024 * 1024


@pytest.mark.parametrize("name", ["many-turns", "talk", "inputs", "shell", "first-paste"])
def test_the_bytes_of_a_request_without_media(name: str) -> None:
    """Somebody on the way takes fewer, and does not say how many: as much goes as where no limit is told."""
    session = session_of(LONG[name], seed=7)
    made = _shorter(_long(session, size=Size(by_bytes=True)))
    before, after = (
        len(json.dumps(body(_wire("new").build(session), thinking=True))),
        len(json.dumps(_sent(session, made))),
    )
    assert 0.5 * before < after < 0.65 * before
    assert made.by_bytes


def test_a_number_of_bytes_in_the_refusal_is_what_is_aimed_at() -> None:
    """Of images and words together; the images go first."""

    def turns(s: SessionBuilder, rng: random.Random) -> None:
        LONG["many-turns"].turns(s, rng)
        for turn in range(4):
            s.user(f"look {turn}", file("data:image/png;base64," + "A" * 300_000))
            s.assistant("I see")

    session = _session(turns)
    for most, goes in ((1_800_000, {"take_out_media"}), (700_000, {"take_out_media", "clear_output"})):
        made = _shorter(_long(session, size=Size(by_bytes=True, most_bytes=most)))
        assert set(_actions(made)) == goes
        after = len(json.dumps(_sent(session, made)))
        assert made.limit == most
        assert 0.6 * most < after < 0.75 * most


def test_bytes_that_are_refused_again_go_nearly_all() -> None:
    made = _shorter(_long(session_of(LONG["screens"], seed=7), size=Size(by_bytes=True), tried=True))
    assert set(_actions(made)) == {"take_out_media"}
    assert made.after < 32 * 1024 * 1024 / 8


# What is left alone


def test_a_number_of_bytes_that_the_conversation_is_far_from() -> None:
    session = session_of(LONG["many-turns"], seed=7)
    refusal = shorten(_long(session, size=Size(by_bytes=True, most_bytes=10 * 1024 * 1024)))
    assert isinstance(refusal, Refusal)
    assert refusal.understood
    assert re.search(r"the conversation has 8\d\d kB of 10 MB, so it is not what makes the request", refusal.reason)


@pytest.mark.parametrize("part", [None, file(PICTURE)])
def test_too_many_bytes_of_a_request_whose_conversation_has_few(part: Part | None) -> None:
    """No server takes so few: to hide them, or a small picture, would heal nothing."""

    def turns(s: SessionBuilder, rng: random.Random) -> None:
        for turn in range(8):
            s.user(f"task {turn}", *([part] if part else []))
            s.assistant(words(rng, 2_000))

    refusal = shorten(_long(_session(turns), size=Size(by_bytes=True)))
    assert isinstance(refusal, Refusal)
    assert "the conversation has 1" in refusal.reason
    assert "kB, so it is not what makes the request too large" in refusal.reason


def test_system_and_tools_alone_near_the_limit() -> None:
    session = as_session(spent(_small(), base=190_000))
    made = shorten(_long(session, size=Size(201_000, LIMIT)))
    assert isinstance(made, Refusal)
    assert made.understood
    assert re.search(r"system prompt and tools alone take about \d+k of the 200k tokens", made.reason)


def _steps_beside(base: int) -> tuple[Session, int]:
    """A dozen short steps beside so much of the client's own, and the tokens of all of it."""
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    builder.user(FIRST)
    for step in range(12):
        builder.assistant(bash(rng, 14_000))
        builder.assistant("read it")
        builder.user(f"step {step}")
    session = as_session(spent(builder.planted(), base))
    return session, base - 100 + count(body(_wire("new").build(session), thinking=True))


@pytest.mark.parametrize("share", [SHARE, 0.9])
@pytest.mark.parametrize(("base", "limit"), [(12_000, 16_384), (22_000, 32_768), (25_000, 32_768)])
@pytest.mark.parametrize("by_hand", [False, True])
def test_beside_much_of_the_clients_own_what_the_model_takes_will_do(
    base: int, limit: int, share: float, *, by_hand: bool
) -> None:
    session, asked = _steps_beside(base)
    made = _shorter(
        _long(session, size=Size(asked, limit), share=share, by_hand=ByHand() if by_hand else None, refused=not by_hand)
    )
    sent = base - 100 + count(_sent(session, made))
    assert _actions(made)["compact"]
    assert base < sent <= 0.91 * limit
    assert abs(sent - made.after) < 0.04 * sent
    assert refusal(edited(session, made.edits), thinking=True, form=Form.named("new")) is None


@pytest.mark.parametrize("base", [2_000, 12_000])
def test_what_can_not_be_made_short_enough_is_not_told_as_long_as_it_is(base: int) -> None:
    """By hand no more is aimed at than was asked for; and the number told is none that nothing measured."""
    session, asked = _steps_beside(base)
    made = shorten(_long(session, size=Size(asked, 16_384), share=0.1, by_hand=ByHand(0.1), refused=False))
    assert isinstance(made, Refusal)
    assert "it would have more than the 2k tokens that are aimed at, and system prompt and tools have" in made.reason
    assert f"have about {base // 1000}k: turn off tools and MCP servers, choose a model" in made.reason


def test_by_hand_a_session_that_the_model_takes_is_not_told_as_short_enough_where_it_can_not_be_shorter() -> None:
    session, asked = _steps_beside(12_000)
    made = shorten(_long(session, size=Size(limit=2 * asked), share=0.1, by_hand=ByHand(), refused=False))
    assert isinstance(made, Refusal) and "that are aimed at, and system prompt and tools have" in made.reason


PAGES = 120_000
PDF = file("data:application/pdf;base64," + "JVBERi0x" * 100, "application/pdf")


def _with_pdf(before: int, behind: int, *, read: bool = False, turns: bool = False) -> Session:
    """A session with a PDF of many pages between so many steps, and the usage that tells of it. `read`: by a tool, in
    one turn, or, of `turns`, in the last.
    """
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    builder.user(FIRST)
    for step in range(before + behind + 1):
        builder.assistant(bash(rng, 14_000))
        if read and step == before:
            builder.assistant(tool("read", {"filePath": "/report.pdf"}, "PDF read successfully", attachments=[PDF]))
        elif not read or (turns and step < before):
            builder.assistant("read it")
            builder.user(*([PDF] if step == before else []), f"step {step}")
    planted = spent(builder.planted())
    seen = False
    for message in planted.messages:
        if seen and message["role"] == "assistant":
            message["tokens"]["cache"]["read"] += PAGES
        seen = seen or "application/pdf" in json.dumps(planted.parts[message["id"]])
    return as_session(planted)


def _with_pages(sent: dict[str, Any]) -> int:
    return OWN + count(sent) + PAGES * json.dumps(sent).count('"application/pdf"')


@pytest.mark.parametrize(("before", "behind"), [(2, 20), (20, 2), (20, 0), (30, 0)])
@pytest.mark.parametrize("by_hand", [False, True])
def test_the_pages_of_a_document_count_as_what_answers_and_the_refusal_tell(
    before: int, behind: int, *, by_hand: bool
) -> None:
    session = _with_pdf(before, behind)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    size = Size(limit=LIMIT) if by_hand and behind else Size(asked, LIMIT)
    made = _shorter(_long(session, size=size, by_hand=ByHand() if by_hand else None, refused=not by_hand))
    assert abs(asked - made.before) < 0.04 * asked
    sent = _with_pages(_sent(session, made))
    assert sent <= made.target * 1.04
    assert abs(sent - made.after) < 0.04 * sent


def _read(at: str) -> Session:
    """Talk, and then a PDF of many pages that nobody answered, `at` the prompt or the output of a tool."""
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    LONG["talk"].turns(builder, rng)
    builder.user(*([PDF] if at == "prompt" else []), "what does the report say?")
    if at == "tool":
        read = tool("read", {"filePath": "/report.pdf"}, "PDF read successfully", attachments=[PDF, file(PICTURE)])
        builder.assistant(reasoning("so"), read)
    return as_session(spent(builder.planted()))


@pytest.mark.parametrize("at", ["prompt", "tool"])
def test_a_document_that_nobody_answered_goes_in_the_place_of_all_that_was_said(at: str) -> None:
    session = _read(at)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    made = _shorter(_long(session, size=Size(asked, asked - 5_000)))
    assert _actions(made) == {"take_out_media": 1}
    sent = _sent(session, made)
    assert abs(_with_pages(sent) - made.after) < 0.04 * made.after
    said = json.dumps(sent)
    assert "was taken out: the conversation is longer than the model takes with it]" in said
    assert ('"image/png"' in said) == (at == "tool")
    assert refusal(edited(session, made.edits), thinking=True, form=Form.named("new")) is None


def test_a_document_that_was_answered_stays_where_an_extract_is_made() -> None:
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    LONG["talk"].turns(builder, rng)
    builder.user(PDF, "what does the report say?")
    builder.assistant("much")
    builder.user("go on")
    planted = spent(builder.planted())
    [*_, answer] = [message for message in planted.messages if message["role"] == "assistant"]
    answer["tokens"]["cache"]["read"] += PAGES
    session = as_session(planted)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    made = _shorter(_long(session, size=Size(asked, asked - 5_000)))
    assert _actions(made)["compact"] and not _actions(made)["take_out_media"]


def test_a_document_that_nobody_answered_goes_with_no_more_than_has_to_go_besides() -> None:
    """Where the outputs do it alone it stays, and it goes where they do not; then few of them do."""
    session = _with_pdf(40, 0)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    limits = {limit: _actions(_shorter(_long(session, size=Size(asked, limit)))) for limit in (230_000, 180_000)}
    assert set(limits[230_000]) == {"clear_output"}
    assert limits[180_000]["take_out_media"] == 1
    assert 0 < limits[180_000]["clear_output"] < limits[230_000]["clear_output"]


def test_for_a_document_that_nobody_answered_nothing_goes_that_did_not_do_without_it() -> None:
    """What is cut out of inputs is hardly longer than the words that say so: they all together seemed to be enough."""
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    builder.user(FIRST)
    for number in range(300):
        builder.assistant(tool("write", {"filePath": f"/src/{number}.py", "content": words(rng, 2_040)}, "ok"))
    builder.assistant("written")
    builder.user(PDF, "what does the report say?")
    session = as_session(spent(builder.planted()))
    asked = OWN + 12_000 + count(body(_wire("new").build(session), thinking=True))
    made = _shorter(_long(session, size=Size(asked, round((asked - 3_000) / SHARE))))
    assert _actions(made) == {"take_out_media": 1}


def test_a_document_of_which_nothing_tells_what_it_takes_stays() -> None:
    """A guess at it would do: it is one of which less is missing."""
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    for turn in range(20):
        builder.user(*([PDF] if turn == 9 else []), f"and then, {turn}? " + words(rng, 3_000))
        builder.assistant(words(rng, 17_000))
    builder.user(PDF, "what does the other report say?")
    planted = spent(builder.planted())
    for answer in [message for message in planted.messages if message["role"] == "assistant"][9:]:
        answer["tokens"]["cache"]["read"] += PAGES // 6
    made = _shorter(_long(as_session(planted), size=Size(limit=135_750), share=0.99))
    assert made.before - made.target < IMAGE and _actions(made) == {"compact": 1}


@pytest.mark.parametrize("turns", [False, True])
def test_of_outputs_that_go_for_one_with_a_long_document_those_stay_that_had_not_to_go(*, turns: bool) -> None:
    session = _with_pdf(15, 6, read=True, turns=turns)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    made = _shorter(_long(session, size=Size(asked, 195_000)))
    assert _actions(made) == {"clear_output": 1}
    assert abs(_with_pages(_sent(session, made)) - made.after) < 0.04 * made.after


def test_documents_of_one_step_count_by_what_each_of_them_holds() -> None:
    """Read at once, nothing tells what the pages of each take."""
    pages = (5_000, 20_000, 100_000)
    reads = [
        tool("read", {"filePath": f"/{n}.pdf"}, attachments=[file(f"{PDF['url']}{'JVBERi0x' * n}", "application/pdf")])
        for n in pages
    ]
    rng, builder = random.Random(7), SessionBuilder(seed=7)
    builder.user(FIRST)
    builder.assistant(*reads)
    for _ in range(20):
        builder.assistant(bash(rng, 14_000))
    planted = spent(builder.planted())
    for message in planted.messages[2:]:
        message["tokens"]["cache"]["read"] += sum(pages)
    session = as_session(planted)
    asked = OWN + count(body(_wire("new").build(session), thinking=True)) + sum(pages)
    made = _shorter(_long(session, size=Size(asked, asked - 5_000)))
    [cleared] = [edit.part_id for edit in made.edits if edit.action == "clear_output"]
    assert cleared == session.messages[1].parts[-2].id
    assert abs(made.before - made.after - pages[-1]) < 0.02 * pages[-1]


def test_a_document_stays_where_the_rest_alone_is_too_long_and_is_named_with_what_it_takes() -> None:
    session = _with_pdf(2, 0)
    asked = _with_pages(body(_wire("new").build(session), thinking=True))
    for fields in ({"size": Size(asked, 13_000)}, {"size": Size(asked, 110_000), "usages": ()}):
        made = shorten(_long(session, **fields))
        assert isinstance(made, Refusal)
        assert re.search(
            r"and documents in it.* have about 1[23]\dk: take the prompt with them back, choose", made.reason
        )


def test_a_document_before_the_first_answer_is_named_beside_system_and_tools() -> None:
    builder = SessionBuilder(seed=7)
    builder.user(PDF, FIRST)
    builder.assistant("hello")
    builder.user("go on")
    made = shorten(_long(as_session(spent(builder.planted(), base=190_000)), size=Size(201_000, LIMIT)))
    assert isinstance(made, Refusal)
    assert made.reason.startswith("system prompt, tools and the first document alone take about 1")
    assert "turn off tools and MCP servers, start a new session without it" in made.reason


def test_a_refusal_that_nothing_stored_accounts_for() -> None:
    made = shorten(_long(as_session(_small()), usages=(), size=Size(210_338, LIMIT)))
    assert isinstance(made, Refusal)
    assert "system prompt and tools alone" in made.reason


def test_no_numbers_and_no_estimate() -> None:
    made = shorten(_long(as_session(_small()), usages=(), size=Size()))
    assert isinstance(made, Refusal)
    assert "neither the refusal nor an earlier answer tells" in made.reason


def test_no_numbers_but_an_estimate() -> None:
    """The limit is not known, but it is less than what was refused."""
    session = session_of(LONG["many-turns"], seed=7)
    made = _shorter(_long(session, size=Size()))
    assert 0.85 * 0.6 <= (OWN + count(_sent(session, made))) / made.before <= 0.61


def test_what_the_client_is_about_to_clear_itself_is_left_to_it() -> None:
    session = session_of(LONG["long-turn"], seed=7)
    prompted = replace(session, messages=(*session.messages, replace(session.messages[0], id="msg_zzz", parts=())))
    assert pruned(prompted, 0) == ()
    made = shorten(_long(session, "old", by_itself=pruned(prompted, 1)))
    assert isinstance(made, Refusal)
    assert "by itself" in made.reason


def test_what_it_cleared_since_fits_again() -> None:
    session = session_of(LONG["many-turns"], seed=7)
    cleared = edited(session, pruned(session, 2))
    made = shorten(_long(cleared, "old", cleared_since=True))
    assert isinstance(made, Refusal)
    assert "fits again" in made.reason


# Bad input


def _small() -> Planted:
    builder = SessionBuilder(seed=7)
    builder.user(FIRST)
    builder.assistant("hello")
    return spent(builder.planted())


LIES: dict[str, Callable[[int, Usage], Usage]] = {
    "zero": lambda n, usage: replace(usage, given=0),
    "negative": lambda n, usage: replace(usage, given=-usage.given),
    "another tokenizer": lambda n, usage: replace(usage, given=usage.given * 2, same_model=False),
    "the same each time": lambda n, usage: replace(usage, given=150_000),
    "at random": lambda n, usage: replace(usage, given=(n * 7919) % 190_000),
    "absurd": lambda n, usage: replace(usage, given=10**9),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["many-turns", "talk", "inputs"])
def test_usage_that_lies(name: str, lie: str) -> None:
    """The refusal's own number holds the plan to what is true; or nothing is done."""
    session = session_of(LONG[name], seed=7)
    case = _long(session)
    made = shorten(replace(case, usages=tuple(LIES[lie](n, usage) for n, usage in enumerate(case.usages))))
    if isinstance(made, Refusal):
        assert lie in ("absurd", "the same each time")
        return
    assert OWN + count(_sent(session, made)) < LIMIT
    assert OWN + count(_sent(session, made)) > 0.4 * SHARE * LIMIT


@pytest.mark.parametrize("limit", [600, 5_000, 14_000, 24_000, 40_000])
def test_a_limit_smaller_than_one_turn(limit: int) -> None:
    """Planned right, or left alone with the reason: never longer than before, never refused for something else."""
    for name in BY_TOKENS:
        session = session_of(LONG[name], seed=7)
        case = _long(session)
        made = shorten(replace(case, size=Size(case.size.asked, limit)))
        if isinstance(made, Refusal):
            assert made.reason
            continue
        own = 0 if name == "first-paste" else OWN  # which no answer ever told
        assert own + count(_sent(session, made)) <= limit
        assert refusal(edited(session, made.edits), thinking=True, form=Form.named("new")) is None


def test_three_compactions() -> None:
    def turns(s: SessionBuilder, rng: random.Random) -> None:
        for _ in range(3):
            s.user(FIRST)
            s.assistant(bash(rng, 20_000), "done")
            marker = s.user(compaction())
            s.assistant("a summary", summary=True, parentID=marker["id"])
        s.user(FIRST)
        for _ in range(40):
            s.assistant(bash(rng, 20_000))
        s.assistant("so far")

    session = _session(turns)
    for form in FORMS:
        made = _shorter(_long(session, form))
        assert set(_actions(made)) == {"clear_output"}
        old = {part.id for message in session.messages[:12] for part in message.parts}
        assert old.isdisjoint(edit.part_id for edit in made.edits), "what is not sent is not touched"
        assert 0.85 * SHARE * LIMIT <= OWN + count(_sent(session, made, form)) <= 1.03 * SHARE * LIMIT


@pytest.mark.parametrize("refused", ["", "the rest", "all"])
def test_what_a_failed_compaction_hid_is_measured_by_what_answers_took_of_it(refused: str) -> None:
    """The tail that is left was asked for behind all that is hidden: what it took is no measure of system and tools."""
    builder, rng = SessionBuilder(seed=7), random.Random(7)
    builder.user(FIRST)
    for turn in range(14):
        builder.assistant(reasoning("so"), bash(rng, 52_000))
        builder.assistant(f"step {turn}")
        tail = builder.user(f"on {turn}")
    builder.assistant("done")
    builder.user("go on")
    planted = spent(builder.planted())
    whole = as_session(planted)
    marker = builder.user({**compaction(auto=True), "tail_start_id": tail["id"]})
    builder.assistant(error={"name": "APIError"}, finish=None, summary=True, parentID=marker["id"])
    session = as_session(planted)
    wire = _wire("new")
    left, all_ = (OWN + count(body(wire.build(one), thinking=True)) for one in (session, whole))
    assert left < 15_000
    assert all_ > 185_000
    asked = {"": 0, "the rest": left, "all": all_}[refused]
    made = _shorter(_long(session, size=Size(asked, 180_000), refused=refused == "all"))
    assert {"give_back", "clear_output"} <= set(_actions(made))
    tokens = OWN + count(_sent(session, made))
    assert 0.85 * SHARE * 180_000 <= tokens <= 1.03 * SHARE * 180_000
    assert abs(made.after - tokens) < 0.03 * tokens


def test_a_part_that_can_not_be_sent_comes_first() -> None:
    builder = SessionBuilder(seed=7)
    builder.user(FIRST)
    builder.assistant(tool(status=""))
    session = as_session(builder.planted())
    made = shorten(_long(session, size=Size(210_000, LIMIT), usages=()))
    assert isinstance(made, Refusal)
    assert not made.understood


def test_words_and_code_are_measured_apart() -> None:
    """One rate for all would be wrong by half: each stretch has its own."""

    def turns(s: SessionBuilder, rng: random.Random) -> None:
        s.user(FIRST)
        for _ in range(10):
            s.assistant(bash(rng, 30_000))
        s.assistant(reasoning("so"), text("that was it"))

    session = _session(turns)
    case = _long(session)
    # The first half takes two and a half times as many tokens a character.
    given = [usage.given for usage in case.usages]
    half = len(given) // 2
    grown = [n + int(1.5 * (min(n, given[half]) - given[0])) for n in given]
    usages = tuple(replace(usage, given=n) for usage, n in zip(case.usages, grown, strict=True))
    asked = case.size.asked + grown[half] - given[half]
    made = _shorter(replace(case, usages=usages, size=Size(asked, 80_000), share=0.7))
    cleared = sum(edit.action == "clear_output" for edit in made.edits)
    saved = grown[cleared] - grown[0]
    assert abs(made.before - made.after - saved) < 0.03 * asked


def test_strict_and_bound_providers_count_as_the_client_is_told() -> None:
    strict = Strict(limit=1_000)
    session = as_session(_small())
    said = strict.judge(body(_wire("new").build(session), thinking=True))
    assert said is None
    assert words(random.Random(1), 5_000) != words(random.Random(2), 5_000)
