"""Errors of numba, turned into one sentence that names the author's class and function."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lighttail.checks import BadInput, refuse
from lighttail.kernels.build import WRONG_ARM

CALLED = re.compile(r"<function (\S+) at 0x")  # as numba names a function that it compiles
LINE = re.compile(r" at (\S+) \((\d+)\)")  # as numba names a file and a line
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NUMBA = ("numba", "numba_cuda")  # the packages whose errors are errors of a compiler
REASONS = (  # the beginnings of numba's lines that say what is wrong, the most telling first
    "Unknown attribute",
    "Untyped global name",
    "NameError",
    "Use of unsupported",
    "Cannot unify",
    "cannot determine Numba type",
    "No implementation of function",
    "Invalid use of",
)
LONGEST = 160  # characters of numba's reason
HINT = "write it with + - * / and math, on floats"


@contextmanager
def compilable(*owners: Any) -> Iterator[None]:
    """Turn an error of numba into one sentence about the functions of these objects.

    owners: the objects whose functions a kernel calls, such as a policy, its bonus and a noise, or None.
    """
    try:
        yield
    except Exception as error:
        if not any(kind.__module__.partition(".")[0] in NUMBA for kind in type(error).__mro__):
            raise
        raise complaint(COLOUR.sub("", str(error)), formulas_of(*owners)) from None


def parts_of(policy: Any, problem: Any) -> tuple[Any, ...]:
    """The objects whose functions a kernel of a policy on a problem calls."""
    return (policy, getattr(policy, "bonus", None), problem.noise, getattr(problem, "actions", None))


def formulas_of(*owners: Any) -> dict[str, types.FunctionType]:
    """The static functions of the classes of these objects, by names such as "MyNoise.shock"."""
    formulas: dict[str, types.FunctionType] = {}
    for kind in (type(owner) for owner in owners if owner is not None):
        for name in dir(kind):
            member = inspect.getattr_static(kind, name)
            if isinstance(member, staticmethod) and name[0] != "_":
                function = getattr(member.__func__, "py_func", member.__func__)
                if isinstance(function, types.FunctionType):
                    formulas[f"{kind.__name__}.{name}"] = function
    return formulas


def complaint(text: str, formulas: dict[str, types.FunctionType]) -> BadInput:
    """The error for the author: the function that numba's text points to, and the reason in this text."""
    lines = [line.strip(" -^~") for line in text.splitlines()]
    told = [line for start in REASONS for line in lines if line.startswith(start)]
    other = [line for line in lines if line and not line.startswith("Failed in")]
    named = [line for line in told if "Function(<function " not in line]  # a function whose body is wrong
    reason = [*named, *told, *other, "no reason"][0].removesuffix(" found for signature:")
    reason = reason if len(reason) <= LONGEST else reason[: LONGEST - 4].rstrip() + " ..."
    guilty = _guilty(text, formulas)
    field = guilty or " or ".join(_own(formulas)) or "a formula"
    where = _line(text, formulas[guilty]) if guilty else ""
    says = f": {HINT}; {where}numba says: {reason.rstrip('.')}"
    return refuse(field, None, "a function that numba compiles", found="", more=says)


def _own(formulas: dict[str, types.FunctionType]) -> list[str]:
    """The names of the formulas that lighttail does not ship; all names if there are none."""
    own = [name for name, function in formulas.items() if not function.__module__.startswith("lighttail.")]
    return own or list(formulas)


def _guilty(text: str, formulas: dict[str, types.FunctionType]) -> str | None:
    """The formula that numba names, or the formula with the last line that numba names."""
    called = set(CALLED.findall(text))
    for name in _own(formulas):
        if formulas[name].__qualname__ in called:
            return name
    for file, line in reversed(LINE.findall(text)):
        for name, function in formulas.items():
            code = function.__code__
            last = max((number for *_, number in code.co_lines() if number), default=code.co_firstlineno)
            if code.co_filename == file and code.co_firstlineno <= int(line) <= last:
                return name
    return None


def _line(text: str, function: types.FunctionType) -> str:
    """Where numba met the mistake: the first line that it names in the file of this function, or nothing."""
    file = function.__code__.co_filename
    lines = [line for named, line in LINE.findall(text) if named == file]
    return f"at line {lines[0]} of {Path(file).name} " if lines else ""


def check_arms(policy: Any, stop: Any) -> None:
    """Raise BadInput if the stop flag of a kernel says that the policy chose an arm that does not exist."""
    if stop[0] == WRONG_ARM:
        field = f"choose of {type(policy).__name__}"
        raise refuse(field, None, "the number of an arm", verb="return", found="returned another number")
