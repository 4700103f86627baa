"""The chance of a large regret: exact where it can be had, and by weighted paths everywhere else."""

from lighttail.tails.exact import ExactLaw, exact_law, exact_tail
from lighttail.tails.rare import Diagnostics, TailEstimate, tail_probability

__all__ = ["Diagnostics", "ExactLaw", "TailEstimate", "exact_law", "exact_tail", "tail_probability"]
