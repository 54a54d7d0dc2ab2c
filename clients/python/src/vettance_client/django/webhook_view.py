"""Receives webhooks: each delivery once, and from the service only."""

import logging
import time
from typing import Any

from django.core.cache import caches
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from vettance_client.django.risk import django_setting, risk
from vettance_client.django.signals import webhook_received
from vettance_client.web.deliveries import BODY_BYTES_MAX, KEEP_S, LEASE_S, Claim, read_delivery
from vettance_client.webhooks import BadSignature

_log = logging.getLogger("vettance")


class CacheDeliveries:
    """Remembers deliveries in a cache of the site; with several processes it must be one that they share."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def claim(self, delivery_id: str) -> Claim:
        """See `Deliveries`."""
        name = _name(delivery_id)
        if self._cache.add(name, "busy", LEASE_S):
            return "new"
        return "done" if self._cache.get(name) == "done" else "busy"

    def finish(self, delivery_id: str) -> None:
        """See `Deliveries`."""
        self._cache.set(_name(delivery_id), "done", KEEP_S)

    def release(self, delivery_id: str) -> None:
        """See `Deliveries`."""
        self._cache.delete(_name(delivery_id))


# The signature says who it is from.
@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Verify a delivery and send `webhook_received`, once for each; 401 for what the service did not sign."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > BODY_BYTES_MAX:
        return HttpResponse(status=413)
    try:
        delivery_id, event = read_delivery(risk.shop, request.body, request.headers)
    except RequestDataTooBig:
        return HttpResponse(status=413)
    except BadSignature as error:
        _log.warning("a webhook was refused: %s", error)
        return HttpResponse(status=401)
    if not webhook_received.has_listeners():
        _log.error("a webhook came and nothing handles it: connect a receiver to `webhook_received`")
        return HttpResponse(status=503)
    deliveries = CacheDeliveries(caches[django_setting("CACHE", "default")])
    claim = deliveries.claim(delivery_id)
    if claim == "busy":
        return HttpResponse(status=503, headers={"Retry-After": str(int(LEASE_S))})
    if claim == "new":
        began = time.monotonic()
        try:
            webhook_received.send(sender=type(event), event=event)
        except BaseException:
            deliveries.release(delivery_id)
            raise
        deliveries.finish(delivery_id)
        if time.monotonic() - began > LEASE_S:
            _log.warning("a receiver of webhooks took longer than %d s: hand it to a queue", LEASE_S)
    return HttpResponse(status=204)


def _name(delivery_id: str) -> str:
    return f"vettance:delivery:{delivery_id}"
