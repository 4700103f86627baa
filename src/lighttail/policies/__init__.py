"""The policies, and the base classes for a policy of your own (docs/own-policies.md)."""

from lighttail.policies.bonus_policies import UCB, SuccessiveElimination
from lighttail.policies.exponential import Exp3IX
from lighttail.policies.indices import BayesUcb, Imed, KlUcb
from lighttail.policies.policy import IndexPolicy, Policy
from lighttail.policies.simple import EpsilonGreedy, EvenSplit, ExploreThenCommit
from lighttail.policies.thompson import BetaThompson, InflatedThompson, ThompsonSampling

__all__ = [
    "UCB",
    "BayesUcb",
    "BetaThompson",
    "EpsilonGreedy",
    "EvenSplit",
    "Exp3IX",
    "ExploreThenCommit",
    "Imed",
    "IndexPolicy",
    "InflatedThompson",
    "KlUcb",
    "Policy",
    "SuccessiveElimination",
    "ThompsonSampling",
]
