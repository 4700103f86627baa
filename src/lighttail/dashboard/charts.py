"""Pictures as SVG. Places across are in percent of the width and texts are in pixels, so that a picture fits
a phone and its letters stay as large as the page's. Colours belong to classes of the style sheet."""

from __future__ import annotations

import math
from typing import Any

from lighttail.dashboard.history import BYS, OTHERS
from lighttail.dashboard.html import Html, el, note
from lighttail.dashboard.words import View, exactly, lasting, moment, number
from lighttail.outcomes.format import counted, rounded

MOST_ROWS = 8  # arms with a row of their own in the picture of the traffic
HIGH, LINE = 56, 16  # pixels: of a row of bars, and of a line of text
LAW_HIGH = 170
LEAST_STEPS = 3  # between the numbers on an axis
LEAST_SHARE = 1e-4  # where the picture of the law begins


def percent(share: float) -> str:
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


def svg(height: int, label: str, *parts: Any) -> Html:
    """A picture that a screen reader reads as one sentence."""
    return el("svg", *parts, width="100%", height=height, role="img", aria_label=label, class_="chart")


def text(x: str, y: float, said: str, anchor: str = "start") -> Html:
    return el("text", said, x=x, y=f"{y:g}", text_anchor=anchor)


def across(y: float | str, kind: str | None = None) -> Html:
    """A line over the whole width."""
    return el("line", x1="0%", x2="100%", y1=y, y2=y, class_=kind)


def two_ends(left: Any, right: Any) -> Html:
    """What stands below the two ends of an axis."""
    return el("p", el("span", left), el("span", right), class_="axis")


def rows_of(traffic: View) -> list[str]:
    """The arms that get a row: all of them, or the busiest and the others together."""
    totals: dict[str, int] = dict.fromkeys(traffic["arms"], 0)
    for span in traffic["spans"]:
        for arm, _, count in span:
            totals[arm] = totals.get(arm, 0) + count
    names = [name for name in totals if name != OTHERS]
    if len(totals) > MOST_ROWS:
        names = sorted(names, key=lambda arm: -totals[arm])[: MOST_ROWS - 1]
    return [*names, OTHERS] if len(names) < len(totals) else names


def traffic_chart(traffic: View) -> Html:
    """Per arm a row of bars: how many trials each span of time had, split by who chose the arm."""
    rows, spans = rows_of(traffic), traffic["spans"]
    stacks = {arm: [dict.fromkeys(BYS, 0) for _ in spans] for arm in rows}
    for place, span in enumerate(spans):
        for arm, by, count in span:
            stacks[arm if arm in stacks else OTHERS][place][by] += count
    tallest = max(sum(stack.values()) for row in stacks.values() for stack in row)
    width = traffic["width"]
    each = lasting(width) if traffic["unit"] == "seconds" else counted(int(width), "pull")
    each = {"1 second": "second", "1 pull": "pull"}.get(each, each)
    parts = [_row(arm, row, tallest) for arm, row in stacks.items()]
    said = note(f"The tallest bar is {counted(tallest, 'trial')} per {each}.")
    return el("div", parts, _axis(traffic), said, class_="rows")


def _row(arm: str, row: list[dict[str, int]], tallest: int) -> Html:
    bars, wide = [], 1.0 / len(row)
    for place, stack in enumerate(row):
        top = float(HIGH)
        for by, count in stack.items():
            if count:
                high = HIGH * count / tallest
                top -= high
                bars.append(_bar(f"by-{by}", place * wide, top, 0.92 * wide, high))
    many = counted(sum(sum(stack.values()) for stack in row), "trial")
    label = f"Traffic of {arm} over time: {many}"
    head = el("p", el("bdi", arm), " ", el("span", many, class_="note"), class_="row-name")
    return el("div", head, svg(HIGH + 1, label, bars, across(HIGH, "ground")))


def _bar(kind: str, left: float, top: float, width: float, height: float) -> Html:
    at = {"x": percent(left), "y": f"{top:.2f}", "width": percent(width), "height": f"{height:.2f}"}
    return el("rect", class_=kind, **at)


