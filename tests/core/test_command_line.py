"""Commands as messages name them."""

from __future__ import annotations

from recoveryd.core.command_line import command_line, going_by


def test_a_command_has_the_options_that_say_something() -> None:
    assert command_line("scan", "--repair", session="ses_1", kind=None) == "recoveryd scan --repair --session ses_1"
    assert command_line("scan", client="My fork") == "recoveryd scan --client 'My fork'"


def test_it_goes_by_the_configuration_of_the_call() -> None:
    with going_by("/a/my own.toml"):
        assert command_line("start") == "recoveryd start --config '/a/my own.toml'"
    assert command_line("start") == "recoveryd start"
