"""The program: runs the command that was typed, and says in one line what ended it early."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lighttail.checks import SHOWN, Argument, BadInput, refuse
from lighttail.cli.options import print_line
from lighttail.reading.own import blame
from lighttail.running.pool import BlocksFailed
from lighttail.system.files import in_a_sentence
from lighttail.system.versions import installed_parts

INTERRUPTED = 130
UsageError: Any = typer.BadParameter.__bases__[0]  # of the click that typer brings along


class Stopped(Exception):
    """Ctrl-C. The text says how far the command came and how to resume it."""


class _Bare:
    """Gives flags an empty text for the values that they do not take: in a help, typer 0.29 writes `<bool>`
    after a flag, its own --help included, as if the flag took a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return parameters


class _Command(_Bare, TyperCommand):
    pass


class _Group(_Bare, TyperGroup):
    pass


class Program(typer.Typer):
    """Commands under one name; without a command, the help is shown."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **settings)


app = Program(
    pretty_exceptions_enable=False,
    help="Bandit policies that cannot quietly ruin you, and the laboratory that proves it.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print("\n".join(installed_parts()))
        raise typer.Exit


@app.callback()
def _lighttail(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of lighttail and of its parts.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: bad input is one line and exit code 2, Ctrl-C is exit code 130, a warning is one line."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *where: print_line(f"warning: {message}")
        sys.exit(_exit_code())


def _exit_code() -> int:
    """Run the command, and print one line if something ends it early."""
    try:
        _check_words(sys.argv[1:])
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        code, text = _ending(error)
        if code is None:
            raise
        if text:
            print_line(text)
        return code
    if code == INTERRUPTED:  # typer itself may return this code after Ctrl-C
        print_line("stopped")
    return int(code or 0)


def _ending(error: Exception) -> tuple[int | None, str]:
    """The exit code and the line for an error. The code is None if the error is neither the user's nor the
    machine's."""
    code: int | None = 1
    match error:
        case BadInput():
            code, text = 2, str(error.spelled(_option))
        case Stopped():
            code, text = INTERRUPTED, f"stopped: {error}"
        case MemoryError():
            text = "there is not enough memory for this: ask for fewer paths, arms or pulls"
        case OSError():
            text = in_a_sentence(error)
        case ImportError() | BlocksFailed():
            text = str(error)
        case UsageError():
            text = _short(error.format_message())
            text += _option_of_range(text, str(getattr(error.ctx, "info_name", "")))
            code = 2 if text else 0  # without a text, the help was shown
        case _:
            text = blame(error)  # of a class that the user named
            code = 2 if text else None
    return code, text


def _option(argument: Argument) -> str:
    """An argument in the words of the command line: --keep law for keep='law', --rebuild for rebuild=True."""
    words = "" if argument.values[0] is True else " or ".join(map(str, argument.values))
    return f"--{argument.name.replace('_', '-')} {words}".strip() if argument.name else words


def _option_of_range(text: str, command: str) -> str:
    """The option that was left out before a range, if a message of typer is about one.

    >>> _option_of_range("Got unexpected extra argument(s) (3%..5%)", "plan")
    '; did you mean --rates 3%..5%?'
    """
    found = re.search(r"extra argument.*\((\S+\.\.\S+)\)", text)
    return f"; did you mean --rates {found[1]}?" if found and command == "plan" else ""


def _short(text: str) -> str:
    """A message of typer, in which long words are cut."""
    return re.sub(rf"\S{{{SHOWN},}}", lambda word: f"{word[0][:SHOWN]} ...", text)


def _check_words(words: list[str]) -> None:
    """Refuse bytes that are not text, because they can be written neither into a page nor to a screen."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise refuse("a word of the command", word, "text in UTF-8") from None
