"""Every bonus, policy and noise once: what the suites that run over all of them run over."""

from __future__ import annotations

import numpy as np

import lighttail as lt

BONUSES = [
    lt.Standard(0.4),
    lt.LightTailed(0.2),
    lt.ArmOptimal(0.3, 0.5),
    lt.AnyTime(0.3),
]

POLICIES = [
    *(lt.UCB(bonus) for bonus in BONUSES),
    lt.SuccessiveElimination(lt.Standard(0.4)),
    lt.SuccessiveElimination(lt.LightTailed(0.05)),
    lt.SuccessiveElimination(lt.ArmOptimal(0.05, 0.3)),
    lt.ThompsonSampling(0.5),
    lt.ThompsonSampling(0.5, prior_mean=-0.5, prior_sd=2.0),
    lt.Exp3IX(),
    lt.Exp3IX("loss", upper=3.0, eta=0.1, gamma=0.02),
    lt.Exp3IX("reward"),
]

MORE_BONUSES = [lt.Moss(0.8), lt.Eqo(0.3), lt.TwoPart(0.4, 0.6, alpha=0.6, beta=0.3)]

MORE_POLICIES = [  # played by the generic kernels, or by UCB's with a further bonus
    *(lt.UCB(bonus) for bonus in MORE_BONUSES),
    lt.SuccessiveElimination(lt.Eqo(0.05)),
    lt.KlUcb(0.5),
    lt.KlUcb(0.0, sigma=0.7),
    lt.Imed(),
    lt.Imed(sigma=0.7),
    lt.BayesUcb(),
    lt.BayesUcb(1.5),
    lt.BetaThompson(),
    lt.InflatedThompson(0.4),
    lt.EpsilonGreedy(1.0, 0.5),
    lt.ExploreThenCommit(5),
    lt.EvenSplit(),
]

NOISES = [
    lt.Gaussian(1.0),
    lt.Bernoulli(),
    lt.Uniform(0.7),
    lt.Laplace(0.9),
    lt.StudentT(df=4.5, sigma=0.8),
]


def name(case: object) -> str:
    """A short test id, the same in every process."""
    return getattr(case, "__name__", str(case)).replace(" ", "")


def spread_means(arms: int) -> list[float]:
    """Means from 0.2 to 0.8, neither in order nor all different."""
    return [0.2 + 0.6 * ((3 * arm) % arms) / (arms - 1) if arm != 2 else 0.5 for arm in range(arms)]


def problems(arms: int) -> list[lt.Bandit]:
    """One problem for every noise, the user's own observations included."""
    means = spread_means(arms)
    rng = np.random.default_rng(arms)
    samples = {f"arm {arm}": np.round(rng.normal(mean, 1, 5 + arm), 1) for arm, mean in enumerate(means)}
    return [*(lt.Bandit(means, noise) for noise in NOISES), lt.Bandit.from_samples(samples)]
