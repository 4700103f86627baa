"""Actions from a whole ball or box. A heuristic: maximising a convex index over one is NP-hard.

The index f(a) = a' theta + radius(a' P a) is convex for every bonus here. A convex function lies above its
tangents, so the point of the set that is furthest along the gradient of f at a is never worse than a:
repeating that climbs, and stops at a local maximum, on the sphere or in a corner of the box. Many starts
make it likely, and nothing makes it certain, that the best of them is the highest of all. Of a bonus whose
index is not convex the climb may miss the inside of the set as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import accept, numbers, positive, refuse, shown, whole

Floats = npt.NDArray[Any]
MOST_DIM = 10**4  # dimensions that are searched; a matrix of more would take over a GB
MOST_STARTS = 10**6
STEPS = 2000  # at most; a climb mostly ends within ten
EARLY = 20  # steps after which only the best climb on
BEST = 4
NUDGE = 1e-4  # relative, of the width, for the slope of the radius


class ConvexSet(ABC):
    """What a ball and a box have in common."""

    dim: int
    starts: int

    @abstractmethod
    def furthest(self, directions: Floats) -> Floats:
        """The points of the set that are furthest along the given directions (one a row): exact."""

    def highest(
        self, theta: Floats, inverse: Floats, radius: Callable[[float], float], rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """An action with a high index a' theta + radius(a' inverse a), and that index. A heuristic.

        The starts are the points furthest along theta, along the axes of the ellipsoid both ways, and along
        `starts` random directions.
        """
        _, axes = np.linalg.eigh(inverse)
        drawn = rng.standard_normal((self.starts, self.dim))
        points = self.furthest(np.concatenate([theta[None], axes.T, -axes.T, drawn]))
        values = _index(points, theta, inverse, radius)
        for step in range(STEPS):
            if step == EARLY:
                leading = np.argsort(-values)[:BEST]
                points, values = points[leading], values[leading]
            slopes = 2.0 * _slopes(points, inverse, radius)[:, None]
            found = self.furthest(theta + slopes * (points @ inverse))
            climbed = _index(found, theta, inverse, radius)
            better = climbed > values + 1e-14 * np.abs(values)
            if not better.any():
                break
            points = np.where(better[:, None], found, points)
            values = np.where(better, climbed, values)
        best = int(np.argmax(values))
        return points[best], float(values[best])


def _index(points: Floats, theta: Floats, inverse: Floats, radius: Callable[[float], float]) -> Floats:
    width = np.maximum(0.0, np.sum(points @ inverse * points, axis=1))
    return points @ theta + np.array([radius(z) for z in width.tolist()])  # type: ignore[no-any-return]


def _slopes(points: Floats, inverse: Floats, radius: Callable[[float], float]) -> Floats:
    """The derivative of the radius at each point's width."""
    width = np.maximum(1e-300, np.sum(points @ inverse * points, axis=1))
    high, low = (1.0 + NUDGE) * width, (1.0 - NUDGE) * width
    rise = [radius(up) - radius(down) for up, down in zip(high.tolist(), low.tolist(), strict=True)]
    return np.array(rise) / (high - low)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BallSet(ConvexSet):
    """All actions of length `radius` at most: a heuristic search, see the module's docstring.

    >>> ball = BallSet(dim=2)
    >>> ball.furthest(np.array([[3.0, 4.0]])).tolist()
    [[0.6, 0.8]]
    """

    dim: int
    radius: float = 1.0
    starts: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", whole("dim", self.dim, 1, most=MOST_DIM))
        object.__setattr__(self, "starts", whole("starts", self.starts, 0, most=MOST_STARTS))
        accept(self, radius=positive)

    def furthest(self, directions: Floats) -> Floats:
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        # Where no direction is better than another, the first axis.
        directions = np.where(length > 0.0, directions, np.eye(1, self.dim))
        return self.radius * directions / np.where(length > 0.0, length, 1.0)


@dataclass(frozen=True, init=False)
class BoxSet(ConvexSet):
    """All actions between `low` and `high`, entry by entry: a heuristic search, see the module's docstring.

    >>> box = BoxSet([0.0, -1.0], [0.5, 1.0])
    >>> box.furthest(np.array([[3.0, -4.0]])).tolist()
    [[0.5, -1.0]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    starts: int = 32

    def __init__(self, low: Sequence[float], high: Sequence[float], starts: int = 32) -> None:
        first, last = _corner("low", low), _corner("high", high)
        if len(first) != len(last) or any(a >= b for a, b in zip(first, last, strict=True)):
            raise refuse("high", last, f"as long as low and above it, entry by entry ({shown(list(first))})")
        object.__setattr__(self, "low", first)
        object.__setattr__(self, "high", last)
        object.__setattr__(self, "starts", whole("starts", starts, 0, most=MOST_STARTS))

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.low)

    def furthest(self, directions: Floats) -> Floats:
        return np.where(directions >= 0.0, np.array(self.high), np.array(self.low))


def _corner(field: str, values: Any) -> tuple[float, ...]:
    return numbers(field, values, 1, "a list of at least one number", MOST_DIM)
