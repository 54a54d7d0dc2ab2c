"""The command that brings the store to the newest schema."""

import click

from vettance.commands import data_option, fail, json_option, settings_of, show
from vettance.db.engine import StoreDown
from vettance.db.migrate import check as pending_migrations
from vettance.db.migrate import migrate as apply_migrations
from vettance.db.sqlite import store_path


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when migrations are pending.")
@json_option
@data_option
def migrate(check: bool, as_json: bool, data: str | None) -> None:
    """Bring the store to the newest schema. `vettance serve` does this by itself at its start.

    Example: vettance migrate --check --data ./vettance-data
    """
    path = store_path(settings_of(data).data)
    try:
        waiting = pending_migrations(path)
        if check:
            text = "The schema is up to date." if not waiting else "Pending: " + ", ".join(waiting)
            show({"pending": waiting}, text, as_json=as_json)
            raise SystemExit(bool(waiting))
        version = apply_migrations(path)
    except StoreDown as error:
        fail(str(error))
    show({"version": version, "applied": waiting}, f"The schema is at version {version}.", as_json=as_json)
