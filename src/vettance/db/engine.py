"""The storage port: what every engine offers, and the values that pass through it."""

import hashlib
import itertools
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol

from vettance.db.tables import CATALOG, Insert, Tables

Row = tuple[Any, ...]

#: The longest text that is kept in a key as it is; two of them fit into an index row of PostgreSQL.
KEY_BYTES_MAX: Final = 1_024

#: Bytes after which a read in pieces stops: thousands of usual rows, and few enough of the largest that
#: several reads at once fit into the memory of a small machine.
PIECE_BYTES: Final = 4 * 1024 * 1024
#: What of a row counts there: the types in which drivers return texts and bytes.
_SIZED: Final = frozenset({bytes, str})

#: How long any call may take before it raises `StoreDown`. What has a part of it to itself derives from it.
ANSWER_S_MAX: Final = 10.0

#: Names all tenants, for the statements of the service's own maintenance.
EVERYBODY = "*"


class Statement(NamedTuple):
    """One SQL statement and its arguments (placeholders are `?`).

    `rows`, when given, is a condition: the whole write is undone unless exactly that many rows changed.
    Built by `scoped` when it touches a tenant's rows, so that no query can forget its tenant. `tenant` says
    whose rows those are: a store with row level security shows and takes no others, and none without it.
    `postgres` is the statement for PostgreSQL where it cannot share SQLite's. A read of `bytes_max` stops
    after the row with which its texts and bytes have come to so many; see `in_pieces`. `tables` declares what
    the text touches; a statement without it keeps its place among all others of a batch.
    """

    sql: str
    args: Sequence[Any] = ()
    rows: int | None = None
    tenant: str | None = None
    postgres: "Statement | None" = None
    bytes_max: int | None = None
    tables: Tables | None = None


#: How a text for PostgreSQL ends that changes several things at once; it counts the rows of one, named so.
COUNTED: Final = "SELECT count(*) FROM changed"
#: In place of a statement that PostgreSQL does not need, since the next one does its work as well.
NOTHING: Final = Statement("", tables=CATALOG)


class Clash(Exception):
    """A unique constraint refused the write; nothing of it was kept."""


class Lost(Exception):
    """A statement changed another number of rows than it demanded; nothing of the write was kept."""


