"""Reads the audit log: holds its chains against their heads, lists entries, replaces erased names."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec

from vettance.audit import sql
from vettance.audit.chain import (
    ERASURE,
    PARTS,
    AuditEntry,
    AuditPart,
    ChainCheck,
    KeptEntry,
    replaced_parts,
    salted,
)
from vettance.db.engine import Row, Store
from vettance.wire.payload import timestamp

_STEP = 500
#: Parts replaced in one commit, for which everybody's writes wait; each is a statement of its own.
_REPLACED_MAX: Final = 40


async def find_fault(store: Store, tenant: str | None = None) -> str | None:
    """Follow every chain, or that of one tenant; returns the first thing that is wrong, or None."""
    for owner, seq, chain in await store.read(sql.select_chains()):
        if tenant not in (None, owner):
            continue
        check = ChainCheck(owner)
        async for one in entries_of(store, owner, seq if chain is not None else None):
            if fault := check.follow(one):
                return fault
        if fault := check.finish(None if chain is None else (seq, chain)):
            return fault
        [(parts,)] = await store.read(sql.count_parts(owner))
        newer = await _count_newer(store, owner, check.count)
        if parts < check.count * len(PARTS) or parts > (check.count + newer) * len(PARTS):
            return f"audit log of {owner}: parts without an entry were inserted"
    for (owner,) in await store.read(sql.select_lost_chains()):
        if tenant in (None, owner):
            return f"audit log of {owner}: the log is missing; of its entries only parts are left"
    return None


async def _count_newer(store: Store, tenant: str, seq: int) -> int:
    """Count what was added while the chain was followed, as far as it matters."""
    return len(await store.read(sql.select_entries(tenant, seq, _STEP)))


async def entries_of(store: Store, tenant: str, last: int | None = None) -> AsyncIterator[KeptEntry]:
    """Yield the entries of a chain, oldest first.

    With `last`, what was added after that place since its head was read is left out.
    """
    after = 0
    while rows := await store.read(sql.select_entries(tenant, after, _STEP)):
        if last is not None and after >= last and await _has_grown(store, tenant, last):
            return
        for one in await _with_parts(store, tenant, rows):
            if last is not None and one.seq > last and await _has_grown(store, tenant, last):
                return
            yield one
        after = rows[-1][1]


async def _has_grown(store: Store, tenant: str, last: int) -> bool:
    """Tell whether the head has moved on: entries behind the old one are new then, and not inserted."""
    rows = await store.read(sql.select_chains())
    return any(owner == tenant and seq > last for owner, seq, _ in rows)


async def newest_of(store: Store, tenant: str, before: int, limit: int) -> list[KeptEntry]:
    """Return entries of a chain before a place, newest first."""
    rows = await store.read(sql.select_newest(tenant, before, limit))
    return await _with_parts(store, tenant, rows)


async def _with_parts(store: Store, tenant: str, rows: Sequence[Row]) -> list[KeptEntry]:
    parts = await store.read(sql.select_parts(tenant, [row[2] for row in rows])) if rows else []
    return sql.kept_of(rows, parts)


def described(one: KeptEntry) -> dict[str, Any]:
    """Write an entry as it is exported."""
    text = {name: part.text for name, part in one.parts.items()}
    return {
        "id": one.id,
        "at": timestamp(one.at_ms),
        "actor": text.get("actor", ""),
        "tenant": None if one.tenant == "*" else one.tenant,
        "action": one.action,
        "subject": text.get("subject", ""),
        "before": _value(text.get("before", "")),
        "after": _value(text.get("after", "")),
    }


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return text  # Something has changed it; what is there is shown.


async def replace_names(
    store: Store, tenant: str, replaced: Callable[[str], str], entry_id: Callable[[], str], now_ms: int
) -> int:
    """Replace names in the log of a tenant, each piece in one commit with the entry that names it.

    Returns how many parts were changed.
    """
    count, after = 0, 0
    while rows := await store.read(sql.select_entries(tenant, after, _STEP)):
        after = rows[-1][1]
        changed: list[tuple[str, AuditPart]] = []
        for one in await _with_parts(store, tenant, rows):
            if one.action == ERASURE:
                continue
            texts = {name: replaced(part.text) for name, part in one.parts.items()}
            changed += [
                (one.id, salted(name, text)) for name, text in texts.items() if text != one.parts[name].text
            ]
        for first in range(0, len(changed), _REPLACED_MAX):
            piece = changed[first : first + _REPLACED_MAX]
            noted = AuditEntry(
                id=entry_id(),
                tenant=tenant,
                at_ms=now_ms,
                action=ERASURE,
                actor="vettance",
                subject="",
                after=replaced_parts(piece),
            )
            statements = [sql.replace_part(tenant, entry, part) for entry, part in piece]
            await store.write(*statements, *sql.record(noted))
        count += len(changed)
    return count
