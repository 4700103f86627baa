"""The command `watch`: the page of an experiment that runs without a service, from its saved state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import BadInput, file_path, refuse, refuse_file, shown
from lighttail.cli.app import app
from lighttail.cli.options import number_option, whole_option

LARGEST_STATE = 2**30  # bytes


@app.command()
def watch(
    state: Annotated[
        Path, typer.Argument(metavar="STATE", help="The text that `Experiment.to_json` returned.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this file, which ends with .html.")
    ] = None,
    loss: Annotated[float | None, number_option("loss", help="The loss whose chance is asked for.")] = None,
    horizon: Annotated[int | None, whole_option("horizon", help="The pulls at the end.")] = None,
    rewards: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="The limits of all rewards.", show_default="0..1"),
    ] = None,
    seed: Annotated[int | None, whole_option("seed", help="The seed of the forecast.")] = None,
) -> None:
    """Show what an experiment without a service knows and risks: a table, and with --out a page.

    The page is one file that needs no network. The table and the page have the same numbers.
    """
    from lighttail.dashboard import experiment_view
    from lighttail.dashboard.page import static_page
    from lighttail.dashboard.words import losing, number, so_far
    from lighttail.inference import BoundedRewards
    from lighttail.reading.numbers import parse_range
    from lighttail.system.files import whole_file

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise refuse("out", str(out), "the path of a file that ends with .html")
    known = BoundedRewards(*parse_range("rewards", rewards)) if rewards is not None else BoundedRewards()
    experiment = loaded(state)
    view = experiment_view(experiment, loss, horizon, known, name=state.stem, seed=seed)
    print(experiment.summary(rewards=known))
    if (found := view["risk"]["forecast"]) is None:
        print(view["risk"]["why"])
    else:
        print(losing(view))
        print(f"Lost so far: {number(found['so_far']['value'])} on average, {so_far(found['so_far'])}.")
    if out is not None:
        with whole_file(file_path("out", out)) as file:
            file.write(static_page(view).encode("utf-8", "backslashreplace"))
        print(out)


def loaded(state: Path) -> Any:
    """The experiment of a file. Raises BadInput if it is none."""
    from lighttail.online import Experiment

    path, fit = file_path("state", state), "a file with what Experiment.to_json returned"
    try:
        if path.stat().st_size > LARGEST_STATE:
            raise refuse("state", str(path), f"a file of at most {LARGEST_STATE} bytes")
        return Experiment.from_json(path.read_text("utf-8"))
    except OSError as error:
        raise refuse_file("state", path, fit, error) from None
    except UnicodeDecodeError:
        raise refuse("state", str(path), fit, more=": it is no text") from None
    except BadInput as error:
        raise (error if error.field == "state" else error.within(f"state {shown(str(path))}")) from None
