"""The cells of a study, each of which is one call of `simulate`, and the pieces that keep their paths.

A piece is a Parquet file. The same paths give the same bytes, and a file has a digest of its columns.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import refuse
from lighttail.course import STRAIGHT, Course
from lighttail.gpu.run import (
    Precision,
    check_device,
    device_paths,
    device_sources,
    launch_paths,
    precision_for,
    used_device,
)
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.records import Record, from_columns
from lighttail.running.blocks import (
    PROBE_PATHS,
    PROBE_PULLS,
    Method,
    Played,
    block_paths,
    fingerprint,
    probe_of,
)
from lighttail.running.prepare import choose_method
from lighttail.study.file import Study, StudyProblem
from lighttail.study.told import facts_of
from lighttail.system.progress import compiling

PIECE_BLOCKS = 128
PIECE_PULLS = 1 << 26  # they take about a second; with skip-ahead the number of blocks is the limit
PIECE_NUMBERS = 1 << 23  # rewards and pulls per piece, 64 MiB
PIECE_LAUNCHES = 4  # kernel launches of a GPU per piece
MOST_PIECES = 10**6
STAMP = b"lighttail"  # the key of what a file says about itself
KEY_LETTERS = 16  # letters of the key of a cell in the name of its folder
FOUND_OUT = ("method", "block_paths", "piece_paths", "probe", "seed")  # in `played`, not in `asked_for`
Listed = dict[tuple[str, int], dict[str, Any]]  # by `asked_text` and seed: what is known about `played`


class Way(NamedTuple):
    """How the paths of a cell are played. per_block, per_piece: paths per whole block and piece. probe: as in
    `Cell`, but empty if it is known. where: the machine, if this is a GPU. precision: on a GPU."""

    method: Played
    per_block: int
    per_piece: int
    probe: bytes
    where: dict[str, Any]
    precision: Precision | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """One policy on one problem at one horizon from one seed.

    played: all that decides the bits of the paths, except their number. probe: the beginning of some paths,
    which differs between machines that round differently; None if a manifest lists every path of the cell,
    whose key is then known without a kernel.
    """

    setting: StudyProblem
    policy_name: str
    policy: Policy
    horizon: int
    seed: int
    paths: int
    way: Way
    probe: bytes | None
    played: dict[str, Any]

    @cached_property
    def key(self) -> str:
        """The digest of what the cell plays. Files with this key fit, even if names in the study changed."""
        return sha256(json.dumps(self.played, sort_keys=True).encode())

    @property
    def folder(self) -> str:
        """The name of the folder: readable names, and the beginning of the key."""
        sigma = [] if self.setting.sigma is None else [f"sigma-{self.setting.sigma:g}"]
        names = (self.setting.name, *sigma, self.policy_name, f"T-{self.horizon}", f"seed-{self.seed}")
        return "_".join([*map(slug, names), self.key[:KEY_LETTERS]])

    @property
    def names(self) -> dict[str, Any]:
        """The names of the cell in the manifest."""
        return {
            "problem": self.setting.name,
            "sigma": self.setting.sigma,
            "policy": self.policy_name,
            "horizon": self.horizon,
            "seed": self.seed,
        }

    def checked_probe(self) -> bytes:
        """The probe, for workers. It is played now if the manifest had it and a file must be made again."""
        if self.probe is not None:
            return self.probe
        probe = probe_of(
            self.policy, self.setting.problem, self.horizon, self.way.method, self.setting.course
        )
        if sha256(probe) != self.played["probe"]:
            allowed = "finished by a machine that rounds like the machine that began it"
            found, more = "this machine rounds differently", ": play the study in a new folder"
            raise refuse(str(self.folder), None, allowed, found=found, more=more)
        return probe

    @property
    def pieces(self) -> list[Piece]:
        step = self.way.per_piece
        return [Piece(self, first, min(self.paths, first + step)) for first in range(0, self.paths, step)]


@dataclass(frozen=True)
class Piece:
    """The paths `first` to `until` - 1 of a cell: whole blocks, except for the last block of the cell."""

    cell: Cell
    first: int
    until: int

    @property
    def rows(self) -> int:
        return self.until - self.first

    @property
    def file(self) -> str:
        return f"{self.first:011}-{self.until:011}.parquet"

    @property
    def blocks(self) -> tuple[int, int]:
        """The first block, and the block after the last."""
        per_block = self.cell.way.per_block
        return self.first // per_block, math.ceil(self.until / per_block)

    @property
    def stamp(self) -> dict[str, Any]:
        """What the file of the piece says about itself."""
        return {"key": self.cell.key, "first": self.first, "rows": self.rows}


def slug(text: str) -> str:
    """A text as a part of a file name.

    >>> slug("Two arms, σ 0.5")
    'two-arms-0.5'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:40] or "x"


