"""Fixtures of the console's tests: people of the module's tenant, by role."""

from collections.abc import Callable

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service

SignIn = Callable[..., Visitor]


@pytest.fixture(scope="module")
def people(service: Service, tenant: Caller) -> SignIn:
    """Gives a signed-in person of the module's tenant by roles; the same one for the same roles."""
    known: dict[tuple[str, ...], Visitor] = {}

    def person(*roles: str) -> Visitor:
        if roles not in known:
            known[roles] = visitor_of(service, tenant.id, *roles)
        return known[roles]

    return person
