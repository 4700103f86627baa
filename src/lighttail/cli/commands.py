"""The commands `compare` and `paper`."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import lighttail
from lighttail.checks import SHOWN, Argument, BadInput, known_word, positive, refuse, whole
from lighttail.cli.options import (
    DEFAULT_NOISE,
    HERE,
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
    left_out,
    policies_from,
    print_line,
    problem_from,
    problem_options,
    warnings_as_lines,
)
from lighttail.compare import compare as compare_policies
from lighttail.compare import default_words, told_apart
from lighttail.linear import LinearBandit
from lighttail.problems import Bandit
from lighttail.reading.own import blame
from lighttail.reading.words import parse_course, parse_linear, parse_noise, parse_number, parse_whole
from lighttail.report import write_report
from lighttail.running.pool import BlocksFailed
from lighttail.running.prepare import check_played, check_settings
from lighttail.system.files import in_a_sentence, output_folder

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bandit policies that cannot quietly ruin you, and the laboratory that proves it.",
)
DEFAULT_ACTIONS = "10"
INTERRUPTED = 130
UsageError: Any = typer.BadParameter.__bases__[0]  # typer's own click, whichever it ships


class Stopped(Exception):
    """Ctrl-C, with how far the command came and how to go on."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"lighttail {lighttail.__version__}")
        raise typer.Exit


@app.callback()
def _lighttail(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    means: Means = None,
    noise: NoiseWord = None,
    sigma: Sigma = None,
    data: Data = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="A linear bandit: theta, dim and actions in place of means.")
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
            help="With --linear: A or sphere:A, ball:A fresh actions a round, or an .npy file with A x d "
            "numbers (a fixed set) or rounds x A x d (your own contexts).",
            show_default="10",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{POLICY_WORDS}; with --linear linucb:lighttailed:KAPPA, linucb:standard:BETA, "
            "linucb:oful:SIGMA:DELTA:BOUND, lints:SCALE; repeat for several.",
            show_default="the paper's six; with --linear four",
        ),
    ] = None,
    assumed_sigma: Annotated[
        str | None,
        typer.Option(
            help="Sweep the noise that the policies assume: each kappa is multiplied by each of these."
        ),
    ] = None,
    delay: DelayWord = None,
    never: Never = None,
    batch: Batch = None,
    horizon_text: Horizon = "500",
    paths_text: Annotated[
        str, typer.Option("--paths", metavar="N", help="Simulated paths per policy.")
    ] = "5000",
    seed_text: Seed = "1",
    threshold_text: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="SHARE",
            help="The regret whose chance is reported, as a fraction of the horizon, in units of reward.",
            show_default="a third of the largest possible; 0.2 for the default means",
        ),
    ] = None,
    threads_text: Threads = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="paths, or law: only count the paths, in memory that does not depend on how many there are.",
            show_default="paths",
        ),
    ] = None,
    device: Annotated[str, typer.Option(metavar="WHERE", help="cpu, or cuda for an NVIDIA GPU.")] = "cpu",
    out: Out = Path("lighttail-report"),
    as_json: AsJson = False,
) -> None:
    """Compare policies on one problem: a table here, a report with figures in a folder."""
    horizon, paths = parse_whole("horizon", horizon_text), parse_whole("paths", paths_text)
    seed = parse_whole("seed", seed_text)
    threads = None if threads_text is None else parse_whole("threads", threads_text)
    threshold = None if threshold_text is None else parse_number("threshold", threshold_text)
    problem: Bandit | LinearBandit
    if linear:
        problem = _linear_problem(means, noise, sigma, data, theta, dim, actions)
    else:
        left_out("without linear", theta=theta, dim=dim, actions=actions)
        problem = problem_from(means, noise, sigma, data)
    words = policy or default_words(linear)
    policies = policies_from(words, assumed_sigma, linear)
    wait, group = parse_course(delay, batch, never)
    loss = None if threshold is None else positive("threshold", threshold) * horizon
    if loss is not None and horizon > 0:
        positive("threshold * horizon", loss)
    told = problem_options(means, noise, sigma, data) | ({"means": None} if linear else {})
    command = command_line(
        "compare",
        linear=linear,
        dim=dim,
        theta=theta,
        actions=DEFAULT_ACTIONS if linear and actions is None else actions,
        **told,
        policy=words,
        assumed_sigma=assumed_sigma,
        delay=delay,
        never=never,
        batch=batch,
        horizon=horizon,
        paths=paths,
        seed=seed,
        threshold=threshold,
        keep=keep,
        device=None if device == "cpu" else device,
        out=out,
    )
    with output_folder("out", out):
        comparison = compare_policies(
            told_apart(policies, policies.values()),
            problem,
            horizon=horizon,
            paths=paths,
            seed=seed,
            threshold=loss,
            delay=wait,
            batch=group,
            keep="paths" if keep is None else keep,  # type: ignore[arg-type]
            device=device,  # type: ignore[arg-type]
            threads=threads,
            progress=not as_json,
        )
        path = write_report(comparison, out, command)
    if as_json:
        print(json.dumps(comparison.to_dict(command), indent=2, allow_nan=False))
    else:
        _show(comparison, path)


