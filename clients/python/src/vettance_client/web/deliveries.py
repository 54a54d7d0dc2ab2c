"""Which deliveries of webhooks were handled already, so that each has one effect."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from vettance_client.web.shop import Shop
from vettance_client.webhooks import BadSignature, WebhookEvent, verify_webhook

BODY_BYTES_MAX = 1 << 20
#: Deliveries carry the time of their attempt. An older one was recorded.
TOLERANCE_S = 300.0
#: A process that dies while it handles a delivery holds it this long; the service tries for 31 seconds.
LEASE_S = 20.0
#: Deliveries can be sent again as long as the service keeps them.
KEEP_S = 90 * 86_400.0
_IDS_MAX = 100_000
_ID_CHARS_MAX = 200

Claim = Literal["new", "busy", "done"]


class Deliveries(Protocol):
    """Remembers deliveries by their id. With several processes, they must share what is remembered."""

    def claim(self, delivery_id: str) -> Claim:
        """Begin to handle a delivery, unless it is handled already, or just now by somebody else."""

    def finish(self, delivery_id: str) -> None:
        """Remember that a delivery was handled."""

    def release(self, delivery_id: str) -> None:
        """Give a delivery back that could not be handled; the service sends it again."""


class MemoryDeliveries:
    """Remembers the newest deliveries in the memory of one process, until that ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: OrderedDict[str, tuple[Claim, float]] = OrderedDict()

    def claim(self, delivery_id: str) -> Claim:
        """See `Deliveries`."""
        now = self._clock()
        with self._lock:
            state, until = self._until.get(delivery_id, ("new", 0.0))
            if state != "new" and until > now:
                return state
            self._keep(delivery_id, "busy", now + LEASE_S)
            return "new"

    def finish(self, delivery_id: str) -> None:
        """See `Deliveries`."""
        with self._lock:
            self._keep(delivery_id, "done", self._clock() + KEEP_S)

    def release(self, delivery_id: str) -> None:
        """See `Deliveries`."""
        with self._lock:
            self._until.pop(delivery_id, None)

    def _keep(self, delivery_id: str, state: Claim, until: float) -> None:
        self._until[delivery_id] = (state, until)
        self._until.move_to_end(delivery_id)
        while len(self._until) > _IDS_MAX:
            self._until.popitem(last=False)


def read_delivery(shop: Shop, body: bytes, headers: Mapping[str, str]) -> tuple[str, WebhookEvent]:
    """Verify a delivery by its signature over body, time and id; return the id and what the webhook says.

    Raises `BadSignature`, and `WrongSetting` when the shop has no secret.
    """
    event = verify_webhook(body, headers, shop.secrets(), tolerance_s=TOLERANCE_S)
    names = {name.lower(): value for name, value in headers.items()}
    delivery_id = names.get("webhook-id", "")
    if not 0 < len(delivery_id) <= _ID_CHARS_MAX:
        raise BadSignature("The webhook has no id.")
    return delivery_id, event
