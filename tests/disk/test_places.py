"""Whether a disk has room, as the system tells it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from recoveryd.disk import is_full


@pytest.mark.parametrize(
    ("sizes", "user", "full"),
    [
        ({"f_blocks": 9, "f_bavail": 0, "f_bfree": 0}, 1000, True),
        ({"f_blocks": 9, "f_bavail": 0, "f_bfree": 0}, 0, True),
        ({"f_blocks": 99, "f_bavail": 0, "f_bfree": 50}, 1000, True),  # what is free is kept for root
        ({"f_blocks": 99, "f_bavail": 0, "f_bfree": 50}, 0, False),
        ({"f_blocks": 99, "f_bavail": 50, "f_bfree": 50}, 1000, False),
        ({"f_blocks": 0, "f_bavail": 0, "f_bfree": 0}, 1000, False),  # ramfs tells no size
    ],
)
def test_a_disk_is_full_for_whom_it_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], user: int, full: bool
) -> None:
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(**sizes, f_frsize=4096))
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert is_full(tmp_path) is full
