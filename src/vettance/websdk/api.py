"""The doors for browsers: mint a token, decide what a page asks, queue what a page saw."""

import time
from collections.abc import Callable
from typing import Final

from vettance import clock
from vettance.db.engine import Clash, Store
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.errors import Unprocessable
from vettance.events.event import EventSource, read_taken_event
from vettance.ids import IdSource
from vettance.tenants.browser_token import LIFE_S, TokenClaims, TokenIssuer
from vettance.web.routing import Access, Call, Route, RouteReply
from vettance.websdk import sql
from vettance.websdk.browser_bodies import (
    SKEW_MS_MAX,
    CollectAnswer,
    CollectBody,
    SignalsAnswer,
    SignalsBody,
    TokenAnswer,
    TokenBody,
    read_batch,
    read_collect,
    read_mint,
    read_sender,
)
from vettance.websdk.session_sync import SessionSync
from vettance.wire.payload import encode, timestamp

_TAG: Final = "Browser SDK"


class BrowserDoors:
    """Turns what pages send into tokens, evaluations and stored signals."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        tokens: TokenIssuer,
        evaluator: Evaluator,
        follower: SessionSync,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._tokens = tokens
        self._evaluator = evaluator
        self._follower = follower
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        api = "/api/v1"
        return (
            Route(
                "POST",
                f"{api}/websdk/tokens",
                self.mint,
                "Mint a token for a page, from your server",
                _TAG,
                takes=TokenBody,
                may_lack_body=True,
                answers=TokenAnswer,
                status=201,
                refusals=(422,),
                idempotent=True,
            ),
            Route(
                "POST",
                f"{api}/collect",
                self.collect,
                "Decide what a page asks, now",
                _TAG,
                access=Access.TOKEN,
                key_setting="collect_key",
                takes=CollectBody,
                answers=CollectAnswer,
                refusals=(422,),
                idempotent=True,
            ),
            Route(
                "POST",
                f"{api}/websdk/signals",
                self.queue,
                "Queue signals for later decisions of the session",
                _TAG,
                access=Access.TOKEN,
                takes=SignalsBody,
                answers=SignalsAnswer,
                status=202,
                refusals=(422,),
            ),
        )

    async def mint(self, call: Call) -> RouteReply:
        """POST /websdk/tokens."""
        asked = read_mint(call.json() if call.body else {})
        now_ms = self._now_ms()
        session = asked.sdk_session_id or self._ids.make("sdk", now_ms)
        expires_at_s = now_ms // 1000 + LIFE_S
        claims = TokenClaims(
            tenant=call.tenant.id,
            key=call.key.id,
            sdk_session=session,
            tenant_session=asked.tenant_session_id,
            origin=asked.origin,
            flow=asked.flow,
            user=asked.user_external_id,
            issued_at_s=now_ms // 1000,
            expires_at_s=expires_at_s,
            id=self._ids.make("jti", now_ms),
        )
        answer = TokenAnswer(
            token=self._tokens.mint(claims), expires_at=timestamp(expires_at_s * 1000), sdk_session_id=session
        )
        return RouteReply(answer, 201)

    async def collect(self, call: Call) -> RouteReply:
        """POST /collect."""
        started_ns = time.perf_counter_ns()
        sender = read_sender(call.client, call.headers)
        body = read_collect(call.json(), call.claims, sender)
        sent = encode(body)
        event = read_taken_event(body, self._now_ms())
        also = None if call.keeper is None else lambda evaluated: call.keep(_answered(evaluated))
        evaluated = await self._evaluator.evaluate(
            call.tenant.id, event, sent, EventSource.COLLECT, call.request_id, started_ns, also
        )
        return _answered(evaluated)

    async def queue(self, call: Call) -> RouteReply:
        """POST /websdk/signals."""
        claims = call.claims
        assert claims is not None, "this route takes tokens only"
        now_ms = self._now_ms()
        sender = read_sender(call.client, call.headers)
        batch = read_batch(call.json(), claims, sender, now_ms)
        answer = RouteReply(SignalsAnswer(status="queued", batch_id=batch.id), 202)
        tenant = call.tenant.id
        if abs(batch.skew_ms) > SKEW_MS_MAX:
            # What was queued long ago may be sent again, whatever the time; it is not stored a second time.
            if await self._store.read(sql.select_batch(tenant, batch.sdk_session, batch.id)):
                return answer
            raise Unprocessable(
                "The clock of the sender is wrong; see details.",
                {"sentAt": "must be within 5 minutes of serverTime", "serverTime": now_ms},
            )
        try:
            await self._store.write(
                sql.insert_batch(
                    tenant, batch.sdk_session, batch.id, batch.tenant_session, now_ms, encode(batch.signals)
                )
            )
        except Clash:
            return answer
        await self._follower.announce(call.tenant.id)
        await self._follower.catch_up()
        return answer


def _answered(evaluated: EvaluatedEvent) -> RouteReply:
    decision = evaluated.decision
    return RouteReply(
        CollectAnswer(
            event_id=evaluated.id,
            decision=decision.outcome.value,
            score=decision.score / 100,
            event_category=evaluated.event.category.value,
            rules_evaluated=decision.rules_evaluated,
        )
    )
