"""Policies in a live experiment: plain Python and NumPy, no compilation."""

from lighttail.online.experiment import Experiment, Trial
from lighttail.online.linear import LinearExperiment, LinearTrial

__all__ = ["Experiment", "LinearExperiment", "LinearTrial", "Trial"]
