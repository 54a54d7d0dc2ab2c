"""`{% load vettance %}` and `{% vettance_scripts %}` in the head of a template start the browser SDK."""

from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString, mark_safe

from vettance_client.django.risk import risk
from vettance_client.web.page_scripts import script_tags
from vettance_client.web.shop import WrongSetting

register = template.Library()


@register.simple_tag(takes_context=True)
def vettance_scripts(context: Any, nonce: str | None = None) -> SafeString:
    """Return the two tags. `nonce` is that of your policy; that of Django 6 and of django-csp is found."""
    try:
        start = reverse("vettance:start")
    except NoReverseMatch as error:
        raise WrongSetting(
            'add path("vettance/", include("vettance_client.django.urls")) to your urls'
        ) from error
    found = nonce or context.get("csp_nonce") or getattr(getattr(context, "request", None), "csp_nonce", None)
    # Everything in it was escaped where it was put together.
    return mark_safe(  # noqa: S308
        script_tags(risk.shop, start.removesuffix("/start.js"), str(found) if found else None)
    )
