"""The commands `tail` and `bound`: the chance of a large loss, and what is known about it beforehand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import BadInput, known_word, positive, refuse
from lighttail.cli import options as opt
from lighttail.cli.app import app
from lighttail.outcomes.losing import EXPLAINED, Lost, check_loss, event, noun
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.reading.numbers import parse_numbers
from lighttail.reading.words import parse_course
from lighttail.running.prepare import check_settings
from lighttail.tails.known import KnownBounds
from lighttail.tails.rare import METHODS
from lighttail.tails.task import MOST_PLANNED

MOST_TAIL_ARMS = 1000  # the plan for a rare event looks at every arm
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        "--regret",
        help="The loss whose chance is asked for, in units of reward. Separate several losses by commas. "
        "Both names of the option mean the same.",
        show_default="a third of the largest possible, to two digits",
    ),
]


@app.command()
def tail(
    context: typer.Context,
    means: opt.Means = None,
    noise: opt.NoiseWord = None,
    sigma: opt.Sigma = None,
    data: opt.Data = None,
    arm_column: opt.ArmColumn = None,
    reward_column: opt.RewardColumn = None,
    policy: opt.OnePolicy = None,
    delay: opt.DelayWord = None,
    never: opt.Never = None,
    batch: opt.Batch = None,
    horizon: opt.Horizon = 500,
    loss: Loss = None,
    kind: opt.KindWord = "pseudo-regret",
    relative_error: Annotated[
        float,
        opt.number_option(
            "relative-error", metavar="SHARE", help="Half the width of the interval, divided by the chance."
        ),
    ] = 0.05,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = "auto",
    seed: opt.Seed = 1,
    threads: opt.Threads = None,
    out: opt.Out = Path("lighttail-tail"),
    as_json: opt.AsJson = False,
) -> None:
    """Estimate the chance of a large loss, however small it is: in a sentence, a table and a picture."""
    from lighttail.report.tail import results, write_tail
    from lighttail.tails.curve import tail_curve

    positive("relative-error", relative_error)
    which = opt.kind_from(kind)
    known_word("method", method, METHODS)
    problem = opt.problem_from(means, noise, sigma, data, arm_column, reward_column)
    word, player, regrets = _asked(policy, problem, horizon, loss, which)
    if horizon > MOST_PLANNED:
        raise refuse("horizon", horizon, f"at most {MOST_PLANNED:,} for a tail")
    if problem.arms > MOST_TAIL_ARMS:
        raise refuse("the number of arms", problem.arms, f"at most {MOST_TAIL_ARMS:,} for a tail")
    wait, group = parse_course(delay, batch, never)
    command = opt.command_again(context, policy=word, **({} if data else opt.ARMS))
    with opt.report_folder(out, as_json):
        curve = tail_curve(
            player,
            problem,
            horizon,
            regrets,
            kind=which,
            relative_error=relative_error,
            method=method,  # type: ignore[arg-type]
            seed=seed,
            delay=wait,
            batch=group,
            threads=threads,
            progress=not as_json,
        )
        path = write_tail(curve, out, command)
    if as_json:
        print(results(curve, command))
    else:
        _show(curve, path, opt.notes([word], problem.sigma, data))


def _show(curve: Any, path: Path, notes: list[str]) -> None:
    from lighttail.report.tail_words import COLUMNS, note, rows, sentence, subject
    from lighttail.report.terminal import plain_table

    screen = opt.console()
    screen.print(f"{subject(curve)}; {curve.horizon:,} pulls, seed {curve.seed}")
    for regret in curve.asked:
        point = curve.at(regret)
        title = f"The chance of {event(curve.kind, regret)}"
        table = rows(point, curve.outcome.paths, curve.horizon)
        screen.print(plain_table(title, COLUMNS, table, screen.width))
        screen.print(sentence(curve, point))
        screen.print(note(curve, point))
    for text in (EXPLAINED[curve.kind], *notes):
        screen.print(text)
    print(f"Report: {path}")


@app.command()
def bound(
    context: typer.Context,
    means: opt.Means = None,
    noise: opt.NoiseWord = None,
    sigma: opt.Sigma = None,
    data: opt.Data = None,
    arm_column: opt.ArmColumn = None,
    reward_column: opt.RewardColumn = None,
    policy: opt.OnePolicy = None,
    horizon: opt.Horizon = 500,
    loss: Loss = None,
    kind: opt.KindWord = "pseudo-regret",
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compute the exact value even if this takes longer than two seconds."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show what is known about the chance of a large loss without simulation.

    This is a certificate for the problem, the bound of a theorem, and the exact value if there is one.
    """
    from lighttail.report.tail_words import exact_words, policy_on
    from lighttail.tails.curve import QUICK_SECONDS, asked_regrets
    from lighttail.tails.known import bounds_at, bounds_to_dict, exact_at, why_no_exact
    from lighttail.tails.task import Task

    which = opt.kind_from(kind)
    problem = opt.problem_from(means, noise, sigma, data, arm_column, reward_column)
    word, player, regrets = _asked(policy, problem, horizon, loss, which)
    check_settings(player, problem, horizon, paths=1, seed=None, threads=1)
    command = opt.command_again(context, policy=word, **({} if data else opt.ARMS))
    seconds = math.inf if exact else QUICK_SECONDS
    found = []
    for x in asked_regrets(regrets, problem, horizon):
        task = Task(player, problem, horizon, x, which)
        found.append((x, bounds_at(player, problem, horizon, x, which), exact_at(task, seconds), task))
    if as_json:
        answers = [{"regret": x, **bounds_to_dict(known), "exact": value} for x, known, value, _ in found]
        about: dict[str, Any] = {"command": command, "policy": repr(player), "problem": repr(problem)}
        about |= {"horizon": horizon, "kind": which, "bounds": answers}
        print(json.dumps(about, indent=2, allow_nan=False))
        return
    opt.console().print(f"{policy_on(player, problem)}; {horizon:,} pulls")
    for x, known, value, task in found:
        why = why_no_exact(task, seconds)
        why = f"{why}; ask with --exact" if "takes" in why else why
        _show_bounds(event(which, x), known, exact_words(value, why))
    for text in (EXPLAINED[which], *opt.notes([word], problem.sigma, data)):
        opt.console().print(text)


