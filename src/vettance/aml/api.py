"""The doors of AML: events and their poll, alerts, cases."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from vettance import clock
from vettance.aml import case_list_sql, sql
from vettance.aml.aml_event import AmlEventBody, payload_digest, read_aml_event
from vettance.aml.answers import (
    AlertPage,
    AlertQuery,
    AlertSort,
    AmlEventAnswer,
    AssignBody,
    CaseAnswer,
    CasePage,
    CaseQuery,
    CaseRecord,
    DismissBody,
    EventSchema,
    ExportFormat,
    ExportQuery,
    NoteBody,
    RejectBody,
    ResolveBody,
    alert_answer,
    case_answer,
    read_case_body,
)
from vettance.aml.case import Alert, Case
from vettance.aml.case_report import POLICY, report_page
from vettance.aml.case_review import Reviewer, priorities_of
from vettance.aml.monitor import Monitor
from vettance.aml.screening.screening_review import ScreeningReviewer
from vettance.aml.transfer import known_names, unreadable_amounts
from vettance.db.engine import Row, Statement, Store
from vettance.decisions.answers import RuleVersion
from vettance.errors import NotFound
from vettance.ids import is_id
from vettance.web.paging import bad_cursor
from vettance.web.query import read_query
from vettance.web.routing import Call, Page, Route, RouteReply
from vettance.wire.payload import kept, timestamp
from vettance.wire.suggestions import NO_NAMES

_TAG: Final = "AML"
_PRODUCT: Final = "aml"


class AmlDoors:
    """Turns requests into watched events, and what is stored into answers."""

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        reviewer: Reviewer,
        screenings: ScreeningReviewer,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._monitor = monitor
        self._reviewer = reviewer
        self._screenings = screenings
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        root = "/api/v1/aml"
        case = f"{root}/cases/{{id}}"
        return (
            _route(
                "POST", f"{root}/events", self.watch, "Watch an event", (409, 422), AmlEventBody, EventSchema
            ),
            _route(
                "GET",
                f"{root}/events/{{externalEventId}}",
                self.event,
                "What was answered",
                (404,),
                None,
                EventSchema,
            ),
            _route(
                "GET", f"{root}/alerts", self.alerts, "Alerts, newest first", (), None, AlertPage, AlertQuery
            ),
            _route("GET", f"{root}/cases", self.cases, "Cases, newest first", (), None, CasePage, CaseQuery),
            _route(
                "GET",
                case,
                self.case,
                "A case with its alerts, events and timeline",
                (404,),
                None,
                CaseRecord,
            ),
            _route(
                "GET", f"{case}/export", self.export, "For a report", (404,), None, CaseRecord, ExportQuery
            ),
            *self._acts(root, case),
        )

    def _acts(self, root: str, case: str) -> tuple[Route, ...]:
        """The rows of what officers do."""
        return (
            _route(
                "POST",
                f"{case}/resolve",
                self.resolve,
                "Resolve a case",
                (404, 409, 422),
                ResolveBody,
                CaseAnswer,
            ),
            _route(
                "POST",
                f"{case}/reject",
                self.reject,
                "Reject a proposal",
                (404, 409, 422),
                RejectBody,
                CaseAnswer,
            ),
            _route(
                "POST",
                f"{case}/notes",
                self.note,
                "Write a note",
                (404, 409, 422),
                NoteBody,
                CaseAnswer,
                idempotent=True,
            ),
            _route(
                "POST",
                f"{case}/assign",
                self.assign,
                "Assign a case",
                (404, 409, 422),
                AssignBody,
                CaseAnswer,
            ),
            _route(
                "POST",
                f"{root}/screenings/{{id}}/dismiss",
                self.dismiss,
                "Say that a match is somebody else",
                (404, 409, 422),
                DismissBody,
                CaseAnswer,
            ),
        )

    async def watch(self, call: Call) -> RouteReply:
        """POST /aml/events."""
        body = call.json()
        event = read_aml_event(body, call.body, self._now_ms())
        stored = await self._monitor.take(call.tenant.id, event, payload_digest(body), kept(call.body, body))
        return RouteReply(_event_answer(stored))

    async def event(self, call: Call) -> RouteReply:
        """GET /aml/events/{externalEventId}."""
        stored = await self._monitor.find(call.tenant.id, call.path["externalEventId"])
        if stored is None:
            raise NotFound
        return RouteReply(_event_answer(stored))

    async def alerts(self, call: Call) -> RouteReply:
        """GET /aml/alerts."""
        query, tenant = read_query(call.query_string, AlertQuery), call.tenant.id
        columns = (
            ("state", query.state),
            ("severity", query.severity),
            ("typology", query.typology),
            ("rule_id", query.rule_id),
            ("customer", query.customer),
        )
        by_priority = query.sort_by is AlertSort.PRIORITY
        after = None if by_priority else query.after_id("alr")
        chosen = case_list_sql.RowFilter(columns, query.created_from, query.created_to, after)
        size, skip, down = query.limit + 1, query.offset, query.descending
        if by_priority:
            beyond = _read_alert_cursor(query.cursor)
            page = chosen.alerts_by_priority(tenant, size, skip, beyond, descending=down)
        else:
            page = chosen.alerts(tenant, size, skip, descending=down)
        rows, total, more = await self._page(chosen.count_alerts(tenant), page, query.limit)
        alerts = [sql.alert_of(row) for row in rows]
        following = _alert_cursor(alerts[-1], query.sort_by) if more else None
        return RouteReply(AlertPage.of(query, [*map(alert_answer, alerts)], total, following))

    async def cases(self, call: Call) -> RouteReply:
        """GET /aml/cases."""
        query, tenant = read_query(call.query_string, CaseQuery), call.tenant.id
        columns = (
            ("state", query.state),
            ("severity", query.severity),
            ("assignee", query.assignee),
            ("customer", query.customer),
        )
        chosen = case_list_sql.RowFilter(columns, query.created_from, query.created_to, query.after_id("cas"))
        rows, total, more = await self._page(
            chosen.count_cases(tenant),
            chosen.cases(tenant, query.limit + 1, query.offset, descending=query.descending),
            query.limit,
        )
        cases = [sql.case_of(row) for row in rows]
        known = await priorities_of(self._store, tenant, [case.id for case in cases])
        data = [case_answer(case, known.get(case.id)) for case in cases]
        return RouteReply(CasePage.of(query, data, total, data[-1].id if more else None))

    async def _page(self, count: Statement, page: Statement, limit: int) -> tuple[list[Row], int, bool]:
        total = (await self._store.read(count))[0][0]
        rows = await self._store.read(page)
        return rows[:limit], total, len(rows) > limit

    async def case(self, call: Call) -> RouteReply:
        """GET /aml/cases/{id}."""
        return RouteReply(await self._reviewer.record(call.tenant.id, call.path["id"]))

    async def export(self, call: Call) -> RouteReply | Page:
        """GET /aml/cases/{id}/export."""
        query = read_query(call.query_string, ExportQuery)
        record = await self._reviewer.record(call.tenant.id, call.path["id"])
        name = f'attachment; filename="{record.id}.{query.format.value}"'
        if query.format is ExportFormat.HTML:
            page = report_page(record, timestamp(self._now_ms()), _signer(call))
            return Page(page, "text/html; charset=utf-8", headers=POLICY)
        return RouteReply(record, headers=(("content-disposition", name),))

    async def resolve(self, call: Call) -> RouteReply:
        """POST /aml/cases/{id}/resolve."""
        said = read_case_body(call, ResolveBody)
        return await self._answer(
            call,
            self._reviewer.resolve(
                call.tenant.id,
                call.path["id"],
                said.resolution,
                said.notes or "",
                _officer(call, said.officer),
                _signer(call),
                said.updated_at,
            ),
        )

    async def reject(self, call: Call) -> RouteReply:
        """POST /aml/cases/{id}/reject."""
        said = read_case_body(call, RejectBody)
        return await self._answer(
            call,
            self._reviewer.reject(
                call.tenant.id,
                call.path["id"],
                said.notes or "",
                _officer(call, said.officer),
                said.updated_at,
            ),
        )

    async def note(self, call: Call) -> RouteReply:
        """POST /aml/cases/{id}/notes."""
        said = read_case_body(call, NoteBody)
        return await self._answer(
            call,
            self._reviewer.note(call.tenant.id, call.path["id"], said.notes, _officer(call, said.officer)),
        )

    async def assign(self, call: Call) -> RouteReply:
        """POST /aml/cases/{id}/assign."""
        said = read_case_body(call, AssignBody)
        return await self._answer(
            call,
            self._reviewer.assign(
                call.tenant.id,
                call.path["id"],
                said.assignee,
                _officer(call, said.officer),
                said.updated_at,
            ),
        )

    async def dismiss(self, call: Call) -> RouteReply:
        """POST /aml/screenings/{id}/dismiss."""
        said = read_case_body(call, DismissBody)
        return await self._answer(
            call,
            self._screenings.dismiss(
                call.tenant.id,
                call.path["id"],
                said.watchlist_entity_id,
                said.notes or "",
                _officer(call, said.officer),
                _signer(call),
            ),
        )

    async def _answer(self, call: Call, act: Awaitable[Case]) -> RouteReply:
        case = await act
        known = await priorities_of(self._store, call.tenant.id, [case.id])
        return RouteReply(case_answer(case, known.get(case.id)))


def _route(
    method: str,
    path: str,
    handler: Callable[[Call], Awaitable[RouteReply | Page]],
    summary: str,
    refusals: tuple[int, ...],
    takes: type | None,
    answers: type,
    query: type | None = None,
    *,
    idempotent: bool = False,
) -> Route:
    return Route(
        method,
        path,
        handler,
        summary,
        _TAG,
        takes=takes,
        query=query,
        answers=answers,
        refusals=refusals,
        product=_PRODUCT,
        idempotent=idempotent,
        is_bounded=takes is AmlEventBody,
        knows=known_names() if takes is AmlEventBody else NO_NAMES,
        unreadable=unreadable_amounts if takes is AmlEventBody else None,
    )


def _alert_cursor(alert: Alert, sort_by: AlertSort) -> str:
    return f"{alert.priority}.{alert.id}" if sort_by is AlertSort.PRIORITY else alert.id


def _read_alert_cursor(cursor: str | None) -> tuple[int, str] | None:
    """Return the place that a page by priority begins beyond. Raises `Invalid` (400)."""
    if cursor is None:
        return None
    priority, _, alert = cursor.partition(".")
    if not (priority.isascii() and priority.isdigit() and len(priority) <= 4 and is_id(alert, "alr")):
        raise bad_cursor()
    return int(priority), alert


def _event_answer(stored: sql.StoredEvent) -> AmlEventAnswer:
    return AmlEventAnswer(
        id=stored.id,
        external_event_id=stored.external_id,
        status=stored.status,
        alerts=msgspec.Raw(stored.alerts),
        rule_version=None if stored.ruleset_version is None else RuleVersion(str(stored.ruleset_version)),
        received_at=timestamp(stored.received_at_ms),
    )


def _officer(call: Call, named: str | None) -> str:
    """Return who acts; an API key speaks for its holder when no officer is named."""
    return named or _signer(call)


def _signer(call: Call) -> str:
    """Return who signs: the user of the console, else the API key; a name in the body proves nothing."""
    return call.actor or call.key.id
