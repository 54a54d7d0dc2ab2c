"""The words of fraud rules, with the databases of networks and the scales that the settings name."""

from pathlib import Path

from vettance.decisions.features import fraud_schema
from vettance.decisions.network import Network, Records, open_records
from vettance.rules.schema import Schema
from vettance.settings.settings import Settings


def network_schema(settings: Settings) -> Schema:
    """Return the words that rules may use. Raises as `open_records` does."""
    network = Network(*map(_open, (settings.geoip_country, settings.geoip_asn)))
    return fraud_schema(network, settings.jurisdictions.scales)


def _open(path: Path | None) -> Records | None:
    return open_records(path) if path is not None else None
