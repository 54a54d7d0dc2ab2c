"""The doors of webhooks: subscriptions, their secrets, the log of deliveries, and sending again."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vettance import clock
from vettance.db.engine import Clash, Lost, Row, Store
from vettance.errors import Conflict, LimitReached, NotFound, Unavailable, Unprocessable
from vettance.ids import IdSource, is_id
from vettance.limits.shares import DynamicShares
from vettance.outbox import envelope
from vettance.tenants.sql import note_change
from vettance.tenants.vault import UnsealFailure, Vault
from vettance.web.paging import bad_cursor
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply
from vettance.webhooks import sql
from vettance.webhooks.answers import (
    DeliveryAnswer,
    DeliveryPage,
    DeliveryQuery,
    Replayed,
    Rotated,
    SubscriptionDetail,
    SubscriptionList,
    SubscriptionMade,
    SubscriptionRemoved,
    Tried,
    answer,
    delivery_answers,
    detail,
)
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.receiver_address import AddressForbidden
from vettance.webhooks.requests import (
    ReplayBody,
    RotationBody,
    SubscriptionBody,
    read_phase,
    read_replay,
    read_subscription,
)
from vettance.webhooks.resolve import ResolutionFailure
from vettance.webhooks.retry_policy import TEST_S_MAX
from vettance.webhooks.webhook import (
    OLD_SECRET_MS,
    UNREACHED,
    AttemptOutcome,
    Subscription,
    free_slot,
    make_secret,
    signed_headers,
)
from vettance.wire.numbers import read_whole
from vettance.wire.payload import encode, timestamp

_TAG: Final = "Webhooks"
_ROOT: Final = "/api/v1/webhooks"

#: How long subscribing waits for the receiver's name. One that does not resolve now may do so later; what
#: counts is the check at each connection.
_RESOLVE_S_MAX: Final = 2.0
#: Test deliveries under way in this process. Each may take fifteen seconds of somebody else's making.
_TESTS_MAX: Final = 64
#: And those of one tenant, who tries out one or two receivers at a time.
_TESTS_OF_TENANT_MAX: Final = 4
_REPLAY_ROWS: Final = 1_000
#: A replay queues no more than that so many deliveries wait for its tenant, about what is sent in ten
#: seconds. It is called again when they are gone.
_REPLAY_WAITING_MAX: Final = 10_000
_SLOT_TRIES: Final = 5


class WebhookDoors:
    """Keeps subscriptions and shows deliveries.

    `on_subscribed` is called after a subscription was stored, so that there is a worker to deliver to it.
    `unsafe` takes http and local receivers.
    """

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        vault: Vault,
        postman: WebhookClient,
        on_subscribed: Callable[[str], None],
        *,
        unsafe: bool = False,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._vault = vault
        self._postman = postman
        self._on_subscribed = on_subscribed
        self._unsafe = unsafe
        self._now_ms = now_ms
        self._tests = DynamicShares(_TESTS_MAX)

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        many = f"{_ROOT}/subscriptions"
        made: dict[str, Any] = {"takes": SubscriptionBody, "answers": SubscriptionMade, "status": 201}
        made |= {"refusals": (409, 422), "idempotent": True}
        return (
            Route("POST", many, self.subscribe, "Subscribe to events", _TAG, **made),
            Route("GET", many, self.subscriptions, "Every subscription", _TAG, answers=SubscriptionList),
            self._on_one("GET", "", self.subscription, "A subscription and its health", SubscriptionDetail),
            self._on_one("DELETE", "", self.unsubscribe, "Remove a subscription", SubscriptionRemoved),
            self._on_one("POST", "/test", self.test, "Send a test delivery, once", Tried),
            self._on_one(
                "POST",
                "/rotate-secret",
                self.rotate,
                "Prepare a new secret, or put it in force",
                Rotated,
                takes=RotationBody,
                refusals=(404, 409),
                idempotent=True,
            ),
            self._on_one(
                "GET",
                "/deliveries",
                self.deliveries,
                "Deliveries and their attempts, newest first",
                DeliveryPage,
                query=DeliveryQuery,
            ),
            self._on_one(
                "POST",
                "/replay",
                self.replay_many,
                "Send deliveries again",
                Replayed,
                takes=ReplayBody,
                may_lack_body=True,
                refusals=(404, 422),
                idempotent=True,
            ),
            Route(
                "POST",
                f"{_ROOT}/deliveries/{{id}}/replay",
                self.replay,
                "Send one delivery again",
                _TAG,
                answers=DeliveryAnswer,
                refusals=(404, 409),
                idempotent=True,
            ),
        )

    def _on_one(
        self, method: str, path: str, handler: Any, summary: str, answers: type, **more: Any
    ) -> Route:
        more.setdefault("refusals", (404,))
        where = f"{_ROOT}/subscriptions/{{id}}{path}"
        return Route(method, where, handler, summary, _TAG, answers=answers, **more)

    async def subscribe(self, call: Call) -> RouteReply:
        """POST /webhooks/subscriptions."""
        url, types = read_subscription(call.json(), unsafe=self._unsafe)
        await self._check_name(url)
        tenant, now_ms, secret = call.tenant.id, self._now_ms(), make_secret()
        for _ in range(_SLOT_TRIES):
            rows = await self._store.read(sql.select_subscriptions(tenant))
            if len(rows) >= call.tenant.subscriptions:
                raise Conflict(
                    f"This tenant has {len(rows)} webhook subscriptions, and may have "
                    f"{call.tenant.subscriptions}. Remove one, or ask your operator for more.",
                    "too_many_subscriptions",
                    limit=call.tenant.subscriptions,
                )
            made = Subscription(
                id=self._ids.make("whs", now_ms),
                tenant=tenant,
                slot=free_slot([sql.subscription_of(row).slot for row in rows]),
                url=url,
                event_types=types,
                created_at_ms=now_ms,
                updated_at_ms=now_ms,
            )
            shown = msgspec.structs.asdict(answer(made))
            reply = RouteReply(SubscriptionMade(**shown, signing_secret=secret), 201)
            try:
                await self._store.write(
                    *sql.insert_subscription(made, sql.seal(self._vault, secret, tenant, made.id)),
                    note_change(sql.AREA, tenant, made.id, now_ms),
                    *call.keep(reply),
                )
            except Clash:
                continue  # Another subscription of this tenant took the slot at the same time.
            self._on_subscribed(tenant)
            return reply
        raise Unavailable("Too many subscriptions are being made at once. Try again.")

    async def _check_name(self, url: str) -> None:
        """Refuse a name that leads to a forbidden address already now."""
        if self._unsafe:
            return
        try:
            async with asyncio.timeout(_RESOLVE_S_MAX):
                await self._postman.find(url)
        except (ResolutionFailure, TimeoutError):
            return
        except AddressForbidden as forbidden:
            raise Unprocessable(
                "The request cannot be processed; see details.", {"url": str(forbidden)}
            ) from None

    async def subscriptions(self, call: Call) -> RouteReply:
        """GET /webhooks/subscriptions."""
        rows = await self._store.read(sql.select_subscriptions(call.tenant.id))
        return RouteReply(SubscriptionList(subscriptions=[answer(sql.subscription_of(row)) for row in rows]))

    async def _find(self, call: Call) -> Subscription:
        if not is_id(call.path["id"], "whs"):
            raise NotFound
        rows = await self._store.read(sql.select_subscription(call.tenant.id, call.path["id"]))
        if not rows:
            raise NotFound
        return sql.subscription_of(rows[0])

    async def subscription(self, call: Call) -> RouteReply:
        """GET /webhooks/subscriptions/{id}."""
        found = await self._find(call)
        pending, oldest_at_ms = (await self._store.read(sql.select_backlog(found.tenant, found.id)))[0]
        return RouteReply(detail(found, pending, oldest_at_ms, self._now_ms()))

    async def unsubscribe(self, call: Call) -> RouteReply:
        """DELETE /webhooks/subscriptions/{id}."""
        found = await self._find(call)
        try:
            await self._store.write(
                *sql.delete_subscription(found.tenant, found.id),
                note_change(sql.AREA, found.tenant, found.id, self._now_ms()),
            )
        except Lost:
            raise NotFound from None
        return RouteReply(SubscriptionRemoved(success=True, message="The subscription was removed."))

    async def _secrets(self, found: Subscription) -> list[str]:
        rows = await self._store.read(sql.select_secrets(found.tenant, found.id))
        if not rows:
            raise NotFound
        signing = sql.Secrets._make(rows[0]).signing(self._now_ms())
        return [sql.unseal(self._vault, sealed, found.tenant, found.id) for sealed in signing]

    async def test(self, call: Call) -> RouteReply:
        """POST /webhooks/subscriptions/{id}/test."""
        found = await self._find(call)
        now_ms, kind = self._now_ms(), found.event_types[0]
        test_id = self._ids.make("dlv", now_ms)
        body = envelope(kind, now_ms, encode({"id": test_id, "test": True}))
        try:
            keys = await self._secrets(found)
        except UnsealFailure:
            return RouteReply(
                Tried(success=False, status_code=0, message="The signing secret does not open.")
            )
        headers = signed_headers(kind.value, test_id, 1, now_ms // 1000, body, keys)
        self._check_tests(found.tenant)
        self._tests.count(1, found.tenant)
        try:
            outcome = await self._postman.post(found.url, headers, body)
        finally:
            self._tests.give(1, found.tenant)
        return RouteReply(_tried(outcome))

    def _check_tests(self, tenant: str) -> None:
        """Refuse a test delivery when there are too many already; those of others leave room for some."""
        if self._tests.held(tenant) >= _TESTS_OF_TENANT_MAX:
            raise LimitReached(
                f"{_TESTS_OF_TENANT_MAX} test deliveries of this tenant are under way already. Wait for one "
                "of them to be answered.",
                _TESTS_OF_TENANT_MAX,
                TEST_S_MAX,
                1,
            )
        if not self._tests.fits(1, tenant):
            raise Unavailable("Too many test deliveries are under way. Try again in a few seconds.", 5)

    async def rotate(self, call: Call) -> RouteReply:
        """POST /webhooks/subscriptions/{id}/rotate-secret."""
        phase = read_phase(call.json())
        found, now_ms = await self._find(call), self._now_ms()
        try:
            if phase == "prepare":
                secret = make_secret()
                sealed = sql.seal(self._vault, secret, found.tenant, found.id)
                change = sql.prepare_secret(found.tenant, found.id, sealed, now_ms)
                reply = RouteReply(Rotated(phase=phase, signing_secret=secret))
            else:
                until_ms = now_ms + OLD_SECRET_MS
                change = sql.promote_secret(found.tenant, found.id, until_ms, now_ms)
                reply = RouteReply(Rotated(phase=phase, former_secret_expires_at=timestamp(until_ms)))
            await self._store.write(change, *call.keep(reply))
        except Lost:
            raise Conflict("No new secret is prepared.", "not_prepared") from None
        return reply

    async def deliveries(self, call: Call) -> RouteReply:
        """GET /webhooks/subscriptions/{id}/deliveries."""
        query = read_query(call.query_string, DeliveryQuery)
        found = await self._find(call)
        chosen = sql.DeliveryFilter(found.tenant, found.id, query.state, query.created_from, query.created_to)
        total = (await self._store.read(chosen.count()))[0][0]
        last = _read_cursor(query.cursor)
        rows = await self._store.read(
            chosen.page(query.limit + 1, query.offset, last, descending=query.descending)
        )
        shown, more = rows[: query.limit], len(rows) > query.limit
        return RouteReply(
            DeliveryPage.of(
                query, await self._with_attempts(shown), total, str(shown[-1][0]) if more else None
            )
        )

    async def _with_attempts(self, rows: list[Row]) -> list[DeliveryAnswer]:
        deliveries = [sql.Delivery._make(row) for row in rows]
        if not deliveries:
            return []
        attempts = await self._store.read(sql.select_attempts([one.seq for one in deliveries]))
        return delivery_answers(deliveries, map(sql.Attempt._make, attempts))

    async def replay(self, call: Call) -> RouteReply:
        """POST /webhooks/deliveries/{id}/replay."""
        tenant, delivery_id, now_ms = call.tenant.id, call.path["id"], self._now_ms()
        rows = await self._find_delivery(tenant, delivery_id)
        subscription = sql.Delivery._make(rows[0]).subscription
        if not await self._store.read(sql.select_subscription(tenant, subscription)):
            raise Conflict("The subscription of this delivery is removed.", "subscription_removed")
        await self._store.write(
            sql.replay(tenant, delivery_id, now_ms), note_change(sql.AREA, tenant, subscription, now_ms)
        )
        return RouteReply((await self._with_attempts(await self._find_delivery(tenant, delivery_id)))[0])

    async def _find_delivery(self, tenant: str, delivery_id: str) -> list[Row]:
        rows = []
        if is_id(delivery_id, "dlv"):
            rows = await self._store.read(sql.select_delivery(tenant, delivery_id))
        if not rows:
            raise NotFound
        return rows

    async def replay_many(self, call: Call) -> RouteReply:
        """POST /webhooks/subscriptions/{id}/replay."""
        span, state = read_replay(call.json() if call.body else {})
        found, now_ms = await self._find(call), self._now_ms()
        change = note_change(sql.AREA, found.tenant, found.id, now_ms)
        waiting = sql.count_waiting(found.tenant, _REPLAY_WAITING_MAX)
        room = _REPLAY_WAITING_MAX - (await self._store.read(waiting))[0][0]
        replayed, complete = 0, False
        while replayed < room and not complete:
            rows = min(_REPLAY_ROWS, room - replayed)
            again = sql.replay_many(found.tenant, found.id, state, span, now_ms, rows)
            queued = (await self._store.write(again, change))[0]
            replayed += queued
            complete = queued < rows
        return RouteReply(
            Replayed(
                success=True,
                replayed=replayed,
                complete=complete,
                message=(
                    "The deliveries are queued again."
                    if complete
                    else f"{_REPLAY_WAITING_MAX:,} deliveries wait by now. Call again when they are sent."
                ),
            )
        )


def _read_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if (place := read_whole(cursor)) is None:
        raise bad_cursor()
    return place


def _tried(outcome: AttemptOutcome) -> Tried:
    if outcome.failure is None:
        message = "The receiver took the test delivery."
    elif outcome.status:
        message = f"The receiver answered {outcome.status}; 2xx is wanted."
    else:
        message = UNREACHED[outcome.failure]
    return Tried(success=outcome.failure is None, status_code=outcome.status, message=message)
