"""Each broken block of the provider's schema is mended in memory, and the rules are silent after it."""

from __future__ import annotations

import base64

import pytest

from recoveryd.clients.claude_code import transcript
from recoveryd.clients.claude_code.client import mends_itself
from recoveryd.clients.claude_code.editor import ClaudeCodeEditor
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from recoveryd.core import Block, Claims, Failure, Kind, Marks, RecordedError, Refusal, Session, edited
from recoveryd.providers import classify, provider_of
from recoveryd.repair import NOTHING_EXPLAINS, LeftToClient, PlanInput, Settings, objections, plan
from recoveryd.repair.plan import Plan
from tests.e2e import replies
from tests.e2e.claude_code.client import out_of_reach
from tests.e2e.claude_code.shapes import SOUND, STUCK, built, gives, says, searched
from tests.e2e.media import png
from tests.e2e.strict import Strict
from tests.support.transcript import Transcript, call, text
from tests.support.unsent import lost

MARKS = Marks("r1", 1)


def read(made: Transcript) -> Session:
    return transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)


def judged(session: Session) -> str | None:
    """What the strict provider, which shares no line with the rules, says of the next request."""
    turns = ClaudeCodeWire().build(session).turns
    messages = [{"role": turn.role, "content": [dict(block.body) for block in turn.blocks]} for turn in turns]
    body = {"messages": messages, "tools": [{"name": "Bash"}]}
    gone = out_of_reach(body)
    refusal = Strict().judge(body)
    return gone.message if gone else refusal.message if refusal else None


@pytest.mark.parametrize("name", STUCK)
def test_a_stuck_shape_is_mended_in_memory(name: str) -> None:
    session = read(built(Transcript(), STUCK[name]))
    words = judged(session)
    assert words is not None
    failure = Failure("s", session.id, "m", 1, RecordedError((words,), status=400, answered=True), "anthropic")
    evidence, rules = classify(failure.error), provider_of(failure)
    assert evidence is not None and rules is not None, words
    provider = LeftToClient(rules, mends_itself, failure.error, evidence)
    editor = lambda of: ClaudeCodeEditor(of, MARKS)  # noqa: E731
    planned = plan(PlanInput(session, failure, evidence, Settings(), (ClaudeCodeWire(),), provider, editor))
    assert not isinstance(planned, Refusal), planned
    after = edited(session, planned.edits)
    assert name == "signature-null" or judged(after) is None  # thinking without a signature, the client takes away
    assert objections(after, (ClaudeCodeWire(),), provider, planned.claims) == []
    assert lost(session, ClaudeCodeWire().build(session), ClaudeCodeWire().build(after), planned.edits) == []


