"""Pictures as SVG. Places across are in percent of the width and texts are in pixels, so that a picture fits
a phone and its letters stay as large as the page's. Colours belong to classes of the style sheet."""

from __future__ import annotations

import math
from typing import Any

from lighttail.dashboard.history import BYS, OTHERS
from lighttail.dashboard.html import Html, el
from lighttail.dashboard.words import View, exactly, lasting, moment, number
from lighttail.outcomes.format import counted, rounded

MOST_ROWS = 8  # arms with a row of their own in the picture of the traffic
HIGH, LINE = 56, 16  # pixels: of a row of bars, and of a line of text
LAW_HIGH = 170
LEAST_STEPS = 3  # between the numbers on an axis
LEAST_SHARE = 1e-4  # where the picture of the law begins


def percent(share: float) -> str:
    """A place across."""
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


def svg(height: int, label: str, *parts: Any) -> Html:
    """A picture that a screen reader reads as one sentence."""
    return el("svg", *parts, width="100%", height=height, role="img", aria_label=label, class_="chart")


def text(x: str, y: float, said: str, anchor: str = "start") -> Html:
    return el("text", said, x=x, y=f"{y:g}", text_anchor=anchor)


def rows_of(traffic: View) -> list[str]:
    """The arms that get a row: all of them, or the busiest and the others together."""
    totals: dict[str, int] = dict.fromkeys(traffic["arms"], 0)
    for span in traffic["spans"]:
        for arm, _, count in span:
            totals[arm] = totals.get(arm, 0) + count
    names = sorted(totals, key=lambda arm: -totals[arm]) if len(totals) > MOST_ROWS else list(totals)
    kept = [name for name in names if name != OTHERS][: MOST_ROWS - 1 if len(totals) > MOST_ROWS else None]
    return [*kept, OTHERS] if len(kept) < len(totals) else kept


def traffic_chart(traffic: View) -> Html:
    """Per arm a row of bars: how many trials each span of time had, split by who chose the arm."""
    rows, spans = rows_of(traffic), traffic["spans"]
    stacks = {arm: [dict.fromkeys(BYS, 0) for _ in spans] for arm in rows}
    for place, span in enumerate(spans):
        for arm, by, count in span:
            stacks[arm if arm in stacks else OTHERS][place][by] += count
    tallest = max((sum(stack.values()) for row in stacks.values() for stack in row), default=0)
    width = traffic["width"]
    each = lasting(width) if traffic["unit"] == "seconds" else f"{width:,.0f} pulls"
    each = "pull" if each == "1 pulls" else each.removeprefix("1 ") if each in ("1 second",) else each
    parts = [_row(arm, row, tallest) for arm, row in stacks.items()]
    said = f"The tallest bar is {counted(tallest, 'trial')} per {each}."
    return el("div", parts, _axis(traffic), el("p", said, class_="note"), class_="rows")


def _row(arm: str, row: list[dict[str, int]], tallest: int) -> Html:
    bars, wide = [], 1.0 / max(len(row), 1)
    for place, stack in enumerate(row):
        top = float(HIGH)
        for by, count in stack.items():
            if count:
                high = HIGH * count / tallest
                top -= high
                bars.append(
                    el(
                        "rect",
                        class_=f"by-{by}",
                        x=percent(place * wide),
                        y=f"{top:.2f}",
                        width=percent(0.92 * wide),
                        height=f"{high:.2f}",
                    )
                )
    total = sum(sum(stack.values()) for stack in row)
    many = counted(total, "trial")
    label = f"Traffic of {arm} over time: {many}"
    ground = el("line", x1="0%", x2="100%", y1=HIGH, y2=HIGH, class_="ground")
    head = el("p", el("bdi", arm), " ", el("span", many, class_="note"), class_="row-name")
    return el("div", head, svg(HIGH + 1, label, bars, ground))


def _axis(traffic: View) -> Html | None:
    """The two ends of the traffic."""
    ends = [traffic["start"], traffic["last"]]
    if traffic["start"] is None:
        return None
    if traffic["unit"] == "seconds":
        short = moment(ends[0]) == moment(ends[1])  # within a minute: the ends differ in their seconds alone
        ends = [when(end, seconds=short) for end in ends]
    else:
        ends = [f"pull {end:,.0f}" for end in ends]
    return el("p", el("span", ends[0]), el("span", ends[1]), class_="axis")


def when(time: float, seconds: bool = False) -> Html:
    """A time in UTC, which the script shows in the reader's own time zone."""
    exact = moment(time, seconds=True)
    return el("time", exact if seconds else moment(time), datetime=f"{exact.replace(' ', 'T')}Z")


