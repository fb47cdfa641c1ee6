"""What reads, writes and sends the sessions of a client: one folder a client, behind the ports of `store` and `client`.

Imports `core`, `disk` and `settings`. `find` is the one list of clients; nobody outside names one, and no client
imports another.
"""

from __future__ import annotations

from recoveryd.clients.client import Asked, Client, Prompt, Rest, Server, ShellSettings, way_back
from recoveryd.clients.find import Clients, Config, Whose, find_stores, read_error, whereabouts
from recoveryd.clients.plugin import Caller, Plugin, seal
from recoveryd.clients.quiet import SETTLE_S, Quiet, wait_until_quiet
from recoveryd.clients.session_lookup import is_empty, look_up, not_found, passed_over, stores_having
from recoveryd.clients.shortening import CanShorten, Shortening
from recoveryd.clients.store import (
    About,
    Content,
    Generation,
    SessionStatus,
    Stamp,
    Store,
    all_written,
    is_abandoned,
    is_store_of,
    is_there,
    may_be_there,
    stored_images,
    untouched,
)
from recoveryd.clients.whose_subagent import is_of_subagent, lineage, root_session, root_title

__all__ = [
    "SETTLE_S",
    "About",
    "Asked",
    "Caller",
    "CanShorten",
    "Client",
    "Clients",
    "Config",
    "Content",
    "Generation",
    "Plugin",
    "Prompt",
    "Quiet",
    "Rest",
    "Server",
    "SessionStatus",
    "ShellSettings",
    "Shortening",
    "Stamp",
    "Store",
    "Whose",
    "all_written",
    "find_stores",
    "is_abandoned",
    "is_empty",
    "is_of_subagent",
    "is_store_of",
    "is_there",
    "lineage",
    "look_up",
    "may_be_there",
    "not_found",
    "passed_over",
    "read_error",
    "root_session",
    "root_title",
    "seal",
    "stored_images",
    "stores_having",
    "untouched",
    "wait_until_quiet",
    "way_back",
    "whereabouts",
]
