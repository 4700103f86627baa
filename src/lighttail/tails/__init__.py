"""The chance of a large regret: exact where it can be had."""

from lighttail.tails.exact import ExactLaw, exact_law, exact_tail

__all__ = ["ExactLaw", "exact_law", "exact_tail"]
