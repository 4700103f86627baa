"""The bounds hold: above the exact law, above simulation, and as the theorems print them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lighttail as lt
from lighttail import bounds

PROBLEM = lt.Bandit([0.2, 0.8])
LIGHT = lt.UCB(lt.LightTailed(0.2))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("gap", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("kappa", [0.05, 0.2, 0.6])
def test_the_certificate_is_never_below_the_exact_law(kappa: float, gap: float, sigma: float) -> None:
    problem = lt.Bandit([0.0, gap], lt.Gaussian(sigma))
    policy = lt.UCB(lt.LightTailed(kappa))
    law = lt.exact_law(policy, problem, horizon=150)
    certified = [
        bounds.certificate(policy, problem, horizon=150, regret=gap * n).value for n in range(2, 150)
    ]
    assert np.all(np.array(certified) >= law.survival[2:150] * (1 - 1e-3))
    assert np.all(np.diff(certified) <= 0.0)


@pytest.mark.parametrize("horizon", [500, 2000])
def test_the_certificate_is_close_on_the_papers_problem(horizon: int) -> None:
    regret = 0.2 * horizon + 1e-6
    exact = lt.exact_tail(LIGHT, PROBLEM, horizon=horizon, regret=regret)
    certified = bounds.certificate(LIGHT, PROBLEM, horizon=horizon, regret=regret)
    assert exact < certified.value < 5 * exact
    assert not certified.vacuous
    wrong = bounds.certificate(lt.UCB(lt.LightTailed(0.3)), PROBLEM, horizon=horizon, regret=regret)
    assert wrong.value < exact  # negative control: half as much kappa again would claim too much


@pytest.mark.parametrize(
    "problem",
    [
        lt.Bandit([0.2, 0.4, 0.6, 0.8]),
        lt.Bandit([0.3, 0.5, 0.7], lt.Bernoulli()),
        lt.Bandit([0.0, 0.5, 0.5, 1.0], lt.Uniform(1.5)),
        lt.Bandit.from_samples({"A": [0.0, 1.0, 2.0], "B": [0.5, 2.5], "C": [0.0, 3.0, 3.0]}),
    ],
    ids=lambda problem: type(problem.noise).__name__,
)
def test_the_certificate_holds_with_more_arms_and_other_noise(problem: lt.Bandit) -> None:
    policy = lt.UCB(lt.LightTailed(0.1))
    out = lt.simulate(policy, problem, horizon=300, paths=20_000, seed=4)
    for share in (0.1, 0.3, 0.6, 0.9):
        regret = share * max(problem.gaps) * 300
        certified = bounds.certificate(policy, problem, horizon=300, regret=regret)
        assert certified.value >= out.exceedance(regret, "pseudo_regret", level=0.9999).low


def test_the_sub_gaussian_form_is_never_below_the_gaussian_one() -> None:
    pulls = np.arange(1.0, 5000.0)
    for gap, scale, sigma in ((0.6, 11.0, 1.0), (0.1, 3.0, 0.5), (1.0, 40.0, 2.0)):
        gaussian = bounds._gaussian_chance(pulls, gap, scale, sigma)
        assert np.all(bounds._sub_gaussian_chance(pulls, gap, scale, sigma) >= gaussian * (1 - 1e-9))


def test_terms_of_the_theorems_by_hand() -> None:
    """T = 10,000, K = 2, sigma = 2, eta = 0.25 (kappa = 1), x = 20,000, from the statements in eta."""
    t, k, sigma, eta, x = 10_000, 2, 2.0, 0.25, 20_000.0
    log = math.log(t)
    kappa = sigma * math.sqrt(eta)
    assert bounds.exp_k_armed(x, t, k, sigma, kappa) == pytest.approx(
        (
            math.exp(-(x**2) / (2 * k * sigma**2 * t)),
            2
            * k
            * math.exp(
                -((x - 2 * k - 4 * k * sigma * math.sqrt(eta * t * log)) ** 2) / (32 * sigma**2 * k**2 * t)
            ),
            k**2 * t * math.exp(-x * math.sqrt(eta * log) / (8 * sigma * k * math.sqrt(t))),
        )
    )
    assert bounds.exp_k_armed_optimal(x, t, k, sigma, kappa, 0.0) == pytest.approx(
        (
            math.exp(-(x**2) / (8 * k * sigma**2 * t)),
            4
            * k
            * math.exp(
                -((x - 2 * k - 8 * sigma * math.sqrt(eta * k * t * log)) ** 2) / (128 * sigma**2 * k * t)
            ),
            2 * k**2 * t * math.exp(-(x - 2 * k) * math.sqrt(eta * log) / (16 * sigma * math.sqrt(k * t))),
        )
    )
    assert bounds.any_time(x, t, k, sigma, kappa) == pytest.approx(
        (
            math.exp(-(x**2) / (8 * k * sigma**2 * t)),
            2
            * k
            * t**2
            * math.exp(
                -((x - 2 * k - 16 * sigma * math.sqrt(2 * eta * k * t * log)) ** 2) / (512 * sigma**2 * k * t)
            ),
            2 * k * t**3 * math.exp(-(x - 2 * k) * math.sqrt(eta * log) / (16 * sigma * math.sqrt(k * t))),
        )
    )


def test_a_theorem_is_picked_and_its_vacuity_said() -> None:
    sources = {
        lt.UCB(lt.LightTailed(0.2)): "Thm exp-K-armed",
        lt.SuccessiveElimination(lt.LightTailed(0.2)): "Thm exp-K-armed",
        lt.UCB(lt.ArmOptimal(0.2, 0.1)): "Thm exp-K-armed-optimal",
        lt.UCB(lt.AnyTime(0.2)): "Thm any-time",
    }
    for policy, source in sources.items():
        here = bounds.tail(policy, PROBLEM, horizon=4000, regret=800)
        assert (here.source, here.value, here.vacuous) == (source, 1.0, True)
        assert "says nothing here" in str(here)
        far = bounds.tail(policy, PROBLEM, horizon=10**9, regret=0.2 * 10**9)
        assert float(far) < 1e-6
        assert not far.vacuous
        noiseless = bounds.tail(policy, PROBLEM, horizon=10**9, regret=0.2 * 10**9, kind="pseudo_regret")
        assert noiseless.value <= far.value


def test_bounds_fall_as_the_regret_grows() -> None:
    values = [bounds.tail(LIGHT, PROBLEM, horizon=10**8, regret=x).value for x in np.linspace(0, 6e7, 40)]
    assert np.all(np.diff(values) <= 0.0)
    assert values[-1] < values[0] == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: bounds.tail(lt.UCB(lt.Standard(0.8)), PROBLEM, horizon=50, regret=1),
            "for which a theorem bounds",
        ),
        (
            lambda: bounds.tail(lt.ThompsonSampling(0.8), PROBLEM, horizon=50, regret=1),
            "for which a theorem bounds",
        ),
        (
            lambda: bounds.tail(LIGHT, lt.Bandit([0, 2]), horizon=50, regret=1),
            "means must be at most 1 apart",
        ),
        (
            lambda: bounds.tail(LIGHT, lt.Bandit([0, 1], lt.StudentT(3)), horizon=50, regret=1),
            "noise must be",
        ),
        (lambda: bounds.tail(LIGHT, PROBLEM, horizon=50, regret=math.nan), "regret must be a finite number"),
        (lambda: bounds.tail(LIGHT, PROBLEM, horizon=50, regret=1, kind="x"), "kind must be"),  # type: ignore[arg-type]
        (
            lambda: bounds.certificate(lt.UCB(lt.AnyTime(1)), PROBLEM, horizon=50, regret=1),
            "policy must be UCB with",
        ),
    ],
)
def test_what_no_bound_is_for_is_refused(call, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
