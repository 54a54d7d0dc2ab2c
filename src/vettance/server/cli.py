"""Serve: the command that runs the service on a port, and how its server is set up."""

import os
import socket
import sys
from functools import partial
from pathlib import Path

import click
import msgspec

from vettance import __version__
from vettance.commands import data_option, fail, settings_of
from vettance.db.engine import StoreDown
from vettance.ops.preflight import probe_addresses, probe_listening, probe_redis
from vettance.ops.server_note import note_server, remove_note
from vettance.option_types import Whole
from vettance.processes.malloc import give_back_early
from vettance.processes.worker_pool import Child, WorkerPool
from vettance.redis_link.down import StateDown
from vettance.settings.secret_key import check_secret
from vettance.settings.settings import ProcessRole, Settings
from vettance.settings.unread_variables import find_unread
from vettance.telemetry.logs import configure_logs

WORKERS_MAX = 31  # Each has two places on the board of figures (see `ops.board`).


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8080, show_default=True, type=Whole(0, 65535), help="0 takes a free one.")
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=Whole(1, WORKERS_MAX),
    help="How many processes answer; more than one needs PostgreSQL and Redis.",
)
@click.option(
    "--role",
    default=ProcessRole.ALL.value,
    show_default=True,
    type=click.Choice([role.value for role in ProcessRole]),
    help="Answer requests (web), do the work behind them (worker), or both.",
)
@click.option("--seat", hidden=True)
@data_option
def serve(host: str, port: int, workers: int, role: str, seat: str | None, data: str | None) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Example: vettance serve --port 8080 --data ./vettance-data
    """
    # Everything that a server consists of: too much for those who ask for help or mistype an option.
    import uvloop

    from vettance.server.stop_times import STOP_S_MAX
    from vettance.server.web_process import REFUSALS, serve_until_stopped

    if seat is None:
        # First of all: that nothing reads it may be why the settings are refused.
        _warn_of_unread_variables()
    give_back_early()
    settings = msgspec.structs.replace(settings_of(data, make=True), role=ProcessRole(role))
    configure_logs(settings.log_level)
    if seat is not None:
        _serve_as_child(settings, Child(seat))
        return
    _check_sharing(settings, workers)
    if settings.unsafe_webhooks:
        _warn_of_unsafe_webhooks()
    try:
        listener = None if settings.role is ProcessRole.WORKER else _listen(host, port)
        _check_options(settings, listener)
        say = partial(_print_ready if listener is None else partial(_print_address, listener), settings.data)
        if listener is None or workers == 1:
            uvloop.run(serve_until_stopped(settings, listener, say, _print_waiting))
        else:
            arguments = ("--data", str(settings.data))
            pool = WorkerPool(listener, workers, settings.role, arguments, say, _print_waiting, STOP_S_MAX)
            sys.exit(pool.run())
    except REFUSALS as error:
        fail(_reason(error))
    finally:
        remove_note(settings.data)


def _serve_as_child(settings: Settings, child: Child) -> None:
    """Serve as one of several processes. The parent says where, why not yet, and why not."""
    import uvloop

    from vettance.server.web_process import REFUSALS, serve_until_stopped

    try:
        uvloop.run(serve_until_stopped(settings, child.listener, child.ready, child.wait, child.link))
    except REFUSALS as error:
        child.refuse(_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> str:
    reason = (error.full if isinstance(error, StoreDown) else str(error)) or type(error).__name__
    return f"VETTANCE_REDIS_URL: {reason}" if isinstance(error, StateDown) else reason


def _check_options(settings: Settings, listener: socket.socket | None) -> None:
    """Refuse what can be seen before anything is started or any process forked. Raises `SettingsError`."""
    check_secret(settings)
    probe_addresses(settings)
    probe_listening(settings, None if listener is None else listener.getsockname()[:2])
    probe_redis(settings)


def _check_sharing(settings: Settings, workers: int) -> None:
    """Refuse what would have several processes where only one can be."""
    if workers == 1 and settings.role is ProcessRole.ALL:
        return
    asked = f"--workers {workers}" if workers > 1 else f"--role {settings.role.value}"
    missing = [
        name
        for name, value in (
            ("VETTANCE_DATABASE_URL", settings.database_url),
            ("VETTANCE_REDIS_URL", settings.redis),
        )
        if value is None
    ]
    if missing:
        fail(
            f"{asked} means several processes, which must share what they remember: "
            f"set {' and '.join(missing)} (docs/postgresql.md)"
        )


def _warn_of_unread_variables() -> None:
    for unread in find_unread(os.environ):
        click.echo(f"WARNING: nothing reads {unread.name}. {unread.hint}", err=True)


def _warn_of_unsafe_webhooks() -> None:
    click.echo(
        "WARNING: VETTANCE_UNSAFE_WEBHOOKS=1: webhooks may go to http URLs, to this machine and into its "
        "network. Whoever has an API key can reach them. Never use this outside development.",
        err=True,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything else, so that a taken one is said at once."""
    from vettance.server.web_process import listen

    try:
        return listen(host, port)
    except OSError as error:
        fail(f"cannot listen on {host}:{port}: {error.strerror or error}")


def _print_address(listener: socket.socket, data: Path) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    note_server(data, address)
    click.echo(f"Vettance {__version__} listens on {address} (API page: {address}/docs)", err=True)


def _print_ready(data: Path) -> None:
    note_server(data, "")
    click.echo(f"Vettance {__version__} works in the background", err=True)


def _print_waiting(reason: str) -> None:
    click.echo(f"Vettance {__version__} cannot start yet: {reason}", err=True)
