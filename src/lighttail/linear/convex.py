"""Actions from a whole ball or box, found by a heuristic: maximising a convex index is NP-hard in general.

The index f(a) = a' theta + radius(a' P a) is convex for every bonus in lighttail. A convex function lies
above its tangents, so the point of the set that is furthest along the gradient of f at a is never worse than
a. Repeating this step climbs to a local maximum, on the sphere or in a corner of the box. With many starts
the best local maximum is probably, but not certainly, the highest point. If the index of a user's bonus is
not convex, the climb may also miss a maximum inside the set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import accept, numbers, positive, refuse, shown, whole

Floats = npt.NDArray[Any]
MOST_DIM = 10**4  # dimensions at most: a matrix with more rows would take over a GB
MOST_STARTS = 10**6  # random starts per search at most
STEPS = 2000  # steps of a climb at most; most climbs end within ten steps
EARLY = 20  # steps after which only the BEST best climbs continue
BEST = 4  # climbs that continue after EARLY steps
NUDGE = 1e-4  # the relative change of the width with which the slope of the radius is measured


class ConvexSet(ABC):
    """The members that a ball and a box share."""

    dim: int
    starts: int

    @abstractmethod
    def furthest(self, directions: Floats) -> Floats:
        """The points of the set that are furthest along the directions, one per row. The result is exact."""

    def highest(
        self, theta: Floats, inverse: Floats, radius: Callable[[float], float], rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """An action with a high index a' theta + radius(a' inverse a), and its index, found by a heuristic.

        The starts are the points furthest along theta, along each axis of the ellipsoid in both directions,
        and along `starts` random directions.
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
    """The derivative of the radius at the width of each point."""
    width = np.maximum(1e-300, np.sum(points @ inverse * points, axis=1))
    high, low = (1.0 + NUDGE) * width, (1.0 - NUDGE) * width
    rise = [radius(up) - radius(down) for up, down in zip(high.tolist(), low.tolist(), strict=True)]
    return np.array(rise) / (high - low)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BallSet(ConvexSet):
    """All actions whose length is at most `radius`. The search for the best action is a heuristic (see the
    module's docstring).

    dim: the length of every action. starts: the number of random starts per search.

    >>> ball = BallSet(dim=2)
    >>> ball.furthest(np.array([[3.0, 4.0]])).tolist()
    [[0.6, 0.8]]
    """

    dim: int
    radius: float = 1.0
    starts: int = 32

    def __post_init__(self) -> None:
        accept(self, dim=partial(whole, least=1, most=MOST_DIM), starts=_starts, radius=positive)

    def furthest(self, directions: Floats) -> Floats:
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        # If a direction is zero, all points are equally far along it; the point on the first axis is taken.
        directions = np.where(length > 0.0, directions, np.eye(1, self.dim))
        return self.radius * directions / np.where(length > 0.0, length, 1.0)


@dataclass(frozen=True, init=False)
class BoxSet(ConvexSet):
    """All actions between `low` and `high`, entry by entry. The search for the best action is a heuristic
    (see the module's docstring).

    starts: the number of random starts per search.

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
        vars(self).update(low=first, high=last, starts=_starts("starts", starts))

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.low)

    def furthest(self, directions: Floats) -> Floats:
        return np.where(directions >= 0.0, np.array(self.high), np.array(self.low))


_starts = partial(whole, least=0, most=MOST_STARTS)
_corner = partial(numbers, least=1, allowed="a list of at least one number", most=MOST_DIM)
