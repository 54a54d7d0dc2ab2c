"""The bodies that browsers send: what they may hold, and the event or the signals made of them."""

import enum
import functools
import ipaddress
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.tenants.browser_token import TokenClaims, normal_origin
from vettance.wire.body import FreeForm, Text, how, read_body
from vettance.wire.payload import JSON, STRING_CHARS_MAX, Faults, Wire, put_first

SCHEMA_VERSION: Final = "websdk.v1"

#: How far the clock of a browser may be from ours, either side.
SKEW_MS_MAX: Final = 5 * 60 * 1000

#: The name of an event that `/collect` makes when its payload names none.
EVENT_NAME: Final = "websdk.collect"

_LANGUAGE_CHARS_MAX: Final = 256


class CollectCategory(enum.StrEnum):
    """What kind of thing happened, as pages may say it."""

    AUTHENTICATION = "AUTHENTICATION"
    TRANSACTION = "TRANSACTION"
    OTHER = "OTHER"


Bounded = Annotated[FreeForm | None, how(is_bounded=True)]
Needed = Annotated[str, msgspec.Meta(min_length=1, max_length=STRING_CHARS_MAX)]


class TokenBody(Wire, frozen=True):
    """What a token is minted for. Without an origin, pages of any may use it."""

    EXAMPLE: ClassVar[JSON] = {
        "sdkSessionId": "sdk-session-1",
        "tenantSessionId": "session-1",
        "origin": "https://shop.example",
        "userExternalId": "c-1001",
    }

    sdk_session_id: Text | None = None
    tenant_session_id: Text | None = None
    origin: Annotated[
        Text | None,
        how(check=normal_origin, message="must be an origin such as https://shop.example, without a path"),
    ] = None
    flow: Text | None = None
    user_external_id: Text | None = None


class TokenAnswer(Wire, frozen=True):
    """A token for one session of one page."""

    token: str
    expires_at: str
    sdk_session_id: str


class CollectBody(Wire, frozen=True):
    """What a page asks a decision about."""

    EXAMPLE: ClassVar[JSON] = {
        "sessionId": "sdk-session-1",
        "category": "AUTHENTICATION",
        "payload": {"eventName": "user.login"},
        "sdkSignals": {"paste": False, "keystrokeIntervals": [143.2, 98.1, 201.7], "mouseEntropy": 0.65},
    }

    session_id: Needed
    category: CollectCategory
    customer_id: Text | None = None
    device_id: Text | None = None
    payload: Bounded = None
    sdk_signals: Bounded = None


class CollectAnswer(Wire, frozen=True):
    """The decision. `score` is a fraction from 0 to 1."""

    event_id: str
    decision: Annotated[str, msgspec.Meta(description="`ALLOW`, `REVIEW` or `BLOCK`.")]
    score: Annotated[float, msgspec.Meta(ge=0, le=1)]
    event_category: str
    rules_evaluated: int


class Identity(Wire, frozen=True):
    """Who uses the page, as the page knows them."""

    user_external_id: Text | None = None


class PageBody(Wire, frozen=True):
    """Which page it is."""

    url: Text | None = None
    referrer: Text | None = None


class SignalsBody(Wire, frozen=True):
    """A batch of signals. `sent_at` is Unix milliseconds."""

    EXAMPLE: ClassVar[JSON] = {
        "schemaVersion": "websdk.v1",
        "batchId": "batch-1",
        "sentAt": 1769860800000,
        "sdkSessionId": "sdk-session-1",
        "signals": {"mouseMoves": 214, "keystrokeIntervals": [143.2, 98.1, 201.7], "timezoneOffset": -60},
    }

    schema_version: Annotated[
        str,
        msgspec.Meta(min_length=1, description="`websdk.v1`."),
        how(check={SCHEMA_VERSION: SCHEMA_VERSION}.get, message=f"must be {SCHEMA_VERSION}"),
    ]
    batch_id: Needed
    sent_at: Annotated[int, how(wrong_type="must be an integer, Unix milliseconds")]
    sdk_session_id: Needed
    tenant_session_id: Text | None = None
    anonymous_id: Text | None = None
    identity: Identity | None = None
    page: PageBody | None = None
    signals: Bounded = None


class SignalsAnswer(Wire, frozen=True):
    """A batch is stored and counts for later evaluations of its session."""

    status: str
    batch_id: str


class BrowserSender(msgspec.Struct, frozen=True):
    """What the service itself sees of a browser."""

    address: str | None
    user_agent: str | None
    accept_language: str | None


@functools.lru_cache(maxsize=4096)
def _is_public(address: str) -> bool:
    return ipaddress.ip_address(address).is_global


