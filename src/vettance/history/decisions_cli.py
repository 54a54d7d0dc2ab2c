"""The command line of decisions: compute one again from its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from vettance.commands import data_option, json_option, run_for_tenant, show, show_table
from vettance.rules.version_cli import tenant_option

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.decisions.recompute import Recomputation


@click.group()
def decisions() -> None:
    """Compute stored decisions again.

    Example: vettance decisions replay evt_0190… --tenant ten_0190…
    """


@decisions.command("replay")
@click.argument("decision_id", metavar="ID")
@tenant_option
@json_option
@data_option
def replay(decision_id: str, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Compute decision ID again from its record: identical, or exactly what differs (exit code 1).

    The event is read anew and the rules that decided it run; what they knew of the past is taken from the
    record. Nothing is changed.

    Example: vettance decisions replay evt_0190… --tenant ten_0190…
    """
    from vettance.decisions.active_rulesets import RuleCache
    from vettance.decisions.features import fraud_schema
    from vettance.decisions.load_ruleset import find_version
    from vettance.decisions.recompute import recompute
    from vettance.decisions.sql import select_decision, stored_of
    from vettance.rules.ruleset import compile_document

    async def work(store: Store) -> Recomputation:
        rows = await store.read(select_decision(tenant_id, decision_id))
        if not rows:
            raise click.ClickException(f"the tenant has no decision {decision_id}")
        stored = stored_of(rows[0])
        schema = fraud_schema()
        cache = RuleCache(lambda document: compile_document(document, schema))
        try:
            active = await find_version(store, cache, tenant_id, stored.record.ruleset_version)
        except LookupError as error:
            raise click.ClickException(str(error)) from None
        return recompute(stored, active)

    found = run_for_tenant(data, tenant_id, work)
    rows = [
        {"value": one.name, "recorded": one.recorded, "computed": one.computed} for one in found.differences
    ]
    if as_json:
        answer = {"identical": found.is_identical, "differences": rows, "unreadable": found.unreadable}
        show(answer, "", as_json=True)
    elif found.is_identical:
        click.echo("Computed again: identical.")
    else:
        click.echo(f"Computed again: {found.unreadable or 'not identical'}.")
        show_table("What differs", rows, as_json=False)
    if not found.is_identical:
        raise SystemExit(1)
