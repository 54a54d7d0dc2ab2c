"""Finds the terms of texts: a list of any length, in queries of a bounded one."""

from collections.abc import Sequence

from vettance.db.engine import Store
from vettance.terms import sql
from vettance.terms.sql import Term


async def find_terms(store: Store, tenant: str, texts: Sequence[str]) -> dict[str, Term]:
    """Return the terms of some texts of a tenant; those without one are left out."""
    found: dict[str, Term] = {}
    for start in range(0, len(texts), sql.ASKED):
        for row in await store.read(sql.select_terms(tenant, texts[start : start + sql.ASKED])):
            term = Term._make(row)
            found[term.value] = term
    return found
