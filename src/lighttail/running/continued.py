"""Paths that continue from a state, each on a problem of its own."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.course import Beginning, Course
from lighttail.delays import DelayLike, as_delay
from lighttail.noises import Noise
from lighttail.problems import Bandit
from lighttail.random.streams import block_generator
from lighttail.running.blocks import in_sentences
from lighttail.running.pool import AHEAD, threads_of, work_on

Floats = npt.NDArray[np.float64]
TOGETHER = 100  # paths per task of a thread


def continued(
    start: Beginning,
    noise: Noise,
    means: Floats,
    horizon: int,
    *,
    seed: int,
    threads: int = 1,
    delay: DelayLike = None,
) -> npt.NDArray[np.int64]:
    """The pulls of each arm, [path, arm], those of `start` included.

    means: [path, arm]; a path continues from `start` on the problem of its row. The random numbers of a path
    depend only on the seed and on the number of the path.
    """
    from lighttail.kernels import late_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms

    paths, arms = means.shape
    policy, rule = start.policy, start.policy.rule()
    course = Course(Course().delay if delay is None else as_delay(delay), start=start)
    more = course.arguments(horizon, arms, rule.notes, rule.memo)
    params = policy.params(course.known_horizon(horizon), arms)
    example = Bandit(tuple(means[0].tolist()), noise)
    pulls, stop = np.empty((paths, arms), dtype=np.int64), np.zeros(1, dtype=np.int64)
    with in_sentences(policy, example):
        kernel = late_kernel_for(policy, example)

    def play(first: int) -> int:
        record = example.room(1)
        for path in range(first, min(paths, first + TOGETHER)):
            generator = block_generator(seed, path)  # must live as long as the kernel draws from it
            world = noise.world(tuple(means[path].tolist()))
            with in_sentences(policy, example):
                kernel(stream(generator), params, world, horizon, record.reward, record.table, stop, *more)
            if stop[0]:
                check_arms(policy, stop)
                break
            pulls[path] = record.table[0]
        return first

    def send(pool: Any, first: int, attempt: int) -> Future[int]:
        return pool.submit(play, first)  # type: ignore[no-any-return]

    def halt() -> None:
        stop[0] = 1

    def window() -> int:
        return AHEAD * threads

    def done(first: int, result: int) -> None:
        """Nothing is left to do: the pulls are in their rows."""

    work_on(threads_of(threads), range(0, paths, TOGETHER), send, done, window=window, halt=halt)
    return pulls
