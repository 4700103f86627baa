"""Blocks of paths: what a simulation plays, and how one block is played."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lighttail.checks import BadInput
from lighttail.course import STRAIGHT, Course
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.random.streams import block_generator
from lighttail.records import Record
from lighttail.running.methods import Played

BLOCK_PULLS = 1 << 19  # about so many pulls per block, a millisecond or more of work
SKIP_PATHS = 64  # paths per block where the cost of a path hardly depends on the horizon
PROBE_PATHS = 2
PROBE_PULLS = 64  # beyond one per arm
PlayBlock = Callable[[int, Record, Any], None]
Keep = Literal["paths", "law"]


@dataclass(frozen=True)
class Play:
    """One simulation, checked and chosen: whoever plays it reads this and asks nothing again.

    size: paths per block. keep: "paths" or "law".
    """

    policy: Policy
    problem: Problem
    horizon: int
    paths: int
    seed: int
    method: Played
    size: int
    keep: Keep = "paths"
    course: Course = STRAIGHT

    @property
    def blocks(self) -> int:
        return math.ceil(self.paths / self.size)

    def rows(self, first: int, until: int) -> slice:
        """The paths of blocks first to until - 1."""
        return slice(first * self.size, min(self.paths, until * self.size))


def block_paths(horizon: int, method: str = "step", dear: int = 1) -> int:
    """Paths per block: part of what a seed means, so it depends on what is played alone.

    dear: pulls of an arm that cost as much as a pull of the problem.
    """
    if method == "skip":
        return SKIP_PATHS
    return max(1, min(4096, BLOCK_PULLS // (dear * horizon)))


def block_player(play: Play) -> PlayBlock:
    """The function play_block(block, record, stop), which fills in the paths of one block.

    Its kernel is compiled here, or loaded from the cache.
    A block's random numbers depend on the seed and the block's number alone.
    """
    from lighttail.kernels import kernel_for, late_kernel_for, skip_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms

    policy, problem, horizon, seed, course = play.policy, play.problem, play.horizon, play.seed, play.course
    params, world = policy.params(course.known_horizon(horizon), problem.size), problem.world()
    more: tuple[Any, ...] = ()
    kernel: Any

    def play_block(block: int, record: Record, stop: Any) -> None:
        generator = block_generator(seed, block)  # is to live as long as the kernel draws from it
        try:
            kernel(stream(generator), params, world, horizon, record.reward, record.table, stop, *more)
        except Exception as error:
            raise told(error, policy, problem) from None
        if stop[0]:
            check_arms(policy, stop)

    try:
        if course.late:
            rule = policy.rule()
            kernel = late_kernel_for(policy, problem, course.delay)
            more = course.arguments(horizon, problem.size, rule.notes, rule.memo)
        else:
            kernel = (skip_kernel_for if play.method == "skip" else kernel_for)(policy, problem)
    except Exception as error:
        raise told(error, policy, problem) from None
    play_block(0, problem.room(0), np.zeros(1, dtype=np.int64))
    return play_block


def told(error: Exception, policy: Policy, problem: Problem) -> Exception:
    """An error out of a kernel: one sentence if an author's class is the cause, otherwise the error."""
    from lighttail.kernels.errors import compilable, parts_of

    try:
        with compilable(*parts_of(policy, problem)), within_arrays(policy):
            raise error
    except Exception as found:
        return found


@contextmanager
def within_arrays(policy: Policy) -> Iterator[None]:
    """A sentence in place of the error of a rule that left its arrays in compiled code."""
    try:
        yield
    except IndexError:
        name = type(policy).__name__
        raise BadInput(f"choose and learn of {name} must stay within their arrays, but did not") from None


def probe_of(
    policy: Policy, problem: Problem, horizon: int, method: Played, course: Course = STRAIGHT
) -> bytes:
    """The first pulls of two paths to the bit, and the fingerprint: a worker with other formulas, versions
    or mathematical functions gets others, and is found out before its results are mixed with anyone's."""
    begun = 0 if course.start is None else course.start.rounds
    short, record = min(horizon, begun + PROBE_PULLS + problem.opening), problem.room(PROBE_PATHS)
    play = Play(policy, problem, short, PROBE_PATHS, 0, method, PROBE_PATHS, course=course)
    block_player(play)(0, record, np.zeros(1, dtype=np.int64))
    return record.tobytes() + fingerprint(policy, problem, horizon)


def fingerprint(policy: Policy, problem: Problem, horizon: int) -> bytes:
    """The numbers that the kernels are handed, and the bonus all the way to the horizon, as text."""
    numbers: list[Any] = [policy.params(horizon, problem.size)]
    for part in problem.numbers:
        numbers.append(hashlib.sha256(part.tobytes()).hexdigest() if isinstance(part, np.ndarray) else part)
    bonus: Any = getattr(policy, "bonus", None)
    if hasattr(bonus, "sample"):
        numbers += bonus.sample(horizon, problem.size)
    return repr(numbers).encode()
