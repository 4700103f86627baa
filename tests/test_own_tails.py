"""Tails of policies that a user might write, judged by brute force and by formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from battery import battery, summary
from brute_force import tail_by_rule, tail_by_states
from cases import name
from own_policies import OWN_POLICIES, Bounded, Clipped, Commit, Greedy, KullbackLeibler, Softmax, Timed

import lighttail as lt
from lighttail.tails import weighted
from lighttail.tails.index_routes import inverted_view
from lighttail.tails.luck import draws_for_itself
from lighttail.tails.task import Task

pytestmark = pytest.mark.slow

COINS, TWO = lt.Bandit([0.1, 0.9], lt.Bernoulli()), lt.Bandit([0.2, 0.8])
CHEAP: dict[str, Any] = {"relative_error": 0.15, "most_pulls": 20_000_000, "seed": 1}
Z = 4.0  # standard errors


def chances(policy: lt.Policy, horizon: int, kind: str) -> list[tuple[float, float]]:
    """(regret, exact chance) near 1e-2, 1e-5 and 1e-8, as far as there are such."""
    values, tails = tail_by_rule(policy, COINS, horizon, kind)
    found = []
    for wanted in (1e-2, 1e-5, 1e-8):
        place = int(np.argmin(np.abs(np.log(tails) - math.log(wanted))))
        if 0.1 < tails[place] / wanted < 10.0:
            found.append((float(values[place]), float(tails[place])))
    return found


def errors_off(found: lt.TailEstimate, exact: float) -> float:
    return abs(found.value - exact) / (found.diagnostics.relative_error * found.value / 1.96)


def test_brute_force_of_a_rule_is_that_of_states() -> None:
    policy = lt.UCB(lt.Standard(0.3))
    values, tails = tail_by_rule(policy, COINS, 8, "pseudo_regret")
    known = tail_by_states(policy, COINS, 8)
    assert values.tolist() == pytest.approx(list(known))
    assert tails.tolist() == pytest.approx(list(known.values()), rel=1e-12)


# -- Right answers.


BOTH = [
    (policy, kind)
    for policy in (Commit(5), Bounded(0.5), Clipped(0.7))
    for kind in ("pseudo_regret", "regret")
]


@pytest.mark.parametrize(("policy", "kind"), [*BOTH, (KullbackLeibler(0.5), "pseudo_regret")], ids=name)
def test_weighted_paths_of_any_policy_give_the_exact_chance(policy, kind) -> None:
    asked = chances(policy, 16, kind)
    assert asked
    for regret, exact in asked:
        found = lt.tail_probability(policy, COINS, 16, regret, kind=kind, method="importance", **CHEAP)
        assert errors_off(found, exact) < Z
        assert found.reached
        assert found.low <= found.value <= found.high


def test_an_answer_that_is_off_by_a_fifth_fails_that_test() -> None:
    """Negative control."""
    regret, exact = chances(Commit(5), 16, "regret")[1]
    exacter = CHEAP | {"relative_error": 0.05}
    found = lt.tail_probability(Commit(5), COINS, 16, regret, kind="regret", **exacter)
    assert errors_off(found, exact) < Z < errors_off(found, 1.25 * exact)


@pytest.mark.parametrize("policy", [Commit(3), Greedy(0.1), Clipped(0.7)], ids=name)
def test_splitting_is_for_every_policy_and_says_by_what(policy) -> None:
    values, tails = tail_by_rule(policy, COINS, 7, "pseudo_regret")
    place = int(np.argmin(np.abs(np.log(tails) - math.log(0.01))))
    settings = CHEAP | {"relative_error": 0.25}
    found = lt.tail_probability(policy, COINS, 7, float(values[place]), method="splitting", **settings)
    assert errors_off(found, float(tails[place])) < Z
    goes_by = "the policy's index" if policy.plays_by else "the arms' means, since nothing else is known"
    assert found.diagnostics.score.startswith(f"paths were split by {goes_by}")


@pytest.mark.parametrize(("m", "gap"), [(10, 0.9), (20, 1.5)])
def test_a_wrong_commitment_has_the_chance_of_a_formula(m: int, gap: float) -> None:
    """The bad arm's mean of m rewards is the higher one: Phi(-gap sqrt(m / 2)); 2e-2 and 1e-6."""
    exact = 0.5 * math.erfc(gap * math.sqrt(m / 2) / math.sqrt(2.0))
    found = lt.tail_probability(Commit(m), lt.Bandit([0.0, gap]), 3 * m, (m + 5) * gap, **CHEAP)
    assert errors_off(found, exact) < Z
    assert found.reached


