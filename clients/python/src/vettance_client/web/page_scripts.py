"""What pages need for the browser SDK: two script tags without inline code, and a token."""

import importlib.resources
from html import escape

from vettance_client.bodies import TokenBody
from vettance_client.web.shop import Shop

SCRIPT_TYPE = "text/javascript; charset=utf-8"


def script_tags(shop: Shop, prefix: str, nonce: str | None = None) -> str:
    """Return the tags that start the SDK. `prefix` is where the shop answers for the token and the script.

    Nothing in them is secret, and nothing is inline: a policy needs the service's address in `script-src` and
    `connect-src`, and `'self'`; or give the `nonce` of your policy.
    """
    service = (shop.browser_url or shop.base_url).rstrip("/")
    version = f"{shop.sdk_version}/" if shop.sdk_version else ""
    once = f' nonce="{escape(nonce)}"' if nonce else ""
    integrity = f' integrity="{escape(shop.sdk_integrity)}"' if shop.sdk_integrity else ""
    sdk = escape(f"{service}/sdk/v1/{version}vettance-{shop.sdk}.js")
    own = escape(prefix.rstrip("/"))
    return (
        f'<script src="{sdk}"{integrity} crossorigin="anonymous" defer{once}></script>\n'
        f'<script src="{own}/start.js" data-endpoint="{escape(service)}" data-token="{own}/token" '
        f'data-consent="{shop.consent}" defer{once}></script>'
    )


def start_script() -> bytes:
    """Return the script that starts the SDK in a page. It is the same for every shop."""
    return importlib.resources.files("vettance_client.web").joinpath("start.js").read_bytes()


def token_body(shop: Shop, session_id: str, customer: str | None) -> TokenBody:
    """Return what a token for a page of the shop is minted for."""
    body: TokenBody = {"origin": shop.own_origin(), "tenantSessionId": session_id}
    if customer is not None:
        body["userExternalId"] = str(customer)
    return body


def is_own_page(shop: Shop, origin: str | None) -> bool:
    """Tell whether a request comes from a page of the shop, by its `Origin`."""
    return origin is not None and origin.lower() == shop.own_origin()
