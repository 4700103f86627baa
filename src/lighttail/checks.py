"""Checks of user input: a refusal is one sentence that names the field, its value and what is allowed.

Each check returns the value as a plain Python number, word or tuple, and callers use only the returned value:
a NumPy number of eight bits, for example, would overflow in later arithmetic.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

import numpy as np
import numpy.typing as npt

EXACT = 2**53  # up to here every whole number is a float
SHOWN = 100  # characters of a value that a message repeats
LONG = 3300  # bits of the longest whole number that is written out; Python refuses much longer ones
BRACKETS = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}"}
MOST_LISTED = 10**7  # numbers in a list: such a list takes a second to become an array
NESTED = (list, tuple, np.ndarray)
SENT = (type(None), bool, int, float, str)  # types of values that an error takes to another process
# These have a length but are not lists of numbers.
UNORDERED = (str, bytes, bytearray, set, frozenset, Mapping)

Error = TypeVar("Error", bound="BadInput")


class Argument(NamedTuple):
    """An argument that a message recommends. `str` writes it as Python does; a command line may write it its
    own way.

    name: empty if the sentence has named the argument already. values: the values that are recommended.

    >>> print(Argument("rebuild", (True,)), "/", Argument("method", ("plain", "splitting")))
    rebuild=True / method='plain' or 'splitting'
    """

    name: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.name}{'=' if self.name else ''}{' or '.join(map(repr, self.values))}"


Words = str | tuple[str | Argument, ...]  # a part of a sentence, and the arguments in this part


class BadInput(ValueError):
    """The user's input is wrong. `str` is one sentence that says what is wrong and what is allowed.

    field: the name of what is wrong, such as "horizon"; None if the error is not about a single field.
    value: the value that was given. In an error from another process, a value that is neither a number nor a
        text is a `Written`.
    shown: the value as the sentence repeats it; None if the sentence repeats no value.
    allowed: what the field must be; None if the sentence has another form.

    The sentence is "field must be allowed, but is value", and `__str__` alone writes it. `verb` replaces
    "be", `found` replaces "is value" (if empty, the sentence ends before "but"), and `more` follows at the
    end. `message` is a whole sentence of another form. Code that passes an error on changes parts of the
    error by the methods below, and never edits the text.

    >>> error = refuse("horizon", -3, "a whole number of at least 1")
    >>> error.field, error.value, error.allowed
    ('horizon', -3, 'a whole number of at least 1')
    >>> print(error.renamed("--horizon").within("study.toml, line 2"))
    study.toml, line 2: --horizon must be a whole number of at least 1, but is -3
    """

    field: str | None
    value: Any
    shown: str | None

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        value: Any = None,
        allowed: Words = "",
        verb: str = "be",
        found: str | None = None,
        more: Words = "",
    ) -> None:
        self.message, self.field, self.value = message, field, value
        unnamed = value is None and (bool(message) or found is not None)
        self.shown = None if unnamed else shown(value)
        self._verb, self._allowed, self._more = verb, allowed, more
        self._found = f"is {self.shown}" if found is None else found
        self._frames: tuple[tuple[str, int], ...] = ()  # (what stands before the text, the longest text)
        super().__init__(str(self))

    def __str__(self) -> str:
        text = self.rule
        if self._found and not self.message:
            text += f", but {self._found}"
        text += _spelled(self._more)
        for where, most in self._frames:
            text = f"{where}: {text if len(text) <= most else f'{text[:most]} ...'}"
        return text

    @property
    def allowed(self) -> str | None:
        return _spelled(self._allowed) or None

    @property
    def rule(self) -> str:
        """The sentence without its last part, "but is value"."""
        if self.message or self.field is None:
            return self.message
        return f"{self.field} must {self._verb} {self.allowed}"

    def renamed(self, field: str) -> Self:
        """The same error with another name of the field."""
        return self._changed(field=field)

    def within(self, where: str, most: int = sys.maxsize) -> Self:
        """The same error after "where: ", with the rest of the text cut after `most` characters."""
        return self._changed(_frames=(*self._frames, (where, most)))

    def adding(self, *more: str | Argument) -> Self:
        """The same error with more words at the end of the sentence."""
        before = (self._more,) if isinstance(self._more, str) else self._more
        return self._changed(_more=(*before, *more))

    def spelled(self, spell: Callable[[Argument], str]) -> Self:
        """The same error with `spell` writing the recommended arguments."""
        return self._changed(_allowed=_spelled(self._allowed, spell), _more=_spelled(self._more, spell))

    @property
    def sentence(self) -> str:
        """The whole sentence, for a page that people read."""
        return str(self)

    def to_dict(self) -> dict[str, str | None]:
        """For JSON: the field, the value as the sentence shows it, what is allowed, and the sentence."""
        return {"field": self.field, "value": self.shown, "allowed": self.allowed, "message": self.sentence}

    def _changed(self, **parts: Any) -> Self:
        return _rebuilt(type(self), vars(self) | parts)

    def __reduce__(self) -> Any:
        sent = self.value if type(self.value) in SENT else Written(str(self.shown))
        return _rebuilt, (type(self), vars(self) | {"value": sent})


@dataclass(frozen=True)
class Written:
    """A value of another process, which may not be loadable here: its text as shown there."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _rebuilt(kind: type[Error], parts: dict[str, Any]) -> Error:
    """An error with these attributes, including the attributes of a subclass."""
    error = kind.__new__(kind)
    vars(error).update(parts)
    error.args = (str(error),)
    return error


