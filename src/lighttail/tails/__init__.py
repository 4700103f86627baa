"""The chance of a large regret: exact if an exact law is known, and otherwise by weighted paths."""

from lighttail.tails.exact import ExactLaw, exact_law, exact_tail
from lighttail.tails.rare import tail_probability
from lighttail.tails.task import Diagnostics, TailEstimate

__all__ = ["Diagnostics", "ExactLaw", "TailEstimate", "exact_law", "exact_tail", "tail_probability"]