def test_thinking_behind_a_call_is_healed_with_what_is_refused() -> None:
    """It would be refused next: a session of another maker's model has illegal ids, too."""
    made = built(Transcript(), STUCK["thinking-behind-a-call"])
    for line in made.lines:
        assert isinstance(line, dict)
        for block in line.get("message", {}).get("content", []):
            if isinstance(block, dict):
                block.update({key: f"{block[key]}:1" for key in ("id", "tool_use_id") if key in block})
    planned = _planned(read(made), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    assert not isinstance(planned, Refusal), planned
    assert judged(edited(read(made), planned.edits)) is None


@pytest.mark.parametrize("name", SOUND)
def test_of_a_sound_shape_the_rules_leave_all_to_the_client(name: str) -> None:
    session = read(built(Transcript(), SOUND[name]))
    failure = Failure("s", session.id, "m", 1, provider="anthropic")
    rules = provider_of(failure)
    assert rules is not None
    assert LeftToClient(rules, mends_itself).check(ClaudeCodeWire().build(session), Claims()) == []


@pytest.mark.parametrize(
    "words",
    [
        "Unable to download the file: https://example.com/b.png. Please verify the URL and try again.",
        "messages.4.content.0.tool_result.content.2.image.source.url: Unable to download the file.",
        "messages.4.content.0.tool_result.content.2.image.source.url: Could not process image",
        "messages.6.content.1.tool_result.content.2.image.source.url: Could not process image",
    ],
)
def test_of_several_images_of_a_result_only_the_one_that_is_named_goes(words: str) -> None:
    urls = [f"https://example.com/{name}.png" for name in "abc"]
    session = read(built(Transcript(), gives(*({"type": "image", "source": {"type": "url", "url": u}} for u in urls))))
    planned = _planned(session, words)
    assert not isinstance(planned, Refusal), planned
    [edit] = planned.edits
    content = (edit.after or {})["content"]
    assert [item["source"]["url"] for item in content if item["type"] == "image"] == [urls[0], urls[2]]
    assert content[2]["text"] == f"[The image {urls[1]} was taken out: the provider can't fetch it]"


@pytest.mark.parametrize("words", ["Could not process image", "Unable to download the file"])
@pytest.mark.parametrize(
    ("place", "gone"),
    [
        ((0, 1), "a"),
        ((1, 1), "a"),  # behind a message of the client's own, which begins a prompt with `@file`
        ((3, 1), "b"),  # its place in the requests of 2.1.330: a message of the client's own stands behind the first
        ((3, 0), None),
        ((4, 1), None),  # "b" behind two of its messages, or "c" behind none
        ((5, 1), None),
        ((6, 1), "c"),
        ((8, 2), "c"),
        ((9, 1), "c"),  # each prompt with `@file`
        ((10, 1), None),
    ],
)
def test_a_place_counts_what_the_client_puts_between(place: tuple[int, int], gone: str | None, words: str) -> None:
    made = Transcript()
    for name in "abc":
        url = {"type": "url", "url": f"https://example.com/{name}.png"}
        made.user([{"type": "text", "text": "look"}, {"type": "image", "source": url}])
        made.assistant({"type": "text", "text": "seen"})
    planned = _planned(read(made), f"messages.{place[0]}.content.{place[1]}.image.source.url: {words}")
    gone_now = [(edit.after or {})["text"] for edit in (() if isinstance(planned, Refusal) else planned.edits)]
    note = f"[The image https://example.com/{gone}.png was taken out: the provider can't fetch it]"
    assert gone_now == ([note] if gone else [])


def test_an_image_by_address_is_not_meant_where_one_that_is_stored_may_be() -> None:
    made = Transcript()
    made.user("go")
    made.assistant({"type": "text", "text": "gone"})
    stored = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(3, 3)).decode()}
    for source in ({"type": "url", "url": "https://example.com/a.png"}, stored):
        made.user([{"type": "text", "text": "look"}, {"type": "image", "source": source}])
        made.assistant({"type": "text", "text": "seen"})
    for place in ("4.content.1", "6.content.1", "9.content.1"):
        planned = _planned(read(made), f"messages.{place}.image.source: Could not process image")
        assert isinstance(planned, Refusal) and planned.reason.startswith("it is not known which image"), place


def _planned(session: Session, words: str) -> Plan | Refusal:
    failure = Failure("s", session.id, "m", 1, RecordedError((words,), status=400, answered=True), "anthropic")
    evidence, rules = classify(failure.error), provider_of(failure)
    assert evidence is not None and rules is not None
    provider = LeftToClient(rules, mends_itself, failure.error, evidence)
    editor = lambda of: ClaudeCodeEditor(of, MARKS)  # noqa: E731
    return plan(PlanInput(session, failure, evidence, Settings(), (ClaudeCodeWire(),), provider, editor))


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("WaitForMcpServers", ["mcp__t__a", "mcp__t__b", "mcp__other__a", "Bash"]),
        ("mcp__t__b", ["WaitForMcpServers", "mcp__other__a", "Bash"]),
        ("mcp__t__z", None),
        ("Own", None),
    ],
)
def test_a_tool_that_is_gone_goes_out_of_what_the_provider_found_with_those_of_its_server(
    gone: str, left: list[str] | None
) -> None:
    """What the client's own search had found (`Own`) is its business."""
    found = searched("WaitForMcpServers", "mcp__t__a", "mcp__t__b", "mcp__other__a", "Bash")
    made = built(Transcript(), says(*found))
    gives({"type": "tool_reference", "tool_name": "Own"})(made)
    planned = _planned(read(made), f"Tool reference '{gone}' not found in available tools")
    after = [(edit.after or {})["content"]["tool_references"] for edit in getattr(planned, "edits", ())]
    assert after == ([] if left is None else [[{"type": "tool_reference", "tool_name": name} for name in left]])


def test_what_the_client_mends_by_itself_is_told_by_kind() -> None:
    for kind in (
        Kind.TOOL_RESULT_MISSING,
        Kind.TOOL_RESULT_ORPHAN,
        Kind.THINKING_SIGNATURE_INVALID,
        Kind.INVALID_UNICODE,
    ):
        assert mends_itself(kind)
    for kind in (
        Kind.TOOL_CALL_INVALID,
        Kind.FOREIGN_ITEM,
        Kind.EMPTY_CONTENT,
        Kind.MEDIA_REJECTED,
        Kind.TOOL_NOT_FOUND,
    ):
        assert not mends_itself(kind)


def _pairs(session: Session) -> dict[str, str]:
    """What each call gave, by its command, as the client sends it."""
    blocks = [block.body for turn in ClaudeCodeWire().build(session).turns for block in turn.blocks]
    given = {body["tool_use_id"]: body["content"] for body in blocks if body["type"] == "tool_result"}
    return {body["input"]["command"]: given[body["id"]] for body in blocks if body["type"] == "tool_use"}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("lost", [None, 0, 1, 2, 3])
