"""Linear problems and policies that several suites run over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import lighttail as lt

LIGHT = lt.LinearUCB(lt.LinearLightTailed(0.2))
THOMPSON = lt.LinearThompson(0.7)


@dataclass(frozen=True)
class OwnLinear(lt.LinearBonus):
    """A user's bonus: one scalar function of z and t."""

    weight: float

    @staticmethod
    def radius(z: float, t: float, weight: float) -> float:
        return weight * math.sqrt(z * math.log(1.0 + t))


OWN = lt.LinearUCB(OwnLinear(0.4), ridge=0.5)
OFUL = lt.LinearUCB(lt.Oful(0.5, 0.1, 1.0), ridge=2.0)


def unit_rows(count: int, dim: int, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))


def theta_of(dim: int) -> np.ndarray:
    return np.random.default_rng(dim).uniform(-1.0, 1.0, dim)


def problem_of(kind: str, dim: int, count: int, noise: Any = None) -> lt.LinearBandit:
    sources: dict[str, Any] = {
        "fixed": lambda: unit_rows(count, dim),
        "basis": lambda: np.eye(dim),
        "sphere": lambda: lt.SphereActions(count),
        "ball": lambda: lt.BallActions(count),
        "contexts": lambda: unit_rows(400 * count, dim).reshape(400, count, dim),
    }
    return lt.LinearBandit(theta_of(dim), sources[kind](), lt.Gaussian(0.5) if noise is None else noise)
