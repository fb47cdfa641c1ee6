"""The kinds repaired later: illegal tool calls, broken characters, refused media, and what crashes the client."""

from __future__ import annotations

from tests.e2e.media import data_url, png
from tests.shapes.registry import broken
from tests.support.build import SessionBuilder
from tests.support.parts import file, raw, reasoning, text, tool

CALL = "tool_call_invalid"
UNICODE = "invalid_unicode"
MEDIA = "media_rejected"
CRASH = "crash"
HALF = "\ud83d"


def _turn(s: SessionBuilder, *content: object) -> None:
    s.user("go")
    s.assistant(*content)  # type: ignore[arg-type]
    s.user("next")
    s.assistant("fine")


@broken(CALL, stage=4, deep=True)
def input_a_string(s: SessionBuilder) -> None:
    _turn(s, tool(arguments="ls -l"))


@broken(CALL, stage=4)
def input_a_list(s: SessionBuilder) -> None:
    _turn(s, tool(arguments=["ls"]))


@broken(CALL, stage=4)
def input_a_number_of_a_failed_tool(s: SessionBuilder) -> None:
    _turn(s, tool(arguments=7, status="error", output="no"))


@broken(CALL, stage=4)
def input_null(s: SessionBuilder) -> None:
    _turn(s, tool(input=None))


@broken(CALL, stage=4)
def call_id_empty(s: SessionBuilder) -> None:
    _turn(s, tool(call_id=""))


@broken(CALL, stage=4)
def call_id_doubled_in_a_message(s: SessionBuilder) -> None:
    _turn(s, tool(call_id="toolu_same"), tool(call_id="toolu_same"))


@broken(CALL, stage=4, deep=True)
def call_id_doubled_across_messages(s: SessionBuilder) -> None:
    _turn(s, tool(call_id="toolu_same"))
    _turn(s, tool(call_id="toolu_same"))


@broken(CALL, stage=4)
def call_ids_equal_once_mended(s: SessionBuilder) -> None:
    # The client replaces other characters by "_" for these models, which makes the two the same.
    _turn(s, tool(call_id="call.1"), tool(call_id="call_1"))


@broken(CALL, stage=4)
def tool_name_with_spaces(s: SessionBuilder) -> None:
    _turn(s, tool("my tool"))


@broken(CALL, stage=4)
def tool_name_with_a_dot(s: SessionBuilder) -> None:
    _turn(s, tool("server.search"))


@broken(CALL, stage=4)
def tool_name_too_long(s: SessionBuilder) -> None:
    _turn(s, tool("a" * 201))


@broken(CALL, stage=4)
def tool_name_empty(s: SessionBuilder) -> None:
    _turn(s, tool(""))


@broken(UNICODE, stage=4, deep=True, newer="healthy")
def half_character_in_a_question(s: SessionBuilder) -> None:
    s.user(f"look {HALF}")
    s.assistant("fine")


@broken(UNICODE, stage=4, newer="healthy")
def half_character_in_an_answer(s: SessionBuilder) -> None:
    _turn(s, text(f"{HALF} cut"))


@broken(UNICODE, stage=4)
def half_character_in_an_input(s: SessionBuilder) -> None:
    _turn(s, tool(arguments={"command": f"echo {HALF}"}))


@broken(UNICODE, stage=4)
def half_character_in_a_key(s: SessionBuilder) -> None:
    _turn(s, tool(arguments={f"key{HALF}": "x"}))


@broken(UNICODE, stage=4, newer="healthy")
def half_character_in_an_output(s: SessionBuilder) -> None:
    _turn(s, tool(output=f"cut {HALF}"))


@broken(UNICODE, stage=4, newer="healthy")
def half_character_in_an_error(s: SessionBuilder) -> None:
    _turn(s, tool(status="error", output=f"cut {HALF}"))


@broken(UNICODE, stage=4, newer="thinking_signature_invalid")
def half_character_in_thinking(s: SessionBuilder) -> None:
    _turn(s, reasoning(f"cut {HALF}"), text("done"))


