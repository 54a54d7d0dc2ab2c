"""What the commands share: where the data is, how a fault ends, how a result is shown."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from vettance.connect import connect_store
from vettance.db.engine import Store, StoreDown
from vettance.settings import Settings, SettingsError, open_data_folder, read_settings
from vettance.wire import encode

STORE_FILE = "vettance.db"

Command = TypeVar("Command", bound=Callable[..., Any])

data_option = click.option(
    "--data",
    metavar="DIR",
    envvar="VETTANCE_DATA",
    help="The data folder (VETTANCE_DATA; default ./vettance-data).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object or array.")
_version_option = click.option(
    "--version", type=click.IntRange(1), help="Compare with this version instead of the one in force."
)
_to_option = click.option(
    "--to", "to_version", type=click.IntRange(1), help="Compare two stored versions, without a file."
)


def compare_options(command: Command) -> Command:
    """Add what a `diff` of rule versions is told beside its file."""
    return _version_option(_to_option(command))


def fail(message: str) -> NoReturn:
    """End the command with one clear line on standard error and a non-zero exit."""
    raise click.ClickException(message)


def settings_of(data: str | None, *, make: bool = False) -> Settings:
    """Read the settings, or end the command. With `make`, the data folder is made where there is none.

    Beside a database it is always made: what it holds there is found or made again.
    """
    try:
        settings = read_settings(data=data)
        if make or settings.database_url is not None:
            open_data_folder(settings)
    except SettingsError as error:
        fail(str(error))
    return settings


def has_store(settings: Settings) -> bool:
    """Tell whether there is a store to ask; a database is taken for one until it is asked."""
    return settings.database_url is not None or (settings.data / STORE_FILE).exists()


@asynccontextmanager
async def open_store(data: str | None, *, make: bool = False) -> AsyncIterator[tuple[Store, Settings]]:
    """Open the store of the data folder, brought to the newest schema; a fault ends the command.

    Only with `make` is a store made where there is none: a folder's name that was mistyped must not answer
    that there are no tenants.
    """
    settings = settings_of(data, make=make)
    if not make and not has_store(settings):
        fail(
            f"there is no store in {settings.data}; name its folder with --data or VETTANCE_DATA, "
            "or make it with `vettance tenant create`"
        )
    try:
        store = await connect_store(settings, writer="thread")
        try:
            await store.migrate()
            yield store, settings
        finally:
            await store.close()
    except (StoreDown, SettingsError) as error:
        fail(str(error) or "the store cannot be reached")


def show(result: dict[str, Any] | list[dict[str, Any]], text: str, *, as_json: bool) -> None:
    """Print a result: for a script as JSON, for a person as text."""
    click.echo(encode(result).decode() if as_json else text)


def write_document(document: str, told: dict[str, Any], output: Path | None, *, as_json: bool) -> None:
    """Write a document into a file or to standard output; as JSON, with what is `told` of it."""
    if output is not None:
        output.write_text(document, "utf-8")
        told = told | {"output": str(output)}
    elif as_json:
        told = told | {"document": document}
    else:
        click.echo(document, nl=False)
    if as_json:
        click.echo(encode(told).decode())


def show_table(title: str, rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Print rows: for a script as a JSON array, for a person as a table."""
    if as_json:
        click.echo(encode(rows).decode())
        return
    if not rows:
        click.echo(f"{title}: none yet.")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        # Ids are copied from here, so they are never cut.
        table.add_column(column, no_wrap=True, overflow="ignore")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200).print(table)
