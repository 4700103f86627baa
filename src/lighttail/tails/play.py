"""How weighted paths are played: pull by pull, or skipping ahead (docs/rare-events.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lighttail.random.streams import block_generator, draws_made
from lighttail.records import Floats
from lighttail.running.blocks import Played, block_paths, in_sentences
from lighttail.running.pool import run_blocks
from lighttail.running.prepare import why_not_skip
from lighttail.system.progress import compiling, reporter
from lighttail.tails.mixture import Mixture
from lighttail.tails.task import Effort, Task

TILTED_SHORT = 8000  # shorter horizons are always played pull by pull, so that their seeds keep their numbers
TILTED_PILOTS = 16  # paths that show whether skipping ahead is faster
TILTED_PULLS_PER_NUMBER = 4.5 / 1.7  # tilted pulls that take as long as one random number of a skip
# How far the logarithm of a probability may be below the logarithm of the sum of all routes' shares: with two
# arms, and how much further with each further arm.
MARGIN, EACH = 14.0, 10.0


class Paths(NamedTuple):
    """What is kept of weighted paths; the last three fields only if paths are played pull by pull.

    own: the component that a path was drawn from. log_parts: the log-likelihood ratio of each group of
    components, -inf for a path that does not count. score: the loss or regret that a path is certain to have.
    """

    own: Any
    log_parts: Floats  # [path, group]
    rounds: Any
    score: Floats
    pulls: Floats  # [path, arm]
    totals: Floats  # [path, arm, mark]: after 1, 2, 4, ... pulls and after all

    @classmethod
    def empty(cls, paths: int, groups: int, arms: int, marks: int = 0) -> Paths:
        own, rounds = np.empty(paths, dtype=np.int64), np.empty(paths, dtype=np.int64)
        parts, totals = np.empty((paths, groups)), np.empty((paths, arms, marks + 1))
        return cls(own, parts, rounds, np.empty(paths), np.empty((paths, arms)), totals)


def block_of_paths(
    task: Task, mixture: Mixture, played: Played, rarity: float, full: bool = False
) -> Callable[[np.random.Generator, Paths, slice, Any], None]:
    """A function that plays a block of paths. full: play to the end, even if the event is out of reach."""
    from lighttail.kernels import skip_kernel_for, stream, tilted_kernel_for

    policy, problem = task.policy, task.problem
    means, *rest = problem.noise.world(problem.means)
    params = policy.params(task.horizon, problem.arms)
    fixed = (params, means, tuple(rest), mixture, np.array(problem.gaps))
    ends = (task.horizon, task.target, task.luck_counts)
    if played == "skip":
        skipping = skip_kernel_for(policy, problem, tilted=True)
        rarity += MARGIN + EACH * (problem.arms - 2)
    else:
        stepping = tilted_kernel_for(policy, problem)

    def play(generator: np.random.Generator, paths: Paths, rows: slice, stop: Any) -> None:
        part = [array[rows] for array in paths]
        with in_sentences(policy, problem):
            if played == "skip":
                skipping(stream(generator), *fixed, rarity, *ends, *part[:3], stop)
            else:
                stepping(stream(generator), *fixed, *ends, full, *part, stop)

    return play


def may_skip(task: Task) -> bool:
    """Whether weighted paths of this task could skip ahead."""
    policy: Any = task.policy
    if task.horizon < TILTED_SHORT or policy.plays_by != "radius" or policy.moving():
        return False
    return not why_not_skip(policy, task.problem)


def choose_played(task: Task, mixture: Mixture, rarity: float) -> tuple[Played, float]:
    """The faster way to play, and the work of a path in pulls, which is at most the horizon.

    A few pilot paths skip ahead, and their random numbers and rounds are counted; so the choice depends on no
    clock and on no seed of the caller.
    """
    if not may_skip(task) or not np.isinf(mixture.caps).all():
        return "step", float(task.horizon)
    policy: Any = task.policy
    policy.bonus.check_concave(task.horizon, task.problem.arms)
    generator = block_generator(0, 0)
    before = draws_made(generator)
    paths = Paths.empty(TILTED_PILOTS, mixture.groups.size - 1, task.problem.arms)
    play = block_of_paths(task, mixture, "skip", rarity)
    play(generator, paths, slice(0, TILTED_PILOTS), np.zeros(1, dtype=np.int64))
    work = (draws_made(generator) - before) * TILTED_PULLS_PER_NUMBER
    if work < int(paths.rounds.sum()):
        return "skip", max(1.0, work / TILTED_PILOTS)
    return "step", float(task.horizon)


def whole_blocks(paths: int, horizon: int, played: Played = "step") -> int:
    """This number of paths, rounded up to whole blocks."""
    per_block = block_paths(horizon, played)
    return max(1, -(-paths // per_block)) * per_block


def play_paths(
    task: Task,
    mixture: Mixture,
    effort: Effort,
    paths: int,
    *,
    played: Played = "step",
    rarity: float = 0.0,
    full: bool = False,
    first: int = 0,
    marks: int = 0,
    label: str = "",
) -> Paths:
    """Play this number of paths, a whole number of blocks, in blocks that are numbered from `first`.

    marks: the sums are kept after the first `marks` of the numbers of pulls 1, 2, 4, ...
    """
    from lighttail.kernels.errors import check_arms

    per_block = min(paths, block_paths(task.horizon, played))
    room = Paths.empty(paths, mixture.groups.size - 1, task.problem.arms, marks)
    play = block_of_paths(task, mixture, played, rarity, full)
    stop = np.zeros(1, dtype=np.int64)

    def block_of(block: int, until: int) -> int:
        begin = block * per_block
        play(block_generator(effort.seed, first + block), room, slice(begin, until), stop)
        check_arms(task.policy, stop)
        return until - begin

    with reporter(effort.progress, label or str(task.policy), paths) as report:
        with compiling(str(task.policy), effort.progress):
            block_of(0, 0)
        run_blocks(block_of, per_block, paths, effort.threads, stop, report)
    return room
