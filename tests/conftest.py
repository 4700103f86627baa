"""Which files run where: the device's tests need numba's simulator, chosen before numba is imported."""

from __future__ import annotations

import os

from cpu_times import pytest_configure
from journals import journal, opener, postgres

__all__ = ["journal", "opener", "postgres", "pytest_configure"]

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
collect_ignore = [] if SIMULATED else ["test_gpu.py", "test_gpu_rules.py"]
