"""The command line of retention and erasure."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Final

import click

from vettance import clock
from vettance.commands import (
    counted_word,
    data_option,
    fail,
    find_tenant,
    has_store,
    json_option,
    open_store,
    settings_of,
    show,
)
from vettance.db.engine import Lost, Store, StoreDown
from vettance.retention.stored_texts import AML, OPTIONS
from vettance.settings.settings import Settings
from vettance.wire.payload import decode, encode, timestamp

#: Larger stores are compacted when that is asked for: this one takes about ten seconds.
_COMPACT_BYTES_MAX: Final = 1024 * 1024 * 1024

if TYPE_CHECKING:
    from vettance.fairness.isolation import WorkFailure
    from vettance.retention.erasure import ErasureResult
    from vettance.tenants.tenant import Tenant


@click.group()
def retention() -> None:
    """Remove data whose time is over (VETTANCE_KEEP_… in docs/settings.md).

    Example: vettance retention run --dry-run
    """


@retention.command("run")
@click.option("--dry-run", is_flag=True, help="Count what would be removed and remove nothing.")
@json_option
@data_option
def run(dry_run: bool, as_json: bool, data: str | None) -> None:
    """Remove what is older than the settings keep. Safe beside a running service; run it daily.

    Example: vettance retention run --dry-run
    """
    from vettance.retention.expiry import Retainer

    async def work() -> tuple[dict[str, int], tuple[WorkFailure, ...]]:
        async with open_store(data) as (store, settings):
            retainer = Retainer(store, settings.keep, clock.now_ms)
            return await retainer.run(dry_run=dry_run), retainer.failing

    removed, failing = asyncio.run(work())
    word = "would be removed" if dry_run else "removed"
    text = "\n".join(f"{count:,} {name.replace('_', ' ')} {word}." for name, count in removed.items())
    failed = [{"of": one.key, "error": one.error} for one in failing]
    show({"removed": removed, "dryRun": dry_run, "failed": failed}, text, as_json=as_json)
    if failing:
        fail(f"not all was removed of {', '.join(one.key for one in failing)}; the log above says why")


@retention.command("compact")
@json_option
@data_option
def compact(as_json: bool, data: str | None) -> None:
    """Write the embedded store anew, without what is left in freed space. Stop the server first.

    Takes about a second for each 100 MB, and as much room again as the store has meanwhile.

    Example: vettance retention compact
    """
    from vettance.db.sqlite import store_path
    from vettance.db.vacuum import compact as write_anew

    settings = settings_of(data)
    if settings.database_url is not None:
        fail("the store is a PostgreSQL database: run `VACUUM FULL` there, which locks each table meanwhile")
    if not has_store(settings):
        fail(f"there is no store in {settings.data}")
    try:
        if not write_anew(store_path(settings.data)):
            fail("a server is using this folder; stop it first")
    except StoreDown as error:
        fail(str(error))
    show({"compactedAt": timestamp(clock.now_ms())}, "The store is compact.", as_json=as_json)


@click.group()
def customer() -> None:
    """Answer requests of the customers of a tenant.

    Example: vettance customer erase --tenant ten_0190… --external-id c-1001
    """


@customer.command("erase")
@click.option("--tenant", required=True, metavar="ID", help="Whose customer.")
@click.option("--external-id", required=True, help="The customer, as events name them.")
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(OPTIONS),
    help="What is kept otherwise: `aml` records too, by your own judgement of the law; entries of `lists`.",
)
@click.option(
    "--email",
    "emails",
    multiple=True,
    metavar="ADDRESS",
    help="An address of the customer that no event tells any more, after an earlier erasure say.",
)
@click.option(
    "--anywhere",
    is_flag=True,
    help="Erase the id also where only texts hold it, and no customer is called so.",
)
@json_option
@data_option
def erase(
    tenant: str,
    external_id: str,
    also: tuple[str, ...],
    emails: tuple[str, ...],
    anywhere: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Replace a customer's id and e-mail addresses by pseudonyms everywhere, for good.

    AML records, which the law has kept, and entries of lists stay and are counted in the answer, unless
    --also names them.

    Example: vettance customer erase --tenant ten_0190… --external-id c-1001
    """
    from vettance.retention.erasure import Eraser
    from vettance.velocity.sync.snapshot_store import SnapshotStore
    from vettance.webhooks.secret_check import prove_secret

    if not external_id.strip():
        fail("--external-id is empty; nothing was erased")

    async def work() -> tuple[ErasureResult, Settings]:
        async with open_store(data) as (store, settings):
            await find_tenant(store, tenant)
            eraser = Eraser(store, await prove_secret(store, settings), clock.now_ms())
            is_customer = await eraser.is_customer(tenant, external_id)
            if not anywhere and not is_customer:
                fail(
                    f"no event, case or list of this tenant has a customer {external_id}; nothing was "
                    "erased. If texts alone still name the customer, add --anywhere, which erases the word "
                    "from all of them"
                )
            erased = await eraser.erase(tenant, external_id, also, emails, is_customer=is_customer)
            # A running service does so itself, too; without one, the next start makes its memory of the log.
            memory = settings.data / "memory"
            for folder in (memory, *([memory / "aml"] if AML in also else [])):
                SnapshotStore(folder).remove(tenant)
            return erased, settings

    try:
        erased, settings = asyncio.run(work())
    except Lost as error:
        fail(str(error))
    if not erased.known:
        fail(f"nothing of this tenant names {external_id}; nothing was erased")
    events, rows = counted_word(erased.events, "event"), counted_word(erased.rows, "other row")
    lines = [f"{events} and {rows} now say {erased.pseudonym}.", "Kept:"]
    lines += [
        f"  {'' if one.count is None else f'{one.count:,} '}{one.what}: {one.why}." for one in erased.kept
    ]
    compacted_at = timestamp(clock.now_ms()) if _compacted(settings) else None
    rest = "All files of the store are written anew: what was erased is gone from them."
    if compacted_at is None:
        rest = (
            "Traces may be left in freed space until it is used again. To have them gone, stop the server "
            "and run `vettance retention compact` (on PostgreSQL: `VACUUM FULL`)."
        )
    answer = {**decode(encode(erased)), "compactedAt": compacted_at}
    show(answer, "\n".join([*lines, rest]), as_json=as_json)


