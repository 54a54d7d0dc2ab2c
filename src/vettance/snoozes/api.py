"""The doors of snoozes."""

from collections.abc import Awaitable, Callable, Iterable

from vettance import clock
from vettance.db.engine import Lost, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource, is_id
from vettance.snoozes import sql
from vettance.snoozes.keep_snoozes import SnoozeMirror
from vettance.snoozes.snooze import (
    PREFIX,
    SNOOZES_MAX,
    AmlSnoozeBody,
    Snooze,
    SnoozeBody,
    SnoozeType,
    read_snooze,
)
from vettance.tenants.key_scope import KeyScope
from vettance.tenants.sql import note_change
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.payload import Wire, timestamp


class SnoozeAnswer(Wire, frozen=True):
    """A snooze that has an effect."""

    id: str
    rule_id: str
    type: SnoozeType
    value: str
    until: str
    reason: str
    author: str
    created_at: str


class SnoozePage(PageAnswer[SnoozeAnswer], frozen=True):
    """A page of snoozes, newest first."""


class SnoozeRemoved(Wire, frozen=True):
    """What ending a snooze answers."""

    success: bool
    message: str


class SnoozeDoors:
    """Makes, lists and ends snoozes of one kind of rules; `rules_of` names those in force for a tenant."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        mirror: SnoozeMirror,
        kind: str,
        rules_of: Callable[[str], Awaitable[Iterable[str]]],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._mirror = mirror
        self._kind = kind
        self._rules_of = rules_of
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        is_aml = self._kind == "aml"
        root = f"/api/v1{'/aml' if is_aml else ''}/rules/snoozes"
        noun, tag = ("AML rules", "AML rule sets") if is_aml else ("rules", "Rule sets")
        product = "aml" if is_aml else None
        offered = (
            Route(
                "GET",
                root,
                self.page,
                f"Snoozed {noun}",
                tag,
                query=PageQuery,
                answers=SnoozePage,
                product=product,
            ),
            Route(
                "POST",
                root,
                self.add,
                f"Snooze one of the {noun} for an entity",
                tag,
                takes=AmlSnoozeBody if is_aml else SnoozeBody,
                answers=SnoozeAnswer,
                status=201,
                otherwise=((200, SnoozeAnswer),),
                refusals=(409, 422),
                idempotent=True,
                product=product,
            ),
            Route(
                "DELETE",
                f"{root}/{{id}}",
                self.remove,
                f"End a snooze of the {noun}",
                tag,
                answers=SnoozeRemoved,
                refusals=(404,),
                product=product,
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def page(self, call: Call) -> RouteReply:
        """GET /rules/snoozes."""
        query = read_query(call.query_string, PageQuery)
        rows = await self._store.read(sql.select_current_of(call.tenant.id, self._kind, self._now_ms()))
        snoozes = [sql.snooze_of(row) for row in rows]
        if not query.descending:
            snoozes.reverse()
        total, after = len(snoozes), query.after_id(PREFIX)
        if after is not None:
            snoozes = [one for one in snoozes if (one.id < after) is query.descending and one.id != after]
        shown = snoozes[query.offset : query.offset + query.limit]
        more = query.offset + query.limit < len(snoozes)
        following = shown[-1].id if more else None
        return RouteReply(SnoozePage.of(query, [_answer(one) for one in shown], total, following))

    async def add(self, call: Call) -> RouteReply:
        """POST /rules/snoozes; 200 with the one in force that says the same, if there is one."""
        tenant, now_ms = call.tenant.id, self._now_ms()
        said = read_snooze(call.json(), await self._rules_of(tenant), now_ms)
        rows = await self._store.read(sql.select_current_of(tenant, self._kind, now_ms))
        if (known := said.found_in(map(sql.snooze_of, rows))) is not None:
            reply = RouteReply(_answer(known), 200)
            if kept := call.keep(reply):
                await self._store.write(*kept)
            return reply
        if len(self._mirror.books[self._kind].get(tenant, ())) >= SNOOZES_MAX:
            raise Conflict(
                f"There are {SNOOZES_MAX:,} snoozes, as many as there can be. End some.",
                "too_many_snoozes",
            )
        one = Snooze(
            id=self._ids.make(PREFIX, now_ms),
            tenant=tenant,
            kind=self._kind,
            rule=said.rule,
            type=said.type,
            value=said.value,
            reason=said.reason,
            author=call.actor or call.key.id,
            created_at_ms=now_ms,
            until_ms=said.until_ms,
            ended_at_ms=None,
        )
        reply = RouteReply(_answer(one), 201)
        try:
            await self._store.write(
                sql.insert_snooze(one), note_change(sql.AREA, tenant, one.id, now_ms), *call.keep(reply)
            )
        except Lost:  # The same came at the same time, as by a double click.
            return await self.add(call)
        await self._mirror.reload(tenant)
        return reply

    async def remove(self, call: Call) -> RouteReply:
        """DELETE /rules/snoozes/{id}."""
        tenant, snooze_id, now_ms = call.tenant.id, call.path["id"], self._now_ms()
        if not is_id(snooze_id, PREFIX):
            raise NotFound
        try:
            await self._store.write(
                sql.end_snooze(tenant, self._kind, snooze_id, now_ms),
                note_change(sql.AREA, tenant, snooze_id, now_ms),
            )
        except Lost:
            raise NotFound from None
        await self._mirror.reload(tenant)
        return RouteReply(SnoozeRemoved(success=True, message="The snooze has ended."))


def _answer(one: Snooze) -> SnoozeAnswer:
    return SnoozeAnswer(
        id=one.id,
        rule_id=one.rule,
        type=one.type,
        value=one.value,
        until=timestamp(one.until_ms),
        reason=one.reason,
        author=one.author,
        created_at=timestamp(one.created_at_ms),
    )
