"""The text of a study file: its keys, the checks on them, and the line of what is wrong."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lighttail.validation import BadInput, refuse
from lighttail.words import known_word

Check = Callable[[str, Any], Any]  # field and value to the checked value
Table = tuple[str | int, ...]  # where a table stands: (), or ("policy", 2) for the third [[policy]]
LONGEST_NAME = 80
NEEDED: Any = object()


class Source:
    """A TOML text whose faults are said with their line."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, said: str) -> BadInput:
        found = re.search(r"line (\d+)", said)
        lines = self.text.split("\n")
        line = int(found[1]) if found else max(n for n, row in enumerate(lines, 1) if row.strip())
        written = lines[line - 1].strip()
        if "overwrite" in said or "twice" in said:
            key = written.partition("=")[0].strip()
            wrong = f"a key must be given once, but {key} is given again"
            if key.startswith("["):
                wrong += f"; several are each written [[{key.strip('[]')}]]"
        else:
            reason = re.sub(r" \(at .*", "", said)
            wrong = f"this must be TOML, but is {written!r} ({reason[:1].lower()}{reason[1:]})"
        return BadInput(f"{self.name}, line {line}: {wrong}")

    def line(self, *keys: str | int) -> int:
        """The line in which the statement that gives `keys` begins.

        tomllib tells no lines. But the beginning of a file, up to the end of any statement, is TOML too: the
        statement is the one with which the keys appear.
        """
        lines = self.text.split("\n")

        def there(count: int) -> bool:
            for until in range(count, len(lines) + 1):
                try:
                    return _has(tomllib.loads("\n".join(lines[:until])), keys)
                except tomllib.TOMLDecodeError:
                    continue  # in the middle of a statement
            return True

        return 1 + bisect_left(range(1, len(lines) + 1), True, key=there)

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Bad input that is found within is said with the line of these keys."""
        try:
            yield
        except BadInput as error:
            raise BadInput(f"{self.name}, line {self.line(*keys)}: {error}") from None

    def table(self, place: Table) -> dict[str, Any]:
        """The table at a place."""
        found: Any = self.document
        for step in place:
            found = found[step]
        return found  # type: ignore[no-any-return]

    def tables(self, key: str, known: tuple[str, ...]) -> list[Table]:
        """The places of the tables [[key]], whose keys must be known."""
        found = self.given((), key, lambda field, value: value)
        with self.at(key):
            if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
                shown = f"[{key}]" if isinstance(found, dict) else repr(found)[:100]
                raise BadInput(f"{key} must be one or more tables that begin with [[{key}]], but is {shown}")
        places: list[Table] = [(key, turn) for turn in range(len(found))]
        for place in places:
            self.check_keys(place, f"key of {key}", known)
        return places

    def check_keys(self, place: Table, field: str, known: tuple[str, ...]) -> None:
        """Refuse a key that is not known."""
        for word in self.table(place):
            with self.at(*place, word):
                known_word(field, word, known)

    def given(self, place: Table, key: str, check: Check, default: Any = NEEDED) -> Any:
        """The checked value of a key in a table, or its default."""
        table = self.table(place)
        field = f"{place[0]}.{key}" if place else key
        if key in table:
            with self.at(*place, key):
                return check(field, table[key])
        if default is NEEDED:
            where = f", line {self.line(*place)}" if place else ""
            raise BadInput(f"{self.name}{where}: {field} must be given, but is missing")
        return default

    def without(self, place: Table, keys: tuple[str, ...], when: str) -> None:
        """Refuse keys that have no meaning here."""
        for key in keys:
            if key in self.table(place):
                with self.at(*place, key):
                    raise BadInput(
                        f"{place[0]}.{key} must be left out {when}, but is {self.table(place)[key]!r}"
                    )


def _has(document: Any, keys: tuple[str | int, ...]) -> bool:
    for key in keys:
        inside = len(document) > key if isinstance(key, int) else key in document
        if not inside:
            return False
        document = document[key]
    return True


def several(check: Check) -> Check:
    """The check for a list of at least one value, each different from the others."""

    def checked(field: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise refuse(field, value, "a list of at least one number, such as [1, 2]")
        values = tuple(check(f"{field}[{place}]", one) for place, one in enumerate(value))
        for place, one in enumerate(values):
            if one in values[:place]:
                raise BadInput(f"{field} must be different numbers, but {value[place]!r} is there twice")
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
    """A text that can name something, a folder too."""
    if len(text(field, value)) > LONGEST_NAME or not value.isprintable() or not re.search(r"[^\W_]", value):
        raise refuse(field, value, f"a text of 1 to {LONGEST_NAME} letters, at least one a letter or a digit")
    return value.strip()  # type: ignore[no-any-return]