@broken(UNICODE, stage=4, newer="healthy")
def second_half_alone(s: SessionBuilder) -> None:
    _turn(s, text("\ude00 cut"))


@broken(MEDIA, stage=4, deep=True, newer="slow")
def picture_too_heavy(s: SessionBuilder) -> None:
    s.user("look", file(data_url(png(8, 8, padding=4_000_000))))
    s.assistant("a picture")


@broken(MEDIA, stage=4, newer="slow")
def picture_too_heavy_of_a_tool(s: SessionBuilder) -> None:
    heavy = file(data_url(png(8, 8, padding=4_000_000)))
    _turn(s, tool("read", {"filePath": "/a.png"}, "Image read", attachments=[heavy]))


@broken(MEDIA, stage=4)
def picture_too_wide(s: SessionBuilder) -> None:
    s.user("look", file(data_url(png(8001, 2))))
    s.assistant("a picture")


@broken(MEDIA, stage=4)
def many_pictures_too_wide(s: SessionBuilder) -> None:
    s.user("look", *[file(data_url(png(2001, 2))) for _ in range(21)])
    s.assistant("pictures")


@broken(MEDIA, stage=4)
def picture_of_another_type(s: SessionBuilder) -> None:
    s.user("look", file(data_url(png(4, 4), "image/jpeg"), "image/jpeg"))
    s.assistant("a picture")


@broken(MEDIA, stage=4)
def picture_that_is_none(s: SessionBuilder) -> None:
    s.user("look", file(data_url(b"<html>not found</html>")))
    s.assistant("a picture")


@broken(MEDIA, stage=4)
def picture_that_is_none_of_a_tool(s: SessionBuilder) -> None:
    page = file(data_url(b"<html>not found</html>"))
    _turn(s, tool("read", {"filePath": "/a.png"}, "Image read", attachments=[page]))


@broken(MEDIA, stage=4)
def picture_of_an_unknown_type(s: SessionBuilder) -> None:
    s.user("look", file(data_url(b"<svg/>", "image/svg+xml"), "image/svg+xml"))
    s.assistant("a picture")


@broken(MEDIA, stage=4)
def document_that_is_none(s: SessionBuilder) -> None:
    s.user("read", file(data_url(b"plain words", "application/pdf"), "application/pdf", "a.pdf"))
    s.assistant("a document")


@broken(CRASH, stage=4, deep=True)
def tool_without_state(s: SessionBuilder) -> None:
    _turn(s, tool(status=""))


@broken(CRASH, stage=4)
def tool_state_null(s: SessionBuilder) -> None:
    _turn(s, {**tool(), "state": None})


@broken(CRASH, stage=4)
def tool_output_null(s: SessionBuilder) -> None:
    _turn(s, tool(output=None))


@broken(CRASH, stage=4)
def tool_without_times(s: SessionBuilder) -> None:
    _turn(s, tool(time=None))


@broken(CRASH, stage=4, newer="empty_content")
def tool_executed_by_the_provider(s: SessionBuilder) -> None:
    _turn(s, {**tool(), "metadata": {"providerExecuted": True}})


@broken(CRASH, stage=4, deep=True)
def part_not_json(s: SessionBuilder) -> None:
    _turn(s, text("a word"), raw(b'{"id": "prt_'))


@broken(CRASH, stage=4)
def part_empty(s: SessionBuilder) -> None:
    _turn(s, text("a word"), raw(b""))


@broken(CRASH, stage=4)
def part_of_zeros(s: SessionBuilder) -> None:
    _turn(s, text("a word"), raw(b"\0" * 300))


@broken(CRASH, stage=4, json_only=True)
def part_null(s: SessionBuilder) -> None:
    _turn(s, text("a word"), raw(b"null"))


@broken(CRASH, stage=4)
def metadata_not_an_object(s: SessionBuilder) -> None:
    _turn(s, text("a word", metadata="mine"))
