"""The versions of what computed a result: one table for its record, and one line for its page."""

from __future__ import annotations

import platform


def used_versions() -> dict[str, str]:
    """What may change a bit of a path, by name, in the order in which pages show it."""
    import numba
    import numpy

    import lighttail

    return {
        "lighttail": lighttail.__version__,
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


def versions_line(versions: dict[str, str]) -> str:
    """Such a table as one line, as in "lighttail 0.1.0, numpy 2.3.0"."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())
