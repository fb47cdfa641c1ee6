"""A bug report says how a session is built, and not a word of what it says: secrets are planted in every place."""

from __future__ import annotations

import json
import random
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients import Config, Content, Whose, read_error
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.core.errors import NotFoundError
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.doctor.bug_report import Sources, bundle
from recoveryd.doctor.report_shapes import Shaper, error_shape, model_in_report
from recoveryd.heal import follow_moved
from recoveryd.ledger.ledger import Judged, Ledger, Record
from recoveryd.providers import known_sentences
from recoveryd.providers.find import SURE
from recoveryd.settings import LedgerLimits
from tests.support.build import SessionBuilder, write_sqlite
from tests.support.database import NEW, OLD, Base
from tests.support.examples import examples
from tests.support.parts import api_error, file, raw, reasoning, text, tool
from tests.support.transcript import Transcript
from tests.support.trees import MISSING, Bench, Tree

WINDOW = 8


class Secrets:
    """Texts that nothing else holds: letters, digits and what stands between words, paths, addresses and tokens."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self.planted: list[str] = []

    def one(self, form: str = "{}", length: int = 24) -> str:
        before, _, after = form.partition("{}")
        secret = "".join(self._random.choices(string.ascii_letters + string.digits, k=length))
        self.planted.append(before[1 - WINDOW :] + secret + after[: WINDOW - 1])  # each window has some of the secret
        return form.format(secret)

    def found_in(self, report: str) -> list[str]:
        """Each window of a secret that the report holds, as it is or as JSON would escape it."""
        windows = {s[i : i + WINDOW] for s in self.planted for i in range(len(s) - WINDOW + 1)}
        return sorted(w for w in windows if w in report or json.dumps(w)[1:-1] in report)


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


def fill(session: SessionBuilder, s: Secrets) -> None:
    """A secret in each place that a session has."""
    session.user(
        s.one("my password is {}"),
        file(s.one("file:///home/{}/notes.txt"), filename=s.one("{}.pdf"), mime=s.one("application/{}")),
        file(s.one("data:image/png;base64,{}"), filename=s.one("{}.png")),
        text(s.one("\u5bc6\u7801 {}"), metadata={s.one(): s.one(), "recoveryd": {"recovery": s.one()}}),
        agent=s.one(),
        summary={"title": s.one(), "body": s.one(), "diffs": [{"file": s.one("/src/{}.py"), "before": s.one()}]},
        variant=s.one(),
        **{s.one(): s.one()},
    )
    session.assistant(
        reasoning(s.one("thinking of {}"), s.one(length=80), redactedData=s.one()),
        tool(
            s.one(),
            {s.one("{}"): s.one("sk-ant-{}"), "command": s.one("curl https://me:{}@example.org")},
            s.one("output {}"),
            call_id=s.one("toolu_{}"),
            title=s.one(),
            metadata={s.one(): s.one(), "output": s.one()},
            attachments=[{"type": s.one(), "mime": s.one(), "url": s.one("data:{}"), "filename": s.one()}],
        ),
        tool("bash", {"command": s.one()}, s.one("error {}"), status="error"),
        tool("edit", s.one("no object {}"), None, status=s.one()),
        {"type": s.one(), "text": s.one(), s.one(): s.one()},
        raw(s.one('{{"broken": "{}').encode()),
        text(s.one("behind {}")),
        finish=s.one(),
        error=None,
        mode=s.one(),
        path={"cwd": s.one("/home/{}/project"), "root": s.one("/{}")},
        cost=s.one(),
    )
    session.assistant("x", providerID=s.one(), modelID=s.one("claude-{}-4-5"))
    for message in session.messages:
        message["role"] = message["role"] if message["role"] in ("user", "assistant") else s.one()


def error(s: Secrets) -> dict[str, Any]:
    made = api_error(f"{MISSING} near {s.one('mail {}@example.org')}: {s.one()} {s.one('/home/{}/x')}", 400)
    made["data"] |= {
        "responseHeaders": {s.one("x-{}"): s.one("Bearer {}"), "set-cookie": s.one()},
        "metadata": {"url": s.one("https://{}.example.org/v1/messages"), s.one(): s.one()},
        "responseBody": json.dumps({"type": "error", "request_id": s.one("req_{}"), "error": {"message": s.one()}}),
        "message": made["data"]["message"],
        s.one(): s.one(),
    }
    return made


def plant(tmp_path: Path, s: Secrets, version: str | None) -> tuple[Any, str]:
    """A store with a stuck session full of secrets, and the session's id."""
    now = int(time.time() * 1000)
    title, directory = s.one("Fix {}"), s.one("/home/{}/acme")
    session = SessionBuilder(now - 60_000, title=title, directory=directory, project=s.one())
    fill(session, s)
    session.failed(s.one("and now {}"), error(s))
    session.session["share"] = {"url": s.one("https://opncd.ai/share/{}")}
    s.planted += [item["id"][4:] for item in (session.session, *session.messages)]  # ids are nobody's business, too
    if version is None:
        tree = Tree(tmp_path)
        tree._builders[session.session["id"]] = session
        return tree.store, tree._write(session)
    base = Base(tmp_path / "opencode" / "opencode.db", version, time.time)
    write_sqlite(session.planted(), base.path)
    return base.store, session.session["id"]


