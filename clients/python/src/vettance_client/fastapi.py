"""Vettance in FastAPI: logins, payments, webhooks and the browser SDK.

```python
risk = Risk("https://risk.example.com", os.environ["VETTANCE_KEY"], origin="https://shop.example.com")
app.include_router(risk.router)
decision = await risk.login(request, user.id, email=user.email)  # in a handler
```
"""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from vettance_client.bodies import EventBody
from vettance_client.client import AsyncClient, OnUnavailable
from vettance_client.decision import Decision
from vettance_client.errors import VettanceError
from vettance_client.web.client_address import client_address
from vettance_client.web.deliveries import (
    BODY_BYTES_MAX,
    LEASE_S,
    Deliveries,
    MemoryDeliveries,
    read_delivery,
)
from vettance_client.web.page_scripts import (
    SCRIPT_TYPE,
    is_own_page,
    script_tags,
    start_script,
    token_body,
)
from vettance_client.web.shop import Build, Consent, Shop
from vettance_client.web.shop_events import (
    Outcome,
    Visitor,
    login_event,
    new_session_id,
    payment_event,
    session_id_of,
    with_visitor,
)
from vettance_client.webhooks import BadSignature, WebhookEvent

_log = logging.getLogger("vettance")
Handler = TypeVar("Handler", bound=Callable[[WebhookEvent], Any])
#: Says which customer a request comes from, None for a visitor who is not signed in.
CustomerOf = Callable[[Request], "str | Awaitable[str | None] | None"]


class Denied(HTTPException):
    """The decision is to stop: 403. Why is in `decision`, for your log and not for the visitor."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(403, {"code": "denied", "message": "This was refused."})
        self.decision = decision


class StepUpNeeded(HTTPException):
    """The decision is to ask for more proof: 403 with the code `step_up_needed`."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(403, {"code": "step_up_needed", "message": "More proof is needed."})
        self.decision = decision