def cells_of(
    study: Study, device: str = "cpu", shown: bool = False, listed: Listed | None = None
) -> list[Cell]:
    """All cells of a study in a fixed order. shown: whether to print that a kernel is being compiled.

    listed: what the manifest in the folder says about the cells (`lighttail.study.manifest.listed_in`).
    """
    cells = [
        cell
        for setting in study.problems
        for horizon in study.horizons
        for cell in _on_problem(study, setting, horizon, device, shown, listed or {})
    ]
    if sum(math.ceil(cell.paths / cell.way.per_piece) for cell in cells) > MOST_PIECES:
        raise refuse("paths", study.paths, f"so few that the study has at most {MOST_PIECES:,} files")
    return cells


def _on_problem(
    study: Study, setting: StudyProblem, horizon: int, device: str, shown: bool, listed: Listed
) -> Iterator[Cell]:
    """The cells of all policies and seeds."""
    problem: Any = setting.problem
    check_device(device, problem, horizon, method=study.method)
    if device != "cpu" and not setting.course.straight:
        raise refuse("device", device, f"'cpu' with a delay or a batch, as with problem {setting.title!r}")
    for name, policy in study.policies_on(setting).items():
        asked = asked_for(policy, setting, horizon, device)
        text = asked_text(asked)
        known = [listed.get((text, seed), {}) for seed in study.seeds]
        with compiling(str(policy), shown):
            if device == "cpu":
                way = _on_cpu(policy, setting, horizon, study.method, known)
            else:
                way = _on_gpu(policy, problem, horizon)
        played = asked | way.where
        played |= {"method": way.method, "block_paths": way.per_block, "piece_paths": way.per_piece}
        for seed, listing in zip(study.seeds, known, strict=True):
            probe = None if "probe" in listing else way.probe
            mine = played | {"probe": listing.get("probe") or sha256(way.probe), "seed": seed}
            yield Cell(setting, name, policy, horizon, seed, study.paths, way, probe, mine)


def _on_cpu(
    policy: Policy, setting: StudyProblem, horizon: int, asked: Method, known: list[dict[str, Any]]
) -> Way:
    """known: what a manifest says about the cell of each seed; for such cells neither pilots nor a probe are
    played."""
    problem: Any = setting.problem
    method: Played = "step"
    if setting.course.straight:
        said = [one["method"] for one in known if one]
        method = said[0] if said else choose_method(policy, problem, horizon, asked)
    per_block, probe = block_paths(horizon, method, problem.dear), b""
    if not all("probe" in one for one in known):
        probe = probe_of(policy, problem, horizon, method, setting.course)
    return Way(method, per_block, piece_paths(problem, horizon, method, per_block), probe, {})


