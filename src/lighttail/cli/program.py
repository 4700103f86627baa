"""A program of typer whose help shows a flag by its name alone.

typer 0.29 writes `<bool>` after a flag, its own --help included, as if the flag took a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def _bare(parameters: list[Any]) -> list[Any]:
    """The parameters, with an empty text for the values that flags do not take."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _bare(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _bare(super().get_params(ctx))


class Program(typer.Typer):
    """Commands under one name; without a command, the help is shown."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **settings)
