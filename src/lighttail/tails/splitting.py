"""The chance of a large regret by splitting: a slow check that shares nothing with the tilts.

Only independent repetitions show how far one repetition may be off, so they give the interval.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.noises import Noise
from lighttail.random.streams import block_generator
from lighttail.records import Floats
from lighttail.running.blocks import in_sentences
from lighttail.running.pool import run_blocks
from lighttail.system.progress import compiling, reporter
from lighttail.tails.task import PLAIN, Diagnostics, Effort, TailEstimate, Task, kurtosis_of

PARTICLES, KILLED, LEVELS = 400, 20, 200  # paths, paths that a turn ends at least, and levels of the score
FIRST, FEWEST, MOST_REPETITIONS = 16, 32, 512  # repetitions before the first look, and limits for an answer
SHARE = 0.2  # the largest share of one repetition in the sum of all, if an answer is to be trusted
LONGEST = 10**6  # pulls per path; every repetition plays hundreds of paths


def split(task: Task, effort: Effort) -> TailEstimate:
    """Repetitions of adaptive splitting: the first few show how many are needed, and these are played."""
    from lighttail.kernels import score_for

    if task.horizon > LONGEST:
        raise refuse("horizon", task.horizon, (f"at most {LONGEST} with splitting; use ", PLAIN))
    spread = variances(task.problem.noise, task.problem.means)
    values, rounds, following = np.empty(0), 0.0, FIRST
    while True:
        more = _repeat(task, effort, spread, values.size, following - values.size)
        values, rounds = np.append(values, more[:, 0]), rounds + float(more[:, 1].sum())
        low, high = limits_of(values, effort.level)
        mean = float(values.mean())
        relative = (high - low) / (2.0 * mean) if mean > 0.0 else math.inf
        enough = values.size >= FEWEST and relative <= effort.relative_error
        times = min(8.0, relative / effort.relative_error)  # a larger number could not be squared
        wanted = max(FEWEST, values.size * min(8.0, max(2.0, 1.25 * times**2)))
        affordable = values.size * effort.most_pulls / max(1.0, rounds)
        following = int(min(wanted, MOST_REPETITIONS, affordable))
        if enough or following <= values.size:
            break
    limit = f"{MOST_REPETITIONS} repetitions were played, which is the largest number allowed"
    if values.size < MOST_REPETITIONS:
        limit = f"the budget of {effort.most_pulls:,} pulls was spent"
    score = f"paths were split by {score_for(task.policy)[2]}"
    found = _answer(values, (low, high), int(rounds), relative, "" if enough else limit, effort.level)
    return replace(found, diagnostics=replace(found.diagnostics, score=score))


def _answer(
    values: Floats, limits: tuple[float, float], rounds: int, relative: float, limit: str, level: float
) -> TailEstimate:
    mean = float(values.mean())
    low, high = max(0.0, limits[0]), min(1.0, limits[1]) if mean > 0.0 else 1.0
    largest = float(values.max() / values.sum()) if mean > 0.0 else math.nan
    doubt = ""
    if mean <= 0.0:
        doubt = "no path met the event"
    elif largest > SHARE:
        doubt = f"one repetition makes up {largest:.1%} of the estimate"
    hits, kurtosis = int(np.count_nonzero(values)), kurtosis_of(values)
    about = Diagnostics(hits, largest, kurtosis, math.nan, relative, 0.0, 1.0)
    about = replace(about, doubt=doubt, stopped="" if doubt else limit)
    paths, reached = PARTICLES * values.size, not doubt and not limit
    return TailEstimate(mean, low, high, level, paths, rounds, "splitting", reached, about)


def limits_of(values: Floats, level: float) -> tuple[float, float]:
    """Limits for the mean of independent repetitions, whose law is skewed.

    T = (mean - mu) / s is not symmetric, but T + a T^2 + a^2 T^3 / 3 + a / (2 n) nearly is, with a = skewness
    / 3 (Hall 1992): at the limits this is a quantile of Student's law. A fifth of the risk is kept back,
    because the repetitions were looked at before there were enough.
    """
    from scipy.special import stdtrit

    n, mean, spread = values.size, float(values.mean()), float(values.std(ddof=1))
    if spread == 0.0:
        return mean, mean
    a = float(np.mean((values - mean) ** 3)) / float(values.std()) ** 3 / 3.0
    reach = float(stdtrit(n - 1, 1.0 - 0.4 * (1.0 - level))) / math.sqrt(n)

    def back(y: float) -> float:
        y -= a / (2.0 * n)
        return y if abs(a) < 1e-6 else (float(np.cbrt(1.0 + 3.0 * a * y)) - 1.0) / a

    return mean - spread * back(reach), mean - spread * back(-reach)


def _repeat(task: Task, effort: Effort, spread: Floats, first: int, count: int) -> Floats:
    """(estimate, rounds, turns) of `count` repetitions, numbered from `first`; spread: `variances`."""
    from lighttail.kernels import branching_kernel_for, stream
    from lighttail.kernels.errors import check_arms

    policy, problem, horizon = task.policy, task.problem, task.horizon
    kernel = branching_kernel_for(policy, problem)
    params, world = policy.params(horizon, problem.arms), problem.noise.world(problem.means)
    arms = (np.array(problem.means), spread, np.array(problem.gaps))
    stop = np.zeros(1, dtype=np.int64)
    clock = _clock(policy, horizon, params)
    limits = (horizon, task.target, clock, _lowest(task, clock, spread), task.luck_counts, LEVELS)
    results = np.zeros((count, 3))

    def one(place: int, until: int, particles: int = PARTICLES) -> int:
        generator = block_generator(effort.seed, first + place)
        with in_sentences(policy, problem):
            results[place] = kernel(stream(generator), params, world, arms, limits, particles, KILLED, stop)
        check_arms(policy, stop)
        return until - place

    with reporter(effort.progress, str(policy), count) as report:
        with compiling(str(policy), effort.progress):
            stop[0] = 1
            one(0, 1, KILLED)
            stop[0] = 0
        run_blocks(one, 1, count, effort.threads, stop, report)
    return results


def variances(noise: Noise, means: tuple[float, ...]) -> Floats:
    """The variance of a reward of each arm, estimated from a few draws: the score needs no more."""
    world, rng = noise.world(means), np.random.default_rng(0)
    shocks = [noise.shock(rng, *world) for _ in range(2000)]
    rewards = [[noise.reward(shock, arm, *world) for shock in shocks] for arm in range(len(means))]
    spread: Floats = np.var(rewards, axis=1)
    return np.maximum(spread, 1e-12)


def _clock(policy: Any, horizon: int, params: tuple[float, ...]) -> float:
    """The clock of the score: its value at the end or, for Thompson sampling, a reach in deviations."""
    if policy.plays_by == "posterior":
        return math.sqrt(2.0 * math.log(horizon))
    if not policy.plays_by:
        return 0.0
    clock = policy.bonus.clock if policy.plays_by == "phases" else policy.clock_formula()
    return float(clock(float(horizon), *params))


def _lowest(task: Task, clock: float, spread: Floats) -> float:
    """The score at which levels start, below that of a path in which each arm has earned its mean once."""
    from lighttail.kernels import score_for
    from lighttail.kernels.branching import with_luck

    policy, problem = task.policy, task.problem
    make, parts, _ = score_for(policy)
    score = make(*parts)
    score = with_luck(score) if task.luck_counts else score
    means, gaps = np.array(problem.means), np.array(problem.gaps)
    path = (np.ones(problem.arms), means, np.zeros((problem.arms, max(1, policy.rule().notes))))
    lost = 0.0 if task.luck_counts else gaps.sum()
    ahead = (task.target - lost, float(task.horizon - problem.arms), math.inf)
    params = policy.params(task.horizon, problem.arms)
    with np.errstate(all="ignore"):  # a cost that no float can hold is infinite
        start = score(path, *ahead, (means, spread, gaps), clock, params)
    return 1.25 * max(start, -1e4) - 5.0 if start < 0.0 else -5.0