@pytest.mark.parametrize("policy", [*OWN_POLICIES[:3], Softmax(0.3)], ids=name)
def test_counted_paths_agree(policy) -> None:
    problem = lt.Bandit([0.35, 0.65], lt.Bernoulli())
    plain = lt.tail_probability(policy, problem, 30, 3.9, method="plain", **CHEAP)
    weights = lt.tail_probability(policy, problem, 30, 3.9, method="importance", **CHEAP)
    scale = math.hypot(*(one.diagnostics.relative_error * one.value / 1.96 for one in (plain, weights)))
    assert abs(plain.value - weights.value) < Z * scale


def test_problems_that_nobody_chose() -> None:
    verdicts = battery(6, 31, "coins", own=True, plain=100_000, relative_error=0.15, most_pulls=20_000_000)
    assert not [str(one) for one in verdicts if one.wrong]
    assert sum(one.covers for one in verdicts) >= 5, summary(verdicts)


# -- Doubt.


def test_a_policy_that_draws_for_itself_is_never_called_reached() -> None:
    found = lt.tail_probability(Greedy(0.1), COINS, 20, 14.0, kind="regret", method="importance", **CHEAP)
    assert found.diagnostics.doubt == "neither plan tilts what the policy itself draws"
    assert not found.reached


def test_who_draws_is_found_by_a_trial() -> None:
    drawn = {type(p): draws_for_itself(p, COINS, 300) for p in (*OWN_POLICIES, Bounded(0.5))}
    assert drawn == {
        Greedy: True,
        Softmax: True,
        Commit: False,
        Clipped: False,
        Timed: False,
        Bounded: False,
        lt.UCB: False,
    }
    assert all(draws_for_itself(p, COINS, 300) for p in (lt.ThompsonSampling(0.5), lt.Exp3IX()))


def test_opinions_that_disagree_are_not_called_reached(monkeypatch) -> None:
    """Two plans that do not confirm each other, and a third opinion that is three times the value."""
    monkeypatch.setattr(
        weighted, "_difference", lambda first, second: "" if second == first else "two plans disagree"
    )
    regret, _ = chances(Commit(5), 16, "regret")[0]
    found = lt.tail_probability(Commit(5), COINS, 16, regret, kind="regret", method="importance", **CHEAP)
    assert len(found.diagnostics.opinions) == 3
    assert found.diagnostics.doubt == "two plans disagree"
    assert not found.reached


def test_a_third_opinion_that_agrees_is_enough(monkeypatch) -> None:
    real = weighted.ladder

    def lame(task: Any, effort: Any, start: Any = None) -> Any:
        return (None, 0) if start is None else real(task, effort, start)

    monkeypatch.setattr(weighted, "ladder", lame)
    settings = (Commit(5), COINS, 16, chances(Commit(5), 16, "pseudo_regret")[0][0])
    found = lt.tail_probability(*settings, method="importance", **CHEAP)
    assert found.reached
    assert len(found.diagnostics.opinions) == 1
    wrong = lambda task, effort, spent: ((math.log(3.0 * found.value), 0.05), 0)  # noqa: E731
    monkeypatch.setattr(weighted, "_witness", wrong)
    doubted = lt.tail_probability(*settings, method="importance", **CHEAP)
    assert not doubted.reached
    assert doubted.diagnostics.doubt.startswith("there is only one plan")


# -- Levels of an index, and what a class states.


def task(policy: lt.Policy, problem: lt.Bandit) -> Task:
    return Task(policy, problem, 50, 5.0, "pseudo_regret")


