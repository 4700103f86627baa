"""What cannot be a linear problem, policy or set is refused in one sentence that names the field."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_cases import LIGHT, unit_rows

import lighttail as lt

simulation = importlib.import_module(
    "lighttail.running.simulate"
)  # `lighttail.running.simulate` is the function
PLANE = [[1.0, 0.0], [0.0, 1.0]]


def bandit(actions: Any = PLANE, theta: Any = (0.5, 0.2), **given: Any) -> lt.LinearBandit:
    return lt.LinearBandit(theta, actions, **given)


BAD: list[tuple[Callable[[], Any], str]] = [
    *(
        (lambda v=v: lt.LinearLightTailed(v), "kappa must be")
        for v in (0, -0.5, math.nan, math.inf, "1", True)
    ),
    *((lambda v=v: lt.LinearStandard(v), "beta must be") for v in (0, -1.0, math.nan)),
    *((lambda v=v: lt.Oful(v), "sigma must be") for v in (0, -1.0, math.nan)),
    *((lambda v=v: lt.Oful(1.0, v), "delta must be") for v in (0, 1.0, 2.0)),
    (lambda: lt.Oful(1.0, 0.1, -1.0), "bound must be"),
    *((lambda v=v: lt.LinearThompson(v), "scale must be") for v in (0, -1.0, "1")),
    *((lambda v=v: lt.LinearUCB(lt.LinearStandard(1.0), v), "ridge must be") for v in (0, -1.0, math.inf)),
    *((lambda v=v: lt.LinearUCB(v), "bonus must be") for v in (0.2, lt.LightTailed(0.2), lt.LinearStandard)),
    *((lambda v=v: lt.SphereActions(v), "count must be") for v in (0, 1, 2.0, "3", True)),
    *((lambda v=v: bandit(theta=v), "theta must be") for v in ([], 0.5, "ab")),
    (lambda: bandit(theta=[0.5, math.nan]), "theta[1] must be a finite number, but is nan"),
    (lambda: bandit(theta=[0.1, 0.2, 0.3]), "actions must be rows of 3 numbers, as many as theta has"),
    (lambda: bandit([]), "actions must be"),
    (lambda: bandit(np.empty((0, 2))), "actions must be at least one action of at least one number"),
    (lambda: bandit([1.0, 0.0]), "actions must be of the shape (A, d) or (rounds, A, d), but is (2,)"),
    (lambda: bandit([[1.0, math.inf]]), "actions[0][1] must be a finite number"),
    (lambda: bandit([[1.0, 0.0], [0.0, 0.0]]), "actions[1] must be a row that is not all zeros"),
    (lambda: bandit([[[1.0, 0.0]], [[0.0, math.nan]]]), "actions[1][0][1] must be a finite number"),
    (lambda: bandit([[1.0, "x"]]), "actions must be an array of numbers"),
    (lambda: bandit(np.array([["a", "b"]])), "actions must be of numbers"),
    (lambda: bandit("nowhere.npy"), "actions must be an .npy file that can be read, but is"),
    (lambda: bandit(noise=1.0), "noise must be"),
    (lambda: bandit(noise=lt.Bandit.from_samples({"A": [1.0], "B": [2.0]}).noise), "noise must be"),
    (
        lambda: bandit(theta=[-0.5, 0.2], noise=lt.Bernoulli()),
        "the mean of an action must be between 0 and 1",
    ),
    (
        lambda: bandit(lt.SphereActions(3), noise=lt.Bernoulli()),
        "the mean of an action must be between 0 and",
    ),
    *((lambda v=v: lt.BallSet(v), "dim must be") for v in (0, 2.5)),
    (lambda: lt.BallSet(2, radius=0.0), "radius must be"),
    (lambda: lt.BoxSet([0.0, 0.0], [1.0]), "high must be as long as low"),
    (lambda: lt.BoxSet([0.0, 1.0], [1.0, 1.0]), "high must be as long as low and above it"),
    (lambda: lt.BoxSet([0.0, math.nan], [1.0, 1.0]), "low[1] must be a finite number"),
    *((lambda v=v: lt.LinearExperiment(LIGHT, v), "dim must be") for v in (0, -1, 2.0, "3", True)),
    (lambda: lt.LinearExperiment(LIGHT, 2, horizon=0), "horizon must be"),
    (lambda: lt.LinearExperiment(LIGHT, 2, seed=-1), "seed must be"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD, ids=[sentence[:30] for _, sentence in BAD])
def test_a_bad_value_is_refused_by_name(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value).startswith(sentence)
    assert "but is" in str(caught.value)
    assert "\n" not in str(caught.value)


def forbidden(*args: Any, **settings: Any) -> None:
    raise AssertionError("bad input reached the simulation")


class NotFinite(lt.LinearBonus):
    @staticmethod
    def radius(z: float, t: float) -> float:
        return 1.0 / z


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (lt.UCB(lt.LightTailed(0.2)), bandit(), {}, "policy must be a linear one"),
    (LIGHT, lt.Bandit([0.2, 0.8]), {}, "policy must be for arms"),
    (LIGHT, bandit(), {"horizon": 0}, "horizon must be a whole number of at least 1"),
    (LIGHT, bandit(), {"paths": 0}, "paths must be"),
    (LIGHT, bandit(), {"seed": -1}, "seed must be"),
    (
        LIGHT,
        bandit(unit_rows(30, 2).reshape(10, 3, 2)),
        {"horizon": 11},
        "horizon must be at most 10, the rounds",
    ),
    (lt.LinearUCB(NotFinite()), bandit(), {}, "the radius of"),
]


@pytest.mark.parametrize(
    ("policy", "problem", "given", "sentence"), REFUSED, ids=[case[3][:30] for case in REFUSED]
)
def test_what_cannot_be_simulated_is_said_before_the_run(
    policy: Any, problem: Any, given: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "run_blocks", forbidden)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        lt.simulate(policy, problem, **{"horizon": 10, "paths": 5, "seed": 1, **given})
    assert str(caught.value).startswith(sentence)


def test_a_file_of_contexts_is_read_where_it_lies(tmp_path: Path) -> None:
    """A path, a memory map and the array itself give the same bits; a shorter file is refused."""
    contexts = unit_rows(300, 2).reshape(60, 5, 2)
    np.save(tmp_path / "contexts.npy", contexts)
    mapped = np.load(tmp_path / "contexts.npy", mmap_mode="r")
    problems = [
        bandit(source)
        for source in (tmp_path / "contexts.npy", str(tmp_path / "contexts.npy"), mapped, contexts)
    ]
    assert isinstance(problems[0].actions.values, np.memmap)
    assert len({repr(problem) for problem in problems}) == len(set(problems)) == 1
    rewards = [lt.simulate(LIGHT, problem, horizon=60, paths=20, seed=1).reward for problem in problems]
    assert all(np.array_equal(reward, rewards[0]) for reward in rewards)
    with pytest.raises(
        ValueError, match="horizon must be at most 60, the rounds for which actions are given"
    ):
        lt.simulate(LIGHT, problems[0], horizon=61, paths=20, seed=1)


def test_regret_is_against_the_best_action_of_the_round() -> None:
    """Certain rewards: every number of a path of contexts is known."""
    contexts = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.25]], [[0.0, 1.0], [0.0, 0.5]]])
    problem = bandit(contexts, theta=(0.8, 0.4), noise=lt.Gaussian(0.0))
    out = lt.simulate(LIGHT, problem, horizon=3, paths=50, seed=1)
    assert np.allclose(out.record.best, 0.8 + 0.4 + 0.4)
    assert np.allclose(out.regret, out.pseudo_regret)
    assert np.allclose(out.reward + out.regret, 1.6)
    assert out.most == pytest.approx(0.4 + 0.3 + 0.2)
    assert problem.most_lost(2) == pytest.approx(0.7)
