"""Ctrl-C ends a simulation at once, however long it would run, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

PATIENCE = 10.0  # seconds from Ctrl-C to the end of the process, its start-up's size

CHILD = """
import sys, threading
import lighttail as lt

policy, problem = lt.{policy}, lt.Bandit([0.2, 0.8])
settings = dict(seed=1, method={method!r})
lt.simulate(policy, problem, horizon=2, paths=1, **settings)  # the kernel is ready
print("ready", flush=True)
try:
    lt.simulate(policy, problem, horizon={horizon}, paths={paths}, **settings, threads=2, progress={progress})
finally:
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("lighttail")]
    print("threads left:", left, flush=True)
"""

ENDLESS = [
    ("step", "UCB(lt.LightTailed(0.2))", 10**10, 1),
    ("step", "SuccessiveElimination(lt.Standard(0.4))", 10**10, 1),
    ("step", "SuccessiveElimination(lt.Standard(1e6))", 10**10, 1),  # no arm is ever dropped
    ("step", "ThompsonSampling(0.8)", 10**10, 1),
    ("step", "Exp3IX()", 10**10, 1),
    ("step", "UCB(lt.LightTailed(0.2))", 10**5, 10**6),
    ("step", "UCB(lt.AnyTime(0.2))", 10**5, 10**6),
    ("step", "UCB(lt.AnyTime(0.2))", 10**10, 1),
    ("skip", "UCB(lt.LightTailed(0.2))", 10**9, 10**7),
    ("skip", "UCB(lt.AnyTime(0.2))", 10**13, 1),
]


@pytest.mark.parametrize(("method", "policy", "horizon", "paths"), ENDLESS)
def test_ctrl_c_ends_it_at_once(method: str, policy: str, horizon: int, paths: int, tmp_path: Path) -> None:
    progress = "lambda done, total: print('working', flush=True)" if paths > 1 else "False"
    script = CHILD.format(method=method, policy=policy, horizon=horizon, paths=paths, progress=progress)
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            if paths > 1:
                assert child.stdout.readline() == "working\n"
            else:
                time.sleep(0.7)  # a single path never reports; give it time to be under way
            assert child.poll() is None
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    assert child.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert out.splitlines()[-1] == "threads left: []"
    assert os.listdir(tmp_path) == []
