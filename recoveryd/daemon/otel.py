"""Recoveries as traces and metrics by OTLP, to a collector that the user names (`[otel]`). Off without it.

What is told: client, kind and outcome of a recovery, its id and the session's, how many records it changed, how long it
took. Never a title or content. The SDK (the extra `otel`) is loaded only where it is on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from loguru import logger

from recoveryd.core import Event, __version__
from recoveryd.tell import DURABLE_BOUNDS, Callbacks, Stuck, stuck_by_client

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from requests import Session

_PATIENCE_S = 2.0  # for what is still to be sent when the daemon ends
_MISSING = "[otel] is set, but its libraries are missing, so nothing is sent: pip install '.[otel]' in a copy of it"


class Otel:
    """Sends each recovery that came to an end, and, when asked for its metrics, how many sessions were stuck last.

    It sends in threads of its own; what can't be sent is logged once, and lost. `endpoint` is the address that OTLP's
    `/v1/traces` and `/v1/metrics` stand below; None: nothing is sent.
    """

    def __init__(self, endpoint: str | None, titles: Callable[[str], str]) -> None:
        self._titles = titles
        self._stuck: Mapping[str, int] = {}
        self.on = False
        if endpoint is not None:
            try:
                self._start(endpoint.rstrip("/"))
                self.on = True
            except ImportError:
                logger.warning("{}", _MISSING)

    @property
    def callbacks(self) -> Callbacks:
        """What tells it of a recovery that came to an end."""
        return Callbacks(on_complete=self._complete) if self.on else Callbacks()

    def count(self, stuck: Stuck) -> None:
        """Count for each client the sessions that need their user."""
        self._stuck = stuck_by_client(stuck, self._titles)

    def close(self) -> None:
        """Send what is left, for two seconds at the most."""
        if self.on:
            sending = threading.Thread(target=self._end, daemon=True, name="otel")
            sending.start()
            sending.join(_PATIENCE_S)

    def _end(self) -> None:
        for provider in (self._traces, self._metrics):
            with suppress(Exception):  # of a library, while the daemon ends
                provider.shutdown()  # sends what is left

    def _start(self, endpoint: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        _log_once()
        wire = _session()
        spans = OTLPSpanExporter(f"{endpoint}/v1/traces", session=wire, timeout=_PATIENCE_S)
        figures = OTLPMetricExporter(f"{endpoint}/v1/metrics", session=wire, timeout=_PATIENCE_S)
        resource = Resource.create({"service.name": "recoveryd", "service.version": __version__})
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        self._metrics = MeterProvider(
            [PeriodicExportingMetricReader(figures)], resource=resource, shutdown_on_exit=False
        )
        self._tracer = self._traces.get_tracer("recoveryd", __version__)
        meter = self._metrics.get_meter("recoveryd", __version__)
        self._recoveries = meter.create_counter("recoveryd.recoveries", description="Recoveries that came to an end.")
        self._durable = meter.create_histogram(
            "recoveryd.durable",
            unit="s",
            description="From the start of a repair until it was on the disk.",
            explicit_bucket_boundaries_advisory=DURABLE_BOUNDS,
        )
        what = "Sessions that are stuck and need their user."
        meter.create_observable_gauge("recoveryd.stuck_sessions", [self._observed], description=what)

    def _complete(self, event: Event) -> None:
        about = {
            "recoveryd.client": self._titles(event.store),
            "recoveryd.kind": str(event.kind or "unknown"),
            "recoveryd.outcome": event.outcome.value,
        }
        self._recoveries.add(1, about)
        if event.seconds:
            self._durable.record(event.seconds, about)
        ended = time.time_ns()
        ids = {"recoveryd.recovery": event.id, "recoveryd.session": event.session}
        span = self._tracer.start_span(
            "recovery",
            attributes={**about, **ids, "recoveryd.records": len(event.changes)},
            start_time=ended - int(event.seconds * 1e9),
        )
        span.end(ended)

    def _observed(self, _: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        return [Observation(count, {"recoveryd.client": client}) for client, count in self._stuck.items()]


def _session() -> Session:
    """Make the connection: straight to the collector, by no proxy, and followed nowhere else.

    A certificate authority of one's own is named by OTEL_EXPORTER_OTLP_CERTIFICATE.
    """
    from requests import Session

    made = Session()
    made.max_redirects = 0
    made.trust_env = False
    return made


def _log_once() -> None:
    """Let the SDK's own complaints (a collector that is away) be a line in the log, once."""

    class Once(logging.Handler):
        said = False

        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING and not self.said:
                self.said = True
                logger.warning("What [otel] sends does not arrive: {} (said once)", record.getMessage()[:300])

    theirs = logging.getLogger("opentelemetry")
    theirs.handlers[:] = [Once()]
    theirs.propagate = False
