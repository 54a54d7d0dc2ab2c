"""The doctor: looks at everything a server needs, changes nothing, and says the mend for each fault."""

from typing import Final

from vettance.fairness.isolation import Isolation
from vettance.ops.doctor import (
    event_quality,
    machine_checks,
    model_checks,
    readable_rows,
    shared_stores,
    store_checks,
)
from vettance.ops.doctor.check import Check, DoctorContext, DoctorFinding, fault

#: Every check, in the order in which faults are best mended.
CHECKS: Final[tuple[Check, ...]] = (
    machine_checks.check_runtime,
    machine_checks.check_variables,
    machine_checks.check_data_folder,
    store_checks.check_secret,
    machine_checks.check_disk,
    store_checks.check_store,
    shared_stores.check_database,
    shared_stores.check_replica,
    store_checks.check_sealed,
    store_checks.check_clock,
    shared_stores.check_redis,
    store_checks.check_watchlists,
    store_checks.check_queues,
    store_checks.check_imports,
    store_checks.check_work,
    model_checks.check_models,
    readable_rows.check_rules,
    readable_rows.check_events,
    event_quality.check_sent,
    event_quality.check_sent_aml,
    machine_checks.check_addresses,
    machine_checks.check_server,
    machine_checks.check_port,
    machine_checks.check_metrics,
    machine_checks.check_exposure,
)


def examine(patient: DoctorContext) -> list[DoctorFinding]:
    """Run every check, in the order of the table."""
    findings: list[DoctorFinding] = []
    isolation = Isolation("doctor")
    for check in CHECKS:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        with isolation.of(name):
            findings.extend(check(patient))
    for failure in isolation.failing:
        found = f"it could not be looked at ({failure.error})"
        findings.append(fault(failure.key, found, "The log above says where it failed; please report that."))
    return findings
