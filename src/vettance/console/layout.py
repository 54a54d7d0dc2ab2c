"""Layout: the values that every template gets besides those of its page."""

from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup

from vettance.console.assets import asset_url
from vettance.console.catalogue import FOLDER, language_of
from vettance.console.guard import mask_token
from vettance.console.label_forms import LABELS
from vettance.console.navigation import current_item, groups_for
from vettance.console.notices import WARNINGS, notice_of
from vettance.console.page import HOME, View, Visit
from vettance.console.page_table import PageTable
from vettance.console.reveal_page import page_to_reveal, revealed_until
from vettance.wire.payload import timestamp

_ERROR_MIN = 400


def page_values(view: View, visit: Visit, pages: PageTable) -> dict[str, Any]:
    """Return everything a template may name. Pages of errors show nothing of the request: all alike."""
    is_error = view.status >= _ERROR_MIN and view.template == "error.html"
    url = HOME if is_error else visit.url
    path = urlsplit(url).path
    signed = visit.signed_in if visit.at_tenant is not None else None
    keys = visit.parts.keys
    tenants = [] if signed is None else [keys.tenant(one) for one in signed.memberships]
    return {
        "layout": "fragment.html" if visit.is_partial else "page.html",
        "title": view.title,
        "language": language_of(visit.show.locale, FOLDER),
        "signed": signed,
        "tenant": visit.at_tenant,
        "tenants": [one for one in tenants if one is not None],
        "theme": signed.theme if signed is not None else "system",
        "navigation": () if signed is None else groups_for(signed.roles, pages, aml=visit.tenant.aml),
        "current": "" if is_error else current_item(path),
        "has_search": signed is not None and pages.page_at("/console/search") is not None,
        "has_profile": signed is not None and pages.page_at("/console/profile") is not None,
        "asset": asset_url,
        "show": visit.show,
        "sight": visit.sight,
        "may": visit.may,
        "url": url,
        "notice": None
        if is_error
        else notice_of(visit.query.get("notice"), visit.query.get("count"), visit.show),
        "warns": visit.query.get("notice") in WARNINGS,
        "now": "" if is_error or signed is None else timestamp(visit.now_ms),
        "masks": None if is_error or signed is None else _masks(visit),
        "scripts": (),
        "shown_once": None,
        "label_words": dict(LABELS),
        "form_token": lambda: _form_token(visit, url),
        **view.values,
    }


def _masks(visit: Visit) -> dict[str, Any] | None:
    """Return what a page says of its masks: that they can be lifted, or until when they are."""
    until_ms = revealed_until(visit)
    if until_ms is not None:
        return {"until": until_ms, "page": ""}
    return {"until": None, "page": page_to_reveal(visit)} if visit.sight.has_masked else None


def _form_token(visit: Visit, url: str) -> Markup:
    """Return the hidden fields of a form: what shows that we made it, and the tenant it is about."""
    if visit.signed_in is None:
        return Markup()
    token = mask_token(visit.signed_in.csrf_token, url)
    tenant = visit.at_tenant.id if visit.at_tenant is not None else ""
    return Markup(
        '<input type="hidden" name="csrf" value="{}"><input type="hidden" name="tenant" value="{}">'
    ).format(token, tenant)
