"""The text of a study file: its keys, the checks of their values, and the line of a mistake."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lighttail.checks import BadInput, known_word, refuse, shown

Check = Callable[[str, Any], Any]  # (field, value) -> the checked value
LONGEST_NAME = 80
LONGEST_TEXT = 10**6  # bytes of a study file
MOST_DIGITS = 4300  # digits of a whole number that Python reads
DEEPEST = 8  # levels of tables and lists within each other; a study needs four
NEEDED: Any = object()
LOOKS = 100  # lines within one statement that look like the beginning of a statement
# A statement begins with a header, or with a key and its value. A line within a long list has neither.
BEGINNING = re.compile(r"\s*(\[[^\[\],]*\]|\[\[[^\[\],]*\]\]|[^\[\]{}(),=#]*=)")


class Source:
    """A TOML text. A message about a mistake in it names the line."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        if len(text) > LONGEST_TEXT:
            found = f"has {len(text):,} of them"
            raise refuse(name, len(text), f"at most {LONGEST_TEXT:,} characters long", found=found)
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise self._unreadable(str(error)) from None
        except ValueError:  # a whole number has too many digits
            lines = enumerate(text.split("\n"), 1)
            line = next((n for n, row in lines if re.search(rf"[0-9_]{{{MOST_DIGITS},}}", row)), 1)
            most = f"at most {MOST_DIGITS:,} digits"
            long = refuse("a whole number", None, most, verb="have", found="has more")
            raise long.within(f"{name}, line {line}") from None
        except RecursionError:
            raise self._too_deep() from None
        if _depth(self.document) > DEEPEST:
            raise self._too_deep()
        self.top = Table(self, (), self.document)

    def _too_deep(self) -> BadInput:
        allowed = f"at most {DEEPEST} levels of tables and lists within each other"
        return refuse(self.name, None, allowed, verb="have", found="has more")

    def _unreadable(self, said: str) -> BadInput:
        found = re.search(r"line (\d+)", said)
        lines = self.text.split("\n")
        filled = [n for n, row in enumerate(lines, 1) if row.strip()]
        line = min(int(found[1]) if found else filled[-1], filled[-1])
        written = lines[line - 1].strip()
        if "overwrite" in said or "twice" in said:
            key = written.partition("=")[0].strip()
            again = f"{key[:LONGEST_NAME]} is given again"
            table = f"; several are each written [[{key.strip('[]')[:LONGEST_NAME]}]]"
            more = table if key.startswith("[") else ""
            wrong = refuse("a key", key, "given once", found=again, more=more)
        else:
            reason = re.sub(r" \(at .*", "", said)[:LONGEST_NAME]
            wrong = refuse("this", written, "TOML", more=f" ({reason[:1].lower()}{reason[1:]})")
        return wrong.within(f"{self.name}, line {line}")

    def line(self, *keys: str | int) -> int:
        """The line in which the statement that gives `keys` begins.

        tomllib does not report line numbers. But the beginning of a file up to the end of any statement is
        TOML, too: the statement is the one with which the keys appear.
        """
        lines = self.text.split("\n")
        begin = [place for place, row in enumerate(lines) if place == 0 or BEGINNING.match(row)]
        ends = [*begin[1:], len(lines)]

        def there(turn: int) -> bool:
            for until in ends[turn : turn + LOOKS]:
                try:
                    return _has(tomllib.loads("\n".join(lines[:until])), keys)
                except tomllib.TOMLDecodeError:
                    continue  # in the middle of a statement
            return True

        return 1 + begin[bisect_left(range(len(begin) - 1), True, key=there)]

    def where(self, *keys: str | int) -> str:
        """The file and the line of these keys, as messages name them."""
        return f"{self.name}, line {self.line(*keys)}"


@dataclass(frozen=True)
class Table:
    """A table of a source. keys: what leads to the table, such as ("policy", 2) for the third [[policy]]."""

    source: Source
    keys: tuple[str | int, ...]
    values: dict[str, Any]

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """BadInput that is raised within this context gets the line of the table, or of keys in it."""
        try:
            yield
        except BadInput as error:
            raise error.within(self.source.where(*self.keys, *keys)) from None

    def tables(self, key: str, known: tuple[str, ...], most: int) -> list[Table]:
        """The tables [[key]], which are at most `most` and have only known keys."""
        listed = self.value(key, lambda field, value: value)
        with self.at(key):
            if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
                found = f"is [{key}]" if isinstance(listed, dict) else None
                raise refuse(key, listed, f"one or more tables that begin with [[{key}]]", found=found)
            if len(listed) > most:
                many = f"is {len(listed):,} of them"
                raise refuse(key, len(listed), f"at most {most:,} tables", found=many)
        tables = [Table(self.source, (key, turn), values) for turn, values in enumerate(listed)]
        for table in tables:
            table.check_keys(f"key of {key}", known)
        return tables

    def check_keys(self, field: str, known: tuple[str, ...]) -> None:
        """Refuse a key that is not known."""
        for word in self.values:
            with self.at(word):
                known_word(field, word, known)

    def value(self, key: str, check: Check, default: Any = NEEDED) -> Any:
        """The checked value of a key, or its default."""
        if key in self.values:
            with self.at(key):
                return check(self._field(key), self.values[key])
        if default is NEEDED:
            missing = refuse(self._field(key), None, "given", found="is missing")
            raise missing.within(self.source.where(*self.keys) if self.keys else self.source.name)
        return default

    def without(self, keys: Iterable[str], when: str) -> None:
        """Refuse keys that have no meaning here. `when` ends the sentence."""
        for key in keys:
            if key in self.values:
                with self.at(key):
                    raise refuse(self._field(key), self.values[key], f"left out {when}")

    def _field(self, key: str) -> str:
        return f"{self.keys[0]}.{key}" if self.keys else key


def _depth(document: Any) -> int:
    """How many levels of tables and lists there are, counted up to DEEPEST + 1."""
    depth, inside = 0, [document]
    while inside and depth <= DEEPEST:
        depth += 1
        parts = (part for one in inside for part in (one.values() if isinstance(one, dict) else one))
        inside = [part for part in parts if isinstance(part, (dict, list))]
    return depth


def _has(document: Any, keys: tuple[str | int, ...]) -> bool:
    try:
        for key in keys:
            document = document[key]
    except LookupError:
        return False
    return True


def several(check: Check) -> Check:
    """The check for a list of at least one value, all of them different."""

    def checked(field: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise refuse(field, value, "a list of at least one number, such as [1, 2]")
        values = tuple(check(f"{field}[{place}]", one) for place, one in enumerate(value))
        seen = set()
        for place, one in enumerate(values):
            if one in seen:
                twice = f"{shown(value[place])} is given twice"
                raise refuse(field, value, "different numbers", found=twice)
            seen.add(one)
        return values

    return checked


def text(field: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise refuse(field, value, "a text in quotes")
    return value


def texts(field: str, value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise refuse(field, value, "a list of texts")
    return tuple(text(f"{field}[{place}]", one) for place, one in enumerate(value))


def name(field: str, value: Any) -> str:
    """A text that can be a name, even of a folder."""
    if len(text(field, value)) > LONGEST_NAME or not value.isprintable() or not re.search(r"[^\W_]", value):
        allowed = f"a text of 1 to {LONGEST_NAME} characters with at least one letter or digit"
        raise refuse(field, value, allowed)
    return value.strip()  # type: ignore[no-any-return]
