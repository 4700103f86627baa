"""What is kept of a simulation: every path, or the law of all paths."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np

from lighttail.checks import refuse
from lighttail.outcomes.law import Law, layout_of
from lighttail.outcomes.outcome import LawOutcome, PathsOutcome
from lighttail.problems import Problem
from lighttail.records import Counts, Record

Keep = Literal["paths", "law"]
PlayBlock = Callable[[int, Record, Any], None]  # takes a block, its room, the stop flag
COUNTERS = 4  # laws that threads fill at the same time


def kept_as(
    keep: Keep, problem: Any, horizon: int, paths: int, threads: int = 1, first: int = 0
) -> KeptPaths | KeptLaw:
    """Room for the outcomes of a simulation, or of a part of a simulation that begins with path `first`."""
    return KeptLaw(problem, horizon, threads) if keep == "law" else KeptPaths(problem, horizon, paths, first)


class KeptPaths:
    """The rewards and pulls of all paths, one row per path, from path `first` on."""

    def __init__(self, problem: Problem, horizon: int, paths: int, first: int = 0) -> None:
        self.problem, self.horizon, self.first = problem, horizon, first
        try:
            self.record = problem.room(paths)
        except MemoryError:
            raise refuse("paths", paths, "so few that reward and pulls fit into memory") from None

    def fill(self, play: PlayBlock, per_block: int, stop: Any, block: int, until: int) -> int:
        """Play a block, the paths block * per_block to until - 1, into their rows; returns their number."""
        begin = block * per_block
        play(block, self.record.rows(slice(begin - self.first, until - self.first)), stop)
        return until - begin

    def content(self) -> Record:
        return self.record

    def put(self, first: int, content: Record) -> None:
        """Add the paths from number `first` on."""
        self.record.put(slice(first, first + content.paths), content)

    def take(self, first: int, rewards: Any, pulls: Any) -> None:
        """Copy the paths of a GPU's launch to the host."""
        self.put(first, Counts(rewards.copy_to_host(), pulls.copy_to_host().T))

    def outcome(self, settings: dict[str, Any]) -> PathsOutcome:
        problem, horizon = self.problem, self.horizon
        means, most = np.array(problem.means), problem.most_lost(horizon)
        return PathsOutcome(self.record, means, problem.labels, horizon, settings, most)


class KeptLaw:
    """The law of all paths, counted by a few threads at a time, each into a law of its own.

    Counting takes a small share of the time of playing, so more laws would hardly ever be used.
    """

    def __init__(self, problem: Problem, horizon: int, threads: int = 1) -> None:
        self.problem, self.horizon = problem, horizon
        layout = layout_of(problem, horizon)
        self.laws = [Law.empty(layout) for _ in range(min(threads, COUNTERS))]
        self.idle: SimpleQueue[Law] = SimpleQueue()
        for law in self.laws:
            self.idle.put(law)
        self.counting: Any = None  # on a GPU

    def fill(self, play: PlayBlock, per_block: int, stop: Any, block: int, until: int) -> int:
        """Play a block and count its paths; returns their number."""
        record = self.problem.room(until - block * per_block)
        play(block, record, stop)
        if not stop[0]:  # otherwise the block may be incomplete
            law = self.idle.get()
            try:
                law.add(record)
            finally:
                self.idle.put(law)
        return record.paths

    def content(self) -> Law:
        whole, *others = self.laws
        for law in others:
            whole.merge(law)
        return whole

    def put(self, first: int, content: Record | Law) -> None:
        """Add paths, or a law of paths."""
        if isinstance(content, Law):
            self.laws[0].merge(content)
        else:
            self.laws[0].add(content)

    def take(self, first: int, rewards: Any, pulls: Any) -> None:
        """Count a launch on the GPU; the first one is the largest."""
        from lighttail.gpu.tally import DeviceLaw

        if self.counting is None:
            self.counting = DeviceLaw(self.laws[0].layout, rewards.size)
        self.counting.add(rewards, pulls)

    def outcome(self, settings: dict[str, Any]) -> LawOutcome:
        if self.counting is not None:
            self.laws[0].merge(self.counting.whole())
        means = np.array(self.problem.means)
        return LawOutcome(self.content(), means, self.problem.labels, self.horizon, settings)
