"""What the doctor looks at in models of tenants: whether events have moved away from them, and trainings."""

from collections.abc import Iterator
from typing import Final

from vettance.learning.drift_sql import count_models, select_drifting, select_untrained
from vettance.learning.training_rows import NEEDED, says_too_few
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, ok, warning
from vettance.ops.doctor.store_checks import ask

_SHOWN_MAX: Final = 10


def check_models(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for models that drift, and for trainings that gave none."""
    name = "models"
    counts = ask(patient, count_models())
    drifting = ask(patient, select_drifting(_SHOWN_MAX))
    untrained = ask(patient, select_untrained(_SHOWN_MAX, NEEDED))
    if not counts or drifting is None or untrained is None:
        return  # A check of its own tells.
    for tenant, largest in drifting:
        yield warning(
            name,
            f"the events of {tenant} have moved away from those that its model was trained on "
            f"(population stability index {largest:.2f})",
            f"See what moved (`vettance model drift --tenant {tenant}`); if it lasts, label what is new, and "
            f"train again (`vettance model train --tenant {tenant}`).",
        )
    for tenant, failure in untrained:
        if says_too_few(failure):
            yield ok(name, f"{tenant} has no newer model yet: {failure}")
            continue
        yield warning(
            name,
            f"the last training of {tenant} gave no model: {failure}",
            "What served before goes on; once the reason is gone, the next training puts it right.",
        )
    if counts[0][0] and not drifting and not untrained:
        yield ok(name, f"{counts[0][0]} in service, none drifts")
