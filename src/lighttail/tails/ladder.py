"""A second plan, found without any theory: paths that come far show what paths that come further are like.

Plain paths are played; of those that lost most, some become components of a mixture: each tilts every arm
to the mean that its rewards had in that path. Paths of that mixture come further, and so on up to the event.
Nothing here knows the policy, so what the derived routes miss is found here, if it is on the way.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lighttail.statistics import Floats
from lighttail.tails.mixture import Routes, mixed
from lighttail.tails.play import Paths, play_paths
from lighttail.tails.task import Effort, Task
from lighttail.tails.tilts import Family, family_of

PILOTS, RUNGS = 1024, 4096  # paths that find the next rung, and that show the way from there
PULLS = 30_000_000  # of a rung at most
TOP = 0.1  # share of paths that come as far as the next rung
ELITE = 96  # components
MOST_RUNGS = 80
AHEAD = 1 << 40  # the blocks of the ladder are numbered from here
PART = 2.0  # by so much the logarithm of a likelihood must grow to tell an arm's first rewards from the rest
OPEN = 0.1  # share of untilted paths


def ladder(task: Task, effort: Effort) -> tuple[Routes | None, int]:
    """The routes of the last rung, or None where the ladder did not get there; and the pulls it took."""
    family = family_of(task.problem.noise)
    assert family is not None
    plans: list[Routes] = []
    block, spent, rung = AHEAD, 0, -math.inf
    rng = np.random.default_rng([effort.seed & (2**64 - 1), 7])
    fewer = max(0.05, min(1.0, PULLS / (task.horizon * (PILOTS + RUNGS))))
    pilots, paths = int(PILOTS * fewer), int(RUNGS * fewer)
    for _ in range(MOST_RUNGS):
        mixture = mixed(task.problem, family, plans, OPEN)
        settings = {"first": block, "label": "a second plan"}
        seen = play_paths(task, mixture, effort, pilots, full=True, **settings)  # type: ignore[arg-type]
        following = _next(seen.score, rung, task.target)
        if following is None:
            return None, spent
        rung = following
        near = replace(task, regret=rung) if rung < task.target else task
        block += 1 << 30
        settings = {"first": block, "label": "a second plan"}
        marks = max(0, task.horizon.bit_length() - 1)
        hits = play_paths(near, mixture, effort, paths, marks=marks, **settings)  # type: ignore[arg-type]
        block += 1 << 30
        spent += int(seen.rounds.sum() + hits.rounds.sum())
        elite = _elite(hits, task, family, rng)
        if elite is None:
            return None, spent
        if rung >= task.target:
            return elite, spent
        plans = [elite, *plans[:1]]  # the last rung's paths, too, lead on from here
    return None, spent


def _next(score: np.ndarray, rung: float, target: float) -> float | None:
    """The next rung: what a share of the paths reach, higher than the last; None where none is."""
    ordered = np.sort(score)
    if ordered[-max(8, int(TOP * score.size))] >= target:
        return target
    wanted = float(ordered[-int(TOP * score.size) - 1])
    if wanted <= rung:
        above = ordered[ordered > rung]
        if above.size < 8:
            return None
        wanted = float(above[0])
    return min(wanted, target)


def _elite(hits: Paths, task: Task, family: Family, rng: np.random.Generator) -> Routes | None:
    """A component for each of some paths of the event, drawn by their weights."""
    log_weight = -np.logaddexp.reduce(hits.log_parts, axis=1)
    on = np.flatnonzero(np.isfinite(log_weight))
    if on.size < 8:
        return None
    weight = np.exp(log_weight[on] - log_weight[on].max())
    while weight.sum() ** 2 / np.sum(weight**2) < min(ELITE, on.size) / 3.0:
        weight = weight**0.7  # a few heavy paths alone would show too little
    chosen = on[rng.choice(on.size, size=min(ELITE, on.size), p=weight / weight.sum())]
    lam, caps, later = _two_parts(
        hits.pulls[chosen], hits.totals[chosen], np.array(task.problem.means), family
    )
    flat = np.zeros(chosen.size)
    return Routes(flat, lam[:, :, None], caps[:, :, None], np.zeros((*lam.shape, 1)), later)


def _two_parts(n: Floats, totals: Floats, true: Floats, family: Family) -> tuple[Floats, Floats, Floats]:
    """Tilts of an arm's first rewards and of the rest, with how many the first ones are: as they were most
    likely to look like that. Few rewards may be unlike all that follow: they had to win or lose early."""
    marks = totals.shape[2] - 1
    cuts = np.minimum(n[:, :, None], np.append(2.0 ** np.arange(marks), np.inf))
    rest, n_rest = totals[:, :, -1:] - totals, n[:, :, None] - cuts
    early, late = (_tilt(family, true, count, sums) for count, sums in ((cuts, totals), (n_rest, rest)))
    gain = early * totals - cuts * family.psi(true[:, None], early)
    gain += late * rest - n_rest * family.psi(true[:, None], late) - PART * (n_rest > 0.0)
    best = np.argmax(gain, axis=2)[:, :, None]
    lam, caps, later = (np.take_along_axis(part, best, axis=2)[:, :, 0] for part in (early, cuts, late))
    return lam, caps, later


def _tilt(family: Family, true: Floats, n: Floats, total: Floats) -> Floats:
    """The tilt to the mean that n rewards had; for coins, drawn a little towards the true one."""
    coins = 0.0 if math.isfinite(float(family.at_most(1.0, -1.0))) else 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.where(n > 0.0, (total + coins * true[:, None]) / (n + coins), true[:, None])
    return family.lam(true[:, None], moved)
