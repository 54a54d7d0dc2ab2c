"""The doors of the allow and block lists."""

from collections.abc import Callable
from typing import Any, Final

from vettance import clock
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.events.event import text_member
from vettance.fairness.skipped_rows import Skipped
from vettance.ids import IdSource, is_id
from vettance.lists import sql
from vettance.lists.answers import (
    CustomerEntryBody,
    DeviceEntryBody,
    EntryAnswer,
    EntryBody,
    EntryPage,
    EntryQuery,
    EntryRemoved,
    IpBody,
    ScopeQuery,
    answer,
    told_of_added,
    told_of_removed,
)
from vettance.lists.entry import (
    VALUE_CHARS_MAX,
    EntryType,
    HostBits,
    ListBook,
    ListEntry,
    ListType,
    canonical_value,
)
from vettance.outbox import MessageType, enqueue
from vettance.telemetry.meters import Rows
from vettance.tenants.sql import note_change
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply
from vettance.wire.payload import JSON, Faults, encode, read_timestamp

_TAG: Final = "Lists"
_LOADED: Final = 5_000  # Entries read at a time at the start.
_VALUE_FAULTS: Final = {
    EntryType.IP: "must be an IPv4 or IPv6 address, or a CIDR range",
    EntryType.EMAIL: "must be an e-mail address",
    EntryType.DEVICE: "must be a device fingerprint: printable text without white space around it",
}
_HOST_BITS: Final = (
    "must be the first address of its range: bits beyond the prefix length are set; leave the length out if "
    "one address is meant"
)
#: Ranges that would block everybody, whom few mean to block; `confirm` says that it is meant.
_EVERY_ADDRESS: Final = {
    network: f'would block every {family} address there is (2^{bits}); add "confirm": true if that is meant'
    for network, family, bits in (("0.0.0.0/0", "IPv4", 32), ("::/0", "IPv6", 128))
}
# What a scoped add takes, and the members of its body that may hold the value; a customer's is in the path.
_SCOPED: Final[dict[EntryType, tuple[type, tuple[str, ...]]]] = {
    EntryType.IP: (IpBody, ("ip", "value")),
    EntryType.DEVICE: (DeviceEntryBody, ("fingerprint", "value")),
    EntryType.EMAIL: (CustomerEntryBody, ()),
}
_ENTRY_TYPES: Final = {kind.value: kind for kind in EntryType}
_LIST_TYPES: Final = {kind.value: kind for kind in ListType}


