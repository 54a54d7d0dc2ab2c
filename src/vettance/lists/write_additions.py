"""Writes events with what their rules put on lists, and plans again where the store does not agree."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from vettance.db.engine import Clash, Lost, Row, Statement, Store
from vettance.lists import sql
from vettance.lists.entry import ListEntry
from vettance.lists.rule_additions import EntryKey, KnownEntries, ListAdditions, RuleAdditions

#: How often an event is written whose plan the store does not agree with; the last time without additions.
#: A refusal tells what others have made of one value at least, and an event has few.
_TRIES: Final = 8

Read = Callable[[Statement], Awaitable[list[Row]]]
#: A plan, and everything that is written of its event.
Written = tuple[ListAdditions, Sequence[Statement]]


class Again(Protocol):
    """Plans an event anew, with additions or without."""

    def __call__(self, *, adding: bool = True) -> Written: ...


def write_additions(
    store: Store, additions: RuleAdditions, written: Written, again: Again
) -> Awaitable[object]:
    """Write an event with its plan; with `again`, which plans anew, where the store does not agree.

    Raises as `Store.write` does; `Clash` and `Lost` only for what is written with the plan.
    """
    plan, statements = written
    if not plan.keys:
        return store.write(*statements)
    return _write(store, additions, plan, statements, again)


async def _write(
    store: Store,
    additions: RuleAdditions,
    plan: ListAdditions,
    statements: Sequence[Statement],
    again: Again,
) -> None:
    for left in reversed(range(_TRIES)):
        try:
            with additions.under_way(plan):
                await store.write(*statements)
        except (Clash, Lost):
            if not left:
                raise
            additions.take(await look_up(additions, plan, store.read))
            plan, statements = again(adding=left > 1)
        else:
            break
    await announce(additions, plan)


async def announce(additions: RuleAdditions, plan: ListAdditions) -> None:
    """Have other processes look for what a commit has added."""
    if plan.entries and additions.announce is not None:
        await additions.announce(plan.entries[0].tenant)


async def look_up(additions: RuleAdditions, plan: ListAdditions, read: Read) -> KnownEntries:
    """Return what the store holds of the values of a plan; notes whether the lists are full."""
    known: dict[EntryKey, ListEntry | None] = {}
    for key in dict.fromkeys(plan.keys):
        tenant, entry_type, value, list_type = key
        now_ms = additions.now_ms()
        rows = await read(sql.select_by_value(tenant, entry_type, value, now_ms))
        same = [entry for entry in map(sql.entry_of, rows) if entry.list_type is list_type]
        known[key] = same[0] if same else None
        counted = await read(sql.count_live(tenant, now_ms))
        if counted and counted[0][0] >= additions.entries_max(tenant):
            additions.note_full(tenant)
    return known
