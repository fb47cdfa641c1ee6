"""Tell in which form the client that uses a store sends its sessions, by which protocol where the error does not say,
and from which version on it does what.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from recoveryd.clients.opencode.opencode_store import of_opencode
from recoveryd.clients.opencode.protocols import protocol_of, spoken_before
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.wire.form import FORK, NEW, PAGED, Form
from recoveryd.clients.store import Store
from recoveryd.core import Failure, json_of


def versions_tested(client: str) -> tuple[tuple[int, ...], ...]:
    """Read from tested.json which versions of a client the tests ran, oldest first; `tests.canary --write` adds."""
    versions = json.loads(pkgutil.get_data("recoveryd", "tested.json") or b"{}")[client]
    return tuple(tuple(map(int, version.split("."))) for version in versions)


_LARGEST = 1_000_000  # bytes of a file of logins
TESTED = versions_tested("opencode")
_NEW_SINCE = (1, 14)  # by the source; 1.2.1 and 1.18.33 were run
# It takes the newest message by time and not by id: its maintainers say so (issue 42583), and all of TESTED were run.
BY_TIME_SINCE = (1, 18, 15)


def version_text(version: tuple[int, ...]) -> str:
    """Write a version of OpenCode as people do: "1.2.1"."""
    return ".".join(map(str, version))


def forms_of(store: Store, server: OpencodeServer, session: str) -> tuple[Form, ...]:
    """List the forms that the schema of the store and the clients that have the session tell; all, where they differ.

    A session's own version does not count: it is that of the client which made it.
    """
    forms = [Form.named(name) for name in of_opencode(store).forms()]
    forms += [NEW if version >= _NEW_SINCE else PAGED for version in _versions(store, server, session)]
    return tuple(dict.fromkeys(forms))


def protocols_of(store: Store, failure: Failure, forms: Iterable[Form], gateway: str = "") -> tuple[str, ...]:
    """List what the client may speak to the model that was asked: one, but for Claude on GitHub Copilot where no
    address is told. Copilot's list of models has 1.18 ask it in Anthropic's form (1.2 asks by chat completions): then
    what its answers keep tells, or a plan has to be right under both.

    `gateway`: see `protocol_of`.
    """
    spoken = protocol_of(failure, gateway)
    unsaid = spoken == "copilot.chat" and not failure.error.url and not failure.protocol
    # It has no PDF, which Anthropic's SDK has.
    by_chat = any("functionality not supported" in text for text in failure.error.texts)
    if by_chat or not unsaid or "claude" not in f"{failure.model} {failure.called}" or {NEW, FORK}.isdisjoint(forms):
        return (spoken,)
    told = spoken_before(store.load(failure.session), failure)
    return (told,) if told else (spoken, "anthropic.messages")


def as_signed_in(store: Store, failure: Failure, forms: Sequence[Form]) -> Sequence[Form]:
    """Have the forms of 1.18 and of its forks send as they do with a login of ChatGPT, where the client has one: then
    OpenAI gets the system prompt beside the items, and each place in its errors is one less.
    """
    if failure.provider != "openai" or not _by_login(store.home / "auth.json", failure.provider):
        return forms
    return tuple(replace(form, system_is_item=False) if form.name in (NEW.name, FORK.name) else form for form in forms)


def _by_login(path: Path, provider: str) -> bool:
    """Whether the client has a login to a provider, and no key. Nothing else of that file is looked at."""
    from recoveryd.clients.opencode.limits import read_end  # late: only a stuck session needs it

    said = json_of(read_end(path, _LARGEST))
    login = said.get(provider) if isinstance(said, dict) else None
    return isinstance(login, dict) and login.get("type") == "oauth"


def goes_by_ids(store: Store, server: OpencodeServer, session: str) -> bool:
    """Whether the client that has a session takes the greatest id for the newest message.

    A store with a table of events (1.14 and later) is left out: what its events say could not be changed along.
    """
    if "new" in of_opencode(store).forms():
        return False
    versions = _versions(store, server, session)
    return not versions or min(versions) < BY_TIME_SINCE


def _versions(store: Store, server: OpencodeServer, session: str) -> tuple[tuple[int, ...], ...]:
    """List the versions of the clients that have the session; none where it does not matter, or nobody listens."""
    return () if of_opencode(store).one_form else server.versions(store.id, session, store.about(session).directory)
