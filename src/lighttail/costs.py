"""What a path costs pull by pull and skipping ahead, from a few pilot paths and no clock.

Costs are in draws of a NumPy normal: what a method's time goes with is counted, and each count has
a price. For skipping ahead that is the random numbers and the looks at all arms; for pull by pull the
pulls, the changes of the leading arm, where the processor guesses wrong, and the ties. The prices
were fitted to times: docs/skip-ahead.md, section 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.random.streams import block_generator

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_PILOTS, FEWEST_PILOTS = 64, 2
PILOT_NUMBERS = 1 << 18  # random numbers after which no more pilots are sent
POINTS = 60  # numbers of pulls at which the fall of a radius is looked at
MOST_TIED = 100  # arms among which ties are looked for; more are represented by so many
CERTAIN = 1e-9  # a standard deviation below counts as this
TABLE = 1 << 16  # rounds whose clock the paths of a block share when every pull is played
TIE = 0.24  # an arm that is looked at where two are tied
PAIR = 0.06  # at the start, for each pair of arms: all are tied
ELIMINATED, LAST_SUM = 1.05, 80.0  # elimination: a random number and the last arm's sum, in pulls


class Pilots(NamedTuple):
    """What paths that skip ahead took: random numbers and looks at all arms a path, and the pulls of each."""

    numbers: float
    looks: float
    pulls: Counts


class Standing(NamedTuple):
    """Prices for UCB with a radius that stands still between two pulls of its arm."""

    pull: float
    turn: float  # a change of the leader,
    steady: float  # less this times the turns a pull: where most pulls are turns, they are foreseen
    arm: float  # the start of an arm
    number: float  # a random number of skip-ahead,
    short: float  # less this times the numbers a pull, up to a half: blocks are short then
    look: float  # an arm that skip-ahead looks at when it sets out for a lower level

    def costs(
        self, horizon: float, arms: int, counts: Pilots, turns: float, ties: float, start: float = 1.0
    ) -> tuple[float, float]:
        """Pull by pull with so much of the cost of the start, and skipping ahead."""
        step = horizon * self.pull + turns * (self.turn - self.steady * turns / horizon)
        step += TIE * ties * arms + start * arms * (self.arm + PAIR * arms)
        number = self.number - self.short * min(0.5, counts.numbers / horizon)
        return step, counts.numbers * number + counts.looks * arms * self.look


class Moving(NamedTuple):
    """Prices for UCB with a radius that changes with time: every pull looks at every arm."""

    pull: float
    arm: float  # a pull, for each arm
    late: float  # a pull, where the clock is not tabulated
    number: float
    arm_number: float  # a random number, for each arm
    short: float

    def costs(self, horizon: float, arms: int, counts: Pilots) -> tuple[float, float]:
        step = horizon * (self.pull + self.arm * arms + (self.late if horizon > TABLE else 0.0))
        number = self.number + self.arm_number * arms - self.short * min(0.5, counts.numbers / horizon)
        return step, counts.numbers * number


# By whether rewards are counts, and whether the radius calls a function: a square root, most often.
STANDING = {
    (False, False): Standing(0.38, 2.36, 1.53, 15.0, 4.3, 2.46, 2.5),
    (False, True): Standing(0.72, 2.11, 1.49, 15.0, 4.44, 2.1, 1.2),
    (True, False): Standing(0.32, 3.09, 1.89, 40.0, 5.47, 3.5, 2.5),
    (True, True): Standing(0.68, 2.47, 0.56, 40.0, 4.82, 2.26, 1.2),
}
MOVING = {
    False: Moving(1.25, 0.082, 0.71, 5.45, 0.318, 3.95),
    True: Moving(1.05, 0.086, 0.56, 4.84, 0.18, 2.93),
}


def costs_of(policy: Any, problem: Bandit, horizon: int, start: float = 1.0) -> tuple[float, float]:
    """What a path costs pull by pull, with so much of what the start costs, and skipping ahead."""
    counts = pilots(policy, problem, horizon)
    if policy.plays_by == "phases":  # numbers are pulls, but for the last arm's sum
        return float(horizon), ELIMINATED * counts.numbers + LAST_SUM
    prices = prices_of(policy, problem)
    if isinstance(prices, Moving):
        return prices.costs(horizon, problem.arms, counts)
    turns, ties = turns_and_ties(policy, problem, horizon, counts.pulls)
    return prices.costs(horizon, problem.arms, counts, turns, ties, start)


def prices_of(policy: Any, problem: Bandit) -> Standing | Moving:
    """What UCB pays."""
    bonus, counted = type(policy.bonus), problem.noise.outcomes is not None
    if bonus.changes_with_time():
        return MOVING[counted]
    return STANDING[counted, bool(bonus.radius.__code__.co_names)]


def turns_and_ties(policy: Any, problem: Bandit, horizon: int, pulls: Counts) -> tuple[float, float]:
    """How often the leader changes in paths of UCB with these pulls, and how often arms of two outcomes tie.

    n times an arm's index less its rival's is a random walk. At the start of a lead it is about 0,
    so that with the next pull it falls by (n + 1) (radius(n) - radius(n + 1)) on average, and with
    a standard deviation sd it stays above for about sd / fall pulls. The favourite arm leads no
    more often than all others together. Two arms are tied if they have as many pulls, as arms have
    that lead for one pull each, and the same sum; of the two, one meets the tie.
    """
    params, radius, means = policy.params(horizon, problem.arms), policy.bonus.radius, np.array(problem.means)
    grid = np.unique(np.geomspace(1.0, horizon - 1.0, POINTS).round())
    fall = [(n + 1.0) * (radius(n, 0.0, *params) - radius(n + 1.0, 0.0, *params)) for n in grid.tolist()]
    outcomes = problem.noise.outcomes
    if outcomes is None:
        sd = np.full(means.size, problem.noise.sd(problem.means))
    else:
        sd = np.sqrt((means - outcomes[0]) * (outcomes[1] - means))
    sd = np.maximum(sd, CERTAIN)[:, None]
    ends = np.clip(np.array(fall) / sd, 0.0, 1.0)  # a lead, with this pull of the arm
    turns = _sum_to(pulls, grid, ends)
    total = turns.sum(axis=1)
    favourite = np.take_along_axis(turns, pulls.argmax(axis=1)[:, None], axis=1)[:, 0]
    changes = float(np.minimum(total, 2.0 * (total - favourite)).mean())
    if outcomes is None:
        return changes, 0.0
    unit = outcomes[1] - outcomes[0]
    some = np.arange(0, means.size, -(-means.size // MOST_TIED))
    each = means.size / some.size
    same = np.zeros((some.size, grid.size))
    for arm in some:
        apart = (means[some, None] - means[arm]) / (2.0 * sd[some])
        same += np.exp(-grid * apart * apart)
    same = (each * same - 1.0) / np.maximum(1.0, 2.0 * sd[some] / unit * np.sqrt(np.pi * grid))  # but itself
    tied = ends[some] ** 2 * 0.5 * np.clip(same, 0.0, 1.0)
    return changes, each * float(_sum_to(pulls[:, some], grid, tied).sum(axis=1).mean())


def _sum_to(last: Counts, grid: Floats, rates: Floats) -> Floats:
    """The sums of the arms' rates over 1, 2, ... up to each of `last`, with rates known on a grid."""
    parts = np.diff(grid) * 0.5 * (rates[:, 1:] + rates[:, :-1])
    sums = rates[:, :1] + np.pad(parts.cumsum(axis=1), ((0, 0), (1, 0)))
    place = np.clip(np.searchsorted(grid, last, side="right") - 1, 0, grid.size - 2)
    share = np.clip((last - grid[place]) / (grid[place + 1] - grid[place]), 0.0, 1.0)
    arm = np.arange(last.shape[1])
    found: Floats = sums[arm, place] * (1.0 - share) + sums[arm, place + 1] * share
    return found


