"""The log of acts: entries in the commit of their change, chains that show an edit, erasure in them."""

import asyncio

import pytest

from vettance.audit import sql
from vettance.audit.act import Act, acting, describe
from vettance.audit.audited_store import AuditedStore
from vettance.audit.chain import ERASURE, AuditEntry, without_secrets
from vettance.audit.read_log import described, entries_of, find_fault, newest_of, replace_names
from vettance.db.engine import EVERYBODY, Lost, Statement, Store, everyone
from vettance.db.tables import AUDIT_ENTRY, AUDIT_HEAD, AUDIT_PART, CHANGE, Table
from vettance.ids import IdSource
from vettance.tenants.sql import note_change

IDS = IdSource()


def entry(tenant: str, subject: str, **more: object) -> AuditEntry:
    made = IDS.make("aud")
    return AuditEntry(
        id=made,
        tenant=tenant,
        at_ms=1_800_000_000_000,
        action="test",
        actor="ada",
        subject=subject,
        after=more or None,
    )


async def fill(store: Store, tenant: str, count: int = 3) -> list[str]:
    for number in range(count):
        await store.write(*sql.record(entry(tenant, f"thing {number}", name="Ann Smith", number=number)))
    return [one.id async for one in entries_of(store, tenant)]


async def test_entries_come_back_in_order_and_whole(store: Store, tenant: str) -> None:
    await fill(store, tenant)
    kept = [described(one) async for one in entries_of(store, tenant)]
    assert [one["subject"] for one in kept] == ["thing 0", "thing 1", "thing 2"]
    assert kept[1]["after"] == {"name": "Ann Smith", "number": 1}
    assert set(kept[0]) == {"id", "at", "actor", "tenant", "action", "subject", "before", "after"}
    assert [one.seq for one in await newest_of(store, tenant, 1 << 60, 2)] == [3, 2]
    assert await find_fault(store, tenant) is None


async def test_simultaneous_writes_make_one_chain(store: Store, tenant: str) -> None:
    await asyncio.gather(*(store.write(*sql.record(entry(tenant, str(n)))) for n in range(30)))
    assert len([one async for one in entries_of(store, tenant)]) == 30
    assert await find_fault(store, tenant) is None


async def tamper(store: Store, table: Table, text: str, *args: object) -> None:
    if type(store).__name__ == "PostgresStore":
        pytest.skip("the service's role cannot do this at all; see below")
    [changed] = await store.write(everyone(table, text, args))
    assert changed


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (AUDIT_ENTRY, "DELETE FROM audit_entry WHERE tenant = ? AND seq = 3"),
        (AUDIT_ENTRY, "DELETE FROM audit_entry WHERE tenant = ? AND seq = 1"),
        (AUDIT_ENTRY, "UPDATE audit_entry SET action = 'other' WHERE tenant = ? AND seq = 2"),
        (AUDIT_ENTRY, "UPDATE audit_entry SET at_ms = 1 WHERE tenant = ? AND seq = 3"),
        (AUDIT_ENTRY, "UPDATE audit_entry SET id = 'aud_x' WHERE tenant = ? AND seq = 3"),
        (
            AUDIT_ENTRY,
            "INSERT INTO audit_entry SELECT tenant, 4, 'aud_y', at_ms, action, digests, chain "
            "FROM audit_entry WHERE tenant = ? AND seq = 3",
        ),
        (AUDIT_ENTRY, "DELETE FROM audit_entry WHERE tenant = ?"),
        (AUDIT_PART, "UPDATE audit_part SET content = 'eve' WHERE tenant = ? AND name = 'actor'"),
        (AUDIT_PART, "UPDATE audit_part SET salt = 'x' WHERE tenant = ? AND name = 'after'"),
        (AUDIT_PART, "DELETE FROM audit_part WHERE tenant = ? AND name = 'before'"),
        (
            AUDIT_PART,
            "INSERT INTO audit_part SELECT tenant, 'aud_z', name, salt, content "
            "FROM audit_part WHERE tenant = ? AND entry = (SELECT MAX(entry) FROM audit_part)",
        ),
        (AUDIT_HEAD, "DELETE FROM audit_head WHERE tenant = ?"),
        (AUDIT_HEAD, "UPDATE audit_head SET seq = seq - 1 WHERE tenant = ?"),
    ],
)
async def test_every_change_shows(store: Store, tenant: str, table: Table, text: str) -> None:
    await fill(store, tenant)
    await tamper(store, table, text, tenant)
    fault = await find_fault(store, tenant)
    assert fault is not None
    assert tenant in fault
    assert "\n" not in fault


async def remove_log(store: Store, tenant: str) -> None:
    """Remove the entries of a tenant and their head, as somebody may who owns the database."""
    if type(store).__name__ == "PostgresStore":
        # What the role of the service may do once a deletion of the tenant is noted.
        await store.write(note_change("tenant_deleted", tenant, tenant, 1))
    for table in (AUDIT_ENTRY, AUDIT_HEAD):
        text = f"DELETE FROM {table} WHERE tenant = ?"
        [changed] = await store.write(everyone(table, text, (tenant,)))
        assert changed


