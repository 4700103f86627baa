"""How a simulation is played: pull by pull, or skipping ahead where the law stays the same.

docs/skip-ahead.md says how skipping works; here is when it is possible and when it pays.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from lighttail.policies import UCB, Policy, SuccessiveElimination
from lighttail.problems import Bandit, Bernoulli, Gaussian, Noise
from lighttail.streams import block_generator
from lighttail.validation import BadInput, refuse

Method = Literal["auto", "step", "skip"]
Played = Literal["step", "skip"]
SHORT = 1000  # below this horizon a path takes microseconds either way: always pull by pull
TABLE = 1 << 16  # rounds whose clock the paths of a block share when every pull is played
NUMBER_PULLS = 10.0  # about what a random number of skip-ahead costs beside a pull
PILOTS = 16  # paths that are played to see what skipping costs


def check_method(policy: Policy, problem: Any, horizon: int, method: Any) -> None:
    """Refuse a method that there is not, and a bonus that is not what it declares."""
    if method not in get_args(Method):
        raise refuse("method", method, "'auto', 'step' or 'skip'")
    if method == "step":
        return
    obstacle = why_not_skip(policy, problem)
    if method == "skip" and obstacle:
        raise BadInput(f"method must be 'auto' or 'step' {obstacle}, but is 'skip'")
    if not obstacle and isinstance(policy, UCB):
        policy.bonus.check_concave(horizon, problem.arms)


def choose_method(policy: Policy, problem: Any, horizon: int, method: Method) -> Played:
    """The method to play with: the faster one for "auto", by a rule that no clock and no seed enters."""
    if method != "auto":
        return method
    if horizon < SHORT or why_not_skip(policy, problem):
        return "step"
    return "skip" if pays(policy, problem, horizon) else "step"


def work_of(policy: Policy, problem: Any, horizon: int) -> float:
    """What a path costs with the faster method, in pulls: the horizon at most."""
    if choose_method(policy, problem, horizon, "auto") == "step":
        return float(horizon)
    return max(1.0, min(float(horizon), NUMBER_PULLS * _pilot(policy, problem, horizon)[0]))


def why_not_skip(policy: Policy, problem: Bandit) -> str:
    """What keeps a policy on a problem from skipping ahead; empty if nothing does."""
    noise = problem.noise
    if not isinstance(policy, (UCB, SuccessiveElimination)):
        return f"with {policy}, which draws or learns anew at every pull"
    if not sums_are_drawn(type(noise)) or (isinstance(policy, UCB) and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if isinstance(noise, Gaussian) and noise.sigma == 0.0:
        return "with sigma 0, where every decision is a matter of rounding"
    if isinstance(policy, UCB) and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def sums_are_drawn(noise: type[Noise]) -> bool:
    """Whether a noise draws sums of its own rewards, and not those of a class whose rewards it changed."""
    if noise.total is None:
        return False
    depth = {
        name: next(place for place, kind in enumerate(noise.__mro__) if name in vars(kind))
        for name in ("shock", "reward", "total")
    }
    return depth["total"] <= min(depth["shock"], depth["reward"])


def pays(policy: Policy, problem: Bandit, horizon: int) -> bool:
    """Whether skipping ahead costs less, at this horizon or at a shorter one, where pilots cost less.

    The work of skipping is measured in random numbers, which are counted and not timed: a few
    pilot paths with a fixed seed. The costs of each in NumPy draws were measured once.
    """
    pilot = SHORT
    while pilot < horizon:
        if _cheaper(policy, problem, pilot):
            return True
        pilot *= 4
    return _cheaper(policy, problem, horizon)


def _cheaper(policy: Any, problem: Bandit, horizon: int) -> bool:
    numbers, others = _pilot(policy, problem, horizon)
    bonus = type(policy.bonus)
    counts = isinstance(problem.noise, Bernoulli)
    if isinstance(policy, SuccessiveElimination):  # numbers are pulls, but for the sum of the last arm
        return numbers * 1.35 + 300.0 < horizon if counts else numbers * 1.15 < horizon
    if bonus.changes_with_time():
        return numbers * (3.2 if horizon <= TABLE else 2.6) < horizon
    root = bool(bonus.radius.__code__.co_names)  # a square root in the formula
    if counts:
        # A number that decides one reward is cheap; of long blocks, a count takes several and logarithms.
        number = 5.3 - 4.0 * min(0.5, numbers / horizon)
        pulls = horizon * (0.72 if root else 0.4) + others * (1.73 + 0.024 * problem.arms)
        return numbers * number < pulls
    return numbers * 5.0 < horizon * (0.8 if root else 0.45) + others * 1.6


def _pilot(policy: Policy, problem: Bandit, horizon: int) -> tuple[float, float]:
    """Random numbers that a path takes, and its pulls of other arms than its favourite."""
    from lighttail.kernels import skip_kernel_for, stream

    generator = block_generator(0, 0)
    reward, pulls = np.empty(PILOTS), np.empty((PILOTS, problem.arms), dtype=np.int64)
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
    return (words_drawn(generator) - before) / PILOTS, horizon - float(pulls.max(axis=1).mean())


def words_drawn(generator: np.random.Generator) -> int:
    """Random words so far: SFC64 keeps a counter in its state."""
    state: Any = generator.bit_generator.state
    return int(state["state"]["state"][3])
