"""The manifest in the folder of a study: what the study is, and which files belong to it."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from lighttail.checks import Argument, BadInput, refuse
from lighttail.running.blocks import Played
from lighttail.study.cells import Cell, Listed, Piece, asked_text, pyarrow, sha256
from lighttail.study.file import Study
from lighttail.study.told import Types
from lighttail.system.versions import used_versions

FORMAT = "lighttail study 1"
MANIFEST, CELLS = "manifest.json", "cells"
PIECES = f"{'[0-9]' * 11}-{'[0-9]' * 11}.parquet"
Digests = dict[Piece, str]  # of the pieces that are in the folder: the sha256 of their files
VERSIONS = ("lighttail", "numpy", "numba", "python", "pyarrow")
TYPES: Types = dict.fromkeys(("name", "study", "study_sha256", "digest"), (str,))
TYPES |= {"versions": (dict,), "inputs": (dict,), "pieces": (int,), "finished": (int,), "cells": (list,)}
CELL_TYPES: Types = dict.fromkeys(("problem", "policy", "key", "folder"), (str,))
CELL_TYPES |= dict.fromkeys(("horizon", "seed", "paths"), (int,))
CELL_TYPES |= {"sigma": (int, float, type(None)), "played": (dict,), "files": (list,)}
FILE_TYPES: Types = {"file": (str,), "first": (int,), "rows": (int,), "sha256": (str,)}
REBUILD = Argument("rebuild", (True,))  # the argument that makes a lost manifest again


class NoManifest(BadInput):
    """The manifest is missing or damaged. The files of the study may still be whole."""


def no_manifest(file: Path, wrong: str) -> NoManifest:
    """The error for a manifest. wrong: what is wrong with it."""
    return NoManifest(field=str(file), allowed="the manifest of a study", found=wrong)


def versions() -> dict[str, str]:
    """The versions that may change a bit of a path or a byte of a file. Of Python, only two numbers count."""
    used = used_versions()
    return used | {"python": ".".join(used["python"].split(".")[:2]), "pyarrow": pyarrow().__version__}


def has_pieces(path: Path) -> bool:
    """Whether there are files that are named like the pieces of a study."""
    return next(path.glob(f"{CELLS}/*/{PIECES}"), None) is not None


def read_manifest(path: Path, field: str = "out") -> dict[str, Any] | None:
    """The manifest in the folder of a study; None if there is none and there are no pieces either."""
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except FileNotFoundError:
        if has_pieces(path):
            raise no_manifest(file, "is missing") from None
        return None
    except NotADirectoryError:
        raise refuse(field, str(path), "a folder") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno == errno.ENAMETOOLONG:
            raise refuse(field, str(path), f"a folder ({reason})") from None
        raise refuse(str(file), None, "a file that can be read", found=f"is not ({reason})") from None
    except (ValueError, RecursionError):
        manifest = None
    wrong = _fault(manifest)
    if wrong:
        raise no_manifest(file, wrong)
    return manifest  # type: ignore[no-any-return]


def _fault(manifest: Any) -> str:
    """What is wrong with the content of a manifest; empty if nothing is wrong."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return "is not"
    wrong = wrong_type(manifest, TYPES)
    wrong = wrong or wrong_type(manifest["versions"], dict.fromkeys(VERSIONS, (str,)), "version ")
    for name, entry in [] if wrong else manifest["inputs"].items():
        wrong = wrong or ("" if isinstance(entry, str) else f"its input {name!r:.80} has the wrong type")
    for cell in [] if wrong else manifest["cells"]:
        wrong = wrong or wrong_type(cell, CELL_TYPES, "cell ")
        for file in [] if wrong else cell["files"]:
            wrong = wrong or wrong_type(file, FILE_TYPES, "file ")
    return wrong


def wrong_type(entry: Any, types: Types, what: str = "") -> str:
    """Which part of an entry is missing or has another type; empty if nothing is wrong."""
    if not isinstance(entry, dict):
        return f"one {what}entry is not a table"
    for key, wanted in types.items():
        if key not in entry:
            return f"its {what}entry {key!r} is missing"
        if type(entry[key]) not in wanted:
            return f"its {what}entry {key!r} has the wrong type"
    return ""


def manifest_of(
    study: Study, inputs: dict[str, str], cells: Iterable[Cell], digests: Digests
) -> dict[str, Any]:
    """The manifest. It does not depend on when, where or how often the study was run."""
    entries, pieces = [], 0
    for cell in cells:
        pieces += len(cell.pieces)
        files = [
            {"file": piece.file, "first": piece.first, "rows": piece.rows, "sha256": digests[piece]}
            for piece in cell.pieces
            if piece in digests
        ]
        about = {"key": cell.key, "folder": cell.folder, "paths": cell.paths, "played": cell.played}
        entries.append(cell.names | about | {"files": files})
    return {
        "format": FORMAT,
        "name": study.name,
        "versions": versions(),
        "study": study.text,
        "study_sha256": sha256(study.text.encode()),
        "method": study.method,
        "inputs": inputs,
        "pieces": pieces,
        "finished": len(digests),
        "digest": _digest(entries),
        "cells": entries,
    }


def _digest(entries: Any) -> str:
    """One digest of all cells and of the digests of their files."""
    return sha256(json.dumps(entries, sort_keys=True).encode())


def is_whole(manifest: dict[str, Any]) -> bool:
    """Whether the manifest is as it was written. If it is not, the files still have digests of their own."""
    cells = manifest["cells"]
    text = sha256(manifest["study"].encode(errors="replace"))
    if _digest(cells) != manifest["digest"] or text != manifest["study_sha256"]:
        return False
    pieces = sum(math.ceil(cell["paths"] / cell["played"]["piece_paths"]) for cell in cells)
    return (sum(len(cell["files"]) for cell in cells), pieces) == (manifest["finished"], manifest["pieces"])


def listed_in(manifest: dict[str, Any] | None, study: Study) -> Listed:
    """What a manifest says about how the cells of a study are played.

    The method of a cell need not be chosen again, since versions and formulas are the same. The probe of the
    machine is taken from the manifest only if all paths of the cell are there.
    """
    if manifest is None or not is_whole(manifest) or manifest.get("method") != study.method:
        return {}
    listed = {}
    for cell in manifest["cells"]:
        played = cell["played"]
        if played.get("method") not in get_args(Played):
            continue
        if sum(file["rows"] for file in cell["files"]) != study.paths:
            played = {key: played[key] for key in played if key != "probe"}
        listed[asked_text(played), cell["seed"]] = played
    return listed
