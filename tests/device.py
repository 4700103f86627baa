"""What the tests of the device share: a path's stream as plain Python draws from it, and the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

import lighttail as lt
from lighttail.gpu import draws


class PathStream(np.random.Generator):
    """The stream of one path in double precision, as a NumPy generator."""

    def __init__(self, seed: int, path: int) -> None:
        super().__init__(np.random.SFC64(0))
        state, spare = np.zeros(5, np.uint32), np.zeros(1)
        draws.begin(state, draws.seed_state(seed), np.uint64(path))
        self.rng = (state, spare)
        self.normal_of, self.uniform_of = draws.draws_for(np.float64, lambda function: function)

    def standard_normal(self, size: int | None = None):
        if size is not None:
            return np.array([self.standard_normal() for _ in range(size)])
        return float(self.normal_of(self.rng))

    def random(self) -> float:
        return float(self.uniform_of(self.rng))


def on_simulator(
    policy: lt.Policy,
    problem: lt.Bandit,
    horizon: int,
    paths: int,
    seed: int,
    precision: str = "float64",
    **course: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and pulls of these paths."""
    settings: Any = {"horizon": horizon, "paths": paths, "seed": seed, "precision": precision}
    out = lt.simulate(policy, problem, **settings, device="cuda", **course)
    return out.reward, out.pulls
