"""The sources of the actions of a round: a fixed set, fresh random points, or a user's own contexts.

A source is a frozen dataclass with one static function, `fill(rng, t, actions, *source)`. The function writes
the actions of round t, which counts from 1, into the rows of `actions`, and draws random numbers with
`standard_normal(rng)` and `uniform(rng)` alone. Plain Python runs it online, and numba compiles it for
simulation. The method `source(dim)` computes the arguments after `actions`.
"""

from __future__ import annotations

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lighttail.checks import accept, array_of, file_path, refuse, refuse_file, whole
from lighttail.random.streams import standard_normal, uniform
from lighttail.records import Floats

MOST_ACTIONS = 10**6  # actions per round at most
LONGEST = 1e50  # the largest entry of an action: larger entries would overflow in V
NODES = 4000  # points per integral, which give seven digits
CHUNK = 1 << 22  # entries of a context file that are read at once


def normal_row(rng: Any, actions: Any, row: int) -> float:
    """Fill a row with normal numbers; returns the sum of their squares."""
    square = 0.0
    for column in range(actions.shape[1]):
        draw = standard_normal(rng)
        actions[row, column] = draw
        square += draw * draw
    return square


def resize_row(actions: Any, row: int, square: float, length: float) -> None:
    """Scale a row, whose sum of squares is known, to this length."""
    scale = length / math.sqrt(square) if square > 0.0 else 0.0
    for column in range(actions.shape[1]):
        actions[row, column] *= scale


class Actions(ABC):
    """The members that every source of actions has."""

    count: int  # actions per round
    fixed: ClassVar[bool] = False  # whether the actions are the same in every round
    fill: ClassVar[Callable[..., None]]

    @abstractmethod
    def source(self, dim: int) -> tuple[Any, ...]:
        """The arguments of `fill` after `actions`: arrays and floats."""

    @abstractmethod
    def longest(self) -> float:
        """The length of the longest action."""

    def means(self, theta: Floats) -> tuple[float, ...]:
        """The mean rewards of a fixed set of actions; empty if the actions change."""
        return ()

    def mean_range(self, theta: Floats) -> tuple[float, float]:
        """A lower and an upper bound on the mean reward of every action: by default those that the length of
        the longest action gives."""
        reach = float(np.linalg.norm(theta)) * self.longest()
        return -reach, reach

    @abstractmethod
    def most_lost(self, theta: Floats, horizon: int) -> float:
        """An upper bound on the pseudo regret of any policy."""

    def worst_loss(self, theta: Floats, horizon: int) -> float:
        """The mean pseudo regret of taking the worst action in every round."""
        return self.most_lost(theta, horizon)

    def check(self, dim: int, horizon: int | None = None) -> None:
        """Raise BadInput if the actions do not have this dimension, or do not last for this horizon."""
        return


@dataclass(frozen=True)
class _RandomActions(Actions):
    """Actions that are drawn anew in every round."""

    count: int
    # A coordinate has the law of a coordinate of a point on the sphere in d + higher dimensions.
    higher: ClassVar[int]

    def __post_init__(self) -> None:
        accept(self, count=partial(whole, least=2, most=MOST_ACTIONS))

    def source(self, dim: int) -> tuple[Any, ...]:
        return (1.0 / dim,)

    def longest(self) -> float:
        return 1.0

    def most_lost(self, theta: Floats, horizon: int) -> float:
        return 2.0 * float(np.linalg.norm(theta)) * horizon

    def worst_loss(self, theta: Floats, horizon: int) -> float:
        """horizon * |theta| * E(max - min) of `count` draws of one coordinate x.

        x^2 has the law Beta(1/2, (d + higher - 1)/2). With F the distribution function of x,
        E max = 1 - the integral of F^count over [-1, 1], and E min = -E max by symmetry.
        """
        from scipy.special import betainc

        freedom = (theta.size + self.higher - 1) / 2.0
        if freedom == 0.0:  # the sphere in one dimension has the points -1 and 1
            return self.most_lost(theta, horizon) * (1.0 - 2.0 ** (1 - self.count))
        angles = np.pi * ((np.arange(NODES) + 0.5) / NODES - 0.5)
        x = np.sin(angles)  # the points lie closer at both ends, where F^count changes most
        below = 0.5 + 0.5 * np.sign(x) * betainc(0.5, freedom, x * x)
        highest = 1.0 - float(np.sum(np.cos(angles) * below**self.count)) * np.pi / NODES
        return self.most_lost(theta, horizon) * highest


