"""How long an exact law takes, from sizes alone. A law that takes hours or too much memory is refused.

The constants are seconds on one core of a common processor, fitted to measured times (docs/tails.md).
"""

from __future__ import annotations

import math

from lighttail.checks import refuse
from lighttail.system.memory import free_memory, in_bytes
from lighttail.tails.groups import MOST_MEANS, Groups

MOST_SECONDS = 3600.0  # a law that takes longer is refused
WALK = 1e-7  # seconds of an arm's walk at one level, per steps^1.5
LEVELS, SCANNED = 160, 250  # levels at which a tail is computed, and levels at which it is bounded
LAW_LEVELS, LAW_WALK, LAW_SCANNED = 600, 3.0, 3000  # for a law, whose walks take LAW_WALK times as long
CELL = 1.2e-9  # seconds of Bernoulli arms of one mean, per steps^4 / 12
PAIR, MANY, UNIT, PLACE, CONVOLVED = 5e-10, 5e-9, 1.5e-9, 2e-8, 1e-9  # seconds per term of a sum over groups
START, CORES = 0.05, 2  # seconds that every law takes, and the cores that are assumed
DAY = 86_400.0


def seconds(groups: Groups, regret: float | None) -> float:
    """About how many seconds `exact_tail` takes, or `exact_law` if no regret is given."""
    if len(groups.means) == 1 or groups.horizon == groups.total_arms:
        return START
    try:
        work = _work(groups, regret)
    except OverflowError:
        return math.inf
    return START + work / CORES  # CORES is fixed: what is printed does not depend on the machine


def _work(groups: Groups, regret: float | None) -> float:
    steps = float(groups.steps)
    tail = _merge(groups, 0.5 * groups.horizon if regret is None else regret / groups.largest_gap)
    once = _merge(groups, None) if regret is None else tail
    kinds = len(groups.means)
    if groups.counted:
        clocks = -(-groups.total_arms // 2)
        return kinds * CELL * steps**4 / 12.0 + 0.5 * steps**2 * clocks * once
    walks = kinds * WALK * steps**1.5
    if regret is not None:
        return float(LEVELS * (walks + once) + SCANNED * tail)
    return float(LAW_LEVELS * (LAW_WALK * walks + once) + LAW_SCANNED * tail)


def _merge(groups: Groups, regret: float | None) -> float:
    """The seconds that it takes to put the groups together at one level."""
    horizon = float(groups.horizon)
    doubled = sum(1 + math.log2(arms) for arms in groups.arms if arms > 1)
    both = _lattice(groups, regret), _direct(groups, regret)
    return min(both) + doubled * CONVOLVED * horizon**2 + 1e-6


def _direct(groups: Groups, regret: float | None) -> float:
    """The seconds of a sum over the numbers of pulls."""
    kinds, horizon = len(groups.means), float(groups.horizon)
    if kinds > MOST_MEANS:
        return math.inf
    if regret is None:
        return PLACE * float(_splits(groups))
    if kinds <= 3:
        return float(PAIR * horizon ** (kinds - 1))
    return float(MANY * horizon**2 + MANY * horizon ** (kinds - 2) / math.factorial(kinds - 3))


def _splits(groups: Groups) -> int:
    """The number of ways in which the pulls can be split over the groups."""
    return math.comb(groups.horizon + len(groups.means) - 1, len(groups.means) - 1)


def _lattice(groups: Groups, regret: float | None) -> float:
    """The seconds of a sum over pulls and regrets, in a common unit of the gaps."""
    kinds, horizon = len(groups.means), float(groups.horizon)
    units = groups.units() if kinds > 3 else None
    if units is None:
        return math.inf
    unit, wholes = units
    size = max(wholes) * horizon if regret is None else max(1.0, regret / unit)
    return float((kinds - 1) * UNIT * 0.5 * horizon**2 * (size + 10.0))


def on_lattice(groups: Groups, regret: float | None) -> bool:
    """Whether the sum in common units is the cheaper one. regret: in units of the largest gap."""
    return _lattice(groups, regret) < _direct(groups, regret)


def check(groups: Groups, regret: float | None) -> None:
    """Raise BadInput if the law takes more than an hour or does not fit into memory."""
    needed, takes = _memory(groups, regret), seconds(groups, regret)
    arms = f"{groups.total_arms} arms with {len(groups.means)} different means"
    if takes > MOST_SECONDS:
        reason = f"for {arms} the exact law would take {duration(takes)}"
    elif needed > 0.7 * free_memory():
        reason = f"for {arms} the exact law would take about {in_bytes(needed)} of memory"
    else:
        return
    raise refuse("horizon", groups.horizon, f"smaller, since {reason}")


def _memory(groups: Groups, regret: float | None) -> float:
    horizon, kinds = float(groups.horizon), len(groups.means)
    each = 8.0 * kinds * horizon * (600.0 if groups.counted else 100.0)
    cells = 8.0 * kinds * horizon**2 + 60.0 * horizon**2 if groups.counted else 0.0
    if regret is None:
        size = float(_splits(groups)) if kinds <= MOST_MEANS else 0.0
        units = groups.units() if on_lattice(groups, None) else None
        size = max(units[1]) * horizon if units else size
        return each + cells + 8.0 * 22.0 * size
    return each + cells


def duration(takes: float) -> str:
    """A time in words.

    >>> duration(300.0), duration(1e5), duration(1e6), duration(float("inf"))
    ('about 5 minutes', 'about 28 hours', 'about 12 days', 'more than a year')
    """
    if takes > 365.0 * DAY:
        return "more than a year"
    for least, unit, name in ((2.0 * DAY, DAY, "days"), (5400.0, 3600.0, "hours"), (90.0, 60.0, "minutes")):
        if takes >= least:
            return f"about {takes / unit:.0f} {name}"
    return f"about {max(1.0, takes):.0f} seconds"
