"""Trains the model that orders a tenant's alerts, from what officers said of those before."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.aml.features import aml_schema
from vettance.db.engine import Store
from vettance.learning import alert_sql
from vettance.learning.alert_facts import AlertFacts
from vettance.learning.alert_values import AlertTable, OrderedAlert
from vettance.learning.train import TrainedModel, train
from vettance.learning.training_rows import TooFewLabels
from vettance.reference.jurisdictions import Jurisdictions

MATCHES_MIN: Final = 50
MISTAKES_MIN: Final = 10
#: The newest alerts of a tenant that are looked at.
ALERTS_MAX: Final = 20_000
_ROWS: Final = 200

Facts = Callable[[str, bytes | None], Mapping[str, float]]


async def train_alerts(
    store: Store,
    tenant: str,
    champion: int | None,
    countries: Jurisdictions | None = None,
    seed: int = 1,
) -> TrainedModel:
    """Train on the alerts that were closed. Raises `TooFewLabels`."""
    reader = AlertFacts(store, aml_schema(countries))
    table = AlertTable()
    rows = await store.read(alert_sql.select_nth_newest(tenant, ALERTS_MAX))
    after = rows[0][0] if rows else ""
    while rows := await store.read(alert_sql.select_seen(tenant, after, _ROWS)):
        for alert in map(OrderedAlert._make, rows):
            table.take(alert, await reader.read(tenant, alert.record))
        after = rows[-1][0]
    return train_on(table, champion, seed)


def train_on(table: AlertTable, champion: int | None, seed: int = 1) -> TrainedModel:
    """Train on what a table holds. Raises `TooFewLabels`.

    The first model is held against the order by severity, later ones against the one in service.
    """
    for count, least, words in (
        (table.matches, MATCHES_MIN, "were confirmed"),
        (table.mistakes, MISTAKES_MIN, "were closed as false positives"),
    ):
        if count < least:
            raise TooFewLabels(count, f"alerts {words}", least)
    names = table.names()
    made = train(table.rows(names), names, champion, seed)
    card: dict[str, Any] = {name: value for name, value in made.card.items() if name != "distribution"}
    return made._replace(card=card)
