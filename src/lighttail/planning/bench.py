"""The bench of a plan: policies are played on problems, several at a time, with random numbers by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.running.pool import AHEAD, threads_of, work_on
from lighttail.running.simulate import simulate

Floats = npt.NDArray[np.float64]
Report = Callable[[str, int], None]


class Play(NamedTuple):
    """A policy on a problem. stage: plays of one stage on the same problem share their random numbers, so
    that policies are compared on the same luck as far as they can be; another stage has fresh ones."""

    policy: Policy
    problem: Bandit
    paths: int
    stage: int


@dataclass
class Bench:
    """Plays policies and counts what was played.

    late: the arguments delay and batch of `simulate`. report: is told (label, pulls so far). pulls: played so
    far. playing: seconds in `simulate`, added up over the threads.
    """

    horizon: int
    seed: int
    threads: int
    late: dict[str, Any] = field(default_factory=dict)
    report: Report | None = None
    pulls: int = 0
    playing: float = 0.0

    def losses(self, plays: Sequence[Play], label: str = "") -> list[Floats]:
        """The loss (pseudo regret) of every path of every play."""
        found: list[Floats] = [np.empty(0)] * len(plays)

        def send(pool: Any, turn: int, attempt: int) -> Future[tuple[Floats, float]]:
            return pool.submit(self._play, plays[turn])  # type: ignore[no-any-return]

        def done(turn: int, result: tuple[Floats, float]) -> None:
            found[turn], seconds = result
            self.playing += seconds
            self.count(plays[turn].paths * self.horizon, label)

        threads = min(self.threads, max(1, len(plays)))
        place = threads_of(threads)
        work_on(place, range(len(plays)), send, done, window=lambda: AHEAD * threads, halt=lambda: None)
        return found

    def count(self, pulls: int, label: str) -> None:
        """Add to what was played, and report it."""
        self.pulls += pulls
        if self.report is not None:
            self.report(label, self.pulls)

    def seed_of(self, problem: Bandit, stage: int) -> int:
        """A seed for each stage and each set of means."""
        return stage_seed(self.seed, stage, problem)

    def _play(self, play: Play) -> tuple[Floats, float]:
        begin = time.perf_counter()
        out = simulate(
            play.policy,
            play.problem,
            horizon=self.horizon,
            paths=play.paths,
            seed=self.seed_of(play.problem, play.stage),
            threads=1,
            **self.late,
        )
        return out.pseudo_regret, time.perf_counter() - begin


def stage_seed(seed: int, stage: int, problem: Bandit) -> int:
    """A seed that depends on the plan's seed, the stage and the means alone."""
    means = np.array(problem.means).view(np.uint32).tolist()
    entropy = np.random.SeedSequence([seed, stage, *means]).generate_state(2, np.uint64)
    return int(entropy[0]) << 64 | int(entropy[1])
