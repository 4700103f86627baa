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
    word = opt.policy_word(policy, problem)
    player, regrets = _asked(problem, word, horizon, loss, which)
    check_settings(player, problem, horizon, paths=1, seed=seed, threads=1 if threads is None else threads)
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
    screen.print(EXPLAINED[curve.kind])
    for text in notes:
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
    from lighttail.report.tail_words import policy_on
    from lighttail.tails.curve import QUICK_SECONDS, asked_regrets
    from lighttail.tails.known import bounds_at, bounds_to_dict, exact_at, why_no_exact
    from lighttail.tails.task import Task

    which = opt.kind_from(kind)
    problem = opt.problem_from(means, noise, sigma, data, arm_column, reward_column)
    word = opt.policy_word(policy, problem)
    player, regrets = _asked(problem, word, horizon, loss, which)
    check_settings(player, problem, horizon, paths=1, seed=None, threads=1)
    command = opt.command_again(context, policy=word, **({} if data else opt.ARMS))
    seconds = math.inf if exact else QUICK_SECONDS
    found, why_none = [], {}
    for x in asked_regrets(regrets, problem, horizon):
        known = bounds_at(player, problem, horizon, x, which)
        task = Task(player, problem, horizon, x, which)
        why = why_no_exact(task, seconds)
        why_none[x] = f"{why}; ask with --exact" if "takes" in why else why
        found.append((x, known, exact_at(task, seconds)))
    if as_json:
        answers = [{"regret": x, **bounds_to_dict(known), "exact": value} for x, known, value in found]
        about = {"command": command, "policy": repr(player), "problem": repr(problem)}
        about |= {"horizon": horizon, "kind": which, "bounds": answers}  # type: ignore[dict-item]
        print(json.dumps(about, indent=2, allow_nan=False))
        return
    opt.console().print(f"{policy_on(player, problem)}; {horizon:,} pulls")
    _show_bounds(found, which, why_none)
    for text in opt.notes([word], problem.sigma, data):
        opt.console().print(text)


def _show_bounds(
    found: list[tuple[float, Any, float | None]], kind: Lost, why_none: dict[float, str]
) -> None:
    from lighttail.report.tail_words import bound_rows, exact_words, guarantee_words, missing
    from lighttail.report.terminal import plain_table

    screen = opt.console()
    for regret, known, exact in found:
        table = [*bound_rows(known), ("guarantee", guarantee_words(known))]
        table.append(("exact", exact_words(exact, why_none[regret])))
        title = f"The chance of {event(kind, regret)}"
        screen.print(plain_table(title, ("source", "chance"), table, screen.width))
        for text in missing(known):
            screen.print(text)
    screen.print(EXPLAINED[kind])


def _asked(
    problem: Bandit, word: str, horizon: int, loss: str | None, kind: Lost
) -> tuple[Policy, list[float] | None]:
    """The policy and the losses that the options name."""
    (policy,) = opt.policies_from([word], sigma=problem.sigma)
    if loss is None:
        return policy, None
    from lighttail.tails.curve import asked_regrets

    losses = parse_numbers(noun(kind), loss)
    try:
        asked_regrets(losses, problem, horizon)
    except BadInput as error:
        raise error.renamed(noun(kind)) from None
    for one in losses:
        _check_loss(problem, horizon, one, kind)
    return policy, losses


def _check_loss(problem: Bandit, horizon: int, loss: float, kind: Lost) -> None:
    """Refuse a loss that no policy can lose, which Python answers with a chance of 0. The regret of a lucky
    run may be negative, the loss may not."""
    if kind == "pseudo_regret":
        check_loss("loss", positive("loss", loss), problem.most_lost(horizon), horizon)
    elif (span := problem.noise.span(problem.means)) is not None:
        most = (max(problem.means) - span[0]) * horizon
        check_loss("regret", loss, most, horizon, " even if every reward is the smallest possible")
