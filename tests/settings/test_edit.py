"""`config init` and `config set`: what they write is read as it was meant, and what stood there stays."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest

from recoveryd.clients import Config
from recoveryd.core import Kind
from recoveryd.settings import load, paths
from tests.conftest import Run
from tests.support.trees import Tree


@pytest.fixture(autouse=True)
def _home(tree: Tree) -> None:
    """One of the test's own."""


def test_the_command_that_changes_a_key_is_named_as_it_has_to_be_typed(run: Run, tmp_path: Path) -> None:
    """What stands behind `--config FILE` is no key: argparse refuses it."""
    named = ("--config", str(tmp_path / "my own.toml"))
    assert run("config", "init", *named)[0] == 0
    _, _, err = run("config", "init", *named)
    _, *words = shlex.split(err[err.index("`recoveryd") + 1 : err.rindex("`")])
    typed = [{"KEY": "max_retries", "VALUE": "2"}.get(word, word) for word in words]
    assert run(*typed)[0] == 0
    assert run("config", "show", *named)[1].count("max_retries = 2") == 1


def test_init_has_every_key_and_changes_nothing(run: Run) -> None:
    file = paths.config_file()
    assert run("config", "init")[0] == 0
    assert load(Config, file, {}) == Config() and stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    shown = run("config", "show")[1]
    keys = [line.partition(" =")[0] for line in shown.splitlines() if " = " in line]
    assert [key for key in keys if f"# {key} =" not in text] == []
    code, _, err = run("config", "init")
    assert code == 4 and "config set" in err and file.read_text() == text
    whole = "".join(line.removeprefix("# ") for line in text.splitlines(keepends=True)[2:])
    file.write_text(whole)
    assert run("config", "check")[0] == 0, "also with all of its comments taken away"


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("max_retries", "2", 2),
        ("notify.desktop", "off", False),
        ("lookback_hours", "1.5", 1.5),
        ("resume_text", "go on", "go on"),
        ("ignore", "ses_1, /a b", ["ses_1", "/a b"]),
        ("hooks.on_complete", '["/bin/x", "a,b"]', ["/bin/x", "a,b"]),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\nmax_retries = 5 # enough\n\n[notify]\ntui = false # no\n",
        "\ufeffnotify = { desktop = true }\r\n",
        "# mine\r\nmax_retries = 5\r\n\r\n[notify]\r\ntui = false # no\r\n",
    ],
)
def test_set_writes_one_key_and_keeps_the_rest(run: Run, text: str, key: str, value: str, wanted: object) -> None:
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    before = load(Config, file, {}).model_dump(mode="json")
    code, out, err = run("config", "set", key, value, "--json")
    assert (code, err, json.loads(out)["value"]) == (0, "", wanted)
    after = load(Config, file, {}).model_dump(mode="json")
    section, _, last = key.rpartition(".")
    (before[section] if section else before)[last] = wanted
    assert after == before
    made = file.read_bytes().decode()
    assert "\n" not in made.replace("\r\n", "") or "\r\n" not in text, "lines end as they did"
    assert all(words in made for words in ("# mine", "# no") if words in text) and made.startswith(
        "\ufeff"
    ) == text.startswith("\ufeff")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("max_retrys", "2"), 2, "max_retries"),
        (("notify", "x"), 2, "no setting"),
        (
            ("max_retries", "0"),
            2,
            "What was typed: `max_retries` is 0 (a whole number); expected a whole number, 1 or more.",
        ),
        (("lookback_hours", "nan"), 2, "What was typed: `lookback_hours` is nan"),
        (("resume_text", "caf\udce9"), 2, "What was typed for resume_text is not UTF-8."),
        (("max_retries",), 2, "missing"),
        ((), 2, "missing"),
    ],
)
def test_what_can_not_be_set_changes_nothing(run: Run, words: tuple[str, ...], code: int, says: str) -> None:
    file = paths.config_file()
    ended, _, err = run("config", "set", *words)
    assert ended == code and says in err
    assert not file.exists()
    file.parent.mkdir(parents=True)
    file.write_text("max_retries = 5\n")
    assert run("config", "set", *words)[::2] == (code, err), "of a sound file that says something else, too"
    assert file.read_text() == "max_retries = 5\n"


def test_set_says_what_is_wrong_in_the_file_before_it(run: Run) -> None:
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_text("max_retries = 0\n")
    ended, _, err = run("config", "set", "max_retries", "0")
    assert ended == 78 and f"{file}: `max_retries` is 0" in err and file.read_text() == "max_retries = 0\n"


