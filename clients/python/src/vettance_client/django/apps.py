"""The Django application, and the check of its settings when a site starts."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from vettance_client.django.risk import risk


class VettanceConfig(AppConfig):
    """Vettance in a Django site."""

    name = "vettance_client.django"
    label = "vettance"
    verbose_name = "Vettance"


@checks.register
def check_settings(**_: Any) -> list[Any]:
    """Say at the start what is wrong with `VETTANCE`."""
    try:
        shop = risk.shop
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="vettance.E001")]
    if shop.origin is None:
        hint = "Without it, pages get no token and the browser SDK does not start."
        return [checks.Warning("VETTANCE: origin is not set", hint=hint, id="vettance.W001")]
    return []