class Risk:
    """Decisions on what the visitors of an application do, and the endpoints that pages and webhooks need.

    `Shop` describes the settings. `customer_of` says who is signed in. `deliveries` remembers which webhooks
    were handled; with several processes it must be one that they share. Raises `WrongSetting`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        origin: str | None = None,
        browser_url: str | None = None,
        webhook_secret: str | Sequence[str] | None = None,
        deadline_ms: float = 250,
        on_unavailable: OnUnavailable = "review",
        proxies: Sequence[str] = (),
        consent: Consent = "asked",
        sdk: Build = "core",
        sdk_version: str | None = None,
        sdk_integrity: str | None = None,
        prefix: str = "/vettance",
        customer_of: CustomerOf | None = None,
        deliveries: Deliveries | None = None,
    ) -> None:
        self.shop = Shop(
            base_url=base_url,
            api_key=api_key,
            origin=origin,
            browser_url=browser_url,
            webhook_secret=webhook_secret,
            deadline_ms=deadline_ms,
            on_unavailable=on_unavailable,
            proxies=proxies,
            consent=consent,
            sdk=sdk,
            sdk_version=sdk_version,
            sdk_integrity=sdk_integrity,
        )
        #: The client, for everything else that the service has.
        self.client = AsyncClient(base_url, api_key)
        self._prefix = prefix
        self._customer_of = customer_of
        self._deliveries = deliveries or MemoryDeliveries()
        self._handlers: list[Callable[[WebhookEvent], Any]] = []
        #: The endpoints of pages and of the service; including it also closes connections at the end.
        self.router = APIRouter(prefix=prefix, include_in_schema=False, lifespan=self._lifespan)
        self.router.add_api_route("/start.js", self._start_js, methods=["GET"])
        self.router.add_api_route("/token", self._token, methods=["POST"])
        self.router.add_api_route("/webhook", self._webhook, methods=["POST"])

    def visitor(self, request: Request) -> Visitor:
        """Return who sent a request."""
        peer = request.client.host if request.client is not None else None
        forwarded_for = ",".join(request.headers.getlist("x-forwarded-for"))
        return Visitor(
            client_address(peer, forwarded_for, self.shop.networks),
            request.headers.get("user-agent"),
            session_id_of(request.cookies.get(self.shop.cookie)),
        )

    async def evaluate(
        self,
        request: Request,
        event: EventBody,
        *,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Return the decision on an event; its visitor is read from the request.

        What `deadline_ms` and `on_unavailable` do not say is taken from the settings.
        """
        return await self.client.evaluate(
            with_visitor(event, self.visitor(request)),
            deadline_ms=self.shop.deadline_ms if deadline_ms is None else deadline_ms,
            on_unavailable=on_unavailable or self.shop.on_unavailable,
            idempotency_key=idempotency_key,
        )

    async def login(
        self,
        request: Request,
        customer: str | None,
        *,
        outcome: Outcome = "success",
        email: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable | None = None,
    ) -> Decision:
        """Return the decision on an attempt to sign in; ask when the password was checked, right or wrong.

        `customer` is your own id of the account, None when there is none of that name.
        """
        event = login_event(customer, outcome, email, metadata)
        return await self.evaluate(request, event, deadline_ms=deadline_ms, on_unavailable=on_unavailable)

    async def payment(
        self,
        request: Request,
        *,
        amount: Decimal | float,
        currency: str,
        customer: str | None = None,
        email: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Return the decision on a payment, before the money moves.

        `amount` is in units of its currency, not cents. Unless said, `customer_of` names the customer.
        """
        who = customer if customer is not None else await self.customer(request)
        return await self.evaluate(
            request,
            payment_event(who, amount, currency, email, metadata),
            deadline_ms=deadline_ms,
            on_unavailable=on_unavailable,
            idempotency_key=idempotency_key,
        )

    def require(self, decision: Decision) -> None:
        """Go on only if a decision approves. Raises `StepUpNeeded` or `Denied`, both answered by 403."""
        if decision.needs_review:
            raise StepUpNeeded(decision)
        if not decision.approved:
            raise Denied(decision)

    async def customer(self, request: Request) -> str | None:
        """Return which customer a request comes from, as `customer_of` says."""
        if self._customer_of is None:
            return None
        found = self._customer_of(request)
        who = await found if inspect.isawaitable(found) else found
        return None if who is None else str(who)

    def scripts(self, request: Request | None = None, *, nonce: str | None = None) -> str:
        """Return the two script tags for the head of a page.

        With the `request`, they lead to where the application is mounted. `nonce` is that of your policy.
        """
        root = request.scope.get("root_path", "") if request is not None else ""
        return script_tags(self.shop, root.rstrip("/") + self._prefix, nonce)

    def on_webhook(self, handler: Handler) -> Handler:
        """Have a function called with each `WebhookEvent`, once for each delivery; a decorator.

        When it raises, the service sends the delivery again.
        """
        self._handlers.append(handler)
        return handler

    @asynccontextmanager
    async def _lifespan(self, _application: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.client.close()

    async def _start_js(self) -> Response:
        headers = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}
        return Response(start_script(), media_type=SCRIPT_TYPE, headers=headers)

    async def _token(self, request: Request) -> Response:
        if not is_own_page(self.shop, request.headers.get("origin")):
            raise HTTPException(403, f"tokens are for pages of {self.shop.own_origin()}")
        known = self.visitor(request).session_id
        session_id = known or new_session_id()
        body = token_body(self.shop, session_id, await self.customer(request))
        try:
            minted = await self.client.mint_token(body, deadline_s=self.shop.token_deadline_s)
        except VettanceError as error:
            _log.warning("no token for a page: %s", error)
            raise HTTPException(503, "no token now") from error
        headers = {"Cache-Control": "no-store"}
        response = Response(msgspec.json.encode(minted), media_type="application/json", headers=headers)
        if known is None:
            response.set_cookie(
                self.shop.cookie,
                session_id,
                secure=self.shop.is_https,
                httponly=True,
                samesite="lax",
                path="/",
            )
        return response

    async def _webhook(self, request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_BYTES_MAX:
                return Response(status_code=413)
        try:
            delivery_id, event = read_delivery(self.shop, bytes(body), request.headers)
        except BadSignature as error:
            _log.warning("a webhook was refused: %s", error)
            return Response(status_code=401)
        if not self._handlers:
            _log.error("a webhook came and nothing handles it: decorate a function with `risk.on_webhook`")
            return Response(status_code=503)
        # What remembers may ask a database, so it does not hold up the loop.
        claim = await run_in_threadpool(self._deliveries.claim, delivery_id)
        if claim == "busy":
            return Response(status_code=503, headers={"Retry-After": str(int(LEASE_S))})
        if claim == "new":
            try:
                for handler in self._handlers:
                    if inspect.iscoroutinefunction(handler):
                        await handler(event)
                    else:
                        await run_in_threadpool(handler, event)
            except BaseException:
                await run_in_threadpool(self._deliveries.release, delivery_id)
                raise
            await run_in_threadpool(self._deliveries.finish, delivery_id)
        return Response(status_code=204)
