"""What is written down of paths: the pulls of each arm or, if the actions change, what was best and lost.

The kernels fill two arrays, `reward` and a table with a row per path. A record says what that table holds.
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
    """reward: float64[paths], the sum of a path's rewards. table: a row per path, which a kernel fills.
    written: the type of the table's numbers."""

    written: ClassVar[type[np.generic]]
    reward: Floats
    table: Any

    @property
    def paths(self) -> int:
        return int(self.reward.size)

    @property
    def width(self) -> int:
        """The numbers per path besides the reward."""
        return int(self.table.shape[1])

    @property
    @abstractmethod
    def pulls(self) -> Ints | None:
        """int64[paths, arms]; None if the actions change from round to round."""

    @abstractmethod
    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        """The pseudo regret of every path, which is `count` of the pulls if there are pulls; and what the
        best arm, or the best action of every round, earns on average: `best` if all paths share it."""

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The numbers of a path by name, one column per number."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """The same by name in as few arrays as possible."""

    def sound(self) -> bool:
        """Whether the arrays fit together, have the types that kernels write, and are finite."""
        same = self.reward.shape == self.table.shape[:1] and self.table.ndim == 2
        types = self.reward.dtype == np.float64 and self.table.dtype == self.written
        return bool(same and types and np.isfinite(self.reward).all() and np.isfinite(self.table).all())

    def rows(self, place: slice | Ints) -> Self:
        """Some of the paths; those of a slice share the arrays."""
        return type(self)(self.reward[place], self.table[place])

    def put(self, place: slice, other: Record) -> None:
        """Write other paths into these rows."""
        self.reward[place], self.table[place] = other.reward, other.table

    def tobytes(self) -> bytes:
        """Every bit of every number."""
        return self.reward.tobytes() + self.table.tobytes()  # type: ignore[no-any-return]


class Counts(Record):
    """Paths on arms: the table is int64[paths, arms], how often each arm was pulled."""

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
    """Paths on actions that change: the table is float64[paths, 2], `best` and `lost`."""

    written = np.float64

    @classmethod
    def empty(cls, paths: int) -> Losses:
        return cls(np.empty(paths), np.empty((paths, 2)))

    @property
    def pulls(self) -> None:
        return None

    @property
    def best(self) -> Floats:
        """What the best action of every round earns on average."""
        return self.table[:, 0]  # type: ignore[no-any-return]

    @property
    def lost(self) -> Floats:
        """The pseudo regret."""
        return self.table[:, 1]  # type: ignore[no-any-return]

    def losses(self, count: Callable[[Ints], Floats], best: float) -> tuple[Floats, Any]:
        return self.lost, self.best

    def columns(self) -> dict[str, Any]:
        return {"reward": self.reward, "best": self.best, "lost": self.lost}

    arrays = columns


def from_columns(columns: Mapping[str, Any]) -> Record:
    """The record whose `columns` these are; a ValueError if there is none.

    >>> from_columns({"reward": np.zeros(1), "best": np.ones(1), "lost": np.ones(1)}).lost
    array([1.])
    """
    reward, *others = columns.values()
    table = np.stack(others, axis=1)
    for kind in (Counts, Losses):
        if list(kind(reward, table).columns()) == list(columns):
            return kind(reward, table)
    raise ValueError(f"no paths have the columns {', '.join(columns)}")
