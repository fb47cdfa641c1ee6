"""The running client over real HTTP on loopback: who is asked, what is believed, and how long it may take."""

from __future__ import annotations

import base64
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket

import pytest
from loguru import logger

from recoveryd.clients import connection_owner
from recoveryd.clients.client import Asked, Prompt
from recoveryd.clients.connection_owner import Owner
from recoveryd.clients.http import call
from recoveryd.clients.opencode import processes, server_address
from recoveryd.clients.opencode import server as module
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.processes import Listener
from recoveryd.clients.opencode.prompting import prompt_body
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.versions import forms_of
from recoveryd.clients.opencode.wire.form import NEW, OLD, PAGED
from recoveryd.clients.store import About
from tests.support.fake_client import DIRECTORY, FAILURE, Fake, listening, saying

SESSION = FAILURE.session
ENOUGH = 4.0  # seconds: twice what a whole question may take


@pytest.fixture
def fake() -> Iterator[Fake]:
    with listening() as started:
        yield started


def client_of(*fakes: Fake) -> OpencodeServer:
    assert len(fakes) == 1
    return OpencodeServer(OpencodeSettings(server_url=fakes[0].url))


def found(monkeypatch: pytest.MonkeyPatch, *listeners: Listener) -> OpencodeServer:
    monkeypatch.setattr(processes, "listeners", lambda: list(listeners))
    return OpencodeServer(OpencodeSettings())


def yes() -> bool:
    return True


def test_the_version_of_the_client_that_has_the_session_is_asked_once_and_remembered(fake: Fake) -> None:
    client = client_of(fake)
    assert [client.versions("/store", SESSION, DIRECTORY) for _ in range(2)] == [((1, 18, 33),)] * 2
    assert [asked.path for asked in fake.asked] == [f"/session/{SESSION}", "/global/health"]
    assert fake.asked[0].directory == DIRECTORY
    assert client.versions("/store", "ses_2", DIRECTORY) == (), "another session, which this client does not have"


def test_a_version_of_its_own_making_is_none() -> None:
    for version in ("local", "", "1.x", "9" * 5000):
        with listening(Fake(version=version)) as fake:
            assert client_of(fake).versions("/store", SESSION, DIRECTORY) == ()


def test_the_password_of_the_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    with listening(Fake(password="s3cret")) as fake:
        settings = OpencodeSettings(server_url=fake.url, password_file=tmp_path / "password")
        assert OpencodeServer(settings).versions("/store", SESSION, DIRECTORY) == ((1, 18, 33),)
    assert {asked.authorization for asked in fake.asked} == {"Basic b3BlbmNvZGU6czNjcmV0"}


def test_the_password_of_the_environment_is_for_the_users_own_clients_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody on the machine may listen at the usual address."""
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "s3cret")
    with listening(Fake(session="ses_other")) as stranger, listening(Fake(password="s3cret")) as own:
        monkeypatch.setattr(server_address, "DEFAULT_URL", stranger.url)
        client = found(monkeypatch, Listener(own.url, "/"))
        assert client.versions("/store", SESSION, DIRECTORY) == ((1, 18, 33),)
    assert {asked.authorization for asked in stranger.asked} == {None}
    assert None not in {asked.authorization for asked in own.asked}


@contextmanager
def another_user() -> Iterator[None]:
    """Who listens in this process is a stranger to us."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 4242)
        yield


def said_nothing(client: OpencodeServer) -> bool:
    return (
        client.versions("/store", SESSION, DIRECTORY) == ()
        and client.listening_versions() == ()
        and not client.has(FAILURE, DIRECTORY)
        and not client.abort(FAILURE, DIRECTORY, never)
        and client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
        and not client.toast(FAILURE, DIRECTORY, "title", "text", "info")
    )


