"""Routes whose changes are in the audit log: every one that changes something but the traffic of events."""

from collections.abc import Awaitable, Iterable
from typing import Any, Final

import msgspec

from vettance.audit.act import Act, acting, current_act
from vettance.audit.audited_store import AuditedStore
from vettance.errors import Refusal
from vettance.web.routing import Call, Page, Route, RouteReply

#: What customers do, reported by programs: not a change that somebody makes, and thousands a second. Done by
#: a person in the console, it is in the log as well.
TRAFFIC: Final = frozenset(
    f"/api/v1/{path}"
    for path in (
        "decisions/evaluate",
        "events",
        "events/async",
        "events/ingest",
        "collect",
        "websdk/tokens",
        "websdk/signals",
        "aml/events",
        "aml/screen",
    )
)
_READS: Final = ("GET", "HEAD")


def is_change(route: Route) -> bool:
    """Tell whether calls of a route change something."""
    return route.method not in _READS


def audited(routes: Iterable[Route], store: AuditedStore) -> tuple[Route, ...]:
    """Return the routes with those that change something recorded in the log.

    The entry is in the commit of the change where the door writes through `store`, else in one of its own.
    """
    return tuple(_recorded(route, store) if is_change(route) else route for route in routes)


def _recorded(route: Route, store: AuditedStore) -> Route:
    handler, is_traffic = route.handler, route.path in TRAFFIC

    async def record(call: Call) -> RouteReply | Page:
        outer, act = current_act(), act_of(route, call)
        with acting(act):
            reply = await handler(call)
            await store.record()
        if outer is not None:
            outer.is_recorded = True
        return reply

    def handle(call: Call) -> Awaitable[RouteReply | Page]:
        if is_traffic and call.actor is None and current_act() is None:
            return handler(call)
        return record(call)

    return msgspec.structs.replace(route, handler=handle)


def act_of(route: Route, call: Call) -> Act:
    """Say who does what by a call: the path with its parameters, and the body without secrets."""
    subject = ", ".join(call.path.values())
    action = f"{route.method} {route.path}"
    outer = current_act()  # of the page that calls, which knows the name of its user
    actor = outer.actor if outer is not None else call.actor or call.key.id
    return Act(actor, action, tenant=call.tenant.id, subject=subject, after=_body_of(route, call))


def _body_of(route: Route, call: Call) -> Any:
    if route.takes is None or not call.body:
        return None
    try:
        return call.json()
    except Refusal:
        return None  # The handler says so.