def test_where_an_id_comes_again_each_result_stays_with_its_call(lost: int | None, named: bool) -> None:
    made = Transcript()
    made.user("go")
    commands = [["one", "two"], ["date"], ["last"]]
    ids = {"one": "call:0", "two": "call:1", "date": "call:1", "last": "call:1"}
    order = [command for answer in commands for command in answer]
    for answer in commands:
        lines = made.assistant(*(call(call_id=ids[command], given={"command": command}) for command in answer))
        for line, command in zip(lines, answer, strict=True):
            if lost is None or command != order[lost]:
                block = {"type": "tool_result", "tool_use_id": ids[command], "content": f"of {command}"}
                made.user([block], **({"sourceToolAssistantUUID": line} if named else {}))
        made.user("go on")
    session = read(made)
    words = judged(session)
    assert words is not None
    planned = _planned(session, words)
    assert not isinstance(planned, Refusal), planned
    after = edited(session, planned.edits)
    assert judged(after) is None
    pairs = _pairs(after)
    wanted = {command: f"of {command}" for n, command in enumerate(order) if n != lost}
    assert {command: said for command, said in pairs.items() if command in wanted} == wanted
    assert all("of " not in said or command in wanted for command, said in pairs.items())


def test_of_several_calls_with_one_id_in_an_answer_a_result_is_of_the_one_whose_line_it_names() -> None:
    made = Transcript()
    made.user("go")
    lines = made.assistant(*(call(call_id="call:0", given={"command": command}) for command in ("one", "two")))
    block = {"type": "tool_result", "tool_use_id": "call:0", "content": "of two"}
    made.user([block], sourceToolAssistantUUID=lines[1])
    session = read(made)
    editor = ClaudeCodeEditor(session, MARKS)
    first, second = (editor._results(part) for part in session.messages[1].parts + session.messages[2].parts)
    assert (first, [part.data for part in second]) == ([], [block])


@pytest.mark.parametrize(
    "words",
    [
        "messages.3.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.0: Invalid `data` in `redacted_thinking` block",
        "messages.3.content.0: thinking block is bound to a different conversation",
        "messages.3.content.0.thinking.signature: Field required",
        "messages.3.content.0: `thinking` blocks in the latest assistant message cannot be modified.",
    ],
)
def test_thinking_that_is_refused_in_words_which_the_client_strips_by_is_left_to_it(words: str) -> None:
    said = RecordedError((words,), status=400, answered=True)
    evidence = classify(said)
    assert evidence is not None and mends_itself(evidence.kind, None, said)
    assert isinstance(_planned(read(built(Transcript(), STUCK["thinking-blank"])), words), Refusal)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("messages.4.content.0.thinking: each thinking block must contain non-whitespace thinking", ["why", ""]),
        ("messages.4.content.0.thinking: each thinking block must contain thinking", ["why", ""]),
        ("messages.4.content.0.thinking.thinking: Field required", ["why", "", "\n"]),
        ("Invalid thinking signature", []),
        ("messages.4.content.0.thinking.signature: Invalid signature", []),
    ],
)
def test_thinking_that_is_refused_in_other_words_is_healed_and_no_more_than_they_accuse(
    words: str, left: list[str]
) -> None:
    """Thinking of nothing is taken where its signature is good."""
    made = Transcript()
    made.user("go")
    for thought in ("why", "", "\n"):
        made.assistant({"type": "thinking", "thinking": thought, "signature": "s"}, {"type": "text", "text": "a"})
        made.user("go on")
    if "Field required" in words:
        made.assistant({"type": "thinking", "signature": "s"}, {"type": "text", "text": "b"})
    session = read(made)
    planned = _planned(session, words)
    assert not isinstance(planned, Refusal), planned
    sent = ClaudeCodeWire().build(edited(session, planned.edits)).blocks()
    assert [block.body.get("thinking") for block in sent if block.is_thinking] == left


def test_all_thinking_that_an_answer_ends_in_goes() -> None:
    """A line that is left without a block is not sent where others of its answer are (2.1.330)."""
    made = Transcript()
    made.user("go")
    made.assistant(replies.thinking("why"), text("a"), replies.thinking("b"), replies.thinking("c"))
    made.user("next")
    session = read(made)
    planned = _planned(session, "messages.1: The final block in an assistant message cannot be `thinking`.")
    assert not isinstance(planned, Refusal), planned
    sent = ClaudeCodeWire().build(edited(session, planned.edits)).turns[1].blocks
    assert [block.body.get("thinking") or block.body["text"] for block in sent] == ["why", "a"]