@pytest.mark.parametrize("configured", [True, False])
def test_to_another_users_process_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, fake: Fake, configured: bool
) -> None:
    """At the usual address and at the one that is configured; it would answer all that it is asked."""
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "s3cret")
    monkeypatch.setattr(server_address, "DEFAULT_URL", fake.url)
    client = client_of(fake) if configured else found(monkeypatch)
    with another_user():
        assert said_nothing(client)
    assert (fake.asked, client.shut_out()) == ([], {fake.url: Owner.OTHER})
    assert client.listening_versions() == ((1, 18, 33),), "the same listener, once it is the user's own"
    assert client.shut_out() == {}


def test_a_port_that_changed_hands_a_moment_ago_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "s3cret")
    with listening(Fake(password="s3cret")) as own:
        client = found(monkeypatch, Listener(own.url, "/"))
        assert client.versions("/store", SESSION, DIRECTORY) == ((1, 18, 33),)
    port = int(own.url.rpartition(":")[2])
    with listening(Fake(), port) as stranger, another_user():
        assert stranger.url == own.url
        assert client.versions("/store", "ses_2", DIRECTORY) == ()
        assert not client.toast(FAILURE, DIRECTORY, "title", "text", "info")
    assert stranger.asked == []


def test_where_it_cannot_be_told_who_listens_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, fake: Fake, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection_owner, "_TABLES", (tmp_path / "none", tmp_path / "none"))
    client = client_of(fake)
    assert said_nothing(client)
    assert (fake.asked, client.shut_out()) == ([], {fake.url: Owner.UNKNOWN})


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff")])
def test_a_password_file_that_cannot_be_read_is_a_sentence(
    make: Callable[[Path], object], tmp_path: Path, fake: Fake
) -> None:
    path = tmp_path / "password"
    make(path)
    said: list[str] = []
    sink = logger.add(lambda message: said.append(message.record["message"]), level="WARNING")
    try:
        client = OpencodeServer(OpencodeSettings(server_url=fake.url, password_file=path))
        assert client.versions("/store", SESSION, DIRECTORY) == ((1, 18, 33),)
        client.toast(FAILURE, DIRECTORY, "t", "x", "info")
    finally:
        logger.remove(sink)
    [sentence] = said
    assert sentence.startswith(f"The password file {path} can't be read (")
    assert sentence.endswith("): the client is asked without a password.")


def test_a_client_that_wants_a_password_which_we_do_not_have_is_none() -> None:
    with listening(Fake(password="s3cret")) as fake:
        client = client_of(fake)
        assert client.versions("/store", SESSION, DIRECTORY) == ()
        assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", lambda: None)[0] is Asked.NOBODY
        assert not client.abort(FAILURE, DIRECTORY, yes) and not client.toast(FAILURE, DIRECTORY, "t", "x", "info")
    assert fake.paths() == []


def never(_: object = None) -> bool:
    raise AssertionError("nobody is to be prompted")


def drip(sock: socket, start: bytes) -> None:
    sock.sendall(start)
    for _ in range(200):
        sock.sendall(b"x")
        time.sleep(0.05)


# What may listen at the address of a client. The names are for the report.
HOSTILE: dict[str, Callable[[socket], object]] = {
    "hangs": lambda sock: time.sleep(20),
    "drips headers": lambda sock: drip(sock, b"HTTP/1.1 200 OK\r\nX: "),
    "drips a body": lambda sock: drip(sock, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
    "drips chunks": lambda sock: drip(sock, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "hangs up": lambda sock: None,
    "is no HTTP": lambda sock: sock.sendall(b"220 smtp ready\r\n" * 100),
    "is noise": lambda sock: sock.sendall(bytes(range(256)) * 4000),
    "promises more": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"),
    "is huge": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" + b" " * (4 << 20) + b"]"),
    "has endless headers": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000),
    "is nested": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 500_000),
    "is a huge number": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"1" * 10_000),
    "is not UTF-8": lambda sock: sock.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"id": "\xff\xfe'),
    "is a list": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n[]"),
    "is odd": lambda sock: sock.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"id": {"id": 1}, "info": [], "version": {}}'),
    "is a fault": lambda sock: sock.sendall(b"HTTP/1.1 500 No\r\n\r\n{}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whoever_else_listens_there_is_no_client_and_holds_nothing_up(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROMPT_CALL_S", 0.3)
    with saying(HOSTILE[name]) as url:
        client, begun = OpencodeServer(OpencodeSettings(server_url=url)), time.monotonic()
        assert client.versions("/store", SESSION, DIRECTORY) == ()
        assert not client.abort(FAILURE, DIRECTORY, never)
        assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
        assert not client.toast(FAILURE, DIRECTORY, "title", "text", "info")
        assert time.monotonic() - begun < ENOUGH


