"""What is kept of a simulation: every path, or the law of them all; and whether the memory holds it."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from lighttail.checks import Argument, refuse
from lighttail.outcomes.law import Law, layout_of
from lighttail.outcomes.outcome import LawOutcome, Offers, Outcome
from lighttail.problems import Problem
from lighttail.records import Counts, Record
from lighttail.running.blocks import Keep, Part, Play
from lighttail.system.memory import free_memory, in_words

COPIES = 9  # of the rewards that estimates from paths make at most: regrets, in order, at work; measured
KEEP_LAW = Argument("keep", ("law",))  # what memory always has room for
COUNTERS = 4  # laws that threads fill at the same time


def kept_as(keep: Keep, problem: Any, horizon: int, paths: int, threads: int = 1) -> KeptPaths | KeptLaw:
    """Room for the outcomes of a simulation."""
    return KeptLaw(problem, horizon, threads) if keep == "law" else KeptPaths(problem, horizon, paths)


class KeptPaths:
    """Reward and pulls of every path, in their rows."""

    def __init__(self, problem: Problem, horizon: int, paths: int) -> None:
        self.problem, self.horizon = problem, horizon
        try:
            self.record = problem.room(paths)
        except MemoryError:
            raise refuse("paths", paths, "so few that reward and pulls fit into memory") from None

    def player(self, play: Play, size: int, stop: Any) -> Callable[[int, int], int]:
        """The function for `run_blocks`."""

        def into_its_rows(block: int, until: int) -> int:
            first = block * size
            play(block, self.record.rows(slice(first, until)), stop)
            return until - first

        return into_its_rows

    def put(self, rows: slice, part: Part) -> None:
        """Take in what a task sent."""
        assert part.record is not None
        self.record.put(rows, part.record)

    def add(self, first: int, record: Record) -> None:
        """Take in paths from number `first` on."""
        self.record.put(slice(first, first + record.paths), record)

    def take(self, first: int, rewards: Any, pulls: Any) -> None:
        """Bring a launch of the GPU to the host."""
        self.add(first, Counts(rewards.copy_to_host(), pulls.copy_to_host().T))

    def outcome(self, settings: dict[str, Any]) -> Outcome:
        problem, record = self.problem, self.record
        offers = None
        if record.best is not None and record.lost is not None:
            offers = Offers(record.best.copy(), record.lost.copy(), problem.most_lost(self.horizon))
        means = np.array(problem.means)
        return Outcome(record.reward, record.pulls, means, problem.labels, self.horizon, settings, offers)


class KeptLaw:
    """The law of all paths, counted by a few threads at a time, each into a law of its own.

    Counting takes a small share of the time of playing: more threads than these would hardly ever meet.
    """

    def __init__(self, problem: Problem, horizon: int, threads: int = 1) -> None:
        self.problem, self.horizon = problem, horizon
        layout = layout_of(problem, horizon)
        self.laws = [Law.empty(layout) for _ in range(min(threads, COUNTERS))]
        self.counting: Any = None  # on a GPU

    def player(self, play: Play, size: int, stop: Any) -> Callable[[int, int], int]:
        """The function for `run_blocks`."""
        idle: SimpleQueue[Law] = SimpleQueue()
        for law in self.laws:
            idle.put(law)

        def into_a_law(block: int, until: int) -> int:
            paths = until - block * size
            record = self.problem.room(paths)
            play(block, record, stop)
            if not stop[0]:  # else it may have ended half-way
                law = idle.get()
                try:
                    law.add(record)
                finally:
                    idle.put(law)
            return paths

        return into_a_law

    def put(self, rows: slice, part: Part) -> None:
        """Take in what a task sent."""
        assert part.law is not None
        self.laws[0].merge(part.law)

    def add(self, first: int, record: Record) -> None:
        """Take in paths."""
        self.laws[0].add(record)

    def take(self, first: int, rewards: Any, pulls: Any) -> None:
        """Count a launch on the GPU; the first one is the largest."""
        from lighttail.gpu.tally import DeviceLaw

        if self.counting is None:
            self.counting = DeviceLaw(self.laws[0].layout, rewards.size)
        self.counting.add(rewards, pulls)

    def outcome(self, settings: dict[str, Any]) -> Outcome:
        if self.counting is not None:
            self.laws[0].merge(self.counting.whole())
        whole, *others = self.laws
        for law in others:
            whole.merge(law)
        means = np.array(self.problem.means)
        return LawOutcome(whole, means, self.problem.labels, self.horizon, settings)


def check_memory(problem: Any, horizon: int, paths: int, keep: Keep, together: int, threads: int = 1) -> None:
    """Refuse what the machine has no room for: reward and pulls, and the copies that estimates make."""
    kept, free = bytes_of(problem, paths) * together, free_memory()
    if (work := threads * problem.bytes) > free:
        about = f"about {in_words(work)}, of which {in_words(free)} are free"
        raise refuse("the dimension", problem.size, f"so small that its matrices fit into memory ({about})")
    if keep == "paths" and kept <= free:
        return
    counted = layout_of(problem, horizon).bytes * (together + COUNTERS)
    need = counted if keep == "law" else kept
    if need <= free:
        return
    about = f"about {in_words(need)}, of which {in_words(free)} are free"
    if keep == "law":
        raise refuse("horizon", horizon, f"so short that the law of the pulls fits into memory ({about})")
    few, hint = f"so few that their outcomes fit into memory ({about}; ", f" needs {in_words(counted)}"
    raise refuse("paths", paths, (few, KEEP_LAW, f"{hint} whatever the paths)"))


def bytes_of(problem: Problem, paths: int) -> int:
    """What the paths of one policy need, with the copies that estimates make."""
    return paths * 8 * (problem.room(0).width + 1 + COPIES)


def fitting_paths(problem: Problem) -> int:
    """How many paths of one policy the memory holds."""
    return int(min(1e18, free_memory() / bytes_of(problem, 1)))


def fits_memory(problem: Problem, paths: int, together: int) -> bool:
    """Whether the paths of so many policies do."""
    return bytes_of(problem, paths) * together <= free_memory()
