"""The theorems as they are printed, and corrected; how a bound is found, inverted and refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lighttail as lt
from lighttail import bounds

PROBLEM = lt.Bandit([0.2, 0.8])
COIN = lt.Bandit([0.3, 0.6], lt.Bernoulli())
LIGHT = lt.UCB(lt.LightTailed(0.2))
DROPS = lt.SuccessiveElimination(lt.LightTailed(0.2))

# T, K, sigma, eta, x: kappa = sigma sqrt(eta). The formulas below are in the paper's letters.
T, K, SIGMA, ETA, X = 10_000, 3, 2.0, 0.25, 30_000.0
KAPPA, LOG = SIGMA * math.sqrt(ETA), math.log(T)


def exp(value: float) -> float:
    return math.exp(value)


def test_terms_of_thm_exp_k_armed_by_hand() -> None:
    noise = exp(-(X**2) / (2 * K * SIGMA**2 * T))
    second = exp(-((X - 2 * K - 4 * K * SIGMA * math.sqrt(ETA * T * LOG)) ** 2) / (32 * SIGMA**2 * K**2 * T))
    rate = X * math.sqrt(ETA * LOG) / (SIGMA * K * math.sqrt(T))
    stated = bounds.exp_k_armed(X, T, K, SIGMA, KAPPA)
    assert stated == pytest.approx((noise, 2 * K * second, K**2 * T * exp(-rate / 8)))
    half = bounds.exp_k_armed(X, T, K, SIGMA, KAPPA, rule="UCB")
    assert half == pytest.approx((noise, K * second, K * T * exp(-rate / 2)))
    assert all(a <= b for a, b in zip(half, stated, strict=True))


def test_terms_of_thm_exp_2_armed_by_hand() -> None:
    c = SIGMA * math.sqrt(ETA * T * LOG)
    assert bounds.exp_2_armed(X, T, SIGMA, KAPPA) == pytest.approx(
        (
            exp(-(X**2) / (8 * SIGMA**2 * T)),
            2 * exp(-((X - 2 - 4 * c) ** 2) / (32 * SIGMA**2 * T)),
            T * exp(-X * math.sqrt(ETA * LOG) / (2 * SIGMA * math.sqrt(T))),
        )
    )


def test_the_rounded_form_of_thm_exp_2_armed_follows() -> None:
    """4 exp(-x / (16 sigma sqrt T)) for eta >= 4 and x >= max(4, 16 c); with a plus sign it says nothing."""
    for eta in (4.0, 9.0):
        for t in (3, 50, 10**5):
            least = max(4.0, 16 * 0.5 * math.sqrt(eta * t * math.log(t)))
            for x in (least, 2 * least):
                rounded = 4 * exp(-x / (16 * 0.5 * math.sqrt(t)))
                assert sum(bounds.exp_2_armed(x, t, 0.5, 0.5 * math.sqrt(eta))) <= rounded
                # the second term with 256, and not with the printed 128, is what the steps give
                second = bounds.exp_2_armed(x, t, 0.5, 0.5 * math.sqrt(eta))[1]
                assert second <= 2 * exp(-(x**2) / (256 * 0.25 * t))


def test_terms_of_thm_exp_k_armed_optimal_by_hand() -> None:
    low = 0.5
    noise = exp(-(X**2) / (8 * K * SIGMA**2 * T))
    width = max(KAPPA, low)
    second = exp(-((X - 2 * K - 8 * width * math.sqrt(K * T * LOG)) ** 2) / (128 * SIGMA**2 * K * T))
    rate = (X - 2 * K) * math.sqrt(ETA * LOG) / (SIGMA * math.sqrt(K * T))
    stated = bounds.exp_k_armed_optimal(X, T, K, SIGMA, KAPPA, low)
    assert stated == pytest.approx((noise, 4 * K * second, 2 * K**2 * T * exp(-rate / 16)))
    half = bounds.exp_k_armed_optimal(X, T, K, SIGMA, KAPPA, low, rule="UCB")
    assert half == pytest.approx((noise, 2 * K * second, 2 * K * T * exp(-rate / 4)))
    wide = bounds.exp_k_armed_optimal(X, T, K, SIGMA, KAPPA, 2 * KAPPA)
    assert wide[1] > stated[1]


def test_terms_of_thm_any_time_by_hand() -> None:
    assert bounds.any_time(X, T, K, SIGMA, KAPPA) == pytest.approx(
        (
            exp(-(X**2) / (8 * K * SIGMA**2 * T)),
            2
            * K
            * T**2
            * exp(
                -((X - 2 * K - 16 * SIGMA * math.sqrt(2 * ETA * K * T * LOG)) ** 2) / (512 * SIGMA**2 * K * T)
            ),
            2 * K * T**3 * exp(-(X - 2 * K) * math.sqrt(ETA * LOG) / (16 * SIGMA * math.sqrt(K * T))),
        )
    )


def test_terms_of_thm_linear_by_hand() -> None:
    d, x = 3, 3e6
    factor = 2 * d * (T / d) ** (2 * d + 1)
    late = x - 4 * math.sqrt(d) - 32 * d * math.sqrt(T) * LOG - 16 * SIGMA * math.sqrt(ETA * d * T) * LOG
    assert bounds.linear(x, T, d, SIGMA, KAPPA) == pytest.approx(
        (
            exp(-(x**2) / (2 * SIGMA**2 * d**2 * T)),
            factor * exp(-(late**2) / (512 * SIGMA**2 * d * T * LOG**2)),
            factor * exp(-(x - 4 * math.sqrt(d)) * math.sqrt(ETA) / (8 * SIGMA * math.sqrt(d * T) * LOG)),
        )
    )
    # For T < 1.23 d the printed (T/d)^(2d) is below what Thm 1 of Abbasi-Yadkori et al. needs.
    assert bounds.linear(0.0, 20, 20, 1.0, 1.0)[1] == pytest.approx(2 * 20 * 2**10)
    assert sum(bounds.linear(1e3, 10**6, 200, 1.0, 1.0)) > 1.0  # larger than any float, and no error


def test_exp3_ix_is_the_printed_bound_or_less() -> None:
    n, k = 20_000, 5
    log = math.log(k + 1)
    eta = math.sqrt(2 * log / (n * k))
    for delta in (0.1, 1e-4, 1e-9):
        by_hand = (
            math.sqrt(8 * n * k * log)
            + math.sqrt(n * k / (2 * log)) * math.log(1 / delta)
            + math.log((k + 1) / delta)
        )
        chance = bounds.exp3_ix(by_hand, n, k, 1.0, eta, eta / 2)
        assert 0.5 * delta < chance <= delta
        # losses in [0, 5] with eta / 5 are the same policy on losses in [0, 1], five times as large
        assert bounds.exp3_ix(5 * by_hand, n, k, 5.0, eta / 5, eta / 2) == pytest.approx(chance)


def test_means_by_hand() -> None:
    c = KAPPA * math.sqrt(T * LOG)
    assert bounds.mean_k_armed(T, K, KAPPA) == pytest.approx(4 * K + 4 * K * c)
    assert bounds.mean_k_armed(T, K, KAPPA, "UCB") == pytest.approx(3 * K + 2 * K * c)
    assert bounds.mean_2_armed(T, KAPPA) == pytest.approx(6 + 4 * c)
    assert bounds.mean_2_armed(T, KAPPA, "UCB") == pytest.approx(5 + 2 * c)
    wide = 3 * KAPPA * math.sqrt(K * T * LOG)
    assert bounds.mean_k_armed_optimal(T, K, KAPPA, 3 * KAPPA) == pytest.approx(4 * K + 8 * wide)
    assert bounds.mean_k_armed_optimal(T, K, KAPPA, 3 * KAPPA, "UCB") == pytest.approx(4 * K + 4 * wide)


@pytest.mark.parametrize("eta", [0.04, 0.25, 1.0, 6.0])
def test_the_forms_in_y(eta: float) -> None:
    """As printed; never below the theorem they simplify; their inverse is one."""
    kappa = SIGMA * math.sqrt(eta)
    wide = max(eta, 1 / eta)
    plain = bounds.simplified_k_armed(T, K, SIGMA, kappa)
    y = (X * 10 - 2 * K - 16 * SIGMA * K * math.sqrt(wide * T * LOG)) / (8 * SIGMA * K * math.sqrt(T))
    assert plain.tail(X * 10) == pytest.approx(min(1.0, 4 * K * exp(-min(y**2, y * math.sqrt(eta * LOG)))))
    best = bounds.simplified_k_armed_optimal(T, K, SIGMA, kappa, 0.0)
    y = (X * 10 - 2 * K - 32 * SIGMA * math.sqrt(wide * K * T * LOG)) / (16 * SIGMA * math.sqrt(K * T))
    assert best.tail(X * 10) == pytest.approx(min(1.0, 8 * K * exp(-min(y**2, y * math.sqrt(eta * LOG)))))
    d = 2
    lin = bounds.simplified_linear(T, d, SIGMA, kappa)
    x = 3e8
    late = 4 * math.sqrt(d) + 32 * d * math.sqrt(T) * LOG
    late += 16 * SIGMA * math.sqrt(wide) * d * math.sqrt(d * T) * LOG**2
    y = (x - late) / (32 * SIGMA * math.sqrt(d * T) * LOG)
    log_chance = math.log(8 * d * (T / d) ** (2 * d + 1)) - min(y**2, y * math.sqrt(eta))
    assert lin.tail(x) == pytest.approx(exp(max(-745.0, min(0.0, log_chance))), rel=1e-6)
    for form, terms in (
        (plain, lambda x: sum(bounds.exp_k_armed(x, T, K, SIGMA, kappa))),
        (best, lambda x: sum(bounds.exp_k_armed_optimal(x, T, K, SIGMA, kappa, 0.0))),
        (lin, lambda x: sum(bounds.linear(x, T, d, SIGMA, kappa)[1:])),
    ):
        for x in np.geomspace(form.offset / 2, form.offset * 50, 40):
            assert form.tail(x) >= min(1.0, terms(x)) * (1 - 1e-12)
        for delta in (0.3, 1e-3, 1e-12):
            x = form.regret(delta)
            assert form.tail(x * (1 + 1e-9)) <= delta
            assert form.tail(x * (1 - 1e-6)) > delta


def test_the_printed_high_probability_form() -> None:
    """ArmOptimal, eta = 1: x = 2K + 32 sigma sqrt(KT ln T) + 16 sigma sqrt(KT) y."""
    delta = 1e-5
    log = math.log(8 * K / delta)
    y = max(math.sqrt(log), log / math.sqrt(LOG))
    x = 2 * K + 32 * SIGMA * math.sqrt(K * T * LOG) + 16 * SIGMA * math.sqrt(K * T) * y
    assert bounds.simplified_k_armed_optimal(T, K, SIGMA, SIGMA, 0.0).regret(delta) == pytest.approx(x)
    problem = lt.Bandit([0.1, 0.5, 0.9], lt.Gaussian(SIGMA))
    policy = lt.UCB(lt.ArmOptimal(SIGMA, 0.0))
    assert bounds.simplified(policy, problem, horizon=T).regret(delta) == pytest.approx(x)
    assert bounds.regret(policy, problem, horizon=T, delta=delta).value < x
    light = bounds.simplified(lt.UCB(lt.LightTailed(0.2)), problem, horizon=T)
    assert light == bounds.simplified_k_armed(T, K, SIGMA, 0.2)


def test_what_no_policy_can_do_better() -> None:
    assert bounds.best_tail_exponent(0.75) == 0.25
    # the light-tailed bonus reaches the exponent: ln P / T^(alpha - 1/2) stays between two constants
    for alpha in (0.8, 1.0):
        rates = [
            -math.log(bounds.exp_2_armed(0.05 * t**alpha, t, 1.0, 0.2)[2] / t) / t ** (alpha - 0.5)
            for t in (10**4, 10**6, 10**8)
        ]
        assert max(rates) / min(rates) < math.sqrt(2.01)  # sqrt(ln T) alone
    assert bounds.consistent_tail_exponent(3.0, 0.5) == pytest.approx(2 * 3.0 / 0.25)
    levels = np.linspace(0.5, 4.0, 4001)
    costs = np.log(levels / 0.5) - 0.5 + (0.25 + 1) / (2 * levels**2)
    assert bounds.consistent_tail_exponent(3.0, 0.5, 4.0) == pytest.approx(12 * costs.min(), rel=1e-5)
    assert bounds.consistent_tail_exponent(3.0, 0.5, 0.7) == pytest.approx(
        12 * costs[levels <= 0.7].min(), rel=1e-3
    )


SOURCES = {
    LIGHT: "Thm exp-2-armed",
    DROPS: "Thm exp-2-armed",
    lt.UCB(lt.ArmOptimal(0.2, 0.1)): "Thm exp-K-armed-optimal",
    lt.SuccessiveElimination(lt.ArmOptimal(0.2, 0.1)): "Thm exp-K-armed-optimal",
    lt.UCB(lt.AnyTime(0.2)): "Thm any-time",
}


@pytest.mark.parametrize(("policy", "source"), SOURCES.items(), ids=str)
def test_a_theorem_is_picked_and_its_vacuity_said(policy: lt.Policy, source: str) -> None:
    here = bounds.tail(policy, PROBLEM, horizon=4000, regret=800)
    assert (here.value, here.vacuous) == (1.0, True)
    assert "this bound tells us nothing" in str(here)
    horizon = 10**7 if source == "Thm exp-2-armed" else 10**9
    far = bounds.tail(policy, PROBLEM, horizon=horizon, regret=0.2 * horizon, kind="regret")
    assert far.source == source
    assert 0.0 < float(far) < 1e-6
    assert not far.vacuous
    noiseless = bounds.tail(policy, PROBLEM, horizon=horizon, regret=0.2 * horizon, kind="pseudo_regret")
    assert noiseless.value <= far.value


def test_which_terms_bound_which_regret() -> None:
    """The regret: all terms. The pseudo regret: no noise, and the proof's share of x is all of it."""
    t, x = 10**8, 2e7
    three = lt.Bandit([0.1, 0.5, 0.9])
    both = (
        bounds.tail(LIGHT, three, horizon=t, regret=x, kind="regret"),
        bounds.tail(LIGHT, three, horizon=t, regret=x),
    )
    terms = bounds.exp_k_armed(x, t, 3, 1.0, 0.2, "UCB"), bounds.exp_k_armed(3 * x, t, 3, 1.0, 0.2, "UCB")
    assert [b.value for b in both] == pytest.approx([sum(terms[0]), sum(terms[1][1:])])
    optimal = lt.UCB(lt.ArmOptimal(0.2, 0.1))
    value = bounds.tail(optimal, three, horizon=t, regret=x, kind="pseudo_regret").value
    assert value == pytest.approx(sum(bounds.exp_k_armed_optimal(2 * x, t, 3, 1.0, 0.2, 0.1, "UCB")[1:]))
    coin = bounds.tail(lt.Exp3IX("loss", upper=1.0), COIN, horizon=5000, regret=900, kind="regret").value
    eta = math.sqrt(2 * math.log(3) / 10_000)
    assert coin == pytest.approx(bounds.exp3_ix(900, 5000, 2, 1.0, eta, eta / 2))


