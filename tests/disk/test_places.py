"""Whether a disk has room, as the system tells it, and an error of SQLite on one that has none."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from recoveryd.disk import error_code, is_full

NONE_FREE = {"f_blocks": 99, "f_bavail": 0, "f_bfree": 0}


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


def test_what_is_free_for_root_alone_counts_if_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ext4 keeps some of it from root, too."""
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_blocks=99, f_bavail=0, f_bfree=50, f_frsize=4096))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert is_full(tmp_path) is False
    assert list(tmp_path.iterdir()) == []
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)
        assert is_full(tmp_path) is True


def test_a_quota_that_is_used_up_is_seen_by_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert is_full(tmp_path) is False, "the disk itself has room"
    assert is_full(tmp_path, by_write=True) is True
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert error_code(error, tmp_path / "ledger.db") == sqlite3.SQLITE_FULL


@pytest.mark.parametrize(
    ("sizes", "code"), [(NONE_FREE, sqlite3.SQLITE_FULL), ({**NONE_FREE, "f_bavail": 50}, sqlite3.SQLITE_IOERR)]
)
def test_an_error_of_the_disk_where_it_is_full_is_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], code: int
) -> None:
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(**sizes, f_frsize=4096))
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert error_code(error, tmp_path / "ledger.db") == code
    assert error_code(OSError(), tmp_path / "ledger.db") == 0
