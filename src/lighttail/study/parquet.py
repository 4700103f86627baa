"""A piece as a Parquet file. The same paths give the same bytes, and a file has a digest of its columns."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from typing import Any

import numpy as np

from lighttail.records import Record, from_columns
from lighttail.study.cells import Piece

ABOUT = b"lighttail"  # the key of what a file says about itself


def pyarrow() -> Any:
    """The library. If it is missing, the error has the command that installs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError('a study keeps its paths with pyarrow: pip install "lighttail[studies]"') from None
    return pyarrow


def encode(about: dict[str, Any], record: Record) -> bytes:
    """The bytes of a file with these paths, with `about` and the digest of the columns."""
    library = pyarrow()
    columns = {name: np.ascontiguousarray(values) for name, values in record.columns().items()}
    text = json.dumps(about | {"columns": _digest(columns)}, sort_keys=True)
    table = library.table(columns).replace_schema_metadata({ABOUT: text.encode()})
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
        about = json.loads(table.schema.metadata[ABOUT])
        columns = {name: np.ascontiguousarray(table.column(name).to_numpy()) for name in table.column_names}
        if about.pop("columns") != _digest(columns):
            raise ValueError("its columns are not those that it was made with")
        return about, from_columns(columns)
    except Exception as error:  # the reader may raise anything for damaged bytes
        raise ValueError(f"not a piece of a study ({error})") from None


def fits(content: bytes, piece: Piece) -> bool:
    """Whether a file holds this piece: its columns are whole, and writing them again gives the same bytes."""
    try:
        about, record = decode(content)
        return about == piece.about and record.paths == piece.rows and encode(about, record) == content
    except ValueError:
        return False


def _digest(columns: dict[str, Any]) -> str:
    content = hashlib.sha256()
    for name, values in columns.items():
        content.update(f"{name} {values.dtype.str} {values.size}:".encode() + values.tobytes())
    return content.hexdigest()
