"""Exact answers to a task: which laws there are, what they take, and the cheapest of them."""

from __future__ import annotations

import math
from collections.abc import Callable

from lighttail.checks import BadInput
from lighttail.tails.exact import exact_seconds, exact_tail, why_not_exact
from lighttail.tails.groups import has_law
from lighttail.tails.programme import has_programme, programme_seconds, programme_tail, why_not_programme
from lighttail.tails.task import Task

UCB_ALONE = "an exact law is known only for UCB with a bonus that does not change with time"
ERROR = 1e-5  # relative error of an exact law that is integrated


def exact_way(task: Task) -> tuple[float, Callable[[], float]] | BadInput:
    """(seconds, how) of the cheapest exact answer, or the refusal where there is none."""
    settings = (task.policy, task.problem, task.horizon)
    ways: list[tuple[float, Callable[[], float]]] = []
    why = why_not_programme(*settings, task.kind)
    if why is None:
        seconds = programme_seconds(*settings, task.kind)
        ways.append((seconds, lambda: programme_tail(*settings, task.target, task.kind)))
    if not task.whole:
        why_no_law = why_not_exact(*settings)
        if why_no_law is None:
            seconds = exact_seconds(*settings, task.regret)
            ways.append((seconds, lambda: exact_tail(*settings, task.regret)))
        why = _why_not(task, why_no_law)
    ways = [way for way in ways if math.isfinite(way[0])]
    if ways:
        return min(ways, key=lambda way: way[0])
    return why or BadInput("there is no exact law for this task", field="policy", value=task.policy)


def _why_not(task: Task, why: BadInput | None) -> BadInput | None:
    """The same, but for a policy that has an exact law with coins: then the noise is the obstacle."""
    if why is None or has_law(task.policy) or not has_programme(task.policy):
        return why
    if why_not_programme(task.policy, task.problem, task.horizon, task.kind) is None:
        return why
    noise, policy = task.problem.noise, task.policy
    also = f"with Bernoulli rewards at short horizons also for {policy}"
    return BadInput(f"with {noise!r} rewards {UCB_ALONE}; {also}", field="noise", value=noise)
