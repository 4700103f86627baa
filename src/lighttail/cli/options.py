"""What the commands share: their options, what the options name, and how answers are shown."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import BadInput, known_word, positive, refuse
from lighttail.outcomes.losing import Lost
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.reading.numbers import parse_number, parse_numbers, parse_share, parse_whole
from lighttail.reading.own import loader
from lighttail.reading.words import (
    BONUSES,
    BY_FIELDS,
    DELAYS,
    FORMS,
    in_units,
    in_units_of_noise,
    noise_forms,
    parse_noise,
    parse_policy,
    shares,
)
from lighttail.system.files import output_folder

LONGEST_LINE = 1000  # letters
HERE = loader(lambda name: Path(name).expanduser(), Path())  # how files that a command names are loaded
ARMS = {"means": "0.2,0.8", "noise": "gaussian"}  # the problem if no option names another
ARM_COUNT = 3  # if no option lists the arms or says how many there are
TAKEN_FOR_TRUE = (  # printed under every answer that comes from --data
    "The observed means are taken for the true means here; "
    "`lighttail plan --data` counts how uncertain they are."
)
DEFAULT_POLICY = "ucb:lighttailed:0.2{s}"  # {s}: see `in_units`
UNREPEATED = ("threads", "as_json")  # options that change neither the numbers nor the files
POLICY_WORDS = (
    f"ucb:BONUS:KAPPA, se:BONUS:KAPPA (BONUS: {', '.join(BONUSES)}; "
    "armoptimal takes KAPPA:FLOOR, twopart KAPPA:CAP), "
    "ts:KAPPA or ts:KAPPA:PRIOR_MEAN:PRIOR_SD, exp3ix:reward, exp3ix:loss:UPPER, "
    + ", ".join(FORMS[word] for word in BY_FIELDS)
    + "; 0.2s in place of a KAPPA is 0.2 times the noise of the problem"
    + "; or a class of your own, FILE.py:Class(ARGUMENTS) or package.module:Class(ARGUMENTS)"
)


def _read_option(read: Callable[[str, str], Any], name: str, *also: str, **settings: Any) -> Any:
    """An option whose text is read by `read(name, text)`, which refuses a bad text in a sentence of ours.
    also: its further names."""

    def value(text: str | None) -> Any:
        return None if text is None else read(name, text)

    names = [f"--{one}" for one in (name, *also)]
    return typer.Option(*names, parser=str, callback=value, **settings)


# Options that take a whole number, which may be written as 100_000 or 1e5; a number; or a share, which may be
# written as 0.1%.
whole_option = partial(_read_option, parse_whole, metavar="N")
number_option = partial(_read_option, parse_number)
share_option = partial(_read_option, parse_share)


Means = Annotated[
    str | None,
    typer.Option(
        help="Mean reward of each arm, comma-separated; also as 3%,5% with --noise bernoulli.",
        show_default=ARMS["means"],
    ),
]
NoiseWord = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(noise_forms())}, or a class of your own, FILE.py:Class(ARGUMENTS).",
        show_default=ARMS["noise"],
    ),
]
Sigma = Annotated[
    float | None, number_option("sigma", help="Standard deviation of the noise.", show_default="1")
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="CSV file with a reward per line: draw rewards from these data, not from means and noise. The "
        "observed means are taken for the truth; `lighttail plan --data` counts how uncertain they are."
    ),
]
ArmColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --data: the column that names the arm.", show_default="arm"),
]
RewardColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --data: the column of the rewards.", show_default="reward"),
]
NumberOfArms = Annotated[
    int | None,
    whole_option("arms", help="The number of arms, if no option lists them.", show_default=str(ARM_COUNT)),
]
OnePolicy = Annotated[  # a list, so that a second policy is refused and does not replace the first
    list[str] | None,
    typer.Option("--policy", help=f"{POLICY_WORDS}.", show_default=DEFAULT_POLICY.format(s="s")),
]
DelayWord = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="PULLS",
        help=f"After how many pulls a reward becomes known: a number such as 100, {DELAYS} "
        "(a delay per line, or a column delay).",
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
Horizon = Annotated[int, whole_option("horizon", help="Pulls per path.")]
Paths = Annotated[int, whole_option("paths", help="Simulated paths per policy and problem.")]
Seed = Annotated[int, whole_option("seed", help="The same seed gives the same numbers.")]
Threads = Annotated[
    int | None, whole_option("threads", help="How many processors to use.", show_default="all")
]
DeviceWord = Annotated[str, typer.Option("--device", metavar="WHERE", help="cpu, or cuda for an NVIDIA GPU.")]
KINDS: dict[str, Lost] = {"pseudo-regret": "pseudo_regret", "regret": "regret"}
KindWord = Annotated[
    str,
    typer.Option(
        help="What counts as lost: pseudo-regret leaves out the luck of single rewards, regret includes it."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for the report.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results as JSON and nothing else.")]


def problem_from(
    means: str | None,
    noise: str | None,
    sigma: float | None,
    data: Path | None,
    arm_column: str | None = None,
    reward_column: str | None = None,
) -> Bandit:
    """The problem that the options name."""
    if data is None:
        left_out("without data", arm_column=arm_column, reward_column=reward_column)
        law = parse_noise(ARMS["noise"] if noise is None else noise, sigma, HERE)
        text = ARMS["means"] if means is None else means
        if law.is_coin:  # rates of rewards of 0 and 1 may be written as 3%
            return Bandit([parse_share("means", part) for part in text.split(",")], law)
        try:
            return Bandit(parse_numbers("means", text), law)
        except BadInput as error:
            raise error.adding("; percent signs are for --noise bernoulli" if "%" in text else "") from None
    from lighttail.reading.csvfile import read_rewards

    left_out("with data, which has its own", means=means, noise=noise, sigma=sigma)
    return Bandit.from_samples(read_rewards(data, arm_column, reward_column))


def kind_from(text: str) -> Lost:
    """What counts as lost, by its word. An underscore, as in Python, may stand for the hyphen."""
    word = text.replace("_", "-")
    known_word("kind", word, KINDS)
    return KINDS[word]


def policy_word(words: list[str] | None, problem: Bandit) -> str:
    """The words of the one policy that the option names, or of the default policy."""
    if words and len(words) > 1:
        raise refuse("policy", words, "given once")
    (word,) = words or in_units([DEFAULT_POLICY], problem.sigma)
    return word


def left_out(when: str, **options: Any) -> None:
    """Refuse options that have no meaning here. `when` ends the sentence."""
    for field, value in options.items():
        if value is not None:
            raise refuse(field.replace("_", "-"), str(value), f"left out {when}")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print each warning once, as one line, when the work within this context is done."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for warning in dict.fromkeys(str(entry.message) for entry in caught):
        print_line(f"warning: {warning}")


@contextmanager
def report_folder(out: Path, quiet: bool) -> Iterator[None]:
    """The folder of a report, which is made if it is missing. If the report replaces an earlier one, one line
    says so, unless `quiet`."""
    with output_folder("out", out):
        before = (out / "results.json").exists()
        yield
    if before and not quiet:
        print_line(f"{out} had a report already, which was replaced")


def print_line(text: str) -> None:
    """Print a message beside the answer: one line on stderr, cut after LONGEST_LINE letters."""
    line = " ".join(text.split())
    line = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."
    print(f"lighttail: {line}", file=sys.stderr)


def policies_from(
    words: Any, assumed_sigma: str | None = None, linear: bool = False, sigma: float | None = None
) -> dict[Policy, str]:
    """The policies with their names. In a sweep, the name says which noise the policy assumes.

    sigma: the noise of the problem, for kappas such as 0.2s; None if no problem is known.
    """
    policies = []
    with warnings_as_lines():
        for word in words:
            policies.append(parse_policy(word, HERE, sigma))
            if policies[-1].linear != linear:
                allowed = "a linear bandit, such as linucb:" if linear else "arms, such as ucb:"
                raise refuse("policy", word, f"one for {allowed}lighttailed:0.2")
    if assumed_sigma is None:
        return {policy: str(policy) for policy in policies}
    factors = [positive("assumed-sigma", one) for one in parse_numbers("assumed-sigma", assumed_sigma)]
    swept = {}
    with warnings.catch_warnings(action="ignore"):  # printed above
        for word, policy in zip(words, policies, strict=True):
            tuned_for = sigma if sigma is not None and in_units_of_noise(word) else 1.0
            for factor in factors:
                scaled = policy.for_noise(factor)
                assumed = f"{scaled}, σ {factor * tuned_for:g} assumed"
                swept[scaled] = str(policy) if scaled is policy else assumed
    return swept


def notes(words: Sequence[str], sigma: float, data: Path | None) -> list[str]:
    """The sentences under an answer: about kappas in units of the noise, and about data.

    The first says how large the noise is, and which share of the noise each kappa is. It is left out if no
    word is in units of the noise, and for the noise 1, for which the names say so already.

    >>> notes(["ucb:lighttailed:0.2s", "ts:0.8"], 0.196, None)
    ['The noise of this problem is 0.196. Kappa as a share of the noise: UCB + LightTailed(0.0392) 0.2.']
    """
    sentences = [] if data is None else [TAKEN_FOR_TRUE]
    named = [word for word in words if in_units_of_noise(word)]
    if not named or sigma == 1.0:
        return sentences
    with warnings.catch_warnings(action="ignore"):  # of a policy that was made before
        parts = [f"{parse_policy(word, HERE, sigma)} {' and '.join(shares(word))}" for word in named]
    noise = f"The noise of this problem is {sigma:.3g}."
    return [f"{noise} Kappa as a share of the noise: {', '.join(parts)}.", *sentences]


def command_again(context: typer.Context, **defaults: Any) -> str:
    """The command that makes the same files again, with `defaults` for options that were not given."""
    names = [str(parameter.name) for parameter in context.command.params if parameter.name in context.params]
    given = {name: context.params[name] for name in names if name not in UNREPEATED}
    filled = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    return command_line(str(context.info_name), **filled)


def command_line(*words: object, **options: Any) -> str:
    """The text of a command: `words`, then the options. None and False leave an option out."""
    parts = ["lighttail", *map(str, words)]
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None and one is not False:
                parts += [f"--{name.replace('_', '-')}"] + ([] if one is True else [str(one)])
    return shlex.join(parts)


def console() -> Any:
    """A terminal of rich. For a pipe, which has no width: long lines and no colours, for other programs."""
    from rich.console import Console

    piped: Any = {} if sys.stdout.isatty() else {"width": 160, "no_color": True, "soft_wrap": True}
    return Console(highlight=False, markup=False, **piped)
