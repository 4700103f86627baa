"""The commands `tail` and `bound`: the chance of a large regret, and what is known of it beforehand."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import known_word, positive, refuse
from lighttail.cli.commands import app
from lighttail.cli.options import (
    POLICY_WORDS,
    AsJson,
    Batch,
    Data,
    DelayWord,
    Horizon,
    Means,
    Never,
    NoiseWord,
    Out,
    Seed,
    Sigma,
    Threads,
    command_line,
    console,
    policies_from,
    problem_from,
    problem_options,
)
from lighttail.cli.sizes import check_regrets, check_tail
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.reading.words import parse_course, parse_number, parse_numbers, parse_whole
from lighttail.running.prepare import check_settings
from lighttail.system.files import output_folder
from lighttail.tails.rare import METHODS

DEFAULT_POLICY = "ucb:lighttailed:0.2"
KINDS = {"pseudo-regret": "pseudo_regret", "regret": "regret"}

PolicyWords = Annotated[  # a list, so that a second one is refused and not taken in silence
    list[str] | None, typer.Option("--policy", help=f"{POLICY_WORDS}.", show_default=DEFAULT_POLICY)
]
Regret = Annotated[
    str | None,
    typer.Option(
        help="The regret whose chance is asked for, in units of reward; several separated by commas.",
        show_default="a third of the largest possible",
    ),
]
KindWord = Annotated[
    str, typer.Option(help="pseudo-regret, or regret, which has the noise of the rewards in it.")
]


@app.command()
def tail(
    means: Means = None,
    noise: NoiseWord = None,
    sigma: Sigma = None,
    data: Data = None,
    policy_words: PolicyWords = None,
    delay: DelayWord = None,
    never: Never = None,
    batch: Batch = None,
    horizon_text: Horizon = "500",
    regret: Regret = None,
    kind: KindWord = "pseudo-regret",
    error_text: Annotated[
        str,
        typer.Option("--relative-error", metavar="SHARE", help="Half the interval's width over the chance."),
    ] = "0.05",
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = "auto",
    seed_text: Seed = "1",
    threads_text: Threads = None,
    out: Out = Path("lighttail-tail"),
    as_json: AsJson = False,
) -> None:
    """The chance that a policy loses so much, however small: in a sentence, a table and a picture."""
    policy_text = _one_policy(policy_words)
    horizon, seed = parse_whole("horizon", horizon_text), parse_whole("seed", seed_text)
    threads = None if threads_text is None else parse_whole("threads", threads_text)
    error = positive("relative-error", parse_number("relative-error", error_text))
    which = _kind(kind)
    known_word("method", method, METHODS)
    policy, problem, regrets = _asked(means, noise, sigma, data, policy_text, horizon, regret)
    check_settings(policy, problem, horizon, 1, seed, 1 if threads is None else threads)
    check_tail(problem, horizon)
    wait, group = parse_course(delay, batch, never)
    command = command_line(
        "tail",
        **problem_options(means, noise, sigma, data),
        policy=policy_text,
        delay=delay,
        never=never,
        batch=batch,
        horizon=horizon,
        regret=regret,
        kind=kind,
        relative_error=error_text,
        method=method,
        seed=seed,
        out=out,
    )
    settings = {"kind": which, "relative_error": error, "method": method, "seed": seed}
    settings |= {"delay": wait, "batch": group}
    with output_folder("out", out):
        _make_tail(
            (policy, problem, horizon, regrets), settings | {"threads": threads}, out, command, as_json
        )


def _make_tail(
    task: tuple[Any, ...], settings: dict[str, Any], out: Path, command: str, as_json: bool
) -> None:
    from lighttail.report.tail_page import results, write_tail
    from lighttail.tails.curve import tail_curve

    curve = tail_curve(*task, **settings, progress=not as_json)
    path = write_tail(curve, out, command)
    if as_json:
        print(results(curve, command))
    else:
        _show(curve, path)


def _show(curve: Any, path: Path) -> None:
    from lighttail.report.tail_words import COLUMNS, kind_words, note, rows, sentence, subject

    screen = console()
    plain: Any = {"highlight": False, "markup": False, "soft_wrap": not sys.stdout.isatty()}
    screen.print(f"{subject(curve)}; {curve.horizon:,} pulls, seed {curve.seed}", **plain)
    for regret in curve.asked:
        point = curve.at(regret)
        title = f"P({kind_words(curve.kind)} ≥ {regret:g})"
        table = rows(point, curve.outcome.paths, curve.horizon)
        screen.print(_table(title, COLUMNS, table))
        screen.print(sentence(curve, point), **plain)
        screen.print(note(curve, point), **plain)
    screen.print(f"Report: {path}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def bound(
    means: Means = None,
    noise: NoiseWord = None,
    sigma: Sigma = None,
    data: Data = None,
    policy_words: PolicyWords = None,
    horizon_text: Horizon = "500",
    regret: Regret = None,
    kind: KindWord = "pseudo-regret",
    exact: Annotated[
        bool,
        typer.Option(help="Also an exact value that takes longer than two seconds, where there is one."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What is known of that chance without simulation: certificate, theorem, guarantee, exact value."""
    from lighttail.tails.curve import QUICK_SECONDS, asked_regrets
    from lighttail.tails.known import bounds_at, bounds_to_dict, exact_at, why_no_exact

    policy_text = _one_policy(policy_words)
    horizon = parse_whole("horizon", horizon_text)
    which = _kind(kind)
    policy, problem, regrets = _asked(means, noise, sigma, data, policy_text, horizon, regret)
    check_settings(policy, problem, horizon, 1, None, 1)
    command = command_line(
        "bound",
        **problem_options(means, noise, sigma, data),
        policy=policy_text,
        horizon=horizon,
        regret=regret,
        kind=kind,
    )
    seconds = math.inf if exact else QUICK_SECONDS
    found, why_none = [], ""
    for x in asked_regrets(regrets, problem, horizon):
        known = bounds_at(policy, problem, horizon, x, which)
        why_none = why_no_exact(policy, problem, horizon, x, which, seconds)
        found.append((x, known, exact_at(policy, problem, horizon, x, which, seconds)))
    if as_json:
        answers = [{"regret": x, **bounds_to_dict(known), "exact": value} for x, known, value in found]
        about = {"command": command, "policy": repr(policy), "problem": repr(problem)}
        about |= {"horizon": horizon, "kind": which, "bounds": answers}  # type: ignore[dict-item]
        print(json.dumps(about, indent=2, allow_nan=False))
        return
    _show_bounds(found, which, f"{why_none}; ask with --exact" if "takes" in why_none else why_none)


