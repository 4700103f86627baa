"""The certificate holds, above the exact law and simulation; it is close; its search is near the best."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import lighttail as lt
from lighttail import bounds
from lighttail.bounds.answers import _certified
from lighttail.bounds.bound import STEP, noise_tail, with_noise
from lighttail.bounds.chances import best_arm_dropped, grid, least_scale, overtaken, still_active
from lighttail.bounds.proved import chances

PROBLEM = lt.Bandit([0.2, 0.8])
LIGHT = lt.UCB(lt.LightTailed(0.2))

# (horizon, kappa, gap, sigma): what the exact law is computed for, at every number of pulls.
GRID = [
    (20, 0.05, 0.3, 0.5),
    (20, 0.4, 1.5, 1.0),
    (30, 0.02, 0.1, 1.0),
    (30, 0.2, 0.8, 2.0),
    (40, 0.1, 0.5, 0.4),
    (40, 0.5, 0.6, 1.0),
    (50, 0.01, 1.0, 1.0),
    (50, 0.2, 0.2, 0.3),
    (80, 0.05, 0.6, 1.0),
    (80, 0.3, 1.0, 3.0),
]


@functools.cache
def laws() -> list[tuple[tuple[float, ...], lt.UCB, np.ndarray]]:
    """P(pulled more than m times), m = 1, 2, ..., exactly, for both bonuses on the whole grid."""
    out = []
    for horizon, kappa, gap, sigma in GRID:
        for policy in (lt.UCB(lt.LightTailed(kappa)), lt.UCB(lt.ArmOptimal(kappa, 2.0 * kappa))):
            law = lt.exact_law(policy, lt.Bandit([0.0, gap], lt.Gaussian(sigma)), horizon=horizon)
            assert np.all(np.diff(law.survival) <= 1e-5)
            out.append(((horizon, gap, sigma), policy, law.survival[1:]))
    return out


def below_the_law(wrong: Callable[..., np.ndarray]) -> int:
    """On how many points of the grid a formula for the chance is below the exact law."""
    below = 0
    for (horizon, gap, sigma), policy, exact in laws():
        params = policy.params(horizon, 2)
        m = np.arange(1.0, exact.size + 1.0)
        radius = np.array([policy.bonus.radius(n, 0.0, *params) for n in m])
        scale = least_scale(policy.bonus, int(horizon), params)
        below += int(np.sum(wrong(gap / sigma, m, scale / sigma, radius / sigma) < exact * (1 - 1e-3)))
    return below


@pytest.mark.slow
def test_the_certificate_is_never_below_the_exact_law() -> None:
    points = 0
    for (horizon, gap, sigma), policy, exact in laws():
        problem = lt.Bandit([0.0, gap], lt.Gaussian(sigma))
        for kind in (lt.Gaussian, lt.Uniform):  # the sharp form, and the one for every sub-Gaussian noise
            other = lt.Bandit([0.0, gap], kind(sigma))
            certified = np.array(
                [
                    bounds.certificate(policy, other, horizon=horizon, regret=gap * (m + 1)).value
                    for m in range(1, horizon - 1)
                ]
            )
            assert np.all(certified >= exact * (1 - 1e-3)), (policy, problem)
            assert np.all(np.diff(certified) <= 0.0)
            points += exact.size
    assert points > 1600
    # Negative controls: the rate doubled, the radius forgotten, the noise halved are all noticed.
    assert below_the_law(lambda gap, m, c, r: overtaken(gap, m, c, r, True)) == 0
    assert below_the_law(lambda gap, m, c, r: overtaken(gap, m, 2 * c, r, True)) > 20
    assert below_the_law(lambda gap, m, c, r: overtaken(gap, m, c, 0 * r, True)) > 20
    assert below_the_law(lambda gap, m, c, r: overtaken(gap, 4 * m, c, r, True)) > 5


@pytest.mark.parametrize(
    ("horizon", "exact"), [(500, 1.05742e-5), (1000, 1.89137e-8), (2000, 1.61046e-12), (4000, 1.57397e-18)]
)
def test_the_certificate_is_close_on_the_papers_problem(horizon: int, exact: float) -> None:
    """The exact values are those of test_exact.py."""
    regret = 0.2 * horizon + 1e-6
    certified = bounds.certificate(LIGHT, PROBLEM, horizon=horizon, regret=regret)
    assert exact < certified.value < 4 * exact
    assert not certified.vacuous
    wrong = bounds.certificate(lt.UCB(lt.LightTailed(0.3)), PROBLEM, horizon=horizon, regret=regret)
    assert wrong.value < exact  # negative control: half as much kappa again would claim too much


@pytest.mark.parametrize(("horizon", "dropped"), [(500, 7.6e-4), (4000, 1.97e-10)])
def test_elimination_of_the_best_arm_is_close(horizon: int, dropped: float) -> None:
    """P(best arm dropped) is known to 1 % for theta = (0.2, 0.8), kappa = 0.1, sigma = 1."""
    policy = lt.SuccessiveElimination(lt.LightTailed(0.1))
    certified = bounds.certificate(policy, PROBLEM, horizon=horizon, regret=0.5 * horizon).value
    assert dropped < certified < 2 * dropped


FOUR = lt.Bandit([0.2, 0.4, 0.6, 0.8])
SIMULATED = [
    (lt.UCB(lt.LightTailed(0.05)), FOUR),
    (lt.UCB(lt.ArmOptimal(0.05, 0.1)), FOUR),
    (lt.UCB(lt.AnyTime(0.2)), lt.Bandit([0.2, 0.7, 0.8], lt.Gaussian(0.7))),
    (lt.SuccessiveElimination(lt.LightTailed(0.03)), PROBLEM),
    (lt.SuccessiveElimination(lt.LightTailed(0.1)), lt.Bandit([0.0, 0.4, 1.0, 1.0])),
    (lt.UCB(lt.LightTailed(0.1)), lt.Bandit([0.3, 0.5, 0.7], lt.Bernoulli())),
    (lt.SuccessiveElimination(lt.LightTailed(0.03)), lt.Bandit([0.3, 0.5, 0.7], lt.Bernoulli())),
    (lt.UCB(lt.LightTailed(0.1)), lt.Bandit([0.0, 0.5, 0.5, 1.0], lt.Uniform(0.8))),
    (
        lt.UCB(lt.LightTailed(0.1)),
        lt.Bandit.from_samples({"A": [0.0, 1.0, 2.0], "B": [0.5, 2.5], "C": [0.0, 3.0, 3.0]}),
    ),
]


@pytest.mark.parametrize(("policy", "problem"), SIMULATED, ids=lambda value: str(value)[:40])
def test_the_certificate_holds_in_simulation(policy: lt.Policy, problem: lt.Bandit) -> None:
    out = lt.simulate(policy, problem, horizon=300, paths=20_000, seed=4)
    for kind in ("regret", "pseudo_regret"):
        for level in (0.5, 0.9, 0.99, 0.999):
            x = float(np.quantile(getattr(out, kind), level))
            certified = bounds.certificate(policy, problem, horizon=300, regret=x, kind=kind)
            assert certified.value >= out.exceedance(x, kind, level=0.9999).low
    assert bounds.mean(policy, problem, horizon=300).value >= out.mean("pseudo_regret", level=0.9999).low


@pytest.mark.parametrize(
    ("policy", "bolder"),
    [
        (lt.UCB(lt.AnyTime(0.2)), lt.UCB(lt.AnyTime(0.6))),
        (
            lt.SuccessiveElimination(lt.LightTailed(0.03)),
            lt.SuccessiveElimination(lt.LightTailed(0.12)),
        ),
    ],
    ids=str,
)
def test_simulation_notices_too_small_a_certificate(policy: lt.Policy, bolder: lt.Policy) -> None:
    """Negative control: the certificate of a policy that explores more is too small for this one."""
    out = lt.simulate(policy, PROBLEM, horizon=300, paths=20_000, seed=4)
    x = 0.99 * max(out.pseudo_regret)
    certified = bounds.certificate(bolder, PROBLEM, horizon=300, regret=x)
    assert certified.value < out.exceedance(x, "pseudo_regret", level=0.9999).low


def test_the_chances_by_their_definitions() -> None:
    for gap, m, scale, radius in ((0.6, 40.0, 5.0, 0.12), (1.2, 9.0, 2.0, 0.4), (0.3, 400.0, 20.0, 0.05)):
        g, s, lam = gap - radius, 1 / math.sqrt(m), 2 * scale
        points = [g, *(g - k / lam for k in (1, 5, 20))]
        value, _ = quad(
            lambda x, g=g, s=s, lam=lam: min(1.0, math.exp(-lam * (g - x))) * norm.pdf(x, scale=s),
            *(-12 * s, 12 * s),
            points=sorted(p for p in points if abs(p) < 12 * s),
            epsabs=0.0,
            limit=400,
        )
        one = np.array([m])
        assert overtaken(gap, one, scale, radius, True)[0] == pytest.approx(value, rel=1e-6)
        powers = -np.linspace(0.0, lam, 100_001) * g + np.linspace(0.0, lam, 100_001) ** 2 * s**2 / 2
        assert overtaken(gap, one, scale, radius, False)[0] == pytest.approx(np.exp(powers.min()), rel=1e-6)
        assert still_active(gap, one, radius, True)[0] == pytest.approx(
            norm.sf((gap - 2 * radius) / (math.sqrt(2) * s))
        )
        assert still_active(gap, one, radius, False)[0] == pytest.approx(
            math.exp(-((gap - 2 * radius) ** 2) * m / 4)
        )


def test_the_sub_gaussian_form_as_it_is_written_down() -> None:
    """exp(-m g_+^2 / (2 sigma^2)) while m g <= 2c, then exp(-2 c D / sigma^2 + 4 c^2 / (sigma^2 m))."""
    m = np.arange(1.0, 3000.0)
    for gap, c, sigma in ((0.6, 11.0, 1.0), (0.1, 3.0, 0.5), (1.0, 40.0, 2.0)):
        g = gap - c / m
        early = np.exp(-m * np.maximum(g, 0.0) ** 2 / (2 * sigma**2))
        late = np.exp(np.minimum(700.0, -2 * c * gap / sigma**2 + 4 * c**2 / (sigma**2 * m)))
        written = np.where(m * g <= 2 * c, early, late)
        ours = overtaken(gap / sigma, m, c / sigma, c / m / sigma, False)
        assert ours == pytest.approx(written, rel=1e-9)
        assert np.all(ours >= overtaken(gap / sigma, m, c / sigma, c / m / sigma, True) * (1 - 1e-9))


def test_dropping_the_best_arm_by_a_search_over_the_weights() -> None:
    gaps, drop = [0.0, 0.1, 0.7], 9.0
    r = np.linspace(0.0, 3.0, 300_001)
    for paid in (1, 2, 3):
        expected = 0.0
        for j, own in enumerate(gaps):
            others = sum(
                float(np.exp(-drop * (own + r * gaps[k]) / (1 + r + r * r)).min())
                if k != j
                else math.exp(-drop * own)
                for k in range(paid, 3)
            )
            expected += min(math.exp(-drop * own), others)
        assert best_arm_dropped(drop, gaps, paid) == pytest.approx(expected, rel=1e-6)


def test_the_radius_is_at_least_c_over_n() -> None:
    """What Ville's inequality is given; for a bonus of one's own by looking at every n."""
    for bonus in (lt.Standard(0.5), lt.LightTailed(0.2), lt.ArmOptimal(0.1, 0.3), lt.ArmOptimal(0.3, 0.01)):
        params = bonus.params(200, 3)
        scaled = [n * bonus.radius(float(n), 0.0, *params) for n in range(1, 201)]
        assert least_scale(bonus, 200, params) == pytest.approx(min(scaled), rel=1e-12)


def best_split(policy: lt.Policy, problem: lt.Bandit, horizon: int, regret: float) -> float:
    """Every split of the regret over two or three losing arms, tried."""
    certified = _certified(policy, problem, horizon)
    arms = certified.split.arms
    budget = regret / certified.unit * (1 - 1e-12) - 1e-9 * arms[0].gap
    tables = []
    for arm in arms:
        table = np.concatenate([[1.0], arm.values, np.zeros(arm.full)])[: arm.full + 1]
        tables.append(table)
    pulls = np.meshgrid(*(np.arange(1, arm.full + 1) for arm in arms[:-1]), indexing="ij")
    left = budget - sum(arm.gap * m for arm, m in zip(arms, pulls, strict=False))
    last = np.minimum(np.floor(left / arms[-1].gap), arms[-1].full).astype(int)
    sums = sum(table[m] for table, m in zip(tables, pulls, strict=False)) + tables[-1][np.maximum(last, 0)]
    return min(1.0, float(np.where(last >= 1, sums, 1.0).min()))


def test_the_split_is_within_one_percent_of_the_best() -> None:
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(60):
        arms = int(rng.integers(2, 5))
        horizon = int(rng.integers(20, 150 if arms < 4 else 50))
        gaps = (
            rng.uniform(0.02, 1.5, arms - 1) if rng.random() < 0.7 else np.full(arms - 1, rng.uniform(0.1, 1))
        )
        noise = (lt.Gaussian, lt.Uniform)[int(rng.integers(2))](10 ** rng.uniform(-0.7, 0.5))
        kappa = 10 ** rng.uniform(-1.5, 0.3)
        bonus = lt.LightTailed(kappa) if rng.random() < 0.5 else lt.ArmOptimal(kappa, 2 * kappa)
        problem = lt.Bandit([0.0, *(-gaps)], noise)
        certified = _certified(lt.UCB(bonus), problem, horizon)
        for regret in rng.uniform(certified.least, certified.most, 8):
            found, best = certified(regret), best_split(lt.UCB(bonus), problem, horizon, regret)
            assert found >= best * (1 - 1e-9)
            worst = max(worst, found / best) if best > 1e-300 else worst
    assert worst < 1.01


def test_many_arms_and_a_long_horizon() -> None:
    problem = lt.Bandit([1.0, *np.linspace(0.0, 0.95, 15)])
    values = [
        bounds.certificate(LIGHT, problem, horizon=10**6, regret=x).value for x in np.geomspace(1e3, 5e5, 12)
    ]
    assert np.all(np.diff(values) <= 0.0)
    assert values[-1] < 1e-15
    assert grid(10**6)[-1] == 10**6 - 1
    assert np.all(np.diff(grid(10**6)) >= 1.0)


def test_what_is_certain() -> None:
    three = lt.Bandit([0.0, 0.5, 1.0])
    for policy in (LIGHT, lt.SuccessiveElimination(lt.LightTailed(0.2))):
        once = bounds.certificate(policy, three, horizon=100, regret=1.5)
        assert (once.value, once.vacuous) == (1.0, True)  # every arm is pulled once
        most = 1.5 + 97.0
        assert bounds.certificate(policy, three, horizon=100, regret=most).value > 0.0
        assert bounds.certificate(policy, three, horizon=100, regret=most + 1e-3).value == 0.0
    equal = lt.Bandit([0.3, 0.3])
    assert bounds.certificate(LIGHT, equal, horizon=50, regret=1e-9).value == 0.0
    assert bounds.certificate(LIGHT, equal, horizon=50, regret=0.0).value == 1.0
    assert bounds.mean(LIGHT, equal, horizon=50).value == 0.0
    far = bounds.certificate(LIGHT, PROBLEM, horizon=10**6, regret=0.5 * 10**6)
    assert 0.0 < far.value < 1e-307  # too small for a float, and not 0


def test_a_bonus_of_ones_own_is_certified_unless_it_looks_at_the_time() -> None:
    class Twice(lt.Bonus):
        @staticmethod
        def radius(n: float, clock: float, scale: float) -> float:
            return 2.0 * scale / n

        def params(self, horizon: float, arms: int) -> tuple[float, ...]:
            return (0.1 * math.sqrt(horizon * math.log(horizon)),)

    class Growing(Twice):
        @staticmethod
        def radius(n: float, clock: float, scale: float) -> float:
            return scale * clock / n

    mine = bounds.certificate(lt.UCB(Twice()), PROBLEM, horizon=500, regret=100)
    same = bounds.certificate(LIGHT, PROBLEM, horizon=500, regret=100)
    assert mine.value == pytest.approx(same.value)
    with pytest.raises(
        ValueError, match="policy must be UCB or SuccessiveElimination with a bonus that ignores"
    ):
        bounds.certificate(lt.UCB(Growing()), PROBLEM, horizon=500, regret=100)


def test_a_bonus_derived_from_a_shipped_one_is_not_taken_for_it() -> None:
    class Nothing(lt.LightTailed):
        @staticmethod
        def radius(n: float, clock: float, scale: float) -> float:
            return 0.0

    for rule in (lt.UCB, lt.SuccessiveElimination):
        greedy = rule(Nothing(0.2))
        assert bounds.certificate(greedy, PROBLEM, horizon=500, regret=100).vacuous
        assert bounds.guarantee(greedy, PROBLEM, horizon=10**5, regret=2e4).vacuous
        with pytest.raises(ValueError, match="for which a theorem bounds"):
            bounds.tail(greedy, PROBLEM, horizon=10**7, regret=2e6)


def test_no_certificate_for_other_policies() -> None:
    assert chances(lt.ThompsonSampling(1.0), PROBLEM, 500, 1.0) is None


def test_the_noise_is_added_at_the_best_place() -> None:
    def chance(x: float) -> float:
        return min(1.0, 3.0 * math.exp(-0.07 * x))

    places = np.arange(0, 40 * 32 + 1) * STEP
    for x in (1.0, 30.0, 200.0, 900.0):
        for gaussian, tail in ((True, ndtr(-places)), (False, np.exp(-(places**2) / 2))):
            every = np.array([chance(x - 9.0 * z) for z in places]) + tail
            assert with_noise(chance, x, 9.0, gaussian) == pytest.approx(every.min(), rel=1e-12)
            assert noise_tail(2.0, gaussian) == pytest.approx(tail[64])


PLAYED = [
    LIGHT,
    lt.UCB(lt.ArmOptimal(0.1, 0.3)),
    lt.UCB(lt.AnyTime(0.3)),
    lt.UCB(lt.Standard(0.6)),
    lt.SuccessiveElimination(lt.LightTailed(0.1)),
]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    policy=st.sampled_from(PLAYED),
    problem=st.sampled_from([PROBLEM, FOUR, lt.Bandit([0.9, 0.5, 0.1], lt.Bernoulli())]),
    kind=st.sampled_from(["regret", "pseudo_regret"]),
    levels=st.tuples(st.floats(-50, 700), st.floats(-50, 700)),
)
def test_the_certificate_falls_as_the_regret_grows(policy, problem, kind, levels) -> None:
    low, high = (
        bounds.certificate(policy, problem, horizon=1000, regret=x, kind=kind).value for x in sorted(levels)
    )
    assert 1.0 >= low >= high >= 0.0


@pytest.mark.parametrize("sigma", [1e-200, 1e-8, 1e150])
@pytest.mark.parametrize("kappa", [1e-200, 1.0, 1e150])
def test_nothing_overflows(sigma: float, kappa: float) -> None:
    for policy in (
        lt.UCB(lt.LightTailed(kappa)),
        lt.UCB(lt.AnyTime(kappa)),
        lt.SuccessiveElimination(lt.ArmOptimal(kappa, 0.1)),
    ):
        for noise in (lt.Gaussian(sigma), lt.Uniform(sigma)):
            problem = lt.Bandit([1.0, 1.0, 1.0 - 1e-12, 0.7, 0.0], noise)
            for x in (-5.0, 1e-13, 30.0, 1e300):
                for kind in ("regret", "pseudo_regret"):
                    bound = bounds.guarantee(policy, problem, horizon=50, regret=x, kind=kind)
                    assert 0.0 <= bound.value <= 1.0
