"""Whatever a call is handed, it gives a value or one sentence (`fuzz_calls` draws and judges them)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_calls import answer_of, judge, run
from fuzz_surface import Pool, surface
from fuzz_values import OwnNoise, Unwritable, Word

import lighttail as lt
from lighttail import bounds
from lighttail.checks import BadInput, numbers, one_of, refuse, shown, whole
from lighttail.noises.formulas import scaled_reward
from lighttail.outcomes.estimates import Estimate

CALLS = int(os.environ.get("LIGHTTAIL_FUZZ_CALLS", "1000"))


@pytest.mark.parametrize("seed", [1])
def test_every_call_gives_a_value_or_one_sentence(seed: int) -> None:
    findings = run(CALLS, seed, kernels=False)
    assert not findings, "\n".join(f"{finding.call}: {finding.wrong}" for finding in findings)


FRAMES = {"Bonus", "Comparison", "Delay", "Diagnostics", "ExactLaw", "IndexPolicy", "LawOutcome",
          "LinearBonus", "LinearTrial", "Noise", "PathsOutcome", "Plan", "Policy", "TailEstimate",
          "Trial"}  # fmt: skip
ELSEWHERE = {"connect", "connect_async", "highest", "plot_tail", "standard_normal", "uniform", "write_report"}


def test_every_public_function_is_called(tmp_path: Path) -> None:
    """FRAMES: classes to derive from, and what other calls return. ELSEWHERE: what other tests call."""
    called = {name.split()[0].split(".")[0].rstrip(",") for name in surface(Pool(False, tmp_path))}
    public = {name for name in lt.__all__ if callable(getattr(lt, name))}
    missing = public - called - FRAMES - ELSEWHERE - {"BadInput"}
    assert not missing, f"add {missing} to NOISES of tests/cases.py, or to tests/fuzz_surface.py"
    assert public - called == FRAMES | ELSEWHERE | {"BadInput"}


def two_lines() -> None:
    raise ValueError("first\nsecond")


def long_winded() -> None:
    raise ValueError("x" * 500)


def no_field() -> None:
    raise BadInput("something is wrong")


def wrong_type() -> None:
    raise TypeError("unsupported operand")


def waits() -> None:
    while True:
        math.sqrt(2.0)


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "nan": ("mean_k_armed", lambda: math.nan),
    "infinite": ("mean_k_armed", lambda: math.inf),
    "nan in a bound": ("bounds.mean", lambda: bounds.Bound(math.nan, "", False)),
    "nan in a tuple": ("bounds.any_time", lambda: (0.0, math.nan)),
    "chance above 1": ("bounds.tail", lambda: bounds.Bound(1.5, "", False)),
    "outside": ("Outcome.mean", lambda: Estimate(2.0, 0.0, 1.0, 0.95)),
    "nan end": ("Outcome.mean", lambda: Estimate(2.0, 0.0, math.nan, 0.95)),
    "TypeError": ("simulate", wrong_type),
    "two lines": ("simulate", two_lines),
    "long": ("simulate", long_winded),
    "no field": ("simulate", no_field),
    "warning": ("simulate", lambda: np.float64(1e308) * 10),
    "hang": ("simulate", waits),
}


@pytest.mark.parametrize("case", BAD)
def test_the_judge_catches_a_bad_answer(case: str) -> None:
    name, function = BAD[case]
    assert judge(name, answer_of(function, {}, seconds=0.3))


def test_the_judge_lets_a_good_answer_pass() -> None:
    good: tuple[Callable[[], Any], ...] = (
        lambda: 0.5,
        lambda: (0.0, 1.0),
        lambda: Estimate(0.1, 0.0, 1.0, 0.95),
    )
    assert not any(judge("bounds.tail", answer_of(function, {})) for function in good)


# What once went wrong, and now gives this value.
UCB = lt.UCB(lt.LightTailed(0.2))
MENDED: dict[str, tuple[Callable[[], Any], Any]] = {
    "equal means": (
        lambda: (
            bounds.regret(UCB, lt.Bandit([0.5, 0.5]), horizon=100, delta=0.01, kind="pseudo_regret").value
        ),
        0.0,
    ),
    "eight bits": (
        lambda: bounds.mean_k_armed(10**6, np.uint8(200), 0.2),
        bounds.mean_k_armed(10**6, 200, 0.2),
    ),
    "a wide span": (lambda: bounds.exp3_ix(0.2, 1000, 2, 1e200, 0.2, 0.5), pytest.approx(math.exp(700.0))),
    "no noise": (lambda: bounds.linear(0.0, 1000, 2, 5e-324, 1.0), bounds.linear(0.0, 1000, 2, 1.0, 1.0)),
    "tiny gaps": (
        lambda: bounds.certificate(UCB, lt.Bandit([0.0, 5e-324]), 100, 1e-300).value,
        0.0,
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_extreme_numbers_give_the_limit(case: str) -> None:
    function, value = MENDED[case]
    assert function() == value


def test_the_certificate_knows_no_units() -> None:
    def chance(unit: float) -> float:
        problem = lt.Bandit([0.2 * unit, 0.5 * unit, 0.8 * unit], lt.Gaussian(unit))
        return bounds.certificate(lt.UCB(lt.LightTailed(0.2 * unit)), problem, 2000, 500.0 * unit).value

    assert chance(2.0**-900) == pytest.approx(chance(1.0), rel=1e-9)
    assert chance(1.0) < 1e-5


def test_a_chance_by_weighted_paths_knows_no_units() -> None:
    def chance(unit: float) -> float:
        problem = lt.Bandit([0.2 * unit, 0.8 * unit], lt.Gaussian(unit))
        settings: dict[str, Any] = {"method": "importance", "seed": 1, "most_pulls": 10**5}
        policy = lt.UCB(lt.LightTailed(0.2 * unit))
        return lt.tail_probability(policy, problem, 50, 12.1 * unit, **settings).value

    assert chance(2.0**-300) == pytest.approx(chance(1.0), rel=1e-6)
    assert 1e-9 < chance(1.0) < 0.1


@pytest.mark.parametrize("method", ["plain", "importance"])
def test_an_error_that_no_budget_reaches_ends_with_the_budget(method: Any) -> None:
    found = lt.tail_probability(
        UCB, lt.Bandit([0.2, 0.8]), 30, 6.1, relative_error=5e-324, seed=1, method=method, most_pulls=10**5
    )
    assert not found.reached
    assert 0.0 < found.low <= found.value <= found.high < 1.0


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no dimension": (lambda: lt.Bandit(np.array(0.5)), "means must be at least two numbers"),
    "far apart": (lambda: lt.Bandit([1e308, -1e308]), "means must be so small"),
    "words for keep": (
        lambda: lt.simulate(UCB, lt.Bandit([0.2, 0.8]), horizon=9, paths=2, keep=np.array(["law"])),  # type: ignore[arg-type]
        "keep must be 'paths' or 'law', but is array",
    ),
    "huge rewards": (
        lambda: lt.simulate(UCB, lt.Bandit([0.2, 0.8], lt.Gaussian(1e300)), horizon=9, paths=2),
        "noise must be so small that 9 pulls add up to less than 1e\\+150",
    ),
    "a long path": (
        lambda: lt.simulate(lt.ThompsonSampling(1.0), lt.Bandit([0.2, 0.8]), horizon=10**14, paths=1),
        "horizon must be at most 100000000000 where every pull is played",
    ),
    "weights without precision": (
        lambda: lt.tail_probability(
            UCB, lt.Bandit([0.2, 0.8], lt.Gaussian(1e-20)), 9, 2.0, method="importance"
        ),
        "noise must be of a sigma that is at least 1e-12 of every mean",
    ),
    "weights in absurd units": (
        lambda: lt.tail_probability(
            UCB, lt.Bandit([0.0, 1e-160], lt.Gaussian(1e-160)), 9, 5e-160, method="importance"
        ),
        "noise must be of a sigma between 1e-100 and 1e\\+100",
    ),
    "a plan of a long path": (
        lambda: lt.tail_probability(UCB, lt.Bandit([0.2, 0.8]), 10**9, 1e8, method="importance"),
        "horizon must be at most 10000000 for importance sampling",
    ),
    "many long paths": (
        lambda: lt.tail_probability(UCB, lt.Bandit([0.2, 0.8]), 10**9, 1e8, method="splitting"),
        "horizon must be at most 1000000 with splitting",
    ),
    "a path beyond the budget": (
        lambda: lt.tail_probability(lt.ThompsonSampling(1.0), lt.Bandit([0.2, 0.8]), 10**10, 1e8),
        "most_pulls must be at least 10000000000, the work of one path",
    ),
    "pulls": (
        lambda: bounds.tail(UCB, lt.Bandit([0.2, 0.8]), 10**400, 5.0),
        "horizon must be a whole number of at most 1000000000000000",
    ),
    "arms of a certificate": (
        lambda: bounds.certificate(UCB, lt.Bandit(np.linspace(0.0, 1.0, 10_000)), 20_000, 5.0),
        "the number of arms must be at most 200",
    ),
    "paths of 10,000 arms": (
        lambda: lt.simulate(UCB, lt.Bandit(np.linspace(0.0, 1.0, 10_000)), horizon=20_000, paths=10**9),
        "paths must be so few",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_at_once(case: str) -> None:
    function, message = REFUSED[case]
    with pytest.raises(BadInput, match=message):
        function()


def test_a_message_repeats_a_hundred_characters_of_any_value() -> None:
    for value in ("x" * 10**6, [0.5] * 10**6, 10**5000, Unwritable(), [Unwritable()], {"a": ["b" * 200]}):
        assert len(shown(value)) <= 100
    assert shown([1, "a", (2,)]) == repr([1, "a", (2,)])
    assert "\n" not in str(refuse("field", np.zeros((3, 3)), "a number"))


def test_what_is_checked_is_a_plain_python_value() -> None:
    assert type(whole("arms", np.uint8(200), 2)) is int
    assert type(one_of("kind", Word("regret"), ("regret",))) is str
    assert all(type(value) is float for value in numbers("means", np.float32([0, 1]), 2, "numbers", 10))


class Louder(lt.Gaussian):
    """Derived from Gaussian, with other rewards."""

    @staticmethod
    def reward(shock: float, arm: int, means: Any, scale: float) -> float:
        return scaled_reward(math.exp(shock), arm, means, scale)


class Stated(Louder):
    """One that vouches for a sigma."""

    sub_gaussian = 2.0  # type: ignore[assignment]


@pytest.mark.parametrize("noise", [OwnNoise(), Louder(1.0)])
def test_a_fact_that_no_author_stated_is_not_assumed(noise: lt.Noise) -> None:
    assert noise.sub_gaussian is None
    assert not noise.is_sub_gaussian
    assert noise.span((0.2, 0.8)) is None
    with pytest.raises(bounds.NoBound, match="noise must be sub-Gaussian") as caught:
        bounds.tail(UCB, lt.Bandit([0.2, 0.8], noise), 100, 5.0)
    assert "states a sub-Gaussian sigma" in caught.value.why


def test_a_stated_sigma_is_used_in_its_general_form() -> None:
    ours, uniform = (lt.Bandit([0.2, 0.8], noise) for noise in (Stated(1.0), lt.Uniform(2.0)))
    assert bounds.certificate(UCB, ours, 4000, 801.0) == bounds.certificate(UCB, uniform, 4000, 801.0)