def means_chart(arms: list[View]) -> Html | None:
    """Per arm its mean as a dot, and the limits that hold at all times as a line."""
    known = [one[name] for one in arms for name in ("low", "high", "value") if one[name] is not None]
    if not known or min(known) == max(known):
        return None
    low, high = min(known), max(known)

    def place(value: float) -> str:
        return percent(0.01 + 0.98 * (value - low) / (high - low))

    rows = []
    for one in arms[:MOST_ROWS]:
        left = low if one["low"] is None else one["low"]
        right = high if one["high"] is None else one["high"]
        marks = [el("line", x1=place(left), x2=place(right), y1=8, y2=8, class_="limits")]
        if one["value"] is not None:
            marks.append(el("circle", cx=place(one["value"]), cy=8, r=5, class_="mean"))
        ends = f"{number(one['low'])} to {number(one['high'])}"
        label = f"Mean of {one['arm']}: {number(one['value'])}, limits {ends}"
        rows.append(el("div", el("p", el("bdi", one["arm"]), class_="row-name"), svg(16, label, marks)))
    axis = el("p", el("span", rounded(low)), el("span", rounded(high)), class_="axis")
    return el("div", rows, axis, class_="rows")


def _law_high(share: float) -> float:
    """The height of a bar, on a log scale from `LEAST_SHARE` to 1."""
    least = math.log10(LEAST_SHARE)
    return (LAW_HIGH - 2 * LINE) * max(0.0, math.log10(share) - least) / -least if share > 0.0 else 0.0


def _law_grid(foot: int) -> Html:
    lines = []
    for share, said in ((1.0, "100 % of ends"), (0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %")):
        y = foot - _law_high(share)
        lines.append(el("line", x1="0%", x2="100%", y1=f"{y:.2f}", y2=f"{y:.2f}"))
        lines.append(text("100%", y - 2, said, "end"))
    return el("g", lines, class_="grid")


def law_chart(forecast: View) -> Html | None:
    """The law of the loss at the end as bars, on a log scale, with the loss X marked."""
    law = forecast.get("distribution")
    if not law or not law["shares"]:
        return None
    edges, shares, loss = law["edges"], law["shares"], forecast["loss"]
    left, right = min(0.0, edges[0]), max(edges[-1], 1.1 * loss)
    foot = LAW_HIGH - LINE

    def place(value: float) -> float:
        return float((value - left) / (right - left))

    bars, gap = [], 0.06 * (place(edges[1]) - place(edges[0]))
    for low, up, share in zip(edges, edges[1:], shares, strict=False):
        tall = max(_law_high(share), 1.0) if share else 0.0
        begin, end, middle = place(low), place(up) - gap, min(max(place(loss), place(low)), place(up) - gap)
        for kind, left_end, right_end in (("law", begin, middle), ("law beyond", middle, end)):
            if tall and right_end > left_end:
                size = {"width": percent(right_end - left_end), "height": f"{tall:.2f}"}
                bars.append(el("rect", class_=kind, x=percent(left_end), y=f"{foot - tall:.2f}", **size))
    at, side = percent(place(loss)), "end" if place(loss) > 0.5 else "start"
    mark = el("line", x1=at, x2=at, y1=LINE - 4, y2=foot, class_="mark")
    named = text(at, LINE - 6, f"X = {exactly(loss)}", side)
    label = (
        f"The loss at the end: simulated ends lose from {rounded(edges[0])} to {rounded(edges[-1])}; "
        f"X is {exactly(loss)}. The scale of the shares is logarithmic."
    )
    ground = el("line", x1="0%", x2="100%", y1=foot, y2=foot, class_="ground")
    scale = [_tick(place(value), value, foot) for value in ticks(left, right)]
    return svg(LAW_HIGH, label, _law_grid(foot), bars, ground, mark, named, scale)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers on an axis: four to eight of them, in steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0.0, 22.0), ticks(0.0, 165.0)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [0.0, 50.0, 100.0, 150.0])
    """
    rough = (high - low) / LEAST_STEPS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = max(times * unit for times in (1.0, 2.0, 5.0) if times * unit <= rough * (1.0 + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def _tick(across: float, value: float, foot: int) -> Html:
    """A mark on the axis and its number."""
    side = "start" if across < 0.04 else "end" if across > 0.96 else "middle"
    line = el("line", x1=percent(across), x2=percent(across), y1=foot, y2=foot + 4, class_="ground")
    return el("g", line, text(percent(across), LAW_HIGH - 2, f"{value:,.10g}", side), class_="tick")