def test_levels_are_found_by_inverting_the_index() -> None:
    """For mean + radius it is a difference; a level that no mean reaches is beyond all rewards."""
    policy = Timed(0.5)
    view = inverted_view(task(policy, TWO), 50, (0.5,))
    assert view is not None
    levels = np.array([0.1, 0.9])
    radius = np.array([0.5 * math.sqrt(math.log(51.0) / n) for n in view.grid[0]])
    below, above = view.bounds(levels)
    np.testing.assert_allclose(below, levels[:, None] - radius, atol=1e-9)
    np.testing.assert_allclose(above[:, 1:], (levels[:, None] - radius)[:, :-1], atol=1e-9)
    clipped = inverted_view(task(Clipped(0.7), COINS), 50, (0.7,))
    assert clipped is not None
    assert np.isposinf(clipped.bounds(np.array([1.0]))[0]).all()  # no index is above 1


@dataclass(frozen=True)
class Falling(Clipped):
    """An index that falls with the mean somewhere."""

    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + c / math.sqrt(n) - 2.0 * max(0.0, mean - 0.95)


def test_an_index_that_falls_has_no_levels_but_an_answer() -> None:
    policy = Falling(0.7)
    assert inverted_view(task(policy, COINS), 50, (0.7,)) is None
    regret, exact = chances(policy, 14, "pseudo_regret")[0]
    found = lt.tail_probability(policy, COINS, 14, regret, method="importance", **CHEAP)
    assert errors_off(found, exact) < Z


@dataclass(frozen=True)
class Contrary(lt.UCB):
    """Derived from UCB, and plays by another rule."""

    notes: ClassVar[int] = 0
    rule = lt.Policy.rule

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        return 0


def test_a_class_with_another_rule_inherits_no_facts() -> None:
    assert (lt.UCB.plays_by, lt.UCB.pulls_every_arm_first) == ("radius", True)
    assert (Contrary.plays_by, Contrary.pulls_every_arm_first, Contrary.draws_for_itself) == ("", False, None)
    assert (Clipped.plays_by, Commit.plays_by) == ("index", "")
    policy = Contrary(lt.Standard(0.3))
    lost = lt.tail_probability(policy, TWO, 10, 6.0, method="plain", seed=1)
    assert lost.value == 1.0  # the first arm, for ever: 10 pulls that lose 0.6 each


def test_a_class_derived_from_ours_is_answered_like_ours() -> None:
    policy, ours = Derived(lt.LightTailed(0.2)), lt.UCB(lt.LightTailed(0.2))
    exact = lt.exact_tail(ours, TWO, horizon=40, regret=15.0)
    found = lt.tail_probability(policy, TWO, 40, 15.0, method="importance", **CHEAP)
    assert errors_off(found, exact) < Z
    assert replace(found, diagnostics=None) == replace(  # type: ignore[arg-type]
        lt.tail_probability(ours, TWO, 40, 15.0, method="importance", **CHEAP), diagnostics=None
    )


@dataclass(frozen=True)
class Derived(lt.UCB):
    """UCB by another name."""


@dataclass(frozen=True)
class DrawsLate(lt.IndexPolicy):
    """An index whose rule draws only after more rounds than any trial plays."""

    needs_horizon: ClassVar[bool] = False
    notes: ClassVar[int] = 1

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()

    def rule(self) -> Any:
        return lt.Policy.rule(self)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        if t > 1e6:
            return int(lt.uniform(rng) * len(tried))
        for k in range(len(tried)):
            note[k, 0] = total[k] / heard[k] if heard[k] > 0.0 else math.inf
        return lt.highest(rng, note)


def test_a_draw_that_no_trial_reaches_is_found_in_the_code() -> None:
    from lighttail.tails.luck import draws_for_itself

    problem = lt.Bandit([0.2, 0.8])
    assert draws_for_itself(DrawsLate(), problem, 10**7)
    assert not draws_for_itself(OnlyTies(), problem, 100)  # control: a tie is no luck of its own


class OnlyTies(DrawsLate):
    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        for k in range(len(tried)):
            note[k, 0] = total[k] / heard[k] if heard[k] > 0.0 else math.inf
        return lt.highest(rng, note)
