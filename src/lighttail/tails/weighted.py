"""Tails by importance sampling: two plans in one mixture, each of which also has an opinion of its own.

The opinion of a plan is its estimate from its own paths alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lighttail.bounds.bound import TINY
from lighttail.outcomes import estimates
from lighttail.records import Floats
from lighttail.system.progress import compiling, noted
from lighttail.tails.elimination_routes import elimination_routes
from lighttail.tails.index_routes import index_routes
from lighttail.tails.known import known_limit
from lighttail.tails.ladder import alike, ladder
from lighttail.tails.luck import draws_for_itself
from lighttail.tails.mixture import Routes, Tilting, tilting_of
from lighttail.tails.pairs import pair_routes
from lighttail.tails.play import Paths, choose_played, may_skip, play_paths, whole_blocks
from lighttail.tails.splitting import split
from lighttail.tails.task import Diagnostics, Effort, TailEstimate, Task, kurtosis_of, without_paths

FIRST = 4096  # paths before the first look
LARGEST = 700.0  # the logarithm of a number that a float still holds
MOST_WEIGHTS = 4_000_000  # paths whose weights are kept at most
DEARER = 2.5  # plain pulls that take about as long as one tilted pull
SHARE = 0.05  # the largest share of one weight in the sum of all, if an estimate is to be trusted
UNSEEN = 3.0  # if only untilted paths bound the weights: an unseen weight over the largest weight seen
CONFIRM, AT_LEAST = 4, 1 << 17  # for clear opinions, paths may grow by the factor CONFIRM or to AT_LEAST
AFRESH = 1 << 36  # the first block of a run that follows another run of the same task
CLEAR = 0.12  # the relative standard error of an opinion that is clear
VAGUE = 0.2  # the relative standard error of two opinions together beyond which they do not count
WITNESS = 0.25  # relative error of splitting if it is asked for its opinion
LEAST_OF_WITNESS, MOST_OF_WITNESS = 5_000_000, 20_000_000  # limits of the pulls of this splitting
Opinion = tuple[float, float]  # the logarithm of an estimate, and its relative standard error
APART, SIGMAS = 1.5, 3.0  # opinions disagree if they differ by this factor and these standard errors


ROUTES: dict[str, Callable[[Task], Routes | None]] = {  # by the policy's `plays_by`
    "radius": index_routes,
    "index": index_routes,
    "posterior": index_routes,
    "phases": elimination_routes,
}


@dataclass(frozen=True)
class Weights:
    """The weights of the paths so far: log_weight under the whole mixture, log_alone under each plan.

    looks: how often paths were added and the estimate was looked at.
    """

    tilting: Tilting
    log_weight: Floats
    own: Floats  # the group that a path was drawn from
    log_alone: Floats  # [path, plan]
    pulls: int
    looks: int = 1

    @classmethod
    def of(cls, paths: Paths, tilting: Tilting) -> Weights:
        groups = np.searchsorted(tilting.mixture.groups, paths.own, side="right") - 1
        with np.errstate(invalid="ignore"):
            whole = -np.logaddexp.reduce(paths.log_parts, axis=1)
        hit = np.isfinite(paths.log_parts).any(axis=1)
        alone = np.empty((hit.size, tilting.plans))
        for g in range(tilting.plans):
            first, last = tilting.mixture.groups[g : g + 2]
            share = float(np.logaddexp.reduce(tilting.mixture.log_p[first:last]))
            alone[:, g] = np.where(hit, share - paths.log_parts[:, g], -math.inf)
        return cls(tilting, np.where(hit, whole, -math.inf), groups, alone, int(paths.rounds.sum()))

    def joined(self, more: Weights) -> Weights:
        return Weights(
            self.tilting,
            np.append(self.log_weight, more.log_weight),
            np.append(self.own, more.own),
            np.concatenate([self.log_alone, more.log_alone]),
            self.pulls + more.pulls,
            self.looks + more.looks,
        )

    def opinions(self) -> list[Opinion]:
        """(ln of the estimate, relative standard error) of each plan, from its own paths alone; empty if
        there is only one plan."""
        opinions: list[Opinion] = []
        for g in range(self.tilting.plans if self.tilting.plans > 1 else 0):
            logs = self.log_alone[self.own == g, g]
            unit = float(logs.max()) if logs.size else -math.inf
            if not math.isfinite(unit):
                opinions.append((-math.inf, math.inf))
                continue
            weights = np.exp(logs - unit)
            mean = float(weights.mean())
            error = max(float(weights.std()) / math.sqrt(logs.size), float(weights.max()) / logs.size) / mean
            opinions.append((math.log(mean) + unit, error))
        return opinions


def importance(task: Task, effort: Effort, may_change: bool) -> TailEstimate | None:
    """The estimate by weighted paths; None if plain paths are cheaper, or if no plan was found."""
    with noted(f"planning the paths of {task.policy}", effort.progress):
        first = derived(task)
    if first is None and task.every_way_counted:  # nothing leads to the event
        return without_paths(0.0, effort.level)
    if first is not None and not math.isnan(first.log_bound):
        alone = tilting_of(task, [first])
        found = _run(task, alone, effort, may_change)
        if found is None or found.reached or not _useless_bound(found, alone):
            return found
    second, spent = ladder(task, effort)
    known = first is not None
    if first is None:
        first, more = ladder(task, effort, alike(task))
        spent += more
    plans = [] if first is None else [replace(first, log_bound=math.nan)]
    plans += [] if second is None else [uncapped(task, second)]
    if not plans:
        return None
    return _run(task, tilting_of(task, plans), effort, may_change, spent, third=not known)


def derived(task: Task) -> Routes | None:
    """The derived routes; None if there are none. If `every_way_counted` holds, None means that the event
    cannot happen."""
    find = pair_routes if task.every_way_counted else ROUTES.get(task.policy.plays_by)
    with np.errstate(all="ignore"):  # a cost that no float can hold is infinite: no path goes there
        found = find and find(task)
    found = found and found.finite()
    return found and uncapped(task, found)


def uncapped(task: Task, routes: Routes) -> Routes:
    """The routes with all rewards of an arm tilted alike, if paths may skip ahead."""
    return replace(routes, caps=np.full(routes.caps.shape, math.inf)) if may_skip(task) else routes


def _useless_bound(estimate: TailEstimate, tilting: Tilting) -> bool:
    """Whether the bound on the weights is so much above the value that the estimate is no better for it."""
    value = estimate.value
    return value <= 0.0 or tilting.log_bound - math.log(value) > math.log(MOST_WEIGHTS / 100.0)


def _run(
    task: Task, tilting: Tilting, effort: Effort, may_change: bool, spent: int = 0, third: bool = False
) -> TailEstimate | None:
    """Play more paths until the error is small and both opinions are clear, or the budget is spent.

    third: whether splitting is asked, too, if the two plans do not confirm each other.
    """
    with compiling(str(task.policy), effort.progress):  # pilots compile a kernel
        played, work = choose_played(task, tilting.mixture, tilting.rarity)
    per_block = whole_blocks(1, task.horizon, played)
    paths = whole_blocks(min(FIRST, max(1, int(effort.most_pulls / work))), task.horizon, played)
    settings: Any = {"played": played, "rarity": tilting.rarity}
    sample: Weights | None = None
    done = precise_at = 0
    while True:
        first = (0 if tilting.tight else AFRESH) + done // per_block
        more = play_paths(task, tilting.mixture, effort, paths - done, first=first, **settings)
        fresh = Weights.of(more, tilting)
        sample = fresh if sample is None else sample.joined(fresh)
        done = paths
        per_path = sample.pulls / paths if played == "step" else work  # in pulls
        if may_change and sample.looks == 1 and _plain_is_cheaper(sample, per_path, work):
            return None
        most, limit = most_paths(effort, max(1e-9, per_path))
        estimate = _estimate(task, sample, most, effort)
        error = estimate.diagnostics.relative_error / effort.relative_error
        vague = _vagueness(sample, estimate.value)
        precise_at = precise_at or (paths if error <= 1.0 else 0)
        if precise_at:  # only the opinions need more paths, which are limited
            most = min(most, max(CONFIRM * precise_at, AT_LEAST))
        wanted = paths * min(8.0, max(2.0, 1.2 * min(8.0, max(error, vague)) ** 2))
        following = whole_blocks(int(min(wanted, most)), task.horizon, played)
        if (error <= 1.0 and vague <= 1.0) or following <= paths:
            break
        paths = following
    if third and _may_be_confirmed(task, estimate):
        witness, more_pulls = _witness(task, effort, sample.pulls + spent)
        spent += more_pulls
        estimate = _estimate(task, sample, most, effort, witness)
    stopped = limit if error > 1.0 and not estimate.diagnostics.doubt else ""
    about = replace(estimate.diagnostics, played=played, stopped=stopped)
    return replace(estimate, pulls=sample.pulls + spent, diagnostics=about)


def most_paths(effort: Effort, work: float, fitting: int = MOST_WEIGHTS) -> tuple[int, str]:
    """The largest number of paths, each of `work` pulls, and the reason for the limit."""
    limits = [
        (MOST_WEIGHTS, f"{MOST_WEIGHTS:,} paths were played, which is the largest number that is kept"),
        (int(effort.most_pulls / work), f"the budget of {effort.most_pulls:,} pulls was spent"),
        (fitting, "as many paths were played as fit into memory"),
    ]
    most, limit = min(limits)
    return max(1, most), limit


def _vagueness(sample: Weights, value: float) -> float:
    """The error of the vaguer opinion in units of CLEAR, the error that an opinion may have; 0 if one opinion
    will never be clear, or if there are none."""
    opinions = sample.opinions()
    log_value = math.log(value) if value > 0.0 else -math.inf
    lost = any(error > 2.0 * VAGUE and log < log_value - math.log(10.0) for log, error in opinions)
    return 0.0 if lost else max((error for _, error in opinions), default=0.0) / CLEAR


def _plain_is_cheaper(sample: Weights, rounds: float, plain: float) -> bool:
    """Whether counting plain paths takes less work for the same error, by the first look.

    rounds, plain: the work of a weighted path and of a plain one, in pulls.
    """
    weights, unit = _scaled(sample.log_weight, math.inf)
    mean = float(weights.mean())
    chance = mean * math.exp(unit)
    if not 0.0 < chance < 1.0:
        return False
    tilted = DEARER * rounds * float(weights.var()) / mean**2
    return plain * (1.0 - chance) / chance <= tilted


def _scaled(log_weight: Floats, log_bound: float) -> tuple[Floats, float]:
    """The weights divided by exp(unit), and `unit`: the weights may be smaller than any float.

    A weight beyond a tight bound comes from a route that was left out because its chance is below
    1e-12 of the bound: it counts as the bound.
    """
    unit = float(np.max(log_weight))
    unit = unit if math.isfinite(unit) else min(log_bound, 0.0)
    return np.exp(np.minimum(log_weight, log_bound) - unit), unit


def _estimate(
    task: Task, sample: Weights, most: int, effort: Effort, witness: Opinion | None = None
) -> TailEstimate:
    """The estimate from the weights of all paths so far. most: the largest number of paths that is allowed.

    The interval is that of the mean of numbers between 0 and the weights' bound. If the bound comes from
    untilted paths, or alone would need more paths than are allowed, then UNSEEN times the largest weight
    seen replaces the bound, no weight's share may exceed the wanted error, and two plans must agree.
    """
    tilting, looks = sample.tilting, sample.looks
    weights, unit = _scaled(sample.log_weight, tilting.log_bound)
    scale, hits = math.exp(unit), int(np.count_nonzero(weights))
    beyond = tilting.log_bound - unit > LARGEST  # the bound in these units is beyond any float
    bound = math.exp(min(LARGEST, tilting.log_bound - unit))
    mean, largest = float(weights.mean()), float(weights.max())
    helps = tilting.tight and not beyond and 4.0 * bound <= effort.relative_error * mean * most
    end = bound if helps or not hits else min(bound, UNSEEN * largest)
    guess = estimates.mean(weights, (0.0, end), effort.level)
    share, error, whole = math.nan, math.inf, (-math.inf, math.inf)
    if hits:
        share, spread = largest / float(weights.sum()), float(weights.std())
        whole = math.log(mean) + unit, spread / math.sqrt(weights.size) / mean
        error = effort.z * spread / math.sqrt(weights.size) / mean
        error = max(error, (guess.high - guess.low) / (2.0 * mean), 0.0 if helps else share)
    # Each look has its share of the risk, so that stopping at a look that seems good does no harm.
    slip = (1.0 - effort.level) / (looks * (looks + 1))
    reach = bernstein(weights, bound, slip)
    top = bernstein(np.zeros(weights.size), math.exp(tilting.log_bound), slip) if beyond else 0.0
    sure = max(0.0, mean - reach) * scale, min(1.0, (mean + reach) * scale + top)
    doubt = "" if helps else _doubt(task, sample, hits, share, whole, witness)
    if doubt:
        sure = sure[0], max(sure[0], min(sure[1], known_limit(task)))
    heard = sample.opinions() + ([] if witness is None else [witness])
    diagnostics = Diagnostics(
        hits=hits,
        largest_share=share,
        kurtosis=kurtosis_of(weights),
        weight_bound=math.exp(tilting.log_bound),
        relative_error=error,
        sure_low=sure[0],
        sure_high=max(TINY, sure[1]),
        opinions=tuple(math.exp(log) for log, _ in heard),
        doubt=doubt,
    )
    # A chance too small for a float is given as the smallest float, not as 0.
    least = TINY if hits else 0.0
    value = min(1.0, max(least, mean * scale))
    low, high = guess.low * scale, max(least, min(1.0, guess.high * scale))
    if doubt:
        low, high = min(low, sure[0]), max(high, sure[1])
    interval = (value, min(low, value), max(high, value), effort.level)
    reached = error <= effort.relative_error and not doubt
    return TailEstimate(*interval, weights.size, sample.pulls, "importance sampling", reached, diagnostics)


def _may_be_confirmed(task: Task, estimate: TailEstimate) -> bool:
    """Whether another opinion could end the doubt."""
    about = estimate.diagnostics
    settled = not about.doubt or not about.hits or about.largest_share > SHARE
    return not settled and not draws_for_itself(task.policy, task.problem, task.horizon)


def _witness(task: Task, effort: Effort, spent: int) -> tuple[Opinion, int]:
    """The opinion of splitting, which shares nothing with the tilts, and the pulls that it took."""
    left = max(LEAST_OF_WITNESS, min(MOST_OF_WITNESS, effort.most_pulls - spent))
    found = split(task, replace(effort, relative_error=WITNESS, most_pulls=left))
    if found.value <= 0.0 or found.diagnostics.doubt:
        return (-math.inf, math.inf), found.pulls
    return (math.log(found.value), found.diagnostics.relative_error / effort.z), found.pulls


def _doubt(
    task: Task, sample: Weights, hits: int, share: float, whole: Opinion, witness: Opinion | None
) -> str:
    """Why the estimate, `whole`, cannot be trusted; empty if it can. witness: what splitting says."""
    if not hits:
        return "no path met the event"
    if share > SHARE:
        return f"one path makes up {share:.1%} of the estimate"
    if sample.tilting.tight:
        return "the bound on the weights is too far above the estimate for this number of paths"
    if draws_for_itself(task.policy, task.problem, task.horizon):  # all plans miss its own luck
        return "neither plan tilts what the policy itself draws"
    apart = "there is only one plan, and nothing to compare it with"
    if sample.tilting.plans > 1:
        apart = _difference(*sample.opinions())
    return "" if witness is not None and not _difference(whole, witness) else apart


def _difference(first: Opinion, second: Opinion) -> str:
    """Why two opinions disagree; empty if they agree."""
    errors, apart = math.hypot(first[1], second[1]), abs(first[0] - second[0])
    if not errors <= VAGUE:
        return "one of two plans is too vague to confirm the other"
    if apart > max(math.log(APART), SIGMAS * errors):
        return f"two plans disagree: {math.exp(first[0]):.2g} and {math.exp(second[0]):.2g}"
    return ""


def bernstein(sample: Floats, bound: float, slip: float) -> float:
    """How far the mean of an outcome in [0, bound] is from the sample mean, except with the chance `slip`.

    sqrt(2 V ln(4/slip) / n) + 7 bound ln(4/slip) / (3 (n - 1)), V the sample variance with n - 1
    (Maurer and Pontil 2009, Thm 4, at slip / 2 on each side).
    """
    n, log = sample.size, math.log(4.0 / slip)
    if n < 2:
        return bound
    return math.sqrt(2.0 * float(sample.var(ddof=1)) * log / n) + 7.0 * bound * log / (3.0 * (n - 1))
