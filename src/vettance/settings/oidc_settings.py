"""OIDC: which provider signs people in, and which roles its claims give, as the settings have it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from vettance.settings.setting_row import SettingRow

ISSUER: Final = "VETTANCE_OIDC_ISSUER"
_CLIENT: Final = "VETTANCE_OIDC_CLIENT_ID"
_SECRET: Final = "VETTANCE_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a setting
_ROLES: Final = "VETTANCE_OIDC_ROLES"
SCOPES: Final = "openid email profile"
ROLE_CLAIM: Final = "roles"
OIDC_ROWS: Final = (
    SettingRow(ISSUER, "an https URL", "none", "The OpenID provider that signs people in."),
    SettingRow(_CLIENT, "a text", "none", "What this service is to the provider."),
    SettingRow(_SECRET, "a text", "none", "Its secret there; a public client has none."),
    SettingRow("VETTANCE_OIDC_SCOPES", "words", SCOPES, "What is asked of the provider."),
    SettingRow("VETTANCE_OIDC_ROLE_CLAIM", "a name", ROLE_CLAIM, "The claim whose values give roles."),
    SettingRow(
        _ROLES,
        "a list",
        "none",
        "Which roles a value of that claim gives, such as `fraud-team=ten_…:analyst+lead,heads=ten_…:admin`. "
        "Without it, administrators give roles as to anybody.",
    ),
)
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
#: The words of `people.role.Role`, which is above this room; a test holds them together.
ROLE_WORDS: Final = frozenset({"viewer", "analyst", "lead", "editor", "admin", "auditor"})
_GRANT: Final = re.compile(r"\s*([^=,]+?)\s*=\s*(ten_[0-9a-f]{32})\s*:\s*([a-z]+(?:\s*\+\s*[a-z]+)*)\s*")


class RoleGrant(NamedTuple):
    """Roles for a tenant that a value of the claim gives."""

    value: str
    tenant: str
    roles: tuple[str, ...]


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A provider of OpenID Connect, and what this service is to it."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    scopes: str = SCOPES
    role_claim: str = ROLE_CLAIM
    grants: tuple[RoleGrant, ...] = ()


def read_oidc(environ: Mapping[str, str]) -> OidcSettings | None:
    """Read the settings of the provider; None where there is none. Raises `ValueError` with a sentence."""
    issuer = environ.get(ISSUER)
    if not issuer:
        # These mean nothing alone; scopes and the claim have defaults, which a template may spell out.
        alone = next((name for name in (_CLIENT, _SECRET, _ROLES) if environ.get(name)), None)
        if alone is not None:
            raise ValueError(f"{alone} needs {ISSUER} as well")
        return None
    if not is_trustworthy(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
        raise ValueError(f"{ISSUER} must be an https URL, such as https://accounts.example.com")
    client_id = environ.get(_CLIENT)
    if not client_id:
        raise ValueError(f"{ISSUER} needs {_CLIENT} as well")
    scopes = environ.get("VETTANCE_OIDC_SCOPES") or SCOPES
    if "openid" not in scopes.split():
        raise ValueError("VETTANCE_OIDC_SCOPES must contain openid")
    return OidcSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=environ.get(_SECRET) or None,
        scopes=scopes,
        role_claim=environ.get("VETTANCE_OIDC_ROLE_CLAIM") or ROLE_CLAIM,
        grants=_read_grants(environ.get(_ROLES) or ""),
    )


def is_trustworthy(url: object) -> bool:
    """Tell whether what an URL answers can be believed: by https, or from this machine."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return host is not None and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _read_grants(text: str) -> tuple[RoleGrant, ...]:
    found = []
    for part in text.split(",") if text.strip() else ():
        match = _GRANT.fullmatch(part)
        roles = tuple(word.strip() for word in match[3].split("+")) if match else ()
        if match is None or not set(roles) <= ROLE_WORDS:
            raise ValueError(
                f"{_ROLES} must be a list such as fraud-team=ten_…:analyst+lead, not {part.strip()!r}"
            )
        found.append(RoleGrant(match[1], match[2], roles))
    return tuple(found)