@app.command()
def paper(
    paths_text: Annotated[
        str, typer.Option("--paths", metavar="N", help="Simulated paths a setting.")
    ] = "5000",
    seed_text: Seed = "1",
    only: Annotated[
        str | None, typer.Option(help="Parts to make, comma-separated: table-1, figure-4, beyond-2, ...")
    ] = None,
    threads_text: Threads = None,
    out: Annotated[Path, typer.Option(help="Folder for the page and its files.")] = Path("lighttail-paper"),
) -> None:
    """Reproduce every table and figure of the paper, beside the published numbers.

    Outcomes are kept in the folder: a run that was stopped goes on where it was.
    """
    from lighttail.paper import EXPERIMENTS, settings_in

    paths, seed = whole("paths", parse_whole("paths", paths_text), 2), parse_whole("seed", seed_text)
    threads = None if threads_text is None else parse_whole("threads", threads_text)
    names = [experiment.name for experiment in EXPERIMENTS]
    chosen = names if only is None else [name.strip() for name in only.split(",")]
    for name in chosen:
        known_word("only", name, names)
    experiments = [experiment for experiment in EXPERIMENTS if experiment.name in chosen]
    command = command_line("paper", paths=paths, seed=seed, only=only, out=out)
    for setting in settings_in(experiments):
        check_settings(setting.policy, setting.problem, setting.horizon, paths, seed, threads)
        check_played(setting.policy, setting.problem, setting.horizon, paths, "cpu")
    with output_folder("out", out):
        _make_paper(experiments, out, command, (paths, seed, threads))


def _make_paper(experiments: Any, out: Path, command: str, settings: tuple[Any, ...]) -> None:
    from lighttail.paper import run, run_tails, settings_in, tails_in, write_paper
    from lighttail.system.progress import bar

    paths, seed, threads = settings
    (out / "outcomes").mkdir(exist_ok=True)

    def simulate(progress: Any) -> Any:
        return run(experiments, out / "outcomes", paths=paths, seed=seed, threads=threads, progress=progress)

    def estimate(progress: Any) -> Any:
        return run_tails(experiments, out / "outcomes", seed=seed, threads=threads, progress=progress)

    if not sys.stderr.isatty():
        page = write_paper(experiments, simulate(None), out, command, None, paths, estimate(None))
    else:
        with bar(paths * len(settings_in(experiments))) as update:
            results = simulate(update)
        with bar(len(tails_in(experiments)), "tails") as update:
            chances = estimate(update)
        with bar(len(experiments), "parts") as update:
            page = write_paper(experiments, results, out, command, update, paths, chances)
    print(f"Page: {page}")


def _show(comparison: Any, path: Path) -> None:
    from lighttail.report.terminal import table

    screen = console()
    plain: Any = {"highlight": False, "markup": False}
    screen.print(table(comparison, screen.width))
    screen.print(comparison.verdict(), **plain, soft_wrap=not sys.stdout.isatty())
    screen.print(f"Report: {path}", **plain, soft_wrap=True)


def _linear_problem(
    means: str | None,
    noise: str | None,
    sigma: str | None,
    data: Path | None,
    theta: str | None,
    dim: str | None,
    actions: str | None,
) -> LinearBandit:
    left_out("with linear", means=means, data=data)
    scale = None if sigma is None else parse_number("sigma", sigma)
    law = parse_noise(DEFAULT_NOISE if noise is None else noise, scale, HERE)
    with warnings_as_lines():
        return parse_linear(theta, dim, DEFAULT_ACTIONS if actions is None else actions, law)


def main() -> None:
    """Entry point: bad input is one line and exit code 2, Ctrl-C is exit code 130, a warning is one line."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *where: print_line(f"warning: {message}")
        sys.exit(_exit_code())


def _exit_code() -> int:
    """Run the command; an error in a class that the user named is said in one line, too."""
    try:
        return _run_command()
    except Exception as error:
        if not (said := blame(error)):
            raise
        print_line(said)
        return 2


def _run_command() -> int:
    """Run the command; what ends it early is said in one line."""
    try:
        _check_words(sys.argv[1:])
        code = app(standalone_mode=False)
    except BadInput as error:
        print_line(str(error.spelled(_option)))
        return 2
    except UsageError as error:
        text = _short(error.format_message())
        if text:  # otherwise the help was shown instead
            print_line(text)
        return 2 if text else 0
    except (OSError, ImportError, BlocksFailed) as error:
        print_line(in_a_sentence(error) if isinstance(error, OSError) else str(error))
        return 1
    except MemoryError:
        print_line("there is not enough memory for this: ask for fewer paths, arms or pulls")
        return 1
    except Stopped as stopped:
        print_line(f"stopped: {stopped}")
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # what typer itself may make of Ctrl-C
        print_line("stopped")
    return int(code or 0)


def _option(argument: Argument) -> str:
    """An argument as the command line has it: --keep law for keep='law', --rebuild for rebuild=True."""
    words = "" if argument.values == (True,) else " or ".join(map(str, argument.values))
    return f"--{argument.name.replace('_', '-')} {words}".strip() if argument.name else words


def _short(text: str) -> str:
    """A message of typer's, which repeats words however long they are."""
    return re.sub(rf"\S{{{SHOWN},}}", lambda word: f"{word[0][:SHOWN]} ...", text)


def _check_words(words: list[str]) -> None:
    """Refuse bytes that are no text: they could be written neither into a page nor to a screen."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise refuse("a word of the command", word, "text in UTF-8") from None
