"""Tenants and their API keys: who calls, with which products and limits."""

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from vettance.tenants.key_scope import SCOPES_DEFAULT, KeyScope

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_CHARS = 26
_CHECK_CHARS = 6
_KEY = re.compile(r"vtc_(live|test)_([0-9A-Za-z]{26})([0-9A-Za-z]{6})", re.ASCII)

_TEST_HINT = "vtc_test_"

THROTTLE_DEFAULT = 300  # requests in any 60 seconds, for each key
QUOTA_DEFAULT = 10_000  # requests in an hour of the clock, for each tenant
SUBSCRIPTIONS_DEFAULT = 25  # of webhooks; each one that listens is a row in the commit of what it receives
SUBSCRIPTIONS_MAX = 1_000  # what has been measured; a decision waits for the rows of all that listen
#: Entries of both lists together: every process keeps all of them in memory, half a kilobyte each.
LIST_ENTRIES_DEFAULT = 100_000
LIST_ENTRIES_MAX = 10_000_000

#: A review is due after so many hours, and expires so many days later.
REVIEW_HOURS_DEFAULT = 24
REVIEW_DAYS_DEFAULT = 30


class Tenant(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One customer of the service. Everything stored belongs to exactly one tenant."""

    id: str
    name: str
    aml: bool = False
    throttle: int = THROTTLE_DEFAULT
    quota: int = QUOTA_DEFAULT
    collect_key: bool = False
    require_origin: bool = False
    tell_unknown: bool | None = None  # None: for test keys
    subscriptions: int = SUBSCRIPTIONS_DEFAULT
    list_entries: int = LIST_ENTRIES_DEFAULT
    review_denied: bool = False
    review_hours: int = REVIEW_HOURS_DEFAULT
    review_days: int = REVIEW_DAYS_DEFAULT
    review_checks: int = 0
    rule_approval: bool = False
    label_maturity: int = 0
    second_factor: bool = False


class TenantSetting(NamedTuple):
    """A setting of a tenant: what it does, and which values it takes."""

    help: str
    kind: type[bool] | type[int] = bool
    least: int = 1
    most: int = 1_000_000_000


#: Every setting by its field in `Tenant`; commands, answers and the store follow from this table.
SETTINGS: Final[Mapping[str, TenantSetting]] = {
    "aml": TenantSetting("Switch the AML product."),
    "throttle": TenantSetting("Requests per key in any 60 seconds.", int),
    "quota": TenantSetting("Requests per hour of the clock.", int),
    "collect_key": TenantSetting("Take API keys at /collect as well (Mode C)."),
    "require_origin": TenantSetting("Refuse tokens sent without an Origin header."),
    "tell_unknown": TenantSetting("Name unknown members in X-Vettance-Unknown; unset: for test keys."),
    "subscriptions": TenantSetting("Webhook subscriptions at a time.", int, most=SUBSCRIPTIONS_MAX),
    "list_entries": TenantSetting(
        "Entries of the allow and block lists together.", int, most=LIST_ENTRIES_MAX
    ),
    "review_denied": TenantSetting("Open reviews of denied events too, not only of those held."),
    "review_hours": TenantSetting("Hours until a review is due.", int, most=8_760),
    "review_days": TenantSetting("Days after it was due when a review expires.", int, most=3_650),
    "review_checks": TenantSetting(
        "Settled reviews in a hundred that a second person looks at.", int, least=0, most=100
    ),
    "rule_approval": TenantSetting("Rules come into force only when another person or key approves them."),
    "label_maturity": TenantSetting(
        "Days after which an event without a label counts as legitimate; 0: four times what labels take.",
        int,
        least=0,
        most=3_650,
    ),
    "second_factor": TenantSetting("Demand a second factor of all who use the console."),
}


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as the service remembers it: never the key itself, only a keyed hash of it."""

    id: str
    tenant: str
    digest: bytes
    hint: str  # prefix and last four characters, so that people can tell keys apart
    created_at_ms: int
    revoked_at_ms: int | None = None
    name: str = ""  # what people call it
    last_used_at_ms: int | None = None
    scopes: frozenset[KeyScope] = SCOPES_DEFAULT

    @property
    def is_test(self) -> bool:
        """Whether it was made where nothing is live."""
        return self.hint.startswith(_TEST_HINT)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, rest = divmod(number, 62)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


def _checksum(marker: str, random_part: str) -> str:
    return _base62(zlib.crc32(f"{marker}_{random_part}".encode()), _CHECK_CHARS)


def make_key(*, live: bool) -> str:
    """Make a new API key: prefix, environment marker, 26 random characters and a checksum of 6 (base62)."""
    marker = "live" if live else "test"
    random_part = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARS))
    return f"vtc_{marker}_{random_part}{_checksum(marker, random_part)}"


def new_key(
    key_id: str,
    tenant_id: str,
    name: str,
    secret: bytes,
    now_ms: int,
    *,
    live: bool,
    scopes: frozenset[KeyScope] = SCOPES_DEFAULT,
) -> tuple["Key", str]:
    """Make a key; returns what is stored of it, and the key itself, which is shown once."""
    text = make_key(live=live)
    made = Key(
        id=key_id,
        tenant=tenant_id,
        digest=key_digest(secret, text),
        hint=key_hint(text),
        created_at_ms=now_ms,
        name=name,
        scopes=scopes,
    )
    return made, text


def is_key(text: str) -> bool:
    """Tell whether `text` has the form and checksum of an API key, issued or not."""
    match = _KEY.fullmatch(text)
    return match is not None and hmac.compare_digest(_checksum(match[1], match[2]), match[3])


def key_digest(pepper: bytes, api_key: str) -> bytes:
    """Hash a key for storage: keyed BLAKE2b, so that a stolen database alone cannot confirm a guess."""
    return hashlib.blake2b(api_key.encode(), key=pepper, digest_size=32).digest()


def key_hint(api_key: str) -> str:
    """Return what may be shown of a key: its prefix and its last four characters."""
    return f"{api_key[:9]}…{api_key[-4:]}"
