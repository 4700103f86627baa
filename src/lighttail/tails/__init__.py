"""The chance of a large regret: exact where it can be had, and by weighted paths everywhere else."""

from lighttail.tails.exact import ExactLaw, exact_law, exact_tail
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import Diagnostics, TailEstimate

__all__ = ["Diagnostics", "ExactLaw", "TailEstimate", "exact_law", "exact_tail", "tail_probability"]