QUIET = lt.Bandit([0.2, 0.8], lt.Gaussian(0.01))
QUIET_POLICIES = [
    lt.UCB(lt.LightTailed(0.1)),
    lt.SuccessiveElimination(lt.LightTailed(0.1)),
    lt.UCB(lt.ArmOptimal(0.1, 0.05)),
    lt.UCB(lt.AnyTime(0.1)),
]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [*((policy, QUIET) for policy in QUIET_POLICIES), (lt.Exp3IX("loss", upper=1.0), COIN)],
    ids=lambda value: str(value)[:30],
)
def test_the_theorems_hold_in_simulation(policy: lt.Policy, problem: lt.Bandit) -> None:
    """Little noise, so that they say something where regrets are seen; and the bound on the mean."""
    out = lt.simulate(policy, problem, horizon=2000, paths=4000, seed=2)
    spoke = 0
    for kind in ("regret", "pseudo_regret"):
        for x in np.linspace(0.0, 1.0, 40) * max(problem.gaps) * 2000:
            bound = bounds.tail(policy, problem, horizon=2000, regret=x, kind=kind)
            assert bound.value >= out.exceedance(x, kind, level=0.9999).low
            spoke += not bound.vacuous
    assert spoke > 20
    mean = bounds.mean(policy, problem, horizon=2000)
    assert mean.value >= out.mean("regret", level=0.9999).low
    assert not mean.vacuous


