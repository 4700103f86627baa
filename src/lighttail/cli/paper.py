"""The command `paper`: every table and figure of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lighttail.checks import known_word, whole
from lighttail.cli.app import app
from lighttail.cli.options import Paths, Seed, Threads, command_again, print_line
from lighttail.running.prepare import check_played, check_settings
from lighttail.system.files import output_folder
from lighttail.system.progress import parts_reporter

PARTS = (  # the names of the experiments, which are not imported for a help
    "figure-1, table-1, figure-2, table-2, figure-3, figure-4, figure-5, figure-6, figure-7, "
    "beyond-1, beyond-2, beyond-3, beyond-4, linear-1, linear-2, linear-3, linear-4"
)


@app.command()
def paper(
    context: typer.Context,
    paths: Paths = 5000,
    seed: Seed = 1,
    only: Annotated[
        str | None,
        typer.Option(metavar="PARTS", help=f"Parts to make, comma-separated: {PARTS}.", show_default="all"),
    ] = None,
    threads: Threads = None,
    out: Annotated[Path, typer.Option(help="Folder for the page and its files.")] = Path("lighttail-paper"),
) -> None:
    """Reproduce every table and figure of the paper, next to the published numbers.

    The folder keeps the outcomes: a command that was stopped resumes where it stopped.
    """
    from lighttail.paper import EXPERIMENTS, run, run_tails, settings_in, tails_in, write_paper
    from lighttail.paper.tables import few_words

    whole("paths", paths, 2)
    names = [experiment.name for experiment in EXPERIMENTS]
    chosen = names if only is None else [name.strip() for name in only.split(",")]
    for name in chosen:
        known_word("only", name, names)
    experiments = [experiment for experiment in EXPERIMENTS if experiment.name in chosen]
    settings = settings_in(experiments)
    for setting in settings:
        check_settings(setting.policy, setting.problem, setting.horizon, paths, seed, threads)
        check_played(setting.policy, setting.problem, setting.horizon, paths, "cpu")
    with output_folder("out", out):
        outcomes = out / "outcomes"
        outcomes.mkdir(exist_ok=True)
        with parts_reporter(True, paths * len(settings)) as update:
            results = run(experiments, outcomes, paths=paths, seed=seed, threads=threads, progress=update)
        with parts_reporter(True, len(tails_in(experiments)), "tails") as update:
            chances = run_tails(experiments, outcomes, seed=seed, threads=threads, progress=update)
        with parts_reporter(True, len(experiments), "parts") as update:
            page = write_paper(experiments, results, out, command_again(context), update, paths, chances)
    if any(experiment.view == "means" for experiment in experiments) and few_words(paths):
        print_line(few_words(paths))
    print(f"Page: {page}")
