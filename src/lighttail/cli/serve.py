"""The commands `serve` and `keys`: the service behind HTTP, and who may use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lighttail.cli.app import Program, app
from lighttail.cli.options import console, whole_option

STORE, HOST, PORT = "lighttail.db", "127.0.0.1", 8710
keys_app = Program(help="Make, list and remove the keys of a server.")
app.add_typer(keys_app, name="keys")
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
