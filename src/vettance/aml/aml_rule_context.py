"""What AML rule sets are checked with: the names they may use, how their tests are run, their pack."""

from vettance.aml.aml_memory import SnapshotVelocity
from vettance.aml.features import aml_schema
from vettance.aml.rule_trial import Trial
from vettance.aml.sql import RULE_SETS
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.gate import Context
from vettance.rules.packs import default_pack


def aml_context(countries: Jurisdictions, velocity: SnapshotVelocity) -> Context:
    """Return it; `velocity` is an empty memory that tests may fill."""
    trial = Trial(velocity)
    pack = default_pack(RULE_SETS.pack)
    return Context(aml_schema(countries), trial.parse, trial.maker(), pack, answers=False)