def _spelled(words: Words, spell: Callable[[Argument], str] = str) -> str:
    parts = (words,) if isinstance(words, str) else words
    return "".join(part if isinstance(part, str) else spell(part) for part in parts)


def refuse(
    field: str, value: object, allowed: Words, *, verb: str = "be", found: str | None = None, more: Words = ""
) -> BadInput:
    """The error for a bad value, in the same words everywhere.

    >>> print(refuse("data", 1, "at least two arms", verb="name", found="names one", more=" (x.csv)"))
    data must name at least two arms, but names one (x.csv)
    """
    return BadInput(field=field, value=value, allowed=allowed, verb=verb, found=found, more=more)


def shown(value: object) -> str:
    """The value as Python writes it, on one line and cut after `SHOWN` characters.

    Of a huge value only the beginning is written, and a value whose `repr` fails is named by its type.

    >>> shown([0.5] * 10**6)[-14:], shown(10**5000)
    (' 0.5, 0.5, ...', 'a whole number of about 5001 digits')
    """
    text = _written(value, SHOWN)
    if len(text.splitlines()) > 1:
        text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 4].rstrip() + " ..."


def _written(value: Any, room: int) -> str:
    """repr(value) or, if that is longer than `room`, at least its first `room` characters."""
    kind: Any = type(value)
    if kind in BRACKETS:
        return _listed(value, kind, room)
    if kind in (str, bytes):
        return repr(value[: room + 1])
    if kind is int and value.bit_length() > LONG:
        return f"a whole number of about {int(value.bit_length() * math.log10(2.0)) + 1} digits"
    try:
        made = getattr(kind, "__dataclass_params__", None)  # the fields of a dataclass may be huge
        if made is not None and made.repr:
            named = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
            parts = (f"{name}={_written(part, room)}" for name, part in named.items())
            return f"{kind.__qualname__}({', '.join(parts)})"
        return repr(value)
    except Exception:
        return f"<{kind.__name__} that cannot be written>"


def _listed(several: Any, kind: Any, room: int) -> str:
    """The beginning of a container. Nested containers share the same room."""
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
    """The error for a file that cannot be read, with the reason but without the system's error number."""
    why = "there is no such file" if isinstance(error, FileNotFoundError) else None
    return refuse(field, str(path), allowed, more=f": {why or getattr(error, 'strerror', None) or error}")


def number(field: str, value: Any, allowed: str = "a finite number") -> float:
    """`value` as a finite float."""
    try:
        if not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value):
            return float(value)
    except Exception:  # such as an OverflowError for a whole number that no float can hold
        pass
    raise refuse(field, value, allowed)


def _number_where(fits: Callable[[float], bool], allowed: str) -> Callable[[str, Any], float]:
    """A check of a number, which returns a finite float; 0.0 for -0.0."""

    def check(field: str, value: Any) -> float:
        if not fits(found := number(field, value, allowed)):
            raise refuse(field, value, allowed)
        return abs(found)

    return check


