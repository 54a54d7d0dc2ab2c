"""The commands that bring the store to the newest schema, and to another engine."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vettance.commands import counted_word, data_option, fail, json_option, settings_of, show
from vettance.db.engine import StoreDown
from vettance.db.migrate import check as pending_migrations
from vettance.db.migrate import migrate as apply_migrations
from vettance.db.sqlite import store_path
from vettance.settings.settings import Settings
from vettance.settings.urls import read_database_url

if TYPE_CHECKING:
    from vettance.db.copy_to_postgres import Copied

#: What `migrate --check` exits with, so that a script can tell it from a failure.
_PENDING = 3


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 3 when migrations are pending.")
@json_option
@data_option
def migrate(check: bool, as_json: bool, data: str | None) -> None:
    """Bring the store to the newest schema. `vettance serve` does this by itself at its start.

    With --check, exits 0 when nothing is to be done and 3 when migrations are pending (all of them where
    there is no store yet). Whatever fails exits 1, as everywhere.

    Example: vettance migrate --check --data ./vettance-data
    """
    settings = settings_of(data, make=not check)
    try:
        waiting = _pending(settings)
        if check:
            text = "The schema is up to date." if not waiting else "Pending: " + ", ".join(waiting)
            show({"pending": waiting}, text, as_json=as_json)
            raise SystemExit(_PENDING if waiting else 0)
        version = _apply(settings)
    except StoreDown as error:
        fail(str(error))
    show({"version": version, "applied": waiting}, f"The schema is at version {version}.", as_json=as_json)


_SQLITE = "sqlite"


@click.command()
@click.option("--from", "source", required=True, metavar="PLACE", help="Where from: sqlite:DIR or a URL.")
@click.option("--to", "target", required=True, metavar="PLACE", help="Where to: a URL or sqlite:DIR.")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy the embedded store into an empty PostgreSQL database, or back, all of it or nothing.

    A place is sqlite: and a data folder, or postgresql://… of a database. Stop the server first: what it
    takes in meanwhile is not copied. Files are not copied either: the new server needs the folder watchlists
    (with everybody's lists and those of single tenants) and the secret file, or VETTANCE_SECRET.

    Example: vettance copy --from sqlite:./vettance-data --to postgresql://vettance@db.internal/vettance
    """
    places = (_place("--from", source), _place("--to", target))
    if isinstance(places[0], Path) == isinstance(places[1], Path):
        fail("one of the two places is a data folder (sqlite:DIR), the other one a database (postgresql://…)")
    try:
        copied = asyncio.run(_copy(*places))
    except StoreDown as error:
        fail(str(error))
    tables = {one.table: one.rows for one in copied}
    rows = counted_word(sum(tables.values()), "row")
    text = f"Copied {rows} of {counted_word(len(tables), 'table')}, counted on both sides."
    if tables["watchlist_version"]:
        text += " The files of watchlists are not copied: take the folder watchlists along, whole."
    show({"tables": tables, "rows": sum(tables.values())}, text, as_json=as_json)


def _place(option: str, text: str) -> Path | str:
    """Read a place: the path of a store file, or a URL."""
    kind, _, folder = text.partition(":")
    if kind == _SQLITE and folder:
        return store_path(Path(folder))
    if not text.startswith(("postgresql://", "postgres://")):
        fail(f"{option} takes sqlite: and a data folder, or a URL that begins with postgresql://")
    try:
        return read_database_url(text)
    except ValueError as error:
        fail(f"{option} {error}")


async def _copy(source: Path | str, target: Path | str) -> "list[Copied]":
    from vettance.db.copy_to_postgres import copy as copy_out
    from vettance.db.copy_to_sqlite import copy_home
    from vettance.history.segment import SEARCHED_BITS

    def progress(table: str, done: int, total: int) -> None:
        click.echo(f"{table}: {done} of {total}", err=True)

    if isinstance(source, Path):
        return await copy_out(source, str(target), SEARCHED_BITS, progress)
    return await copy_home(source, Path(target), SEARCHED_BITS, progress)


def _pending(settings: Settings) -> list[str]:
    if settings.database_url is None:
        return pending_migrations(store_path(settings.data))
    from vettance.db import postgres_schema  # The driver is loaded where it is used only.

    return asyncio.run(postgres_schema.check(settings.database_url))


def _apply(settings: Settings) -> int:
    if settings.database_url is None:
        return apply_migrations(store_path(settings.data))
    from vettance.db import postgres_schema

    return asyncio.run(postgres_schema.migrate(settings.database_url))
