"""The command `compare`: several policies on one problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lighttail.checks import BadInput
from lighttail.cli import options as opt
from lighttail.cli.app import app
from lighttail.compare import check_threshold, default_words, told_apart
from lighttail.compare import compare as compare_policies
from lighttail.linear import LinearBandit
from lighttail.outcomes.comparison import Comparison
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import EXPLAINED, Lost
from lighttail.problems import Bandit
from lighttail.reading.words import parse_course, parse_linear, parse_noise
from lighttail.report import write_report

LINEAR = {"noise": opt.ARMS["noise"], "actions": "10"}  # the problem that --linear stands for


@app.command()
def compare(
    context: typer.Context,
    means: opt.Means = None,
    noise: opt.NoiseWord = None,
    sigma: opt.Sigma = None,
    data: opt.Data = None,
    arm_column: opt.ArmColumn = None,
    reward_column: opt.RewardColumn = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="Play a linear bandit, which has theta, dim and actions.")
    ] = False,
    dim: Annotated[
        str | None, typer.Option(metavar="D", help="With --linear: the dimension.", show_default="4")
    ] = None,
    theta: Annotated[
        str | None,
        typer.Option(
            help="With --linear: the hidden vector, comma-separated.", show_default="(1, ..., 1) / sqrt(dim)"
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="With --linear: A, sphere:A or ball:A for A fresh actions per round, or an .npy file with "
            "A x d numbers (a fixed set) or rounds x A x d (your own contexts).",
            show_default=LINEAR["actions"],
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{opt.POLICY_WORDS}; with --linear linucb:lighttailed:KAPPA, linucb:standard:BETA, "
            "linucb:oful:SIGMA:DELTA:BOUND, lints:SCALE; repeat for several.",
            show_default="the paper's six; with --linear four",
        ),
    ] = None,
    assumed_sigma: Annotated[
        str | None,
        typer.Option(
            help="Sweep the noise that policies assume: each kappa is multiplied by each of these numbers."
        ),
    ] = None,
    delay: opt.DelayWord = None,
    never: opt.Never = None,
    batch: opt.Batch = None,
    horizon: opt.Horizon = 500,
    paths: opt.Paths = 5000,
    seed: opt.Seed = 1,
    loss: Annotated[
        float | None,
        opt.number_option(
            "loss",
            metavar="LOSS",
            help="The loss whose chance is reported, in units of reward, such as conversions.",
            show_default="a third of the largest possible, to two digits; 100 for the default means",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        opt.number_option(
            "threshold",
            metavar="SHARE",
            help="In place of --loss: the loss per pull, such as 0.2 for a loss of 100 in 500 pulls.",
        ),
    ] = None,
    kind: opt.KindWord = "pseudo-regret",
    no_growth: Annotated[
        bool,
        typer.Option("--no-growth", help="Do not find out how the chance falls as the experiment grows."),
    ] = False,
    threads: opt.Threads = None,
    keep: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="paths, or law: only count the paths, in memory that does not grow with their number.",
        ),
    ] = "paths",
    device: opt.DeviceWord = "cpu",
    out: opt.Out = Path("lighttail-report"),
    as_json: opt.AsJson = False,
) -> None:
    """Compare policies on one problem: print a table, and write a report with figures into a folder."""
    problem: Bandit | LinearBandit
    if linear:
        columns = {"arm_column": arm_column, "reward_column": reward_column}
        opt.left_out("with linear", means=means, data=data, **columns)
        law = parse_noise(LINEAR["noise"] if noise is None else noise, sigma, opt.HERE)
        with opt.warnings_as_lines():
            problem = parse_linear(theta, dim, LINEAR["actions"] if actions is None else actions, law)
    else:
        opt.left_out("without linear", theta=theta, dim=dim, actions=actions)
        problem = opt.problem_from(means, noise, sigma, data, arm_column, reward_column)
    words = policy or default_words(problem)
    policies = opt.policies_from(words, assumed_sigma, linear, problem.sigma)
    wait, group = parse_course(delay, batch, never)
    lost = opt.kind_from(kind)
    asked = _asked_loss(loss, threshold, problem, horizon, lost)
    command = opt.command_again(context, policy=words, **(LINEAR if linear else {} if data else opt.ARMS))
    with opt.report_folder(out, as_json):
        comparison = compare_policies(
            told_apart(policies, policies.values()),
            problem,
            horizon=horizon,
            paths=paths,
            seed=seed,
            threshold=asked,
            kind=lost,
            growth=False if no_growth else None,
            delay=wait,
            batch=group,
            keep=keep,  # type: ignore[arg-type]
            device=device,  # type: ignore[arg-type]
            threads=threads,
            progress=not as_json,
        )
        path = write_report(comparison, out, command)
    if as_json:
        print(json.dumps(comparison.to_dict(command), indent=2, allow_nan=False))
    else:
        notes = opt.notes(words, problem.sigma, data)
        _show(comparison, path, notes if asked else [_chosen_loss(comparison), *notes])


def _asked_loss(
    loss: float | None, threshold: float | None, problem: Bandit | LinearBandit, horizon: int, kind: Lost
) -> float | None:
    """The loss whose chance is asked for, from one of the two options that name it. Raises BadInput before
    anything is simulated if no policy can lose that much."""
    if loss is None and threshold is None:
        return None
    pulls = problem.check_horizon(horizon)
    problem.check_sums(pulls)
    if loss is None:
        return check_threshold(threshold, problem, pulls, kind, unit=pulls)
    opt.left_out("with loss, which means the same", threshold=threshold)
    try:
        return check_threshold(loss, problem, pulls, kind)
    except BadInput as error:
        raise error.renamed("loss") from None


def _chosen_loss(comparison: Comparison) -> str:
    """Where a loss that the user did not name comes from."""
    if comparison.problem.worst_loss(comparison.horizon) == 0.0:
        return ""  # nothing can be lost, and the verdict says so
    return (
        f"The loss of {amount(comparison.threshold)} is a third of what pulling the worst arm every time "
        "loses, rounded to two digits; --loss asks about another loss."
    )


def _show(comparison: Comparison, path: Path, notes: list[str]) -> None:
    from lighttail.report.terminal import comparison_tables

    screen = opt.console()
    tables = comparison_tables(comparison, screen.width)
    for part in (*tables, comparison.verdict(), EXPLAINED[comparison.kind], *filter(None, notes)):
        screen.print(part)
    print(f"Report: {path}")
