"""The settings of a shop: whom it asks, how long it waits, and what its pages need."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from vettance_client.client import OnUnavailable
from vettance_client.web.client_address import Network

Consent = Literal["given", "asked"]
Build = Literal["core", "full"]


#: Every page asks for a token: while the service hangs, it holds a worker of the shop no longer than this.
_TOKEN_S = 1.0


class WrongSetting(ValueError):
    """A setting is missing or has a value that cannot work; the text names it."""


@dataclass(frozen=True, kw_only=True)
class Shop:
    """The settings of a shop.

    `base_url` is the service's address as the shop's server reaches it, `browser_url` as browsers do (the
    same unless said). `origin` is the shop's own address. `deadline_ms` bounds a call with all its attempts;
    `on_unavailable` says what to go on with after it. A page's token has a second, or as long as a call where
    that is more. `proxies` are the addresses and networks of your own proxies (`unix` for one that connects
    by a Unix socket): only what they say of a client's address counts.
    With `consent="asked"`, pages measure nothing until your banner says so (event `vettance-consent`).
    `sdk_version` and `sdk_integrity` pin the script that pages load.

    Raises `WrongSetting`.
    """

    base_url: str
    api_key: str = field(repr=False)
    origin: str | None = None
    browser_url: str | None = None
    webhook_secret: str | Sequence[str] | None = field(default=None, repr=False)
    deadline_ms: float = 250
    on_unavailable: OnUnavailable = "review"
    proxies: Sequence[str] = ()
    consent: Consent = "asked"
    sdk: Build = "core"
    sdk_version: str | None = None
    sdk_integrity: str | None = None
    cookie: str = "vettance_session"
    networks: tuple[Network, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check every setting."""
        _check_address("base_url", self.base_url, path=True)
        if self.browser_url is not None:
            _check_address("browser_url", self.browser_url, path=True)
        if self.origin is not None:
            _check_address("origin", self.origin, path=False)
        if not self.api_key:
            raise WrongSetting("api_key is empty: `vettance key create` makes one")
        if not self.deadline_ms > 0:
            raise WrongSetting("deadline_ms must be more than 0")
        _check_word("on_unavailable", self.on_unavailable, get_args(OnUnavailable))
        _check_word("consent", self.consent, get_args(Consent))
        _check_word("sdk", self.sdk, get_args(Build))
        if self.sdk_integrity is not None and self.sdk_version is None:
            raise WrongSetting("sdk_integrity needs sdk_version: the newest script changes")
        object.__setattr__(self, "networks", _networks_of(self.proxies))

    @property
    def token_deadline_s(self) -> float:
        """How long a page's token may take; a slow service is as slow for tokens as for other calls."""
        return max(_TOKEN_S, self.deadline_ms / 1000)

    @property
    def is_https(self) -> bool:
        """Whether cookies may be kept to https."""
        return self.origin is not None and self.origin.startswith("https://")

    def own_origin(self) -> str:
        """Return the shop's address as browsers write it. Raises `WrongSetting` when it is not set."""
        if self.origin is None:
            raise WrongSetting(
                "origin is not set: the address of your shop, such as https://shop.example.com"
            )
        return self.origin.rstrip("/").lower()

    def secrets(self) -> Sequence[str]:
        """Return the signing secrets of webhooks. Raises `WrongSetting` when there is none."""
        said = [self.webhook_secret] if isinstance(self.webhook_secret, str) else self.webhook_secret or ()
        given = [one for one in said if one]
        if not given:
            raise WrongSetting(
                "webhook_secret is not set: the `signingSecret` of your subscription (whsec_…)"
            )
        return given


def shop_of(given: Mapping[str, Any]) -> Shop:
    """Return the settings that a framework's own settings give by name. Raises `WrongSetting`."""
    known = {one.name for one in fields(Shop) if one.init}
    unknown = sorted(set(given) - known)
    if unknown:
        raise WrongSetting(f"there is no setting {unknown[0]}; there are {', '.join(sorted(known))}")
    missing = [name for name in ("base_url", "api_key") if not given.get(name)]
    if missing:
        raise WrongSetting(f"{missing[0]} is not set")
    return Shop(**given)


def _check_address(name: str, value: object, *, path: bool) -> None:
    parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise WrongSetting(f"{name} must be an address such as https://shop.example.com, not {value!r}")
    if not path and parts.path.strip("/"):
        raise WrongSetting(f"{name} is scheme and name only, such as https://shop.example.com, not {value!r}")


def _check_word(name: str, value: object, words: Sequence[str]) -> None:
    if value not in words:
        raise WrongSetting(f"{name} is one of {', '.join(words)}, not {value!r}")


def _networks_of(proxies: Sequence[str]) -> tuple[Network, ...]:
    if isinstance(proxies, str):
        raise WrongSetting('proxies is a list, such as ["10.0.0.0/8"]')
    try:
        return tuple("unix" if one == "unix" else ipaddress.ip_network(one, strict=False) for one in proxies)
    except ValueError as error:
        raise WrongSetting(f"proxies: {error}") from error
