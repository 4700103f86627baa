"""One experiment inside your own process: policies in plain Python and NumPy, without compilation."""

from lighttail.online.experiment import Experiment, Trial
from lighttail.online.linear import LinearExperiment, LinearTrial

__all__ = ["Experiment", "LinearExperiment", "LinearTrial", "Trial"]