def test_simulation_notices_a_theorem_without_its_offset() -> None:
    """Negative control: (x - 2K - 4Kc)_+^2 read as x^2 is below what is seen."""
    out = lt.simulate(QUIET_POLICIES[0], QUIET, horizon=2000, paths=4000, seed=2)
    x = float(np.median(out.regret))
    wrong = 4 * math.exp(-(x**2) / (32 * 0.01**2 * 4 * 2000))
    assert wrong < out.exceedance(x, "regret", level=0.9999).low


def test_the_mean_takes_the_least() -> None:
    wide = lt.UCB(lt.LightTailed(2.0))
    certified = bounds.mean(wide, PROBLEM, horizon=10**5)
    assert certified.source == "certificate"
    # gaps of 1: no certificate can know more, and kappa >= 2 sigma lets the theorem speak
    stated = bounds.mean_2_armed(10**5, 2.0, "UCB")
    assert certified.value < stated
    crowd = lt.Bandit([1.0, *[0.999] * 30])
    vague = bounds.mean(wide, crowd, horizon=10**6)
    assert vague.value <= 0.001 * 10**6  # never above what is possible
    drops = bounds.mean(lt.SuccessiveElimination(lt.LightTailed(2.0)), PROBLEM, horizon=10**5)
    assert drops.value < bounds.mean_2_armed(10**5, 2.0)
    coin = bounds.mean(lt.Exp3IX("loss", upper=1.0), COIN, horizon=10**5)
    assert coin.source == "integral of Thm 12.1 of Lattimore & Szepesvari"
    # E <= a + b (ln(K + 1) + 1) for the regret itself; the pseudo regret's tail adds noise
    eta = math.sqrt(2 * math.log(3) / (2 * 10**5))
    a, b = math.log(2) / eta + eta * 2 * 10**5, 1 + 1 / eta
    assert a < coin.value < 2 * (a + b * (math.log(3) + 1))