@dataclass(frozen=True)
class SphereActions(_RandomActions):
    """In each round `count` new points of the unit sphere, uniform and independent.

    >>> round(SphereActions(10).worst_loss(np.array([1.0, 0.0]), horizon=1), 2)
    1.86
    """

    higher = 0

    @staticmethod
    def fill(rng: Any, t: int, actions: Any, power: float) -> None:
        """Draw each row uniformly on the unit sphere: a normal vector, divided by its length."""
        for row in range(actions.shape[0]):
            resize_row(actions, row, normal_row(rng, actions, row), 1.0)


@dataclass(frozen=True)
class BallActions(_RandomActions):
    """In each round `count` new points of the unit ball, uniform and independent."""

    higher = 2

    @staticmethod
    def fill(rng: Any, t: int, actions: Any, power: float) -> None:
        """Draw each row uniformly in the unit ball: a point of the sphere times U^(1/d). power: 1/d."""
        for row in range(actions.shape[0]):
            square = normal_row(rng, actions, row)
            resize_row(actions, row, square, math.exp(power * math.log(1.0 - uniform(rng))))


@dataclass(frozen=True, eq=False, repr=False)
class _ArrayActions(Actions):
    """Actions that are given as an array. Two sources are equal if their numbers are equal."""

    values: Floats

    @property
    def count(self) -> int:  # type: ignore[override]
        return int(self.values.shape[-2])

    @property
    def dim(self) -> int:
        return int(self.values.shape[-1])

    def source(self, dim: int) -> tuple[Any, ...]:
        return (np.asarray(self.values),)

    def mean_range(self, theta: Floats) -> tuple[float, float]:
        means = (part @ theta for part in _parts(self.values))
        ends = [(float(part.min()), float(part.max())) for part in means]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def longest(self) -> float:
        return self._longest

    @cached_property
    def _longest(self) -> float:
        return max(float(np.sqrt(np.max(np.sum(part * part, axis=-1)))) for part in _parts(self.values))

    def check(self, dim: int, horizon: int | None = None) -> None:
        if self.dim != dim:
            raise refuse("actions", self, f"rows of {dim} numbers, as many as theta has")

    @cached_property
    def digest(self) -> str:
        """A short name of the numbers, for a repr in which they would not fit."""
        content = hashlib.sha256(str(self.values.shape).encode())
        for part in _parts(self.values):
            content.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return content.hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.values.shape))
        return f"<{shape} actions, digest {self.digest}>"


class FixedActions(_ArrayActions):
    """The same A actions of d numbers in every round: an array A x d."""

    fixed = True

    @staticmethod
    def fill(rng: Any, t: int, actions: Any, points: Any) -> None:
        """Copy the fixed set."""
        for row in range(actions.shape[0]):
            for column in range(actions.shape[1]):
                actions[row, column] = points[row, column]

    def means(self, theta: Floats) -> tuple[float, ...]:
        return tuple((self.values @ theta).tolist())

    def most_lost(self, theta: Floats, horizon: int) -> float:
        return float(np.ptp(self.values @ theta)) * horizon

    def __repr__(self) -> str:
        return repr(self.values.tolist()) if self.values.size <= 64 else super().__repr__()


