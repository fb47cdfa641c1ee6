"""In which form the client that uses a store sends its sessions."""

from __future__ import annotations

from recoveryd.client import Client
from recoveryd.sent import NEW, OLD, Form
from recoveryd.stores.base import Store

_NEW_SINCE = (1, 14)  # by the source; 1.2.1 and 1.18.33 were run


def forms_of(store: Store, client: Client) -> tuple[Form, ...]:
    """What the schema of the store tells, and what the running client says of itself; both, where they differ.

    A session's own version does not count: it is that of the client which made it.
    """
    forms = [Form.named(name) for name in store.forms()]
    version = None if store.one_form else client.version()
    if version is not None:
        forms.append(NEW if version >= _NEW_SINCE else OLD)
    return tuple(dict.fromkeys(forms))


_BY_TIME_SINCE = (1, 18, 15)  # its maintainers say so (issue 42583); 1.1.53, 1.2.1 and 1.18.33 were run


def goes_by_ids(store: Store, client: Client) -> bool:
    """Whether the client that uses a store takes the greatest id for the newest message, as all did before 1.18.15.

    A store with a table of events (1.14 and later) is left out: what its events say could not be changed along.
    """
    if "old" not in store.forms():
        return False
    version = None if store.one_form else client.version()
    return version is None or version < _BY_TIME_SINCE