ASKED = [
    (LIGHT, PROBLEM, bounds.tail),
    (DROPS, PROBLEM, bounds.tail),
    (lt.UCB(lt.ArmOptimal(0.2, 0.1)), lt.Bandit([0.1, 0.5, 0.9]), bounds.tail),
    (lt.UCB(lt.AnyTime(0.2)), PROBLEM, bounds.tail),
    (lt.Exp3IX("loss", upper=1.0), COIN, bounds.tail),
    (LIGHT, lt.Bandit([0.1, 0.5, 0.9]), bounds.certificate),
    (DROPS, PROBLEM, bounds.guarantee),
]


@pytest.mark.parametrize(
    ("policy", "problem", "question"), ASKED, ids=lambda value: getattr(value, "__name__", str(value)[:30])
)
@pytest.mark.parametrize("kind", ["regret", "pseudo_regret"])
def test_the_regret_for_a_risk_is_the_inverse(policy, problem, question, kind) -> None:
    for delta in (0.2, 1e-5):
        found = bounds.regret(policy, problem, horizon=5000, delta=delta, kind=kind, of=question)
        assert question(policy, problem, horizon=5000, regret=found.value, kind=kind).value <= delta
        before = question(policy, problem, horizon=5000, regret=found.value * (1 - 1e-6), kind=kind)
        assert before.value > delta


