"""The settings: their defaults, where they come from, and what is said about a wrong one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import ValidationError

from recoveryd.clients import Config
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.errors import ConfigError
from recoveryd.core.model import Kind
from recoveryd.settings import Hooks, LedgerLimits, Log, Notify
from recoveryd.settings.load import load, load_sound, settings_as_toml
from tests.support.examples import examples

EVERYTHING = """
enabled = false
kinds = ["role_order", "empty_content"]
max_retries = 5
placeholder = "[cut]"
cancelled_text = "stopped"
keep_thinking = false
auto_resume = true
resume_text = "go on"
dry_run = true
lookback_hours = 1.5
interrupted_minutes = 2.5
ignore = ["ses_1", "/home/me/secret"]
[notify]
desktop = false
tui = false
quiet = true
[hooks]
on_abort = ["/bin/true"]
on_complete = ["notify", "--now"]
[opencode]
data_dirs = ["/a", "/b"]
databases = ["/c.db"]
server_url = "http://127.0.0.1:4096/"
password_file = "/pw"
[ledger]
keep_days = 3
keep_mb = 4
[log]
level = "debug"
"""
EXPECTED = Config(
    enabled=False,
    kinds=(Kind.ROLE_ORDER, Kind.EMPTY_CONTENT),
    max_retries=5,
    placeholder="[cut]",
    cancelled_text="stopped",
    keep_thinking=False,
    auto_resume=True,
    resume_text="go on",
    dry_run=True,
    lookback_hours=1.5,
    interrupted_minutes=2.5,
    ignore=("ses_1", "/home/me/secret"),
    notify=Notify(desktop=False, tui=False, quiet=True),
    hooks=Hooks(on_abort=("/bin/true",), on_complete=("notify", "--now")),
    opencode=OpencodeSettings(
        data_dirs=(Path("/a"), Path("/b")),
        databases=(Path("/c.db"),),
        server_url="http://127.0.0.1:4096",
        password_file=Path("/pw"),
    ),
    ledger=LedgerLimits(keep_days=3, keep_mb=4),
    log=Log(level="DEBUG"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def wrong(file: Path, text: str = "", env: dict[str, str] | None = None) -> list[str]:
    """What is said about it, a line a problem."""
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(Config, file, env or {})
    assert caught.value.exit_code == 78
    return caught.value.message.split("\n")


class TestReading:
    def test_no_file_and_a_missing_one_are_the_defaults(self, file: Path) -> None:
        assert load(Config, None, {}) == load(Config, file, {}) == Config()
        assert set(Config().kinds) == set(Kind) - {Kind.INTERRUPTED_TURN}
        assert (Config().max_retries, Config().auto_resume, Config().lookback_hours) == (3, False, 24)

    def test_every_key_is_read(self, file: Path) -> None:
        file.write_text(EVERYTHING)
        assert load(Config, file, {}) == EXPECTED

    def test_every_key_has_a_variable(self, file: Path) -> None:
        env = {
            "RECOVERYD_ENABLED": "no",
            "RECOVERYD_KINDS": "role_order, empty_content",
            "RECOVERYD_MAX_RETRIES": " 5 ",
            "RECOVERYD_PLACEHOLDER": "[cut]",
            "RECOVERYD_CANCELLED_TEXT": "stopped",
            "RECOVERYD_KEEP_THINKING": "0",
            "RECOVERYD_AUTO_RESUME": "TRUE",
            "RECOVERYD_RESUME_TEXT": "go on",
            "RECOVERYD_DRY_RUN": "on",
            "RECOVERYD_LOOKBACK_HOURS": "1.5",
            "RECOVERYD_INTERRUPTED_MINUTES": "2.5",
            "RECOVERYD_IGNORE": '["ses_1", "/home/me/secret"]',
            "RECOVERYD_NOTIFY_DESKTOP": "false",
            "RECOVERYD_NOTIFY_TUI": "off",
            "RECOVERYD_NOTIFY_QUIET": "1",
            "RECOVERYD_HOOKS_ON_ABORT": "/bin/true",
            "RECOVERYD_HOOKS_ON_COMPLETE": '["notify", "--now"]',
            "RECOVERYD_OPENCODE_DATA_DIRS": "/a,/b",
            "RECOVERYD_OPENCODE_DATABASES": "/c.db",
            "RECOVERYD_OPENCODE_SERVER_URL": "http://127.0.0.1:4096",
            "RECOVERYD_OPENCODE_PASSWORD_FILE": "/pw",
            "RECOVERYD_LEDGER_KEEP_DAYS": "3",
            "RECOVERYD_LEDGER_KEEP_MB": "4",
            "RECOVERYD_LOG_LEVEL": "Debug",
            "PATH": "/bin",
        }
        assert load(Config, None, env) == EXPECTED
        file.write_text("max_retries = 9\n[notify]\nquiet = false\n")
        assert load(Config, file, env) == EXPECTED

    def test_an_empty_variable_is_an_empty_list_or_nothing(self, file: Path) -> None:
        file.write_text('ignore = ["a"]\n[opencode]\nserver_url = "http://[::1]:1"\n')
        config = load(Config, file, {"RECOVERYD_IGNORE": "", "RECOVERYD_OPENCODE_SERVER_URL": ""})
        assert config.ignore == ()
        assert config.opencode.server_url is None

    def test_a_byte_order_mark_and_the_home_folder_are_understood(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        file.write_text('ignore = ["~/p", "a~b"]\n[opencode]\ndata_dirs = ["~/d"]\n', "utf-8-sig")
        config = load(Config, file, {})
        assert config.ignore == (f"{tmp_path}/p", "a~b")
        assert config.opencode.data_dirs == (tmp_path / "d",)

    def test_it_is_frozen(self) -> None:
        with pytest.raises(ValidationError):
            Config().max_retries = 5
        with pytest.raises(ValidationError):
            Config().notify.quiet = True

    def test_python_code_is_checked_too(self) -> None:
        assert Config(kinds=["role_order"]).kinds == (Kind.ROLE_ORDER,)  # type: ignore[arg-type]
        for odd in ({"max_retries": 0}, {"nonsense": 1}, {"enabled": "yes"}):
            with pytest.raises(ValidationError):
                Config(**odd)

    @pytest.mark.parametrize("said", [{"kinds": (Kind.ROLE_ORDER,)}, {"ignore": ("ses_1",)}, {"keep_thinking": False}])
    def test_what_refusals_hang_on_has_a_digest(self, said: dict[str, Any]) -> None:
        assert Config(**said).digest == Config(**said).digest != Config().digest == Config(max_retries=9).digest


class TestMistakes:
    def test_what_is_like_no_key_is_named_alone(self, file: Path) -> None:
        assert wrong(file, "nonsense = 1") == [f"{file}: unknown key `nonsense`."]

    @pytest.mark.parametrize(
        ("text", "key", "near"),
        [
            ("max_retrys = 3", "max_retrys", "max_retries"),
            ("[notify]\ndesktp = true", "notify.desktp", "notify.desktop"),
            ("desktop = true", "desktop", "notify.desktop"),
            ("[notfy]\ndesktop = true", "notfy", "notify"),
            ("[ledger]\nmax_retries = 1", "ledger.max_retries", "max_retries"),
        ],
    )
    def test_an_unknown_key_is_named_with_the_nearest(self, file: Path, text: str, key: str, near: str) -> None:
        assert wrong(file, text) == [f"{file}: unknown key `{key}`; the nearest one is `{near}`."]

    def test_a_key_that_is_near_nothing(self, file: Path) -> None:
        assert wrong(file, "xyzzy = 1") == [f"{file}: unknown key `xyzzy`."]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("enabled = 'yes'", '`enabled` is "yes" (a text); expected true or false.'),
            ("enabled = 1", "`enabled` is 1 (a whole number); expected true or false."),
            ("max_retries = 0", "`max_retries` is 0 (a whole number); expected a whole number, 1 or more."),
            ("max_retries = 2.0", "`max_retries` is 2.0 (a number); expected a whole number, 1 or more."),
            ("max_retries = true", "`max_retries` is true (a boolean); expected a whole number, 1 or more."),
            ("placeholder = ' '", '`placeholder` is " " (a text); expected a text that is not blank.'),
            ("lookback_hours = inf", "`lookback_hours` is inf (a number); expected a number of hours, more than 0."),
            ("lookback_hours = 0", "`lookback_hours` is 0 (a whole number); expected a number of hours, more than 0."),
            ("ignore = 'a'", '`ignore` is "a" (a text); expected a list of session ids and project folders.'),
            ("ignore = [1]", "`ignore` holds 1 (a whole number); expected a list of session ids and project folders."),
            ("notify = true", "`notify` is true (a boolean); expected a table, [notify]."),
            ("hooks.on_abort = ['']", '`hooks.on_abort` holds "" (a text); expected a list of texts: the program and'),
            (
                "opencode.data_dirs = ['x']",
                '`opencode.data_dirs` holds "x" (a text); expected a list of absolute paths',
            ),
            ("opencode.password_file = 'pw'", '`opencode.password_file` is "pw" (a text); expected an absolute path'),
            ("ledger.keep_mb = -1", "`ledger.keep_mb` is -1 (a whole number); expected a whole number of megabytes"),
            ("log.level = 'LOUD'", '`log.level` is "LOUD" (a text); expected one of DEBUG, INFO, WARNING, ERROR.'),
            ("dry_run = 1979-05-27", "`dry_run` is datetime.date(1979, 5, 27) (date); expected true or false."),
        ],
    )
    def test_a_wrong_value_is_named_with_what_is_expected(self, file: Path, text: str, said: str) -> None:
        (line,) = wrong(file, text)
        assert line.startswith(f"{file}: {said}")

    @pytest.mark.parametrize(
        "url", ["http://example.com", "http://127.evil.example", "ftp://localhost", "localhost:4096", "http://[", ""]
    )
    def test_a_server_elsewhere_is_refused(self, file: Path, url: str) -> None:
        (line,) = wrong(file, f"opencode.server_url = '{url}'")
        assert "expected an http address on this machine" in line

    def test_an_unknown_kind_is_named_with_the_nearest(self, file: Path) -> None:
        (line,) = wrong(file, "kinds = ['role_order', 'tool_missing']")
        assert '`kinds` holds "tool_missing"' in line
        assert line.endswith("the nearest one is `tool_result_missing`.")

    def test_a_wrong_variable_is_named(self, file: Path) -> None:
        env = {"RECOVERYD_MAX_RETRIES": "many", "RECOVERYD_NOTIFY_QUIET": "perhaps", "RECOVERYD_KINDS": "[1", "X": "y"}
        lines = wrong(file, "", env)
        assert 'The environment: RECOVERYD_MAX_RETRIES is "many" (a text); expected a whole number, 1 or more.' in lines
        assert 'The environment: RECOVERYD_NOTIFY_QUIET is "perhaps" (a text); expected true or false.' in lines
        assert len(lines) == 3

    def test_an_unknown_variable_is_named_with_the_nearest(self, file: Path) -> None:
        (line,) = wrong(file, "", {"RECOVERYD_MAX_RETRYS": "1"})
        assert line == (
            "The environment has RECOVERYD_MAX_RETRYS, which is no setting; the nearest one is `RECOVERYD_MAX_RETRIES`."
        )

    def test_all_that_is_wrong_is_said_at_once(self, file: Path) -> None:
        assert (
            len(wrong(file, "a = 1\nenabled = 2\nnotify = 3", {"RECOVERYD_NOTIFY_QUIET": "1", "RECOVERYD_B": ""})) == 4
        )

    def test_a_syntax_error_has_its_line(self, file: Path) -> None:
        (line,) = wrong(file, "enabled = true\nkinds = [\nx")
        assert line.startswith(f"{file}: ")
        assert "line 3" in line

    def test_what_is_no_text_or_no_file_is_said_in_words(self, file: Path) -> None:
        file.write_bytes(b"enabled = true\n# \xff\n")
        with pytest.raises(ConfigError, match="line 2: this is not UTF-8"):
            load(Config, file, {})
        with pytest.raises(ConfigError, match="can't be read: Is a directory"):
            load(Config, file.parent, {})

    def test_a_home_that_nobody_has_is_named(self, file: Path) -> None:
        assert "~nobody-of-this-name/x" in wrong(file, "ignore = ['~nobody-of-this-name/x']")[0]
        assert "~nobody-of-this-name/x" in wrong(file, "[opencode]\ndata_dirs = ['~nobody-of-this-name/x']")[0]

    def test_a_long_value_is_cut(self, file: Path) -> None:
        (line,) = wrong(file, f"enabled = '{'x' * 1000}'")
        assert len(line) < len(str(file)) + 150

    @examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(name=st.text(st.characters(codec="utf-8"), max_size=20), value=st.text(max_size=20))
    def test_any_variable_is_a_setting_or_a_config_error(self, name: str, value: str) -> None:
        for key in (name.upper(), "KINDS", "HOOKS_ON_ABORT", "LOOKBACK_HOURS", "OPENCODE_DATA_DIRS"):
            try:
                load(Config, None, {f"RECOVERYD_{key}": value})
            except ConfigError as error:
                assert error.message


WORDS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: bool(text.strip()) and text[0] != "~")
PLACES = st.lists(WORDS.filter(lambda t: "\0" not in t).map(lambda text: Path("/" + text)), max_size=3).map(tuple)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    chosen: dict[str, Any] = {
        "enabled": draw(st.booleans()),
        "kinds": tuple(draw(st.lists(st.sampled_from(Kind)))),
        "max_retries": draw(st.integers(1, 2**60)),
        "placeholder": draw(WORDS),
        "lookback_hours": draw(st.floats(min_value=0, exclude_min=True, allow_infinity=False)),
        "ignore": tuple(draw(st.lists(WORDS))),
        "hooks": Hooks(on_complete=tuple(draw(st.lists(WORDS)))),
        "opencode": OpencodeSettings(
            data_dirs=draw(PLACES), server_url=draw(st.sampled_from([None, "http://localhost:1"]))
        ),
    }
    return Config(**chosen)


class TestShow:
    @examples(200)
    @given(configs())
    def test_what_is_shown_is_read_back_as_it_was(self, config: Config) -> None:
        assert Config.model_validate(tomllib.loads(settings_as_toml(config))) == config

    def test_the_default_is_shown_whole_and_unmarked(self) -> None:
        shown = settings_as_toml(Config())
        assert "# default" not in shown
        assert "not the default" not in shown
        data = tomllib.loads(shown)
        assert set(data) == set(Config.model_fields)
        assert "# server_url is not set" in shown.splitlines()

    def test_what_is_not_the_default_says_so(self) -> None:
        config = Config(
            max_retries=5, kinds=(), ignore=("a",), opencode=OpencodeSettings(server_url="http://localhost:1")
        )
        lines = settings_as_toml(config).splitlines()
        assert "max_retries = 5  # default: 3" in lines
        assert "kinds = []  # not the default" in lines
        assert 'ignore = ["a"]  # default: []' in lines
        assert 'server_url = "http://localhost:1"  # default: not set' in lines
        assert "dry_run = false" in lines

    def test_a_path_that_is_no_utf8_is_still_toml(self) -> None:
        told = settings_as_toml(Config(opencode=OpencodeSettings(data_dirs=(Path("/a\udcff"),))))
        assert tomllib.loads(told)["opencode"]["data_dirs"] == ["/a?"]


class TestSoundPart:
    def test_what_is_wrong_is_left_out_and_said(self, file: Path) -> None:
        file.write_text(
            'max_retry = 3\nlookback_hours = 2.5\nkinds = ["role_order", "flu"]\nledger = 7\n'
            '[opencode]\ndata_dirs = ["/a"]\nserver_url = "http://example.com"\n[notfy]\nquiet = true\n'
        )
        config, problem = load_sound(Config, file, {"RECOVERYD_NONSENSE": "1", "RECOVERYD_MAX_RETRIES": "many"})
        assert config == Config(lookback_hours=2.5, opencode=OpencodeSettings(data_dirs=(Path("/a"),)))
        assert problem is not None and problem.exit_code == 78
        said = problem.message
        named = ("max_retry", "flu", "`ledger`", "server_url", "notfy", "RECOVERYD_NONSENSE", "RECOVERYD_MAX_RETRIES")
        assert [word for word in named if word not in said] == []

    @pytest.mark.parametrize("content", [b"nonsense", b"\xff", b"a = 1\na = 2"])
    def test_of_what_is_no_toml_nothing_is(self, file: Path, content: bytes) -> None:
        file.write_bytes(content)
        config, problem = load_sound(Config, file, {"RECOVERYD_MAX_RETRIES": "5"})
        assert config == Config(max_retries=5) and problem is not None

    def test_of_a_sound_one_all_is(self, file: Path) -> None:
        file.write_text(EVERYTHING)
        assert load_sound(Config, file, {}) == (EXPECTED, None) and load_sound(Config, None, {}) == (Config(), None)
