"""Which files run where: the device's tests need numba's simulator, chosen before numba is imported."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from cpu_times import pytest_configure
from journals import journal, opener, postgres

__all__ = ["journal", "opener", "postgres", "pytest_configure"]

# Tests start processes that import the package. Without bytecode on disk each of them would compile it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts a job in the background lets it ignore Ctrl-C, and so would the processes of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
collect_ignore = [] if SIMULATED else ["test_gpu.py", "test_gpu_rules.py"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage rarely, and never among what was imported: numba makes many objects while it compiles,
    few of them garbage, and the looking took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True)
def quick_growths(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison plays up to 10^8 pulls per policy to say how a chance falls; `test_growth.py` tests this.
    Other tests compare for another reason: there 10^6 pulls and no weighted paths have to do."""
    if request.module.__name__ != "test_growth":
        monkeypatch.setattr("lighttail.tails.growth.MOST_PULLS", 1_000_000)
        monkeypatch.setattr("lighttail.tails.growth.FEW_HITS", 0)
