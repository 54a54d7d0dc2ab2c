"""Erase: put pseudonyms in the place of a customer's names, everywhere, and tell what is kept and why."""

from collections.abc import Sequence

import msgspec

from vettance.db.engine import Lost, Store
from vettance.history.column import SEARCHED_BITS
from vettance.history.filter import Order, Wanted
from vettance.history.find import Finder, Place
from vettance.history.seal import Sealer
from vettance.retention import sql
from vettance.retention.pseudonym import pseudonym, renamed_event, renamed_json, renamed_text
from vettance.terms import sql as terms_sql

_PAGE = 100
_TRIES = 20


class Kept(msgspec.Struct, frozen=True):
    """Something of the customer that stays, and why."""

    what: str
    why: str


class Erased(msgspec.Struct, frozen=True, rename="camel"):
    """What an erasure did: the pseudonym, how many events and other rows were rewritten, and what stays."""

    pseudonym: str
    events: int
    rows: int
    kept: list[Kept]


class Eraser:
    """Erases one customer of a tenant. Counts stay: the events are there, under another name."""

    def __init__(self, store: Store, secret: bytes, now_ms: int) -> None:
        self._store = store
        self._secret = secret
        self._now_ms = now_ms
        self._finder = Finder(store)
        self._sealer = Sealer(store, {})

    async def erase(self, tenant: str, external_id: str) -> Erased:
        """Erase the customer known by an external id, with the e-mail addresses seen with it."""
        seqs = await self._seqs(tenant, external_id)
        emails = await self._emails(tenant, external_id, seqs)
        texts = [external_id, *sorted({*emails.own, *emails.shared})]
        names = {text.casefold(): pseudonym(self._secret, tenant, text, self._now_ms) for text in texts}
        own = {text: names[text.casefold()] for text in (external_id, *emails.own)}
        for email in sorted(emails.own):
            seqs += [seq for seq in await self._seqs(tenant, email) if seq not in set(seqs)]
        cut = await self._rewrite(tenant, sorted(seqs), names)
        await self._rename(tenant, own)
        if emails.shared:
            for first, last in cut:
                await self._sealer.seal_again(tenant, first, last)
        rows = await self._others(tenant, names)
        return Erased(
            own[external_id], len(seqs), rows, await self._kept(tenant, sorted(emails.own | emails.shared))
        )

    async def _seqs(self, tenant: str, name: str) -> list[int]:
        """Return the places in the log of the events that name a customer, by id or e-mail address."""
        found: list[int] = []
        after: Place | None = None
        while True:
            page = await self._finder.find(
                tenant, Wanted(customer=name), Order.EVALUATED, 0, _PAGE, after, descending=False
            )
            found += page.seqs
            if page.end is None:
                return found
            after = page.end

    async def _emails(self, tenant: str, external_id: str, seqs: Sequence[int]) -> "_Emails":
        """Return the addresses seen with a customer: those of nobody else, and those of others too."""
        found: set[str] = set()
        for start in range(0, len(seqs), _PAGE):
            for row in await self._store.read(sql.select_events(tenant, seqs[start : start + _PAGE])):
                if row[1] == external_id and row[2] is not None:
                    found.add(row[2])
        shared = set()
        for email in found:
            others = await self._seqs(tenant, email)
            for start in range(0, len(others), _PAGE):
                rows = await self._store.read(sql.select_events(tenant, others[start : start + _PAGE]))
                if any(row[1] not in (external_id, None) for row in rows):
                    shared.add(email)
                    break
        return _Emails(frozenset(found - shared), frozenset(shared))

    async def _rewrite(
        self, tenant: str, seqs: Sequence[int], names: dict[str, str]
    ) -> list[tuple[int, int]]:
        """Rewrite events; returns the first and last places of the chunks they stand in."""
        for start in range(0, len(seqs), _PAGE):
            statements = []
            for event_id, customer, email, sent, record, signals in await self._store.read(
                sql.select_events(tenant, seqs[start : start + _PAGE])
            ):
                statements += sql.rewrite_event(
                    tenant,
                    event_id,
                    renamed_text(customer, names) if customer is not None else None,
                    renamed_text(email, names) if email is not None else None,
                    renamed_event(sent, names),
                    renamed_json(record, names),
                    renamed_json(signals, names) if signals is not None else None,
                )
            await self._store.write(*statements)
        layout = await self._finder.layout(tenant)
        touched = {layout.chunk_of_seq(seq) for seq in seqs}
        return [
            (layout.chunks[index].first_seq, layout.chunks[index].id)
            for index in sorted(touched)
            if index < len(layout.chunks)
        ]

    async def _rename(self, tenant: str, own: dict[str, str]) -> None:
        """Rename the terms of names that are this customer's alone."""
        for _ in range(_TRIES):
            epoch = (await self._store.read(terms_sql.select_epoch()))[0][0]
            layout = await self._finder.layout(tenant)
            statements = [sql.raise_epoch(tenant, epoch, layout.through)]
            for row in await self._store.read(terms_sql.select_terms(tenant, list(own))):
                term = terms_sql.Term._make(row)
                statements.append(sql.rename_term(tenant, term.id, own[term.value]))
                if term.fields & SEARCHED_BITS:
                    statements.append(terms_sql.delete_term_search(term))
                    statements += terms_sql.insert_term_search([term._replace(value=own[term.value])])
            try:
                await self._store.write(*statements)
            except Lost:
                continue
            return
        raise Lost("the history was being laid out all the time; try again")

    async def _others(self, tenant: str, names: dict[str, str]) -> int:
        """Rewrite what names the customer beside the log; returns how many rows did."""
        count = 0
        for place in sql.PLACES:
            after = ""
            while rows := await self._store.read(sql.select_place(tenant, place, after)):
                after = rows[-1][0]
                statements = []
                for key, content in rows:
                    changed = _renamed_content(content, names)
                    if changed != content:
                        statements.append(sql.rewrite_place(tenant, place, key, changed))
                if statements:
                    await self._store.write(*statements)
                    count += len(statements)
        return count

    async def _kept(self, tenant: str, emails: Sequence[str]) -> list[Kept]:
        kept = [
            Kept("decisions, scores and counts", "they name nobody now and keep statistics true"),
            Kept(
                "IP addresses, devices and payment fingerprints of the events",
                "they recognise fraud by others; nothing leads from them to the erased names",
            ),
            Kept("free text of other customers' events", "only events of this customer are rewritten"),
            Kept("answers kept under an Idempotency-Key", "retries need them; they go within 24 hours"),
            Kept("backups and exported files", "they are outside of the store"),
        ]
        entries: dict[str, int] = {}
        if emails:
            entries.update(await self._store.read(sql.select_entries_of(tenant, emails)))
        kept += [
            Kept(
                f"{count} entries of the {name} list",
                "a list works only by the value itself; remove them there",
            )
            for name, count in entries.items()
        ]
        pending = (await self._store.read(sql.count_pending_of(tenant)))[0][0]
        if pending:
            kept.append(
                Kept(
                    f"{pending} webhooks still to be delivered",
                    "each attempt sends the same bytes; erase again later",
                )
            )
        return kept


class _Emails(msgspec.Struct, frozen=True):
    own: frozenset[str]
    shared: frozenset[str]


def _renamed_content(content: str | bytes, names: dict[str, str]) -> str | bytes:
    if isinstance(content, str):
        return renamed_text(content, names)
    try:
        return renamed_json(content, names)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content  # A job that failed because it is not JSON; retention removes it.
