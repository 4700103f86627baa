"""The policies, and the contract by which one's own is written (docs/own-policies.md)."""

from lighttail.policies.bonus_policies import UCB, SuccessiveElimination
from lighttail.policies.exponential import Exp3IX
from lighttail.policies.policy import IndexPolicy, Policy
from lighttail.policies.thompson import ThompsonSampling

__all__ = ["UCB", "Exp3IX", "IndexPolicy", "Policy", "SuccessiveElimination", "ThompsonSampling"]
