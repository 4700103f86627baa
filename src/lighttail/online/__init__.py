"""Policies in a live experiment: plain Python and NumPy, no compilation."""

from lighttail.online.experiment import Experiment, Trial

__all__ = ["Experiment", "Trial"]