def _show_bounds(found: list[tuple[float, Any, float | None]], kind: str, why_none: str) -> None:
    from lighttail.report.tail_words import bound_rows, exact_words, guarantee_words, kind_words, missing

    screen = console()
    for regret, known, exact in found:
        table = [*bound_rows(known), ("guarantee", guarantee_words(known))]
        table.append(("exact", exact_words(exact, why_none)))
        screen.print(_table(f"P({kind_words(kind)} ≥ {regret:g})", ("source", "chance"), table))
        for text in missing(known):
            screen.print(text, highlight=False, markup=False, soft_wrap=not sys.stdout.isatty())


def _table(title: str, columns: Any, rows: Any) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _one_policy(words: list[str] | None) -> str:
    """The policy that was named, or the default."""
    if words and len(words) > 1:
        raise refuse("policy", words, "given once")
    return words[0] if words else DEFAULT_POLICY


def _kind(text: str) -> Any:
    """The kind of regret that the word names; written with an underscore, as in Python, it is known too."""
    word = text.replace("_", "-")
    known_word("kind", word, KINDS)
    return KINDS[word]


def _asked(
    means: str | None,
    noise: str | None,
    sigma: str | None,
    data: Path | None,
    policy_text: str,
    horizon: int,
    regret: str | None,
) -> tuple[Policy, Bandit, list[float] | None]:
    """The policy, the problem and the regrets that the options name."""
    problem = problem_from(means, noise, sigma, data)
    (policy,) = policies_from([policy_text])
    regrets = None if regret is None else parse_numbers("regret", regret)
    if regrets is not None:
        from lighttail.tails.curve import asked_regrets

        check_regrets(regrets)
        asked_regrets(regrets, problem, horizon)
    return policy, problem, regrets
