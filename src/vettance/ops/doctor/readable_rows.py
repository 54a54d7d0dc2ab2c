"""What the doctor looks at in the store: whether this version can still read rule sets and logged events."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

from vettance.aml import sql as aml_sql
from vettance.aml.features import aml_schema
from vettance.commands import counted_word
from vettance.db.engine import Row, Statement
from vettance.decisions.active_rulesets import RuleCache, logged_event
from vettance.decisions.features import fraud_schema
from vettance.events import sql as events_sql
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, ok, warning
from vettance.ops.doctor.store_checks import ask
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema
from vettance.rules.sql import DECIDING, RuleSets

#: Events of each log that are read, the newest: a second's work. A server counts all that it leaves out.
EVENTS_MAX: Final = 10_000
_SHOWN_MAX: Final = 5

#: A name, the rule sets, and the names that they may use.
_KINDS: Final[tuple[tuple[str, RuleSets, Callable[[], Schema]], ...]] = (
    ("rules", DECIDING, fraud_schema),
    ("AML rules", aml_sql.RULE_SETS, aml_schema),
)


def check_rules(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Compile the rule set of every tenant, as a start does."""
    for name, sets, schema_of in _KINDS:
        rows = ask(patient, sets.select_active_of_all())
        if not rows:
            continue
        broken = []
        cache = RuleCache(functools.partial(compile_document, schema=schema_of()))
        for tenant, version, document in rows:
            try:
                cache.active(version, document)
            except Exception as error:  # noqa: BLE001  Whatever it is, a start meets it as well.
                broken.append(f"version {version} of {tenant} ({type(error).__name__})")
        if broken:
            yield warning(
                name,
                f"the newest rule sets of {counted_word(len(broken), 'tenant')} are refused by this version, "
                f"and older ones or the default pack decide, degraded: {_some(broken)}",
                "Pull them, see what `check` says of them, mend and push them.",
            )
        else:
            yield ok(name, f"those of {counted_word(len(rows), 'tenant')} compile")


def check_events(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Read the newest events of both logs, as a start does."""
    yield from _read_all(
        patient,
        "events",
        events_sql.select_last_event(),
        lambda after: events_sql.select_log(after, 0, EVENTS_MAX),
        logged_event,
        lambda row: f"{row[2]} of {row[1]}",
    )
    yield from _read_all(
        patient,
        "AML events",
        aml_sql.select_last_event(),
        lambda after: aml_sql.select_log_of_all(after, 0, EVENTS_MAX),
        aml_sql.logged_aml_event,
        lambda row: f"{row[1]} of {row[5]}",
    )


def _read_all(
    patient: DoctorContext,
    name: str,
    last: Statement,
    after: Callable[[int], Statement],
    read: Callable[[Row], Any],
    name_of: Callable[[Row], str],
) -> Iterator[DoctorFinding]:
    newest = ask(patient, last)
    rows = ask(patient, after(max(0, newest[0][0] - EVENTS_MAX))) if newest else None
    if not rows:
        return
    broken = []
    for row in rows:
        try:
            read(row)
        except Exception as error:  # noqa: BLE001  Whatever it is, a start meets it as well.
            broken.append(f"{name_of(row)} ({type(error).__name__})")
    if broken:
        yield warning(
            name,
            f"{len(broken)} of the newest {len(rows):,} cannot be read again; no memory counts them: "
            f"{_some(broken)}",
            "They were damaged, or written by a version with wider bounds. If they matter, restore a backup "
            "(`vettance restore`); else nothing needs to be done.",
        )
    else:
        yield ok(name, f"the newest {len(rows):,} can be read again")


def _some(found: list[str]) -> str:
    more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
    return ", ".join(found[:_SHOWN_MAX]) + more
