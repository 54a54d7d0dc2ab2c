"""The doctor: looks at everything a server needs, changes nothing, and says the mend for each fault."""

from typing import Final

from vettance.isolate import Isolation
from vettance.ops import beside, legible, machine, sent, stored
from vettance.ops.finding import Check, Finding, Patient, fault

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
    stored.check_imports,
    stored.check_work,
    legible.check_rules,
    legible.check_events,
    sent.check_sent,
    machine.check_addresses,
    machine.check_server,
    machine.check_port,
    machine.check_metrics,
    machine.check_exposure,
)


def examine(patient: Patient) -> list[Finding]:
    """Run every check, in the order of the table."""
    findings: list[Finding] = []
    isolation = Isolation("doctor")
    for check in CHECKS:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        with isolation.of(name):
            findings.extend(check(patient))
    for failure in isolation.failing:
        found = f"it could not be looked at ({failure.error})"
        findings.append(fault(failure.key, found, "The log above says where it failed; please report that."))
    return findings
