"""Every table and figure of the paper's numerical section, next to the published numbers."""

from lighttail.paper.decay import run_tails, tails_in
from lighttail.paper.experiments import EXPERIMENTS, PaperExperiment, Setting
from lighttail.paper.page import write_paper
from lighttail.paper.run import run, settings_in

__all__ = [
    "EXPERIMENTS",
    "PaperExperiment",
    "Setting",
    "run",
    "run_tails",
    "settings_in",
    "tails_in",
    "write_paper",
]
