"""What the classifier makes of the collected provider errors, kind by kind: `python -m tests.confusion [--json]`.

`right` is the kind (None for a negative), `none` a kind that was missed, `wrong` any other kind; behind the counts,
what those were taken for. `dev` was known while the table was written, `kept` (a fixed 30 %, by hash) and `more`
(collected afterwards) were measured first. `responses` was in sight while Codex was added.

All others were collected and labelled before any of them was classified. Forms right before anything was mended: `half`
136 of 154 (1 wrong), `other half` 123 of 140, `late` 21 of 23, `later` 15 of 20. After mending with the mistakes of
`half` alone in sight: `other half` 140 of 140, and `late` and `later`, looked for one after the other only then: 22 of
23 and 16 of 20. None wrong; what is missed has no kind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from recoveryd.core.model import Kind
from tests.support.refused import kind_of

DATA = Path(__file__).parent / "data"
ROUNDS = {"half": 2, "other half": 3, "late": 4, "later": 5}
Text = dict[str, Any]


def load(name: str) -> list[Text]:
    rows: list[Text] = json.loads((DATA / name).read_text(encoding="utf-8"))
    return rows


def is_kept(row: Text) -> bool:
    return int(hashlib.sha256(row["message"].encode()).hexdigest(), 16) % 100 >= 70


def sets() -> dict[str, list[Text]]:
    rows, further = load("provider_errors.json"), load("further_errors.json")
    return {
        "dev": [row for row in rows if not is_kept(row)],
        "kept": [row for row in rows if is_kept(row)],
        "more": load("more_errors.json"),
        "responses": load("responses_errors.json"),
        **{name: [row for row in further if row["round"] == number] for name, number in ROUNDS.items()},
    }


def wanted(row: Text) -> Kind | None:
    return None if row["kind"] == "negative" else Kind(row["kind"])


def forms(row: Text) -> list[str]:
    return [row[form] for form in ("message", "wrapped") if form in row]


def shapes(text: str) -> list[object]:
    """The ways in which a text reaches the classifier, the client's own records first."""
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": text}})
    return [
        {"name": "APIError", "data": {"message": text, "statusCode": 400, "isRetryable": False, "metadata": {}}},
        {"name": "APIError", "data": {"message": "Failed to process error response", "responseBody": body}},
        {"name": "APIError", "data": {"message": "Bad Request", "responseBody": json.dumps({"error": body})[:-3]}},
        {"name": "UnknownError", "message": text},
        text,
    ]


def verdict(row: Text, text: str) -> str:
    kinds = {kind_of(shape) for shape in shapes(text)}
    if kinds == {wanted(row)}:
        return "right"
    return "none" if kinds <= {None, wanted(row)} else "wrong"


def mistakes(rows: list[Text], kind: str) -> str:
    """What texts of a kind were taken for: "2 as media_rejected", or nothing."""
    asked = [row for row in rows if row["kind"] == kind]
    taken = Counter(str(kind_of(shapes(text)[0])) for row in asked for text in forms(row))
    del taken[str(wanted({"kind": kind}))]
    return ", ".join(f"{n} as {name}" for name, n in taken.most_common())


def table(rows: list[Text]) -> dict[str, Counter[str]]:
    """Kind -> how many forms are right, none, wrong."""
    result: dict[str, Counter[str]] = {}
    for row in rows:
        counts = result.setdefault(row["kind"], Counter(right=0, none=0, wrong=0))
        counts.update(verdict(row, text) for text in forms(row))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    collected = sets()
    tables = {name: table(rows) for name, rows in collected.items()}
    if parser.parse_args().json:
        print(json.dumps(tables, indent=1, sort_keys=True))
        return
    for name, kinds in tables.items():
        print(f"{name:30}right   none  wrong")
        for kind, counts in [*sorted(kinds.items()), ("all", sum(kinds.values(), Counter()))]:
            told = mistakes(collected[name], kind) if kind != "all" else ""
            print(f"  {kind:28}{counts['right']:5}{counts['none']:7}{counts['wrong']:7}  {told}".rstrip())


if __name__ == "__main__":
    main()
