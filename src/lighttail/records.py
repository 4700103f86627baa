"""Records of paths: the pulls of each arm or, if the actions change, the best mean reward and the loss.

The kernels fill two arrays, `reward` and a table with one row per path. A record says what the table holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Record(ABC):
    """The numbers that a kernel writes for each path.

    reward: float64[paths], the sum of the rewards of each path. table: one row per path.
    written: the type of the numbers in the table.
    """

    written: ClassVar[type[np.generic]]
    reward: Floats
    table: Any

    @property
    def paths(self) -> int:
        return int(self.reward.size)

    @property
    def width(self) -> int:
        """The number of columns of the table."""
        return int(self.table.shape[1])

    @property
    @abstractmethod
    def pulls(self) -> Ints | None:
        """int64[paths, arms], the pulls of each arm; None if the actions change."""

    @abstractmethod
    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        """The pseudo regret of every path, and the mean reward of always choosing best.

        count: computes the pseudo regret from the pulls of each arm. best: the mean reward of always pulling
        the best arm, which is the same for all paths on arms.
        """

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns of the record by their names."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """The arrays of the record by their names in a file, the pulls of all arms in one."""

    def sound(self) -> bool:
        """Whether the arrays fit together, have the types that kernels write, and are finite."""
        same = self.reward.shape == self.table.shape[:1] and self.table.ndim == 2
        types = self.reward.dtype == np.float64 and self.table.dtype == self.written
        return bool(same and types and np.isfinite(self.reward).all() and np.isfinite(self.table).all())

    def rows(self, chosen: slice | Ints) -> Self:
        """A record of the chosen paths; with a slice it shares the memory of this one."""
        return type(self)(self.reward[chosen], self.table[chosen])

    def put(self, rows: slice, other: Record) -> None:
        """Write the paths of another record into these rows."""
        self.reward[rows], self.table[rows] = other.reward, other.table

    def tobytes(self) -> bytes:
        """The exact bits of all numbers."""
        return self.reward.tobytes() + self.table.tobytes()  # type: ignore[no-any-return]


class Counts(Record):
    """A record of paths on arms: the table is int64[paths, arms], the number of pulls of each arm."""

    written = np.int64

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

    def arrays(self) -> dict[str, Any]:
        return {"reward": self.reward, "pulls": self.pulls}


class Losses(Record):
    """A record of paths whose actions change: the table is float64[paths, 2], with `best` and `lost`."""

    written = np.float64

    @classmethod
    def empty(cls, paths: int) -> Losses:
        return cls(np.empty(paths), np.empty((paths, 2)))

    @property
    def pulls(self) -> None:
        return None

    @property
    def best(self) -> Floats:
        """float64[paths], the mean reward of taking the best action in every round."""
        return self.table[:, 0]  # type: ignore[no-any-return]

    @property
    def lost(self) -> Floats:
        """float64[paths], the pseudo regret."""
        return self.table[:, 1]  # type: ignore[no-any-return]

    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        return self.lost, self.best

    def columns(self) -> dict[str, Any]:
        return {"reward": self.reward, "best": self.best, "lost": self.lost}

    arrays = columns


def from_columns(columns: Mapping[str, Any]) -> Record:
    """The record with these columns. Raises ValueError if no kind of record has them.

    >>> from_columns({"reward": np.zeros(1), "best": np.ones(1), "lost": np.ones(1)}).lost
    array([1.])
    """
    reward, *others = columns.values()
    table = np.stack(others, axis=1)
    for kind in (Counts, Losses):
        if list(kind(reward, table).columns()) == list(columns):
            return kind(reward, table)
    raise ValueError(f"no kind of record has the columns {', '.join(columns)}")