class StoreDown(Exception):
    """The store did not take the request; a write may or may not have been kept.

    The text is public, in `/readyz`. `detail` is for operators: the host and its message.
    """

    def __init__(self, text: str = "", detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail

    @property
    def full(self) -> str:
        """The text with its detail, for logs and the command line."""
        return f"{self} ({self.detail})" if self.detail else str(self)


class Misuse(Exception):
    """A statement is wrong in itself (bad SQL, a broken reference, a value no store can keep): our bug.

    Nothing of the write was kept, and asking again will not help.
    """


class Store(Protocol):
    """Five methods. A write is all or nothing, and durable when it returns."""

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known. Recovers by itself, within a second."""

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing every write that has returned before."""

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit and return how many rows each changed.

        Raises `Clash`, `Lost`, `Misuse` or `StoreDown`; in each case none of the statements has taken effect
        (after `StoreDown` of a broken connection or a time-out this is the best that can be known).
        Writes take effect in the order in which they were called.
        """

    async def migrate(self) -> int:
        """Bring the schema to the newest version and return that version's number."""

    async def close(self) -> None:
        """Finish what is in flight and release every resource."""


class Turn(Protocol):
    """A write transaction that also reads. It excludes the writes of all processes while it lasts.

    What it reads stays true until its end. It is kept whole when its block ends, and undone when that raises.
    """

    async def begin(self, tenants: Collection[str]) -> None:
        """Name the tenants whose rows it touches; first of all calls, and once."""

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing everything that was written before."""

    async def write(self, writes: Sequence[Sequence[Statement]]) -> None:
        """Apply writes, all or none.

        After a `Clash`, `Lost` or `Misuse` none of these has taken effect, those before have, and the turn
        goes on. After `StoreDown` the whole turn is undone.
        """


class Turns(Protocol):
    """A store of several processes, in which one can think between reading and writing."""

    def turn(self) -> AbstractAsyncContextManager[Turn]:
        """Wait for a turn. Raises `StoreDown` when none is granted in time or its commit fails."""


#: Whose the rows are that a list of ids leads to. SQLite does not know how many a tenant has: from three ids
#: on it would rather go through them all, by an index that begins with the tenant.
OF_TENANT: Final = "tenant || '' = ?"


def scoped(
    tables: Tables, tenant: str, sql: str, args: Sequence[Any] = (), rows: int | None = None
) -> Statement:
    """Build a statement that concerns one tenant; its first argument is the tenant, named in the SQL text.

    `tables` are those that the text names; a test holds the two against each other.

    Raises `ValueError` when the text does not name the tenant column: a statement without it could
    reach another tenant's rows.
    """
    if "tenant" not in sql or not tenant:
        raise ValueError("a scoped statement must name its tenant")
    return Statement(sql, (tenant, *args), rows, tenant, None, None, tables)


def insert(into: Insert, tenant: str | None, args: Sequence[Any]) -> Statement:
    """Build an insert of one row, or of several whose arguments follow each other, that concerns a tenant.

    Where the tenant is the first column, the arguments leave it out of the first row.
    """
    if into.starts_with_tenant:
        if not tenant:
            raise ValueError("an insert into a table of tenants must name its tenant")
        args = (tenant, *args)
    return Statement(into.text_of(len(args)), args, None, tenant, None, None, into)


def bounded_key(text: str) -> str:
    """Return the form of a text in a key that is never read back: the text itself, or its digest.

    An index row of PostgreSQL holds 2,704 bytes. Digests begin in a way that no id of a caller is likely to.
    """
    if len(text) * 4 <= KEY_BYTES_MAX or len(content := text.encode()) <= KEY_BYTES_MAX:
        return text
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def in_pieces(statement: Statement, bytes_max: int = PIECE_BYTES) -> Statement:
    """Limit a query to its first rows, until they come to so many bytes.

    It returns at least one row when there is one. The caller asks again for the rows after the last one until
    there are none: fewer rows than asked for do not mean that there are no more.
    """
    other = statement.postgres and statement.postgres._replace(bytes_max=bytes_max)
    return statement._replace(bytes_max=bytes_max, postgres=other)


def bytes_of(row: Row) -> int:
    """Return how much memory the texts and bytes of a row take, without the object headers."""
    size = 0
    # A loop, and exact types: a generator with `isinstance` takes four times as long, for each row of a read.
    for value in row:
        if type(value) in _SIZED:
            size += len(value)
    return size


def take_piece(rows: Iterable[Row], bytes_max: int, rows_max: int | None = None) -> list[Row]:
    """Take rows until they come to so many bytes, or are so many."""
    taken: list[Row] = []
    for row in itertools.islice(rows, rows_max):
        taken.append(row)
        bytes_max -= bytes_of(row)
        if bytes_max <= 0:
            break
    return taken


def still_asked(keys: Sequence[Any], rows: Sequence[Row], bytes_max: int = PIECE_BYTES) -> Sequence[Any]:
    """Return the keys that a read in pieces has not reached; rows begin with their key, in any order.

    There is no order because the embedded store would sort whole rows. No key is left when the rows did not
    come to `bytes_max`: a key without a row does not exist then.
    """
    if sum(map(bytes_of, rows)) < bytes_max:
        return ()
    known = {row[0] for row in rows}
    return [key for key in keys if key not in known]


def in_list(values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the placeholders of an `IN` list and the arguments for them.

    The last value is repeated up to the next power of two: every connection keeps its prepared statements,
    and a text for each length would be hundreds.
    """
    args = list(values)
    if args:
        args += args[-1:] * ((1 << (len(args) - 1).bit_length()) - len(args))
    return ", ".join("?" * len(args)), args


def everyone(tables: Tables, sql: str, args: Sequence[Any] = (), rows: int | None = None) -> Statement:
    """Build a statement of the service's own maintenance, which concerns the rows of all tenants."""
    return Statement(sql, args, rows, EVERYBODY, None, None, tables)
