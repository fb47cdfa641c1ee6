"""Single oddities of a stored session, in an ordinary conversation: what the random ones came upon, and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.generate import PICTURE
from tests.support.build import Planted, SessionBuilder
from tests.support.parts import Part, api_error, compaction, file, raw, reasoning, text, tool

ODD: dict[str, Callable[[], Planted]] = {}


def _case(name: str, *answer: Part, asked: tuple[Part, ...] = (), message: dict[str, Any] | None = None) -> None:
    """An answer of these parts, to a question with these; `message` holds fields of the answer, None takes one away."""

    def make() -> Planted:
        session = SessionBuilder(title=name)
        session.user("go", *asked)
        stored = session.assistant(*answer, "done")
        stored.update(message or {})
        for field in [field for field, value in (message or {}).items() if value == _GONE]:
            del stored[field]
        session.user("next")
        session.assistant("fine")
        return session.planted()

    ODD[name] = make


_GONE = object()

for number, content in enumerate(
    (b"[]", b'[{"type":"text","text":"x"}]', b"7", b"0", b'"x"', b'""', b"true", b"false", b"null")
):
    _case(f"part-no-object-{number}", raw(content))
    _case(f"part-no-object-of-a-user-{number}", asked=(raw(content),))

ERRORS: list[Any] = [{}, [], {"name": "X"}, {"name": "MessageAbortedError"}, "words", "", 7, 0, True, False, None]
for number, error in enumerate(ERRORS):
    _case(f"error-{number}", message={"error": error})

for gone in ("time", "modelID", "providerID", "parentID", "mode", "agent", "path", "tokens", "cost"):
    _case(f"answer-without-{gone}", reasoning("a plan"), message={gone: _GONE})

for number, stored in enumerate((None, 7, True, ["x"])):
    _case(f"tool-name-no-text-{number}", {**tool(), "tool": stored})
    _case(f"call-id-no-text-{number}", {**tool(), "callID": stored or {}})
    _case(f"state-no-object-{number}", {**tool(), "state": stored})
_case("state-an-empty-list", {**tool(), "state": []})

EXECUTED = {**tool(), "metadata": {"providerExecuted": True}}
_case("executed-by-the-provider-of-another-model", EXECUTED, message={"modelID": "gpt-5"})
_case("executed-by-the-provider-in-a-failed-turn", EXECUTED, message={"error": api_error()})
for number, content in enumerate((b"", b"{", b"null", b"[]")):
    _case(f"part-no-json-in-a-failed-turn-{number}", raw(content), message={"error": api_error()})

_case("answer-of-the-planner", text("a plan"), message={"agent": "plan", "mode": "plan"})
_case("summary-an-object", message={"summary": {"title": "words"}})
_case("role-unknown", message={"role": "system"})
_case("text-a-number", {"type": "text", "text": 7})
_case("reasoning-a-number", {"type": "reasoning", "text": 7})
# Left out: numbers beyond 2**53 (rounded by JavaScript) and a key `__proto__` (dropped). No rule looks at either.
_case("output-a-list", tool(output=["x"]))
_case("output-empty", tool(output=""))

TEXT = file("data:text/plain;base64,AAAA", "text/plain", "a.txt")
SVG = file("data:image/svg+xml;base64,AAAA", "image/svg+xml", "a.svg")
for name, attachment in {
    "text": TEXT,
    "svg": SVG,
    "from-the-web": file("https://example.com/a.png"),
    "of-no-type": {"url": "data:image/png;base64,AAAA"},
    "of-no-address": {"mime": "image/png"},
    "upper-case": file("DATA:image/png;base64,AAAA"),
}.items():
    _case(f"attachment-{name}", tool(output="seen", attachments=[attachment]))

for name, attached in {
    "svg": SVG,
    "upper-case": file("DATA:image/png;base64,AAAA"),
    "type-in-upper-case": file("data:image/PNG;base64,AAAA", "image/PNG"),
    "of-two-types": file("data:application/pdf;base64,AAAA", "image/png"),
    "text-by-its-address": file("data:text/plain;base64,aGFsbG8=", "text/html", "a.html"),
    "text-not-encoded": file("data:text/plain,hallo", "text/html", "a.html"),
    "csv": file("data:text/csv;base64,AAAA", "text/csv", "a.csv"),
    "json": file("data:application/json;base64,AAAA", "application/json", "a.json"),
    "of-bytes": file("data:application/octet-stream;base64,AAAA", "application/octet-stream", "a.bin"),
    "pdf-without-a-name": {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,AAAA"},
    "pdf-empty": file("data:application/pdf;base64,", "application/pdf", "a.pdf"),
    "picture-empty": file("data:image/png;base64,"),
    "picture-not-encoded": file("data:image/png,AAAA"),
    "picture-with-parameters": file(PICTURE.replace("image/png;", "image/png;charset=x;")),
    "of-an-empty-type": file("data:;base64,AAAA", ""),
    "on-disk": file("file:///nowhere/a.png"),
}.items():
    _case(f"file-{name}", asked=(attached,))


def _declare(make: Callable[[SessionBuilder], None]) -> None:
    def build() -> Planted:
        session = SessionBuilder(title=make.__name__)
        make(session)
        return session.planted()

    ODD[make.__name__.strip("_").replace("_", "-")] = build


@_declare
def _null_alone_in_a_failed_turn(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(raw(b"null"), bare=True, error=api_error())


@_declare
def _part_no_json_before_a_compaction(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(raw(b"{"), "done")
    asked = s.user(compaction())
    s.assistant("a summary", parentID=asked["id"], summary=True)


@_declare
def _part_no_json_in_what_is_reverted(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("done")
    undone = s.user("wrong", raw(b"{"))
    s.session["revert"] = {"messageID": undone["id"]}


@_declare
def _compaction_that_failed(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant(tool(), text("behind"))
    s.user(compaction())
    s.assistant(error=api_error(), summary=True, mode="compaction", agent="compaction")


@_declare
def _part_named_otherwise(s: SessionBuilder) -> None:
    asked = s.user("go", "on")
    s.assistant("done")
    s.parts[asked["id"]][0]["id"] = "prt_zzz"


@_declare
def _parts_without_ids(s: SessionBuilder) -> None:
    s.user("go")
    for part in s.parts[s.assistant("one", tool(), "two", bare=True)["id"]]:
        del part["sessionID"], part["messageID"]
    s.user("next")
    s.assistant("fine")


@_declare
def _spaces_at_the_end_of_an_answer(s: SessionBuilder) -> None:
    s.user("go")
    s.assistant("  spaces  \u00a0")


@_declare
def _questions_with_settings(s: SessionBuilder) -> None:
    s.user("go", system="be brief", tools={"bash": False}, variant="max", agent="plan")
    s.assistant("done")
