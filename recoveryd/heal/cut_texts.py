"""Write the files in which the model finds what a repair for length cut, and remove them with the repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from recoveryd.clients import CanShorten, Clients, Config, Store, stored_images
from recoveryd.core import Change, DiskError, StoreError
from recoveryd.disk import private_files


@contextmanager
def write_cut_texts(store: Store, changes: Sequence[Change], wholes: Mapping[Path, str]) -> Iterator[None]:
    """Write the texts that were cut into files for the model; the client deletes them after some days. They go at once
    where they, or `changes` within, could not be written. DiskError.
    """
    try:
        for path, text in wholes.items():
            _write(path, text)
        yield
    except StoreError:
        with suppress(StoreError):
            if wholes and "after" not in stored_images(store, [c for c in changes if c.before != c.after]):
                remove_cut_texts(store, changes)
        raise


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        private_files.write(path, text.encode("utf-8", "replace"), lasting=False)
    except OSError as error:
        raise DiskError(f"{path} can't be written: {error.strerror or error}.") from error


def remove_cut_texts(store: Store, changes: Sequence[Change], but: Sequence[Change] = ()) -> None:
    """Remove the files that were written for `changes`, where nobody changed them since, but for those of `but`."""
    client = Clients(Config()).of(store)
    if not isinstance(client, CanShorten) or not changes:
        return
    kept = client.put_beside(store, but)
    for path, text in client.put_beside(store, changes).items():
        with suppress(OSError):  # it is gone, or not ours any more
            if path not in kept and private_files.holds(path, text.encode("utf-8", "replace")):
                path.unlink()
