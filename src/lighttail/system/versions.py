"""The versions of the software that computed a result: a table for its file, and a line for its page."""

from __future__ import annotations

import platform


def used_versions() -> dict[str, str]:
    """The versions of everything that may change a bit of a path, by name, in the order of the pages."""
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
    """The versions in one line, such as "lighttail 0.1.0, numpy 2.3.0"."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())
