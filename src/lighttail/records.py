"""What is written down of paths: the pulls of the arms or, where the actions change, what was best and lost.

The kernels fill two arrays, `reward` and a table with a row per path. A record says what that table holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Record(ABC):
    """reward: float64[paths], the sum of a path's rewards. table: a row per path, which a kernel fills."""

    reward: Floats
    table: Any

    @property
    def paths(self) -> int:
        return int(self.reward.size)

    @property
    def width(self) -> int:
        """Numbers of a path, its reward aside."""
        return int(self.table.shape[1])

    @property
    def pulls(self) -> Ints | None:
        """int64[paths, arms]; None where the actions change."""
        return None

    @property
    def best(self) -> Floats | None:
        """What the best action of every round would have earned on average; None where there are arms."""
        return None

    @property
    def lost(self) -> Floats | None:
        """The pseudo regret where the actions change; None where the pulls tell it."""
        return None

    @abstractmethod
    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        """The pseudo regret of every path, by `count` where it comes from pulls; and what the best would have
        earned, `best` where that is the same for all paths."""

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The numbers by name, one column each."""

    def rows(self, place: slice) -> Self:
        """Some of the paths; the arrays are shared."""
        return type(self)(self.reward[place], self.table[place])

    def put(self, place: slice, other: Record) -> None:
        """Take in other paths at these places."""
        self.reward[place], self.table[place] = other.reward, other.table

    def tobytes(self) -> bytes:
        """All numbers to the bit."""
        return self.reward.tobytes() + self.table.tobytes()  # type: ignore[no-any-return]


class Counts(Record):
    """Paths on arms: the table is int64[paths, arms], how often each arm was pulled."""

    @classmethod
    def empty(cls, paths: int, arms: int) -> Counts:
        return cls(np.empty(paths), np.empty((paths, arms), dtype=np.int64))

    @property
    def pulls(self) -> Ints:
        return self.table  # type: ignore[no-any-return]

    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        return count(self.pulls), best

    def columns(self) -> dict[str, Any]:
        arms = {f"pulls_{arm + 1}": self.pulls[:, arm] for arm in range(self.width)}
        return {"reward": self.reward, **arms}


class Losses(Record):
    """Paths on actions that change: the table is float64[paths, 2], what was best and what was lost."""

    @classmethod
    def empty(cls, paths: int) -> Losses:
        return cls(np.empty(paths), np.empty((paths, 2)))

    @property
    def best(self) -> Floats:
        return self.table[:, 0]  # type: ignore[no-any-return]

    @property
    def lost(self) -> Floats:
        return self.table[:, 1]  # type: ignore[no-any-return]

    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        return np.ascontiguousarray(self.lost), np.ascontiguousarray(self.best)

    def columns(self) -> dict[str, Any]:
        return {"reward": self.reward, "best": self.best, "lost": self.lost}


def from_columns(columns: Mapping[str, Any]) -> Record:
    """The record that `columns` gave; ValueError where there is none.

    >>> from_columns({"reward": np.zeros(1), "best": np.ones(1), "lost": np.ones(1)}).lost
    array([1.])
    """
    reward, *others = columns.values()
    table = np.stack(others, axis=1)
    for kind in (Counts, Losses):
        if list(kind(reward, table).columns()) == list(columns):
            return kind(reward, table)
    raise ValueError(f"no paths have the columns {', '.join(columns)}")
