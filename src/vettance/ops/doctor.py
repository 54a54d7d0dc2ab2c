"""The doctor: looks at everything a server needs, changes nothing, and says the mend for each fault."""

from typing import Final

from vettance.ops import beside, legible, machine, stored
from vettance.ops.finding import Check, Finding, Patient

#: Every check, in the order in which faults are best mended.
CHECKS: Final[tuple[Check, ...]] = (
    machine.check_runtime,
    machine.check_data_folder,
    stored.check_secret,
    machine.check_disk,
    stored.check_store,
    beside.check_database,
    stored.check_sealed,
    stored.check_clock,
    beside.check_redis,
    stored.check_watchlists,
    stored.check_queues,
    legible.check_rules,
    legible.check_events,
    machine.check_addresses,
    machine.check_server,
    machine.check_port,
    machine.check_metrics,
    machine.check_exposure,
)


def examine(patient: Patient) -> list[Finding]:
    """Run every check, in the order of the table."""
    return [finding for check in CHECKS for finding in check(patient)]
