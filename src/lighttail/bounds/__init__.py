"""Upper bounds on the regret: the paper's theorems, and a certificate that is close to the true probability.

A theorem holds for all means with gaps of at most 1. A certificate holds for one problem. Both assume that
the noise e is sub-Gaussian in the sense of its moment generating function, E exp(s e) <= exp(s^2 sigma^2 / 2)
for every s. The paper's Lemma bound-noise uses this definition; the paper's definition by tails gives another
sigma. sigma is taken from the problem, and kappa is taken from the policy.
"""

from lighttail.bounds.answers import certificate, guarantee, mean, regret, simplified, tail
from lighttail.bounds.bound import Bound, NoBound
from lighttail.bounds.simplified import (
    Simplified,
    best_tail_exponent,
    consistent_tail_exponent,
    simplified_k_armed,
    simplified_k_armed_optimal,
    simplified_linear,
)
from lighttail.bounds.theorems import (
    any_time,
    exp3_ix,
    exp_2_armed,
    exp_k_armed,
    exp_k_armed_optimal,
    linear,
    mean_2_armed,
    mean_k_armed,
    mean_k_armed_optimal,
)
from lighttail.outcomes.losing import Lost as Kind

__all__ = [
    "Bound",
    "Kind",
    "NoBound",
    "Simplified",
    "any_time",
    "best_tail_exponent",
    "certificate",
    "consistent_tail_exponent",
    "exp3_ix",
    "exp_2_armed",
    "exp_k_armed",
    "exp_k_armed_optimal",
    "guarantee",
    "linear",
    "mean",
    "mean_2_armed",
    "mean_k_armed",
    "mean_k_armed_optimal",
    "regret",
    "simplified",
    "simplified_k_armed",
    "simplified_k_armed_optimal",
    "simplified_linear",
    "tail",
]
