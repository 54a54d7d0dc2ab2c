"""What the store remembers of terms: each text of a tenant once, by number, findable by any part of it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from vettance.db.dialect import digest
from vettance.db.engine import OF_TENANT, Statement, everyone, in_list, insert, scoped
from vettance.db.tables import ID_SEARCH, TERM, TERM_EPOCH, TERM_SEARCH, Insert

ASKED: Final = 400  # Texts looked up in one query.

# Statements of a few fixed lengths are prepared once; one of every length would fill the writer's memory.
_ROWS: Final = (64, 8, 1)

# A look into the index for each text. For a list, PostgreSQL reads all terms of the tenant as long as it has
# not counted them; compaction then costs more than storing the decisions. The digests are made first: row
# level security takes no condition that calls a function on a column of another relation into an index.
_LOOK_UP_TERMS: Final = (
    f"WITH wanted AS MATERIALIZED (SELECT value, {digest('value')} AS digest "
    "FROM unnest(?::TEXT[]) AS given (value)) "
    "SELECT found.id, found.value, found.fields FROM wanted CROSS JOIN LATERAL "
    "(SELECT id, value, fields FROM term WHERE tenant = ? "
    "AND term.value_digest = wanted.digest AND term.value = wanted.value LIMIT 1) AS found"
)


class Term(NamedTuple):
    """A numbered text; `fields` has a bit for each field it was seen in."""

    id: int
    value: str
    fields: int


def select_terms(tenant: str, values: Sequence[str]) -> Statement:
    """The terms of some texts; texts without one are left out."""
    places, args = in_list(values)
    text = f"SELECT id, value, fields FROM term WHERE tenant = ? AND value IN ({places})"
    looks = Statement(_LOOK_UP_TERMS, (list(values), tenant), tenant=tenant, tables=TERM)
    return scoped(TERM, tenant, text, args)._replace(postgres=looks)


def select_term_values(tenant: str, terms: Sequence[int]) -> Statement:
    """(id, value) of some terms by their numbers."""
    places, args = in_list(terms)
    return scoped(TERM, tenant, f"SELECT id, value FROM term WHERE {OF_TENANT} AND id IN ({places})", args)


def select_terms_by_number(tenant: str, terms: Sequence[int]) -> Statement:
    """Some terms by their numbers."""
    places, args = in_list(terms)
    return scoped(
        TERM, tenant, f"SELECT id, value, fields FROM term WHERE {OF_TENANT} AND id IN ({places})", args
    )


def select_last_term() -> Statement:
    """The highest number of a term of any tenant."""
    return everyone(TERM, "SELECT COALESCE(MAX(id), 0) FROM term")


_INSERT_TERMS: Final = Insert(TERM, "tenant, id, value, fields, folded")
_INSERT_TERM_SEARCH: Final = Insert(TERM_SEARCH, "rowid, value")
_INSERT_ID_SEARCH: Final = Insert(ID_SEARCH, "rowid, digits")


def insert_terms(tenant: str, terms: Sequence[Term]) -> Iterator[Statement]:
    """Store new terms; `Clash` when another process has numbered any of them."""
    for rows in _grouped(terms):
        args = [arg for row in rows for arg in (tenant, *row, _folded(row.value))][1:]
        yield insert(_INSERT_TERMS, tenant, args)


def _folded(value: str) -> str | None:
    return None if value.isascii() else value.casefold()


def widen_term(tenant: str, term: Term) -> Statement:
    """Note that a term was seen in more fields; those that others note at the same time stay."""
    return Statement(
        "UPDATE term SET fields = fields | ? WHERE tenant = ? AND id = ?",
        (term.fields, tenant, term.id),
        tenant=tenant,
        tables=TERM,
    )


def make_findable(tenant: str, term: Term, searched: int) -> Statement:
    """Note the first of the `searched` fields that a term was seen in; `Lost` when another process has."""
    return Statement(
        "UPDATE term SET fields = fields | ? WHERE tenant = ? AND id = ? AND fields & ? = 0",
        (term.fields, tenant, term.id, searched),
        tenant=tenant,
        tables=TERM,
        rows=1,
    )


def insert_term_search(terms: Iterable[Term]) -> Iterator[Statement]:
    """Make terms findable by any part of them, in folded case."""
    for rows in _grouped([(term.id, term.value.casefold()) for term in terms]):
        yield insert(_INSERT_TERM_SEARCH, None, [arg for row in rows for arg in row])


def delete_term_search(term: Term) -> Statement:
    """Make a term unfindable, before its text changes."""
    return Statement(
        "INSERT INTO term_search (term_search, rowid, value) VALUES ('delete', ?, ?)",
        (term.id, term.value.casefold()),
        postgres=Statement("DELETE FROM term_search WHERE rowid = ?", (term.id,), tables=TERM_SEARCH),
        tables=TERM_SEARCH,
    )


def insert_id_search(decisions: Iterable[tuple[int, str]]) -> Iterator[Statement]:
    """Make decisions findable by any part of the digits of their ids; takes (seq, id)."""
    for group in _grouped([(seq, name.rpartition("_")[2]) for seq, name in decisions]):
        yield insert(_INSERT_ID_SEARCH, None, [arg for row in group for arg in row])


def delete_id_search(decisions: Iterable[tuple[int, str]]) -> Iterator[Statement]:
    """Make decisions unfindable that `insert_id_search` made findable; takes the same (seq, id)."""
    # The index of SQLite keeps no texts: what is removed from it must be given again, and must be in it.
    for group in _grouped([(seq, name.rpartition("_")[2]) for seq, name in decisions]):
        places, seqs = in_list([seq for seq, _ in group])
        yield Statement(
            "INSERT INTO id_search (id_search, rowid, digits) VALUES "
            + ", ".join(["('delete', ?, ?)"] * len(group)),
            [arg for row in group for arg in row],
            postgres=Statement(f"DELETE FROM id_search WHERE rowid IN ({places})", seqs, tables=ID_SEARCH),
            tables=ID_SEARCH,
        )


def search_terms(tenant: str, part: str) -> Statement:
    """(id, fields) of the terms that hold a text of at least three characters, in folded case."""
    # SQLite keeps the order of a CROSS JOIN. Left to itself it asked the index about every term in turn.
    return Statement(
        "SELECT term.id, term.fields FROM term_search CROSS JOIN term ON term.id = term_search.rowid "
        "WHERE term_search MATCH ? AND term.tenant = ?",
        (_phrase(part), tenant),
        tenant=tenant,
        postgres=scoped(
            TERM.reading(TERM_SEARCH),
            tenant,
            "SELECT term.id, term.fields FROM term JOIN term_search ON term_search.rowid = term.id "
            "WHERE term.tenant = ? AND term_search.value LIKE ?",
            (_like(part, "\\"),),
        ),
        tables=TERM_SEARCH.reading(TERM),
    )


def scan_terms(tenant: str, part: str) -> Statement:
    """(id, fields) of the terms that hold a text of one or two characters, which has no trigram."""
    # The first half is answered by the index over tenant and value alone, the second by one of few rows.
    # Asked together they read each term's own row, which took twelve times as long (2.5 million terms).
    pattern = _like(part, "!")
    return Statement(
        "SELECT id, fields FROM term WHERE tenant = ? AND LOWER(value) LIKE ? ESCAPE '!' UNION ALL "
        "SELECT id, fields FROM term WHERE tenant = ? AND folded IS NOT NULL AND folded LIKE ? ESCAPE '!'",
        (tenant, pattern, tenant, pattern),
        tenant=tenant,
        tables=TERM,
    )


def _like(part: str, escape: str) -> str:
    return "%" + "".join(escape + letter if letter in (escape, "%", "_") else letter for letter in part) + "%"


def search_ids(part: str, limit: int) -> Statement:
    """Places in the log of some decisions, of any tenant, whose digits hold these (three or more)."""
    return Statement(
        "SELECT rowid FROM id_search WHERE id_search MATCH ? LIMIT ?",
        (_phrase(part), limit),
        postgres=Statement(
            "SELECT rowid FROM id_search WHERE digits LIKE ? LIMIT ?",
            (_like(part, "\\"), limit),
            tables=ID_SEARCH,
        ),
        tables=ID_SEARCH,
    )


def _phrase(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def select_epoch() -> Statement:
    """Which terms a chunk may be laid out with: the number goes up when any are removed."""
    return Statement("SELECT epoch FROM term_epoch WHERE id = 1", tables=TERM_EPOCH)


def hold_epoch(epoch: int) -> Statement:
    """Demand that no term was removed since; else `Lost`."""
    return Statement(
        "UPDATE term_epoch SET epoch = epoch WHERE id = 1 AND epoch = ?", (epoch,), rows=1, tables=TERM_EPOCH
    )


def _grouped(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    start = 0
    for size in _ROWS:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size
