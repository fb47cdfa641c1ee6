"""Stores of growing files, filled with hostile sessions: lines changed, cut, doubled, or what nobody would write."""

from __future__ import annotations

import json
import os
import random
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from recoveryd.clients.claude_code import transcript
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.store import Store
from tests.e2e.claude_code.shapes import SOUND, STUCK, built
from tests.e2e.strict import Strict
from tests.fuzz.mutate import mutated
from tests.fuzz.worlds import ODD_FILES, Snapshot, files
from tests.support.judge import body
from tests.support.rollouts import Rollout, message
from tests.support.transcript import Transcript

_LINES = (
    b"",
    b"\0" * 40,
    b"\xff\xfe",
    b"[]",
    b"null",
    b"{}",
    b'{"type":"response_item"}',
    b'{"payload":[]}',
    b"\xef\xbb\xbf{}",
)
_OTHER_WORDS = (
    "Unable to download the file. Please verify the URL and try again.",
    "File not found: file_gone",
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages: text content blocks must be non-empty",
    "prompt is too long: 250000 tokens > 200000 maximum",
    "nobody knows these words",
)


def _words(made: Transcript) -> str:
    """What the strict provider says of it; of what is sound to it, anything."""
    read = transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)
    said = Strict().check(json.dumps(body(ClaudeCodeWire().build(read), thinking=False)).encode())[1]
    return said.message if said else ""


class _Lines:
    """A store of such files, all that is in it."""

    root: Path
    store: Store

    def __init__(self, outside: Path) -> None:
        self._outside = outside

    def snapshot(self) -> Snapshot:
        return files(self.root)

    def _hostile(self, rng: random.Random, path: Path) -> None:
        lines = path.read_bytes().splitlines()
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(lines)) if rng.random() < 0.9 else 0
            match rng.randrange(6):
                case 0:
                    lines[at] = rng.choice(_LINES)
                case 1:
                    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
                case 2:
                    lines.insert(at, rng.choice(lines))
                case 3:
                    lines[at], lines[-at] = lines[-at], lines[at]
                case _:
                    with suppress(ValueError, RecursionError):
                        lines[at] = mutated(rng, json.loads(lines[at])).replace(b"\n", b" ")
        path.write_bytes(b"\n".join(lines) + b"\n" * (rng.random() < 0.9))
        old = time.time() - 60
        os.utime(path, (old, old))
        if rng.random() < 0.08 and stat.S_ISREG(path.lstat().st_mode):
            rng.choice(ODD_FILES)(rng, path, self._outside)


class RolloutWorld(_Lines):
    """The threads of Codex."""

    def __init__(self, root: Path, outside: Path) -> None:
        super().__init__(outside)
        self.root = root / "codex"
        (self.root / "sessions").mkdir(parents=True)
        self.store = CodexThreads(self.root / "sessions")

    def fill(self, rng: random.Random, many: int) -> Sequence[str]:
        made = [f"01a201b9-82b1-7263-872f-{rng.getrandbits(48):012x}" for _ in range(many)]
        for thread in made:
            rollout = Rollout(self.root, thread, ms=int(time.time() * 1000) - 90_000)
            for _ in range(rng.randrange(1, 4)):
                rollout.healthy()
            history = [message("user", "kept"), {"type": "compaction", "encrypted_content": "gAAAA"}]
            if rng.random() < 0.5:
                rollout.compacted(history)
            rollout.stuck()
            self._hostile(rng, rollout.path)
        return made


class TranscriptWorld(_Lines):
    """The transcripts of Claude Code: every shape of those that are stuck, and of those that it mends itself."""

    def __init__(self, root: Path, outside: Path) -> None:
        super().__init__(outside)
        self.root = root / "claude"
        (self.root / "projects").mkdir(parents=True)
        self.store = ClaudeCodeTranscripts(self.root / "projects")

    def fill(self, rng: random.Random, many: int) -> Sequence[str]:
        return [self._session(rng) for _ in range(many)]

    def _session(self, rng: random.Random) -> str:
        name = f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
        made = built(Transcript(name, cwd="/p", start=int(time.time() * 1000) - 90_000), rng.choice(_SHAPES))
        said = _words(made)
        made.user("continue")
        made.refused(said if said and rng.random() < 0.9 else rng.choice(_OTHER_WORDS))
        self._hostile(rng, made.write(self.root / "projects"))
        return name


_SHAPES: Sequence[Any] = (*STUCK.values(), *STUCK.values(), *SOUND.values())
