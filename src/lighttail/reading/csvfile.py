"""A user's observations in CSV files: rewards by arm, and delays."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lighttail.checks import file_path, refuse, refuse_file, shown

LONGEST_NAME = 80  # letters of the name of a column in a message
OTHERS = "; other columns can be named (arm-column, reward-column)"


def read_rewards(
    path: str | Path, arm_column: str | None = None, reward_column: str | None = None
) -> dict[str, list[float]]:
    """The rewards of each arm, in the order in which the arms first appear.

    arm_column, reward_column: the names of two columns; "arm" and "reward" if they are None. Other columns
    are ignored. The message about a mistake names the line.
    """
    rewards: dict[str, list[float]] = {}
    path = file_path("data", path)
    with _opened("data", path) as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        names = rows.fieldnames = [name.strip() for name in rows.fieldnames or []]
        arms, values = _columns(path, names, arm_column, reward_column)
        for row in rows:
            arm, text = (row[arms] or "").strip(), (row[values] or "").strip()
            place = f"line {rows.line_num} of {path}"
            if not arm:
                raise refuse(arms, arm, f"a name in {place}", found="is empty")
            if not math.isfinite(reward := _number(text)):
                raise refuse(values, text, f"a finite number in {place}")
            rewards.setdefault(arm, []).append(reward)
    if len(rewards) < 2:
        found = f"{path} names {len(rewards)}"
        raise refuse("data", str(path), "at least two arms", verb="name", found=found)
    return rewards


def _columns(path: Path, names: list[str], arm: str | None, reward: str | None) -> tuple[str, str]:
    """The columns of the arms and of the rewards. Raises BadInput, with the columns that there are, if one of
    the two is missing."""
    arms, values = ("arm" if arm is None else arm.strip()), ("reward" if reward is None else reward.strip())
    if not {arms, values} <= set(names):
        found = f"has {shown(', '.join(names)) if names else 'no columns'}"
        allowed = f"the columns {arms[:LONGEST_NAME]} and {values[:LONGEST_NAME]} in line 1 of {path}"
        more = "" if arm or reward or not names else OTHERS
        raise refuse("data", names, allowed, verb="have", found=found, more=more)
    if arms == values:
        raise refuse("the column of the rewards", values, "another column than that of the arms")
    return arms, values


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