def test_whether_a_toast_is_worth_another_try_is_told(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    monkeypatch.setattr(module, "PROMPT_CALL_S", 0.3)
    with saying(HOSTILE["hangs"]) as url:
        slow = OpencodeServer(OpencodeSettings(server_url=url))
        assert slow.toast(FAILURE, DIRECTORY, "title", "text", "info") is None
    fake.session = "ses_2"
    assert client_of(fake).toast(FAILURE, DIRECTORY, "title", "text", "info") is False


@pytest.mark.parametrize("name", ["hangs", "drips headers", "drips a body", "drips chunks"])
def test_a_call_is_over_when_its_time_is(name: str) -> None:
    with saying(HOSTILE[name]) as url:
        begun = time.monotonic()
        assert call(url, "GET", "/", deadline=begun + 0.3, admit=lambda *_: True) is None
        assert 0.29 <= time.monotonic() - begun < ENOUGH


def test_a_call_that_got_something_has_no_more_time_for_the_rest() -> None:
    def talk(sock: socket) -> None:
        for _ in range(16):
            sock.sendall(b"H" if _ else b"HTTP/1.1 200 OK\r\nX: ")
            time.sleep(0.05)
        time.sleep(20)

    with saying(talk) as url:
        begun = time.monotonic()
        assert call(url, "GET", "/", deadline=begun + 1.0, admit=lambda *_: True) is None
        assert time.monotonic() - begun < 1.6, "a second in all, not one from the last byte on"


def test_who_hangs_is_not_asked_again_for_a_while() -> None:
    asked: list[int] = []

    def hang(sock: socket) -> None:
        asked.append(1)
        time.sleep(20)

    with saying(hang) as url:
        client = OpencodeServer(OpencodeSettings(server_url=url))
        for _ in range(5):
            assert not client.abort(FAILURE, DIRECTORY, never)
    assert len(asked) == 1


def test_a_prompt_has_patience_with_who_was_slow_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_S", 0.1)
    monkeypatch.setattr(module, "PROMPT_CALL_S", 0.4)
    asked: list[int] = []

    def hang(sock: socket) -> None:
        asked.append(1)
        time.sleep(20)

    with saying(hang) as url:
        client = OpencodeServer(OpencodeSettings(server_url=url))
        client.versions("/store", SESSION, DIRECTORY)
        assert not client.abort(FAILURE, DIRECTORY, never)
        for _ in range(3):
            assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
            assert not client.toast(FAILURE, DIRECTORY, "title", "text", "info")
    assert len(asked) == 2


def test_settings_that_are_not_told_in_time_are_not_the_same_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROMPT_CALL_S", 0.3)

    def settings(url: str) -> object:
        client = OpencodeServer(OpencodeSettings(server_url=url))
        return client.settings("/store", FAILURE, DIRECTORY, "/config")

    with saying(HOSTILE["hangs"]) as url:
        assert settings(url) is None
    with listening() as fake:
        fake.answers["/config"] = 200, b'{"compaction": {}}'
        assert settings(fake.url) == {"compaction": {}}
        assert settings(fake.url + "/elsewhere") == {}, "it does not have the session"


def test_many_that_hang_take_two_seconds_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with saying(HOSTILE["hangs"]) as first, saying(HOSTILE["drips a body"]) as second, listening() as own:
        urls = [first, second, *(f"{first}/{n}" for n in range(6))]
        client = found(monkeypatch, *(Listener(url, DIRECTORY) for url in urls), Listener(own.url, "/"))
        begun = time.monotonic()
        assert not client.abort(FAILURE, DIRECTORY, never)
        assert time.monotonic() - begun < ENOUGH


def test_a_redirect_is_not_followed() -> None:
    with listening() as elsewhere, listening() as fake:
        for path in (f"/session/{SESSION}", "/global/health"):
            fake.answers[path] = 302, f"{elsewhere.url}{path}".encode()
        client = client_of(fake)
        assert client.versions("/store", SESSION, DIRECTORY) == ()
        assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
    assert elsewhere.asked == []


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    with listening() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert client_of(fake).versions("/store", SESSION, DIRECTORY) == ((1, 18, 33),)
    assert proxy.asked == []


def test_where_nobody_listens_nothing_happens() -> None:
    with listening() as fake:
        pass
    client = client_of(fake)
    assert client.versions("/store", SESSION, DIRECTORY) == ()
    assert not client.abort(FAILURE, DIRECTORY, never)
    assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never) == (
        Asked.NOBODY,
        "no client that listens has this session",
    )
    assert not client.toast(FAILURE, DIRECTORY, "title", "text", "info")


