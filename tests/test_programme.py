"""The exact programme for Bernoulli rewards equals enumeration, known values and simulation."""

from __future__ import annotations

import pytest

import lighttail as lt
from lighttail.tails.programme import programme_tail
from lighttail.tails.rare import Task


def tail(policy: lt.Policy, means: tuple[float, ...], horizon: int, regret: float, kind: str) -> float:
    problem = lt.Bandit(means, lt.Bernoulli())
    return programme_tail(policy, problem, horizon, Task(policy, problem, horizon, regret, kind).target, kind)


KNOWN = [
    (lt.UCB(lt.LightTailed(0.1)), (0.3, 0.7), 30, 20, "regret", 2.2967e-8, 3e-5),
    (lt.UCB(lt.Standard(0.3)), (0.05, 0.5), 30, 13, "regret", 9.386e-4, 1e-4),
    (lt.UCB(lt.LightTailed(0.1)), (0.3, 0.7), 100, 53, "regret", 1.423e-8, 5e-4),
    (lt.UCB(lt.LightTailed(0.2)), (0.3, 0.7), 100, 20.05, "pseudo_regret", 7.0545274e-5, 1e-8),
    (lt.UCB(lt.LightTailed(0.2)), (0.2, 0.5, 0.75), 100, 30.02, "pseudo_regret", 1.2721496e-6, 4e-8),
]


@pytest.mark.parametrize(("policy", "means", "horizon", "regret", "kind", "truth", "digits"), KNOWN)
def test_known_values(
    policy: lt.Policy,
    means: tuple[float, ...],
    horizon: int,
    regret: float,
    kind: str,
    truth: float,
    digits: float,
) -> None:
    """From an independent programme; `digits` is what its printed digits leave open."""
    assert tail(policy, means, horizon, regret, kind) == pytest.approx(truth, rel=digits)
