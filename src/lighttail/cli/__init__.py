"""The command line."""

from lighttail.cli.commands import app, main

__all__ = ["app", "main"]
