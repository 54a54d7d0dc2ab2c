"""The doors of the allow and block lists."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from vettance import clock
from vettance.audit.act import describe
from vettance.db.engine import Clash, Lost, Statement, Store, still_asked
from vettance.errors import Conflict, NotFound
from vettance.fairness.skipped_rows import Skipped
from vettance.ids import IdSource, is_id
from vettance.lists import sql
from vettance.lists.answers import (
    EntryAnswer,
    EntryPage,
    EntryQuery,
    EntryRemoved,
    ScopeQuery,
    added_payload,
    answer,
    removed_payload,
)
from vettance.lists.entry import ListBook, ListEntry, ListType
from vettance.lists.entry_bodies import (
    SCOPES,
    EntryBody,
    NewEntry,
    Scope,
    read_entry,
    read_scoped_entry,
    read_value,
)
from vettance.outbox import MessageType, enqueue
from vettance.telemetry.meter_table import Rows
from vettance.tenants.sql import note_change
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply
from vettance.wire.payload import decode, encode

_TAG: Final = "Lists"
_LOADED: Final = 5_000  # Entries read at a time at the start.
_ADDED: Final[dict[str, Any]] = {
    "answers": EntryAnswer,
    "status": 201,
    "refusals": (409, 422),
    "idempotent": True,
}


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
            Route("POST", root, self.add, "Add an entry", _TAG, takes=EntryBody, **_ADDED),
            Route(
                "DELETE",
                f"{root}/{{id}}",
                self.remove,
                "Remove an entry by its id",
                _TAG,
                answers=EntryRemoved,
                refusals=(404,),
            ),
            *(self._scoped_add(root, scope) for scope in SCOPES),
            *(self._scoped_remove(root, scope) for scope in SCOPES),
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

    async def reload(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Bring entries of the mirror in line with the store."""
        entries: dict[str, ListEntry] = {}
        asked = entry_ids
        while asked:
            rows = await self._store.read(sql.select_entries(tenant, asked))
            entries.update((entry.id, entry) for entry in map(sql.entry_of, rows))
            asked = still_asked(asked, rows)
        for entry_id in entry_ids:
            if (entry := entries.get(entry_id)) is not None:
                self._books.setdefault(tenant, ListBook()).put(entry)
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
        now_ms = self._now_ms()
        return await self._insert(call, read_entry(call.json(), now_ms), now_ms)

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

    def _scoped_add(self, root: str, scope: Scope) -> Route:
        async def add(call: Call) -> RouteReply:
            now_ms, body = self._now_ms(), call.json() if call.body else {}
            return await self._insert(call, read_scoped_entry(scope, call.path, body, now_ms), now_ms)

        return Route(
            "POST",
            f"{root}/{scope.add}",
            add,
            f"Add {scope.what}",
            _TAG,
            takes=scope.takes,
            may_lack_body=not scope.members,
            **_ADDED,
        )

    def _scoped_remove(self, root: str, scope: Scope) -> Route:
        async def remove(call: Call) -> RouteReply:
            query = read_query(call.query_string, ScopeQuery)
            (sent,) = call.path.values()
            value, fault = read_value(scope.entry_type, sent)
            if value is None or fault is not None:
                raise NotFound
            rows = await self._store.read(
                sql.select_by_value(call.tenant.id, scope.entry_type, value, self._now_ms())
            )
            entries = [
                entry for entry in map(sql.entry_of, rows) if query.list_type in (None, entry.list_type)
            ]
            if not entries:
                raise NotFound
            return await self._delete(call, entries)

        return Route(
            "DELETE",
            f"{root}/{scope.remove}",
            remove,
            f"Remove {scope.what}",
            _TAG,
            query=ScopeQuery,
            answers=EntryRemoved,
            refusals=(404,),
        )

    async def _insert(self, call: Call, new: NewEntry, now_ms: int) -> RouteReply:
        entry = ListEntry(
            id=self._ids.make("lst", now_ms),
            tenant=call.tenant.id,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            **new._asdict(),
        )
        describe(subject=", ".join(call.path.values()) or entry.id)
        most = call.tenant.list_entries
        statements: list[Statement] = [*sql.insert_entry(entry, most), self._change(entry, now_ms)]
        if entry.list_type is ListType.BLOCK:
            statements += enqueue(
                entry.tenant,
                MessageType.BLOCKLIST_ENTRY_ADDED,
                self._ids.make("msg", now_ms),
                entry.id,
                now_ms,
                encode(added_payload(entry)),
            )
        reply = RouteReply(answer(entry), 201)
        try:
            await self._store.write(*statements, *call.keep(reply))
        except (Clash, Lost) as error:
            duplicate = await self._duplicate(entry, now_ms)
            raise (
                duplicate if isinstance(error, Clash) or "id" in duplicate.details else _full(most)
            ) from None
        self._books.setdefault(entry.tenant, ListBook()).put(entry)
        return reply

    async def _duplicate(self, entry: ListEntry, now_ms: int) -> Conflict:
        rows = await self._store.read(sql.select_by_value(entry.tenant, entry.type, entry.value, now_ms))
        same = [row[0] for row in rows if row[4] == entry.list_type.value]
        details = {"id": same[0]} if same else {}
        return Conflict("This value is on that list already.", "duplicate_entry", **details)

    async def _delete(self, call: Call, entries: list[ListEntry]) -> RouteReply:
        now_ms = self._now_ms()
        # What is gone can be named by the log alone.
        describe(before=[decode(encode(answer(entry))) for entry in entries])
        statements: list[Statement] = []
        for entry in entries:
            statements += [sql.delete_entry(entry.tenant, entry.id), self._change(entry, now_ms)]
            if entry.list_type is ListType.BLOCK:
                removed = encode(removed_payload(entry, now_ms))
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


def _full(most: int) -> Conflict:
    return Conflict(
        f"The lists hold as many entries as they may: {most:,}. Remove some, or ask your operator for more.",
        "too_many_entries",
        limit=most,
    )
