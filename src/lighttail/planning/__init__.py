"""Plans: which policy, with which kappa, for a limit on the chance of a large loss (docs/planning.md)."""

from lighttail.planning.plan import Plan, plan

__all__ = ["Plan", "plan"]