def _axis(traffic: View) -> Html:
    """The two ends of the traffic."""
    first, last = traffic["start"], traffic["last"]
    if traffic["unit"] != "seconds":
        return two_ends(f"pull {first:,.0f}", f"pull {last:,.0f}")
    short = moment(first) == moment(last)  # within a minute: the ends differ in their seconds alone
    return two_ends(when(first, seconds=short), when(last, seconds=short))


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

    def at(value: float) -> str:
        return percent(0.01 + 0.98 * (value - low) / (high - low))

    rows = []
    for one in arms[:MOST_ROWS]:
        left = low if one["low"] is None else one["low"]
        right = high if one["high"] is None else one["high"]
        marks = [el("line", x1=at(left), x2=at(right), y1=8, y2=8, class_="limits")]
        if one["value"] is not None:
            marks.append(el("circle", cx=at(one["value"]), cy=8, r=5, class_="mean"))
        ends = f"{number(one['low'])} to {number(one['high'])}"
        label = f"Mean of {one['arm']}: {number(one['value'])}, limits {ends}"
        rows.append(el("div", el("p", el("bdi", one["arm"]), class_="row-name"), svg(16, label, marks)))
    return el("div", rows, two_ends(rounded(low), rounded(high)), class_="rows")


def _law_high(share: float) -> float:
    """The height of a bar, on a log scale from `LEAST_SHARE` to 1."""
    least = math.log10(LEAST_SHARE)
    return (LAW_HIGH - 2 * LINE) * max(0.0, math.log10(share) - least) / -least


def _law_grid(foot: int) -> Html:
    lines = []
    for share, said in ((1.0, "100 % of ends"), (0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %")):
        y = foot - _law_high(share)
        lines += [across(f"{y:.2f}"), text("100%", y - 2, said, "end")]
    return el("g", lines, class_="grid")


def law_chart(forecast: View) -> Html:
    """The law of the loss at the end as bars, on a log scale, with the loss X marked."""
    law, loss = forecast["distribution"], forecast["loss"]
    edges = law["edges"]
    left, right = min(0.0, edges[0]), max(edges[-1], 1.1 * loss)
    foot = LAW_HIGH - LINE

    def part(value: float) -> float:
        return float((value - left) / (right - left))

    bars, gap = [], 0.06 * (part(edges[1]) - part(edges[0]))
    for low, up, share in zip(edges, edges[1:], law["shares"], strict=False):
        tall = max(_law_high(share), 1.0) if share else 0.0
        begin, end = part(low), part(up) - gap
        middle = min(max(part(loss), begin), end)
        for kind, left_end, right_end in (("law", begin, middle), ("law beyond", middle, end)):
            if tall and right_end > left_end:
                bars.append(_bar(kind, left_end, foot - tall, right_end - left_end, tall))
    at, side = percent(part(loss)), "end" if part(loss) > 0.5 else "start"
    mark = el("line", x1=at, x2=at, y1=LINE - 4, y2=foot, class_="mark")
    named = text(at, LINE - 6, f"X = {exactly(loss)}", side)
    label = (
        f"The loss at the end: simulated ends lose from {rounded(edges[0])} to {rounded(edges[-1])}; "
        f"X is {exactly(loss)}. The scale of the shares is logarithmic."
    )
    scale = [_tick(part(value), value, foot) for value in ticks(left, right)]
    return svg(LAW_HIGH, label, _law_grid(foot), bars, across(foot, "ground"), mark, named, scale)


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


def _tick(part: float, value: float, foot: int) -> Html:
    """A mark on the axis and its number."""
    at, side = percent(part), "start" if part < 0.04 else "end" if part > 0.96 else "middle"
    line = el("line", x1=at, x2=at, y1=foot, y2=foot + 4, class_="ground")
    return el("g", line, text(at, LAW_HIGH - 2, f"{value:,.10g}", side), class_="tick")
