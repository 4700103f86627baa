"""The exact law of a policy that pulls the arms in turn and then commits to the arm with the best mean.

After m pulls of every arm the sums of rewards decide, once and for all. So the loss has one value per arm to
which the policy may commit, and the chance of arm k is that its sum is the largest one, where c of equal
sums have the chance 1 / c each:

    Gaussian rewards:   int phi(y - a_k) prod_{j != k} Phi(y - a_j) dy,   a_k = sqrt(m) mean_k / sigma
    Bernoulli rewards:  sum_s f_k(s) int_0^1 prod_{j != k} (F_j(s - 1) + u f_j(s)) du,   binomial f and F

The inner integral shares out ties, and Gauss-Legendre nodes give it exactly, because it is over a polynomial.
All terms are positive, so the relative accuracy does not depend on how small a chance is.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lighttail.members import shipped
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.tails.groups import LOST
from lighttail.tails.task import Task

FARTHEST, STEP = 40.0, 1.0 / 16.0  # of the integral, in standard deviations: the trapezoidal rule is exact
POINT = 3e-8  # seconds per arm and point of a sum
MOST_POINTS = 3e7  # of a sum, which are kept in memory


def turns_seconds(task: Task) -> float:
    """About how many seconds `turns_tail` takes; infinite if the law does not apply."""
    turns, problem = _turns_of(task), task.problem
    if turns is None:
        return math.inf
    if turns * problem.arms >= task.horizon:  # the end comes first
        return 1e-6
    points = 2.0 * FARTHEST / STEP
    if problem.noise.is_coin:
        points = (turns + 1.0) * _ties(problem.arms) * problem.arms
    elif not problem.noise.normal or np.abs(task.means).max() > LOST * problem.noise.normal:
        return math.inf
    return POINT * points * problem.arms + 1e-4 if points * problem.arms <= MOST_POINTS else math.inf


def turns_tail(task: Task) -> float:
    """P(pseudo regret >= regret) of a policy that pulls the arms in turn and then commits.

    >>> import lighttail as lt
    >>> task = Task(lt.ExploreThenCommit(8), lt.Bandit([0.2, 0.8]), 100, 50.0, "pseudo_regret")
    >>> round(turns_tail(task), 9)  # Phi(-0.6 sqrt(8 / 2))
    0.11506967
    """
    sure = sure_in_turns(task)
    if sure is not None:
        return sure
    return min(1.0, float(committed_to(task.problem, int(task.policy.turns or 0))[_reached(task)].sum()))


def sure_in_turns(task: Task) -> float | None:
    """The chance if it is 0 or 1, whichever arm the policy commits to; otherwise None, and for other
    policies."""
    if _turns_of(task) is None:
        return None
    reached = _reached(task)
    return float(reached.all()) if reached.all() or not reached.any() else None


def _turns_of(task: Task) -> float | None:
    """The pulls per arm after which the policy commits; None if the law does not apply. A user's class, even
    one derived from a shipped class, may play otherwise."""
    return task.policy.turns if shipped(task.policy) and not task.luck_counts else None


def _reached(task: Task) -> npt.NDArray[np.bool_]:
    """Whether the regret is reached if the policy commits to each of the arms."""
    gaps, arms, horizon = np.array(task.problem.gaps), task.problem.arms, task.horizon
    m = task.policy.turns
    assert m is not None
    if m * arms >= horizon:  # the end comes before the commitment
        in_turn = horizon // arms + (np.arange(arms) < horizon % arms)
        return np.full(arms, float(in_turn @ gaps) >= task.target)
    return np.asarray(m * gaps.sum() + (horizon - m * arms) * gaps >= task.target)


def committed_to(problem: Bandit, m: int) -> Floats:
    """The chance of each arm to have the largest sum of m rewards, where equal sums share the chance."""
    if problem.noise.is_coin:
        return _most_heads(np.array(problem.means), m)
    assert problem.noise.normal is not None
    # Gaps in place of means, which differ by a constant: large means would hide small differences.
    return _largest_sum(-np.array(problem.gaps) * (math.sqrt(m) / problem.noise.normal))


def _largest_sum(middles: Floats) -> Floats:
    """The chance of each of independent normal variables with variance 1 to be the largest one."""
    from scipy.special import log_ndtr

    nodes = middles.max() + np.arange(-FARTHEST, FARTHEST + STEP / 2.0, STEP)
    away = nodes - middles[:, None]
    below = log_ndtr(away)
    densities = np.exp(below.sum(axis=0) - below - 0.5 * away**2)
    return STEP / math.sqrt(2.0 * math.pi) * densities.sum(axis=1)  # type: ignore[no-any-return]


def _most_heads(rates: Floats, m: int) -> Floats:
    """The chance of each coin to show the most heads in m throws, where equal numbers share the chance."""
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    heads, tails, rate = np.arange(m + 1.0), np.arange(m, -1.0, -1.0), rates[:, None]
    ways = gammaln(m + 1.0) - gammaln(heads + 1.0) - gammaln(tails + 1.0)
    here = np.exp(ways + xlogy(heads, rate) + xlog1py(tails, -rate))
    fewer = np.concatenate([np.zeros((rates.size, 1)), bdtr(heads[:-1], m, rate)], axis=1)
    chances = np.zeros(rates.size)
    for node, weight in zip(*np.polynomial.legendre.leggauss(_ties(rates.size)), strict=True):
        behind = fewer + 0.5 * (1.0 + node) * here
        for arm in range(rates.size):
            others = np.delete(behind, arm, axis=0).prod(axis=0)
            chances[arm] += 0.5 * weight * float(here[arm] @ others)
    return chances


def _ties(arms: int) -> int:
    """The nodes of a Gauss-Legendre rule that is exact for polynomials of degree arms - 1."""
    return (arms + 1) // 2
