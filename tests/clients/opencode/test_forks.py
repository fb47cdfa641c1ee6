"""Clients made from OpenCode: found where they keep their database, under their own names."""

from __future__ import annotations

from pathlib import Path

import pytest

from recoveryd.clients import Clients, Config, client_title, find_stores
from tests.support.database import NEW, Base


@pytest.mark.parametrize(
    ("name", "title", "variable"), [("kilo", "Kilo", "KILO_DB"), ("mimocode", "MiMo Code", "MIMOCODE_DB")]
)
def test_a_fork_is_found_by_its_place_and_named_everywhere(
    tmp_path: Path, name: str, title: str, variable: str
) -> None:
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert name not in [store.client for store in find_stores(Config(), env)]
    base = Base(tmp_path / "data" / name / f"{name}.db", NEW)
    (store,) = [store for store in find_stores(Config(), env) if store.client == name]
    assert (store.id, store.live()) == (str(base.path), None)
    assert client_title(store.id) == Clients(Config()).of(store).title == title
    elsewhere = Base(tmp_path / "other" / f"{name}.db", NEW)
    (named,) = [s for s in find_stores(Config(), {**env, variable: str(elsewhere.path)}) if s.client == name]
    assert named.id == str(elsewhere.path)


def test_what_has_other_tables_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".local" / "share" / "kilo" / "kilo.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all")
    (store,) = [store for store in find_stores(Config(), {"HOME": str(tmp_path)}) if store.client == "kilo"]
    assert store.live() is not None
