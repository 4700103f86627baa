"""The outcomes in the folder of a study. Every file is compared with its digest."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from lighttail.checks import known_word, refuse
from lighttail.outcomes.comparison import Comparison, comparison_of
from lighttail.outcomes.growth import Growth, horizons_of
from lighttail.outcomes.losing import Lost
from lighttail.outcomes.outcome import Outcome
from lighttail.outcomes.verdict import FEW
from lighttail.records import Record
from lighttail.running.kept import Keep, kept_as
from lighttail.running.prepare import fitting_paths
from lighttail.study.cells import decode, sha256
from lighttail.study.file import Study, StudyProblem, parse_study
from lighttail.study.folder import INPUTS, is_copy
from lighttail.study.manifest import CELLS, MANIFEST, REBUILD, NoManifest, is_whole, read_manifest, wrong_type
from lighttail.study.told import NOISE, POLICY, Facts
from lighttail.system.files import in_a_sentence

ANEW = "run the study again to make it anew"


class DamagedStudy(OSError):
    """A file in the folder of a study is not as it was written. The text names the file."""


def load_study(folder: str | Path) -> Results:
    """The results in the folder of a study, which may be unfinished."""
    path = Path(folder)
    try:
        manifest = read_manifest(path, "folder") if path.is_dir() else None
    except NoManifest as error:
        raise error.adding(": run the study with ", REBUILD, " to make it anew from its pieces") from None
    if manifest is None:
        raise refuse("folder", str(path), "that of a study, which `lighttail run` makes")
    if not is_whole(manifest):
        raise DamagedStudy(f"{path / MANIFEST} is damaged; {ANEW}")
    study = parse_study(
        manifest["study"],
        f"the study in {path / MANIFEST}",
        lambda name: path if name == "." else _copy(path, name, manifest["inputs"].get(name, "")),
        partial(_told, path, manifest),
    )
    return Results(path, study, manifest)


def _told(path: Path, manifest: dict[str, Any], part: str, name: str) -> Facts:
    """What the cells say about a policy, or the noise of a problem, whose class is a user's own."""
    key, types = ("policy", POLICY) if part == "policy" else ("problem", NOISE)
    for cell in manifest["cells"]:
        own = cell["played"].get("own")
        if cell[key] == name and isinstance(own, dict) and not wrong_type(own.get(part), types):
            return own[part]  # type: ignore[no-any-return]
    raise DamagedStudy(
        f"{path / MANIFEST} is damaged: it does not tell what the {part} of {name!r} is; {ANEW}"
    )


def _copy(path: Path, name: str, copy: str) -> Path:
    """The copy of a data file with which the study was played."""
    if not re.fullmatch(rf"{INPUTS}/[0-9a-f]{{64}}_[^/\\]*", copy):
        raise DamagedStudy(f"{path / MANIFEST} is damaged: it names no copy of {name!r}; {ANEW}")
    if not is_copy(path / copy):
        raise DamagedStudy(
            f"{path / copy} is damaged or missing; run the study again, which copies {name!r} anew, or put a "
            "file with that sha256 in its place"
        )
    return path / copy


