"""The command line."""

from lighttail.cli import tail
from lighttail.cli.commands import app, main

__all__ = ["app", "main", "tail"]
