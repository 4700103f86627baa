"""What the commands share: their options, what the options name, and how answers are shown."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import refuse
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.reading.own import loader
from lighttail.reading.words import (
    BONUSES,
    BY_FIELDS,
    DELAYS,
    FORMS,
    parse_noise,
    parse_number,
    parse_numbers,
    parse_policy,
    with_assumed_sigma,
)

LONGEST_LINE = 1000  # letters
HERE = loader(lambda name: Path(name).expanduser(), Path())  # how files that a command names are loaded
DEFAULT_MEANS, DEFAULT_NOISE = "0.2,0.8", "gaussian"
POLICY_WORDS = (
    f"ucb:BONUS:KAPPA, se:BONUS:KAPPA (BONUS: {', '.join(BONUSES)}; "
    "armoptimal takes KAPPA:FLOOR, twopart KAPPA:CAP), "
    "ts:KAPPA or ts:KAPPA:PRIOR_MEAN:PRIOR_SD, exp3ix:reward, exp3ix:loss:UPPER, "
    + ", ".join(FORMS[word] for word in BY_FIELDS)
    + ", or a class of your own, FILE.py:Class(ARGUMENTS) or package.module:Class(ARGUMENTS)"
)

Means = Annotated[
    str | None, typer.Option(help="Mean reward of each arm, comma-separated.", show_default=DEFAULT_MEANS)
]
NoiseWord = Annotated[
    str | None,
    typer.Option(
        help="gaussian, bernoulli, uniform, laplace, studentt or studentt:DF, or a class of your own, "
        "FILE.py:Class(ARGUMENTS).",
        show_default=DEFAULT_NOISE,
    ),
]
Sigma = Annotated[str | None, typer.Option(help="Standard deviation of the noise.", show_default="1")]
Data = Annotated[
    Path | None,
    typer.Option(help="CSV file with columns arm,reward: resample these instead of means and noise."),
]
DelayWord = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="PULLS",
        help=f"After how many pulls a reward becomes known: {DELAYS} (a delay per line, or a column delay).",
        show_default="0",
    ),
]
Never = Annotated[
    str | None,
    typer.Option(metavar="CHANCE", help="The chance that a reward never becomes known.", show_default="0"),
]
Batch = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Decisions per group, which see no reward of their own group.", show_default="1"
    ),
]
Horizon = Annotated[str, typer.Option("--horizon", metavar="N", help="Pulls a path.")]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="The same seed gives the same numbers.")]
Threads = Annotated[
    str | None, typer.Option("--threads", metavar="N", help="Processors to use.", show_default="all")
]
Out = Annotated[Path, typer.Option(help="Folder for the report.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results as JSON and nothing else.")]


def problem_from(means: str | None, noise: str | None, sigma: str | None, data: Path | None) -> Bandit:
    """The problem that the options name."""
    if data is None:
        scale = None if sigma is None else parse_number("sigma", sigma)
        numbers = parse_numbers("means", DEFAULT_MEANS if means is None else means)
        return Bandit(numbers, parse_noise(DEFAULT_NOISE if noise is None else noise, scale, HERE))
    from lighttail.reading.csvfile import read_rewards

    left_out("with data, which has its own", means=means, noise=noise, sigma=sigma)
    return Bandit.from_samples(read_rewards(data))


def problem_options(
    means: str | None, noise: str | None, sigma: str | None, data: Path | None
) -> dict[str, Any]:
    """The options that name the problem again, defaults included."""
    return {
        "means": None if data else DEFAULT_MEANS if means is None else means,
        "noise": None if data else DEFAULT_NOISE if noise is None else noise,
        "sigma": sigma,
        "data": data,
    }


def left_out(when: str, **options: Any) -> None:
    """Refuse options that have no meaning here."""
    for field, value in options.items():
        if value is not None:
            raise refuse(field, str(value), f"left out {when}")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Each warning once, as one line for a person."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in dict.fromkeys(str(entry.message) for entry in caught):
        print_line(f"warning: {warning}")


def print_line(text: str) -> None:
    """Say something beside the answer: one line on stderr, however long the words are that it repeats."""
    line = " ".join(text.split())
    print(
        f"lighttail: {line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + ' ...'}", file=sys.stderr
    )


def policies_from(words: Any, assumed_sigma: str | None = None, linear: bool = False) -> dict[Policy, str]:
    """The policies with their names; a sweep names the noise that each one assumes."""
    with warnings_as_lines():
        policies = [_policy_for(word, linear) for word in words]
    if assumed_sigma is None:
        return {policy: str(policy) for policy in policies}
    swept = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said above
        for policy in policies:
            for sigma in parse_numbers("assumed-sigma", assumed_sigma):
                scaled = with_assumed_sigma(policy, sigma)
                swept[scaled] = str(policy) if scaled is policy else f"{scaled}, σ {sigma:g} assumed"
    return swept


def _policy_for(word: str, linear: bool) -> Policy:
    """The policy that the word names, if it is one for linear bandits or for arms, as it should be."""
    policy = parse_policy(word, HERE)
    if policy.linear != linear:
        allowed = "one for a linear bandit, such as linucb:" if linear else "one for arms, such as ucb:"
        raise refuse("policy", word, f"{allowed}lighttailed:0.2")
    return policy


def command_line(command: str, **options: Any) -> str:
    """The command that makes the same files again."""
    words = ["lighttail", command]
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(f"--{name}")
            elif one is not None and one is not False:
                words += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(words)


def console() -> Any:
    """A pipe has no width: long lines and no colours, for other programs to read."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160, no_color=True)