class Results:
    """The outcomes of a study. manifest: the manifest in its folder."""

    def __init__(self, path: Path, study: Study, manifest: dict[str, Any]) -> None:
        self.path, self.study, self.manifest = path, study, manifest
        self.pieces, self.finished = manifest["pieces"], manifest["finished"]

    @property
    def complete(self) -> bool:
        return bool(self.finished == self.pieces)

    def outcome(self, problem: str, policy: str, *, horizon: int, sigma: float | None = None) -> Outcome:
        """The finished paths of a policy on a problem, from all seeds together.

        If the paths do not fit into memory, the outcome keeps their law (docs/streaming.md).
        """
        known_word("problem", problem, dict.fromkeys(setting.name for setting in self.study.problems))
        known_word("policy", policy, self.study.policies)
        if horizon not in self.study.horizons:
            raise refuse("horizon", horizon, f"one of {', '.join(map(str, self.study.horizons))}")
        settings = {one.sigma: one for one in self.study.problems if one.name == problem}
        if sigma is None and len(settings) == 1:
            (sigma,) = settings
        if sigma not in settings:
            raise refuse("sigma", sigma, f"one of {', '.join(map(str, settings))}")
        rows = self._rows(settings[sigma], policy, horizon)
        if not rows:
            raise refuse("policy", policy, "one of which a piece is finished")
        return self._outcome(settings[sigma], policy, horizon, rows)

    def comparison(
        self, setting: StudyProblem, horizon: int, kind: Lost = "pseudo_regret"
    ) -> Comparison | None:
        """All policies on a problem, each with the same number of paths; None if nothing is finished."""
        study, problem = self.study, setting.problem
        rows = {name: self._rows(setting, name, horizon) for name in study.policies}
        there = [name for name in rows if rows[name]]
        if not there:
            return None
        paths = min(rows[name] for name in there)
        share = study.threshold
        threshold = problem.default_threshold(horizon) if share is None else share * horizon
        outcomes = {name: self._outcome(setting, name, horizon, paths, together=len(there)) for name in there}
        growths = {name: self._growth(setting, name, outcomes[name], threshold, kind) for name in there}
        settings = (problem, study.seeds, threshold, setting.course)
        return comparison_of(study.policies_on(setting), outcomes, *settings, kind=kind, growths=growths)

    def _growth(
        self, setting: StudyProblem, policy: str, outcome: Outcome, threshold: float, kind: Lost
    ) -> Growth | None:
        """How the chance of losing the threshold falls; None unless the study has T/4 and T/2, too."""
        horizons, last = horizons_of(outcome.horizon), outcome.horizon
        rows = [self._rows(setting, policy, horizon) for horizon in horizons]
        if not set(horizons) <= set(self.study.horizons) or min(rows) < FEW or threshold <= 0.0:
            return None
        losses = tuple(threshold * horizon / last for horizon in horizons)
        early = [self._outcome(setting, policy, *each) for each in zip(horizons[:-1], rows, strict=False)]
        outcomes = (*early, outcome)
        chances = tuple(one.exceedance(loss, kind) for one, loss in zip(outcomes, losses, strict=True))
        return Growth(horizons, losses, chances, tuple(f"{one.paths:,} paths" for one in outcomes))

    def not_played(self, setting: StudyProblem, horizon: int) -> list[str]:
        """The policies of which no piece on this problem is finished."""
        return [name for name in self.study.policies if not self._rows(setting, name, horizon)]

    def _cells(self, setting: StudyProblem, policy: str, horizon: int) -> list[dict[str, Any]]:
        names = {"problem": setting.name, "sigma": setting.sigma, "policy": policy, "horizon": horizon}
        return [cell for cell in self.manifest["cells"] if all(cell[key] == names[key] for key in names)]

    def _rows(self, setting: StudyProblem, policy: str, horizon: int) -> int:
        """The number of finished paths, of all seeds together."""
        return sum(file["rows"] for cell in self._cells(setting, policy, horizon) for file in cell["files"])

    def _outcome(
        self, setting: StudyProblem, policy: str, horizon: int, paths: int, together: int = 1
    ) -> Outcome:
        """The first `paths` paths, or their law if those of `together` policies do not fit into memory."""
        problem, cells = setting.problem, self._cells(setting, policy, horizon)
        played = cells[0]["played"]
        if problem.played() != played["problem"]:
            raise DamagedStudy(
                f"{self.path} is damaged: its copy of the data of {setting.name!r} is not what was played"
            )
        keep: Keep = "paths" if paths * together <= fitting_paths(problem) else "law"
        settings = {key: played[key] for key in ("policy", "problem", "horizon", "method", "block_paths")}
        settings |= {"policy_label": policy, "paths": paths, "seed": [cell["seed"] for cell in cells]}
        settings |= {"keep": keep, "versions": dict(self.manifest["versions"]), **setting.course.said()}
        kept = kept_as(keep, problem, horizon, paths)
        done = 0
        for cell in cells:
            for file in cell["files"]:
                if done < paths:
                    record = self._piece(cell, file).rows(slice(paths - done))
                    kept.put(done, record)
                    done += record.paths
        return kept.outcome(settings)

    def _piece(self, cell: dict[str, Any], file: dict[str, Any]) -> Record:
        path, wrong = self.path / CELLS / cell["folder"] / file["file"], "damaged"
        try:
            content = path.read_bytes()
            if sha256(content) == file["sha256"]:
                return decode(content)[1]
        except FileNotFoundError:
            wrong = "missing"
        except OSError as error:
            raise DamagedStudy(f"{in_a_sentence(error)}; {ANEW}") from None
        except ValueError:  # the file was damaged before its digest was taken
            pass
        raise DamagedStudy(f"{path} is {wrong}; {ANEW}")