def _on_gpu(policy: Policy, problem: Any, horizon: int) -> Way:
    """On a GPU every path has its own stream of random numbers, so that a block is one path."""
    precision = precision_for(None, problem, horizon)
    short = min(horizon, PROBE_PULLS + problem.dim)
    probe = device_paths(policy, problem, short, (0, PROBE_PATHS), 0, precision).tobytes()
    per_piece = min(PIECE_NUMBERS // (1 + problem.dim), PIECE_LAUNCHES * launch_paths(horizon))
    return Way("step", 1, per_piece, probe, used_device(precision) | {"sources": device_sources()}, precision)


def asked_for(policy: Policy, setting: StudyProblem, horizon: int, device: str) -> dict[str, Any]:
    """What decides how a cell is played, as far as it is known without a kernel."""
    problem: Any = setting.problem
    asked = {
        "policy": repr(policy),
        "problem": problem.played(),
        "horizon": horizon,
        "formulas": formulas_digest(policy, problem, setting.course),
        "numbers": sha256(fingerprint(policy, problem, horizon)),
        "device": device,
        **setting.course.said(),
    }
    facts = facts_of(policy, problem)
    return asked | {"own": facts} if facts else asked


def asked_text(played: dict[str, Any]) -> str:
    """The part of `played` that was asked for, as a text: it identifies a cell in a manifest."""
    return json.dumps({key: played[key] for key in played if key not in FOUND_OUT}, sort_keys=True)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def piece_paths(problem: Problem, horizon: int, method: str, per_block: int) -> int:
    """The paths per whole piece. They do not depend on the number of paths, so that files fit when paths are
    added."""
    numbers = PIECE_NUMBERS // (per_block * (1 + problem.room(0).width))
    pulls = PIECE_BLOCKS if method == "skip" else PIECE_PULLS // (per_block * horizon)
    return per_block * max(1, min(PIECE_BLOCKS, pulls, numbers))


def formulas_digest(policy: Policy, problem: Problem, course: Course = STRAIGHT) -> str:
    """A digest of the formulas of the policy, its bonus, the noise, the actions and the delay, and of the
    kernels."""
    from lighttail.kernels.build import digest
    from lighttail.kernels.errors import formulas_of, parts_of

    formulas = formulas_of(*parts_of(policy, problem), None if course.straight else course.delay)
    if not policy.linear:  # the rule of a policy may have more functions than its class shows
        formulas |= {f"rule.{name}": part for name, part in policy.rule()._asdict().items() if callable(part)}
    return digest(*(formulas[name] for name in sorted(formulas)))


def pyarrow() -> Any:
    """The library. If it is missing, the error has the command that installs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError('a study keeps its paths with pyarrow: pip install "lighttail[studies]"') from None
    return pyarrow


def encode(stamp: dict[str, Any], record: Record) -> bytes:
    """The bytes of a file with these paths, with `stamp` and the digest of the columns."""
    library = pyarrow()
    columns = {name: np.ascontiguousarray(values) for name, values in record.columns().items()}
    text = json.dumps(stamp | {"columns": _columns_digest(columns)}, sort_keys=True)
    table = library.table(columns).replace_schema_metadata({STAMP: text.encode()})
    buffer = BytesIO()
    library.parquet.write_table(
        table,
        buffer,
        row_group_size=record.paths,
        compression="zstd",
        compression_level=3,
        use_dictionary=False,  # sums of noise are hardly ever equal
    )
    return buffer.getvalue()


def decode(content: bytes) -> tuple[dict[str, Any], Record]:
    """What a file says about itself, and its paths. Raises ValueError if the file is damaged."""
    library = pyarrow()
    try:
        table = library.parquet.read_table(BytesIO(content), use_threads=False)
        stamp = json.loads(table.schema.metadata[STAMP])
        columns = {name: np.ascontiguousarray(table.column(name).to_numpy()) for name in table.column_names}
        if stamp.pop("columns") != _columns_digest(columns):
            raise ValueError("its columns are not those that it was made with")
        return stamp, from_columns(columns)
    except Exception as error:  # the reader may raise anything for damaged bytes
        raise ValueError(f"not a piece of a study ({error})") from None


def fits(content: bytes, piece: Piece) -> bool:
    """Whether a file holds this piece: its columns are whole, and writing them again gives the same bytes."""
    try:
        stamp, record = decode(content)
        return stamp == piece.stamp and record.paths == piece.rows and encode(stamp, record) == content
    except ValueError:
        return False


def _columns_digest(columns: dict[str, Any]) -> str:
    content = hashlib.sha256()
    for name, values in columns.items():
        content.update(f"{name} {values.dtype.str} {values.size}:".encode() + values.tobytes())
    return content.hexdigest()
