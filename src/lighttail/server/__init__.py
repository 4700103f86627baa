"""The server: the service behind HTTP, its keys and its metrics (docs/live.md)"""

from __future__ import annotations

from typing import Any

INSTALL = 'the server needs packages that are not installed: pip install "lighttail[serve]"'


def build_app(office: Any, keys: Any = None, names: Any = (), webhook: Any = None) -> Any:
    """The web application of an office, for any ASGI server. Close the office after the server has ended.

    keys: a `Keys`, without which every request is trusted and must name this machine (`localhost`, a
    loopback address, or one of `names`) as its host. webhook: a `Webhook`, to which alarms are posted.
    """
    _check_installed()
    from lighttail.server.app import made_app

    return made_app(office, keys, names, webhook)


def serve(
    store: str = "lighttail.db",
    host: str = "127.0.0.1",
    port: int = 8710,
    keys: Any = None,
    say: Any = print,
    webhook: Any = None,
) -> None:
    """Serve the experiments of a store until SIGTERM or Ctrl-C.

    store: as `open_journal` reads it. keys: the path of the keys file, without which only this machine is
    served. say: prints a line. webhook: the address to which alarms are posted."""
    _check_installed()
    from lighttail.server.run import run_server

    run_server(store, host, port, keys, say, webhook)


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError(INSTALL) from None


__all__ = ["build_app", "serve"]
