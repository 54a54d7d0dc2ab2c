"""A page's view of the service: tokens minted by its tenant, requests as a browser sends them."""

import time
from typing import Any

import pytest

from tests.db.conftest import emptied, path, store, url  # noqa: F401 - fixtures
from tests.live import Answer, Caller, Service

ORIGIN = "https://shop.example"


class Page:
    """A page of one origin with one session, and the tenant behind it."""

    def __init__(self, tenant: Caller, **claims: Any) -> None:
        self.tenant = tenant
        self.minted = tenant.post("/api/v1/websdk/tokens", {"origin": ORIGIN, **claims}).json
        self.session: str = self.minted["sdkSessionId"]
        self.headers = {"Authorization": f"Bearer {self.minted['token']}", "Origin": ORIGIN}
        self._batches = 0

    def post(self, where: str, body: Any, **headers: str) -> Answer:
        return self.tenant.service.call(
            "POST", f"/api/v1{where}", body, key=None, headers={**self.headers, **headers}
        )

    def collect(self, **body: Any) -> Answer:
        return self.post("/collect", {"sessionId": self.session, "category": "OTHER", **body})

    def batch(self, **body: Any) -> dict[str, Any]:
        self._batches += 1
        return {
            "schemaVersion": "websdk.v1",
            "batchId": f"b-{self._batches}",
            "sentAt": time.time_ns() // 1_000_000,
            "sdkSessionId": self.session,
            "signals": {},
            **body,
        }

    def queue(self, **body: Any) -> Answer:
        return self.post("/websdk/signals", self.batch(**body))


@pytest.fixture
def page(tenant: Caller) -> Page:
    return Page(tenant)


def without(headers: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def serve_again(service: Service) -> None:
    service.stop()
    service.start()
