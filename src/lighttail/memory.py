"""How much memory there is: a simulation that cannot fit is refused before it begins."""

from __future__ import annotations

import math
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
GROUPS = (  # limit and use of a container, in both versions of Linux's control groups
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def free_memory() -> float:
    """Bytes that this process may still take; infinite where nobody says."""
    free = math.inf
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        free = 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError, IndexError):
        pass
    for limit, use in GROUPS:
        try:
            free = min(free, float(int(limit.read_text()) - int(use.read_text())))
        except (OSError, ValueError):  # no such file, or no limit: "max"
            continue
    return max(0.0, free)


def in_words(size: float) -> str:
    """12 MB, 1.5 GB.

    >>> in_words(1.5e9), in_words(2e7), in_words(1.6e11)
    ('1.5 GB', '20 MB', '160 GB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.2g} {name}" if size < 100 * unit else f"{size / unit:.0f} {name}"
    return f"{max(1.0, size / 1e3):.0f} kB"