@pytest.mark.parametrize("version", [None, OLD, NEW])
def test_no_secret_and_no_piece_of_one_is_in_a_report(
    tmp_path: Path, secrets: Secrets, bench: Bench, version: str | None
) -> None:
    store, session = plant(tmp_path, secrets, version)
    loaded = store.load(session)
    images = [Change(f"part/{p.message_id}/{p.id}.json", p.raw, p.raw) for m in loaded.messages for p in m.parts]
    failure = Failure(store.id, session, store.look(session).failure.message, 1)
    said = loaded.title, Kind.EMPTY_CONTENT, secrets.one("In {}."), ("placeholder",), tuple(images)
    bench.ledger.begin(Record("raaaa1111", failure, *said, judged=Judged(secrets.one(), 1)))
    bench.ledger.finish("raaaa1111", Outcome.FAILED, secrets.one("A fault of recoveryd: ValueError: {}."))
    config = Config(
        placeholder=secrets.one("[{}]"),
        ignore=(secrets.one("/home/{}"),),
        resume_text=secrets.one(),
        ledger=LedgerLimits(keep_days=3),
    )
    sources = Sources(config, [store], bench.ledger, bench.state)
    for name in ("raaaa", session):
        made = bundle(sources, name)
        report = json.dumps(made, indent=2)
        assert secrets.found_in(report) == []
        assert str(tmp_path) not in report and Path.home().name not in report.split('"')
        assert made["failure"]["kind"] == "tool_result_missing"
        assert "tool_use ids were found without" in made["messages"][-1]["error"]["says"]
        assert made["settings_changed"] == ["ignore", "ledger", "placeholder", "resume_text"]
        assert len(made["recovery"]["images"]) == len(images)
        assert json.loads(report) == made


def test_what_would_be_edited_is_told_without_the_words_of_it(tmp_path: Path, secrets: Secrets, bench: Bench) -> None:
    tree = Tree(tmp_path)

    def turns(session: SessionBuilder) -> None:
        session.user(secrets.one("go {}"))
        call = tool("bash", {"command": secrets.one()}, secrets.one(), call_id=secrets.one("toolu {}"))
        session.assistant(reasoning(secrets.one()), call, text(secrets.one("behind {}")))
        session.user(text(secrets.one("half \ud83d {}")))
        session.assistant(text(secrets.one()), tool("edit", secrets.one("no object {}"), secrets.one()))
        session.user("next")
        session.assistant(reasoning(secrets.one()), text(" "))

    session = tree.stuck(turns, f"{MISSING} {secrets.one()}", title=secrets.one())
    made = bundle(Sources(Config(), [tree.store], bench.ledger, bench.state), session)
    actions = {edit["action"] for edit in made["plan"]["edits"]}
    assert actions >= {"split_step", "mend_call", "mend_unicode", "placeholder"}
    assert secrets.found_in(json.dumps(made)) == []


def test_the_test_would_find_a_secret(secrets: Secrets) -> None:
    planted = secrets.one("path/\u00e9{}")
    assert secrets.found_in(json.dumps({"a": planted[:9]}))
    assert not secrets.found_in("path/\u00e9")
    assert secrets.found_in(f"x{planted[-8:]}y")
    assert not secrets.found_in(planted[-7:])


def test_it_says_what_a_person_who_mends_the_program_has_to_know(tmp_path: Path, bench: Bench) -> None:
    tree = Tree(tmp_path)
    session = tree.stuck()
    made = bundle(Sources(Config(), [tree.store], bench.ledger, bench.state), session)
    roles = [(m["role"], [p["type"] for p in m["parts"]]) for m in made["messages"]]
    assert roles[:2] == [("user", ["text"]), ("assistant", ["step-start", "tool", "text", "step-finish"])]
    call = made["messages"][1]["parts"][1]
    assert (call["tool"], call["state"], call["call"], call["call_legal"]) == ("bash", "completed", "c1", True)
    assert made["messages"][-1]["error"]["status"] == 400
    assert made["messages"][-1]["error"]["place"] == [1, None]
    assert made["objections"]["old"][0]["kind"] == "tool_result_missing"
    [edit] = made["plan"]["edits"]
    assert (edit["action"], edit["message"], edit["before"], edit["after"]["type"]) == (
        "split_step",
        made["messages"][1]["id"],
        None,
        "step-start",
    )
    assert made["store"] == "json" and made["recoveryd"] and "recovery" not in made


