"""The doors of backtests: order one, look how far it is, cancel it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from vettance import clock
from vettance.aml.sql import RULE_SETS
from vettance.backtests.backtest_job import (
    BACKTEST_PREFIX,
    AmlBacktestBody,
    BacktestBody,
    BacktestJob,
    BacktestOrder,
    read_backtest,
)
from vettance.backtests.order_job import cancel_job, find_job, order_job
from vettance.db.engine import Store
from vettance.errors import InvalidBody, NotFound
from vettance.ids import IdSource
from vettance.rules.changed_document import with_changes
from vettance.rules.packs import load_pack_text
from vettance.rules.rule import Fault, missed_out
from vettance.rules.sql import DECIDING, RuleSets
from vettance.rules.version import VersionState, version_of
from vettance.rules.versioning import NewRules
from vettance.tenants.key_scope import KeyScope
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.payload import JSON, Wire

#: Checks a document of a tenant that is only tried; returns its rules, and which of their tests fail.
Admit = Callable[[str, RuleSets, str], Awaitable[tuple[NewRules, Sequence[Fault]]]]


class BacktestKind(NamedTuple):
    """One kind of rules: where its rule sets and its endpoints are, the product that a tenant needs."""

    sets: RuleSets
    root: str
    tag: str
    product: str | None
    takes: type[BacktestBody]


FRAUD_BACKTESTS: Final = BacktestKind(DECIDING, "/api/v1/backtests", "Rules", None, BacktestBody)
AML_BACKTESTS: Final = BacktestKind(
    RULE_SETS, "/api/v1/aml/backtests", "AML rule sets", "aml", AmlBacktestBody
)


class BacktestAccepted(Wire, frozen=True):
    """A job that was accepted."""

    backtest_id: str


class BacktestAnswer(Wire, frozen=True):
    """How far a job is; `result` is there once it is completed, `error` once it has failed."""

    backtest_id: str
    state: Annotated[
        str, msgspec.Meta(description="`queued`, `running`, `completed`, `failed` or `cancelled`.")
    ]
    progress: float
    seconds_left: int | None
    seconds_allowed: Annotated[
        int, msgspec.Meta(description="How long it may work, its waits for other jobs left out.")
    ]
    created_at: str
    started_at: str | None
    ended_at: str | None
    result: dict[str, Any] | None
    error: str | None


class BacktestDoors:
    """Takes orders of backtests; `admit` checks what is to be tried as rules in force are checked."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        admit: Admit,
        kind: BacktestKind = FRAUD_BACKTESTS,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._admit = admit
        self._kind = kind
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        root, tag = self._kind.root, self._kind.tag
        routes = (
            Route(
                "POST",
                root,
                self.order,
                "Try rules on past events",
                tag,
                takes=self._kind.takes,
                answers=BacktestAccepted,
                status=202,
                refusals=(404, 409, 422),
                idempotent=True,
            ),
            Route(
                "GET",
                f"{root}/{{backtestId}}",
                self.show,
                "How far a backtest is, and what it found",
                tag,
                answers=BacktestAnswer,
                refusals=(404,),
            ),
            Route(
                "DELETE",
                f"{root}/{{backtestId}}",
                self.cancel,
                "Cancel a backtest",
                tag,
                answers=BacktestAnswer,
                refusals=(404, 409),
            ),
        )
        offered = (msgspec.structs.replace(route, product=self._kind.product) for route in routes)
        return reached_by(offered, KeyScope.RULES)

    async def order(self, call: Call) -> RouteReply:
        """POST /backtests."""
        said, from_ms, to_ms = read_backtest(call.json())
        tenant, now_ms = call.tenant.id, self._now_ms()
        version, document, missed = await self._rules(tenant, said)
        share = 1.0 if said.sample is None else said.sample
        order = BacktestOrder(
            document, version, from_ms, to_ms, share, self._kind.sets.pack, tuple(missed_out(missed))
        )
        backtest_id = self._ids.make(BACKTEST_PREFIX, now_ms)
        reply = RouteReply(BacktestAccepted(backtest_id), 202)
        await order_job(self._store, tenant, backtest_id, order, now_ms, call.keep(reply))
        return reply

    async def _rules(self, tenant: str, said: BacktestBody) -> tuple[int, str, Sequence[Fault]]:
        """Return the number (0 for what is no version) and the whole document of the rules to try.

        With them, the tests that they do not pass.
        """
        text = said.document
        if said.version == 0:
            return 0, load_pack_text(self._kind.sets.pack), ()
        if said.version is not None:
            rows = await self._store.read(self._kind.sets.select_one(tenant, said.version))
            if not rows:
                raise NotFound
            state = version_of(rows[0]).state
            _, document, pushed = (
                await self._store.read(self._kind.sets.select_pushed(tenant, said.version))
            )[0]
            if state not in (VersionState.DRAFT, VersionState.REJECTED):
                return said.version, document, ()
            text = document if pushed is None else pushed  # It may be broken.
        if said.rule is not None:
            text = await self._with_rule(tenant, said.rule)
        assert text is not None, "one of the three is given"
        rules, missed = await self._admit(tenant, self._kind.sets, text)
        return said.version or 0, rules.document, missed

    async def _with_rule(self, tenant: str, rule: JSON) -> str:
        """Return the rules in force with the members of one rule replaced, or with one more rule."""
        rule_id = rule.get("id")
        if not isinstance(rule_id, str) or not rule_id:
            raise InvalidBody("The request is not well-formed; see details.", {"rule.id": "is required"})
        rows = await self._store.read(self._kind.sets.select_active(tenant))
        document = rows[0][1] if rows else load_pack_text(self._kind.sets.pack)
        return await asyncio.to_thread(with_changes, document, [rule])

    async def show(self, call: Call) -> RouteReply:
        """GET /backtests/{backtestId}."""
        return RouteReply(_answer(await self._find(call), self._now_ms()))

    async def cancel(self, call: Call) -> RouteReply:
        """DELETE /backtests/{backtestId}."""
        job, now_ms = await self._find(call), self._now_ms()
        job = await cancel_job(self._store, job.tenant, job.id, BACKTEST_PREFIX, now_ms)
        return RouteReply(_answer(job, now_ms))

    async def _find(self, call: Call) -> BacktestJob:
        job = await find_job(self._store, call.tenant.id, call.path["backtestId"], BACKTEST_PREFIX)
        if msgspec.json.decode(job.order, type=BacktestOrder).kind != self._kind.sets.pack:
            raise NotFound
        return job


def _answer(job: BacktestJob, now_ms: int) -> BacktestAnswer:
    return BacktestAnswer(backtest_id=job.id, **job.members(now_ms))