def test_the_client_in_the_folder_of_the_session_is_asked_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each that is asked about a folder opens it."""
    directory = str(tmp_path)
    with listening(Fake(directory=directory)) as other, listening(Fake(directory=directory)) as at_home:
        client = found(monkeypatch, Listener(other.url, "/"), Listener(at_home.url, directory))
        assert client.prompt(FAILURE, directory, Prompt(), "continue", "r1", lambda: None) == (Asked.SENT, "")
    assert at_home.paths() == [f"/session/{SESSION}/prompt_async"]
    assert other.asked == []


def test_the_client_in_the_folder_where_it_was_refused_goes_before_that_of_the_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All that is asked is asked of the folder where its user works: what runs there, and who sees a notice."""
    at_work = str(tmp_path)
    with listening(Fake(status={SESSION: {"type": "busy"}})) as here, listening() as at_home:
        client = found(monkeypatch, Listener(at_home.url, DIRECTORY), Listener(here.url, at_work))
        failure = replace(FAILURE, folder=at_work)
        assert client.has(failure, DIRECTORY) and client.abort(failure, DIRECTORY, yes)
        assert client.prompt(failure, DIRECTORY, Prompt(), "continue", "r1", lambda: None) == (Asked.SENT, "")
        assert client.toast(failure, DIRECTORY, "title", "text", "info")
    assert here.paths() == [f"/session/{SESSION}/abort", f"/session/{SESSION}/prompt_async", "/tui/show-toast"]
    assert {asked.directory for asked in here.asked} == {at_work}
    assert at_home.asked == []


