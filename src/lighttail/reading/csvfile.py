"""A user's observations in CSV files: rewards by arm, and delays."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TextIO

from lighttail.checks import Argument, BadInput, Words, file_path, refuse, refuse_file, shown

LONGEST_NAME = 80  # letters of the name of a column in a message
SEPARATORS = (";", "\t", "|")  # that other programs write between columns in place of a comma


def read_rewards(
    path: str | Path, arm_column: str | None = None, reward_column: str | None = None
) -> dict[str, list[float]]:
    """The rewards of each arm, in the order in which the arms first appear.

    arm_column, reward_column: the names of two columns; "arm" and "reward" if they are None. Other columns
    are ignored. The message about a mistake names the line.
    """
    rewards: dict[str, list[float]] = {}
    lines, lacking = 0, list[BadInput]()
    path = file_path("data", path)
    with _opened("data", path) as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        names = rows.fieldnames = [name.strip() for name in rows.fieldnames or []]
        arms, values = _columns(path, names, arm_column, reward_column)
        for row in rows:
            arm, text = (row[arms] or "").strip(), (row[values] or "").strip()
            where = f"line {rows.line_num} of {path}"
            if not arm:
                raise refuse(arms, arm, f"a name in {where}", found="is empty")
            lines += 1
            if math.isfinite(reward := _number(text)):
                rewards.setdefault(arm, []).append(reward)
            else:
                lacking.append(refuse(values, text, f"a finite number in {where}"))
    if lacking:
        raise lacking[0].adding(_lacking(len(lacking), lines))
    if len(rewards) < 2:
        found = f"{path} names {len(rewards)}"
        raise refuse("data", str(path), "at least two arms", verb="name", found=found)
    return rewards


def _lacking(count: int, lines: int) -> str:
    """How many lines have no number, and how to go on.

    >>> _lacking(3, 400)
    '; 3 of 400 lines have no number there. Remove such lines first: lighttail does not guess missing values'
    """
    if count == lines:
        return "; no line has a number there. Is this the column of the rewards?"
    have = "has" if count == 1 else "have"
    more = "Remove such lines first: lighttail does not guess missing values"
    return f"; {count:,} of {lines:,} lines {have} no number there. {more}"


def _columns(path: Path, names: list[str], arm: str | None, reward: str | None) -> tuple[str, str]:
    """The columns of the arms and of the rewards. Raises BadInput, with the columns that there are, if one of
    the two is missing."""
    arms, values = ("arm" if arm is None else arm.strip()), ("reward" if reward is None else reward.strip())
    if not {arms, values} <= set(names):
        found = f"has {shown(', '.join(names)) if names else 'no columns'}"
        allowed = f"the columns {arms[:LONGEST_NAME]} and {values[:LONGEST_NAME]} in line 1 of {path}"
        wanted = (("arm_column", arms, arm), ("reward_column", values, reward))
        missing = [(option, column, named) for option, column, named in wanted if column not in names]
        raise refuse("data", names, allowed, verb="have", found=found, more=_hint(names, missing))
    if arms == values:
        raise refuse("the column of the rewards", values, "another column than that of the arms")
    return arms, values


def _hint(names: list[str], missing: list[tuple[str, str, str | None]]) -> Words:
    """What the user may have meant. missing: the option and the name of each missing column, and the name in
    the option, if any."""
    between = [sign for sign in SEPARATORS if len(names) == 1 and sign in names[0]]
    if between:
        return f"; columns must be separated by commas, and here they seem to be separated by {between[0]!r}"
    lower = {name.lower(): name for name in names}
    near = [
        Argument(option, (lower[found],))
        for option, column, _ in missing
        for found in get_close_matches(column.lower(), lower, n=1)
    ]
    if near:
        return "; did you mean ", *_joined(near), "?"
    unnamed = [Argument(option, ("NAME",)) for option, _, named in missing if names and named is None]
    return ("; other columns can be named by ", *_joined(unnamed)) if unnamed else ""


def _joined(arguments: list[Argument]) -> list[str | Argument]:
    """The arguments with "and" between them."""
    return [part for argument in arguments for part in (" and ", argument)][1:]


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
                pulls = _number(text)
                if not pulls >= 0.0 or (math.isfinite(pulls) and not pulls.is_integer()):
                    allowed = "a whole number of pulls, or inf for a reward that never came,"
                    raise refuse("delay", text, f"{allowed} in line {rows.line_num} of {path}")
                delays.append(pulls)
    if not delays:
        raise refuse("delay", str(path), "a file with a delay in every line", found=f"{path} has none")
    return delays


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