positive = _number_where(lambda x: x > 0.0, "a finite number above 0")
non_negative = _number_where(lambda x: x >= 0.0, "a finite number, 0 or more")
fraction = _number_where(lambda x: 0.0 < x < 1.0, "a number strictly between 0 and 1")
chance = _number_where(lambda x: 0.0 <= x <= 1.0, "a chance from 0 to 1")
confidence = _number_where(lambda x: 0.5 <= x < 1.0, "a number from 0.5 up to but not including 1")


def whole(field: str, value: Any, least: int, why: str = "", most: int | None = None) -> int:
    """`value` as an int of at least `least` and, if `most` is given, at most `most`."""
    try:
        found = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    except Exception:  # from the number class of another library
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
    except Exception:  # an array without dimensions, or the list class of another library
        raise refuse(field, values, allowed) from None
    if size > most:
        raise refuse(f"the length of {field}", size, f"at most {most}")
    if len(several) < least or any(isinstance(value, NESTED) for value in several):
        raise refuse(field, values, allowed)
    return tuple(number(f"{field}[{place}]", value) for place, value in enumerate(several))


def size_of(values: Any) -> int:
    """The length of a list; the largest one that Python knows if the list is longer.

    >>> size_of([1, 2]), size_of(range(10**30)) == sys.maxsize
    (2, True)
    """
    try:
        return len(values)
    except OverflowError:
        return sys.maxsize


def array_of(field: str, values: Any, allowed: str) -> npt.NDArray[np.float64]:
    """`values` as a new array of floats of any shape. Texts and truth values are refused."""
    try:
        size = 0 if hasattr(values, "__array__") else len(values)
    except Exception:  # it has no length, or is the list class of another library
        size = 0
    if size > MOST_LISTED:
        raise refuse(f"the length of {field}", size, f"at most {MOST_LISTED} where it is not an array")
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            array = np.asarray(values)
            if array.dtype.kind == "O":  # such as fractions, and whole numbers beyond 64 bits
                flat = [number(field, value, allowed) for value in array.flat]
                return np.array(flat, dtype=np.float64).reshape(array.shape)
            if array.dtype.kind in "fiu":
                return np.array(array, dtype=np.float64)
    except Exception:  # rows of different lengths, or an object that does not become an array
        pass
    raise refuse(field, values, allowed)


def one_of(field: str, value: Any, allowed: Sequence[str]) -> str:
    """The allowed word that `value` is. A hyphen may stand for an underscore. An array is no word.

    >>> one_of("kind", "pseudo-regret", ("regret", "pseudo_regret"))
    'pseudo_regret'
    """
    for word in allowed:
        if isinstance(value, str) and str.__eq__(word, str.replace(value, "-", "_")):
            return word
    raise refuse(field, value, enumerated(map(repr, allowed), "or"))


def enumerated(words: Iterable[str], by: str) -> str:
    """Words one after another, the last one after `by`: "A", "A or B", "A, B or C"."""
    *others, last = words
    return f"{', '.join(others)} {by} {last}" if others else last


def known_word(field: str, word: str, known: Iterable[str]) -> None:
    """Refuse an unknown word. The sentence lists the known words and names the nearest of them."""
    known = list(known)
    if word in known:
        return
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise refuse(field, word, f"one of {', '.join(known)}", more=hint)


def whole_float(value: Any) -> Any:
    """An int for a float that is a whole number; any other value unchanged, for `whole` to check.

    Above 2**53 a float may differ from the whole number that was written.

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
    except Exception:  # from the path class of another library
        pass
    raise refuse(field, value, allowed)


def web_address(value: Any) -> SplitResult | None:
    """The parts of an address of http or https without a user; None if `value` is no such address."""
    if not isinstance(value, str) or not value.isascii() or any(sign <= " " for sign in value):
        return None
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port  # reading a wrong port fails
    except ValueError:
        return None
    fits = parts.scheme in ("http", "https") and host and not (parts.username or parts.password)
    return parts if fits else None


def accept(settings: object, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen dataclass by their checked values."""
    for field, check in checks.items():
        object.__setattr__(settings, field, check(field, getattr(settings, field)))
