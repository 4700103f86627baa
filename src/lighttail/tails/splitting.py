"""The chance of a large regret by splitting: a slow check that shares nothing with the tilts.

Only independent repetitions tell how far a repetition may be off, so the interval comes from them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.noises import Noise
from lighttail.policies import UCB, SuccessiveElimination, ThompsonSampling
from lighttail.simulate import run_blocks
from lighttail.statistics import Floats
from lighttail.streams import block_generator
from lighttail.validation import refuse

if TYPE_CHECKING:
    from lighttail.tails.task import Effort, TailEstimate, Task

PARTICLES, KILLED, LEVELS = 400, 20, 200
REPETITIONS, MOST_REPETITIONS = 8, 512
LONGEST = 10**6  # pulls of a path, of which every repetition plays hundreds


def split(task: Task, effort: Effort) -> TailEstimate:
    """Repetitions of adaptive splitting until their mean is exact enough, or the budget spent."""
    from scipy.special import stdtrit

    from lighttail.tails.task import Diagnostics, TailEstimate

    if not isinstance(task.policy, (UCB, SuccessiveElimination, ThompsonSampling)):
        raise refuse("policy", task.policy, "UCB, SuccessiveElimination or ThompsonSampling with splitting")
    if task.horizon > LONGEST:
        raise refuse("horizon", task.horizon, f"at most {LONGEST} with splitting; use method='plain'")
    values, rounds = np.empty(0), 0.0
    while True:
        more = _repeat(task, effort, values.size, max(REPETITIONS, values.size))
        values, rounds = np.append(values, more[:, 0]), rounds + float(more[:, 1].sum())
        mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)
        width = float(stdtrit(values.size - 1, 0.5 + effort.level / 2.0)) * error
        relative = width / mean if mean > 0.0 else math.inf
        reached = relative <= effort.relative_error
        if reached or 2.0 * rounds > effort.most_pulls or 2 * values.size > MOST_REPETITIONS:
            break
    low, high = max(0.0, mean - width), min(1.0, mean + width) if mean > 0.0 else 1.0
    largest = float(values.max() / values.sum()) if mean > 0.0 else math.nan
    spread = float(values.std())
    kurtosis = float(np.mean((values - mean) ** 4)) / spread**4 if spread > 0.0 else math.nan
    hits = int(np.count_nonzero(values))
    about = Diagnostics(hits, largest, kurtosis, math.nan, relative, 0.0, 1.0)
    paths = PARTICLES * values.size
    return TailEstimate(mean, low, high, effort.level, paths, int(rounds), "splitting", reached, about)


def _repeat(task: Task, effort: Effort, first: int, count: int) -> Floats:
    """(estimate, rounds, turns) of so many repetitions, numbered from `first`."""
    from lighttail.kernels import branching_kernel_for, stream
    from lighttail.kernels.errors import compilable, parts_of
    from lighttail.progress import compiling, reporter

    policy, problem, horizon = task.policy, task.problem, task.horizon
    kernel = branching_kernel_for(policy, problem)
    params, world = policy.params(horizon, problem.arms), problem.noise.world(problem.means)
    arms = (np.array(problem.means), variances(problem.noise, problem.means), np.array(problem.gaps))
    stop = np.zeros(1, dtype=np.int64)
    clock = _clock(policy, horizon, params)
    limits = (horizon, task.target, clock, _lowest(task, clock), task.whole, LEVELS)
    found = np.zeros((count, 3))

    def one(place: int, until: int, particles: int = PARTICLES) -> int:
        generator = block_generator(effort.seed, first + place)
        with compilable(*parts_of(policy, problem)):
            found[place] = kernel(stream(generator), params, world, arms, limits, particles, KILLED, stop)
        return until - place

    with reporter(effort.progress, str(policy), count) as report:
        with compiling(str(policy), effort.progress is not False):
            stop[0] = 1
            one(0, 1, KILLED)
            stop[0] = 0
        run_blocks(one, 1, count, effort.threads, stop, report)
    return found


def variances(noise: Noise, means: tuple[float, ...]) -> Floats:
    """About the variance of one reward of each arm, from a few draws: the score needs no more."""
    world, rng = noise.world(means), np.random.default_rng(0)
    shocks = [noise.shock(rng, *world) for _ in range(2000)]
    rewards = [[noise.reward(shock, arm, *world) for shock in shocks] for arm in range(len(means))]
    spread: Floats = np.var(rewards, axis=1)
    return np.maximum(spread, 1e-12)


def _clock(policy: Any, horizon: int, params: tuple[float, ...]) -> float:
    """The time at which the score looks at indices: the end; for Thompson sampling, deviations."""
    if isinstance(policy, ThompsonSampling):
        return math.sqrt(2.0 * math.log(horizon))
    return float(policy.bonus.clock(float(horizon), *params))


def _lowest(task: Task, clock: float) -> float:
    """Below the score of a path that saw each arm's mean once: scores start about there."""
    from lighttail.kernels import score_for
    from lighttail.kernels.branching import with_luck

    policy, problem = task.policy, task.problem
    make, parts = score_for(policy)
    score = make(*parts)
    score = with_luck(score) if task.whole else score
    means, gaps = np.array(problem.means), np.array(problem.gaps)
    state = (np.ones(problem.arms), means, np.zeros((problem.arms, max(1, policy.rule().notes))))
    lost = 0.0 if task.whole else gaps.sum()
    ahead = (task.target - lost, gaps, clock, float(task.horizon - problem.arms))
    world = (means, variances(problem.noise, problem.means))
    with np.errstate(all="ignore"):  # a cost that no float can hold is infinite
        start = score(*state, *ahead, world, policy.params(task.horizon, problem.arms))
    return 1.25 * max(start, -1e4) - 5.0 if start < 0.0 else -5.0
