"""Which files run where: the device's tests need numba's simulator, chosen before numba is imported."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["test_gpu.py"]
