"""Ctrl-C ends a simulation at once, however long it would run, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from lighttail.running.pool import postponed_interrupts

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


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, whatever runs the tests makes of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("asked", [True, False])
def test_a_postponed_interrupt_waits_for_the_question_or_the_end(asked: bool) -> None:
    steps = []

    def work() -> None:
        with postponed_interrupts() as ask:
            ask()
            signal.raise_signal(signal.SIGINT)
            steps.append("a step that is not cut in two")
            if asked:
                ask()
            steps.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(steps) == (1 if asked else 2)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_does_not_wait() -> None:
    steps = []

    def work() -> None:
        with postponed_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append(1)
            signal.raise_signal(signal.SIGINT)
            steps.append(2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == [1]


@pytest.mark.usefixtures("interruptible")
def test_who_handles_ctrl_c_otherwise_keeps_doing_so() -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda *args: seen.append(args))
    with postponed_interrupts() as ask:
        signal.raise_signal(signal.SIGINT)
        ask()
    assert len(seen) == 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
