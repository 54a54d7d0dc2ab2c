"""The doors of suggestions: order one, look how far it is, cancel it."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import msgspec

from vettance import clock
from vettance.backtests.backtest_job import BacktestJob
from vettance.backtests.order_job import cancel_job, find_job, order_job
from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.errors import Unprocessable
from vettance.ids import IdSource
from vettance.rules.rule import RuleSetRefused
from vettance.rules.rule_reads import ConditionReader
from vettance.suggestions import sql
from vettance.suggestions.suggestion_order import (
    FRAUDS_MIN,
    SUGGESTION_PREFIX,
    SuggestionBody,
    SuggestionOrder,
    read_suggestion,
)
from vettance.suggestions.threshold_curve import NoThreshold, find_movable_rule
from vettance.tenants.key_scope import KeyScope
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.payload import Faults, Wire

_TAG: Final = "Rules"
_ROOT: Final = "/api/v1/rules/suggestions"


class SuggestionAccepted(Wire, frozen=True):
    """A suggestion that was ordered."""

    suggestion_id: str


class SuggestionAnswer(Wire, frozen=True):
    """How far a suggestion is; `result` is there once it is completed, `error` once it has failed."""

    suggestion_id: str
    kind: Annotated[str, msgspec.Meta(description="`rules`, `threshold`, `weights` or `calibration`.")]
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


class SuggestionDoors:
    """Takes orders of suggestions, which the jobs of backtests do one after the other.

    `rules_of` reads a tenant's rules in force, which it may raise `RuleSetRefused` of; `reader` reads theirs.
    """

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        rules_of: Callable[[str], Awaitable[ActiveRules]],
        reader: ConditionReader,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._rules_of = rules_of
        self._reader = reader
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        offered = (
            Route(
                "POST",
                _ROOT,
                self.order,
                "Have rules, a threshold or scores suggested from labels, or numbers from a share of traffic",
                _TAG,
                takes=SuggestionBody,
                answers=SuggestionAccepted,
                status=202,
                refusals=(409, 422),
                idempotent=True,
            ),
            Route(
                "GET",
                f"{_ROOT}/{{suggestionId}}",
                self.show,
                "How far a suggestion is, and what it found",
                _TAG,
                answers=SuggestionAnswer,
                refusals=(404,),
            ),
            Route(
                "DELETE",
                f"{_ROOT}/{{suggestionId}}",
                self.cancel,
                "Cancel a suggestion",
                _TAG,
                answers=SuggestionAnswer,
                refusals=(404, 409),
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def order(self, call: Call) -> RouteReply:
        """POST /rules/suggestions."""
        order = read_suggestion(call.json())
        tenant, now_ms = call.tenant.id, self._now_ms()
        await self._require_rule(tenant, order)
        await self._require_labels(tenant, order)
        suggestion_id = self._ids.make(SUGGESTION_PREFIX, now_ms)
        reply = RouteReply(SuggestionAccepted(suggestion_id), 202)
        await order_job(self._store, tenant, suggestion_id, order, now_ms, call.keep(reply))
        return reply

    async def _require_rule(self, tenant: str, order: SuggestionOrder) -> None:
        """Refuse at once a threshold of a rule that has none."""
        if order.kind != "threshold":
            return
        try:
            active = await self._rules_of(tenant)
        except RuleSetRefused:
            return  # This release no longer accepts what is in force, as the job says.
        faults = Faults()
        try:
            find_movable_rule(order.rule, active.ruleset.running, self._reader)
        except NoThreshold as fault:
            faults.meaning["ruleId"] = str(fault)
        faults.raise_any()

    async def _require_labels(self, tenant: str, order: SuggestionOrder) -> None:
        """Refuse at once what the job could only refuse."""
        if order.kind in ("threshold", "calibration"):
            return
        frauds = int((await self._store.read(sql.count_frauds(tenant)))[0][0])
        if frauds < FRAUDS_MIN:
            raise Unprocessable(
                "There are too few labels to learn from.",
                {
                    "reason": "too_few_labels",
                    "kind": f"needs {FRAUDS_MIN} events labelled as fraud; there are {frauds}",
                },
            )

    async def show(self, call: Call) -> RouteReply:
        """GET /rules/suggestions/{suggestionId}."""
        job = await find_job(self._store, call.tenant.id, call.path["suggestionId"], SUGGESTION_PREFIX)
        return RouteReply(_answer(job, self._now_ms()))

    async def cancel(self, call: Call) -> RouteReply:
        """DELETE /rules/suggestions/{suggestionId}."""
        now_ms, suggestion_id = self._now_ms(), call.path["suggestionId"]
        job = await cancel_job(self._store, call.tenant.id, suggestion_id, SUGGESTION_PREFIX, now_ms)
        return RouteReply(_answer(job, now_ms))


def _answer(job: BacktestJob, now_ms: int) -> SuggestionAnswer:
    kind = msgspec.json.decode(job.order, type=SuggestionOrder).kind
    return SuggestionAnswer(suggestion_id=job.id, kind=kind, **job.members(now_ms))