def pilots(policy: Policy, problem: Bandit, horizon: int) -> Pilots:
    """A few paths that skip ahead, with a fixed seed: fewer of them where each takes long."""
    from lighttail.kernels import skip_kernel_for, stream
    from lighttail.kernels.errors import compilable, parts_of

    kernel = skip_kernel_for(policy, problem)
    params, world = policy.params(horizon, problem.arms), problem.noise.world(problem.means)
    generator = block_generator(0, 0)
    before, looks = words_drawn(generator), np.zeros(2, dtype=np.int64)
    pulls = np.empty((0, problem.arms), dtype=np.int64)
    paths = FEWEST_PILOTS
    while len(pulls) < MOST_PILOTS and words_drawn(generator) - before < PILOT_NUMBERS:
        more = np.empty((paths, problem.arms), dtype=np.int64)
        with compilable(*parts_of(policy, problem)):
            kernel(stream(generator), params, world, horizon, np.empty(paths), more, looks)
        pulls = np.concatenate([pulls, more])
        paths = len(pulls)
    return Pilots((words_drawn(generator) - before) / len(pulls), float(looks[1]) / len(pulls), pulls)


def words_drawn(generator: np.random.Generator) -> int:
    """Random words so far: SFC64 keeps a counter in its state."""
    state: Any = generator.bit_generator.state
    return int(state["state"]["state"][3])
