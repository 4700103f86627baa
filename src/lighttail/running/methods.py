"""How a simulation is played: pull by pull, or skipping ahead where the law stays the same.

docs/skip-ahead.md says how skipping works; here is when it is possible and when it pays.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from lighttail.checks import one_of, refuse
from lighttail.policies import Policy
from lighttail.policies.rehearsal import shipped
from lighttail.problems import Bandit, Problem
from lighttail.random.streams import block_generator, draws_made

Method = Literal["auto", "step", "skip"]
Played = Literal["step", "skip"]
# Pulls, one by one, that take as long as one random number of a path that skips ahead, by `plays_by`: fitted
# to times of settings drawn at random (docs/skip-ahead.md, section 6).
PULLS_PER_NUMBER = {"radius": 3.0, "phases": 1.0}
SHORT = 1000  # below this horizon a path takes microseconds either way: always pull by pull
LONGEST_TRIED = 10**7  # pulls of a pilot path, which takes a second or two where skipping does not pay
PILOTS = 16  # pilot paths at most
PILOT_NUMBERS = 1 << 16  # random numbers of pilot paths after which no further one is played


def check_method(policy: Any, problem: Any, horizon: int, method: Any, late: bool = False) -> Method:
    """Refuse a method that there is not, and a bonus that is not what it declares."""
    method = one_of("method", method, get_args(Method))
    if method == "step" or (late and method == "auto"):
        return "step"
    obstacle = "with rewards that come late, or a start" if late else why_not_skip(policy, problem)
    if method == "skip" and obstacle:
        raise refuse("method", method, f"'auto' or 'step' {obstacle}")
    if not obstacle and policy.plays_by == "radius":
        policy.bonus.check_concave(horizon, problem.arms)
    return method  # type: ignore[no-any-return]


def choose_method(policy: Policy, problem: Any, horizon: int, method: Method) -> Played:
    """The method to play with: the faster one for "auto", by a rule that no clock and no seed enters."""
    if method != "auto":
        return method
    return "skip" if work_of(policy, problem, horizon) < horizon else "step"


def work_of(policy: Policy, problem: Any, horizon: int) -> float:
    """What a path costs with the faster method, in pulls that are played one by one.

    Pull by pull that is the horizon. Skipping ahead it is `PULLS_PER_NUMBER` times the random numbers of
    a path, which are counted at a horizon of `LONGEST_TRIED` at most.
    """
    if horizon < SHORT or why_not_skip(policy, problem):
        return float(horizon)
    tried = min(horizon, LONGEST_TRIED)
    work = PULLS_PER_NUMBER[policy.plays_by] * numbers_drawn(policy, problem, tried)
    return work if work < tried else float(horizon)


def why_not_skip(policy: Any, problem: Problem) -> str:
    """What keeps a policy on a problem from skipping ahead; empty if nothing does."""
    noise = problem.noise
    if policy.plays_by not in PULLS_PER_NUMBER or not shipped(policy):
        return f"with {policy}, which draws or learns anew at every pull"
    if noise.total is None or (policy.plays_by == "radius" and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if noise.certain:
        return "with sigma 0, where every decision is a matter of rounding"
    if policy.plays_by == "radius" and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def numbers_drawn(policy: Policy, problem: Bandit, horizon: int) -> float:
    """Random numbers per path that skips ahead: the mean over a few pilot paths with a fixed seed."""
    from lighttail.kernels import skip_kernel_for, stream
    from lighttail.kernels.errors import compilable, parts_of

    params, world = policy.params(horizon, problem.arms), problem.noise.world(problem.means)
    generator, stop = block_generator(0, 0), np.zeros(1, dtype=np.int64)
    reward, pulls = np.empty(1), np.empty((1, problem.arms), dtype=np.int64)
    before, paths = draws_made(generator), 0
    with compilable(*parts_of(policy, problem)):
        kernel = skip_kernel_for(policy, problem)
        while paths < PILOTS and draws_made(generator) - before < PILOT_NUMBERS:
            kernel(stream(generator), params, world, horizon, reward, pulls, stop)
            paths += 1
    return (draws_made(generator) - before) / paths