def test_set_mends_the_value_that_is_wrong_in_the_file(run: Run) -> None:
    """And no other: that is told."""
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nmax_retries = 0\n[notify]\ntui = 3\n")
    ended, _, err = run("config", "set", "max_retries", "2")
    assert ended == 78 and "`notify.tui` is 3" in err
    file.write_text("# mine\nmax_retries = 0\n")
    assert run("config", "set", "max_retries", "2")[0] == 0 and file.read_text() == "# mine\nmax_retries = 2\n"


@pytest.mark.parametrize("text", ["notify = 3\n", "[notify\n"])
def test_set_leaves_a_file_that_it_can_not_put_a_value_into(run: Run, text: str) -> None:
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_text(text)
    ended, _, err = run("config", "set", "notify.tui", "true")
    assert ended == 78 and str(file) in err and file.read_text() == text


def test_set_tells_of_a_variable_that_holds_in_its_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "holds in its place" not in run("config", "set", "notify.desktop", "false")[1]
    monkeypatch.setenv("RECOVERYD_NOTIFY_DESKTOP", "true")
    _, out, _ = run("config", "set", "notify.desktop", "false")
    assert "Where RECOVERYD_NOTIFY_DESKTOP is set, as it is here, that holds in its place." in " ".join(out.split())


def test_set_tells_of_a_configuration_that_is_no_text(run: Run) -> None:
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_bytes(b"# caf\xe9\n")
    ended, _, err = run("config", "set", "max_retries", "2")
    assert ended == 78 and "not UTF-8" in err and file.read_bytes() == b"# caf\xe9\n"


def test_where_more_than_what_is_typed_is_not_sound_the_way_on_is_told(run: Run) -> None:
    """Of two such values neither could be set, each for the other."""
    file = paths.config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('dry_run = "x"\nlookback_hours = "x"\n')
    before = file.read_bytes()
    for key, value in (("dry_run", "false"), ("lookback_hours", "5")):
        code, _, err = run("config", "set", key, value)
        assert code == 78 and "Nothing was written" in err and "Mend the rest of the file by hand" in err
    assert file.read_bytes() == before


def test_set_of_kinds_says_which_are_repaired_then_and_how_to_have_all_again(run: Run) -> None:
    """The list takes the place of all: whoever adds one by it would have turned all others off without a word."""
    usual = list(load(Config, None, {}).kinds)

    def said(value: str) -> str:
        code, out, err = run("config", "set", "kinds", value)
        assert (code, err) == (0, "")
        return " ".join(out.split())

    only = said("interrupted_turn")
    assert "Repairs only: interrupted_turn; off: " in only and "empty_content" in only.split("off: ")[1].split(".")[0]
    assert "assistant_prefill" not in only, "which no repair is for"
    assert "`recoveryd config set kinds default` has all of them repaired again." in only
    said("+empty_content,role_order")
    named = [Kind.INTERRUPTED_TURN, Kind.EMPTY_CONTENT, Kind.ROLE_ORDER]
    assert list(load(Config, paths.config_file(), {}).kinds) == named
    default = said("default")
    assert "kinds is no longer set in " in default and "All kinds are repaired that are by default." in default
    assert (
        load(Config, paths.config_file(), {}).kinds == tuple(usual) and "kinds" not in paths.config_file().read_text()
    )
    assert "by default, and interrupted_turn." in said("+interrupted_turn")
    assert list(load(Config, paths.config_file(), {}).kinds) == [*usual, Kind.INTERRUPTED_TURN]
    assert "Repairs only: none; off: " in said("")
    code, _, err = run("config", "set", "kinds", "+interupted_turn")
    assert code == 2 and "the nearest one is `interrupted_turn`" in err


@pytest.mark.parametrize(
    "text", ["", "[metrics]\n# mine\ntextfile = '/x/a.prom' # here\n", "metrics.textfile = '/x/a.prom'\n"]
)
def test_set_to_nothing_takes_a_key_out(run: Run, text: str) -> None:
    """TOML has no word for it."""
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_text(text)
    code, out, err = run("config", "set", "metrics.textfile", "", "--json")
    assert (code, err, json.loads(out)["value"]) == (0, "", None)
    assert load(Config, file, {}).metrics.textfile is None
    assert ("# mine" in file.read_text()) == ("# mine" in text)
    assert "metrics.textfile is no longer set in " in " ".join(run("config", "set", "metrics.textfile", "")[1].split())
    assert "metrics.textfile is set in " in " ".join(run("config", "set", "metrics.textfile", "/x/b.prom")[1].split())
