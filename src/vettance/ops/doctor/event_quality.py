"""What the doctor looks at in the newest events: parts that are missing, and members that nothing reads."""

from collections.abc import Iterator
from typing import Final

from vettance.commands import counted_word
from vettance.decisions.coverage import BODY_BYTES_MAX, NEWEST, Coverage, NewestEvent, cover
from vettance.decisions.sql import select_newest_sent
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, ok, warning
from vettance.ops.doctor.store_checks import ask
from vettance.tenants.sql import select_tenants

#: Each takes some milliseconds.
_TENANTS_MAX: Final = 200
#: Fewer events tell of no habit.
_EVENTS_MIN: Final = 20
#: A part that more than this share of events lacks is worth a word.
_WITHOUT_MAX: Final = 0.2
_UNKNOWN_MIN: Final = 0.05
_SHOWN_MAX: Final = 3


def check_sent(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at what the newest events of each tenant lack, and at what they carry that nothing reads."""
    rows = ask(patient, select_tenants()) or ()
    looked = 0
    for tenant, name, *_ in rows[:_TENANTS_MAX]:
        newest = ask(patient, select_newest_sent(tenant, NEWEST, BODY_BYTES_MAX)) or ()
        covered = cover(NewestEvent.of(row) for row in newest)
        if covered.events < _EVENTS_MIN:
            continue
        looked += 1
        for told, mend in _coverage_messages(covered):
            yield warning("events", f"{name} ({tenant}): {told}", mend)
    if looked:
        yield ok("events", f"looked at the newest {NEWEST} of {counted_word(looked, 'tenant')}")


def _coverage_messages(covered: Coverage) -> Iterator[tuple[str, str]]:
    lacking = [
        f"{share:.0%} without {part}" for part, share in covered.without.items() if share > _WITHOUT_MAX
    ]
    if lacking:
        yield (
            f"of the newest {covered.events} events {', '.join(lacking)}",
            "Send them where you have them; rules that look at what is missing never fire (docs/rules.md).",
        )
    often = [one for one in covered.unknown_members if one.events > _UNKNOWN_MIN * covered.events]
    if often:
        said = [
            f"{one.name}{f' (did you mean {one.nearest}?)' if one.nearest is not None else ''}"
            for one in often[:_SHOWN_MAX]
        ]
        yield (
            f"nothing reads {', '.join(said)} (in {often[0].events} of the newest {covered.events} events)",
            "Rename what is misspelt. What your own rules read under `extra` is fine.",
        )
