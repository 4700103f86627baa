"""A server that is killed: `python killed_desk.py STORE START...` plays from where it was, and says what is
answered.

Each of its threads asks with keys THREAD-0, THREAD-1, ... from its START on and tells a reward; every answer
is a line on the standard output, which is written after the answer came."""

from __future__ import annotations

import sys
import threading
from typing import Any

from lighttail.live import Desk, Office, open_journal


def reward_of(id: int) -> float:
    return (id % 3) / 2


def say(lock: Any, *words: object) -> None:
    with lock:
        print(*words, flush=True)


def work(desk: Desk, lock: Any, thread: int, start: int) -> None:
    for turn in range(start, 10**6):
        key = f"{thread}-{turn}"
        (trial,) = desk.ask(key=key)
        say(lock, "asked", key, trial.id, trial.arm)
        told = desk.tell([(trial.id, reward_of(trial.id))])
        say(lock, "told", key, trial.id, told.counted + told.repeated)


def main() -> None:
    desk = Office(open_journal(sys.argv[1])).create("one", "ts:0.5", ["A", "B", "C"], seed=3)[0]
    lock = threading.Lock()
    for thread, start in enumerate(sys.argv[2:]):
        threading.Thread(target=work, args=(desk, lock, thread, int(start)), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
