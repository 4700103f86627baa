"""Late rewards, batches and a start: the compiled paths are those of an `Experiment` that is told so late."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import late
import numpy as np
import pytest
from cases import MORE_POLICIES, POLICIES, name

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.delays import ObservedDelays, wait
from lighttail.kernels import late_kernel_for
from lighttail.random.streams import block_generator

PROBLEM = lt.Bandit([0.3, 0.6, 0.5], lt.Gaussian(0.7))
TIES = lt.Bandit([0.5, 0.5, 0.5], lt.Gaussian(0.0))
COURSES: list[dict[str, Any]] = [
    {"delay": 7},
    {"delay": lt.UniformDelay(0, 20, never=0.2)},
    {"delay": lt.GeometricDelay(5.0)},
    {"delay": [0, 0, 3, 40, math.inf]},
    {"batch": 8},
    {"delay": lt.GeometricDelay(9.0, never=0.1), "batch": 5},
]


def same(found: lt.Outcome, expected: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_array_equal(found.pulls, expected[1])
    np.testing.assert_array_equal(found.reward, expected[0])


CASES = [
    *((policy, course) for course in COURSES for policy in POLICIES),
    *((policy, course) for course in (COURSES[0], COURSES[5]) for policy in MORE_POLICIES),
]


@pytest.mark.parametrize(("policy", "course"), CASES, ids=name)
def test_late_paths_are_those_of_an_experiment(policy: lt.Policy, course: dict[str, Any]) -> None:
    """Rewards whose sums are rounded, and rewards that are all alike, so that many decisions are ties."""
    for problem in (PROBLEM, TIES):
        same(
            lt.simulate(policy, problem, horizon=60, paths=6, seed=3, **course),
            late.play(policy, problem, 60, 6, 3, **course),
        )


@pytest.mark.parametrize("policy", [lt.UCB(lt.LightTailed(0.2)), lt.ThompsonSampling(0.8)], ids=name)
def test_late_conversions_are_those_of_an_experiment(policy: lt.Policy) -> None:
    """The reward of another noise, for a policy that draws and for one that does not."""
    coins = lt.Bandit([0.3, 0.6, 0.5], lt.Bernoulli())
    for course in COURSES:
        same(
            lt.simulate(policy, coins, horizon=60, paths=6, seed=3, **course),
            late.play(policy, coins, 60, 6, 3, **course),
        )


@pytest.mark.parametrize("policy", [*POLICIES, *MORE_POLICIES], ids=name)
def test_no_delay_and_a_delay_of_zero_are_the_same_bits(policy: lt.Policy) -> None:
    plain = lt.simulate(policy, PROBLEM, horizon=200, paths=20, seed=5, method="step")
    for course in (
        {"delay": 0},
        {"delay": lt.FixedDelay(0)},
        {"batch": 1},
        {"delay": lt.GeometricDelay(0.0)},
    ):
        found = lt.simulate(policy, PROBLEM, horizon=200, paths=20, seed=5, **course)
        np.testing.assert_array_equal(found.reward, plain.reward)
        np.testing.assert_array_equal(found.pulls, plain.pulls)


def halfway(policy: lt.Policy, rounds: int = 25) -> lt.Experiment:
    """An experiment with some rewards told, in an order of their own, and some open."""
    experiment = lt.Experiment(policy, ["a", "b", "c"], horizon=60, seed=9)
    rng = np.random.default_rng(4)
    waiting: list[lt.Trial] = []
    for _ in range(rounds):
        waiting.append(experiment.ask())
        while len(waiting) > 4:
            trial = waiting.pop(int(rng.integers(len(waiting))))
            experiment.tell(trial.id, float(rng.random() < 0.5))
    return experiment


def numbered(start: lt.Experiment) -> lt.Experiment:
    """The same experiment with its arms by number."""
    other = lt.Experiment.from_json(start.to_json())
    other.arms = [0, 1, 2]
    return other


@pytest.mark.parametrize("policy", [*POLICIES, *MORE_POLICIES], ids=name)
@pytest.mark.parametrize(
    "course", [{}, {"delay": 6, "batch": 4}, {"delay": lt.GeometricDelay(8.0, never=0.3)}], ids=str
)
def test_a_start_goes_on_from_an_experiment(policy: lt.Policy, course: dict[str, Any]) -> None:
    start = halfway(policy)
    found = lt.simulate(policy, PROBLEM, horizon=60, paths=5, seed=2, start=start, **course)
    same(found, late.play(policy, PROBLEM, 60, 5, 2, start=numbered(start), **course))
    assert (found.pulls.sum(axis=1) == 60).all()


def test_the_oracle_notices_a_reward_that_comes_one_pull_early() -> None:
    """Negative control."""
    policy = lt.UCB(lt.Standard(0.4))
    found = lt.simulate(policy, PROBLEM, horizon=60, paths=6, seed=3, delay=6)
    assert not np.array_equal(found.pulls, late.play(policy, PROBLEM, 60, 6, 3, delay=7)[1])


def test_threads_executors_and_blocks_change_no_bit() -> None:
    policy, course = lt.ThompsonSampling(0.5), {"delay": lt.UniformDelay(3, 300), "batch": 10}
    plain = lt.simulate(policy, PROBLEM, horizon=2000, paths=600, seed=8, threads=1, **course)
    others = [lt.simulate(policy, PROBLEM, horizon=2000, paths=600, seed=8, threads=2, **course)]
    with ThreadPoolExecutor(2) as executor:
        others.append(
            lt.simulate(policy, PROBLEM, horizon=2000, paths=600, seed=8, executor=executor, **course)
        )
    for other in others:
        np.testing.assert_array_equal(other.reward, plain.reward)
    assert plain.settings["delay"] == "UniformDelay(low=3, high=300, never=0.0)"
    assert plain.settings["batch"] == 10


def test_rewards_that_never_come_leave_everything_to_chance() -> None:
    """A policy that hears nothing pulls all arms alike; the outcome counts its rewards all the same."""
    out = lt.simulate(
        lt.UCB(lt.LightTailed(0.2)),
        PROBLEM,
        horizon=300,
        paths=200,
        seed=1,
        delay=lt.FixedDelay(0, never=1.0),
    )
    np.testing.assert_allclose(out.pulls.mean(axis=0), 100, atol=1)
    assert abs(out.reward.mean() - 300 * np.mean(PROBLEM.means)) < 4 * math.sqrt(300 * 0.7**2 / 200)


@pytest.mark.parametrize(
    ("course", "said"),
    [
        ({"delay": -1}, "delay must be a whole number of at least 0"),
        ({"delay": 1.5}, "delay must be a whole number"),
        ({"delay": "soon"}, "delay must be a whole number"),
        ({"delay": [1, -2]}, "delay must be a list of whole numbers of pulls"),
        ({"delay": []}, "delay must be a list of whole numbers of pulls"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"start": "there"}, "start must be an Experiment"),
        ({"delay": 3, "method": "skip"}, "method must be 'auto' or 'step' with rewards that come late"),
    ],
)
def test_bad_input_is_named(course: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        lt.simulate(lt.UCB(lt.Standard(0.4)), PROBLEM, **({"horizon": 60, "paths": 5, "seed": 1} | course))


DRAWS = {  # each law written down a second time, by NumPy's own numbers
    lt.FixedDelay(7): lambda rng: 7.0,
    lt.UniformDelay(3, 9): lambda rng: 3.0 + math.floor(7.0 * rng.random()),
    lt.GeometricDelay(5.0): lambda rng: math.floor(math.log(1.0 - rng.random()) / math.log(5.0 / 6.0)),
    lt.GeometricDelay(0.0): lambda rng: 0.0,
    ObservedDelays([0, 3, math.inf]): lambda rng: (0.0, 3.0, math.inf)[math.floor(3.0 * rng.random())],
}


@pytest.mark.parametrize("never", [0.0, 0.3])
@pytest.mark.parametrize("delay", DRAWS, ids=name)
def test_a_delay_is_drawn_by_its_law(delay: Any, never: float) -> None:
    ours, numpys = block_generator(1, 2), block_generator(1, 2)
    for _ in range(200):
        lost = never > 0.0 and numpys.random() < never
        expected = math.inf if lost else DRAWS[delay](numpys)
        assert wait(ours, *replace(delay, never=never).params()) == expected
    assert ours.random() == numpys.random()


def test_one_kernel_plays_every_delay_and_every_start() -> None:
    policy = lt.UCB(lt.Standard(0.4))
    courses = [*COURSES, {"start": halfway(policy)}]
    for course in courses:
        lt.simulate(policy, PROBLEM, horizon=60, paths=2, seed=3, **course)
    assert len(late_kernel_for(policy, PROBLEM).signatures) == 1


def test_a_delay_of_ones_own_is_refused() -> None:
    """Nothing would hold its `wait` to its `longest`, and a place outside of the ring ends the process."""

    class Mine(lt.FixedDelay):
        longest = 3.0  # type: ignore[assignment]

    with pytest.raises(BadInput, match=r"delay must be a whole number of at least 0 \(in pulls\), a delay"):
        lt.simulate(lt.UCB(lt.Standard(0.4)), PROBLEM, horizon=60, paths=5, delay=Mine(400))


def test_a_reward_that_may_never_come_is_not_expected_when_it_is_overdue() -> None:
    policy = lt.UCB(lt.Standard(0.4))
    start = halfway(policy, 40)
    for trial in start.open_trials[1:]:
        start.tell(trial.id, 1.0)
    rare = lt.FixedDelay(1, never=1e-4)
    out = lt.simulate(policy, PROBLEM, horizon=60, paths=50, seed=2, start=start, delay=rare)
    np.testing.assert_array_equal(
        out.pulls, late.play(policy, PROBLEM, 60, 50, 2, start=numbered(start), delay=rare)[1]
    )


def test_a_start_must_fit() -> None:
    policy = lt.UCB(lt.Standard(0.4))
    start = halfway(policy)
    with pytest.raises(BadInput, match="start must play"):
        lt.simulate(lt.UCB(lt.Standard(0.5)), PROBLEM, horizon=60, paths=5, start=start)
    with pytest.raises(BadInput, match="the number of arms of start must be 2 arms"):
        lt.simulate(policy, lt.Bandit([0.3, 0.6]), horizon=60, paths=5, start=start)
    with pytest.raises(BadInput, match="horizon must be at least 25"):
        lt.simulate(policy, PROBLEM, horizon=20, paths=5, start=start)
