"""Bandit policies that cannot quietly ruin you, and the laboratory that proves it.

>>> import lighttail as lt
>>> problem = lt.Bandit([0.2, 0.8], noise=lt.Gaussian(1.0))
>>> out = lt.simulate(lt.UCB(lt.LightTailed(kappa=0.2)), problem, horizon=500, paths=5000, seed=1)
>>> print(out.exceedance(150))
0 [0, 0.0007375]
"""

from lighttail import bounds
from lighttail.bonuses import AnyTime, ArmOptimal, Bonus, Eqo, LightTailed, Moss, Standard, TwoPart
from lighttail.checks import BadInput
from lighttail.client import connect, connect_async
from lighttail.compare import compare
from lighttail.delays import Delay, FixedDelay, GeometricDelay, ObservedDelays, UniformDelay
from lighttail.families import Family
from lighttail.linear import (
    BallActions,
    BallSet,
    BoxSet,
    LinearBandit,
    LinearBonus,
    LinearLightTailed,
    LinearStandard,
    LinearThompson,
    LinearUCB,
    Oful,
    SphereActions,
)
from lighttail.noises import Bernoulli, Gaussian, Laplace, Noise, StudentT, Uniform
from lighttail.online import Experiment, LinearExperiment, LinearTrial, Trial
from lighttail.outcomes.comparison import Comparison
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.outcome import LawOutcome, Outcome, PathsOutcome
from lighttail.planning import Plan, plan
from lighttail.policies import (
    UCB,
    BayesUcb,
    BetaThompson,
    EpsilonGreedy,
    EvenSplit,
    Exp3IX,
    ExploreThenCommit,
    Imed,
    IndexPolicy,
    InflatedThompson,
    KlUcb,
    Policy,
    SuccessiveElimination,
    ThompsonSampling,
)
from lighttail.problems import Bandit
from lighttail.random.streams import standard_normal, uniform
from lighttail.report import write_report
from lighttail.report.tail import plot_tail
from lighttail.rules import highest
from lighttail.running.simulate import simulate
from lighttail.tails import Diagnostics, ExactLaw, TailEstimate, exact_law, exact_tail, tail_probability

__version__ = "0.2.0.dev0"

__all__ = [
    "UCB",
    "AnyTime",
    "ArmOptimal",
    "BadInput",
    "BallActions",
    "BallSet",
    "Bandit",
    "BayesUcb",
    "Bernoulli",
    "BetaThompson",
    "Bonus",
    "BoxSet",
    "Comparison",
    "Delay",
    "Diagnostics",
    "EpsilonGreedy",
    "Eqo",
    "Estimate",
    "EvenSplit",
    "ExactLaw",
    "Exp3IX",
    "Experiment",
    "ExploreThenCommit",
    "Family",
    "FixedDelay",
    "Gaussian",
    "GeometricDelay",
    "Imed",
    "IndexPolicy",
    "InflatedThompson",
    "KlUcb",
    "Laplace",
    "LawOutcome",
    "LightTailed",
    "LinearBandit",
    "LinearBonus",
    "LinearExperiment",
    "LinearLightTailed",
    "LinearStandard",
    "LinearThompson",
    "LinearTrial",
    "LinearUCB",
    "Moss",
    "Noise",
    "ObservedDelays",
    "Oful",
    "Outcome",
    "PathsOutcome",
    "Plan",
    "Policy",
    "SphereActions",
    "Standard",
    "StudentT",
    "SuccessiveElimination",
    "TailEstimate",
    "ThompsonSampling",
    "Trial",
    "TwoPart",
    "Uniform",
    "UniformDelay",
    "bounds",
    "compare",
    "connect",
    "connect_async",
    "exact_law",
    "exact_tail",
    "highest",
    "plan",
    "plot_tail",
    "simulate",
    "standard_normal",
    "tail_probability",
    "uniform",
    "write_report",
]


def __dir__() -> list[str]:
    """The public names alone, without the modules that importing them loads."""
    return sorted([*__all__, "__version__"])
