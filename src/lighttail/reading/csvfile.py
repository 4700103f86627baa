"""A user's observations in CSV files: rewards, in the columns arm and reward, and delays."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lighttail.checks import file_path, refuse, refuse_file, shown


def read_rewards(path: str | Path) -> dict[str, list[float]]:
    """The rewards of each arm, in the order in which the arms first appear.

    Other columns are ignored. The message about a mistake names the line.
    """
    rewards: dict[str, list[float]] = {}
    path = file_path("data", path)
    with _opened("data", path) as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        names = [name.strip() for name in rows.fieldnames or []]
        if not {"arm", "reward"} <= set(names):
            found = f"has {shown(', '.join(names)) if names else 'no columns'}"
            allowed = f"the columns arm and reward in line 1 of {path}"
            raise refuse("data", names, allowed, verb="have", found=found)
        rows.fieldnames = names
        for row in rows:
            arm, text = (row["arm"] or "").strip(), (row["reward"] or "").strip()
            place = f"line {rows.line_num} of {path}"
            if not arm:
                raise refuse("arm", arm, f"a name in {place}", found="is empty")
            if not math.isfinite(reward := _number(text)):
                raise refuse("reward", text, f"a finite number in {place}")
            rewards.setdefault(arm, []).append(reward)
    if len(rewards) < 2:
        found = f"{path} names {len(rewards)}"
        raise refuse("data", str(path), "at least two arms", verb="name", found=found)
    return rewards


def read_delays(path: str | Path) -> list[float]:
    """The delays in pulls: one per line, or the column delay. `inf` stands for a reward that never came.

    The message about a mistake names the line.
    """
    path = file_path("delay", path)
    delays: list[float] = []
    with _opened("delay", path) as file:
        rows = csv.reader(file, skipinitialspace=True)
        column = 0
        for row in rows:
            names = [name.strip().lower() for name in row]
            if not delays and "delay" in names:
                column = names.index("delay")
            elif any(names):
                text = row[column].strip() if column < len(row) else ""
                delays.append(_pulls(text, f"line {rows.line_num} of {path}"))
    if not delays:
        raise refuse("delay", str(path), "a file with a delay in every line", found=f"{path} has none")
    return delays


def _pulls(text: str, place: str) -> float:
    value = _number(text)
    if not value >= 0.0 or (math.isfinite(value) and not value.is_integer()):
        allowed = "a whole number of pulls, or inf for a reward that never came,"
        raise refuse("delay", text, f"{allowed} in {place}")
    return value


def _number(text: str) -> float:
    """The number in a text; nan if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


@contextmanager
def _opened(field: str, path: Path) -> Iterator[TextIO]:
    """The open file. Raises BadInput if it cannot be read, or if it is not a CSV file."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield file
    except OSError as error:
        raise refuse_file(field, path, "a file that can be read", error) from None
    except (UnicodeDecodeError, csv.Error) as error:
        found, more = f"{path} is not", f" ({error})"
        raise refuse(field, str(path), "a CSV file in UTF-8", found=found, more=more) from None
