"""The table of wires, which names them so that each is imported only where it is needed."""

from __future__ import annotations

from recoveryd.clients.opencode.wire import _WIRES, wires_of
from recoveryd.clients.opencode.wire.form import NEW
from recoveryd.core import Failure


def test_each_wire_is_found_by_what_it_speaks() -> None:
    failure = Failure("st", "ses", "msg", 0, provider="p", model="m")
    for protocol, (_, name) in _WIRES.items():
        [wire] = wires_of(failure, protocol, [NEW])
        assert (type(wire).__name__, wire.protocol) == (name, protocol)
    [unknown] = wires_of(failure, "none.of.these", [NEW])
    assert unknown.protocol not in _WIRES