def test_the_version_of_another_client_that_listens_is_not_told_for_the_sessions_own(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpencodeServer, "listening_versions", lambda *_: ((1, 18, 34),))
    made = Transcript()
    made.user("q")
    made.write(tmp_path / "projects")
    tree = Tree(tmp_path)
    sources = Sources(Config(), [tree.store, ClaudeCodeTranscripts(tmp_path / "projects")], bench.ledger, bench.state)
    assert (told := bundle(sources, made.session))["client"] is None and told["client_name"] == "claude_code"
    assert bundle(sources, tree.stuck())["client"] == "1.18.34"


def test_a_recovery_whose_session_is_gone_still_has_a_report(tmp_path: Path, bench: Bench) -> None:
    failure = Failure("/gone", "ses_1", "msg_1", 1)
    bench.ledger.record(Record("rbbbb2222", failure, "t", None, "d"), Outcome.NOT_UNDERSTOOD)
    made = bundle(Sources(Config(), [], bench.ledger, bench.state), "rbbbb2222")
    assert made["recovery"]["outcome"] == "not_understood" and made["store"] is None and "messages" not in made


@pytest.mark.parametrize("linked", [True, False])
def test_a_recovery_of_a_store_that_was_moved_is_told_with_its_session(
    tmp_path: Path, bench: Bench, linked: bool
) -> None:
    tree = Tree(tmp_path)
    made = bench.attempt(tree, tree.stuck())
    follow_moved(tree.store, bench.ledger)
    there = tree.root.rename(tmp_path / "storage")
    if linked:
        tree.root.symlink_to(there)
    told = bundle(Sources(Config(), [OpencodeFiles(there)], bench.ledger, bench.state), made.id)
    assert (told["recovery"]["outcome"], told["store"], len(told["messages"])) == ("healed", "json", 4)


def test_what_nobody_knows_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        bundle(Sources(Config(), [], bench.ledger, bench.state), "rzzzz")


def test_it_writes_nothing(tmp_path: Path, bench: Bench) -> None:
    tree = Tree(tmp_path)
    session = tree.stuck()
    before = tree.files()
    with Ledger(bench.state / "ledger.db") as ledger:
        bundle(Sources(Config(), [tree.store], ledger, bench.state), session)
        assert ledger.history(9) == []
    assert tree.files() == before


@pytest.mark.parametrize("row", [row for row in SURE if row.kind is not None][::7])
def test_what_a_provider_says_is_told_in_the_words_of_the_table(row: Any) -> None:
    words = row.words.replace("*", "ACME42SECRET").replace("#", "7")
    assert known_sentences(f"400 {words} and more")
    assert "SECRET" not in "".join(known_sentences(words))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-#"),
        ("acme/gpt-5", "#-gpt-5"),
        ("", "#"),
        (None, "null"),
        (7, "number"),
    ],
)
def test_a_model_keeps_the_words_that_are_known(model: object, said: str) -> None:
    assert model_in_report(model) == said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 999) | st.text("abcXYZ", min_size=9, max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("defUVW", min_size=9, max_size=12), inner),
    max_leaves=12,
)
NAMES = (
    "type",
    "text",
    "state",
    "tool",
    "callID",
    "metadata",
    "url",
    "mime",
    "time",
    "synthetic",
    "data",
    "error",
    "name",
    "arguments",
    "output",
    "call_id",
    "tool_use_id",
    "content",
    "thinking",
    "id",
)
KEYS = st.sampled_from(NAMES)
CONTENTS = [Whose(Config(), []).content(f"/x/{name}") for name in ("storage", "sessions", "projects")]


@pytest.mark.parametrize("content", CONTENTS, ids=["opencode", "codex", "claude_code"])
@examples(100)
@given(part=st.dictionaries(KEYS, JSON), state=st.dictionaries(KEYS, JSON))
def test_a_record_of_any_shape_has_one(content: Content, part: dict[str, Any], state: dict[str, Any]) -> None:
    shaper = Shaper(content)
    for made in (
        shaper.part(part),
        shaper.part({**part, "state": state}),
        error_shape(read_error(part), content.error_names()),
        error_shape(read_error({"data": state}), content.error_names()),
    ):
        said = json.dumps(made)
        assert not [w for w in _leaves([part, state]) if len(w) > 7 and w not in NAMES and w in said]


def _leaves(data: Any) -> list[str]:
    if isinstance(data, dict):
        return [*(k for k in data if len(k) > 8), *(x for v in data.values() for x in _leaves(v))]
    return [x for v in data for x in _leaves(v)] if isinstance(data, list) else [data] if isinstance(data, str) else []
