"""The command line of the audit log."""

from typing import Any

import click

from vettance.audit.audited_store import AuditedStore
from vettance.audit.read_log import described, entries_of, find_fault
from vettance.audit.sql import select_chains
from vettance.commands import counted_word, data_option, fail, find_tenant, json_option, run_with_store, show
from vettance.db.engine import Store
from vettance.settings.settings import Settings
from vettance.wire.payload import encode


@click.group()
def audit() -> None:
    """Check and export the log of who changed, revealed or exported what.

    Example: vettance audit verify
    """


@audit.command("verify")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only the log of this tenant.")
@json_option
@data_option
def verify(tenant_id: str | None, as_json: bool, data: str | None) -> None:
    """Follow the log from its beginning, and find any entry that was changed, inserted or removed.

    Ends with exit code 1 and one line when there is one. Safe while a server runs.

    Example: vettance audit verify --data ./vettance-data
    """

    async def work(store: Store, _settings: Settings) -> tuple[str | None, int]:
        if tenant_id is not None:
            await find_tenant(store, tenant_id)
        chains = [row for row in await store.read(select_chains()) if tenant_id in (None, row[0])]
        return await find_fault(store, tenant_id), sum(row[1] for row in chains)

    fault, count = run_with_store(data, work)
    if fault is not None:
        fail(fault, reason=fault)
    show(
        {"verified": True, "entries": count},
        f"{counted_word(count, 'entry')}, all as written.",
        as_json=as_json,
    )


@audit.command("export")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only the log of this tenant.")
@json_option
@data_option
def export(tenant_id: str | None, as_json: bool, data: str | None) -> None:  # noqa: ARG001
    """Write the log to standard output as JSON lines, oldest first, with --json or without.

    Example: vettance audit export --tenant ten_0190… > audit.jsonl
    """

    async def work(store: Store, _settings: Settings) -> None:
        if tenant_id is not None:
            await find_tenant(store, tenant_id)
        tenants = [tenant_id] if tenant_id else [row[0] for row in await store.read(select_chains())]
        streams = [entries_of(store, tenant) for tenant in tenants]
        heads: list[Any] = [await anext(stream, None) for stream in streams]
        while True:
            # Ids begin with their moment: the oldest of what comes next in each chain.
            waiting = [(one.at_ms, one.id, place) for place, one in enumerate(heads) if one is not None]
            if not waiting:
                break
            place = min(waiting)[2]
            click.echo(encode(described(heads[place])).decode())
            heads[place] = await anext(streams[place], None)
        if isinstance(store, AuditedStore):
            await store.record()

    run_with_store(data, work)
