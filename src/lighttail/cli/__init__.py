"""The command line."""

from lighttail.cli import study, tail
from lighttail.cli.commands import app, main

__all__ = ["app", "main", "study", "tail"]
