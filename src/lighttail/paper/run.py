"""Simulates the settings of the paper. Finished outcomes are saved as files and used again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lighttail.outcomes.outcome import PathsOutcome
from lighttail.paper.experiments import PaperExperiment
from lighttail.running.simulate import settings_of, simulate

Results = dict[Any, PathsOutcome]  # by Setting or LinearSetting


def settings_in(experiments: Iterable[PaperExperiment]) -> list[Any]:
    """The settings that the experiments show, each once."""
    return list(dict.fromkeys(setting for experiment in experiments for setting in experiment.settings))


def run(
    experiments: Iterable[PaperExperiment],
    folder: Path,
    *,
    paths: int,
    seed: int,
    threads: int | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Results:
    """The outcome of every setting, read from its file in `folder`, or simulated and saved there.

    A file that was made with other settings or versions is replaced. progress: a function that is called with
    (the setting that is being simulated, the number of paths done).
    """
    results = {}
    for turn, setting in enumerate(settings_in(experiments)):
        done = turn * paths
        if progress is not None:
            progress(setting.label, done)
        file = folder / f"{setting.slug}.npz"
        some = max(1, round(paths * setting.share))
        outcome = _stored(file, setting, some, seed)
        if outcome is None:
            outcome = simulate(
                setting.policy,
                setting.problem,
                horizon=setting.horizon,
                paths=some,
                seed=seed,
                threads=threads,
            )
            outcome.save(file)
        results[setting] = outcome
    return results


def _stored(file: Path, setting: Any, paths: int, seed: int) -> PathsOutcome | None:
    if not file.exists():
        return None
    try:
        outcome = PathsOutcome.load(file)
    except ValueError:
        return None
    # `auto` would choose the method of the file again: its choice depends on versions, policy, problem and
    # horizon.
    wanted = settings_of(setting.policy, setting.problem, setting.horizon, paths, seed, outcome.method)
    return outcome if outcome.settings == wanted else None
