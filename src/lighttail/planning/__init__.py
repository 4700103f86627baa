"""Plans: which policy, with which kappa, for a limit on the chance of a large loss (docs/planning.md)."""

from lighttail.planning.answer import Plan
from lighttail.planning.plan import plan

__all__ = ["Plan", "plan"]
