"""Metrics, as the parsers of Prometheus read them: OpenMetrics, and the older text that node_exporter takes."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import parser as plain_text
from prometheus_client.openmetrics import parser as openmetrics

from recoveryd.clients import Config, Whose
from recoveryd.core.model import Kind, Outcome
from recoveryd.ledger import EndedRecovery
from recoveryd.tell.metrics import FIRST, metrics

STORE = "/home/me/.local/share/opencode/storage"
TITLES = Whose(Config(), []).title
EMPTY, MISSING = Kind.EMPTY_CONTENT, Kind.TOOL_RESULT_MISSING
ENDED = [
    EndedRecovery(MISSING, Outcome.HEALED, 1.0, 0.2, STORE),
    EndedRecovery(MISSING, Outcome.HEALED, 2.0, 0.1, STORE),
    EndedRecovery(MISSING, Outcome.UNDONE, 3.0, 70.0, STORE),
    EndedRecovery(EMPTY, Outcome.FAILED, 4.0, 0.3, STORE),  # nothing came to the disk
    EndedRecovery(None, Outcome.NOT_UNDERSTOOD, 5.0, None, STORE),
]


def read(reader: Any, text: str) -> dict[tuple[str, ...], float]:
    """Each series with its value: name and the values of its labels."""
    families = list(reader.text_string_to_metric_families(text))
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


@pytest.mark.parametrize("reader", [openmetrics, plain_text], ids=["OpenMetrics", "plain text"])
def test_what_they_say(reader: Any) -> None:
    text = metrics(ENDED, {STORE: 1}, TITLES)
    said = read(reader, text)
    count = {key[2:]: value for key, value in said.items() if key[0] == "recoveryd_recoveries"}
    assert count == {
        ("tool_result_missing", "healed"): 2,
        ("tool_result_missing", "undone"): 1,
        ("empty_content", "failed"): 1,
        ("unknown", "not_understood"): 1,
    }
    buckets = {key[2]: value for key, value in said.items() if key[0] == "recoveryd_durable_seconds_bucket"}
    assert (buckets["0.05"], buckets["0.1"], buckets["0.25"], buckets["60.0"], buckets["+Inf"]) == (0, 1, 2, 2, 3)
    assert said["recoveryd_durable_seconds_count", "OpenCode"] == 3
    assert said["recoveryd_durable_seconds_sum", "OpenCode"] == pytest.approx(70.3)
    assert said["recoveryd_stuck_sessions", "OpenCode"] == 1
    assert text.startswith(FIRST) and text.endswith("# EOF\n")


@pytest.mark.parametrize("reader", [openmetrics, plain_text], ids=["OpenMetrics", "plain text"])
def test_an_empty_ledger_is_sound_too(reader: Any) -> None:
    assert [key[0] for key in read(reader, metrics([], {}, TITLES))] == ["recoveryd_version"]


def test_of_a_store_that_can_not_be_read_there_is_no_number() -> None:
    """0 would be an all-clear, and so would the number of the client's other stores alone."""
    said = read(openmetrics, metrics(ENDED, {STORE: None, "/other/storage": 2, "/home/me/.claude/projects": 0}, TITLES))
    assert {key[1]: n for key, n in said.items() if key[0] == "recoveryd_stuck_sessions"} == {
        TITLES("/home/me/.claude/projects"): 0
    }
    said = read(openmetrics, metrics(ENDED, {}, TITLES))
    assert "recoveryd_stuck_sessions" not in {key[0] for key in said}, "its store is not there"