class ListDoors:
    """Adds, shows and removes list entries; `books` is the mirror that evaluations look into."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        books: dict[str, ListBook],
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
    ) -> None:
        self._skipped = skipped or Skipped()
        self._store = store
        self._ids = ids
        self._books = books
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        root = "/api/v1/lists"
        added: dict[str, Any] = {
            "answers": EntryAnswer,
            "status": 201,
            "refusals": (409, 422),
            "idempotent": True,
        }
        return (
            Route(
                "GET",
                root,
                self.page,
                "List entries, by creation",
                _TAG,
                query=EntryQuery,
                answers=EntryPage,
            ),
            Route("POST", root, self.add, "Add an entry", _TAG, takes=EntryBody, **added),
            Route(
                "DELETE",
                f"{root}/{{id}}",
                self.remove,
                "Remove an entry by its id",
                _TAG,
                answers=EntryRemoved,
                refusals=(404,),
            ),
            self._scoped_add(
                f"{root}/customer/{{email}}", EntryType.EMAIL, "Add a customer's e-mail address"
            ),
            self._scoped_add(f"{root}/device", EntryType.DEVICE, "Add a device fingerprint"),
            self._scoped_add(f"{root}/ip", EntryType.IP, "Add an IP address or CIDR range"),
            self._scoped_remove(
                f"{root}/customer/{{email}}", EntryType.EMAIL, "Remove a customer's e-mail address"
            ),
            self._scoped_remove(
                f"{root}/device/{{fingerprint}}", EntryType.DEVICE, "Remove a device fingerprint"
            ),
            self._scoped_remove(f"{root}/ip/{{ip}}", EntryType.IP, "Remove an IP address or CIDR range"),
        )

    async def load(self) -> None:
        """Fill the mirror from the store, at start."""
        self._books.clear()
        last = ""
        while rows := await self._store.read(sql.select_all(last, _LOADED)):
            last = rows[-1][0]
            for row in rows:
                try:
                    entry = sql.entry_of(row)
                    self._books.setdefault(entry.tenant, ListBook()).put(entry)
                except Exception as error:  # noqa: BLE001  One entry must not keep a process from its start.
                    self._skipped.note(Rows.LIST_ENTRY, row[1], row[0], error)

    async def reload(self, tenant: str, entry_id: str) -> None:
        """Bring one entry of the mirror in line with the store."""
        rows = await self._store.read(sql.select_entry(tenant, entry_id))
        if rows:
            self._books.setdefault(tenant, ListBook()).put(sql.entry_of(rows[0]))
        elif tenant in self._books:
            self._books[tenant].drop(entry_id)

    async def page(self, call: Call) -> RouteReply:
        """GET /lists."""
        query = read_query(call.query_string, EntryQuery)
        chosen = sql.Filter(
            call.tenant.id, self._now_ms(), query.type, query.list_type, query.created_from, query.created_to
        )
        total = (await self._store.read(chosen.count()))[0][0]
        last = query.after_id("lst")
        rows = await self._store.read(
            chosen.page(query.limit + 1, query.offset, last, descending=query.descending)
        )
        entries = [sql.entry_of(row) for row in rows[: query.limit]]
        more = len(rows) > query.limit
        return RouteReply(
            EntryPage.of(query, [answer(entry) for entry in entries], total, entries[-1].id if more else None)
        )

    async def add(self, call: Call) -> RouteReply:
        """POST /lists."""
        body, faults = call.json(), Faults()
        entry_type = _read_type(body, faults)
        list_type = _read_list_type(body, faults, default=None)
        value, path = _read_value(body, ("value",), faults)
        return await self._insert(call, body, faults, entry_type, list_type, value, path)

    async def remove(self, call: Call) -> RouteReply:
        """DELETE /lists/{id}."""
        entry_id = call.path["id"]
        if not is_id(entry_id, "lst"):
            raise NotFound
        rows = await self._store.read(sql.select_entry(call.tenant.id, entry_id))
        entries = [entry for entry in map(sql.entry_of, rows) if entry.live(self._now_ms())]
        if not entries:
            raise NotFound
        return await self._delete(call, entries)

    def _scoped_add(self, path: str, entry_type: EntryType, summary: str) -> Route:
        takes, names = _SCOPED[entry_type]

        async def add(call: Call) -> RouteReply:
            body, faults = call.json() if call.body else {}, Faults()
            list_type = _read_list_type(body, faults, default=ListType.BLOCK)
            if entry_type is EntryType.EMAIL:
                value: str | None = call.path["email"]
                path = "email"
            else:
                value, path = _read_value(body, names, faults)
            return await self._insert(call, body, faults, entry_type, list_type, value, path)

        return Route(
            "POST",
            path,
            add,
            summary,
            _TAG,
            takes=takes,
            may_lack_body=entry_type is EntryType.EMAIL,
            answers=EntryAnswer,
            status=201,
            refusals=(409, 422),
            idempotent=True,
        )

    def _scoped_remove(self, path: str, entry_type: EntryType, summary: str) -> Route:
        name = path.rpartition("{")[2].rstrip("}")

        async def remove(call: Call) -> RouteReply:
            query = read_query(call.query_string, ScopeQuery)
            value, fault = _canonical(entry_type, call.path[name])
            if value is None or fault is not None:
                raise NotFound
            rows = await self._store.read(
                sql.select_by_value(call.tenant.id, entry_type, value, self._now_ms())
            )
            entries = [
                entry for entry in map(sql.entry_of, rows) if query.list_type in (None, entry.list_type)
            ]
            if not entries:
                raise NotFound
            return await self._delete(call, entries)

        return Route(
            "DELETE", path, remove, summary, _TAG, query=ScopeQuery, answers=EntryRemoved, refusals=(404,)
        )

    async def _insert(
        self,
        call: Call,
        body: JSON,
        faults: Faults,
        entry_type: EntryType | None,
        list_type: ListType | None,
        value: str | None,
        value_path: str,
    ) -> RouteReply:
        now_ms = self._now_ms()
        canonical = None
        if entry_type is not None and value is not None:
            canonical, fault = _canonical(entry_type, value)
            if fault is None and list_type is ListType.BLOCK and body.get("confirm") is not True:
                fault = _EVERY_ADDRESS.get(canonical or "")
            if fault is not None:
                faults.meaning[value_path] = fault
        reason = text_member(body, "reason", "reason", faults)
        expires_at_ms = _read_expiry(body, faults, now_ms)
        faults.raise_any()
        assert entry_type is not None, "a missing type was refused"
        assert list_type is not None, "a missing list type was refused"
        assert canonical is not None, "a value without canonical form was refused"
        entry = ListEntry(
            id=self._ids.make("lst", now_ms),
            tenant=call.tenant.id,
            type=entry_type,
            value=canonical,
            list_type=list_type,
            reason=reason,
            expires_at_ms=expires_at_ms,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        cleared = await self._make_room(call, entry, now_ms)
        statements: list[Statement] = [*cleared, *sql.insert_entry(entry), self._change(entry, now_ms)]
        if entry.list_type is ListType.BLOCK:
            statements += enqueue(
                entry.tenant,
                MessageType.BLOCKLIST_ENTRY_ADDED,
                self._ids.make("msg", now_ms),
                entry.id,
                now_ms,
                encode(told_of_added(entry)),
            )
        reply = RouteReply(answer(entry), 201)
        try:
            await self._store.write(*statements, *call.keep(reply))
        except Clash:
            raise await self._duplicate(entry, now_ms) from None
        self._books.setdefault(entry.tenant, ListBook()).put(entry)
        return reply

    async def _make_room(self, call: Call, entry: ListEntry, now_ms: int) -> list[Statement]:
        """Let go of expired entries where the lists are full. Raises `Conflict` where that does not help."""
        book, most = self._books.get(entry.tenant), call.tenant.list_entries
        if book is None or len(book) < most:
            return []
        book.forget(now_ms)
        if len(book) < most:
            return [sql.delete_expired(entry.tenant, now_ms)]
        duplicate = await self._duplicate(entry, now_ms)
        if "id" in duplicate.details:
            raise duplicate
        raise Conflict(
            f"The lists hold {len(book):,} entries, and may hold {most:,}. Remove some, or ask your operator "
            "for more.",
            "too_many_entries",
            limit=most,
        )

    async def _duplicate(self, entry: ListEntry, now_ms: int) -> Conflict:
        rows = await self._store.read(sql.select_by_value(entry.tenant, entry.type, entry.value, now_ms))
        same = [row[0] for row in rows if row[4] == entry.list_type.value]
        details = {"id": same[0]} if same else {}
        return Conflict("This value is on that list already.", "duplicate_entry", **details)

    async def _delete(self, call: Call, entries: list[ListEntry]) -> RouteReply:
        now_ms = self._now_ms()
        statements: list[Statement] = []
        for entry in entries:
            statements += [sql.delete_entry(entry.tenant, entry.id), self._change(entry, now_ms)]
            if entry.list_type is ListType.BLOCK:
                removed = encode(told_of_removed(entry, now_ms))
                kind, message_id = MessageType.BLOCKLIST_ENTRY_REMOVED, self._ids.make("msg", now_ms)
                statements += enqueue(entry.tenant, kind, message_id, entry.id, now_ms, removed)
        try:
            await self._store.write(*statements)
        except Lost:
            # Somebody else removed it first; exactly one of us tells the subscribers.
            raise NotFound from None
        book = self._books.get(call.tenant.id)
        for entry in entries:
            if book is not None:
                book.drop(entry.id)
        return RouteReply(EntryRemoved(success=True, message="The entry was removed."))

    def _change(self, entry: ListEntry, now_ms: int) -> Statement:
        return note_change(sql.AREA, entry.tenant, entry.id, now_ms)


def _canonical(entry_type: EntryType, value: str) -> tuple[str | None, str | None]:
    """Return the form in which a value is stored, and what is wrong with it if anything is."""
    try:
        canonical = canonical_value(entry_type, value) if len(value) <= VALUE_CHARS_MAX else None
    except HostBits:
        return None, _HOST_BITS
    return canonical, _VALUE_FAULTS[entry_type] if canonical is None else None


def _read_type(body: JSON, faults: Faults) -> EntryType | None:
    name = "type" if body.get("type") is not None else "valueType"
    value = body.get(name)
    if value is None or value == "":
        faults.shape["type"] = "is required"
    elif type(value) is not str:
        faults.shape[name] = "must be a string"
    elif (known := _ENTRY_TYPES.get(value.upper() if value.isascii() else value)) is None:
        faults.shape[name] = "must be one of " + ", ".join(_ENTRY_TYPES)
    else:
        return known
    return None


def _read_list_type(body: JSON, faults: Faults, default: ListType | None) -> ListType | None:
    value = body.get("listType")
    if value is None or value == "":
        if default is None:
            faults.shape["listType"] = "is required"
        return default
    if type(value) is not str:
        faults.shape["listType"] = "must be a string"
    elif value not in _LIST_TYPES:
        faults.shape["listType"] = "must be one of " + ", ".join(_LIST_TYPES)
    else:
        return _LIST_TYPES[value]
    return None


def _read_value(body: JSON, names: tuple[str, ...], faults: Faults) -> tuple[str | None, str]:
    """Return the value and the name under which it was sent: the first of `names` that is given."""
    given = [name for name in names if body.get(name) not in (None, "")]
    for name in given:
        if type(body[name]) is not str:
            faults.shape[name] = "must be a string"
        elif len(body[name]) > VALUE_CHARS_MAX:
            faults.shape[name] = f"must not be longer than {VALUE_CHARS_MAX} characters"
    if not given:
        faults.shape[names[0]] = "is required"
        return None, names[0]
    return (None if given[0] in faults.shape else body[given[0]]), given[0]


def _read_expiry(body: JSON, faults: Faults, now_ms: int) -> int | None:
    text = text_member(body, "expiresAt", "expiresAt", faults)
    if text is None:
        return None
    moment = read_timestamp(text)
    if moment is None:
        faults.meaning["expiresAt"] = "must be an ISO 8601 time"
    elif moment <= now_ms:
        faults.meaning["expiresAt"] = "must be in the future"
    return moment