def _compacted(settings: Settings) -> bool:
    """Write a store anew that no server uses and that is not large; tells whether that was done."""
    from vettance.db.sqlite import store_path
    from vettance.db.vacuum import compact as write_anew

    path = store_path(settings.data)
    if settings.database_url is not None or path.stat().st_size > _COMPACT_BYTES_MAX:
        return False
    try:
        return write_anew(path)
    except StoreDown:
        return False  # No room, say. The erasure is done all the same.


#: How the confirmation of a deletion calls what most tables of a tenant hold; it adds up all others.
_NOUNS: Final = {
    "event": "event",
    "feedback": "label",
    "list_entry": "list entry",
    "aml_event": "AML event",
    "aml_case": "AML case",
    "aml_screening": "screening",
    "delivery": "webhook",
    "job": "job",
    "watchlist_version": "watchlist version",
    "api_key": "API key",
}


async def count_tenant(store: Store, tenant_id: str) -> tuple[Tenant, dict[str, int]]:
    """Return a tenant with how many rows of each table are its own, or end the command."""
    from vettance.retention.tenant_deletion import TenantDeleter

    found = await find_tenant(store, tenant_id)
    return found, await TenantDeleter(store, clock.now_ms).count(tenant_id)


async def delete_tenant(store: Store, settings: Settings, tenant_id: str) -> dict[str, int]:
    """Delete a tenant from the store, from the data folder and from Redis; return the rows of each table."""
    from vettance.deployment.connect import counters_of
    from vettance.redis_link.down import StateDown
    from vettance.retention.tenant_deletion import TenantDeleter
    from vettance.velocity.sync.snapshot_store import SnapshotStore
    from vettance.watchlists.list_store import shelf_path

    await find_tenant(store, tenant_id)
    counters = counters_of(settings, b"")

    async def clear() -> None:
        for folder in ("memory", "memory/aml"):
            SnapshotStore(settings.data / folder).remove(tenant_id)
        shutil.rmtree(shelf_path(settings.data, tenant_id), ignore_errors=True)
        await counters.forget(tenant_id)

    try:
        return await TenantDeleter(store, clock.now_ms, clear).delete(tenant_id)
    except StateDown:
        fail("Redis cannot be reached; call it again when it can, to delete the rest")
    finally:
        await counters.close()


def shown_rows(counts: dict[str, int]) -> str:
    """Write how many rows there are of what a tenant has."""
    said = [counted_word(counts[name], noun) for name, noun in _NOUNS.items() if counts.get(name)]
    others = sum(count for name, count in counts.items() if name not in _NOUNS)
    return ", ".join([*said, counted_word(others, "row") + " of other tables"])