def _show_bounds(losing: str, known: KnownBounds, exact: str) -> None:
    from lighttail.report.tail_words import bound_rows, guarantee_words, missing
    from lighttail.report.terminal import plain_table

    screen = opt.console()
    table = [*bound_rows(known), ("guarantee", guarantee_words(known)), ("exact", exact)]
    screen.print(plain_table(f"The chance of {losing}", ("source", "chance"), table, screen.width))
    for text in missing(known):
        screen.print(text)


def _asked(
    words: list[str] | None, problem: Bandit, horizon: int, loss: str | None, kind: Lost
) -> tuple[str, Policy, list[float] | None]:
    """The word of the policy, the policy, and the losses that the options name."""
    word = opt.policy_word(words, problem)
    (policy,) = opt.policies_from([word], sigma=problem.sigma)
    if loss is None:
        return word, policy, None
    from lighttail.tails.curve import asked_regrets

    losses = parse_numbers(noun(kind), loss)
    try:
        asked_regrets(losses, problem, horizon)
    except BadInput as error:
        raise error.renamed(noun(kind)) from None
    for one in losses:
        _check_loss(problem, horizon, one, kind)
    return word, policy, losses


def _check_loss(problem: Bandit, horizon: int, loss: float, kind: Lost) -> None:
    """Refuse a loss that no policy can lose, which Python answers with a chance of 0. The regret of a lucky
    run may be negative, the loss may not."""
    if kind == "pseudo_regret":
        check_loss("loss", positive("loss", loss), problem.most_lost(horizon), horizon)
    elif (span := problem.noise.span(problem.means)) is not None:
        most = (max(problem.means) - span[0]) * horizon
        check_loss("regret", loss, most, horizon, " even if every reward is the smallest possible")
