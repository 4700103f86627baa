"""The commands `journal check` and `journal export`: look at what a service has kept, also while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lighttail.checks import refuse
from lighttail.cli.app import Program, app
from lighttail.cli.options import print_line
from lighttail.outcomes.format import counted

DAMAGED = 1  # exit code
journal = Program(help="Check and export what a service has kept, also while the service runs.")
app.add_typer(journal, name="journal")
Store = Annotated[str, typer.Argument(metavar="STORE", help="A SQLite file, or postgresql://...")]


@journal.command()
def check(store: Store) -> None:
    """Check that a journal is whole: its numbers, its digests, and a replay of all events.

    The exit code is 1 if something is damaged.
    """
    from lighttail.live import open_reader
    from lighttail.live.checking import check_journal
    from lighttail.live.errors import Damaged

    reader, faults = open_reader(store), list[str]()
    events = experiments = 0
    try:
        names = reader.names()
        for name in names:
            try:
                found = check_journal(reader, name)
            except Damaged as error:
                faults.append(str(error))
                print(f"{name}: damaged")
                continue
            experiments, events = experiments + 1, events + found.events
            sizes = f"{counted(found.events, 'event')}, {counted(found.trials, 'trial')}, {found.open:,} open"
            print(f"{name}: {sizes}")
            if found.astray:
                times = counted(found.astray, "time")
                print_line(
                    f"{name}: a replay on this machine chose another arm {times}; the journal was followed"
                )
        reader.check()
    except Damaged as error:
        faults.append(str(error))
    finally:
        reader.close()
    if faults:
        for text in faults:
            print_line(text)
        print("The journal is damaged.")
        raise typer.Exit(DAMAGED)
    whole = f"{counted(experiments, 'experiment')}, {counted(events, 'event')}"
    print(f"The journal is whole: {whole}, and a replay adds up to what the service knew.")


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

    reader = open_reader(store)
    try:
        if out.resolve() == Path(store).resolve():
            raise refuse("out", str(out), "another file than the journal")
        before = out.exists()
        count = export_trials(reader, name, out)
    except Damaged as error:
        print_line(f"the journal of {name} is damaged: {error}; lighttail journal check says more")
        raise typer.Exit(DAMAGED) from None
    finally:
        reader.close()
    if before:
        print_line(f"{out} was there already, and was replaced")
    print(f"{out}: {counted(count, 'trial')} of {name}")
