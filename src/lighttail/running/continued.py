"""Paths that continue from a state, each on a problem of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse
from lighttail.course import Beginning, Course
from lighttail.delays import DelayLike, as_delay
from lighttail.noises import Noise
from lighttail.problems import Bandit
from lighttail.random.streams import block_generator
from lighttail.running.blocks import in_sentences
from lighttail.running.pool import AHEAD, threads_of, work_on
from lighttail.running.prepare import SHORT, choose_method, why_not_skip

Floats = npt.NDArray[np.float64]
TOGETHER = 100  # paths per task of a thread, which share a generator
MANY_OPEN = 100  # open trials from which on their rewards are added as sums, if the policy keeps only sums
Play = Callable[[int, int], None]


class Window(NamedTuple):
    """How long rewards take while a window keeps them back: the delay depends on the reward.

    default: the reward with which the window closes a trial. waits: two rows of delays in pulls, of rewards
    that equal the default and of other rewards; each delay of a row is equally likely.
    """

    default: float
    waits: Floats


def continued(
    start: Beginning,
    noise: Noise,
    means: Floats,
    horizon: int,
    *,
    seed: int,
    threads: int = 1,
    delay: DelayLike = None,
    floors: Sequence[tuple[int, float]] = (),
    skip: bool = True,
    window: Window | None = None,
) -> npt.NDArray[np.int64]:
    """The pulls of each arm, [path, arm], those of `start` included.

    means: [path, arm]; a path continues from `start` on the problem of its row. The random numbers of a path
    depend only on the seed and on the number of the path. delay: of the rewards; without one, all rewards
    come at once, those of open trials included. floors: arms that are pulled with a chance of their own,
    whatever the policy chooses; refused with a delay, and for a noise that does not move. skip: whether a
    path may skip ahead, which has the same law. window: in place of a delay; an open trial gets a reward that
    would not have been told yet.
    """
    paths, arms = means.shape
    pulls = np.zeros((paths, arms), dtype=np.int64)
    stop = np.zeros(1, dtype=np.int64)
    late = delay is not None or not noise.moves
    if floors and late and window is None:
        why = "with a delay" if delay is not None else f"for {noise}, whose law does not move with the means"
        raise refuse("floors", list(floors), f"left out {why}")
    make = _windowed if window is not None else _late if late else _straight
    more: dict[str, Any] = {"delay": delay} if late else {"floors": floors, "skip": skip}
    more = more if window is None else {"floors": floors, "window": window}
    play: Play = make(start, noise, means, horizon, seed, pulls, stop, **more)

    def send(pool: Any, first: int, attempt: int) -> Future[None]:
        return pool.submit(play, first, min(paths, first + TOGETHER))  # type: ignore[no-any-return]

    def halt() -> None:
        stop[0] = 1

    def ahead() -> int:
        return AHEAD * threads

    def done(first: int, result: None) -> None:
        """Nothing is left to do: the pulls are in their rows."""

    work_on(threads_of(threads), range(0, paths, TOGETHER), send, done, window=ahead, halt=halt)
    return pulls


def _straight(
    start: Beginning,
    noise: Noise,
    means: Floats,
    horizon: int,
    seed: int,
    pulls: Any,
    stop: Any,
    floors: Sequence[tuple[int, float]],
    skip: bool,
) -> Play:
    """Plays rows of paths whose rewards come at once: many paths per call of a kernel."""
    from lighttail.kernels import continuing_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms

    policy, arms = start.policy, means.shape[1]
    params, first = policy.params(Course(start=start).known_horizon(horizon), arms), start.rounds
    example = Bandit(tuple(means[0].tolist()), noise)
    leaping = skip and not floors and pays(start, example, horizon)
    opened = np.bincount(start.opened[:, 0].astype(np.int64), minlength=arms).astype(np.float64)
    summed = leaping or (policy.amendable and len(start.opened) > MANY_OPEN)
    rest = (start.note, start.opened, start.memos, opened if summed else np.zeros(0), _added(floors, arms))
    with in_sentences(policy, example):
        kernel = continuing_kernel_for(policy, example, leaping, bool(floors))

    def play(begin: int, end: int) -> None:
        generator = block_generator(seed, begin // TOGETHER)  # must live as long as the kernel draws from it
        world = noise.world(tuple(means[begin].tolist()))
        rows = means[begin:end], start.counts, *rest
        with in_sentences(policy, example):
            kernel(stream(generator), params, world, first, horizon, pulls[begin:end], stop, *rows)
        if stop[0]:
            check_arms(policy, stop)

    return play


def pays(start: Beginning, example: Bandit, horizon: int) -> bool:
    """Whether paths can skip ahead from this state, and are so long that it is faster, by the number of
    random numbers of paths that skip from the first pull on (`work_of`).

    The law of a skipped path is that of rewards of 0 or 1, or of normal rewards. Sums of other rewards
    between 0 and 1 are no whole numbers, so their paths are played pull by pull.
    """
    if horizon - start.rounds < max(SHORT, example.size) or why_not_skip(start.policy, example):
        return False
    if start.policy.plays_by != "radius" or not start.policy.amendable:
        return False
    if example.noise.outcomes is not None and not (start.counts[2] % 1.0 == 0.0).all():
        return False
    return choose_method(start.policy, example, horizon, "auto") == "skip"


def _added(floors: Sequence[tuple[int, float]], arms: int) -> Floats:
    """The floors of all arms, added up from the first arm on; empty if there are none."""
    if not floors:
        return np.zeros(0)
    shares = np.zeros(arms)
    for arm, share in floors:
        shares[arm] = share
    return np.cumsum(shares)


def _windowed(
    start: Beginning,
    noise: Noise,
    means: Floats,
    horizon: int,
    seed: int,
    pulls: Any,
    stop: Any,
    floors: Sequence[tuple[int, float]],
    window: Window,
) -> Play:
    """Plays rows of paths whose rewards a window keeps back."""
    from lighttail.kernels import stream, windowed_kernel_for  # imports numba
    from lighttail.kernels.errors import check_arms

    policy, arms, first = start.policy, means.shape[1], start.rounds
    params = policy.params(Course(start=start).known_horizon(horizon), arms)
    example = Bandit(tuple(means[0].tolist()), noise)
    ring = int(min(window.waits.max(), max(1, horizon - first))) + 2
    rest = (start.counts, start.note, start.opened, start.memos, _added(floors, arms))
    with in_sentences(policy, example):
        kernel = windowed_kernel_for(policy, example)

    def play(begin: int, end: int) -> None:
        generator = block_generator(seed, begin // TOGETHER)  # must live as long as the kernel draws from it
        world = noise.world(tuple(means[begin].tolist()))
        rows = means[begin:end], *rest, window.default, window.waits, ring
        with in_sentences(policy, example):
            kernel(stream(generator), params, world, first, horizon, pulls[begin:end], stop, *rows)
        if stop[0]:
            check_arms(policy, stop)

    return play


def _late(
    start: Beginning,
    noise: Noise,
    means: Floats,
    horizon: int,
    seed: int,
    pulls: Any,
    stop: Any,
    delay: DelayLike,
) -> Play:
    """Plays paths whose rewards come late, or whose noise does not move with the means: one by one."""
    from lighttail.kernels import late_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms

    policy, rule = start.policy, start.policy.rule()
    course = Course(Course().delay if delay is None else as_delay(delay), start=start)
    arms = means.shape[1]
    more = course.arguments(horizon, arms, rule.notes, rule.memo)
    params = policy.params(course.known_horizon(horizon), arms)
    example = Bandit(tuple(means[0].tolist()), noise)
    with in_sentences(policy, example):
        kernel = late_kernel_for(policy, example)

    def play(begin: int, end: int) -> None:
        record = example.room(1)
        for path in range(begin, end):
            generator = block_generator(seed, path)  # must live as long as the kernel draws from it
            world = noise.world(tuple(means[path].tolist()))
            with in_sentences(policy, example):
                kernel(stream(generator), params, world, horizon, record.reward, record.table, stop, *more)
            if stop[0]:
                check_arms(policy, stop)
                break
            pulls[path] = record.table[0]

    return play
