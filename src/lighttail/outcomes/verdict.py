"""The verdict on a comparison, in plain words (docs/verdict.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lighttail.checks import enumerated
from lighttail.outcomes.comparison import Comparison, Entry
from lighttail.outcomes.format import amount, chance, chance_limits, outward, rounded
from lighttail.outcomes.growth import HARDLY, POWER, ROOT, UNKNOWN
from lighttail.outcomes.losing import event, out_of_reach
from lighttail.problems import Problem

MANY = 6  # policies that a sentence names, at most
FEW = 100  # paths that a statement about a chance needs, at least


def verdict(comparison: Comparison) -> str:
    """The chance of losing the threshold, how it falls, and who does no better than an even split."""
    if comparison.problem.worst_loss(comparison.horizon) == 0.0:
        lost = "no choice of arms loses anything" if comparison.kind == "pseudo_regret" else "only luck loses"
        return f"All arms are equally good, so {lost}."
    most = comparison.problem.most_lost(comparison.horizon)
    if comparison.kind == "pseudo_regret" and out_of_reach(comparison.threshold, most):
        asked, largest = amount(comparison.threshold), amount(most)
        return f"No policy can lose {asked} here, because the largest possible loss is {largest}."
    if comparison.paths < FEW:
        lost = event(comparison.kind, comparison.threshold)
        return f"Fewer than {FEW} paths per policy cannot tell the chance of {lost}."
    return " ".join(filter(None, (_chances(comparison), _growths(comparison), _no_better(comparison))))


def _chances(comparison: Comparison) -> str:
    """The lowest and the highest chance of losing the threshold or more, with their limits."""
    entries, lost = comparison.entries, event(comparison.kind, comparison.threshold)
    values = [_rank(entry, entries) for entry in entries]
    lowest = [entry for entry, value in zip(entries, values, strict=True) if value == min(values)]
    if len(lowest) == len(entries):
        each = f"({lowest[0].chance_source} of each policy)"
        return f"The chance of {lost} is {_limits(lowest[0])} for {listed(lowest)} {each}."
    highest = [entry for entry, value in zip(entries, values, strict=True) if value == max(values)]
    return (
        f"The chance of {lost} is lowest, {_limits(lowest[0])}, for {listed(lowest)}, "
        f"and highest, {_limits(highest[0])}, for {listed(highest)}."
    )


def _growths(comparison: Comparison) -> str:
    """How the chance falls as the experiment grows, for all policies of which this was asked."""
    falls = {}
    for answer in (POWER, ROOT, HARDLY, UNKNOWN):
        named = [entry for entry in comparison.entries if entry.growth and entry.growth.answer == answer]
        if named:
            falls[answer] = f"{answer} for {listed(named)}"
    unknown = f"How this chance falls {falls.pop(UNKNOWN)}." if UNKNOWN in falls else ""
    grows = "As the experiment grows, and the threshold with it, this chance"
    return f"{grows} {'; it '.join(falls.values())}. {unknown}".rstrip() if falls else unknown


def _rank(entry: Entry, entries: Sequence[Entry]) -> float:
    """The chance by which policies are ranked. If no path lost so much, this is the upper limit; but such a
    policy ranks below those of which as many paths were played and some of them lost so much."""
    if entry.chance.value > 0.0:
        return entry.chance.value
    alike = (other.chance.value for other in entries if other.chance_source == entry.chance_source)
    return min([entry.chance.high, *(math.nextafter(value, 0.0) for value in alike if value > 0.0)])


def _limits(entry: Entry) -> str:
    value, low, high = entry.chance.value, entry.chance.low, entry.chance.high
    if value == 0.0 < high:
        return f"below {outward(high)}"
    limits = "exact" if entry.chance_source == "exact" else chance_limits(value, low, high)
    return f"{chance(value)} ({limits})"


def _no_better(comparison: Comparison) -> str:
    """The policies whose mean loss is not below that of an even split; empty if there is none."""
    problem, horizon = comparison.problem, comparison.horizon
    named = [entry for entry in comparison.entries if no_better_than_even(entry, problem, horizon)]
    if not named:
        return ""
    does = "does" if len(named) == 1 else "do"
    loses = rounded(even_split(problem.means, horizon))
    return f"{listed(named)} {does} no better here than an even split of the pulls, which loses {loses}."


def even_split(means: Sequence[float], horizon: int) -> float:
    """What pulling the arms in turn loses; the first arms are pulled once more if the arms do not divide the
    horizon.

    >>> even_split([0.75, 0.25, 0.5], 301)
    75.0
    """
    rounds, left = divmod(horizon, len(means))
    gaps = [max(means) - mean for mean in means]
    return rounds * math.fsum(gaps) + math.fsum(gaps[:left])


def no_better_than_even(entry: Entry, problem: Problem, horizon: int) -> bool:
    """Whether the interval of the policy's mean loss reaches what an even split loses.

    If the arms do not divide the horizon, an even split may pull the better arms once more: its least loss
    counts. If the actions change from round to round, no split is even, and the answer is False.
    """
    if not problem.means:
        return False
    least = even_split(sorted(problem.means, reverse=True), horizon)
    return least > 0.0 and entry.outcome.mean("pseudo_regret").high >= least * (1.0 - 1e-9)


def listed(entries: Sequence[Entry]) -> str:
    """'A', 'A and B', 'A, B and C'; for many policies, their number and the three that lose most often."""
    if len(entries) > MANY:
        worst = sorted(entries, key=lambda entry: _rank(entry, entries), reverse=True)[:3]
        return f"{len(entries)} policies ({'; '.join(entry.label for entry in worst)}; ...)"
    return enumerated((entry.label for entry in entries), "and")
