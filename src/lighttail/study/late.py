"""When the rewards of a study become known: the keys delay, never and batch, of all problems or of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lighttail.checks import refuse, whole, whole_float
from lighttail.course import STRAIGHT, Course
from lighttail.delays import Delay, as_delay
from lighttail.reading.words import DELAYS, parse_course
from lighttail.study.source import Source, TablePlace

LINEAR_KEYS = ("actions", "dim", "theta")
ALLOWED = f"a whole number of pulls, a list of such numbers, or a text of the form {DELAYS}"


def course_of(source: Source, place: TablePlace, find: Callable[[str], Path]) -> Course:
    """The course of a problem: each key from its own table, or else the study's. find: where a file is."""

    def given(key: str, check: Callable[[str, Any], Any], default: Any) -> Any:
        return source.given(place if key in source.table(place) else (), key, check, default)

    delay = given("delay", lambda field, value: _delay(field, value, find), STRAIGHT.delay)
    batch = given("batch", lambda field, value: whole(field, whole_float(value), 1), STRAIGHT.batch)
    course = Course(given("never", lambda field, value: replace(delay, never=value), delay), batch)
    if course.late and any(key in source.table(place) for key in LINEAR_KEYS):
        with source.at(*place):
            raise refuse("delay, never or batch", course.short(), "left out with a linear bandit")
    return course


def _delay(field: str, value: Any, find: Callable[[str], Path]) -> Delay:
    """The delay that TOML gives as a number, a list or a text."""
    if isinstance(value, list):
        return as_delay(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise refuse(field, value, ALLOWED)
    found, _ = parse_course(value if isinstance(value, str) else str(whole_float(value)), None, None, find)
    assert found is not None  # the delay is given
    return found
