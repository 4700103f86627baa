"""The free memory, so that a simulation that does not fit is refused before it begins."""

from __future__ import annotations

import math
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
# The files with the limit, the use and the details of a container's memory, in both versions of Linux's
# control groups.
GROUPS = (
    tuple(Path("/sys/fs/cgroup", f"memory.{name}") for name in ("max", "current", "stat")),
    tuple(
        Path("/sys/fs/cgroup/memory", f"memory.{name}")
        for name in ("limit_in_bytes", "usage_in_bytes", "stat")
    ),
)


def free_memory() -> float:
    """The number of bytes that this process may still use; infinite if the system does not say."""
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
        except (OSError, ValueError):  # there is no such file, or it says "max": no limit
            continue
    return max(0.0, free)


def _cached(details: Path) -> int:
    """The number of bytes of cached files, which count as used although the system can free them."""
    try:
        lines = dict(line.split() for line in details.read_text().splitlines())
        return int(lines.get("total_inactive_file", lines.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0


def in_bytes(count: float) -> str:
    """A number of bytes with a unit.

    >>> in_bytes(1.5e9), in_bytes(2e7), in_bytes(1.6e11)
    ('1.5 GB', '20 MB', '160 GB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.2g} {name}" if count < 100 * unit else f"{count / unit:.0f} {name}"
    return f"{max(1.0, count / 1e3):.0f} kB"
