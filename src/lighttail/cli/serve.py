"""The commands of the service: `serve` and `keys` for HTTP, and `journal` for what the service has kept, also
while it runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lighttail.checks import refuse
from lighttail.cli.app import Program, app
from lighttail.cli.options import console, print_line, whole_option
from lighttail.outcomes.format import counted

STORE, HOST, PORT = "lighttail.db", "127.0.0.1", 8710
DAMAGED = 1  # exit code
FOLLOWED = "the journal was followed"
journal = Program(help="Check and export what a service has kept, also while the service runs.")
app.add_typer(journal, name="journal")
keys_app = Program(help="Make, list and remove the keys of a server.")
app.add_typer(keys_app, name="keys")
Store = Annotated[str, typer.Argument(metavar="STORE", help="A SQLite file, or postgresql://...")]
KeysFile = Annotated[Path, typer.Option("--keys", help="The keys file of the server.")]


@app.command()
def serve(
    store: Annotated[
        str, typer.Option(help="A SQLite file, which is made if there is none, or postgresql://...")
    ] = STORE,
    host: Annotated[
        str, typer.Option(help="The address; another one than this machine's needs --keys.")
    ] = HOST,
    port: Annotated[
        int | None, whole_option("port", help="The port; 0 takes any free one.", show_default=str(PORT))
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="The file of `lighttail keys`.")] = None,
    webhook: Annotated[
        str | None, typer.Option(help="The address to which alarms are posted: https://...")
    ] = None,
) -> None:
    """Serve live experiments over HTTP until Ctrl-C.

    Every answer is on disk before it is sent. Without options the experiments are kept in lighttail.db in the
    current folder, and only this machine is served.
    """
    from lighttail.server import serve as run

    run(store, host, PORT if port is None else port, keys, lambda line: print(line, flush=True), webhook)


@keys_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What or who will use the key.")],
    keys: KeysFile,
    role: Annotated[str, typer.Option(help="ask (ask and tell), read, or manage (everything).")] = "ask",
) -> None:
    """Make a key and print it. It is printed once: the file keeps only its digest."""
    from lighttail.server.keys import add_key

    print(add_key(keys, name, role))


@keys_app.command("list")
def listed(keys: KeysFile) -> None:
    """List the names and roles of the keys."""
    from lighttail.report.terminal import plain_table
    from lighttail.server.keys import read_keys

    rows = [(key.name, key.role, key.made) for key in read_keys(keys)]
    screen = console()
    screen.print(plain_table("", ("name", "role", "made"), rows, screen.width))


@keys_app.command("remove")
def remove(name: Annotated[str, typer.Argument(help="The name of the key.")], keys: KeysFile) -> None:
    """Remove a key. Servers that use the file refuse the key at once."""
    from lighttail.server.keys import remove_key

    remove_key(keys, name)


@journal.command()
def check(store: Store) -> None:
    """Check that a journal is whole: its numbers, its digests, and a replay of all events.

    The exit code is 1 if something is damaged.
    """
    from lighttail.live import open_reader
    from lighttail.live.checking import check_journal
    from lighttail.live.errors import Damaged

    faults: list[str] = []
    events = experiments = 0
    with closing(open_reader(store)) as reader:
        try:
            for name in reader.names():
                try:
                    whole = check_journal(reader, name)
                except Damaged as error:
                    faults.append(str(error))
                    print(f"{name}: damaged")
                    continue
                experiments, events = experiments + 1, events + whole.events
                sizes = f"{counted(whole.events, 'event')}, {counted(whole.trials, 'trial')}"
                print(f"{name}: {sizes}, {whole.open:,} open")
                if whole.astray:
                    times = counted(whole.astray, "time")
                    print_line(f"{name}: a replay on this machine chose another arm {times}; {FOLLOWED}")
            reader.check()
        except Damaged as error:
            faults.append(str(error))
    if faults:
        for text in faults:
            print_line(text)
        print("The journal is damaged.")
        raise typer.Exit(DAMAGED)
    checked = f"{counted(experiments, 'experiment')}, {counted(events, 'event')}"
    print(f"The journal is whole: {checked}, and a replay adds up to what the service knew.")


@journal.command()
def export(
    store: Store,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of an experiment.")],
    out: Annotated[Path, typer.Option(help="The file to write, which ends with .parquet or .csv.")],
) -> None:
    """Write the trials of an experiment to a table, one row per trial."""
    from lighttail.live import open_reader
    from lighttail.live.errors import Damaged
    from lighttail.live.export import export_trials

    with closing(open_reader(store)) as reader:
        if out.resolve() == Path(store).resolve():
            raise refuse("out", str(out), "another file than the journal")
        before = out.exists()
        try:
            count = export_trials(reader, name, out)
        except Damaged as error:
            print_line(f"the journal of {name} is damaged: {error}; lighttail journal check says more")
            raise typer.Exit(DAMAGED) from None
    if before:
        print_line(f"{out} was there already, and was replaced")
    print(f"{out}: {counted(count, 'trial')} of {name}")
