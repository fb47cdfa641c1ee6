"""In which form the client that uses a store sends its sessions."""

from __future__ import annotations

from recoveryd.client import Client
from recoveryd.sent import NEW, OLD, Form
from recoveryd.stores.base import Store

TESTED = ((1, 1, 53), (1, 2, 1), (1, 18, 33))  # the clients that the tests run
_NEW_SINCE = (1, 14)  # by the source; 1.2.1 and 1.18.33 were run


def forms_of(store: Store, client: Client, session: str) -> tuple[Form, ...]:
    """What the schema of the store tells, and what the client that has the session says; both, where they differ.

    A session's own version does not count: it is that of the client which made it.
    """
    forms = [Form.named(name) for name in store.forms()]
    version = None if store.one_form else client.version(session, store.about(session).directory)
    if version is not None:
        forms.append(NEW if version >= _NEW_SINCE else OLD)
    return tuple(dict.fromkeys(forms))
