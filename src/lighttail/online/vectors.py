"""Vectors and matrices of a live linear experiment: their checks, and the solution of V x = sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import number, refuse, whole
from lighttail.online.state import listed
from lighttail.online.trials import Label, check_names
from lighttail.system.memory import free_memory, in_bytes

Floats = npt.NDArray[Any]
MOST_DIM = 10_000  # numbers per action at most
MATRICES = 6  # matrices of dim x dim numbers that a round keeps in memory at once


def checked_dim(dim: Any) -> int:
    """The dimension as an int. Raises BadInput, before any work, if its matrices do not fit into memory."""
    checked = whole("dim", dim, 1, most=MOST_DIM)
    needed, free = 8.0 * MATRICES * checked**2, free_memory()
    if needed > free:
        sizes = f"{in_bytes(needed)} of memory are needed and {in_bytes(free)} are free"
        raise refuse("dim", checked, "smaller", more=f": {sizes}")
    return checked


def row_names(labels: Any, count: int) -> list[Label]:
    """The names of the rows: the labels, or the places of the rows if there are no labels."""
    if labels is None:
        return list(range(count))
    allowed = f"a list of {count} names, one per action"
    names = check_names("labels", labels, 1, allowed)
    if len(names) != count:
        raise refuse("labels", names, allowed)
    return names


def row_of(field: str, value: Any, dim: int, most: float = math.inf) -> list[float]:
    """`value` as a list of `dim` numbers of at most `most` in size."""
    row = [number(field, entry) for entry in listed(field, value, dim)]
    if any(abs(entry) > most for entry in row):
        raise refuse(field, row, f"a list of numbers of at most {most:g} in size")
    return row


def square_of(field: str, value: Any, dim: int) -> list[list[float]]:
    return [row_of(field, row, dim) for row in listed(field, value, dim)]


def solved(v: Floats, sums: Floats, ridge: float) -> Floats:
    """V^-1 sums."""
    root = root_of(v, ridge)
    with np.errstate(all="ignore"):  # the callers check whether the result is finite
        return np.linalg.solve(root, np.linalg.solve(root.T, sums))


def root_of(v: Floats, ridge: float) -> Floats:
    """R, an upper triangular matrix with a positive diagonal and R' R = V, for a V of any condition.

    No eigenvalue of the exact V is below the ridge. If rounding has made V indefinite, its eigenvalues are
    raised to the ridge.
    """
    try:
        return np.linalg.cholesky(v).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(v)
        root = np.linalg.qr(np.sqrt(np.maximum(values, ridge))[:, None] * vectors.T, mode="r")
        signs = np.where(np.diag(root) < 0.0, -1.0, 1.0)
        lost = np.diag(np.where(np.diag(root) == 0.0, math.sqrt(ridge), 0.0))  # no pivot is below the ridge
        return root * signs[:, None] + lost
