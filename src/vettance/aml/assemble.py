"""Puts the parts of AML together: which memory, which rules, which doors."""

from typing import NamedTuple

from vettance.aml.api import AmlDoors
from vettance.aml.features import aml_schema
from vettance.aml.figures import Teller
from vettance.aml.jurisdiction import Jurisdictions
from vettance.aml.memory import AmlMemory
from vettance.aml.monitor import Monitor
from vettance.aml.rebuild import AmlRebuilder
from vettance.aml.review import Reviewer
from vettance.db.engine import Store
from vettance.decisions.active import RuleCache
from vettance.ids import IdSource
from vettance.rules.ruleset import compile_document
from vettance.state.port import Velocity


class Aml(NamedTuple):
    """The pipeline of AML, apart from that of fraud."""

    monitor: Monitor
    rebuilder: AmlRebuilder
    reviewer: Reviewer
    doors: AmlDoors


def assemble(
    store: Store, velocity: Velocity, ids: IdSource, jurisdictions: Jurisdictions | None = None
) -> Aml:
    """Build the pipeline on a store. `velocity` must be an engine of its own: tenants have two memories."""
    schema = aml_schema(jurisdictions)
    memory = AmlMemory(velocity)
    monitor = Monitor(store, memory, ids, Teller(schema))
    cache = RuleCache(lambda document: compile_document(document, schema))
    rebuilder = AmlRebuilder(store, memory, monitor, cache)
    reviewer = Reviewer(store, rebuilder.reload)
    return Aml(monitor, rebuilder, reviewer, AmlDoors(store, monitor, reviewer))
