"""Paths that continue from a state while a window keeps rewards back: the delay depends on the reward.

A success that is told at once and a failure that is told when the window is over make an arm that is pulled a
lot look too good.
"""

from __future__ import annotations

from typing import Any

from lighttail.kernels.beginning import move
from lighttail.kernels.build import Formula, inlined, inner, kernel_maker
from lighttail.kernels.generic import late_paths
from lighttail.random.streams import uniform
from lighttail.rules import Rule

PATIENCE = 200  # draws of a reward and its delay until the delay is as long as the trial has been open


@kernel_maker
def windowed_kernel(rule: Rule, shock: Formula, reward: Formula) -> Any:
    """waits: the reward with which the window closes a trial, and two rows of delays in pulls, for rewards
    that equal this reward and for other rewards. Each delay of a row is equally likely."""

    @inlined
    def delay_of(rng: Any, value: Any, waits: Any) -> Any:
        default, rows = waits
        row = 0 if value == default else 1
        return rows[row, int(uniform(rng) * rows.shape[1])]

    @inner
    def drawn_open(rng: Any, world: Any, arm: Any, age: Any, waits: Any) -> Any:
        """A reward that would have been told is drawn again."""
        for _ in range(PATIENCE):
            value = reward(shock(rng, *world), arm, *world)
            delay = delay_of(rng, value, waits)
            if delay >= age:
                return value, delay
        return waits[0], age  # the window is over

    return late_paths(rule, shock, reward, delay_of, drawn_open, move)
