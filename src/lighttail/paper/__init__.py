"""Every table and figure of the paper's numerical section, beside the published numbers."""

from lighttail.paper.decay import run_tails, tails_in
from lighttail.paper.experiments import EXPERIMENTS, Experiment, Setting
from lighttail.paper.page import write_paper
from lighttail.paper.run import run, settings_in

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Setting",
    "run",
    "run_tails",
    "settings_in",
    "tails_in",
    "write_paper",
]
