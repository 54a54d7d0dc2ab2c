"""Masking: personal data as a mere viewer gets it, and tokens that stand for a value in links (ADR 101)."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from vettance.people.role import Role

_PERSON: Final = b"vettance-console"
#: Begins a token in a path or a query. A value of an event may begin so too: then no token opens it.
_MARK: Final = "~"
_SHOWN_CHARS: Final = 4
#: Shorter values would be shown by half with their last four characters.
_SHOWN_OF_MIN: Final = 8

#: Members of events whose texts name nobody; every other text of an event is masked for viewers.
OPEN_MEMBERS: Final = frozenset(
    {
        *("eventName", "event_name", "eventCategory", "event_category", "country", "currency", "channel"),
        *("outcome", "paymentMethod", "payment_method", "source", "occurredAt", "occurred_at", "mcc", "type"),
        *("billingCountry", "billing_country", "shippingCountry", "shipping_country", "cardCountry"),
        *("card_country", "promoCode", "promo_code", "merchantId", "merchant_id", "kind", "status"),
        *("category", "locale", "language", "timezone", "timeZone", "platform", "browser", "os"),
    }
)


class ValueTokens:
    """Makes and opens tokens: the same value has the same token, so that links can be kept and shared."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.blake2b(key=secret, digest_size=32, person=_PERSON).digest()
        self._loaded: Any = None

    @property
    def _cipher(self) -> Any:
        if self._loaded is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV

            self._loaded = AESSIV(
                self._key
            )  # RFC 5297: without a nonce it tells whether values are equal only.
        return self._loaded

    def seal(self, tenant: str, kind: str, value: str) -> str:
        """Return the token of a value of a tenant."""
        sealed = self._cipher.encrypt(value.encode(), [tenant.encode(), kind.encode()])
        return _MARK + base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, tenant: str, kind: str, token: str) -> str | None:
        """Return the value of a token; None for what is no token of this tenant and kind."""
        from cryptography.exceptions import InvalidTag

        text = token.removeprefix(_MARK)
        if text == token:
            return None
        try:
            sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            opened: bytes = self._cipher.decrypt(sealed, [tenant.encode(), kind.encode()])
        except (InvalidTag, binascii.Error, ValueError):
            return None
        return opened.decode()


def is_masked_for(roles: frozenset[Role]) -> bool:
    """Tell whether somebody with these roles gets personal data masked: those who are viewers and no more."""
    return roles <= {Role.VIEWER}


def masked(value: str) -> str:
    """Return what is shown of a personal value: the domain of an e-mail address, the end of anything else."""
    name, at, domain = value.rpartition("@")
    if at and name and "." in domain:
        return f"{name[0]}…@{domain}"
    return f"…{value[-_SHOWN_CHARS:]}" if len(value) > _SHOWN_OF_MIN else "…"


class Sight:
    """What a visitor gets of personal values: the values, or masks and tokens."""

    def __init__(self, tokens: ValueTokens, tenant: str, *, is_masked: bool) -> None:
        self._tokens = tokens
        self._tenant = tenant
        self.is_masked = is_masked
        #: Whether the masks of this page are lifted; links carry tokens all the same.
        self.is_revealed = False
        #: Whether anything was masked.
        self.has_masked = False

    def text(self, value: Any) -> str:
        """Return a personal value as it is shown."""
        return self._mask(str(value)) if self.is_masked else str(value)

    def name(self, kind: str, value: str) -> str:
        """Return what stands for a value in a path or a query."""
        return self._tokens.seal(self._tenant, kind, value) if self.is_masked else value

    def value(self, kind: str, name: str) -> str:
        """Return the value that a part of a path or a query stands for."""
        return self._tokens.open(self._tenant, kind, name) or name

    def member(self, name: str, value: Any) -> Any:
        """Return a member of an event as it is shown, with all that is in it."""
        if not self.is_masked:
            return value
        if isinstance(value, Mapping):
            return {key: self.member(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.member(name, inner) for inner in value]
        if isinstance(value, str) and name not in OPEN_MEMBERS:
            return self._mask(value)
        # A whole number of many digits may be a card, an account or a telephone.
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**9:
            return value if self.is_revealed else self._mask(str(value))
        return value

    def _mask(self, text: str) -> str:
        if self.is_revealed:
            return text
        self.has_masked = True
        return masked(text)
