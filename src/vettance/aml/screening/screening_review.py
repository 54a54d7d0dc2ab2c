"""What officers do with screenings: look at one with what is known since, and say who is somebody else."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from vettance import clock
from vettance.aml import sql as aml_sql
from vettance.aml import timeline_sql
from vettance.aml.case import Alert, AlertState, Case, CaseEntry, CaseState, EntryKind, Resolution
from vettance.aml.case_review import Reviewer
from vettance.aml.screening import sql
from vettance.aml.screening.screening_alert import History
from vettance.db.engine import Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource, is_id
from vettance.tenants.sql import note_change
from vettance.wire.payload import JSON, decode, encode

#: Earlier screenings of the same subject that are shown with one.
EARLIER_MAX: Final = 10
_TRIES: Final = 5


class EarlierScreening(NamedTuple):
    """One line of what a subject was screened with before."""

    id: str
    decision: str
    profile: str
    created_at_ms: int


class ScreeningRecord(NamedTuple):
    """A screening with what is known of it now.

    `sent` is who was asked about and `answer` what was answered, both as JSON. `alert` is the alert it raised
    or repeated, `open_entities` are the listed entities behind that alert that nobody has dismissed yet, and
    `dismissed` those of which an officer said that they are somebody else. `others_open` is how many more
    alerts of the case are open.
    """

    sent: JSON
    answer: JSON
    created_at_ms: int
    alert: Alert | None
    open_entities: frozenset[str]
    dismissed: frozenset[str]
    others_open: int
    earlier: tuple[EarlierScreening, ...]


class ScreeningReviewer:
    """Shows screenings of a tenant to its officers, and remembers what they say of them."""

    def __init__(
        self, store: Store, ids: IdSource, reviewer: Reviewer, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._ids = ids
        self._reviewer = reviewer
        self._now_ms = now_ms

    async def record(self, tenant: str, screening_id: str) -> ScreeningRecord:
        """Return a screening. Raises `NotFound` when it is absent or another tenant's."""
        rows = []
        if is_id(screening_id, "scr"):
            rows = await self._store.read(sql.select_screening(tenant, screening_id))
        if not rows:
            raise NotFound
        sent, answer = decode(bytes(rows[0][0])), decode(bytes(rows[0][1]))
        others = await self._store.read(
            sql.select_screenings_of(tenant, answer["externalId"], EARLIER_MAX + 1)
        )
        earlier = tuple(EarlierScreening(*row) for row in others if row[0] != screening_id)
        behind = await self._behind(tenant, answer)
        return ScreeningRecord(sent, answer, rows[0][2], *behind, earlier[:EARLIER_MAX])

    async def _behind(
        self, tenant: str, answer: JSON
    ) -> tuple[Alert | None, frozenset[str], frozenset[str], int]:
        if "alertId" not in answer:
            return None, frozenset(), frozenset(), 0
        alerts = [
            aml_sql.alert_of(row)
            for row in await self._store.read(aml_sql.select_case_alerts(tenant, answer["caseId"]))
        ]
        alert = next((one for one in alerts if one.id == answer["alertId"]), None)
        if alert is None:
            return None, frozenset(), frozenset(), 0
        entities = {row[0]: row for row in await self._entities(tenant, alert.id)}
        cleared = await self._cleared(tenant, alert, list(entities.values()))
        open_now = {one for one in entities if alert.state is AlertState.OPEN and one not in cleared}
        others = sum(one.state is AlertState.OPEN and one.id != alert.id for one in alerts)
        return alert, frozenset(open_now), cleared, others

    async def _entities(self, tenant: str, alert_id: str) -> list[tuple[str, str, str]]:
        rows = await self._store.read(sql.select_alert_entities(tenant, alert_id))
        return [(row[0], row[1], row[2]) for row in rows]

    async def _cleared(
        self, tenant: str, alert: Alert, entities: list[tuple[str, str, str]]
    ) -> frozenset[str]:
        """Return which entities behind an alert are remembered as somebody else, unchanged since."""
        if not entities:
            return frozenset()
        role = entities[0][2]
        names = [entity for entity, _, _ in entities]
        rows = await self._store.read(sql.select_history(tenant, alert.customer, role, names))
        history: History = sql.history_of(rows)
        return frozenset(entity for entity, digest, _ in entities if history.cleared.get(entity) == digest)

    async def dismiss(
        self, tenant: str, screening_id: str, entity: str, notes: str, officer: str, signer: str
    ) -> Case:
        """Say that a listed entity is not the subject; it stays quiet until its list changes it.

        The last open entity of the only open alert resolves the case as a false positive. Raises `NotFound`,
        and `Conflict`: `already_resolved`, or `second_officer_needed` where four eyes decide.
        """
        for _ in range(_TRIES):
            record = await self.record(tenant, screening_id)
            found = {one["watchlistEntityId"]: one for one in record.answer["matches"]}
            if entity not in found:
                raise NotFound
            if record.alert is None or entity not in record.open_entities:
                raise Conflict("Somebody has decided on this match already.", "already_resolved")
            case = await self._reviewer.find(tenant, record.alert.case_id)
            if (await self._reviewer.read_settings(tenant)).four_eyes:
                raise Conflict(
                    "Two officers decide on cases here: propose a resolution of the case instead.",
                    "second_officer_needed",
                )
            text = _dismissal(record, found[entity], notes)
            if len(record.open_entities) == 1 and not record.others_open:
                return await self._reviewer.resolve(
                    tenant, case.id, Resolution.FALSE_POSITIVE, text, officer, signer
                )
            statements, after = await self._split(tenant, case, record.alert, entity, text, officer)
            if len(record.open_entities) == 1:
                statements.append(aml_sql.close_alert(tenant, record.alert.id, after.updated_at_ms))
            try:
                await self._store.write(*statements)
            except Lost:
                continue
            return after
        raise Conflict("Others change this case at the moment. Try again.", "changed_meanwhile")

    async def _split(
        self, tenant: str, case: Case, alert: Alert, entity: str, text: str, officer: str
    ) -> tuple[list[Statement], Case]:
        """Return what puts one entity of an alert into a closed alert of its own, with the case after it."""
        if case.state is CaseState.CLOSED:
            raise Conflict("This case is resolved already.", "already_resolved")
        now_ms = max(self._now_ms(), case.updated_at_ms + 1)
        ((digest, role),) = [row[1:] for row in await self._entities(tenant, alert.id) if row[0] == entity]
        apart = msgspec.structs.replace(
            alert,
            id=self._ids.make("alr", now_ms),
            summary=text,
            created_at_ms=now_ms,
            last_at_ms=now_ms,
            state=AlertState.CLOSED,
            resolution=Resolution.FALSE_POSITIVE,
            resolved_at_ms=now_ms,
            events=1,
            figures=encode(_figures_of(alert)),
        )
        after = msgspec.structs.replace(case, alerts=case.alerts + 1, updated_at_ms=now_ms)
        return [
            aml_sql.update_case(tenant, case, after),
            aml_sql.insert_alert(tenant, apart),
            sql.insert_alert_entity(tenant, apart.id, role, entity, digest),
            timeline_sql.insert_entry(tenant, case.id, CaseEntry(now_ms, EntryKind.NOTED, officer, text)),
            note_change(aml_sql.AREA, tenant, case.id, now_ms),
        ], after


def _figures_of(alert: Alert) -> dict[str, Any]:
    """Return the figures of an alert without its matches: the part that was split off says them itself."""
    figures = decode(alert.figures)
    values = {
        name: value for name, value in figures.get("values", {}).items() if not name.startswith("match ")
    }
    return {**figures, "values": values}


def _dismissal(record: ScreeningRecord, match: JSON, notes: str) -> str:
    said = f"{record.sent['inputName']} is not {match['entityName']} ({match['source']})."
    return f"{said} {notes}".strip()