async def test_a_log_that_is_gone_with_its_head_is_missed(store: Store, tenant: str) -> None:
    await fill(store, tenant)
    await fill(store, f"{tenant}-kept")
    await remove_log(store, tenant)
    for asked in (tenant, None):
        fault = await find_fault(store, asked)
        assert fault is not None
        assert fault.startswith(f"audit log of {tenant}: the log is missing")
    assert await find_fault(store, f"{tenant}-kept") is None
    await store.write(everyone(AUDIT_PART, "DELETE FROM audit_part WHERE tenant = ?", (tenant,)))


async def test_the_role_of_the_service_can_only_append_in_postgres(store: Store, tenant: str) -> None:
    if type(store).__name__ != "PostgresStore":
        pytest.skip("the embedded store has no roles")
    await fill(store, tenant)
    for text in (
        "DELETE FROM audit_entry WHERE tenant = ?",
        "UPDATE audit_entry SET action = '' WHERE tenant = ?",
    ):
        assert await store.write(Statement(text, (tenant,), tenant=tenant, tables=AUDIT_ENTRY)) == [0]
        assert await store.write(everyone(AUDIT_ENTRY, text, (tenant,))) == [0]
    assert await find_fault(store, tenant) is None


async def test_an_erasure_replaces_names_and_keeps_the_chain(store: Store, tenant: str) -> None:
    await fill(store, tenant)
    count = await replace_names(
        store, tenant, lambda text: text.replace("Ann Smith", "erased"), lambda: IDS.make("aud"), 2
    )
    assert count == 3
    kept = [described(one) async for one in entries_of(store, tenant)]
    assert "Ann Smith" not in str(kept)
    assert kept[0]["after"]["name"] == "erased"
    assert await find_fault(store, tenant) is None
    # Twice, with what replaced it, and with entries after it.
    await fill(store, tenant)
    await replace_names(
        store, tenant, lambda text: text.replace("erased", "gone"), lambda: IDS.make("aud"), 3
    )
    assert await find_fault(store, tenant) is None


async def test_an_erasure_of_much_is_of_several_commits_and_keeps_the_chain(
    store: Store, tenant: str
) -> None:
    await fill(store, tenant, 45)
    count = await replace_names(
        store, tenant, lambda text: text.replace("Ann Smith", "erased"), lambda: IDS.make("aud"), 2
    )
    assert count == 45
    kept = [described(one) async for one in entries_of(store, tenant)]
    assert sum(one["action"] == ERASURE for one in kept) == 2
    assert "Ann Smith" not in str(kept)
    assert await find_fault(store, tenant) is None


async def test_what_replaced_a_name_is_held_as_well(store: Store, tenant: str) -> None:
    await fill(store, tenant)
    await replace_names(
        store, tenant, lambda text: text.replace("Ann Smith", "erased"), lambda: IDS.make("aud"), 2
    )
    await tamper(
        store, AUDIT_PART, "UPDATE audit_part SET content = 'x' WHERE tenant = ? AND name = 'after'", tenant
    )
    assert await find_fault(store, tenant) is not None


async def test_an_act_is_recorded_once_in_the_commit_of_its_first_change(store: Store, tenant: str) -> None:
    audited = AuditedStore(store, IDS)
    change = note_change("test", tenant, "x", 1)
    await audited.write(change)
    assert [one async for one in entries_of(store, tenant)] == [], "the service's own work is no act"
    impossible = everyone(
        CHANGE, "UPDATE change SET at_ms = 1 WHERE tenant = ? AND area = 'none'", (tenant,), rows=1
    )
    with acting(Act("ada", "POST /things", after={"password": "hidden", "name": "lamp"})):
        with pytest.raises(Lost):
            await audited.write(change, impossible)
        describe(subject="thing 7", before={"name": "chair"})
        assert len(await audited.write(change, change)) == 2
        await audited.write(change)
    [one] = [described(one) async for one in entries_of(store, tenant)]
    assert (one["actor"], one["action"], one["subject"]) == ("ada", "POST /things", "thing 7")
    assert one["before"] == {"name": "chair"}
    assert one["after"] == {"name": "lamp", "password": "(not logged)"}


async def test_what_concerns_no_tenant_has_a_chain_of_its_own(store: Store) -> None:
    audited = AuditedStore(store, IDS, Act("ada", "look"))
    await audited.record()
    last = [described(one) async for one in entries_of(store, EVERYBODY)][-1]
    assert (last["tenant"], last["action"]) == (None, "look")


def test_secrets_and_long_texts_are_left_out() -> None:
    said = {"apiKey": "vtc_1", "nested": [{"signingSecret": "s"}], "document": "x" * 501, "throttle": 3}
    kept = without_secrets(said)
    assert kept["throttle"] == 3
    assert "vtc_1" not in str(kept)
    assert kept["nested"] == [{"signingSecret": "(not logged)"}]
    assert kept["document"].startswith("(a text of 501 characters")
