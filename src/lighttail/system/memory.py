"""How much memory there is: a simulation that cannot fit is refused before it begins."""

from __future__ import annotations

import math
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
# Limit, use and details of a container, in both versions of Linux's control groups.
GROUPS = (
    tuple(Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current", "stat")),
    tuple(
        Path("/sys/fs/cgroup/memory") / f"memory.{name}"
        for name in ("limit_in_bytes", "usage_in_bytes", "stat")
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
    for limit, use, details in GROUPS:
        try:
            taken = int(use.read_text()) - _cached(details)
            free = min(free, float(int(limit.read_text()) - taken))
        except (OSError, ValueError):  # no such file, or no limit: "max"
            continue
    return max(0.0, free)


def _cached(details: Path) -> int:
    """Bytes of files in memory, which count as used and are given up when asked for."""
    try:
        lines = dict(line.split() for line in details.read_text().splitlines())
        return int(lines.get("total_inactive_file", lines.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0


def in_words(size: float) -> str:
    """12 MB, 1.5 GB.

    >>> in_words(1.5e9), in_words(2e7), in_words(1.6e11)
    ('1.5 GB', '20 MB', '160 GB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.2g} {name}" if size < 100 * unit else f"{size / unit:.0f} {name}"
    return f"{max(1.0, size / 1e3):.0f} kB"
