"""The API asked in process: pages read and change by the endpoints of tenants, so no number can differ."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from vettance.console.page import Ask
from vettance.errors import Forbidden, NotFound
from vettance.fairness.time_slice import DECISIONS
from vettance.tenants.tenant import Tenant
from vettance.web.routing import NO_KEY, Call, Page, RouteReply, RouteTable
from vettance.wire.payload import decode, encode


def asker(routes: RouteTable, tenant: Tenant, user_id: str, request_id: str, now_ms: int) -> Ask:
    """Return what asks the endpoints of `routes` for a tenant, as a user who is signed in."""

    async def ask(method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        match = routes.find(method, path.encode())
        if match is None or match.route is None or match.unreadable:
            raise NotFound
        route = match.route
        if route.product is not None and not getattr(tenant, route.product):
            raise Forbidden(f"The product {route.product} is not switched on for this tenant.")
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        call = Call(
            request_id,
            match.parameters,
            urlencode(given, quote_via=quote).encode(),
            {},
            encode(body if body is not None else {}) if route.takes is not None else b"",
            now_ms,
            tenant,
            NO_KEY,
            route=route,
            actor=user_id,
        )
        await DECISIONS.go_first()
        reply = await route.handler(call)
        await DECISIONS.go_first()
        if isinstance(reply, RouteReply):
            return decode(encode(reply.payload))
        return decode(await _whole(reply))

    return ask


async def _whole(page: Page) -> bytes:
    """Return the bytes of an answer that is made in pieces."""
    if page.pieces is None:
        return page.content
    return b"".join([piece async for piece in page.pieces()])
