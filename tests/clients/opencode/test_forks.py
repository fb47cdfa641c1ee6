"""Clients made from OpenCode: found where they keep their database, under their own names."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recoveryd.clients import Clients, Config, Whose, find_stores
from recoveryd.clients.opencode.settings import NamedStore, OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core import ConfigError, Failure, Kind, Outcome, RecordedError, StoreError
from recoveryd.doctor.config_references import reference_problems
from recoveryd.ledger import EndedRecovery
from recoveryd.providers import rules_for
from recoveryd.settings import load, load_sound, settings_as_toml
from recoveryd.tell import metrics
from tests.support.database import NEW, SCHEMAS, Base


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
    assert Whose(Config(), []).title(store.id) == Clients(Config()).of(store).title == title
    elsewhere = Base(tmp_path / "other" / f"{name}.db", NEW)
    (named,) = [s for s in find_stores(Config(), {**env, variable: str(elsewhere.path)}) if s.client == name]
    assert named.id == str(elsewhere.path)


@pytest.mark.parametrize(
    ("client", "name", "variable"), [("opencode", "opencode", "OPENCODE_DB"), ("kilo", "kilo", "KILO_DB")]
)
def test_the_log_and_what_is_cut_are_in_the_data_folder_of_the_client_wherever_its_sessions_are(
    tmp_path: Path, client: str, name: str, variable: str
) -> None:
    env, data = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, tmp_path / "data" / name
    elsewhere = Base(tmp_path / "disk" / "db" / "s.db", NEW)
    data.mkdir(parents=True)

    def home(base: Base, **more: str) -> Path:
        stores = find_stores(Config(), {**env, **more})
        return next(s.home for s in stores if (s.client, s.root) == (client, base.path))

    assert home(elsewhere, **{variable: str(elsewhere.path)}) == data
    (data / f"{name}.db").symlink_to(elsewhere.path)
    assert home(elsewhere) == data
    whole = Base(tmp_path / "whole" / "s.db", NEW)  # in a data folder of its own
    (whole.path.parent / "log").mkdir()
    assert home(whole, **{variable: str(whole.path)}) == whole.path.parent


def test_a_tree_behind_a_symlink_is_dead_once_a_database_is_beside_the_link(tmp_path: Path) -> None:
    env, data = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, tmp_path / "data" / "opencode"
    (tmp_path / "disk" / "message").mkdir(parents=True)
    data.mkdir(parents=True)
    (data / "storage").symlink_to(tmp_path / "disk")
    [tree] = [store for store in find_stores(Config(), env) if store.root == tmp_path / "disk"]
    assert (tree.home, tree.live()) == (data, None)
    base = Base(data / "opencode.db", NEW)
    assert base.path.exists() and "is dead" in str(tree.live())


def test_what_else_a_client_with_a_database_keeps_in_a_folder_of_that_name_is_no_tree(tmp_path: Path) -> None:
    env, data = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, tmp_path / "data" / "opencode"
    (data / "storage" / "session_diff").mkdir(parents=True)
    (data / "storage" / "migration").write_text("2")
    [tree] = [store for store in find_stores(Config(), env) if store.root == data / "storage"]
    assert tree.exists(), "nothing is beside it: one of 1.1 that has no session yet"
    Base(data / "opencode.db", NEW)
    assert not tree.exists()
    (data / "storage" / "message").mkdir()
    assert tree.exists(), "left behind"


def test_mimo_code_keeps_its_data_where_its_home_says(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "MIMOCODE_HOME": str(tmp_path / "mimo")}
    base = Base(tmp_path / "mimo" / "data" / "mimocode.db", NEW)
    other = Base(tmp_path / "mimo" / "data" / "other.db", NEW)
    for more, path in (({}, base.path), ({"MIMOCODE_DB": "other.db"}, other.path)):
        stores = find_stores(Config(), {**env, **more})
        assert [store.id for store in stores if store.client == "mimocode"] == [str(path)]


@pytest.mark.parametrize("name", ["Kilo", "kilo"])
def test_a_database_that_is_configured_under_a_known_name_is_that_clients(tmp_path: Path, name: str) -> None:
    base = Base(tmp_path / "elsewhere" / "k.db", NEW)
    config = Config(opencode=OpencodeSettings(stores=(NamedStore(path=base.path, name=name),)))
    (store,) = [s for s in find_stores(config, {"HOME": str(tmp_path)}) if s.id == str(base.path)]
    whose = Whose(config, [])
    assert (store.client, whose.name(store.id), whose.title(store.id)) == ("kilo", "kilo", "Kilo")
    assert [client.name for client in Clients(config).all()].count("kilo") == 1
    assert Whose(config, []).meant("Kilo") == "kilo"


# A table that a client of OpenCode's kind would have, and is not: (what is done to it, what is said).
ODD_TABLES = {
    "a column is missing": ("ALTER TABLE part DROP COLUMN time_updated", "its table part has other columns"),
    "a column has another name": ("ALTER TABLE part RENAME COLUMN data TO body", "its table part has other columns"),
    "MiMo Code 0.1: a column more": (
        "ALTER TABLE message ADD COLUMN agent_id text NOT NULL DEFAULT 'main'",
        "its table message has other columns",
    ),
    "a table has another name": ("ALTER TABLE message RENAME TO messages", "it has no table message"),
    "a view of that name": (
        "ALTER TABLE message RENAME TO m; CREATE VIEW message AS SELECT * FROM m",
        "it has no table message",
    ),
    "a column of another type": (
        "DROP TABLE part; CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text,"
        " time_created text, time_updated text, data text)",
        "its table part has other columns",
    ),
    "sessions of another kind": (
        "DROP TABLE session; CREATE TABLE session (id text PRIMARY KEY, name text)",
        "its table session has other columns",
    ),
    "another encoding": ("", "its texts are in UTF-16le"),
}


@pytest.mark.parametrize("odd", ODD_TABLES)
def test_other_tables_are_refused_in_words_whatever_the_names(tmp_path: Path, odd: str) -> None:
    """In what was found by its place, and in what was configured: nothing is read, and no byte is written."""
    done, said = ODD_TABLES[odd]
    base = Base(tmp_path / ".local" / "share" / "kilo" / "kilo.db", NEW)
    if not done:
        base.path.unlink()
        done = "PRAGMA encoding = 'UTF-16le';" + SCHEMAS[NEW]
    with closing(sqlite3.connect(base.path)) as database:
        database.executescript(f"PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; {done}")
    before = base.path.read_bytes()
    (store,) = [store for store in find_stores(Config(), {"HOME": str(tmp_path)}) if store.client == "kilo"]
    assert f"{base.path} holds no sessions that recoveryd knows: {said}" in (store.live() or "")
    assert (store.live() or "").endswith("It is left alone.")
    assert store.generation().use == "unknown"
    for use in (lambda: store.load("ses_1"), lambda: list(store.session_ids()), lambda: store.look("ses_1")):
        with pytest.raises(StoreError, match="holds no sessions that recoveryd knows"):
            use()
    with pytest.raises(StoreError, match="holds no sessions that recoveryd knows"):
        store.apply([])
    assert base.path.read_bytes() == before
    assert [path.name for path in base.path.parent.iterdir()] == ["kilo.db"]


@pytest.mark.parametrize(
    "more",
    [
        "ALTER TABLE session ADD COLUMN workspace_id text",
        "CREATE TABLE messages (id text, session_id text); CREATE TABLE parts (id text)",
        "CREATE VIEW message_view AS SELECT * FROM message",
        "CREATE INDEX of_mine ON part (time_created)",
    ],
)
def test_what_else_is_in_the_database_does_not_matter(tmp_path: Path, more: str) -> None:
    base = Base(tmp_path / ".local" / "share" / "kilo" / "kilo.db", NEW)
    base.small()
    with closing(sqlite3.connect(base.path)) as database:
        database.executescript(more)
    (store,) = [store for store in find_stores(Config(), {"HOME": str(tmp_path)}) if store.client == "kilo"]
    assert (store.live(), len(store.load("ses_1").messages)) == (None, 2)


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
    whose = Whose(config, [])
    assert whose.title(store.id) == Clients(config).of(store).title == "My Fork"
    assert (whose.name(store.id), Whose(Config(), []).name(store.id)) == (store.client, "opencode")
    assert reference_problems(config) == []
    file.write_text(settings_as_toml(config))
    assert load(Config, file, {}) == config
    told = metrics(
        [EndedRecovery(Kind.THINKING_SIGNATURE_INVALID, Outcome.HEALED, 1.0, 0.1, store.id)],
        {},
        whose.title,
    )
    assert 'client="My Fork"' in told


def test_a_database_of_other_tables_is_no_fork_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE notes (id TEXT)")
    config = Config(opencode=OpencodeSettings(stores=(NamedStore(path=path, name="Notes"),)))
    (store,) = [s for s in find_stores(config, {"HOME": str(tmp_path)}) if s.id == str(path.resolve())]
    assert store.live() is not None
    (problem,) = reference_problems(config)
    assert problem.key == "opencode.stores" and "Notes" in problem.next
    gone = Config(opencode=OpencodeSettings(stores=(NamedStore(path=tmp_path / "none.db", name="None"),)))
    assert "is not there" in reference_problems(gone)[0].says


def test_entries_that_lead_to_no_sessions_stop_nothing_and_one_database_is_one_store(tmp_path: Path) -> None:
    """A path that is not there, a folder, a pipe, a text; then a database by its name, a link and its other name."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("no database")
    base = Base(tmp_path / "real", NEW)
    (tmp_path / "symlink").symlink_to(base.path)
    (tmp_path / "hardlink").hardlink_to(base.path)
    bad, good = ("none", "folder", "pipe", "text"), ("real", "symlink", "hardlink", "real")
    entries = tuple(NamedStore(path=tmp_path / name, name=name) for name in (*bad, *good))
    config = Config(opencode=OpencodeSettings(stores=entries))
    before = sorted(path.name for path in tmp_path.iterdir())
    found = [store for store in find_stores(config, {"HOME": str(tmp_path)}) if store.client.startswith("opencode/")]
    assert sorted(Path(store.id).name for store in found) == sorted((*bad, "real"))
    living = []
    for store in found:
        try:
            living += [store.client] if store.exists() and store.live() is None else []
        except StoreError:
            assert Path(store.id).name in bad
    assert living == ["opencode/real"]
    told = [(Path(problem.says.split()[0]).name, problem.next) for problem in reference_problems(config)]
    assert told[:3] == [
        ("none", "Is its disk mounted? `run` waits for it."),
        ("folder", "A folder belongs in [opencode] data_dirs."),
        ("pipe", "Name the database itself."),
    ]
    assert len(told) == len(bad) and sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_fork_that_is_called_as_another_client_hides_that_from_nobody(tmp_path: Path) -> None:
    config = Config(opencode=OpencodeSettings(stores=(NamedStore(path=tmp_path / "x.db", name="Codex"),)))
    whose = Whose(config, [])
    assert [whose.meant(text) for text in ("codex", "Codex", "opencode/codex")] == ["codex", "codex", "opencode/Codex"]


