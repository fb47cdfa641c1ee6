"""The usual errors on the real client: a provider answers with each, the client records it, `explain` tells it.

`python -m tests.e2e.usual_errors 1.18.34` (or `kilo`) prints what is told otherwise than the table says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from recoveryd.core import Kind
from recoveryd.providers.sentences.cause_words import WORDS
from tests.e2e.client import Client, PromptResult
from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.install import JSON_STORE, ensure
from tests.e2e.kilo import Kilo
from tests.families.table import ANTHROPIC, FAMILIES
from tests.support.fake_api import ApiHandler, FakeApi
from tests.support.usual_errors import UsualError, usual_errors

CHAT = FAMILIES["glm"]
# By which SDK who says it is asked; all others by that of chat completions.
FAMILY = {
    "anthropic": ANTHROPIC,
    "zai-anthropic": ANTHROPIC,
    "minimax": ANTHROPIC,
    "openai": FAMILIES["openai"],
    "azure": FAMILIES["azure"],
    "bedrock": FAMILIES["bedrock"],
    "vertex": FAMILIES["gemini"],  # its own SDK logs in to Google first, in 1.1
    "gemini": FAMILIES["gemini"],
    "github-copilot": FAMILIES["copilot"],
    "openrouter": FAMILIES["openrouter"],
    "mistral": FAMILIES["mistral"],
    "xai": FAMILIES["xai"],
    "deepseek": FAMILIES["deepseek"],
}
_MARK = re.compile(rb"row-(\d+)\.")
_BUSY = (408, 409, 429)
_LENGTH = "Too many tokens"
# The clients send some again and again before they record them: after no time, where an answer says so.
_AT_ONCE = ("retry-after-ms", "1")
_EXPLAIN = """
import contextlib, io, json, sys
from recoveryd.cli import main
for session in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["explain", "--session", session, "--json"])
    print(json.dumps(said.getvalue()))
"""


def recorded_by(name: str) -> list[UsualError]:
    """List the rows that a client records as they are. 1.1 sends one that a server is too busy for again and again, for
    ever, and what OpenAI does not find. 1.18 takes any 413 and "too many tokens" for a length: it asks for a summary,
    and records what became of that.
    """
    rows = [row for row in usual_errors() if row.status >= 400]
    if name != JSON_STORE:
        of_length = (row for row in rows if row.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _LENGTH in row.body)
        others = {row for row in of_length if row.told is not Kind.CONTEXT_OVERFLOW}
        return [row for row in rows if row not in others]
    rows = [row for row in rows if row.status < 500 and row.status not in _BUSY]
    return [row for row in rows if (row.said_by, row.status) != ("openai", 404)]


class _Handler(ApiHandler):
    api: Answers

    def do_POST(self) -> None:
        """Answer with the row that the newest prompt names."""
        named = _MARK.findall(self.body())
        row = self.api.rows[int(named[-1])] if named else UsualError("", 404, "", None)
        content = row.body.encode()
        kind = "text/html" if row.body.startswith("<") else "application/json"
        if row.status == HTTPStatus.OK:
            event = b"event: error\n" if row.body.startswith('{"type"') else b""
            kind, content = "text/event-stream", event + b"data: " + content + b"\n\n"
        self.send_response(row.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header(*_AT_ONCE)
        self.end_headers()
        self.wfile.write(content)


@dataclass
class Answers(FakeApi):
    """A provider that answers each prompt with the row that it names."""

    rows: Sequence[UsualError]
    handler = _Handler


@dataclass(frozen=True)
class Told:
    """What became of one row: the error as the client recorded it, and what `explain` tells of the session."""

    row: UsualError
    result: PromptResult
    explained: dict[str, Any]

    @property
    def told(self) -> str | None:
        """The kind or the cause by its name; None where it is neither."""
        about = str(self.explained.get("evidence", {}).get("about", "")).removeprefix("It seems to be about ")
        cause = next((cause for cause, words in WORDS.items() if words == about), None)
        return str(self.explained.get("kind") or "") or (str(cause) if cause else None)

    @property
    def right(self) -> bool:
        """Whether that is what the table says."""
        return self.told == (str(self.row.told) if self.row.told is not None else None)


@contextmanager
def _running(name: str, root: Path, answers: Answers) -> Iterator[Client]:
    families = {family.provider: family for family in (*FAMILY.values(), CHAT)}
    config = CHAT.config(answers.address)
    for family in families.values():
        config["provider"] |= family.config(answers.address)["provider"]
    config |= {"permission": {"*": "allow"}, "autoupdate": False, "share": "disabled"}
    env = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
    if name == "kilo":
        client: Client = Kilo(root, answers.url, config=config, env=env)
    else:
        client = Client(ensure(name), root, answers.url, config=config, env=env)
    with client:
        client.call("GET", "/session")
        yield client


def play(name: str, root: Path, rows: Sequence[UsualError]) -> list[Told]:
    """Have each row answered and recorded in a session of its own, and explained. `name`: a version, or "kilo"."""
    with Answers(rows) as answers, _running(name, root / "client", answers) as client:

        def prompted(number: int) -> tuple[str, PromptResult]:
            session = str(client.new_session()["id"])
            family = FAMILY.get(rows[number].said_by, CHAT)
            return session, client.prompt(session, f"row-{number}.", model=family.ids)

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(prompted, range(len(rows))))
    explained = _explained(root, [session for session, _ in made])
    return [Told(row, result, said) for row, (_, result), said in zip(rows, made, explained, strict=True)]


def _explained(root: Path, sessions: Sequence[str]) -> list[dict[str, Any]]:
    daemon = Daemon(root / "daemon", root / "client" / "data", config=CONFIG)
    command = [sys.executable, "-c", _EXPLAIN]
    done = subprocess.run(
        command, env=daemon.env, cwd=daemon.root, input=json.dumps(sessions), capture_output=True, text=True, check=True
    )
    return [json.loads(json.loads(line) or "{}") for line in done.stdout.splitlines()]


def main() -> int:
    """Print what is told otherwise than the table says."""
    (name,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        found = play(name, Path(folder), recorded_by(name))
    wrong = [one for one in found if not one.right]
    for one in wrong:
        print(f"{one.row}\n    wanted {one.row.told}, told {one.told}: {json.dumps(one.result.error)[:400]}")
    print(f"{len(found) - len(wrong)} of {len(found)} as the table says, on {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
