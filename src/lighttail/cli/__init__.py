"""The command line."""

from lighttail.cli import compare, paper, plan, serve, study, tail, watch
from lighttail.cli.app import app, main

__all__ = ["app", "compare", "main", "paper", "plan", "serve", "study", "tail", "watch"]
