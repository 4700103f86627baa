"""What the page on serving promises: its commands work, workers share an experiment, backups are whole."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

from served import FOREVER, Server, served

from lighttail.live import open_journal
from lighttail.live.checking import check_journal

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "serving.md").read_text()
VISITS = 40


def curl(server: Server, command: str) -> str:
    """What a command of the page prints, sent to this server."""
    here = command.replace("http://127.0.0.1:8710", f"http://127.0.0.1:{server.port}")
    done = subprocess.run(["curl", "-s", *shlex.split(here)[1:]], check=True, capture_output=True, text=True)
    return done.stdout


def test_two_workers_share_the_experiment_of_the_page(tmp_path: Path) -> None:
    commands = re.findall(r"^curl [^$]*?(?=\n```|\ncurl)", PAGE, re.MULTILINE)
    begin, look, journal, pause, resume, stop, taken = commands[:7]
    taken, export = taken.splitlines()
    assert not re.search(r"curl [^\"\n]*\?", PAGE)  # a shell would look for files of this name
    with served(store=tmp_path / "shop.db") as server:
        assert json.loads(curl(server, begin))["name"] == "shop"
        here = os.environ | {"LIGHTTAIL_URL": f"http://127.0.0.1:{server.port}"}
        words = [sys.executable, str(ROOT / "examples" / "shop.py")]
        workers = [
            subprocess.Popen([*words, name, str(VISITS), "0.2"], env=here, stdout=subprocess.PIPE, text=True)
            for name in ("anna", "ben")
        ]
        bought = "".join(worker.communicate(timeout=FOREVER)[0] for worker in workers)
        assert [worker.returncode for worker in workers] == [0, 0]
        summary = json.loads(curl(server, look))
        assert sum(summary["tries"].values()) == 2 * VISITS
        assert summary["events"]["tell"] + summary["events"]["amend"] == bought.count("'counted': 1")
        assert curl(server, journal) == ""
        for change in (pause, resume, stop):
            assert json.loads(curl(server, change)) == {"changed": True}
        events = curl(server, taken.partition(" -o ")[0]).splitlines()
        assert json.loads(events[-1])["kind"] == "stop"
        assert server.end()[0] == 0
    words = [sys.executable, "-m", "lighttail.cli", *export.replace("lighttail.db", "shop.db").split()[1:]]
    subprocess.run(words, check=True, cwd=tmp_path)
    assert len((tmp_path / "shop.csv").read_text().splitlines()) == 1 + 2 * VISITS


def test_a_backup_of_a_running_server_is_a_journal(tmp_path: Path) -> None:
    with served(store=tmp_path / "lighttail.db") as server:
        server.post("", {"name": "one", "policy": "ts:0.5", "arms": ["A", "B"]})
        server.post("/one/ask", {"count": 100})
        (script,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
        server.post("/one/ask", {"count": 7})
    journal = open_journal(str(tmp_path / "backup.db"))
    assert check_journal(journal, "one")[:2] == (101, 100)
    journal.close()
    assert sqlite3.connect(tmp_path / "backup.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)
