"""The command line."""

from lighttail.cli import compare, journal, paper, plan, serve, study, tail, watch
from lighttail.cli.app import app, main

__all__ = ["app", "compare", "journal", "main", "paper", "plan", "serve", "study", "tail", "watch"]
