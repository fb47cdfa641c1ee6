"""The picture of `sizes`: four small charts in one SVG, written by hand so that nothing has to be installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.harness import SETTLE_MS
from tests.bench.sizes import Point

W, H = 360, 230  # of a chart, with its words
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 44, 40
COLOURS = {"files": "#1b6ca8", "database": "#c4541a"}
NAMES = {"files": "JSON files", "database": "SQLite"}
GREY = "#8a8a8a"


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    unit: str
    value: str  # a field of `Point`
    limit: float | None = None  # a dashed line
    limit_is: str = ""
    floor: bool = False


CHARTS = (
    Chart("From a failure to its repair on the disk", "ms", "latency", SETTLE_MS, "settle time, 150 ms", floor=True),
    Chart("CPU for one failure and its repair", "ms", "cpu"),
    Chart("Memory of the daemon, RSS", "MiB", "rss", 45.0, "limit when idle, 45 MiB"),
    Chart("Start on a store that did not change", "s", "start"),
)


def svg(points: Sequence[Point]) -> str:
    width, height = 2 * W, 2 * H + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, chart in enumerate(CHARTS):
        x, y = number % 2 * W, number // 2 * H
        parts += [f'<g transform="translate({x} {y})">', *_chart(chart, points), "</g>"]
    parts += [*_legend(height - 14), "</svg>"]
    return "\n".join(parts) + "\n"


def _chart(chart: Chart, points: Sequence[Point]) -> list[str]:
    sizes = sorted({point.sessions for point in points})
    values = [getattr(point, chart.value) for point in points]
    top = _nice(max([*values, chart.limit or 0]) * 1.15)
    low, high = math.log10(sizes[0]), math.log10(max(sizes[-1], sizes[0] * 10))

    def at(size: float, value: float) -> tuple[float, float]:
        x = LEFT + (math.log10(size) - low) / (high - low) * (W - LEFT - RIGHT)
        return round(x, 1), round(TOP + (1 - value / top) * (H - TOP - BOTTOM), 1)

    lines = [f'<text x="{LEFT}" y="22" font-size="13" font-weight="bold">{chart.title} ({chart.unit})</text>']
    for step in range(5):
        value = top * step / 4
        y = at(sizes[0], value)[1]
        lines.append(f'<path d="M{LEFT} {y}H{W - RIGHT}" stroke="#e4e4e4"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>')
    for size in sizes:
        x = at(size, 0)[0]
        lines.append(f'<text x="{x}" y="{H - BOTTOM + 16}" text-anchor="middle">{size:,}</text>')
    lines.append(f'<text x="{(LEFT + W - RIGHT) / 2}" y="{H - 8}" text-anchor="middle">sessions in the store</text>')
    if chart.limit is not None:
        y = at(sizes[0], chart.limit)[1]
        lines.append(f'<path d="M{LEFT} {y}H{W - RIGHT}" stroke="{GREY}" stroke-dasharray="5 4"/>')
        below = 14 if min(values) > chart.limit else -5  # the side that the lines are not on
        lines.append(f'<text x="{LEFT + 4}" y="{y + below}" fill="{GREY}">{chart.limit_is}</text>')
    for store, colour in COLOURS.items():
        found = sorted((p for p in points if p.store == store), key=lambda p: p.sessions)
        lines += _line([at(p.sessions, getattr(p, chart.value)) for p in found], colour)
        if chart.floor:
            lines += _line([at(p.sessions, p.floor) for p in found], colour, dashed=True)
    return lines


def _line(places: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> list[str]:
    path = " ".join(f"{x},{y}" for x, y in places)
    style = ' stroke-dasharray="2 3"' if dashed else ""
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{style}/>'
    return [line, *(() if dashed else [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places])]


def _legend(y: int) -> list[str]:
    lines, x = [], LEFT
    for store, colour in COLOURS.items():
        lines.append(
            f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{colour}"/><text x="{x + 9}" y="{y}">{NAMES[store]}</text>'
        )
        x += 90
    lines.append(f'<path d="M{x} {y - 4}h22" stroke="{GREY}" stroke-width="1.8" stroke-dasharray="2 3"/>')
    lines.append(f'<text x="{x + 28}" y="{y}">floor: a bare watcher that does one synced write</text>')
    return lines


def _nice(value: float) -> float:
    """The next number that can be cut into four round steps."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if unit * step >= value)