def test_a_regret_that_was_known_beforehand_is_vacuous() -> None:
    """No more than all pulls but one on the worst arm and, for the regret, the noise's own quantile."""
    quantile = 0.6 * 499 + math.sqrt(500) * 4.753424
    for kind, known in (("pseudo_regret", 0.6 * 499), ("regret", quantile)):
        vague = bounds.regret(LIGHT, PROBLEM, horizon=500, delta=1e-6, kind=kind)
        assert vague.vacuous
        assert vague.value > known
    certified = bounds.regret(
        LIGHT, PROBLEM, horizon=500, delta=1e-4, kind="pseudo_regret", of=bounds.certificate
    )
    assert not certified.vacuous
    assert certified.value < 0.6 * 499
    assert not bounds.regret(LIGHT, PROBLEM, horizon=4000, delta=1e-6, of=bounds.certificate).vacuous


def test_the_guarantee_is_the_smaller_one_and_says_which() -> None:
    certified = bounds.guarantee(LIGHT, PROBLEM, horizon=4000, regret=801)
    assert certified == bounds.certificate(LIGHT, PROBLEM, horizon=4000, regret=801)
    far = lt.Bandit([0.0, 3.0])
    assert bounds.guarantee(LIGHT, far, horizon=4000, regret=801).source == "certificate"
    with pytest.raises(ValueError, match="means must be at most 1 apart"):
        bounds.tail(LIGHT, far, horizon=4000, regret=801)
    coin = bounds.guarantee(lt.Exp3IX("loss", upper=1.0), COIN, horizon=5000, regret=1200)
    assert coin.source == "Thm 12.1 of Lattimore & Szepesvari"
    assert coin == bounds.tail(
        lt.Exp3IX("loss", upper=1.0), COIN, horizon=5000, regret=1200, kind="pseudo_regret"
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    policy=st.sampled_from([*SOURCES, lt.Exp3IX("loss", upper=1.0)]),
    kind=st.sampled_from(["regret", "pseudo_regret"]),
    horizon=st.sampled_from([3, 50, 10**5, 10**9]),
    sigma=st.sampled_from([1e-200, 0.01, 1.0, 1e200]),
    shares=st.tuples(st.floats(-1, 2), st.floats(-1, 2)),
)
def test_the_theorems_fall_as_the_regret_grows(policy, kind, horizon, sigma, shares) -> None:
    problem = COIN if isinstance(policy, lt.Exp3IX) else lt.Bandit([0.2, 0.8], lt.Gaussian(sigma))
    low, high = (
        bounds.tail(policy, problem, horizon=horizon, regret=share * horizon, kind=kind).value
        for share in sorted(shares)
    )
    assert 1.0 >= low >= high > 0.0


