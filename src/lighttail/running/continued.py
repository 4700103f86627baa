"""Paths that continue from a state, each on a problem of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import refuse
from lighttail.course import Beginning, Course
from lighttail.delays import DelayLike, as_delay
from lighttail.noises import Noise
from lighttail.problems import Bandit
from lighttail.random.streams import block_generator
from lighttail.records import Floats, Ints
from lighttail.running.blocks import in_sentences
from lighttail.running.pool import run_blocks
from lighttail.running.prepare import SHORT, choose_method, why_not_skip

TOGETHER = 100  # paths per task of a thread, which share a generator
MANY_OPEN = 100  # open trials from which on their rewards are added as sums, if the policy keeps only sums
Play = Callable[[int, int], int]  # see `run_blocks`


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
    window: Window | None = None,
) -> Ints:
    """The pulls of each arm, [path, arm], those of `start` included.

    means: [path, arm]; a path continues from `start` on the problem of its row. The random numbers of a path
    depend only on the seed and on the number of the path. delay: of the rewards; without one, all rewards
    come at once, those of open trials included. floors: arms that are pulled with a chance of their own,
    whatever the policy chooses; refused with a delay, and for a noise that does not move. window: in place
    of a delay; an open trial gets a reward that would not have been told yet.
    """
    late = delay is not None or not noise.moves
    if floors and late and window is None:
        why = "with a delay" if delay is not None else f"for {noise}, whose law does not move with the means"
        raise refuse("floors", list(floors), f"left out {why}")
    ends = _Ends(start, noise, means, horizon, seed)
    if window is not None:
        play = ends.windowed(floors, window)
    else:
        play = ends.play_late(delay) if late else ends.play_straight(floors)
    run_blocks(play, TOGETHER, means.shape[0], threads, ends.stop, lambda done, total: None)
    return ends.pulls


class _Ends:
    """Paths that continue from a state, each on the means of its row. `pulls`, [path, arm], is filled in."""

    def __init__(self, start: Beginning, noise: Noise, means: Floats, horizon: int, seed: int) -> None:
        self.start, self.noise, self.means, self.horizon, self.seed = start, noise, means, horizon, seed
        self.policy, self.arms = start.policy, means.shape[1]
        self.params = self.policy.params(start.horizon, self.arms)
        self.example = Bandit(tuple(means[0].tolist()), noise)
        self.pulls = np.zeros(means.shape, dtype=np.int64)
        self.stop = np.zeros(1, dtype=np.int64)

    def play_straight(self, floors: Sequence[tuple[int, float]]) -> Play:
        """Plays rows of paths whose rewards come at once: many paths per call of a kernel."""
        from lighttail.kernels import continuing_kernel_for  # imports numba

        start, opened = self.start, self.start.opened
        leaping = not floors and pays(start, self.example, self.horizon)
        summed = leaping or (self.policy.amendable and len(opened) > MANY_OPEN)
        counts = np.bincount(opened[:, 0].astype(np.int64), minlength=self.arms).astype(np.float64)
        state = start.counts, start.note, opened, start.memos, counts if summed else np.zeros(0)
        held = _added(floors, self.arms)
        with in_sentences(self.policy, self.example):
            kernel = continuing_kernel_for(self.policy, self.example, leaping, bool(floors))
        return partial(self._rows, kernel, lambda means: (start.rounds, (means, *state), *held))

    def windowed(self, floors: Sequence[tuple[int, float]], window: Window) -> Play:
        """Plays rows of paths whose rewards a window keeps back."""
        from lighttail.kernels import windowed_kernel_for  # imports numba

        start = self.start
        ring = int(min(window.waits.max(), max(1, self.horizon - start.rounds))) + 3
        state = start.rounds, start.counts, start.note, start.opened, start.memos
        waits = (window.default, window.waits), 1, ring
        held = _added(floors, self.arms)
        with in_sentences(self.policy, self.example):
            kernel = windowed_kernel_for(self.policy, self.example)
        return partial(self._rows, kernel, lambda means: (*waits, *state, means, *held))

    def play_late(self, delay: DelayLike) -> Play:
        """Plays paths whose rewards come late, or whose noise does not move with the means: one by one."""
        from lighttail.kernels import late_kernel_for  # imports numba

        rule = self.policy.rule()
        course = Course(Course().delay if delay is None else as_delay(delay), start=self.start)
        more = course.arguments(self.horizon, self.arms, rule.notes, rule.memo)
        with in_sentences(self.policy, self.example):
            kernel = late_kernel_for(self.policy, self.example)

        def play(block: int, until: int) -> int:
            begin, record = block * TOGETHER, self.example.room(1)
            for path in range(begin, until):
                room = self.horizon, record.reward, record.table, self.stop
                self._call(kernel, path, path, *room, *more)
                if self.stop[0]:
                    break
                self.pulls[path] = record.table[0]
            return until - begin

        return play

    def _rows(self, kernel: Any, more: Callable[[Floats], tuple[Any, ...]], block: int, until: int) -> int:
        """Play the paths of a block up to until - 1. more: the last arguments of the kernel, from the means
        of the paths."""
        begin = block * TOGETHER
        rows = slice(begin, until)
        room = self.horizon, np.empty(until - begin), self.pulls[rows], self.stop
        self._call(kernel, block, begin, *room, *more(self.means[rows]))
        return until - begin

    def _call(self, kernel: Any, block: int, path: int, *arguments: Any) -> None:
        """Call a kernel with the random numbers of this block and the noise of this path."""
        from lighttail.kernels import stream
        from lighttail.kernels.errors import check_arms

        generator = block_generator(self.seed, block)  # must live as long as the kernel draws from it
        world = self.noise.world(tuple(self.means[path].tolist()))
        with in_sentences(self.policy, self.example):
            kernel(stream(generator), self.params, world, *arguments)
        if self.stop[0]:
            check_arms(self.policy, self.stop)


def pays(start: Beginning, example: Bandit, horizon: int) -> bool:
    """Whether paths can skip ahead from this state, and are so long that it is faster, by the number of
    random numbers of paths that skip from the first pull on (`work_of`).

    The law of a skipped path is that of rewards of 0 or 1, or of normal rewards. Sums of other rewards
    between 0 and 1 are no whole numbers, so their paths are played pull by pull.
    """
    if horizon - start.rounds < max(SHORT, example.dim) or why_not_skip(start.policy, example):
        return False
    if start.policy.plays_by != "radius" or not start.policy.amendable:
        return False
    if example.noise.outcomes is not None and not (start.counts[2] % 1.0 == 0.0).all():
        return False
    return choose_method(start.policy, example, horizon, "auto") == "skip"


def _added(floors: Sequence[tuple[int, float]], arms: int) -> tuple[Floats, ...]:
    """The last argument of a kernel: the floors of all arms, added up from the first arm on, if there are
    any."""
    shares = np.zeros(arms)
    for arm, share in floors:
        shares[arm] = share
    return (np.cumsum(shares),) if floors else ()
