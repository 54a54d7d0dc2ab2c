"""What rules put on lists: the entries of an event's decision, for the commit of that decision.

A plan is made from the mirror of the lists, and its statements demand that the store agrees. Of processes
that add the same value at the same moment, or the last entry for which there is room, one is first. The
commits of the others are refused, and they plan again with what the store holds by then. An event that is
refused time and again is stored without additions. So every decision is answered, and records what became of
them.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance import clock
from vettance.audit.chain import AuditEntry
from vettance.audit.sql import record
from vettance.db.engine import Statement
from vettance.ids import IdSource
from vettance.lists import sql
from vettance.lists.answers import added_payload
from vettance.lists.entry import (
    VALUE_CHARS_MAX,
    VALUE_KINDS,
    EntryType,
    HostBits,
    ListBook,
    ListEntry,
    ListType,
    canonical_value,
)
from vettance.outbox import MessageType, enqueue
from vettance.rules.rule import ListEffect, Rule
from vettance.tenants.sql import note_change
from vettance.tenants.tenant import LIST_ENTRIES_MAX, Tenant
from vettance.wire.payload import encode, timestamp

#: The part of its time by which an entry may end early before it is extended: an attack of thousands of
#: events a second must not write an entry for each of them.
_SLACK: Final = 10

ADDED: Final = "added"
EXTENDED: Final = "extended"
PRESENT: Final = "present"
#: The event has no such value.
ABSENT: Final = "absent"
#: The lists of the tenant hold as many entries as they may.
FULL: Final = "full"
#: It would have ended before the event was decided.
OVER: Final = "over"
#: Others changed what is on the lists each time that it was tried.
CONTENDED: Final = "contended"

#: How long lists that were full count as full. An attack must not have each of its events look again.
_FULL_MS: Final = 1_000

#: (place of the rule, list, type of the value, what became of it, id of the entry or nothing), as recorded.
RecordedAddition = tuple[int, str, str, str, str]


#: A value on a list of a tenant.
EntryKey = tuple[str, EntryType, str, ListType]


class ListAdditions(NamedTuple):
    """What the rules of one event put on lists: what is recorded, what is written, and the entries.

    `keys` are the values of which the statements demand that the store agrees with the mirror.
    """

    recorded: list[RecordedAddition]
    statements: list[Statement]
    entries: list[ListEntry]
    keys: list[EntryKey]


#: What the store holds of some values.
KnownEntries = Mapping[EntryKey, ListEntry | None]

NOTHING_ADDED: Final = ListAdditions([], [], [], [])
_NOTHING_KNOWN: Final[KnownEntries] = {}
_NOTHING_UNDER_WAY: Final = contextlib.nullcontext()


class _EffectOfEvent(NamedTuple):
    """What one rule of an event puts on a list, at a moment."""

    tenant: str
    place: int
    rule: Rule
    effect: ListEffect
    event_id: str
    now_ms: int
    ends_ms: int


class RuleAdditions:
    """Plans what rules put on lists. `books` is the mirror of the lists, `tenant_of` knows their limits."""

    def __init__(
        self,
        books: dict[str, ListBook],
        ids: IdSource,
        tenant_of: Callable[[str], Tenant | None],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self.now_ms = now_ms
        self._books = books
        self._ids = ids
        self._tenant_of = tenant_of
        #: Entries whose commit is under way, so that simultaneous events make the same one.
        self._pending: dict[EntryKey, ListEntry] = {}
        #: Until when the lists of a tenant count as full.
        self._full_until_ms: dict[str, int] = {}
        #: Tells other processes of what a commit added, before its event is answered.
        self.announce: Callable[[str], Awaitable[None]] | None = None

    def plan(
        self,
        tenant: str,
        running: Sequence[Rule],
        effects: Mapping[int, ListEffect],
        may_act: Iterable[int],
        event: Any,
        event_id: str,
        now_ms: int,
        overruled: ListType | None = None,
        known: KnownEntries = _NOTHING_KNOWN,
        *,
        adding: bool = True,
    ) -> ListAdditions:
        """Return what the rules that act on an event add, at the moment of its decision.

        `event` is of fraud or of AML. What is meant for the list `overruled` is left out: an entry of the
        other list decided against these rules. What is `known` of the store counts more than the mirror.
        Without `adding`, nothing is added, and the store has nothing to refuse.
        """
        plan = ListAdditions([], [], [], [])
        for place in may_act:
            effect = effects.get(place)
            if effect is None or effect.list == overruled:
                continue
            ends_ms = event.received_at_ms + effect.lasts_ms
            wanted = _EffectOfEvent(tenant, place, running[place], effect, event_id, now_ms, ends_ms)
            became, entry_id = self._add(wanted, event, plan, known)
            if plan.keys and not adding:
                became, entry_id = CONTENDED, ""
                plan = ListAdditions(plan.recorded, [], [], [])
            plan.recorded.append((place, effect.list, effect.type, became, entry_id))
        return plan

    def note_full(self, tenant: str) -> None:
        """Note that the lists of a tenant are full; for a moment nothing is added."""
        self._full_until_ms[tenant] = self.now_ms() + _FULL_MS

    def take(self, known: KnownEntries) -> None:
        """Bring the mirror in line with what the store holds."""
        for (tenant, entry_type, value, list_type), entry in known.items():
            book = self._books.setdefault(tenant, ListBook())
            while (held := book.find(entry_type, value, list_type, self.now_ms())) is not None:
                book.drop(held.id)
            if entry is not None:
                book.put(entry)

    def under_way(self, plan: ListAdditions) -> contextlib.AbstractContextManager[None]:
        """Show evaluations what a commit added, when the block ends well; else forget it."""
        return self._under_way(plan) if plan.entries else _NOTHING_UNDER_WAY

    @contextlib.contextmanager
    def _under_way(self, plan: ListAdditions) -> Iterator[None]:
        self._pending.update((_key(entry), entry) for entry in plan.entries)
        try:
            yield
        finally:
            for entry in plan.entries:
                self._pending.pop(_key(entry), None)
        for entry in plan.entries:
            self._books.setdefault(entry.tenant, ListBook()).put(entry)

    def _add(
        self, wanted: _EffectOfEvent, event: Any, plan: ListAdditions, known: KnownEntries
    ) -> tuple[str, str]:
        entry_type, list_type = EntryType(wanted.effect.type), ListType(wanted.effect.list)
        value = _value_of(entry_type, event)
        if value is None:
            return ABSENT, ""
        if wanted.ends_ms <= wanted.now_ms:
            return OVER, ""
        key = (wanted.tenant, entry_type, value, list_type)
        book = self._books.get(wanted.tenant)
        # Of one event's rules the last word counts, then that of simultaneous events.
        found = next((entry for entry in reversed(plan.entries) if _key(entry) == key), None)
        found = found or known.get(key) or self._pending.get(key)
        if found is None and book is not None and key not in known:
            found = book.find(entry_type, value, list_type, wanted.now_ms)
        if found is None:
            if self._is_full(wanted.tenant, wanted.now_ms, book):
                return FULL, ""
            new = self._new_entry(wanted, entry_type, list_type, value)
            plan.statements.extend(sql.insert_entry(new, self.entries_max(wanted.tenant)))
            plan.statements.extend(self._message(new, wanted.now_ms))
            self._put(wanted, new, ADDED, plan)
            return ADDED, new.id
        if found.expires_at_ms is None or wanted.ends_ms - found.expires_at_ms <= (
            wanted.effect.lasts_ms // _SLACK
        ):
            if key in self._pending:
                # The commit that adds it may yet fail.
                plan.keys.append(key)
                plan.statements.append(sql.require_entry(wanted.tenant, found.id))
            return PRESENT, found.id
        longer = msgspec.structs.replace(found, expires_at_ms=wanted.ends_ms, updated_at_ms=wanted.now_ms)
        plan.statements.append(sql.extend_entry(longer))
        self._put(wanted, longer, EXTENDED, plan)
        return EXTENDED, found.id

    def entries_max(self, tenant: str) -> int:
        """Return how many entries the lists of a tenant may hold."""
        known = self._tenant_of(tenant)
        return LIST_ENTRIES_MAX if known is None else known.list_entries

    def _is_full(self, tenant: str, now_ms: int, book: ListBook | None) -> bool:
        if now_ms < self._full_until_ms.get(tenant, 0):
            return True
        if book is None or len(book) < self.entries_max(tenant):
            return False
        book.forget(now_ms)
        if len(book) < self.entries_max(tenant):
            return False
        self._full_until_ms[tenant] = now_ms + _FULL_MS
        return True

    def _new_entry(
        self, wanted: _EffectOfEvent, entry_type: EntryType, list_type: ListType, value: str
    ) -> ListEntry:
        return ListEntry(
            id=self._ids.make("lst", wanted.now_ms),
            tenant=wanted.tenant,
            type=entry_type,
            value=value,
            list_type=list_type,
            reason=f"Rule {wanted.rule.id}: {wanted.rule.explanation}",
            expires_at_ms=wanted.ends_ms,
            created_at_ms=wanted.now_ms,
            updated_at_ms=wanted.now_ms,
        )

    def _put(self, wanted: _EffectOfEvent, entry: ListEntry, became: str, plan: ListAdditions) -> None:
        now_ms = wanted.now_ms
        plan.entries.append(entry)
        plan.keys.append(_key(entry))
        plan.statements.append(note_change(sql.AREA, entry.tenant, entry.id, now_ms))
        plan.statements.extend(record(self._audited(wanted, entry, became)))

    def _message(self, entry: ListEntry, now_ms: int) -> tuple[Statement, ...]:
        """Return what tells subscribers of a new entry."""
        if entry.list_type is not ListType.BLOCK:
            return ()
        return enqueue(
            entry.tenant,
            MessageType.BLOCKLIST_ENTRY_ADDED,
            self._ids.make("msg", now_ms),
            entry.id,
            now_ms,
            encode(added_payload(entry)),
        )

    def _audited(self, wanted: _EffectOfEvent, entry: ListEntry, became: str) -> AuditEntry:
        assert entry.expires_at_ms is not None
        return AuditEntry(
            id=self._ids.make("aud", wanted.now_ms),
            tenant=entry.tenant,
            at_ms=wanted.now_ms,
            action=f"list entry {became} by rule",
            actor=f"rule {wanted.rule.id}",
            subject=entry.id,
            after={
                "type": entry.type.value,
                "value": entry.value,
                "listType": entry.list_type.value,
                "reason": entry.reason,
                "expiresAt": timestamp(entry.expires_at_ms),
                "eventId": wanted.event_id,
            },
        )


def _key(entry: ListEntry) -> EntryKey:
    return entry.tenant, entry.type, entry.value, entry.list_type


def _value_of(entry_type: EntryType, event: Any) -> str | None:
    """Return what an event has of a type as lists hold it, the first of several."""
    value = next(filter(None, VALUE_KINDS[entry_type].values_of(event)), None)
    if value is None or len(value) > VALUE_CHARS_MAX:
        return None
    try:
        return canonical_value(entry_type, value)
    except HostBits:
        return None
