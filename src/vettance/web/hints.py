"""Hints to the author of a client: what of a request nobody reads, and what was probably meant."""

from collections.abc import Sequence

from vettance.web.asgi import Header
from vettance.web.query import names_beyond
from vettance.web.routing import Call, Route
from vettance.wire.suggestions import header_text, unknown_members


def wants_hints(call: Call) -> bool:
    """Tell whether the caller wants hints: as its tenant is set, and if it is not, with a test key."""
    tells = call.tenant.tell_unknown
    return call.key.is_test if tells is None else tells


def hints_of(call: Call) -> tuple[Header, ...]:
    """Return the header that names unknown members and parameters and unreadable amounts, if there are any.

    It never tells what they hold, and is given to a caller that wants it. It is part of the answer: a caller
    that is answered from memory gets it too.
    """
    if call.hints is None:
        call.hints = _unknown(call.route, call) if call.route is not None and wants_hints(call) else ()
    return call.hints


def _unknown(route: Route, call: Call) -> tuple[Header, ...]:
    found = names_beyond(call.query_string, route.query)
    unreadable: Sequence[str] = ()
    if call.parsed is not None and route.takes is not None:
        found += unknown_members(call.parsed, route.takes, route.knows)
        unreadable = route.unreadable(call.parsed) if route.unreadable is not None else ()
    if not found and not unreadable:
        return ()
    return ((b"x-vettance-unknown", header_text(found, unreadable).encode("ascii")),)
