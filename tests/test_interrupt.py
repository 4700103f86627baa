"""Ctrl-C ends a simulation at once, however long it would run, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from lighttail.running.pool import postponed_interrupts

PATIENCE = 120.0  # seconds from Ctrl-C to the end, on a machine that is busy; without Ctrl-C they play longer

# Plays what it reads, and says how each call ended; the last interrupt is not caught.
CHILD = """
import json, sys, threading, time
import lighttail as lt

def ours():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("lighttail")]

def watch():
    while not ours():
        time.sleep(0.01)
    print("working", flush=True)

def play(method, policy, horizon, paths):
    policy, problem = eval(policy), lt.Bandit([0.2, 0.8])
    settings = dict(seed=1, method=method)
    lt.simulate(policy, problem, horizon=2, paths=1, **settings)  # the kernel is ready
    print("ready", flush=True)
    told = (lambda done, total: print("working", flush=True)) if paths > 1 else False
    if paths == 1:  # a single path never reports
        threading.Thread(target=watch, daemon=True).start()
    try:
        lt.simulate(policy, problem, horizon=horizon, paths=paths, **settings, threads=2, progress=told)
    finally:
        print("threads left:", ours(), flush=True)

for line in sys.stdin:
    *case, last = json.loads(line)
    try:
        play(*case)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if last:
            raise
"""

ENDLESS = [
    ("step", "lt.UCB(lt.LightTailed(0.2))", 10**11, 1),
    ("step", "lt.SuccessiveElimination(lt.Standard(0.4))", 10**11, 1),
    ("step", "lt.SuccessiveElimination(lt.Standard(1e6))", 10**11, 1),  # no arm is ever dropped
    ("step", "lt.ThompsonSampling(0.8)", 10**11, 1),
    ("step", "lt.Exp3IX()", 10**11, 1),
    ("step", "lt.UCB(lt.LightTailed(0.2))", 10**5, 10**6),
    ("step", "lt.UCB(lt.AnyTime(0.2))", 10**5, 10**6),
    ("step", "lt.UCB(lt.AnyTime(0.2))", 10**11, 1),
    ("skip", "lt.UCB(lt.LightTailed(0.2))", 10**9, 10**7),
    ("skip", "lt.UCB(lt.AnyTime(2.0))", 10**13, 1),
]


@contextmanager
def start(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in this folder that plays what it is told."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as child:
        yield child
        child.kill()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that plays the cases of this module one after the other, and its folder."""
    folder = tmp_path_factory.mktemp("interrupted")
    with start(folder) as child:
        yield child, folder


def interrupt(child: subprocess.Popen[str], case: tuple[str, str, int, int], last: bool = False) -> list[str]:
    """Let the process play, interrupt it, and return what it says from then on."""
    assert child.poll() is None
    print(json.dumps([*case, last]), file=child.stdin, flush=True)
    late = threading.Timer(PATIENCE, child.kill)
    try:
        assert child.stdout.readline() == "ready\n"
        assert child.stdout.readline() == "working\n"
        assert child.poll() is None
        late.start()
        child.send_signal(signal.SIGINT)
        said = list(
            takewhile(lambda line: line not in ("interrupted\n", ""), iter(child.stdout.readline, ""))
        )
    finally:
        late.cancel()
    return [line for line in said if line != "working\n"]


@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_ctrl_c_ends_it_at_once(case: tuple[str, str, int, int], started: Any) -> None:
    child, folder = started
    assert interrupt(child, case) == ["threads left: []\n"]
    assert child.poll() is None  # it was not killed because it took too long
    assert os.listdir(folder) == []


def test_the_process_ends_as_one_that_was_interrupted(tmp_path: Path) -> None:
    with start(tmp_path) as child:
        assert interrupt(child, ENDLESS[0], last=True) == ["threads left: []\n"]
        _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
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
