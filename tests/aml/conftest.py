"""Tenants with the AML product."""

import pytest

from tests.aml.watched_money import WatchedMoney, bank_of, watch_money
from tests.live import Caller, Service


@pytest.fixture(scope="module")
def officer(service: Service) -> Caller:
    """A tenant with the AML product."""
    tenant_id, key = service.new_tenant("With AML")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
    return caller


@pytest.fixture
def other_officer(service: Service) -> Caller:
    """Another tenant with the product."""
    tenant_id, key = service.new_tenant("Other with AML")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
    return caller


@pytest.fixture(scope="module")
def money(service: Service) -> WatchedMoney:
    """A bank whose month was watched by the default pack."""
    return watch_money(bank_of(service, "Month of money"), customers=20, seed=7)
