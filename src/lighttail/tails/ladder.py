"""A second plan, found without any theory: paths that come far show what paths that come further are like.

Plain paths are played; of those that lost most, some become components of a mixture: each tilts every arm
to the mean that its rewards had in that path. Paths of that mixture come further, and so on up to the event.
Nothing here knows the policy, so what the derived routes miss is found here, if it is on the way.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

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
        hits = play_paths(near, mixture, effort, paths, **settings)  # type: ignore[arg-type]
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
    pulls, totals, true = hits.pulls[chosen], hits.totals[chosen], np.array(task.problem.means)
    shrink = 0.0 if math.isfinite(float(family.at_most(1.0, -1.0))) else 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.where(pulls > 0.0, (totals + shrink * true) / (pulls + shrink), true)
    lam = family.lam(true, moved)[:, :, None]
    shape = (chosen.size, true.size, 1)
    flat = np.zeros(chosen.size)
    return Routes(flat, lam, pulls[:, :, None], np.zeros(shape), flat)
