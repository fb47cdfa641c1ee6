"""Make OpenCode's checks of `doctor`: the version that listens, files that are no records, ids that started again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from recoveryd.clients.connection_owner import Owner
from recoveryd.clients.opencode import generations
from recoveryd.clients.opencode.opencode_store import OpencodeStore
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.server_address import not_asked
from recoveryd.clients.opencode.versions import BY_TIME_SINCE, version_text
from recoveryd.clients.opencode.wrapped_ids import before_wrap
from recoveryd.clients.store import Generation, Store
from recoveryd.core import Check, RecoverydError, first_of, ok, warn

_LOOK_S = 1.5  # for what has to go through all sessions


def check_versions(
    server: OpencodeServer, server_url: str, title: str, tested: Sequence[tuple[int, ...]]
) -> Iterator[Check]:
    """Check the versions of the OpenCodes that listen, against those that were `tested`, oldest first.

    `server_url`: where the configuration says one does; `title`: the name of the client.
    """
    versions = server.listening_versions()
    shut_out = server.shut_out()
    if not versions and shut_out:
        yield _shut_out(shut_out, server_url, title)
    elif not versions:
        yield ok(
            "client",
            f"No running {title} answers (a plain TUI needs the plugin); its store tells the form of its requests.",
        )
    for version in versions:
        yield _listens(version, title, tested)


def _listens(version: tuple[int, ...], title: str, tested: Sequence[tuple[int, ...]]) -> Check:
    named = f"{title} {version_text(version)} answers"
    if version in tested:
        return ok("client", f"{named}; this version was tested.")
    if tested[0] < version < tested[-1]:
        return ok(
            "client", f"{named}. It lies between versions that were tested ({', '.join(map(version_text, tested))})."
        )
    return _untested(version, title, tested)


def _untested(version: tuple[int, ...], title: str, tested: Sequence[tuple[int, ...]]) -> Check:
    """Report a version that was not tested: no warning where only its last number is greater, as it is each week."""
    newer = version > tested[-1]
    nearest = tested[-1 if newer else 0]
    known = f"{', '.join(map(version_text, tested))} {'was' if len(tested) == 1 else 'were'}"
    says = f"{title} {version_text(version)} answers, which was not tested with this recoveryd ({known})."
    says += f" Repairs are planned as for {version_text(nearest)}, and each is read back."
    if newer and version[:2] == nearest[:2]:
        return ok("client", says)
    better = "A newer recoveryd may know it." if newer else f"A newer {title} is known."
    return warn("client", says, f"{better} Look at what `recoveryd scan --dry-run` would do first.")


def _shut_out(shut_out: dict[str, Owner], server_url: str, title: str) -> Check:
    """Report another user's client: fine at the usual address, a warning at the address that is configured."""
    url, whose = next(iter(shut_out.items()))
    says = f"{not_asked(url, whose)}."
    if whose is Owner.UNKNOWN:
        return warn("client", says, "Without it there are no notices in the client and no `auto_resume`.")
    if server_url:
        return warn("client", says, "Is that address still your client's? It is server_url in [opencode].")
    return ok("client", f"No {title} of yours answers (a plain TUI needs the plugin). {says}")


def check_strangers(stores: Sequence[tuple[OpencodeStore, Generation]]) -> Iterator[Check]:
    """Check OpenCode's stores for files that are no records where the client takes each file for one."""
    deadline = time.monotonic() + _LOOK_S
    for one, generation in stores:
        if generation is not generations.JSON:
            continue  # rows: nothing else can lie between them
        found, looked, complete = _strange_files(one, deadline)
        sessions = "1 session was" if looked == 1 else f"{looked:,} sessions were"
        some = "" if complete else f" ({sessions} looked at; there are more)"
        if found:
            these = f"{first_of(found)}{some}"
            yield warn(
                "strangers",
                f"OpenCode takes every file in its message and part folders for a record, these too: {these}.",
                f"Move them out of {one.root}: with them the session can't be sent, or is sent with a part twice.",
                one.id,
            )
        else:
            yield ok("strangers", f"No foreign file lies in {one.root}{some}.", about=one.id)


def _strange_files(one: OpencodeStore, deadline: float) -> tuple[list[str], int, bool]:
    found: list[str] = []
    looked = 0
    for session in one.session_ids():
        if time.monotonic() > deadline:
            return found, looked, False
        try:
            found += one.strangers(session)
        except RecoverydError:  # gone meanwhile, or not readable: `scan` says so
            continue
        looked += 1
    return found, looked, True


def check_id_wrap(
    server: OpencodeServer, stores: Sequence[tuple[Store, Generation]], now_ms: int, title: str
) -> Iterator[Check]:
    """Check OpenCode's stores for sessions with messages from before the ids started again, under a client that goes by
    ids.

    `stores`: those that can be read. Each is asked for by itself: its client may be another one.
    """
    coped, all_seen, minded = 0, True, False
    for one, generation in stores:
        count, complete = before_wrap(one, generation, now_ms, _LOOK_S)
        versions = server.listening_versions(one.id) if count else ()
        mended = generation is generations.SQLITE_EVENTS and all(version >= BY_TIME_SINCE for version in versions)
        if count and not mended:
            minded = True
            yield _minded(one, generation, count, complete=complete)
        else:
            coped, all_seen = coped + count, all_seen and complete
    if minded or not stores:
        return
    some = "" if all_seen else " (there was no time to look at all of them)"
    if coped:
        copes = f"OpenCode {version_text(BY_TIME_SINCE)} and newer cope with them."
        are = f"session of {title} is" if coped == 1 else f"sessions of {title} are"
        yield ok("id_wrap", f"{coped} {are} from before 2026-08-14{some}; {copes}")
    else:
        says = f"No session of {title} that could be read has messages from before 2026-08-14"
        yield ok("id_wrap", f"{says}, when OpenCode's ids started again{some}.")


def _minded(store: Store, generation: Generation, count: int, *, complete: bool) -> Check:
    newer = f"Update OpenCode to {version_text(BY_TIME_SINCE)} or newer, or go on in a new session."
    heals = "To heal them: recoveryd scan --repair --kind wrapped_ids. "
    heals += f"OpenCode {version_text(BY_TIME_SINCE)} and newer do not mind."
    return warn(
        "id_wrap",
        f"{store.root}: {'' if complete else 'at least '}{count} session{'' if count == 1 else 's'} with messages "
        "from before 2026-08-14, when OpenCode's ids started again near zero. Older clients store a new prompt "
        "in them and never call the model.",
        newer if generation is generations.SQLITE_EVENTS else heals,
        store.id,
    )
