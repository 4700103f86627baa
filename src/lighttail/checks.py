"""Checks on what a user hands in: one sentence that names the field, its value and what is allowed.

Each check returns the value as a plain Python number, word or tuple, and callers go on with what is returned:
a NumPy number of eight bits, say, would overflow in the arithmetic that follows.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

EXACT = 2**53  # up to which every whole number is a float
SHOWN = 100  # characters of a value that a message repeats
LONG = 3300  # bits of the longest whole number that is written out, far below what Python refuses to write
BRACKETS = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}"}
MOST_LISTED = 10**7  # numbers in a list, which takes a second to become an array
NESTED = (list, tuple, np.ndarray)
UNORDERED = (str, bytes, bytearray, set, frozenset, Mapping)  # have a length and are no list of numbers


class BadInput(ValueError):
    """What a user handed in is wrong; the text says what, and what is allowed."""


def refuse(field: str, value: object, allowed: str) -> BadInput:
    """The error for a bad value, worded alike everywhere."""
    return BadInput(f"{field} must be {allowed}, but is {shown(value)}")


def shown(value: object) -> str:
    """The value as Python writes it, on one line and cut after `SHOWN` characters.

    What is huge is not written out first, and what cannot be written at all is named by its type.

    >>> shown([0.5] * 10**6)[-14:], shown(10**5000)
    (' 0.5, 0.5, ...', 'a whole number of about 5001 digits')
    """
    text = _written(value, SHOWN)
    if len(text.splitlines()) > 1:
        text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 4].rstrip() + " ..."


def _written(value: Any, room: int) -> str:
    """repr(value) or, where that is longer than `room`, at least so much of its beginning."""
    kind: Any = type(value)
    if kind in BRACKETS:
        return _listed(value, kind, room)
    if kind in (str, bytes):
        return repr(value[: room + 1])
    if kind is int and value.bit_length() > LONG:
        return f"a whole number of about {int(value.bit_length() * math.log10(2.0)) + 1} digits"
    try:
        made = getattr(kind, "__dataclass_params__", None)  # a dataclass, whose fields may be huge
        if made is not None and made.repr:
            named = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
            parts = (f"{name}={_written(part, room)}" for name, part in named.items())
            return f"{kind.__qualname__}({', '.join(parts)})"
        return repr(value)
    except Exception:
        return f"<{kind.__name__} that cannot be written>"


def _listed(several: Any, kind: Any, room: int) -> str:
    """The beginning of a container: every part takes some of the room, however deep it is nested."""
    text, end = BRACKETS[kind][0], BRACKETS[kind][1]
    for place, part in enumerate(several.items() if kind is dict else several):
        if len(text) > room:
            return text
        text += ", " if place else ""
        for name in part[:1] if kind is dict else ():
            text += _written(name, max(0, room - len(text))) + ": "
        text += _written(part[1] if kind is dict else part, max(0, room - len(text)))
    return f"{text},)" if kind is tuple and len(several) == 1 else text + end


def refuse_file(field: str, path: object, allowed: str, error: Exception) -> BadInput:
    """The error for a file that cannot be read, with the reason but not the system's number for it."""
    why = "there is no such file" if isinstance(error, FileNotFoundError) else None
    return BadInput(
        f"{refuse(field, str(path), allowed)}: {why or getattr(error, 'strerror', None) or error}"
    )


def number(field: str, value: Any, allowed: str = "a finite number") -> float:
    """`value` as a finite float."""
    try:
        if not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value):
            return float(value)
    except Exception:  # such as that of a whole number that no float can hold
        pass
    raise refuse(field, value, allowed)


def positive(field: str, value: Any) -> float:
    """`value` as a finite float above 0."""
    allowed = "a finite number above 0"
    if (found := number(field, value, allowed)) <= 0.0:
        raise refuse(field, value, allowed)
    return found


def non_negative(field: str, value: Any) -> float:
    """`value` as a finite float, 0 or more."""
    allowed = "a finite number, 0 or more"
    if (found := number(field, value, allowed)) < 0.0:
        raise refuse(field, value, allowed)
    return abs(found)  # -0.0 is 0.0


