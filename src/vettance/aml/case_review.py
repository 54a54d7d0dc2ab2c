"""Review: what officers do with cases. Each act is read, thought and written at once, or refused."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from vettance import clock
from vettance.aml import case_list_sql, sql, timeline_sql
from vettance.aml.answers import CaseEvent, CaseRecord, alert_answer, case_members, timeline_entry
from vettance.aml.case import (
    Case,
    CaseState,
    CaseStep,
    OfficerSettings,
    Resolution,
    assign,
    reject,
    resolve,
)
from vettance.db.engine import Lost, Row, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import is_id
from vettance.tenants.sql import note_change
from vettance.wire.payload import decode, timestamp

EVENTS_MAX = 1_000  # Events shown with a case; a report of more would not be read.
EVENTS_BYTES_MAX = 4 * 1024 * 1024  # The same in bytes, of which an event may take one megabyte.
_EVENTS_ASKED = 50
_TRIES = 5


class Reviewer:
    """Finds cases of a tenant and moves them on."""

    def __init__(
        self,
        store: Store,
        reload: Callable[[str, str], Awaitable[None]],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._reload = reload
        self._now_ms = now_ms

    async def find(self, tenant: str, case_id: str) -> Case:
        """Return a case. Raises `NotFound` when it is absent or another tenant's."""
        rows = await self._store.read(sql.select_case(tenant, case_id)) if is_id(case_id, "cas") else []
        if not rows:
            raise NotFound
        return sql.case_of(rows[0])

    async def record(self, tenant: str, case_id: str) -> CaseRecord:
        """Return a case with its alerts, the events behind them and its timeline. Raises `NotFound`."""
        case = await self.find(tenant, case_id)
        alerts, events, entries = await asyncio.gather(
            self._store.read(sql.select_case_alerts(tenant, case_id)),
            self._store.read(sql.select_events_of_case(tenant, case_id, EVENTS_MAX)),
            self._store.read(timeline_sql.select_entries(tenant, case_id)),
        )
        known = await priorities_of(self._store, tenant, [case_id])
        return CaseRecord(
            **case_members(case, known.get(case_id)),
            alerts=[alert_answer(sql.alert_of(row)) for row in alerts],
            events=_events(events, await self._sent(tenant, list(dict.fromkeys(row[2] for row in events)))),
            timeline=[timeline_entry(timeline_sql.entry_of(row)) for row in entries],
        )

    async def _sent(self, tenant: str, ids: Sequence[str]) -> dict[str, bytes]:
        """Return what was sent of the first of some events, as many as may be shown."""
        sent: dict[str, bytes] = {}
        for start in range(0, len(ids), _EVENTS_ASKED):
            sent.update(await self._store.read(sql.select_sent(tenant, ids[start : start + _EVENTS_ASKED])))
            if sum(map(len, sent.values())) >= EVENTS_BYTES_MAX:
                break
        return sent

    async def assign(
        self, tenant: str, case_id: str, assignee: str | None, officer: str, seen: str | None = None
    ) -> Case:
        """Give a case to an officer. Raises `NotFound` or `Conflict`.

        Here and below, `seen` is the `updatedAt` of the case that the officer looked at: when the case has
        changed since, the act is refused with `changed_meanwhile`. None acts on the case as it is.
        """
        return await self._move(tenant, case_id, lambda case, at: assign(case, assignee, officer, at), seen)

    async def note(self, tenant: str, case_id: str, text: str, officer: str) -> Case:
        """Write a note on a case, whatever else becomes of it. Raises `NotFound`.

        A closed case takes notes too: what is learnt later belongs to it.
        """
        await self.find(tenant, case_id)
        try:
            await self._store.write(*timeline_sql.add_note(tenant, case_id, officer, text, self._now_ms()))
        except Lost:
            raise NotFound from None
        return await self.find(tenant, case_id)

    async def reject(
        self, tenant: str, case_id: str, notes: str, officer: str, seen: str | None = None
    ) -> Case:
        """Turn a proposed resolution down. Raises `NotFound` or `Conflict`."""
        return await self._move(tenant, case_id, lambda case, at: reject(case, notes, officer, at), seen)

    async def resolve(
        self,
        tenant: str,
        case_id: str,
        resolution: Resolution,
        notes: str,
        officer: str,
        signer: str,
        seen: str | None = None,
    ) -> Case:
        """Resolve a case, or propose it where four eyes are needed; `signer` is the id of the key or user.

        Raises `NotFound` or `Conflict`.
        """
        settings = await self.read_settings(tenant)
        return await self._move(
            tenant,
            case_id,
            lambda case, at: resolve(case, resolution, notes, officer, settings, at, signer=signer),
            seen,
        )

    async def read_settings(self, tenant: str) -> OfficerSettings:
        """Return how a tenant's officers work."""
        return sql.settings_of(await self._store.read(sql.select_settings(tenant)))

    async def _move(
        self, tenant: str, case_id: str, act: Callable[[Case, int], CaseStep], seen: str | None = None
    ) -> Case:
        for _ in range(_TRIES):
            before = await self.find(tenant, case_id)
            if seen is not None and timestamp(before.updated_at_ms) != seen:
                raise Conflict("This case has changed since you opened it.", "changed_meanwhile")
            now_ms = max(
                self._now_ms(), before.updated_at_ms + 1
            )  # So that every change can be distinguished.
            step = act(before, now_ms)
            statements = [
                sql.update_case(tenant, before, step.case),
                timeline_sql.insert_entry(tenant, case_id, step.entry),
            ]
            closed = step.case.state is CaseState.CLOSED and before.state is not CaseState.CLOSED
            if closed and step.case.resolution is not None:
                statements.append(sql.close_alerts(tenant, case_id, step.case.resolution, now_ms))
                statements.append(note_change(sql.AREA, tenant, case_id, now_ms))
            try:
                await self._store.write(*statements)
            except Lost:
                continue
            if closed:
                await self._reload(tenant, case_id)
            return step.case
        raise Conflict("Others change this case at the moment. Try again.", "changed_meanwhile")


async def priorities_of(store: Store, tenant: str, cases: Sequence[str]) -> dict[str, int]:
    """Return the highest priority of the open alerts of some cases, as it is stored, where one is known."""
    if not cases:
        return {}
    return dict(await store.read(case_list_sql.select_case_priorities(tenant, cases)))


def _events(rows: list[Row], sent: Mapping[str, bytes]) -> list[CaseEvent]:
    """Gather the rows of `sql.select_events_of_case` by event, of those that are shown."""
    events: dict[str, CaseEvent] = {}
    for alert, rule_id, event_id, external_id, occurred_at_ms in rows:
        if event_id not in sent:
            continue
        known = events.get(event_id)
        if known is not None:
            known.alert_ids.append(alert)
            if rule_id not in known.rule_ids:
                known.rule_ids.append(rule_id)
            continue
        events[event_id] = CaseEvent(
            id=event_id,
            external_event_id=external_id,
            occurred_at=timestamp(occurred_at_ms),
            alert_ids=[alert],
            rule_ids=[rule_id],
            event=decode(sent[event_id]),
        )
    return list(events.values())
