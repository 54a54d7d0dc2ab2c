"""Asks for decisions on what visitors of a Django site do."""

import threading
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.core.signals import setting_changed
from django.http import HttpRequest, HttpResponse

from vettance_client.bodies import EventBody
from vettance_client.client import Client, OnUnavailable
from vettance_client.decision import Decision
from vettance_client.models import TokenAnswer
from vettance_client.web.client_address import client_address
from vettance_client.web.page_scripts import token_body
from vettance_client.web.shop import Shop, WrongSetting, shop_of
from vettance_client.web.shop_events import (
    Outcome,
    Visitor,
    login_event,
    new_session_id,
    payment_event,
    session_id_of,
    with_visitor,
)


class Denied(PermissionDenied):
    """The decision is to stop: Django answers 403. Why is in `decision`, for your log only."""

    def __init__(self, decision: Decision) -> None:
        super().__init__("This was refused.")
        self.decision = decision


class StepUpNeeded(Exception):
    """The decision is to ask for more proof. `StepUpMiddleware` leads the visitor to `step_up_url`."""

    def __init__(self, decision: Decision) -> None:
        super().__init__("More proof is needed.")
        self.decision = decision


class Risk:
    """Decisions by the settings in `VETTANCE`. Async views have `aevaluate`, `alogin` and `apayment`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shop: Shop | None = None
        self._client: Client | None = None

    @property
    def shop(self) -> Shop:
        """The settings. Raises `ImproperlyConfigured` with what is wrong with them."""
        if self._shop is None:
            given = getattr(settings, "VETTANCE", None)
            if not isinstance(given, Mapping):
                raise ImproperlyConfigured("VETTANCE is not set: a dict with BASE_URL, API_KEY and ORIGIN")
            try:
                self._shop = shop_of({name.lower(): given[name] for name in given if name not in _OF_DJANGO})
            except WrongSetting as error:
                raise ImproperlyConfigured(f"VETTANCE: {error}") from error
        return self._shop

    @property
    def client(self) -> Client:
        """The client, for everything else that the service has. All threads share it."""
        with self._lock:
            if self._client is None:
                self._client = Client(self.shop.base_url, self.shop.api_key)
            return self._client

    def reset(self) -> None:
        """Read the settings anew when they are next needed."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._shop = self._client = None

    def visitor(self, request: HttpRequest) -> Visitor:
        """Return who sent a request."""
        said = request.META
        return Visitor(
            client_address(said.get("REMOTE_ADDR"), said.get("HTTP_X_FORWARDED_FOR", ""), self.shop.networks),
            said.get("HTTP_USER_AGENT"),
            session_id_of(request.COOKIES.get(self.shop.cookie)),
        )

    def evaluate(
        self,
        request: HttpRequest,
        event: EventBody,
        *,
        deadline_ms: float | None = None,
        on_unavailable: OnUnavailable | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Return the decision on an event; its visitor is read from the request.

        What `deadline_ms` and `on_unavailable` do not say is taken from the settings.
        """
        return self.client.evaluate(
            with_visitor(event, self.visitor(request)),
            deadline_ms=self.shop.deadline_ms if deadline_ms is None else deadline_ms,
            on_unavailable=on_unavailable or self.shop.on_unavailable,
            idempotency_key=idempotency_key,
        )

    def login(
        self,
        request: HttpRequest,
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
        return self.evaluate(request, event, deadline_ms=deadline_ms, on_unavailable=on_unavailable)

    def payment(
        self,
        request: HttpRequest,
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

        `amount` is in units of its currency, not cents. The customer is the signed-in user, unless said.
        """
        event = payment_event(
            customer if customer is not None else customer_of(request), amount, currency, email, metadata
        )
        return self.evaluate(
            request,
            event,
            deadline_ms=deadline_ms,
            on_unavailable=on_unavailable,
            idempotency_key=idempotency_key,
        )

    # A thread waits: loops of Django's async views may live for one request, and connections live longer.
    async def aevaluate(self, request: HttpRequest, event: EventBody, **options: Any) -> Decision:
        """Await the decision on an event; see `evaluate`."""
        return await sync_to_async(self.evaluate, thread_sensitive=False)(request, event, **options)

    async def alogin(self, request: HttpRequest, customer: str | None, **options: Any) -> Decision:
        """Await the decision on a login; see `login`."""
        return await sync_to_async(self.login, thread_sensitive=False)(request, customer, **options)

    async def apayment(self, request: HttpRequest, **options: Any) -> Decision:
        """Await the decision on a payment; see `payment`."""
        if options.get("customer") is None and hasattr(request, "auser"):
            user = await request.auser()
            options["customer"] = str(user.pk) if user.is_authenticated else None
        return await sync_to_async(self.payment, thread_sensitive=False)(request, **options)

    def require(self, decision: Decision) -> None:
        """Go on only if a decision approves. Raises `StepUpNeeded` or `Denied`."""
        if decision.needs_review:
            raise StepUpNeeded(decision)
        if not decision.approved:
            raise Denied(decision)

    def token(self, request: HttpRequest, session_id: str) -> TokenAnswer:
        """Mint a token for a page."""
        body = token_body(self.shop, session_id, customer_of(request))
        return self.client.mint_token(body, deadline_s=self.shop.token_deadline_s)

    def ensure_session(self, request: HttpRequest, response: HttpResponse) -> str:
        """Return the visitor's session; a new visitor's is set by a cookie that scripts cannot read."""
        known = self.visitor(request).session_id
        if known is not None:
            return known
        made = new_session_id()
        response.set_cookie(
            self.shop.cookie, made, secure=self.shop.is_https, httponly=True, samesite="Lax", path="/"
        )
        return made


def customer_of(request: HttpRequest) -> str | None:
    """Return the id of the user who is signed in."""
    user = getattr(request, "user", None)
    return str(user.pk) if user is not None and user.is_authenticated else None


def django_setting(name: str, otherwise: Any = None) -> Any:
    """Return one of the settings in `VETTANCE` that are for Django alone."""
    return (getattr(settings, "VETTANCE", None) or {}).get(name, otherwise)


#: Where `StepUpNeeded` leads, and which of the site's caches remembers deliveries of webhooks.
_OF_DJANGO = ("STEP_UP_URL", "CACHE")

risk: Final = Risk()


def _reset(*, setting: str, **_: object) -> None:
    if setting == "VETTANCE":
        risk.reset()


setting_changed.connect(_reset)
