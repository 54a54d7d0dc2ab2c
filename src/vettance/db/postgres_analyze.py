"""Having PostgreSQL count its tables as they grow, so that it knows which index to use.

It plans by what it knew when a table was last analyzed, and keeps plans. Of a table that it has never looked
at, or that was empty when a statement was prepared, it would rather read everything. Autovacuum looks once a
minute, where it is on; a new store takes a hundred thousand events in that time, and the partition of a new
month begins empty as well.
"""

# ruff: noqa: S608 - only names of ours are put into the texts

from typing import Any, Final

from vettance.db.engine import Statement
from vettance.db.postgres_link import tables_of_ours
from vettance.db.postgres_schema import owning

#: How often it is asked whether a table has grown.
LOOK_S: Final = 5.0
#: From so many rows on, and again whenever they are three times as many.
ROWS_MIN: Final = 500
_FACTOR: Final = 3

_GROWN: Final = f"""SELECT one.relname FROM pg_class AS one
    JOIN pg_stat_user_tables AS seen ON seen.relid = one.oid
    LEFT JOIN pg_inherits ON inhrelid = one.oid LEFT JOIN pg_class AS whole ON whole.oid = inhparent
    WHERE one.relnamespace = 'public'::regnamespace AND one.relkind = 'r'
    AND COALESCE(whole.relname, one.relname) = ANY (?::text[])
    AND seen.n_live_tup >= {ROWS_MIN} AND seen.n_live_tup >= {_FACTOR} * GREATEST(one.reltuples, 0)
    AND pg_has_role(session_user, one.relowner, 'USAGE') ORDER BY 1"""


def select_grown() -> Statement:
    """The tables and partitions that are to be counted again, of those that the user who was given owns."""
    return Statement(_GROWN, (sorted(tables_of_ours()),))


async def count(url: str, tables: list[Any]) -> None:
    """Have PostgreSQL look at samples of tables, which go on being read and written. Raises `StoreDown`."""
    async with owning(url) as connection:
        for table in tables:
            # Another process may be at it.
            await connection.execute(f'ANALYZE (SKIP_LOCKED) "{table}"')
