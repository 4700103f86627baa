"""What a path costs pull by pull and skipping ahead, from a few pilot paths and no clock.

Costs are in draws of a NumPy normal. Of each method that is counted which its time goes with: of
skipping the random numbers; of pulls their number, the changes of the leading arm, where the
processor guesses wrong, and the ties. The prices were fitted to times once: docs/skip-ahead.md,
section 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.policies import Policy, SuccessiveElimination
from lighttail.problems import Bandit, Bernoulli
from lighttail.streams import block_generator

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_PILOTS, FEWEST_PILOTS = 64, 4
PILOT_PULLS = 1 << 21  # rounds of all pilots together, while there are more than the fewest
POINTS = 60  # numbers of pulls at which the fall of a radius is looked at
CERTAIN = 1e-9  # a standard deviation below counts as this
TABLE = 1 << 16  # rounds whose clock the paths of a block share when every pull is played
TIE = 0.24  # an arm that is looked at where two are tied
START = 0.7  # for each pair of arms, which begin tied
ELIMINATED, LAST_SUM = 1.05, 80.0  # elimination: a random number and the last arm's sum, in pulls


class Standing(NamedTuple):
    """Prices for UCB with a radius that stands still between two pulls of its arm."""

    pull: float
    turn: float  # a change of the leader,
    steady: float  # less this times the turns a pull: where most pulls are turns, they are foreseen
    number: float  # a random number of skip-ahead,
    short: float  # less this times the numbers a pull, up to a half: blocks are short then

    def costs(
        self, horizon: float, arms: int, numbers: float, turns: float, ties: float
    ) -> tuple[float, float]:
        step = horizon * self.pull + turns * (self.turn - self.steady * turns / horizon)
        skip = numbers * (self.number - self.short * min(0.5, numbers / horizon))
        return step + TIE * ties * arms + START * arms * arms, skip


class Moving(NamedTuple):
    """Prices for UCB with a radius that changes with time: every pull looks at every arm."""

    pull: float
    arm: float  # a pull, for each arm
    late: float  # a pull, where the clock is not tabulated
    number: float
    arm_number: float  # a random number, for each arm
    short: float

    def costs(self, horizon: float, arms: int, numbers: float) -> tuple[float, float]:
        step = horizon * (self.pull + self.arm * arms + (self.late if horizon > TABLE else 0.0))
        number = self.number + self.arm_number * arms - self.short * min(0.5, numbers / horizon)
        return step, numbers * number


# By whether rewards are counts, and whether the radius calls a function: a square root.
STANDING = {
    (False, False): Standing(0.38, 2.7, 2.0, 4.55, 2.0),
    (False, True): Standing(0.74, 1.65, 1.05, 4.65, 2.5),
    (True, False): Standing(0.34, 2.75, 1.8, 5.55, 4.3),
    (True, True): Standing(0.71, 1.5, 0.33, 5.0, 3.95),
}
MOVING = {
    False: Moving(1.25, 0.082, 0.71, 5.45, 0.318, 3.95),
    True: Moving(1.05, 0.086, 0.56, 4.84, 0.18, 2.93),
}


def costs_of(policy: Any, problem: Bandit, horizon: int) -> tuple[float, float]:
    """What a path costs pull by pull, and skipping ahead."""
    numbers, pulls = pilots(policy, problem, horizon)
    if isinstance(policy, SuccessiveElimination):  # numbers are pulls, but for the last arm's sum
        return float(horizon), ELIMINATED * numbers + LAST_SUM
    prices = prices_of(policy, problem)
    if isinstance(prices, Moving):
        return prices.costs(horizon, problem.arms, numbers)
    return prices.costs(horizon, problem.arms, numbers, *turns_and_ties(policy, problem, horizon, pulls))


def prices_of(policy: Any, problem: Bandit) -> Standing | Moving:
    """What UCB pays."""
    bonus, counts = type(policy.bonus), isinstance(problem.noise, Bernoulli)
    if bonus.changes_with_time():
        return MOVING[counts]
    return STANDING[counts, bool(bonus.radius.__code__.co_names)]


def turns_and_ties(policy: Any, problem: Bandit, horizon: int, pulls: Counts) -> tuple[float, float]:
    """How often the leader changes in paths of UCB with these pulls, and how often arms tie.

    n times an arm's index less its rival's is a random walk. At the start of a lead it is about 0,
    so that with the next pull it falls by (n + 1) (radius(n) - radius(n + 1)) on average, and with
    a standard deviation sd it stays above for about sd / fall pulls. The favourite arm leads no
    more often than all others together. Two arms are tied if they have as many pulls, as arms have
    that lead for one pull each, and the same sum; of the two, one meets the tie.
    """
    params, radius = policy.params(horizon, problem.arms), policy.bonus.radius
    grid = np.unique(np.geomspace(1.0, horizon, POINTS).round())
    fall = [(n + 1.0) * (radius(n, 0.0, *params) - radius(n + 1.0, 0.0, *params)) for n in grid.tolist()]
    means = np.array(problem.means)
    turns, ties = np.empty(pulls.shape), np.empty(pulls.shape)
    for arm, mean in enumerate(problem.means):
        sd = max(CERTAIN, problem.noise.sd((mean,)))
        ends = np.clip(np.array(fall) / sd, 0.0, 1.0)
        apart = np.delete(means - mean, arm)[:, None] / (2.0 * sd)
        same = (np.exp(-grid * apart * apart) / np.maximum(1.0, 2.0 * sd * np.sqrt(np.pi * grid))).sum(axis=0)
        turns[:, arm] = _sum_to(pulls[:, arm], grid, ends)
        ties[:, arm] = _sum_to(pulls[:, arm], grid, ends * ends * 0.5 * np.minimum(1.0, same))
    total = turns.sum(axis=1)
    favourite = np.take_along_axis(turns, pulls.argmax(axis=1)[:, None], axis=1)[:, 0]
    tied = float(ties.sum(axis=1).mean()) if isinstance(problem.noise, Bernoulli) else 0.0
    return float(np.minimum(total, 2.0 * (total - favourite)).mean()), tied


def _sum_to(last: Counts, grid: Floats, rate: Floats) -> Floats:
    """The sum of a rate over 1, 2, ... up to each of `last`, with the rate known on a grid."""
    parts = np.diff(grid) * 0.5 * (rate[1:] + rate[:-1])
    sums: Floats = np.interp(last, grid, rate[0] + np.append(0.0, parts.cumsum()))
    return sums


def pilots(policy: Policy, problem: Bandit, horizon: int) -> tuple[float, Counts]:
    """Random numbers that a path takes on average, and the pulls of each, with a fixed seed."""
    from lighttail.kernels import skip_kernel_for, stream

    paths = max(FEWEST_PILOTS, min(MOST_PILOTS, PILOT_PULLS // horizon))
    generator = block_generator(0, 0)
    reward, pulls = np.empty(paths), np.empty((paths, problem.arms), dtype=np.int64)
    before = words_drawn(generator)
    skip_kernel_for(policy, problem)(
        stream(generator),
        policy.params(horizon, problem.arms),
        problem.noise.world(problem.means),
        horizon,
        reward,
        pulls,
        np.zeros(1, dtype=np.int64),
    )
    return (words_drawn(generator) - before) / paths, pulls


def words_drawn(generator: np.random.Generator) -> int:
    """Random words so far: SFC64 keeps a counter in its state."""
    state: Any = generator.bit_generator.state
    return int(state["state"]["state"][3])
