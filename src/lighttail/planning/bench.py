"""The bench of a plan: policies are played on problems, several at a time, with random numbers by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lighttail.course import STRAIGHT, Course
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.random.streams import seed_from
from lighttail.records import Floats
from lighttail.running.blocks import Job, block_player
from lighttail.running.kept import KeptPaths, PlayBlock
from lighttail.running.pool import AHEAD, threads_of, work_on
from lighttail.running.prepare import prepare
from lighttail.system.progress import ReportPart

PART = 1 << 22  # pulls that a thread plays before the next task: some ten milliseconds of work
R = TypeVar("R")


class Play(NamedTuple):
    """A policy on a problem. stage: plays of one stage on the same problem share their random numbers, so
    that policies are compared on the same luck as far as they can be; another stage has fresh ones.
    place: of the problem among those whose paths are put together; two members may have the same means."""

    policy: Policy
    problem: Bandit
    paths: int
    stage: int
    place: int = 0


def members_of(policy: Policy, members: Sequence[Bandit], paths: int, stage: int) -> list[Play]:
    """The plays of a policy on members whose paths are put together, each with random numbers of its own."""
    return [Play(policy, member, paths, stage, place) for place, member in enumerate(members)]


class SomeBlocks(NamedTuple):
    """Some blocks of a play. kept: where the paths of the play go."""

    job: Job
    play_block: PlayBlock
    kept: KeptPaths
    first: int
    until: int


@dataclass
class Bench:
    """Plays policies and counts what was played.

    course: when rewards become known. report: is told (label, pulls so far, pulls expected). pulls: played so
    far. expected: pulls of the whole plan, by what is known so far. playing: processor seconds in kernels of
    plain paths. ready: a job for each policy, with the checks and choices of `simulate`, which are made once.
    """

    horizon: int
    seed: int
    threads: int
    course: Course = STRAIGHT
    report: ReportPart | None = None
    pulls: int = 0
    expected: int = 0
    playing: float = 0.0
    ready: dict[Policy, Job] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock, repr=False)
    _stop: Any = field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False)

    def losses(self, plays: Sequence[Play], label: str = "") -> list[Floats]:
        """The loss (pseudo regret) of every path of every play.

        The paths of a play are those of `simulate`. They are played in parts, so that all threads are busy
        however few plays there are.
        """
        self.expect(sum(play.paths for play in plays) * self.horizon)
        kept = [KeptPaths(play.problem, self.horizon, play.paths) for play in plays]

        def parts() -> Any:
            for play, room in zip(plays, kept, strict=True):
                job = self._job(play)
                play_block, step = block_player(job), max(1, PART // (job.per_block * self.horizon))
                for first in range(0, job.blocks, step):
                    yield SomeBlocks(job, play_block, room, first, min(job.blocks, first + step))

        def done(part: SomeBlocks, seconds: float) -> None:
            rows = part.job.rows(part.first, part.until)
            self.playing += seconds
            self.count((rows.stop - rows.start) * self.horizon, label)

        self.together(parts(), self._fill, done)
        return [room.outcome({}).pseudo_regret for room in kept]

    def losses_here(self, play: Play) -> Floats:
        """The losses of one play, in this thread, which may be one of those of `together`."""
        job, kept = self._job(play), KeptPaths(play.problem, self.horizon, play.paths)
        seconds = self._fill(SomeBlocks(job, block_player(job), kept, 0, job.blocks))
        with self._lock:
            self.playing += seconds
        return kept.outcome({}).pseudo_regret

    def _fill(self, part: SomeBlocks) -> float:
        """Play some blocks; the processor seconds that this took. A bench that was stopped left some of them
        unplayed, and answers nothing."""
        begin = time.thread_time()
        for block in range(part.first, part.until):
            rows = part.job.rows(block, block + 1)
            part.kept.fill(part.play_block, part.job.per_block, self._stop, block, rows.stop)
        self._check_plays()
        return time.thread_time() - begin

    def _check_plays(self) -> None:
        if self._stop[0]:
            raise RuntimeError("a bench that was stopped plays no more")

    def together(self, tasks: Any, work: Callable[[Any], R], done: Callable[[Any, R], None]) -> None:
        """Do the tasks on all threads; `done` takes each result in this thread. After an early end the bench
        plays no more."""
        self._check_plays()

        def send(pool: Any, task: Any, attempt: int) -> Future[R]:
            return pool.submit(work, task)  # type: ignore[no-any-return]

        pool, window = threads_of(self.threads), lambda: AHEAD * self.threads
        work_on(pool, tasks, send, done, window=window, halt=lambda: self._stop.fill(1))

    def expect(self, pulls: float) -> None:
        """At least this number of pulls is still to come."""
        self.expected = max(self.expected, self.pulls + int(pulls))

    def count(self, pulls: int, label: str) -> None:
        """Add to what was played, and report it."""
        self.pulls += pulls
        self.expect(0)
        if self.report is not None:
            self.report(label, self.pulls, self.expected)

    def seed_of(self, problem: Bandit, stage: int, place: int = 0) -> int:
        """A seed that depends on the plan's seed, the stage, the place and the means alone."""
        means = np.array(problem.means).view(np.uint32).tolist()
        return seed_from(self.seed, stage, place, *means)

    def apart(self, number: int) -> Bench:
        """The same bench with a seed of its own, which depends on this one's and on a number."""
        seed = np.random.SeedSequence([self.seed, number]).generate_state(1, np.uint64)[0]
        return replace(self, seed=int(seed))

    def _job(self, play: Play) -> Job:
        """The simulation of a play. Its method is the one that is faster for the policy on the first problem
        on which it was played."""
        if play.policy not in self.ready:
            course: Any = {"delay": self.course.delay, "batch": self.course.batch}
            ready = prepare(play.policy, play.problem, self.horizon, 1, seed=0, threads=1, **course)
            self.ready[play.policy] = ready.job
        seed = self.seed_of(play.problem, play.stage, play.place)
        return replace(self.ready[play.policy], problem=play.problem, paths=play.paths, seed=seed)