def fraction(field: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1."""
    allowed = "a number strictly between 0 and 1"
    if not 0.0 < (found := number(field, value, allowed)) < 1.0:
        raise refuse(field, value, allowed)
    return found


def confidence(field: str, value: Any) -> float:
    """`value` as a confidence level."""
    allowed = "a number from 0.5 up to but not including 1"
    if not 0.5 <= (found := number(field, value, allowed)) < 1.0:
        raise refuse(field, value, allowed)
    return found


def whole(field: str, value: Any, least: int, why: str = "", most: int | None = None) -> int:
    """`value` as an int of at least `least` and, where given, at most `most`."""
    try:
        found = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    except Exception:  # a number of somebody else's making
        found = None
    if found is None or found < least:
        raise refuse(field, value, f"a whole number of at least {least}{why}")
    if most is not None and found > most:
        raise refuse(field, value, f"a whole number of at most {most}")
    return found


def numbers(field: str, values: Any, least: int, allowed: str, most: int) -> tuple[float, ...]:
    """`values`, a list or an array of one dimension, as a tuple of `least` to `most` finite floats."""
    try:
        size = -1 if isinstance(values, UNORDERED) else len(values)
        several = list(values) if least <= size <= most else []
    except Exception:  # an array without dimensions, or a list of somebody else's making
        raise refuse(field, values, allowed) from None
    if size > most:
        raise refuse(f"the length of {field}", size, f"at most {most}")
    if len(several) < least or any(isinstance(value, NESTED) for value in several):
        raise refuse(field, values, allowed)
    return tuple(number(f"{field}[{place}]", value) for place, value in enumerate(several))


def _length(values: Any) -> int:
    try:
        return len(values)
    except Exception:  # a list of somebody else's making
        return 0


def array_of(field: str, values: Any, allowed: str) -> npt.NDArray[np.float64]:
    """`values` as a new array of floats, of whatever shape; words and truth values are no numbers."""
    size = 0 if hasattr(values, "__array__") or not hasattr(values, "__len__") else _length(values)
    if size > MOST_LISTED:
        raise refuse(f"the length of {field}", size, f"at most {MOST_LISTED} where it is not an array")
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(values)
            if array.dtype.kind == "O":  # such as fractions, and whole numbers of any length
                flat = [number(field, value, allowed) for value in array.flat]
                return np.array(flat, dtype=np.float64).reshape(array.shape)
            if array.dtype.kind in "fiu":
                return np.array(array, dtype=np.float64)
    except Exception:  # rows of different lengths, or what no array can be made of
        pass
    raise refuse(field, values, allowed)


def one_of(field: str, value: Any, allowed: Sequence[str]) -> str:
    """`value` as the one of the allowed words that it is, a hyphen for an underscore; an array equals none.

    >>> one_of("kind", "pseudo-regret", ("regret", "pseudo_regret"))
    'pseudo_regret'
    """
    for word in allowed:
        if isinstance(value, str) and str.__eq__(word, str.replace(value, "-", "_")):
            return word
    *others, last = map(repr, allowed)
    raise refuse(field, value, f"{', '.join(others)} or {last}")


def known_word(field: str, word: str, known: Iterable[str]) -> None:
    """Refuse an unknown word; list the known ones and name the nearest."""
    known = list(known)
    if word in known:
        return
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise BadInput(f"{field} must be one of {', '.join(known)}, but is {shown(word)}{hint}")


def whole_float(value: Any) -> Any:
    """A float that is a whole number as an int; anything else as it is, for `whole` to judge.

    Above 2**53 a float may stand for another whole number than the one that was written.

    >>> whole_float(1e5), whole_float(1.5), whole_float(1e16)
    (100000, 1.5, 1e+16)
    """
    fits = isinstance(value, float) and abs(value) <= EXACT and value.is_integer()
    return int(value) if fits else value


def file_path(field: str, value: Any, allowed: str = "the path of a file") -> Path:
    """`value` as a path."""
    try:
        if isinstance(value, (str, os.PathLike)) and "\0" not in (text := os.fsdecode(value)) and text:
            return Path(text)
    except Exception:  # a path of somebody else's making
        pass
    raise refuse(field, value, allowed)


def accept(settings: object, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen dataclass by their checked values."""
    for field, check in checks.items():
        object.__setattr__(settings, field, check(field, getattr(settings, field)))
