"""Compiled kernels on disk, in files with a digest: the kernel of a damaged file is compiled anew, never run.

numba trusts its files: a truncated file ends in a traceback, and a changed bit is run as machine code. If
numba cannot write a file, the program ends. Here the cache decides only how fast a program starts.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST = 32  # bytes of a sha256 at the end of a file
ANEW = "it is compiled anew"


class CacheNote(UserWarning):
    """Compiled kernels could not be read or kept. This costs only time."""


@cache
def warn_once(text: str) -> None:
    """Warn once per process."""
    warnings.warn(text, CacheNote, stacklevel=2)


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """One file per kernel, named after the kernel's key, with the key inside and the digest of its content.

    numba keeps an index that gives each key a number, and the data of a number in a file. Two processes that
    compile at the same time can give one number to two kernels, and the index of one process then leads to
    the data of the other: a wrong kernel, which runs and gives wrong numbers. Without an index there is
    nothing to confuse; the worst that can happen is that a kernel is compiled twice.
    """

    def __init__(self, folder: str, name: str, stamp: Any) -> None:
        super().__init__(folder, f"{name}.checked", stamp)  # numba's own files have no digest
        sources = hashlib.sha256(repr((self._version, stamp)).encode()).hexdigest()[:8]
        self._base, self._mine = f"{name}.checked.", f"{name}.checked.{sources}."

    def save(self, key: Any, data: Any) -> None:
        """Keep a kernel, and remove the kernels of other versions of the sources, which are useless now."""
        for file in Path(self._cache_path).glob(f"{escape(self._base)}*"):
            if not file.name.startswith(self._mine):
                file.unlink(missing_ok=True)
        self._save_data(self._file_of(key), (key, data))

    def load(self, key: Any) -> Any:
        """The kernel with this key, or None."""
        path = Path(self._data_path(self._file_of(key)))
        try:
            whole = path.read_bytes()
        except FileNotFoundError:  # the kernel was never kept, or was removed
            return None
        except OSError as error:
            warn_once(f"the compiled kernel in {path} cannot be read ({_reason(error)}): {ANEW}")
            return None
        content = whole[:-DIGEST]
        if hashlib.sha256(content).digest() != whole[-DIGEST:]:
            warn_once(f"the compiled kernel in {path} is damaged: {ANEW}")
            return None
        saved, data = pickle.loads(content)
        return data if saved == key else None

    def flush(self) -> None:
        for file in Path(self._cache_path).glob(f"{escape(self._base)}*"):
            file.unlink(missing_ok=True)

    def _file_of(self, key: Any) -> str:
        return f"{self._mine}{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(content + hashlib.sha256(content).digest())


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of a function; failures are warnings. version: a digest of what the function calls
    and closes over."""

    def __init__(self, function: Callable[..., Any], version: str) -> None:
        super().__init__(function)
        self.version = version
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(self.cache_path, self._impl.filename_base, stamp)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """numba's key, with the version in place of a hash of the pickled closure. A pickle of functions
        whose bytecode Python just compiled differs from a pickle of the same functions from a file."""
        signature, machine, (code, _) = super()._index_key(sig, codegen)
        return signature, machine, code, self.version

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whatever the error is, the kernel can be compiled
            warn_once(f"a compiled kernel in {self.cache_path} cannot be used ({_reason(error)}): {ANEW}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the kernel exists, only its copy on disk does not
            warn_once(
                f"compiled kernels cannot be kept in {self.cache_path} ({_reason(error)}): "
                "every process compiles them anew"
            )


def keep_compiled(dispatcher: Any, version: str) -> None:
    """Keep a compiled function on disk, if there is a folder for it."""
    wanted = config.CACHE_DIR
    try:
        cached = KernelCache(dispatcher.py_func, version)
    except (OSError, RuntimeError):  # numba finds no folder that it may write
        warn_once(
            "compiled kernels cannot be kept, since no folder for them can be written: "
            "every process compiles them anew; set NUMBA_CACHE_DIR to a folder that can be written"
        )
        return
    if wanted and Path(wanted) not in Path(cached.cache_path).parents:
        warn_once(
            f"NUMBA_CACHE_DIR, {wanted}, cannot be written: compiled kernels are kept in {cached.cache_path}"
        )
    dispatcher._cache = cached


def _reason(error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error or type(error).__name__)
    return " ".join(text.split())[:100].lower()
