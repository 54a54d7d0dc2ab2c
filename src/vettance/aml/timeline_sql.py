"""What the store remembers of the timelines of cases."""

from typing import Final

from vettance.aml.case import CaseEntry, EntryKind
from vettance.db.engine import Row, Statement, insert, scoped
from vettance.db.tables import AML_CASE, AML_CASE_ENTRY, Insert

#: No two changes of a case have the same moment.
_TOUCH_CASE: Final = (
    "UPDATE aml_case SET updated_at_ms = CASE WHEN updated_at_ms < ? THEN ? ELSE updated_at_ms + 1 END "
    "WHERE tenant = ? AND id = ?"
)
_INSERT_NOTE: Final = (
    "INSERT INTO aml_case_entry (tenant, case_id, at_ms, kind, actor, text) "
    "SELECT ?, id, updated_at_ms, ?, ?, ? FROM aml_case WHERE tenant = ? AND id = ?"
)
_INSERT_ENTRY: Final = Insert(AML_CASE_ENTRY, "tenant, case_id, at_ms, kind, actor, text")


def insert_entry(tenant: str, case_id: str, entry: CaseEntry) -> Statement:
    """Add a line to the timeline of a case."""
    return insert(_INSERT_ENTRY, tenant, (case_id, entry.at_ms, entry.kind.value, entry.actor, entry.text))


def add_note(tenant: str, case_id: str, officer: str, text: str, now_ms: int) -> tuple[Statement, Statement]:
    """Change a case, and add a note to its timeline; `Lost` when there is no such case.

    It demands nothing of what the case is by then: notes that come at once all stay.
    """
    changed = Statement(_TOUCH_CASE, (now_ms, now_ms, tenant, case_id), 1, tenant, tables=AML_CASE)
    entry = (EntryKind.NOTED.value, officer, text, tenant, case_id)
    return changed, scoped(AML_CASE_ENTRY.reading(AML_CASE), tenant, _INSERT_NOTE, entry)


def select_entries(tenant: str, case_id: str) -> Statement:
    """The timeline of a case, oldest first."""
    return scoped(
        AML_CASE_ENTRY,
        tenant,
        "SELECT at_ms, kind, actor, text FROM aml_case_entry WHERE tenant = ? AND case_id = ? ORDER BY seq",
        (case_id,),
    )


def entry_of(row: Row) -> CaseEntry:
    """Make a line of a timeline of a row."""
    return CaseEntry(row[0], EntryKind(row[1]), row[2], row[3])
