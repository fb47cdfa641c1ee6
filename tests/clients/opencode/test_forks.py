"""Clients made from OpenCode: found where they keep their database, under their own names."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from recoveryd.clients import Clients, Config, client_name, client_title, find_stores
from recoveryd.clients.opencode.settings import NamedStore, OpencodeSettings
from recoveryd.core import ConfigError, Kind, Outcome
from recoveryd.doctor.config_references import problems
from recoveryd.ledger import Ended
from recoveryd.settings import load, load_sound, show
from recoveryd.tell import metrics
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


def test_a_fork_that_is_configured_has_its_own_name_everywhere(tmp_path: Path) -> None:
    base = Base(tmp_path / "crush" / "any.name", NEW)
    file = tmp_path / "config.toml"
    file.write_text(f'[[opencode.stores]]\npath = "{base.path}"\nname = "My Fork"\n')
    config = load(Config, file, {})
    (store,) = [s for s in find_stores(config, {"HOME": str(tmp_path)}) if s.id == str(base.path)]
    assert (store.client, store.live()) == ("opencode/My Fork", None)
    assert client_title(store.id, config) == Clients(config).of(store).title == "My Fork"
    assert (client_name(store.id, config), client_name(store.id)) == (store.client, "opencode")
    assert problems(config) == []
    file.write_text(show(config))
    assert load(Config, file, {}) == config
    told = metrics(
        [Ended(Kind.THINKING_SIGNATURE_INVALID, Outcome.HEALED, 1.0, 0.1, store.id)],
        [],
        partial(client_title, config=config),
    )
    assert 'client="My Fork"' in told


def test_a_database_of_other_tables_is_no_fork_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE notes (id TEXT)")
    config = Config(opencode=OpencodeSettings(stores=(NamedStore(path=path, name="Notes"),)))
    (store,) = [s for s in find_stores(config, {"HOME": str(tmp_path)}) if s.id == str(path.resolve())]
    assert store.live() is not None
    (problem,) = problems(config)
    assert problem.key == "opencode.stores" and "Notes" in problem.next
    gone = Config(opencode=OpencodeSettings(stores=(NamedStore(path=tmp_path / "none.db", name="None"),)))
    assert "is not there" in problems(gone)[0].says


@pytest.mark.parametrize("entry", ['path = "x"\nname = "a"', 'path = "/x"\nname = " "', 'path = "/x"', 'name = "a"'])
def test_an_entry_that_is_not_sound_is_told_by_its_key(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[[opencode.stores]]\n{entry}\n")
    with pytest.raises(ConfigError, match=r"`opencode\.stores` holds"):
        load(Config, file, {})
    assert load_sound(Config, file, {})[0] == Config()