def ask(question, policy=LIGHT, problem=PROBLEM, **how):
    return lambda: question(policy, problem, **{"horizon": 50, "regret": 1.0} | how)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (ask(bounds.tail, lt.UCB(lt.Standard(0.8))), "policy must be .* for which a theorem bounds"),
        (ask(bounds.tail, lt.ThompsonSampling(0.8)), "policy must be .* for which a theorem bounds"),
        (ask(bounds.tail, lt.Exp3IX("reward"), COIN), "policy must be .* for which a theorem bounds"),
        (ask(bounds.tail, lt.Exp3IX("loss"), PROBLEM), "noise must be bounded"),
        (
            ask(bounds.tail, lt.Exp3IX("loss", upper=0.5), COIN),
            "upper must be at least the largest reward, 1",
        ),
        (ask(bounds.certificate, lt.ThompsonSampling(0.8)), "policy must be .* for which there is"),
        (ask(bounds.guarantee, lt.ThompsonSampling(0.8)), "policy must be .* a certificate; or UCB"),
        (ask(bounds.tail, problem=lt.Bandit([0, 2])), "means must be at most 1 apart"),
        (ask(bounds.tail, problem=lt.Bandit([0, 1], lt.StudentT(3))), "noise must be sub-Gaussian"),
        (
            ask(bounds.tail, problem=lt.Bandit([0, 1], lt.Gaussian(0.0))),
            "noise must be sub-Gaussian and not certain",
        ),
        (
            ask(bounds.certificate, problem=lt.Bandit.from_samples({"A": [1.0], "B": [2.0]})),
            "noise must be sub-Gaussian and not certain",
        ),
        (ask(bounds.tail, horizon=2), "horizon must be a whole number of at least 3"),
        (ask(bounds.tail, regret=math.nan), "regret must be a finite number"),
        (ask(bounds.certificate, kind="x"), "kind must be 'pseudo_regret' or 'regret', but is 'x'"),
        (ask(bounds.tail, "ucb"), "policy must be a policy such as"),
        (ask(bounds.tail, problem=[0.2, 0.8]), "problem must be a problem such as"),
        (
            lambda: bounds.regret(LIGHT, PROBLEM, horizon=50, delta=0.0),
            "delta must be a number strictly between",
        ),
        (lambda: bounds.regret(LIGHT, PROBLEM, horizon=50, delta=1e-305), "delta must be at least 1e-300"),
        (lambda: bounds.mean(lt.ThompsonSampling(0.8), PROBLEM, horizon=50), "policy must be"),
        (lambda: bounds.simplified(lt.UCB(lt.AnyTime(1)), PROBLEM, horizon=50), "policy must be UCB or Succ"),
        (lambda: bounds.linear(1.0, 100, 1, 1.0, 1.0), "dim must be a whole number of at least 2, which"),
        (lambda: bounds.linear(1.0, 100, 200, 1.0, 1.0), "horizon must be a whole number of at least 200"),
        (lambda: bounds.exp_k_armed(1.0, 100, 2, 0.0, 1.0), "sigma must be a finite number above 0"),
        (lambda: bounds.exp_k_armed(1.0, 100, 2, 1.0, 1.0, rule="TS"), "rule must be 'SE' or 'UCB'"),  # type: ignore[arg-type]
        (lambda: bounds.best_tail_exponent(0.5), "alpha must be above 1/2 and at most 1"),
        (lambda: bounds.consistent_tail_exponent(1.0, 2.0, 1.0), "true_sigma must be at least sigma, 2"),
    ],
)
def test_what_no_bound_is_for_is_refused(call, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_linear_theorem_is_found_from_policy_and_problem() -> None:
    problem = lt.LinearBandit([0.6, 0.0], lt.SphereActions(10))
    policy = lt.LinearUCB(lt.LinearLightTailed(kappa=1.0))
    horizon, x = 10**13, 5e12
    found = lt.bounds.tail(policy, problem, horizon, x)
    assert found.source == "Thm linear"
    assert found.value == pytest.approx(sum(lt.bounds.linear(x, horizon, 2, 1.0, 1.0)))
    assert 0.0 < found.value < 1.0
    assert lt.bounds.tail(policy, problem, 1000, 500.0).vacuous
    assert lt.bounds.tail(policy, problem, horizon, x, kind="pseudo_regret").value <= found.value
    with pytest.raises(ValueError, match="policy must be LinearUCB with LinearLightTailed"):
        lt.bounds.tail(lt.LinearUCB(lt.LinearStandard(1.0)), problem, horizon, x)
    with pytest.raises(ValueError, match="ridge must be 1"):
        lt.bounds.tail(lt.LinearUCB(lt.LinearLightTailed(1.0), ridge=2.0), problem, horizon, x)
    with pytest.raises(ValueError, match="theta must be of two dimensions or more"):
        lt.bounds.tail(policy, lt.LinearBandit([0.6], [[1.0], [-1.0]]), horizon, x)
