"""What a study's folder holds: its outcomes, every file held against its digest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lighttail.linear import LinearBandit
from lighttail.outcome import Offers, Outcome
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.report.comparison import Comparison, Entry, covered, default_threshold
from lighttail.study.cells import problem_repr
from lighttail.study.file import Setting, Study, parse_study
from lighttail.study.folder import CELLS, MANIFEST, is_whole, read_manifest
from lighttail.study.parquet import decode
from lighttail.validation import refuse
from lighttail.words import known_word


class Damaged(OSError):
    """A file of a study's folder is not the one that was written there; the text names it."""


def load_study(folder: str | Path) -> Results:
    """The results in a study's folder, finished or not."""
    path = Path(folder)
    if not path.is_dir():
        raise refuse("folder", str(path), "that of a study, which `lighttail run` makes")
    manifest = read_manifest(path, "folder")
    if manifest is None:
        raise refuse("folder", str(path), f"that of a study, which `lighttail run` makes, with a {MANIFEST}")
    text, inputs = manifest["study"], manifest["inputs"]
    if not is_whole(manifest):
        raise Damaged(f"{path / MANIFEST} is damaged; run the study again to make it anew")
    study = parse_study(text, f"the study in {path / MANIFEST}", lambda name: path / inputs[name])
    return Results(path, study, manifest)


class Results:
    """The outcomes of a study. manifest: what its folder says of itself."""

    def __init__(self, path: Path, study: Study, manifest: dict[str, Any]) -> None:
        self.path, self.study, self.manifest = path, study, manifest
        self.pieces, self.finished = manifest["pieces"], manifest["finished"]

    @property
    def complete(self) -> bool:
        return bool(self.finished == self.pieces)

    def outcome(self, problem: str, policy: str, *, horizon: int, sigma: float | None = None) -> Outcome:
        """The paths of a policy on a problem, those of all seeds together; fewer if some are not finished."""
        known_word("problem", problem, dict.fromkeys(setting.name for setting in self.study.problems))
        known_word("policy", policy, self.study.policies)
        if horizon not in self.study.horizons:
            raise refuse("horizon", horizon, f"one of {', '.join(map(str, self.study.horizons))}")
        settings = {one.sigma: one for one in self.study.problems if one.name == problem}
        if sigma is None and len(settings) == 1:
            (sigma,) = settings
        if sigma not in settings:
            raise refuse("sigma", sigma, f"one of {', '.join(map(str, settings))}")
        found = self._outcome(settings[sigma], policy, horizon)
        if found is None:
            raise refuse("policy", policy, "one of which a piece is finished")
        return found

    def comparison(self, setting: Setting, horizon: int) -> Comparison | None:
        """All policies on a problem, with the same number of paths each; None if nothing is finished."""
        study, problem = self.study, setting.problem
        outcomes = {name: self._outcome(setting, name, horizon) for name in study.policies}
        there = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
        if not there:
            return None
        paths = min(outcome.paths for outcome in there.values())
        share = study.threshold
        threshold = default_threshold(problem, horizon) if share is None else share * horizon
        entries = tuple(
            _entry(name, study.policies[name], problem, first_paths(outcome, paths), threshold)
            for name, outcome in there.items()
        )
        return Comparison(problem, horizon, paths, study.seeds, threshold, entries)

    def _outcome(self, setting: Setting, policy: str, horizon: int) -> Outcome | None:
        names = {"problem": setting.name, "sigma": setting.sigma, "policy": policy, "horizon": horizon}
        cells = [cell for cell in self.manifest["cells"] if all(cell[key] == names[key] for key in names)]
        parts = [self._piece(cell, file) for cell in cells for file in cell["files"]]
        if not parts:
            return None
        problem, played = setting.problem, cells[0]["played"]
        if problem_repr(problem) != played["problem"]:
            raise Damaged(
                f"{self.path} is damaged: its copy of the data of {setting.name!r} is not what was played"
            )
        reward = np.concatenate([part[0] for part in parts])
        pulls = np.concatenate([part[1] for part in parts])
        settings = {
            **{key: played[key] for key in ("policy", "problem", "horizon", "method", "block_paths")},
            "policy_label": policy,
            "paths": reward.size,
            "seed": [cell["seed"] for cell in cells],
            "versions": {name: self.manifest["versions"][name] for name in self.manifest["versions"]},
        }
        if isinstance(problem, LinearBandit) and not problem.fixed:
            offers = Offers(pulls[:, 0].copy(), pulls[:, 1].copy(), problem.most_lost(horizon))
            return Outcome(reward, None, np.zeros(0), (), horizon, settings, offers)
        return Outcome(reward, pulls, np.array(problem.means), problem.labels, horizon, settings)

    def _piece(self, cell: dict[str, Any], file: dict[str, Any]) -> tuple[Any, Any]:
        path = self.path / CELLS / cell["folder"] / file["file"]
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise Damaged(f"{path} is missing; run the study again to make it anew") from None
        if hashlib.sha256(content).hexdigest() != file["sha256"]:
            raise Damaged(f"{path} is damaged; run the study again to make it anew")
        return decode(content)[1:]


def _entry(
    name: str, policy: Policy, problem: Bandit | LinearBandit, outcome: Outcome, threshold: float
) -> Entry:
    return Entry(name, policy, policy.light_tailed and covered(problem), outcome, threshold)


def first_paths(outcome: Outcome, paths: int) -> Outcome:
    """The first so many paths of an outcome."""
    offers = outcome.offers
    if offers is not None:
        offers = Offers(offers.best[:paths], offers.lost[:paths], offers.most)
    pulls = None if outcome.pulls is None else outcome.pulls[:paths]
    settings = outcome.settings | {"paths": paths}
    return Outcome(
        outcome.reward[:paths], pulls, outcome.means, outcome.labels, outcome.horizon, settings, offers
    )