def test_thinking_behind_words_goes_alone_where_the_provider_wants_it_first() -> None:
    """The client keeps it: of these words it knows nothing."""
    made = Transcript()
    made.user("go")
    for blocks in (("first", "a"), ("b", "late")):
        said = [text(word) if len(word) == 1 else replies.thinking(word) for word in blocks]
        made.assistant(*said, text("c"))
        made.user("next")
    session = read(made)
    words = (
        "messages.3.content.0: If an assistant message contains any thinking blocks, the first block must be "
        "`thinking` or `redacted_thinking`. Found `text`."
    )
    planned = _planned(session, words)
    assert not isinstance(planned, Refusal), planned
    sent = ClaudeCodeWire().build(edited(session, planned.edits)).blocks()
    assert [block.body["thinking"] for block in sent if block.is_thinking] == ["first"]


def test_no_thinking_of_claude_s_goes_for_a_signature_that_gemini_wants_on_its_calls() -> None:
    words = "Function call is missing a thought_signature in functionCall parts."
    assert isinstance(_planned(read(built(Transcript(), STUCK["thinking-blank"])), words), Refusal)


@pytest.mark.parametrize(
    "words",
    [
        "Image was too large. Double press esc to go back.",
        "An image exceeds the dimension limit for many-image requests",
        "PDF too large (max 100 pages, 20MB). Double press esc to go back and try again.",
        "PDF is password protected. Please double press esc to edit your message and try again.",
        "The PDF file was not valid. Double press esc to go back and try again with a different file.",
    ],
)
def test_an_image_that_the_client_itself_tells_of_is_left_to_it(words: str) -> None:
    block = Block({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}, "", "")
    assert mends_itself(Kind.MEDIA_REJECTED, block, RecordedError((words,)))
    assert not mends_itself(Kind.MEDIA_REJECTED, block, RecordedError(("Some image is no good",)))


@pytest.mark.parametrize(
    ("words", "goes"),
    [
        (
            "The image was specified using the image/jpeg media type, but the image appears to be a image/png image",
            True,
        ),
        ("messages.0.content.2.image.source: the image appears to be a image/png image", False),
        ("Image does not match the provided media type image/jpeg", False),
        ("too many images and documents: 3 + 0 > 2", False),
    ],
)
def test_an_image_that_the_rules_know_as_bad_goes_where_the_words_are_none_that_the_client_knows(
    words: str, goes: bool
) -> None:
    data = base64.b64encode(png(3, 3)).decode()
    types = ("image/png", "image/jpeg")
    made = Transcript()
    for size in (4, 5):
        other = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(3, size)).decode()}
        made.user([text("see"), {"type": "image", "source": other}])
        made.assistant(text("seen"))
    sources = [{"type": "base64", "media_type": one, "data": data} for one in types]
    made.user([text("look"), *({"type": "image", "source": source} for source in sources)])
    made.assistant(text("seen"))
    planned = _planned(read(made), words)
    notes = [(edit.after or {})["text"] for edit in (() if isinstance(planned, Refusal) else planned.edits)]
    misnamed = "[The image was taken out: it is declared as image/jpeg and is image/png]"
    assert (misnamed in notes) is goes


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("too many images and documents: 24 + 0 > 20", 4),
        ("messages.7.content.0: too many images and documents: 24 + 0 > 20", 4),
        ("The model returned the following errors: messages: too many images: image_count > 23", 1),
        ("Too much media: 0 document pages + 24 images > 20", 0),
        ("messages.3.content.1.image: too many images: at most 20 images are allowed", 0),
        ("Could not process image", 0),
    ],
)
def test_of_too_many_images_the_oldest_go_where_the_client_does_not_take_them_away(words: str, gone: int) -> None:
    made = built(Transcript(), STUCK["images-too-many"])
    gives({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})(made)
    made = made if gone < 4 else built(Transcript(), STUCK["images-too-many"])
    session = read(made)
    planned = _planned(session, words)
    edits = () if isinstance(planned, Refusal) else planned.edits
    assert len(edits) == (gone and gone + (gone < 4))
    known = [part.id for message in session.messages for part in message.parts if "shot" in str(part.data)]
    assert [edit.part_id for edit in edits] == [part for part in known if part in {e.part_id for e in edits}]


def test_of_too_many_images_where_fewer_are_stored_it_is_not_said_that_one_of_them_is_meant() -> None:
    """A client that had more of them in memory was refused: what is stored was repaired meanwhile."""
    session = read(built(Transcript(), STUCK["images-too-many"]))
    planned = _planned(session, "too many images and documents: 26 + 0 > 25")
    assert planned == Refusal(NOTHING_EXPLAINS, understood=False)
