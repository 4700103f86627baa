"""Plans that are found without any theory: paths that lose much show what paths that lose more are like.

Plain paths are played, and some of the paths that lost most become components of a mixture: each component
tilts every arm to the mean of the arm's rewards in its path. Paths of this mixture lose more, and so on, from
rung to rung (a rung is a regret that some paths reach), up to the event. A ladder uses no knowledge of the
policy, so it may find ways to the event that the derived routes miss.

If no routes are derived, a second ladder starts from arms that look alike (`alike`). Whatever a rule does
with its rewards, to lose much it must take a bad arm for a good one. So for every bad arm and some levels
between its mean and the best mean, the arms above the level are tilted down to the level, and the bad arm is
tilted up to the level: for their first 1, 4, 16, ... rewards, or for all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lighttail.noises.tilts import Tilts
from lighttail.records import Floats
from lighttail.tails.mixture import Mixture, Routes, mixed
from lighttail.tails.play import Paths, may_skip, play_paths
from lighttail.tails.routes import lucks
from lighttail.tails.task import Effort, Task

PILOTS, RUNGS = 1024, 4096  # paths that find the next rung at first, and paths played up to it at least
FEWEST, PULLS = 256, 8_000_000  # a rung's paths take at most PULLS pulls, but may always be FEWEST
SEEN = 6  # paths that must reach a rung
TOP = 0.1  # share of the paths that reach the next rung
ELITE = 96  # components of a rung at most
MOST_RUNGS = 80
SMALL = 4 * PULLS  # pulls that a ladder may take even if the whole budget is smaller
AHEAD, BESIDE = 1 << 40, 1 << 50  # the first block's number in a ladder, and in a ladder with a start
PART = 2.0  # the least gain in log likelihood if an arm's first rewards have a tilt of their own
OPEN = 0.1  # share of untilted paths
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.2)  # 0 is the bad arm's mean, 1 the best mean
LUCKS = (0, 3, 6)  # the places of the lucks (see `lucks`) that are used
MOST_ALIKE = 400  # components of arms that look alike, about: with many arms only some bad arms have them


def ladder(task: Task, effort: Effort, start: Routes | None = None) -> tuple[Routes | None, int]:
    """The routes of the last rung, or None if the ladder did not reach the event; and the pulls it took.

    start: the routes of the first paths; if there are none, the ladder starts from plain paths.
    """
    climb = _Climb(task, effort, AHEAD if start is None else BESIDE)
    plans: list[Routes] = [] if start is None else [start]
    rung = -math.inf
    for _ in range(MOST_RUNGS):
        if climb.spent > max(effort.most_pulls, SMALL):
            break
        mixture = mixed(task.problem, task.tilts, plans, OPEN)
        following, share = climb.look(mixture, rung)
        if following is None:
            break
        rung = following
        elite = climb.step(mixture, rung, share)
        if elite is None:
            break
        if rung >= task.target:
            return elite, climb.spent
        plans = [elite, *plans[:1]]  # the previous rung's components are kept, too
    return None, climb.spent


class _Climb:
    """The paths that are played for a ladder, in blocks that nothing else plays."""

    def __init__(self, task: Task, effort: Effort, block: int) -> None:
        self.task, self.effort = task, effort
        self.rng = np.random.default_rng([effort.seed & (2**64 - 1), 7 if block == AHEAD else 8])
        self.most = int(max(FEWEST, PULLS / task.horizon))  # paths per rung at most
        self.block, self.spent = block, 0

    def play(self, task: Task, mixture: Mixture, paths: int, **settings: Any) -> Paths:
        found = play_paths(task, mixture, self.effort, paths, first=self.block, **settings)
        self.block += 1 << 30
        self.spent += int(found.rounds.sum())
        return found

    def look(self, mixture: Mixture, rung: float) -> tuple[float | None, float]:
        """The next rung and the share of the paths that reach it; None if no rung is higher."""
        score, paths = np.empty(0), min(PILOTS, self.most)
        while True:
            fresh = self.play(self.task, mixture, paths, full=True, label="a second plan")
            score = np.append(score, fresh.score)
            above = np.count_nonzero(score > rung) if rung < self.task.target else 0
            if above >= SEEN or score.size >= self.most:
                break
            paths = min(3 * score.size, self.most)  # too few paths reach further: play more
        if above < SEEN:
            return None, 0.0
        ordered = np.sort(score)
        wanted = float(ordered[-int(TOP * score.size) - 1])
        wanted = wanted if wanted > rung else float(ordered[ordered > rung][0])
        wanted = min(wanted, self.task.target)
        return wanted, float(np.mean(score >= wanted))

    def step(self, mixture: Mixture, rung: float, share: float) -> Routes | None:
        """The components from paths that reach the rung; None if too few paths do."""
        task = self.task if rung >= self.task.target else replace(self.task, regret=rung)
        paths = int(min(self.most, max(RUNGS, 2.0 * ELITE / share)))
        marks = 0 if may_skip(task) else max(0, task.horizon.bit_length() - 1)  # 0: one tilt per arm
        hits = self.play(task, mixture, paths, marks=marks, label="a second plan")
        return _elite(hits, task, self.rng)


def _elite(hits: Paths, task: Task, rng: np.random.Generator) -> Routes | None:
    """One component for each of up to ELITE paths of the event, which are drawn by their weights."""
    log_weight = -np.logaddexp.reduce(hits.log_parts, axis=1)
    on = np.flatnonzero(np.isfinite(log_weight))
    if on.size < SEEN:
        return None
    above = log_weight[on] - log_weight[on].max()
    weight = np.exp(above)
    while weight.sum() ** 2 / np.sum(weight**2) < min(ELITE, on.size) / 3.0:
        above *= 0.7  # flatter weights, since a few heavy paths alone would show too little
        weight = np.exp(above)
    chosen = on[rng.choice(on.size, size=min(ELITE, on.size), p=weight / weight.sum())]
    lam, caps, later = _two_parts(hits.pulls[chosen], hits.totals[chosen], task.means, task.tilts)
    flat = np.zeros(chosen.size)
    return Routes(flat, lam[:, :, None], caps[:, :, None], np.zeros((*lam.shape, 1)), later)


def _two_parts(n: Floats, totals: Floats, true: Floats, tilts: Tilts) -> tuple[Floats, Floats, Floats]:
    """The likeliest tilt of an arm's first rewards, the number of these rewards, and the tilt of the others.

    An arm's first rewards may be unlike the others, if the arm had to win or lose early.
    """
    marks = totals.shape[2] - 1
    cuts = np.minimum(n[:, :, None], np.append(2.0 ** np.arange(marks), np.inf))
    rest, n_rest = totals[:, :, -1:] - totals, n[:, :, None] - cuts
    early, late = (_tilt(tilts, true, count, sums) for count, sums in ((cuts, totals), (n_rest, rest)))
    gain = early * totals - cuts * tilts.psi(true[:, None], early)
    gain += late * rest - n_rest * tilts.psi(true[:, None], late) - PART * (n_rest > 0.0)
    best = np.argmax(gain, axis=2)[:, :, None]
    lam, caps, later = (np.take_along_axis(part, best, axis=2)[:, :, 0] for part in (early, cuts, late))
    return lam, caps, later


def _tilt(tilts: Tilts, true: Floats, n: Floats, total: Floats) -> Floats:
    """The tilt to the mean of n rewards; the mean of coins is first moved a little to the true mean."""
    coins = 0.0 if math.isfinite(float(tilts.at_most(1.0, -1.0))) else 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.where(n > 0.0, (total + coins * true[:, None]) / (n + coins), true[:, None])
    return tilts.lam(true[:, None], moved)


def alike(task: Task) -> Routes:
    """Components under which arms look alike, all with the same share."""
    means, best = task.means, float(task.means.max())
    luck = lucks(task)
    luck = luck[list(LUCKS)] if luck.size > max(LUCKS) else luck
    caps = [*(4.0 ** np.arange(math.ceil(math.log(task.horizon, 4.0)))), math.inf]
    bad = np.flatnonzero(means < best)
    bad = bad[:: max(1, -(-bad.size * len(LEVELS) * len(caps) * luck.size // MOST_ALIKE))]
    components = [
        (_level_tilts(task, arm, means[arm] + share * (best - means[arm]), nu), cap, nu)
        for arm in map(int, bad)
        for share in LEVELS
        for nu in luck
        for cap in caps
    ]
    components += [(np.full(means.size, nu), math.inf, nu) for nu in luck]
    tilts, held, later = (np.array(part) for part in zip(*components, strict=True))
    lam = tilts[:, :, None]
    wide = np.ones((1, means.size))
    held, later = (held[:, None] * wide)[:, :, None], later[:, None] * wide
    return Routes(np.zeros(len(components)), lam, held, np.zeros(lam.shape), later)


def _level_tilts(task: Task, arm: int, level: float, luck: float) -> Floats:
    """Every arm's tilt: `luck`, or the tilt to the level if this is lower (higher for `arm`)."""
    to_level = task.tilts.lam(task.means, np.full(task.means.size, level))
    down = np.where(task.means > level, np.minimum(to_level, luck), luck)
    down[arm] = max(float(to_level[arm]), luck)
    return down