class ContextActions(_ArrayActions):
    """A user's own actions: an array rounds x A x d, whose entry t - 1 holds the actions of round t."""

    @staticmethod
    def fill(rng: Any, t: int, actions: Any, contexts: Any) -> None:
        """Copy the rows of round t of the contexts."""
        for row in range(actions.shape[0]):
            for column in range(actions.shape[1]):
                actions[row, column] = contexts[t - 1, row, column]

    def most_lost(self, theta: Floats, horizon: int) -> float:
        return sum(float(np.ptp(part @ theta, axis=-1).sum()) for part in _parts(self.values[:horizon]))

    def check(self, dim: int, horizon: int | None = None) -> None:
        super().check(dim)
        rounds = len(self.values)
        if horizon is not None and horizon > rounds:
            raise refuse("horizon", horizon, f"at most {rounds}, the rounds for which actions are given")

    def __reduce__(self) -> Any:
        """Pickle contexts that fill a file by the path of the file, which may be larger than the memory."""
        values = self.values
        if isinstance(values, np.memmap) and values.filename is not None:
            path = Path(values.filename)
            if path.exists() and values.offset + values.nbytes == path.stat().st_size:
                return mapped_contexts, (str(path), self.digest)
        return super().__reduce__()


def mapped_contexts(path: str, digest: str) -> ContextActions:
    """The contexts in a file. Raises BadInput if the file does not hold the numbers with this digest."""
    array = _opened(Path(path))
    actions = ContextActions(array)
    if array.ndim != 3 or array.dtype != np.float64 or actions.digest != digest:
        raise refuse("actions", path, f"a file with the contexts of digest {digest}")
    return actions


def as_actions(actions: Any) -> Actions:
    """`actions` as a source of actions. It may be a source, an array, or the path of an .npy file."""
    if isinstance(actions, Actions):
        return actions
    if isinstance(actions, (str, os.PathLike)):
        actions = _opened(file_path("actions", actions))
    array: Any = actions
    if not isinstance(array, np.ndarray) or array.dtype.kind == "O":
        array = array_of("actions", actions, "an array of numbers, or SphereActions(A)")
    if array.ndim not in (2, 3):
        raise refuse("actions", array.shape, "of the shape (A, d) or (rounds, A, d)")
    if array.dtype.kind not in "fiu":
        raise refuse("actions", str(array.dtype), "of numbers")
    check_rows(array)
    if array.ndim == 2 or array.dtype != np.float64:
        array = np.array(array, dtype=np.float64)
    array = array.view()  # so that the caller's array stays writable
    array.setflags(write=False)
    return FixedActions(array) if array.ndim == 2 else ContextActions(array)


def check_rows(array: npt.NDArray[Any]) -> None:
    """Raise BadInput if there is no action, or if one is not finite, huge, or all zeros.

    A row of zeros is far more often padding or a missing action than an action that earns nothing.
    """
    if 0 in array.shape:
        raise refuse("actions", array.shape, "at least one action of at least one number")
    first = 0
    for part in _parts(array):
        magnitude = np.abs(part)
        for bad, allowed in (
            (~(magnitude <= LONGEST), "a finite number of at most 1e50"),
            (magnitude.max(axis=-1) == 0.0, "a row that is not all zeros"),
        ):
            if bad.any():
                place = np.argwhere(bad)[0].tolist()
                text = "".join(f"[{i}]" for i in (first + place[0], *place[1:]))
                raise refuse(f"actions{text}", part[tuple(place)].tolist(), allowed)
        first += len(part)


def _parts(array: npt.NDArray[Any]) -> Any:
    """Slices of the array along its first axis, so that a file larger than the memory can be read."""
    step = max(1, CHUNK // max(1, math.prod(array.shape[1:])))
    return (np.asarray(array[first : first + step]) for first in range(0, len(array), step))


def _opened(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # reading damaged bytes may raise anything
        raise refuse_file("actions", path, "an .npy file that can be read", error) from None
