"""Every table and figure of the paper's numerical section, next to the published numbers."""

from lighttail.paper.decay import run_tails, tails_in
from lighttail.paper.experiments import PaperExperiment, Setting, run, settings_in
from lighttail.paper.page import EXPERIMENTS, write_paper

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