def test_where_nobody_works_in_the_folder_where_it_was_refused_that_of_the_session_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its user has quit the client there, and opened the session in its own folder."""
    failure = replace(FAILURE, folder=str(tmp_path))
    with listening(Fake(status={SESSION: {"type": "busy"}})) as at_home:
        client = found(monkeypatch, Listener(at_home.url, DIRECTORY))
        assert client.toast(failure, DIRECTORY, "title", "text", "info")
    assert {asked.directory for asked in at_home.asked} == {DIRECTORY}


def test_a_folder_of_work_that_the_client_would_take_for_another_is_not_asked_about(fake: Fake) -> None:
    failure = replace(FAILURE, folder="/a%20b")
    assert client_of(fake).prompt(failure, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
    assert fake.asked == []


def test_where_none_works_in_that_folder_the_first_that_has_the_session_is_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(Fake(session="ses_2")) as first, listening() as second, listening() as third:
        client = found(monkeypatch, *(Listener(fake.url, "/") for fake in (first, second, third)))
        assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", lambda: None) == (Asked.SENT, "")
    assert (first.paths(), second.paths(), third.asked) == ([], [f"/session/{SESSION}/prompt_async"], [])


@pytest.mark.parametrize(
    "fake",
    [
        Fake(made=1),
        Fake(directory="/elsewhere"),
        Fake(session="ses_2"),
        Fake(answers={f"/session/{SESSION}": (200, b"{}")}),
    ],
)
def test_a_client_of_another_store_is_left_alone(fake: Fake) -> None:
    """It may have a session of this id, in a copy: then the failed message is not the same."""
    with listening(fake):
        client = client_of(fake)
        fake.status = {SESSION: {"type": "busy"}}
        assert not client.abort(FAILURE, DIRECTORY, never)
        assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.NOBODY
        assert not client.toast(FAILURE, DIRECTORY, "title", "text", "info")
    assert fake.paths() == []


@pytest.mark.parametrize(("status", "stopped"), [("busy", True), ("retry", True), ("idle", False), ("odd", False)])
def test_only_a_turn_that_runs_is_aborted(fake: Fake, status: str, stopped: bool) -> None:
    fake.status = {SESSION: {"type": status, "attempt": 1}, "ses_2": {"type": "busy"}}
    assert client_of(fake).abort(FAILURE, DIRECTORY, yes) is stopped
    assert fake.paths() == ([f"/session/{SESSION}/abort"] if stopped else [])


@pytest.mark.parametrize("status", [b"", b"[]", b"nothing", json.dumps({SESSION: "busy"}).encode(), b"null"])
def test_a_status_that_cannot_be_read_aborts_nothing_and_prompts_nothing(fake: Fake, status: bytes) -> None:
    fake.answers["/session/status"] = 200, status
    client = client_of(fake)
    assert not client.abort(FAILURE, DIRECTORY, never)
    assert client.prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)[0] is Asked.BUSY
    assert fake.paths() == []


def test_a_turn_is_not_aborted_if_something_newer_is_in_the_store_by_then(fake: Fake) -> None:
    fake.status = {SESSION: {"type": "busy"}}
    assert not client_of(fake).abort(FAILURE, DIRECTORY, lambda: False)
    assert fake.paths() == []


def test_a_busy_session_is_not_prompted(fake: Fake) -> None:
    fake.status = {SESSION: {"type": "busy"}}
    asked, why = client_of(fake).prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", never)
    assert (asked, why) == (Asked.BUSY, "the client is at work in this session")
    assert fake.paths() == []


def test_a_prompt_goes_out_as_it_was_given_after_it_was_noted(fake: Fake) -> None:
    noted: list[int] = []
    how = Prompt("build", None, "high")
    assert client_of(fake).prompt(
        FAILURE, DIRECTORY, how, "continue", "r1", lambda: noted.append(len(fake.paths()))
    ) == (
        Asked.SENT,
        "",
    )
    assert noted == [0], "before the call"
    assert (fake.asked[-1].body, fake.asked[-1].directory) == (prompt_body(how, "continue", "r1"), DIRECTORY)


@pytest.mark.parametrize("accepts", [200, 400, 404, 500])
def test_a_refused_prompt_is_a_failure(fake: Fake, accepts: int) -> None:
    fake.accepts = accepts
    asked, why = client_of(fake).prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", lambda: None)
    assert (asked, why) == (Asked.REFUSED, f"the client refused the prompt (HTTP {accepts})")


def test_a_prompt_without_an_answer_may_have_arrived(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROMPT_CALL_S", 0.8)
    fake.on_prompt = lambda body: time.sleep(3)
    asked, why = client_of(fake).prompt(FAILURE, DIRECTORY, Prompt(), "continue", "r1", lambda: None)
    assert (asked, why) == (Asked.UNSURE, "the client did not answer")


def test_a_toast_goes_to_the_folder_of_the_session(fake: Fake) -> None:
    assert client_of(fake).toast(FAILURE, DIRECTORY, "Session healed: x", "two\nlines", "success")
    shown = fake.asked[-1]
    assert (shown.path, shown.directory) == ("/tui/show-toast", DIRECTORY)
    message = "Session healed: x\n\ntwo\nlines"
    assert shown.body == {"title": "", "message": message, "variant": "success", "duration": 10000}


def test_a_toast_that_is_refused_was_not_shown(fake: Fake) -> None:
    fake.answers["/tui/show-toast"] = 400, b"{}"
    assert not client_of(fake).toast(FAILURE, DIRECTORY, "t", "x", "nonsense")


def test_an_id_never_becomes_another_path(fake: Fake) -> None:
    client = client_of(fake)
    assert client.versions("/store", "../global/health?x=", DIRECTORY) == ()
    assert fake.asked[0].path == "/session/..%2Fglobal%2Fhealth%3Fx%3D"


def test_a_folder_that_is_no_utf8_is_asked_for_in_vain(fake: Fake) -> None:
    assert client_of(fake).versions("/store", SESSION, "/projects/\udcff") == ()
    assert fake.asked == []


def test_a_folder_that_the_old_client_would_decode_twice_is_not_asked_for(fake: Fake) -> None:
    fake.directory = "/projects/100%20"
    assert client_of(fake).versions("/store", SESSION, "/projects/100%20") == ()
    assert fake.asked == []
    fake.directory = "/projects/100%"
    assert client_of(fake).versions("/store", SESSION, "/projects/100%") == ((1, 18, 33),)


def test_from_several_threads_every_answer_is_its_own(fake: Fake) -> None:
    """A button may be pressed while the daemon is at work."""
    client = client_of(fake)
    wrong = itertools.count()

    def ask(number: int) -> None:
        for _ in range(10):
            told = client.versions("/store", SESSION if number % 2 else f"ses_{number}x", DIRECTORY)
            if told != (((1, 18, 33),) if number % 2 else ()):
                next(wrong)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert next(wrong) == 0


class _Old(OpencodeSqlite):
    def forms(self) -> tuple[str, ...]:
        return ("paged",)

    def about(self, session_id: str) -> About:
        return About("title", DIRECTORY)


def test_a_plan_has_to_hold_in_both_forms_where_schema_and_client_differ(tmp_path: Path) -> None:
    store = _Old(tmp_path / "opencode.db")
    with listening() as fake:
        assert forms_of(store, client_of(fake), SESSION) == (PAGED, NEW)
    with listening(Fake(version="9.9.9")) as fake:
        assert forms_of(store, client_of(fake), SESSION) == (PAGED, NEW), "not known: the newest form that is"
    with listening(Fake(version="1.2.1")) as fake:
        assert forms_of(store, client_of(fake), SESSION) == (PAGED,)
    with listening(Fake(session="ses_2")) as fake:
        assert forms_of(store, client_of(fake), SESSION) == (PAGED,), "a client that does not have the session"


def test_a_tree_of_files_is_sent_in_the_old_form_whoever_listens(tmp_path: Path, fake: Fake) -> None:
    assert forms_of(OpencodeFiles(tmp_path), client_of(fake), SESSION) == (OLD,)
    assert fake.asked == []


def test_a_password_of_any_bytes_and_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no UTF-8 goes as the bytes that it is; it used to end every question with a fault."""
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "gr\udcfcn")
    monkeypatch.setenv("OPENCODE_SERVER_USERNAME", "me")
    with listening(Fake(password="x")) as fake:
        client_of(fake).versions("/store", SESSION, DIRECTORY)
        sent = [asked.authorization for asked in fake.asked]
    expected = "Basic " + base64.b64encode(b"me:gr\xfcn").decode()
    assert sent and set(sent) == {expected}


def test_the_name_of_the_configuration_goes_before_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "x")
    monkeypatch.setenv("OPENCODE_SERVER_USERNAME", "me")
    with listening(Fake(password="x")) as fake:
        OpencodeServer(OpencodeSettings(server_url=fake.url, username="bob")).listening_versions()
    assert [asked.authorization for asked in fake.asked] == ["Basic " + base64.b64encode(b"bob:x").decode()]