def read_sender(address: str | None, headers: dict[bytes, bytes]) -> BrowserSender:
    """Note what a request says of its browser.

    An address that is not one of the public Internet is that of a proxy or of a test, and says nothing.
    """
    return BrowserSender(
        address if address is not None and _is_public(address) else None,
        _header_text(headers.get(b"user-agent"), STRING_CHARS_MAX),
        _header_text(headers.get(b"accept-language"), _LANGUAGE_CHARS_MAX),
    )


def _header_text(value: bytes | None, longest: int) -> str | None:
    return value.decode("latin-1")[:longest] if value else None


def read_mint(body: JSON) -> TokenBody:
    """Read the body of a request for a token. Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    asked = read_body(body, TokenBody, faults)
    faults.shape = put_first(faults.shape, ("origin",))
    faults.raise_any()
    return asked


def _same_session(path: str, session: str | None, claims: TokenClaims | None, faults: Faults) -> None:
    if claims is not None and session is not None and session != claims.sdk_session:
        faults.meaning[path] = "must be the sdkSessionId of the token"


def read_collect(body: JSON, claims: TokenClaims | None, sender: BrowserSender) -> JSON:
    """Make the event of a page's question, in the form in which products send events.

    `claims` is None when the caller came with an API key. The event is what the log keeps: it is read again
    by every replay, so everything that a rule may ask is in it. Raises `Invalid` or `Unprocessable`.
    """
    faults = Faults()
    asked = read_body(body, CollectBody, faults)
    _same_session("sessionId", asked.session_id, claims, faults)
    faults.raise_any()
    payload, signals = asked.payload or {}, asked.sdk_signals or {}
    event: JSON = {
        "eventName": _event_name(payload),
        "eventCategory": asked.category.value,
        "sessionId": asked.session_id,
    }
    customer = asked.customer_id
    if customer is None and claims is not None:
        customer = claims.user
    _add(event, "customer", {"externalId": customer} if customer else None)
    fingerprint = _short_text(signals.get("fingerprint"))
    seen = {"externalId": asked.device_id, "fingerprint": fingerprint}
    _add(event, "device", {name: value for name, value in seen.items() if value})
    _add(event, "ip", sender.address)
    _add(event, "userAgent", sender.user_agent)
    _add(event, "payload", payload)
    _add(event, "sdkSignals", {**signals, **_server_seen(sender)} if signals else _server_seen(sender))
    if claims is not None:
        said = {"tenantSessionId": claims.tenant_session, "flow": claims.flow, "userExternalId": claims.user}
        _add(event, "metadata", {name: value for name, value in said.items() if value})
    return event


def _event_name(payload: JSON) -> str:
    return _short_text(payload.get("eventName")) or EVENT_NAME


def _short_text(value: Any) -> str | None:
    return value if type(value) is str and 0 < len(value) <= STRING_CHARS_MAX else None


def _add(event: JSON, name: str, value: Any) -> None:
    if value:
        event[name] = value


def _server_seen(sender: BrowserSender) -> JSON:
    return {"acceptLanguage": sender.accept_language} if sender.accept_language else {}


class SignalBatch(msgspec.Struct, frozen=True):
    """A batch that may be stored. `skew_ms` is how far the clock of its sender is ahead of ours."""

    id: str
    sdk_session: str
    tenant_session: str | None
    skew_ms: int
    signals: JSON


def read_batch(body: JSON, claims: TokenClaims, sender: BrowserSender, now_ms: int) -> SignalBatch:
    """Read a batch. Raises `Invalid` or `Unprocessable`; a clock that is wrong is left to the caller."""
    faults = Faults()
    sent = read_body(body, SignalsBody, faults)
    _same_session("sdkSessionId", sent.sdk_session_id, claims, faults)
    faults.raise_any()
    page = {"url": sent.page.url, "referrer": sent.page.referrer} if sent.page is not None else {}
    known: JSON = {**(sent.signals or {}), **_server_seen(sender)}
    _add(known, "anonymousId", sent.anonymous_id)
    _add(known, "userExternalId", sent.identity.user_external_id if sent.identity is not None else None)
    _add(known, "tenantSessionId", sent.tenant_session_id)
    _add(known, "page", {name: value for name, value in page.items() if value})
    return SignalBatch(
        id=sent.batch_id,
        sdk_session=claims.sdk_session,
        # A page must not speak for another session of its tenant: what its body names is kept with the
        # batch and joins nothing, unless the tenant's server has put the same into the token.
        tenant_session=claims.tenant_session,
        skew_ms=sent.sent_at - now_ms,
        signals=known,
    )
