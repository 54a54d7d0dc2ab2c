"""Hints to whoever is just writing a client: what of a request nobody reads, and what was probably meant."""

from vettance.web.query import names_beyond
from vettance.web.routing import Call, Route
from vettance.wire.suggestions import header_text, unknown_members


def is_told(call: Call) -> bool:
    """Tell whether the caller wants hints: as its tenant is set, and if it is not, with a test key."""
    tells = call.tenant.tell_unknown
    return call.key.is_test if tells is None else tells


def unknown_header(route: Route, call: Call) -> list[tuple[bytes, bytes]]:
    """Return the header that names unknown members and parameters, never what they hold, if there are any."""
    found = names_beyond(call.query_string, route.query)
    if call.parsed is not None and route.takes is not None:
        found += unknown_members(call.parsed, route.takes, route.knows)
    return [(b"x-vettance-unknown", header_text(found).encode("ascii"))] if found else []
