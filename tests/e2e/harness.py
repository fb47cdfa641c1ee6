"""The provider and the real client together: plant a session, prompt it, see what was asked and what came back."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.client import Client, PromptResult
from tests.e2e.install import DEFAULT_VERSION, ensure
from tests.e2e.provider import Provider, Request
from tests.support.build import BINDS, MODEL, Planted
from tests.support.plant import write_sqlite, write_tree


@dataclass(frozen=True)
class Outcome:
    """One prompt: what it came to, and the requests that it caused (titles apart)."""

    result: PromptResult
    requests: list[Request]

    @property
    def accepted(self) -> bool:
        """Whether the provider was asked and refused nothing, and the client recorded no error."""
        asked = bool(self.requests) and all(request.refused is None for request in self.requests)
        return asked and self.result.info is not None and self.result.error is None


@dataclass(frozen=True)
class Harness:
    """A running client and the provider that it talks to."""

    client: Client
    provider: Provider

    @property
    def model(self) -> dict[str, str]:
        """What to ask, as a prompt names it: a provider that binds thinking is asked with a model that does."""
        return dict(BINDS if self.provider.strict.bound else MODEL)

    def plant(self, planted: Planted) -> str:
        """Write a session into the store of the running client, as one with the model to ask; returns its id."""
        planted.rename(MODEL, self.model)
        if self.client.database.exists():
            write_sqlite(planted, self.client.database, directory=str(self.client.directory))
        else:
            write_tree(planted, self.client.storage, directory=str(self.client.directory))
        return planted.id

    def prompt(self, session: str, text: str = "continue", thinking: bool = False, **fields: Any) -> Outcome:
        """Prompt a session and collect the requests of this turn. One prompt at a time."""
        before = len(self.provider.requests)
        result = self.client.prompt(session, text, thinking, **fields)
        caused = self.provider.requests[before:]
        return Outcome(result, [request for request in caused if not request.is_title])

    def copy_store(self, session: str, target: Path) -> Path:
        """A copy of the store with this session: a JSON tree of it alone, or the whole database. Returns its path."""
        if self.client.database.exists():
            target.mkdir(parents=True, exist_ok=True)
            copied = target / "opencode.db"
            with (
                contextlib.closing(sqlite3.connect(self.client.database)) as source,
                contextlib.closing(sqlite3.connect(copied)) as copy,
            ):
                source.backup(copy)
            return copied
        storage = self.client.storage
        wanted = [*storage.glob(f"session/*/{session}.json"), storage / "message" / session]
        wanted += [storage / "part" / file.stem for file in (storage / "message" / session).glob("*.json")]
        for path in wanted:
            place = target / path.relative_to(storage)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, place)
            elif path.exists():
                shutil.copy2(path, place)
        return target


@contextlib.contextmanager
def running(
    root: Path,
    version: str = DEFAULT_VERSION,
    *,
    config: dict[str, Any] | None = None,
    client: type[Client] = Client,
    context: int = 200_000,
    **temper: Any,
) -> Iterator[Harness]:
    """A client of this version under `root` and a provider of this temper, until the end of the block.

    `context`: the tokens that the client's settings give the model.

    Raises `UnavailableError` where the client cannot be had.
    """
    binary = ensure(version)
    fields: dict[str, Any] = {"config": config, "context": context}
    fields |= {"model": BINDS["modelID"]} if temper.get("bound") else {}
    with Provider(**temper) as provider, client(binary, root, provider.url, **fields) as started:
        # The database, and the project in it, are made at the first call for a folder.
        started.call("GET", "/session")
        yield Harness(started, provider)


def settle(harness: Harness, session: str, quiet: float = 0.15) -> None:
    """Wait until the client has done with a turn: idle, and past the writes that follow an error."""
    harness.client.wait_idle(session)
    time.sleep(quiet)
