"""`[otel]`: what a collector receives, read with OTLP's own messages; and that nothing goes where it is not wanted."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from recoveryd.core.errors import ConfigError
from recoveryd.settings.schema import Otel
from tests.conftest import Run
from tests.support.running import running, until
from tests.support.trees import EMPTY, Tree, blank_answer

SECRET = "Quarterly figures of ACME"


class Collector:
    """Receives OTLP over HTTP on loopback, and keeps the requests by their path."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.bodies.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def spans(self) -> list[tuple[str, dict[str, Any], float]]:
        """Name, attributes and seconds of each span."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies.get("/v1/traces", ())]
        spans = [s for r in requests for rs in r.resource_spans for scope in rs.scope_spans for s in scope.spans]
        return [(s.name, told(s.attributes), (s.end_time_unix_nano - s.start_time_unix_nano) / 1e9) for s in spans]

    def metrics(self) -> dict[str, list[Any]]:
        """The points of each metric of the newest request."""
        request = ExportMetricsServiceRequest.FromString(self.bodies["/v1/metrics"][-1])
        found = [m for rm in request.resource_metrics for scope in rm.scope_metrics for m in scope.metrics]
        return {m.name: list(getattr(m, m.WhichOneof("data")).data_points) for m in found}


def told(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting(context: ssl.SSLContext | None = None) -> Iterator[tuple[Collector, str]]:
    made = Collector()
    if context is not None:
        made.server.socket = context.wrap_socket(made.server.socket, server_side=True)
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made, f"http{'s' if context else ''}://127.0.0.1:{made.server.server_port}"
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()


@pytest.mark.live
def test_a_collector_gets_each_recovery_and_no_word_of_the_session(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck(blank_answer, EMPTY, title=SECRET)
    with collecting() as (collector, endpoint):
        with running(tmp_path, tree.store, otel=Otel(endpoint=endpoint)) as daemon:
            until(lambda: bool(daemon.events), "it was not healed")
        [(name, about, seconds)] = collector.spans()
        points = collector.metrics()
        [event] = daemon.events
        assert name == "recovery" and 0 < seconds == pytest.approx(event.seconds, abs=1e-3)
        labels = {"recoveryd.client": "OpenCode", "recoveryd.kind": "empty_content", "recoveryd.outcome": "healed"}
        ids = {"recoveryd.session": session, "recoveryd.recovery": event.id}
        assert about == {**labels, **ids, "recoveryd.records": len(event.changes)}
        [count], [durable] = points["recoveryd.recoveries"], points["recoveryd.durable"]
        assert (told(count.attributes), count.as_int) == (labels, 1)
        assert durable.count == 1 and durable.sum == pytest.approx(event.seconds)
        for body in (body for bodies in collector.bodies.values() for body in bodies):
            assert SECRET.encode() not in body and str(tmp_path).encode() not in body


def healed(folder: Path, tree: Tree, endpoint: str | None) -> None:
    """A daemon heals what is stuck, and ends."""
    with running(folder, tree.store, otel=Otel(endpoint=endpoint)) as daemon:
        until(lambda: bool(daemon.events), "it was not healed")
    assert daemon.events[0].outcome == "healed"


@pytest.mark.live
@pytest.mark.parametrize("trusted", [True, False])
def test_it_goes_over_tls_to_one_that_proves_who_it_is(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    (authority if trusted else stranger).cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "ca.pem"))
    tree.stuck(blank_answer, EMPTY)
    with collecting(context) as (collector, endpoint):
        healed(tmp_path, tree, endpoint)
        assert bool(collector.bodies) is trusted


@pytest.mark.live
def test_a_collector_that_is_away_costs_nothing_but_a_line(tree: Tree, tmp_path: Path) -> None:
    with collecting() as (_, endpoint):
        pass
    tree.stuck(blank_answer, EMPTY)
    healed(tmp_path, tree, endpoint)


@pytest.mark.live
def test_without_an_endpoint_nothing_is_loaded(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recoveryd.daemon import otel

    monkeypatch.setattr(otel.Otel, "_start", lambda *_: pytest.fail("it was loaded"))
    tree.stuck(blank_answer, EMPTY)
    healed(tmp_path, tree, None)


def test_without_its_libraries_the_daemon_runs_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    from loguru import logger

    from recoveryd.daemon import otel

    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *arguments)

    said: list[str] = []
    sink = logger.add(said.append, format="{message}")
    monkeypatch.setattr(builtins, "__import__", without)
    try:
        made = otel.Otel("http://127.0.0.1:4318", str)
    finally:
        monkeypatch.undo()
        logger.remove(sink)
    assert made.callbacks.on_complete is None and "pip install '.[otel]'" in said[0]
    made.close()


@pytest.mark.parametrize(
    "address",
    [
        "http://collector.example.com:4318",
        "http://127.0.0.1.example.com",
        "http://collector.example.com\\@127.0.0.1:4318",
        "http://127.0.0.1:99999",
        "ftp://127.0.0.1",
        "127.0.0.1:4318",
        "",
    ],
)
def test_another_machine_is_spoken_to_by_tls_alone(run: Run, tmp_path: Path, address: str) -> None:
    (tmp_path / "c.toml").write_text(f"[otel]\nendpoint = '{address}'\n")
    code, _, said = run("--config", str(tmp_path / "c.toml"), "config", "check")
    assert code == ConfigError.exit_code and "otel.endpoint" in said and "https" in said


@pytest.mark.parametrize("address", ["http://localhost:4318", "http://[::1]:4318", "https://collector.example.com"])
def test_these_are_sound(address: str) -> None:
    assert Otel(endpoint=address).endpoint == address