@pytest.mark.parametrize("entry", ['path = "x"\nname = "a"', 'path = "/x"\nname = " "', 'path = "/x"', 'name = "a"'])
def test_an_entry_that_is_not_sound_is_told_by_its_key(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[[opencode.stores]]\n{entry}\n")
    with pytest.raises(ConfigError, match=r"`opencode\.stores` holds"):
        load(Config, file, {})
    assert load_sound(Config, file, {})[0] == Config()


@pytest.mark.parametrize(
    ("client", "protocol", "path", "spoken"),
    [
        ("kilo", "", "/api/openrouter/chat/completions", "openrouter.chat"),
        ("kilo", "", "/api/openrouter/messages", "anthropic.messages"),
        ("kilo", "", "/api/openrouter/responses", ""),
        ("kilo", "", "/api/gateway/chat/completions", ""),
        ("kilo", "openai.chat", "/api/openrouter/chat/completions", "openai.chat"),
        ("opencode", "", "/api/openrouter/chat/completions", ""),
        ("mimocode", "", "/api/openrouter/chat/completions", ""),
    ],
)
def test_kilo_asks_its_own_gateway_as_the_address_tells(
    tmp_path: Path, client: str, protocol: str, path: str, spoken: str
) -> None:
    """Another client asks there by an SDK that nothing tells; what a configuration says of one counts for more."""
    error = RecordedError(url=f"https://api.kilo.ai{path}")
    failed = Failure("", "", "", 0, error, "kilo", "anthropic/claude-sonnet-4.5", protocol)
    store = OpencodeSqlite(Base(tmp_path / "x.db", NEW).path, client=client, title=client)
    wires = Clients(Config()).of(store).wires(store, failed)
    assert {wire.protocol for wire in wires} == {spoken}


@pytest.mark.parametrize(
    ("client", "provider", "spoken"),
    [
        ("kilo", "kilo", {"openrouter.chat", "anthropic.messages"}),
        ("kilo", "mine", {""}),
        ("kilo", "openrouter", {"openrouter.chat"}),
        ("mimocode", "kilo", {""}),
    ],
)
def test_without_an_address_kilos_own_gateway_may_be_asked_in_either_form(
    tmp_path: Path, client: str, provider: str, spoken: set[str]
) -> None:
    """As of a conversation that is too long: then a plan has to be right under both."""
    store = OpencodeSqlite(Base(tmp_path / "x.db", NEW).path, client=client, title=client)
    for model, held in (("anthropic/claude-sonnet-4.5", provider), ("openai/gpt-5", "unknown")):
        failed = Failure("", "", "", 0, RecordedError(), provider, model)
        wires = Clients(Config()).of(store).wires(store, failed)
        assert {wire.protocol for wire in wires} == spoken
        assert rules_for(failed, wires).name == (held if "" not in spoken else "unknown")


def test_how_a_provider_is_asked_the_configuration_of_the_stores_own_client_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, package in (("kilo", "@ai-sdk/openai-compatible"), ("opencode", "@ai-sdk/anthropic")):
        file = tmp_path / "config" / name / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.write_text(f'{{"provider": {{"lab": {{"npm": "{package}"}}}}}}')
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    refused = {"name": "APIError", "data": {"message": "no", "statusCode": 400}}
    model = {"providerID": "lab", "modelID": "kimi-k2-thinking"}
    for name, spoken in (("kilo", "openai.chat"), ("opencode", "anthropic.messages")):
        base = Base(tmp_path / "data" / name / f"{name}.db", NEW)
        base.say("user", 1, model=model)
        base.say("assistant", 2, error=refused, **model)
        (store,) = [one for one in find_stores(Config(), env) if one.root == base.path]
        client, session = Clients(Config()).of(store), store.load("ses_1")
        found, next_one = store.look("ses_1").failure, client.next_failure(session)
        assert found is not None and next_one is not None
        assert (found.protocol, next_one.protocol) == (spoken, spoken)
        advice = client.advice(store, found, Kind.REASONING_MISSING)
        assert ("in kilo.json" in advice) is (name == "kilo")
