"""Sessions without a fault: whatever is done to the broken ones, these must be left alone."""

from __future__ import annotations

from tests.e2e.media import data_url, png
from tests.e2e.signing import redacted
from tests.shapes.history import long_history
from tests.shapes.registry import healthy
from tests.support.build import SessionBuilder
from tests.support.parts import aborted, api_error, compaction, file, reasoning, step_start, subtask, text, tool

PICTURE = data_url(png(4, 4))
PDF = data_url(b"%PDF-1.4\n%%EOF\n", "application/pdf")


@healthy()
def plain(s: SessionBuilder) -> None:
    s.user("hello")
    s.assistant("hello yourself")


@healthy()
def nothing_yet(s: SessionBuilder) -> None:
    del s


@healthy()
def tools_closed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), tool())
    s.assistant("done")


@healthy(thinking=(False,))
def tool_open_without_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("I run it"), tool())


@healthy(thinking=(True,))
def tool_open_with_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("I run it"), tool())


@healthy()
def thinking_signed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("done"))


@healthy()
def thinking_before_tools_closed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), tool("read", {"filePath": "/a"}))
    s.assistant(reasoning("seen"), text("done"))


@healthy()
def steps_in_one_message(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("one"), tool(), step_start(), reasoning("two"), tool(), step_start(), text("done"))


@healthy()
def tool_errors(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(status="error", output="Error: no such file"), tool())
    s.assistant("one failed")


@healthy()
def tools_cut_off_by_a_crash(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("both"), tool(status="running"), tool(arguments={}, status="pending"), completed=False)
    s.user("still there?")
    s.assistant("yes")


@healthy()
def tool_of_an_unknown_state(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(text("a word"), tool(status="streaming"))
    s.assistant("done")


@healthy()
def compacted(s: SessionBuilder) -> None:
    # All before the summary is not sent, a fault in it does no harm.
    s.user("long ago")
    s.assistant("\n")
    asked = s.user(compaction())
    s.assistant("a summary of it all", parentID=asked["id"], summary=True, mode="compaction", agent="compaction")
    s.user("and now?")
    s.assistant("we go on")


@healthy()
def reverted(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("done")
    undone = s.user("this was wrong")
    s.assistant(" ")
    s.session["revert"] = {"messageID": undone["id"]}


@healthy()
def ignored_and_synthetic(s: SessionBuilder) -> None:
    s.user(text("hidden", ignored=True), text("seen"), text("added", synthetic=True))
    s.assistant(text("answer"), text("note", synthetic=True))


@healthy()
def pictures_and_documents(s: SessionBuilder) -> None:
    s.user("look", file(PICTURE), file(PDF, "application/pdf", "a.pdf"))
    s.assistant("a picture and a document")


@healthy()
def text_files_and_folders(s: SessionBuilder) -> None:
    s.user(
        "read it",
        text('Called the Read tool with the following input: {"filePath":"/a.txt"}', synthetic=True),
        text("<file>\n00001| a\n</file>", synthetic=True),
        file("file:///a.txt", "text/plain", "a.txt"),
        file("file:///b", "application/x-directory", "b"),
    )
    s.assistant("read")


@healthy()
def attachments_of_tools(s: SessionBuilder) -> None:
    s.user("look")
    both = [file(PICTURE), file(PDF, "application/pdf", "a.pdf")]
    s.assistant(tool("read", {"filePath": "/a.png"}, "Image read successfully", attachments=both))
    s.assistant("seen")


@healthy()
def old_outputs_cleared(s: SessionBuilder) -> None:
    s.user("look")
    cleared = {"start": 1, "end": 2, "compacted": 3}
    s.assistant(tool("read", {"filePath": "/a.png"}, "", attachments=[file(PICTURE)], time=cleared))
    s.assistant("seen")


@healthy()
def aborted_with_parts(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), text("I begin"), tool(status="error", output="aborted"), error=aborted())
    s.user("go on")
    s.assistant("done")


@healthy()
def aborted_before_a_word(s: SessionBuilder) -> None:
    """Anthropic's own SDK sends nothing of it; that of Vertex an answer without content, which is refused."""
    s.user("go")
    s.assistant(text(""), error=aborted())
    s.user("next")
    s.assistant("fine")


@healthy()
def aborted_without_words(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("cut", None), error=aborted())
    s.user("go again")
    s.assistant(error=aborted())


@healthy()
def failed_messages(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("done")
    for number in range(4):
        s.failed(f"again {number}", api_error("Overloaded", 529, True))


@healthy()
def failed_with_poison_inside(s: SessionBuilder) -> None:
    # A message with an error is not sent, whatever it holds.
    s.user("go")
    s.assistant(text("\n"), tool(), text("behind"), reasoning("x", "forged"), error=api_error())
    s.user("again")
    s.assistant("done")


@healthy()
def long_conversation(s: SessionBuilder) -> None:
    long_history(s, rounds=12)


@healthy()
def subtask_done(s: SessionBuilder) -> None:
    s.user(subtask())
    s.assistant(tool("task", {"prompt": "look around"}, "found it"), bare=True, finish="tool-calls", agent="general")
    s.assistant("it is there")


@healthy()
def unicode_of_all_kinds(s: SessionBuilder) -> None:
    s.user("😀 grüße \u2028 \u202e abc \x00 \ufffd \U0001f468\u200d\U0001f469\u200d\U0001f467")
    s.assistant(reasoning("日本語"), text("ελληνικά"), tool(arguments={"command": "echo 😀"}, output="😀\x1b[0m"))
    s.assistant("\\ud83d is only six characters")


@healthy()
def redacted_thinking(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("", None, redactedData=redacted("1")), text("done"))


@healthy()
def unsigned_thinking_beside_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("never signed", None), text("done"))


@healthy()
def empty_texts_that_vanish(s: SessionBuilder) -> None:
    s.user("go", "")
    s.assistant(text(""), text("done"), text(""))
    s.user("")
    s.assistant("")


@healthy()
def unknown_part_type(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant({"type": "thinking", "thinking": "hm"}, text("done"), {"type": "patch", "hash": "x", "files": []})


@healthy()
def call_id_that_the_client_mends(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(call_id="call.1:2"))
    s.assistant("done")


@healthy()
def another_model_before(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("signed for another"), text("done"), modelID="claude-opus-4-1")


@healthy()
def neighbouring_users(s: SessionBuilder) -> None:
    for number in range(5):
        s.user(f"question {number}")
    s.assistant("all at once")


@healthy()
def crashed_before_a_word(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(completed=False)
    s.user("hello?")
    s.assistant("yes")


@healthy()
def closed_by_a_synthetic_text(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(reasoning("a plan"), tool(), step_start(), text("[Tool execution completed.]", synthetic=True))


@healthy()
def twenty_large_pictures(s: SessionBuilder) -> None:
    s.user("look", *[file(data_url(png(2001, 2))) for _ in range(20)])
    s.assistant("pictures")
