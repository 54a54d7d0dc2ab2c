"""The command that brings the store to the newest schema."""

import asyncio

import click

from vettance.commands import data_option, fail, json_option, settings_of, show
from vettance.db.engine import StoreDown
from vettance.db.migrate import check as pending_migrations
from vettance.db.migrate import migrate as apply_migrations
from vettance.db.sqlite import store_path
from vettance.settings import Settings


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when migrations are pending.")
@json_option
@data_option
def migrate(check: bool, as_json: bool, data: str | None) -> None:
    """Bring the store to the newest schema. `vettance serve` does this by itself at its start.

    Example: vettance migrate --check --data ./vettance-data
    """
    settings = settings_of(data)
    try:
        waiting = _pending(settings)
        if check:
            text = "The schema is up to date." if not waiting else "Pending: " + ", ".join(waiting)
            show({"pending": waiting}, text, as_json=as_json)
            raise SystemExit(bool(waiting))
        version = _apply(settings)
    except StoreDown as error:
        fail(str(error))
    show({"version": version, "applied": waiting}, f"The schema is at version {version}.", as_json=as_json)


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
