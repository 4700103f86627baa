"""Which files run where: the device's tests need numba's simulator, chosen before numba is imported."""

from __future__ import annotations

import gc
import os

import pytest
from cpu_times import pytest_configure
from journals import journal, opener, postgres

__all__ = ["journal", "opener", "postgres", "pytest_configure"]

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
collect_ignore = [] if SIMULATED else ["test_gpu.py", "test_gpu_rules.py"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage rarely, and never among what was imported: numba makes many objects while it compiles,
    few of them garbage, and the looking took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
