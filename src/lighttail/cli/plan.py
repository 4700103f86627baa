"""The command `plan`: from what is known of a problem to the policy to run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import BadInput, refuse
from lighttail.cli import options as opt
from lighttail.cli.app import app
from lighttail.families import Family
from lighttail.planning import Plan
from lighttail.planning import plan as plan_experiment
from lighttail.reading.numbers import parse_range
from lighttail.reading.words import parse_course, parse_noise
from lighttail.report import write_report

HORIZON = 20_000
RATES, LOSS = "3%..5%", 150.0  # the web test, if no option describes another problem
OWN_NAMES = {  # the words of the command line for arguments of `plan`
    "loss": "lose-at-most",
    "loss_per_pull": "loss-per-pull",
    "family": "the problem",
    "policies": "policy",
}


@app.command()
def plan(
    context: typer.Context,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="LOW..HIGH",
            help="The arms convert or not, each with a rate between LOW and HIGH, such as 3%..5%.",
            show_default=RATES,
        ),
    ] = None,
    gaps: Annotated[
        str | None,
        typer.Option(
            metavar="LOW..HIGH", help="Each arm is worse than the best arm by a gap between LOW and HIGH."
        ),
    ] = None,
    means: Annotated[
        str | None,
        typer.Option(
            help="The mean reward of each arm, comma-separated, if the means are known.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with a reward per line: plan for all means that fit these observations, not for "
            "the observed means alone."
        ),
    ] = None,
    arm_column: opt.ArmColumn = None,
    reward_column: opt.RewardColumn = None,
    arms: opt.NumberOfArms = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="With --gaps or --means: as in `lighttail compare`.", show_default=opt.ARMS["noise"]
        ),
    ] = None,
    sigma: opt.Sigma = None,
    horizon: Annotated[
        int | None, opt.whole_option("horizon", help="Pulls of the experiment.", show_default=str(HORIZON))
    ] = None,
    lose_at_most: Annotated[
        float | None,
        opt.number_option(
            "lose-at-most",
            "loss",
            metavar="LOSS",
            help="The loss that must be rare, in units of reward, such as conversions. Both names of the "
            "option mean the same.",
            show_default="the smallest loss that can be promised with this effort; "
            f"{LOSS:g} if the problem and the horizon are left out, too",
        ),
    ] = None,
    loss_per_pull: Annotated[
        float | None,
        opt.number_option(
            "loss-per-pull",
            metavar="LOSS",
            help="In place of --horizon and --lose-at-most: ask how long the experiment must be so that a "
            "loss of LOSS times its pulls is rare.",
        ),
    ] = None,
    chance: Annotated[
        float,
        opt.share_option(
            "chance", metavar="SHARE", help="The chance with which this loss may be reached, such as 0.1%."
        ),
    ] = 0.001,
    over: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="everywhere: the chance is within the limit in the worst problems that are found (three "
            "are confirmed); average: on average over the problems that stand for all possible ones.",
        ),
    ] = "everywhere",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Choose from these policies alone, each with the best kappa: {opt.POLICY_WORDS}; repeat "
            "for several.",
            show_default="eleven policies, from UCB to an even split",
        ),
    ] = None,
    also: Annotated[
        list[str] | None, typer.Option(help="Choose from this policy, too; repeat for several.")
    ] = None,
    delay: opt.DelayWord = None,
    never: opt.Never = None,
    batch: opt.Batch = None,
    seed: opt.Seed = 1,
    effort: Annotated[
        float,
        opt.number_option(
            "effort", metavar="TIMES", help="Simulate this number of times as many pulls as usual."
        ),
    ] = 1.0,
    threads: opt.Threads = None,
    out: opt.Out = Path("lighttail-plan"),
    as_json: opt.AsJson = False,
) -> None:
    """Find the policy to run: the least mean loss for a limit on the chance of a large loss.

    Without options: three variants of a web page that convert at 3 % to 5 %, 20,000 visitors, and a loss of
    150 conversions or more with a chance of at most 0.1 %.
    """
    described = {"rates": rates, "gaps": gaps, "means": means, "data": data}
    rest: dict[str, Any] = {"arms": arms, "noise": noise, "sigma": sigma}
    rest |= {"arm_column": arm_column, "reward_column": reward_column}
    alone = all(value is None for value in (horizon, arms, *described.values()))
    loss = LOSS if alone and lose_at_most is None else lose_at_most
    if all(value is None for value in described.values()):
        described["rates"] = RATES
    family = family_from(described, seed=seed, **rest)
    if loss_per_pull is not None:
        opt.left_out("with loss-per-pull", horizon=horizon, lose_at_most=lose_at_most)
        pulls, loss = None, None
    else:
        pulls = HORIZON if horizon is None else horizon
    wait, group = parse_course(delay, batch, never)
    filled = {**described, "horizon": pulls, "lose_at_most": loss}
    if arms is None and described["means"] is None and described["data"] is None:
        filled["arms"] = opt.ARM_COUNT
    command = opt.command_again(context, **filled)
    with opt.report_folder(out, as_json), _own_names():
        unit = family.sigma if 0.0 < family.sigma < math.inf else None  # of kappas such as 0.2s
        found = plan_experiment(
            family,
            horizon=pulls,
            loss=loss,
            loss_per_pull=loss_per_pull,
            chance=chance,
            over=over,  # type: ignore[arg-type]
            policies=list(opt.policies_from(policy, sigma=unit)) if policy else None,
            also=list(opt.policies_from(also or (), sigma=unit)),
            delay=wait,
            batch=group,
            seed=seed,
            effort=effort,
            threads=threads,
            progress=not as_json,
        )
        path = write_report(found, out, command)
    if as_json:
        print(json.dumps(found.to_dict(command), indent=2, allow_nan=False))
    else:
        _show(found, path)


def family_from(described: dict[str, Any], **rest: Any) -> Family:
    """The family that the options describe. described: by the option, of which one alone may be given.

    rest: the further options, each of which has a meaning with some descriptions alone, and the seed.
    """
    if described.get("data") is None:
        opt.left_out("without data", arm_column=rest["arm_column"], reward_column=rest["reward_column"])
    (first, value), *others = [(name, value) for name, value in described.items() if value is not None]
    for name, other in others:
        raise refuse(name, str(other), f"left out with {first}, which describes the problem already")
    make, takes, why = FAMILIES[first]
    unused = {name: given for name, given in rest.items() if name not in (*takes, "seed")}
    opt.left_out(f"with {first}, {why}", **unused)
    usual = {"arms": opt.ARM_COUNT, "noise": opt.ARMS["noise"]}
    family = make(value, **{name: usual.get(name) if rest[name] is None else rest[name] for name in takes})
    if family.most_lost(1) == 0.0:
        raise refuse(first, str(value), "some arm to be worse than another", verb="allow")
    return family


def _rates(text: str, arms: int) -> Family:
    low, high = parse_range("rates", text)
    try:
        return Family.rates(low, high, arms)
    except BadInput as error:
        if error.field not in ("low", "high"):
            raise
        more = "; three percent is written as 3%" if max(low, high) > 1.0 else ""
        raise error.renamed("rates").adding(more) from None


def _gaps(text: str, arms: int, noise: str, sigma: float | None) -> Family:
    low, high = parse_range("gaps", text)
    law = parse_noise(noise, sigma, opt.HERE)
    try:
        return Family.gaps(low, high, arms, noise=law)
    except BadInput as error:
        raise (error.renamed("gaps") if error.field in ("low", "high") else error) from None


def _means(text: str, noise: str, sigma: float | None) -> Family:
    return Family((opt.problem_from(text, noise, sigma, None),))


def _data(path: Path, arm_column: str | None, reward_column: str | None, seed: int) -> Family:
    from lighttail.reading.csvfile import read_rewards

    return Family.from_samples(read_rewards(path, arm_column, reward_column), seed=seed)


# By option: what makes the family, the further options that it takes, and why it takes no others.
FAMILIES: dict[str, tuple[Callable[..., Family], tuple[str, ...], str]] = {
    "rates": (_rates, ("arms",), "whose rewards are 0 or 1"),
    "gaps": (_gaps, ("arms", "noise", "sigma"), "which are no data"),
    "means": (_means, ("noise", "sigma"), "which say how many arms there are"),
    "data": (_data, ("arm_column", "reward_column", "seed"), "which have their own"),
}


@contextmanager
def _own_names() -> Iterator[None]:
    """Errors within this context name options, not arguments of Python's `plan`."""
    try:
        yield
    except BadInput as error:
        if error.field == "chance" and isinstance(error.value, float) and error.value > 1.0:
            error = error.adding("; ten percent is written as 10%")
        raise error.renamed(OWN_NAMES.get(str(error.field), str(error.field))) from None


def _show(found: Plan, path: Path) -> None:
    from lighttail.report.plan_words import COLUMNS, closer_look, closer_words, notes, rows, run_parts
    from lighttail.report.terminal import plain_table

    screen = opt.console()
    screen.print(found.sentence())
    table = [(f"{part}: {name}", *numbers) for part, name, *numbers in rows(found)]
    title = "; ".join(filter(None, (repr(found.family), f"{found.horizon:,} pulls", found.course.short())))
    screen.print(plain_table(title, COLUMNS[1:], table, screen.width))
    for note in notes(found):
        screen.print(note)
    print()
    for said, lines in run_parts(found):
        screen.print(said)
        for line in lines:
            print(f"    {line}")
    if closer_look(found):
        screen.print(f"{closer_words(found)}:")
        print(f"    {closer_look(found)}")  # one line, which can be copied
    print(f"Report: {path}")
