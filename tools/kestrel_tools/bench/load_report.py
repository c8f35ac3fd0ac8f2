"""The page about a load test: what was asked, two plots, the table. One file that fetches nothing."""

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from typing import Any, NamedTuple

from kestrel_tools.bench.results import SECTIONS, Row, headlines

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 44
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2430; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
li, td, th { font-size: .85rem } ul { padding-left: 1.2rem; color: #566 }
.wide { overflow-x: auto } table { border-collapse: collapse }
td, th { padding: .25rem .6rem; text-align: right }
tr { border-bottom: 1px solid #dde2e8 } tr.missed { color: #b3261e }
svg { width: 100%; height: auto } text { font: 12px system-ui, sans-serif; fill: #566 }
"""


class Line(NamedTuple):
    key: str
    title: str
    colour: str


COLOURS = {50: "#1f77b4", 95: "#d9730d", 99: "#b3261e"}
LATENCIES = [Line(f"p{share}_ms", f"P{share}", colour) for share, colour in COLOURS.items()]


def html_report(document: Mapping[str, Any]) -> str:
    rows: Sequence[Row] = document["measured"]
    limits = document["thresholds"]
    knee = document["knee_per_s"]
    kept = ", ".join(f"{name.replace('_', ' ')} {limit:g}" for name, limit in limits.items() if limit)
    verdict = "No rate held the thresholds" if knee is None else f"Holds up to {knee:,.2f} requests/s"
    if document["rate"] is not None:
        held = "are held" if document["held_at_rate"] else "are missed"
        verdict += f"; at the promised {document['rate']:g} requests/s they {held}"
    [section] = SECTIONS["load"]
    head = "".join(f"<th>{escape(title)}</th>" for title in section.titles)
    body = "\n".join(
        f"<tr{'' if row['held'] else ' class=missed'}>{''.join(f'<td>{escape(c)}</td>' for c in cells)}</tr>"
        for row, cells in zip(rows, section.cells(document), strict=True)
    )
    facts = "\n".join(f"<li>{escape(line)}</li>" for line in headlines(document))
    answered = (Line("requests_per_s", "answered", "#1f77b4"), Line("offered_per_s", "asked", "#aab4bf"))
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Load test</title>
<style>{STYLE}</style></head>
<body>
<h1>{escape(verdict)}</h1>
<p>Thresholds: {escape(kept)}</p>
<ul>
{facts}
</ul>
<h2>Latency, ms, by requests asked a second</h2>
{plot(rows, LATENCIES, knee, limits["p95_ms"])}
<h2>Answered a second, by requests asked a second</h2>
{plot(rows, answered, knee)}
<h2>Every step</h2>
<div class="wide"><table><thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>
</body>
</html>
"""


def plot(rows: Sequence[Row], lines: Sequence[Line], knee: float | None, limit: float | None = None) -> str:
    """Values over the offered rate, both axes from 0. Dashed: the limit; dotted: the knee."""
    values = [row[line.key] for row in rows for line in lines if row[line.key] is not None]
    x_ticks = ticks(max(row["offered_per_s"] for row in rows))
    y_ticks = ticks(max([*values, limit or 0.0, 1e-9]))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / x_ticks[-1]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / y_ticks[-1]

    label = f"{', '.join(line.title for line in lines)} over the offered rate"
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    for tick in y_ticks:
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "#e6eaee"))
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        parts.append(
            f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'
        )
    if limit is not None:
        parts.append(_line(LEFT, y(limit), WIDTH - RIGHT, y(limit), "#1c2430", "6 4"))
        parts.append(f'<text x="{LEFT + 6}" y="{y(limit) - 5:.1f}">limit of P95</text>')
    if knee is not None:
        parts.append(_line(x(knee), TOP, x(knee), HEIGHT - BOTTOM, "#2e7d32", "2 3"))
        parts.append(f'<text x="{x(knee) - 5:.1f}" y="{HEIGHT - BOTTOM - 6}" text-anchor="end">knee</text>')
    for index, line in enumerate(lines):
        points = [(x(row["offered_per_s"]), y(row[line.key])) for row in rows if row[line.key] is not None]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{line.colour}"/>' for a, b in points]
        at = LEFT + 8 + 80 * index
        parts.append(f'<rect x="{at}" y="{HEIGHT - 16}" width="10" height="10" fill="{line.colour}"/>')
        parts.append(f'<text x="{at + 15}" y="{HEIGHT - 7}">{escape(line.title)}</text>')
    return "\n".join((*parts, "</svg>"))


def ticks(most: float) -> list[float]:
    """From 0 in steps of 1, 2 or 5 times a power of ten, to the first one at or above `most`."""
    power = 10.0 ** floor(log10(most / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if 6 * power * factor >= most)
    count = 1
    while count * step < most:
        count += 1
    return [round(index * step, 9) for index in range(count + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'
