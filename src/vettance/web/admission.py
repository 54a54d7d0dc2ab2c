"""What the gate has said about a request."""

import msgspec

from vettance.errors import Refusal
from vettance.tenants.browser_token import TokenClaims
from vettance.tenants.tenant import Key, Tenant
from vettance.web.asgi import Header


class Admission(msgspec.Struct, frozen=True, gc=False):
    """What the gate said: who calls, the limit headers of the answer, and the refusal if there is one."""

    tenant: Tenant
    key: Key
    headers: list[Header]
    refusal: Refusal | None = None
    claims: TokenClaims | None = None
    caller: str = ""  # whose throttle is charged
    quota_reset_s: float = 0.0  # Unix second at which the hour ends that is charged
