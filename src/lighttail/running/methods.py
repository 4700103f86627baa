"""How a simulation is played: pull by pull, or skipping ahead with the same law.

docs/skip-ahead.md explains how skipping works; this module decides when it is possible and faster.
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
# How many pulls, played one by one, take as long as one random number of a path that skips ahead, by
# `plays_by`: fitted to the times of settings drawn at random (docs/skip-ahead.md, section 6).
PULLS_PER_NUMBER = {"radius": 3.0, "phases": 1.0}
SHORT = 1000  # below this horizon a path takes microseconds either way: always pull by pull
LONGEST_TRIED = 10**7  # pulls of a pilot path, which takes a second or two if skipping is slower
PILOTS = 16  # pilot paths, at most
SQUARED = 1e-140, 1e140  # the noises whose squares, and products of such squares, are floating-point numbers
PILOT_NUMBERS = 1 << 16  # random numbers after which no further pilot path is played


def check_method(policy: Any, problem: Any, horizon: int, method: Any, late: bool = False) -> Method:
    """Raise BadInput if the method is unknown or impossible, or if a bonus is not concave as declared."""
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
    """The method to play with; for "auto" the faster one, by a rule that depends on no clock and no seed."""
    if method != "auto":
        return method
    return "skip" if work_of(policy, problem, horizon) < horizon else "step"


def work_of(policy: Policy, problem: Any, horizon: int) -> float:
    """The cost of a path with the faster method, in pulls that are played one by one.

    With the method "step" the cost is the horizon. With "skip" it is `PULLS_PER_NUMBER` times the random
    numbers of a path, which are counted at a horizon of at most `LONGEST_TRIED`.
    """
    if horizon < SHORT or why_not_skip(policy, problem):
        return float(horizon)
    tried = min(horizon, LONGEST_TRIED)
    work = PULLS_PER_NUMBER[policy.plays_by] * numbers_drawn(policy, problem, tried)
    return work if work < tried else float(horizon)


def why_not_skip(policy: Any, problem: Problem) -> str:
    """The reason why a policy cannot skip ahead on a problem; empty if it can."""
    noise = problem.noise
    if policy.plays_by not in PULLS_PER_NUMBER or not shipped(policy):
        return f"with {policy}, which draws or learns anew at every pull"
    if noise.total is None or (policy.plays_by == "radius" and noise.clear is None):
        return f"with {type(noise).__name__} noise, whose sums are not drawn at once"
    if noise.certain:
        return "with sigma 0, where every decision is a matter of rounding"
    sigma = noise.normal
    if sigma is None and noise.proxy is not None:
        sigma = noise.proxy(*problem.world())
    if sigma is not None and not SQUARED[0] <= sigma <= SQUARED[1]:
        return f"with a noise of {sigma:g}, whose variance no floating-point number holds"
    if policy.plays_by == "radius" and not policy.bonus.concave:
        return f"with {policy.bonus}, which does not declare that n * radius(n) is concave"
    return ""


def numbers_drawn(policy: Policy, problem: Bandit, horizon: int) -> float:
    """Random numbers per path that skips ahead: the mean over a few pilot paths with a fixed seed."""
    from lighttail.kernels import skip_kernel_for, stream
    from lighttail.kernels.errors import compilable, parts_of

    params, world, record = policy.params(horizon, problem.arms), problem.world(), problem.room(1)
    generator, stop = block_generator(0, 0), np.zeros(1, dtype=np.int64)
    before, paths = draws_made(generator), 0
    with compilable(*parts_of(policy, problem)):
        kernel = skip_kernel_for(policy, problem)
        while paths < PILOTS and draws_made(generator) - before < PILOT_NUMBERS:
            kernel(stream(generator), params, world, horizon, record.reward, record.table, stop)
            paths += 1
    return (draws_made(generator) - before) / paths
