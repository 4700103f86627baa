"""The bench of a plan: policies are played on problems, several at a time, with random numbers by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.records import Floats
from lighttail.running.blocks import Job, block_player
from lighttail.running.kept import KeptPaths, PlayBlock
from lighttail.running.pool import AHEAD, threads_of, work_on
from lighttail.running.prepare import Prepared, prepare

Report = Callable[[str, int, int], None]
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


class SomeBlocks(NamedTuple):
    """Some blocks of a play. kept: where the paths of the play go."""

    job: Job
    player: PlayBlock
    kept: KeptPaths
    first: int
    until: int


@dataclass
class Bench:
    """Plays policies and counts what was played.

    late: the arguments delay and batch of `simulate`. report: is told (label, pulls so far, pulls expected).
    pulls: played so far. expected: pulls of the whole plan, by what is known so far. playing: processor
    seconds in kernels of plain paths. ready: the checks and choices of `simulate` for each policy, which are
    made once.
    """

    horizon: int
    seed: int
    threads: int
    late: dict[str, Any] = field(default_factory=dict)
    report: Report | None = None
    pulls: int = 0
    expected: int = 0
    playing: float = 0.0
    ready: dict[Policy, Prepared] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock, repr=False)
    _stop: Any = field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False)

    def losses(self, plays: Sequence[Play], label: str = "") -> list[Floats]:
        """The loss (pseudo regret) of every path of every play.

        The paths of a play are those of `simulate`. They are played in parts, so that all threads are busy
        however few plays there are.
        """
        self.expect(sum(play.paths for play in plays) * self.horizon)
        kept = [KeptPaths(play.problem, self.horizon, play.paths) for play in plays]
        stop = np.zeros(1, dtype=np.int64)

        def parts() -> Any:
            for play, room in zip(plays, kept, strict=True):
                job = self._job(play)
                player, step = block_player(job), max(1, PART // (job.size * self.horizon))
                for first in range(0, job.blocks, step):
                    yield SomeBlocks(job, player, room, first, min(job.blocks, first + step))

        def fill(part: SomeBlocks) -> float:
            begin = time.thread_time()
            for block in range(part.first, part.until):
                part.kept.fill(part.player, part.job.size, stop, block, part.job.rows(block, block + 1).stop)
            return time.thread_time() - begin

        def done(part: SomeBlocks, seconds: float) -> None:
            rows = part.job.rows(part.first, part.until)
            self.playing += seconds
            self.count((rows.stop - rows.start) * self.horizon, label)

        self.together(parts(), fill, done, lambda: stop.fill(1))
        return [room.outcome({}).pseudo_regret for room in kept]

    def losses_here(self, play: Play) -> Floats:
        """The losses of one play, in this thread, which may be one of those of `together`."""
        job, begin, stop = self._job(play), time.thread_time(), self._stop
        kept, player = KeptPaths(play.problem, self.horizon, play.paths), block_player(job)
        for block in range(job.blocks):
            kept.fill(player, job.size, stop, block, job.rows(block, block + 1).stop)
        with self._lock:
            self.playing += time.thread_time() - begin
        return kept.outcome({}).pseudo_regret

    def together(
        self,
        tasks: Any,
        work: Callable[[Any], R],
        done: Callable[[Any, R], None],
        halt: Callable[[], None] | None = None,
    ) -> None:
        """Do the tasks on all threads; `done` takes each result in this thread."""

        def send(pool: Any, task: Any, attempt: int) -> Future[R]:
            return pool.submit(work, task)  # type: ignore[no-any-return]

        place, window = threads_of(self.threads), lambda: AHEAD * self.threads
        work_on(place, tasks, send, done, window=window, halt=halt or (lambda: self._stop.fill(1)))

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
        """A seed for each stage, each place and each set of means."""
        return stage_seed(self.seed, stage, place, problem)

    def _job(self, play: Play) -> Job:
        """The simulation of a play. Its method is the one that is faster for the policy on the first problem
        on which it was played."""
        if play.policy not in self.ready:
            where: Any = (None, 1, "cpu", None)
            late = (self.late.get("delay"), self.late.get("batch"), None)
            self.ready[play.policy] = prepare(
                play.policy, play.problem, self.horizon, 1, 0, "auto", "paths", False, where, late
            )
        found = self.ready[play.policy].job
        seed = self.seed_of(play.problem, play.stage, play.place)
        return Job(
            play.policy,
            play.problem,
            self.horizon,
            play.paths,
            seed,
            found.method,
            found.size,
            course=found.course,
        )


def stage_seed(seed: int, stage: int, place: int, problem: Bandit) -> int:
    """A seed that depends on the plan's seed, the stage, the place and the means alone."""
    means = np.array(problem.means).view(np.uint32).tolist()
    entropy = np.random.SeedSequence([seed, stage, place, *means]).generate_state(2, np.uint64)
    return int(entropy[0]) << 64 | int(entropy[1])
