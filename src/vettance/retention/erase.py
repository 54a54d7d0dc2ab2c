"""Erase: put pseudonyms in the place of a customer's names, everywhere, and tell what is kept and why."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from vettance.db.engine import Store, still_asked
from vettance.history.filter import Order, Wanted
from vettance.history.find import Finder, Place
from vettance.retention import sql
from vettance.retention.names import Names
from vettance.retention.pseudonym import pseudonym, renamed_event, renamed_json
from vettance.retention.rename import Renamer
from vettance.tenants.sql import note_change

_PAGE = 100


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
    #: Whether anything of the tenant named the customer, what the law has kept included.
    known: bool


class Eraser:
    """Erases one customer of a tenant. Counts stay: the events are there, under another name."""

    def __init__(self, store: Store, secret: bytes, now_ms: int) -> None:
        self._store = store
        self._secret = secret
        self._now_ms = now_ms
        self._finder = Finder(store)
        self._renamer = Renamer(store, self._finder)

    async def erase(self, tenant: str, external_id: str) -> Erased:
        """Erase the customer known by an external id, with the e-mail addresses seen with it.

        An erasure that was interrupted is taken up again with the same pseudonyms.
        """
        subject = pseudonym(self._secret, tenant, external_id, 0)
        at_ms = await self._begin(tenant, subject)
        seqs = await self._seqs(tenant, external_id)
        emails = await self._emails(tenant, external_id, seqs)
        texts = [external_id, *sorted({*emails.own, *emails.shared})]
        pseudonyms = {text: pseudonym(self._secret, tenant, text, at_ms) for text in texts}
        names = Names(pseudonyms)
        for email in sorted(emails.own):
            seqs += [seq for seq in await self._seqs(tenant, email) if seq not in set(seqs)]
        await self._rewrite(tenant, sorted(seqs), names)
        await self._renamer.rename(tenant, sorted(seqs), names.replaced)
        rows = await self._others(tenant, names)
        rows += sum(await self._store.write(sql.forget_subject(tenant, external_id)))
        kept = await self._kept(tenant, external_id, sorted(emails.own | emails.shared))
        # Running services let go of the names that they remember.
        await self._store.write(note_change(sql.DONE, tenant, subject, self._now_ms))
        aml = (await self._store.read(sql.count_aml_of(tenant, external_id)))[0]
        known = bool(seqs or rows or aml[0] or aml[1])
        return Erased(pseudonyms[external_id], len(seqs), rows, kept, known)

    async def _begin(self, tenant: str, subject: str) -> int:
        """Return the moment of the erasure: that of an earlier one when it did not come to its end."""
        found = await self._store.read(sql.select_erasure(tenant, subject))
        if found and found[0][0] == sql.BEGUN:
            at_ms: int = found[0][1]
            return at_ms
        await self._store.write(note_change(sql.BEGUN, tenant, subject, self._now_ms))
        return self._now_ms

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
        async for events in self._events(tenant, seqs):
            for one in events:
                if one.customer_id == external_id and one.email is not None:
                    found.add(one.email)
        shared = set()
        for email in found:
            async for events in self._events(tenant, await self._seqs(tenant, email)):
                if any(one.customer_id not in (external_id, None) for one in events):
                    shared.add(email)
                    break
        return _Emails(frozenset(found - shared), frozenset(shared))

    async def _rewrite(self, tenant: str, seqs: Sequence[int], names: Names) -> None:
        async for events in self._events(tenant, seqs):
            statements = []
            for one in events:
                texts = {
                    name: names.replaced(text)
                    for name in sql.NAMING
                    if (text := getattr(one, name)) is not None
                }
                renamed = one._replace(
                    **texts,
                    sent=renamed_event(one.sent, names),
                    record=renamed_json(one.record, names),
                    signals=renamed_json(one.signals, names) if one.signals is not None else None,
                )
                statements += sql.rewrite_event(tenant, renamed)
            await self._store.write(*statements)

    async def _events(self, tenant: str, seqs: Sequence[int]) -> AsyncIterator[list[sql.Named]]:
        """Yield the events at some places of the log, a piece at a time."""
        seqs = sorted(seqs)
        for start in range(0, len(seqs), _PAGE):
            asked: Sequence[int] = seqs[start : start + _PAGE]
            while asked:
                rows = await self._store.read(sql.select_events(tenant, asked))
                yield [sql.Named._make(row[1:]) for row in rows]
                asked = still_asked(asked, rows)

    async def _others(self, tenant: str, names: Names) -> int:
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

    async def _kept(self, tenant: str, external_id: str, emails: Sequence[str]) -> list[Kept]:
        kept = [
            Kept("decisions, scores and counts", "they name nobody now and keep statistics true"),
            Kept(
                "IP addresses, devices and payment fingerprints of the events",
                "they recognise fraud by others; nothing leads from them to the erased names",
            ),
            Kept("free text of other customers' events", "only events of this customer are rewritten"),
            Kept(
                "answers kept under an Idempotency-Key, signals queued by browsers",
                "retries and open sessions need them; they go within 24 hours",
            ),
            Kept("what receivers answered to webhooks", "it is theirs; retention removes it"),
            Kept("freed space inside the store's files", "what stood there is lost as it is written over"),
            Kept("backups and exported files", "they are outside of the store"),
        ]
        cases, screenings, has_events = (await self._store.read(sql.count_aml_of(tenant, external_id)))[0]
        if cases or screenings or has_events:
            kept.append(
                Kept(
                    f"{cases} AML cases, {screenings} screenings and the AML events of the customer",
                    "the law against money laundering has them kept, in the EU for five years after the "
                    "relationship ends (Directive (EU) 2015/849, Article 40)",
                )
            )
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


def _renamed_content(content: str | bytes, names: Names) -> str | bytes:
    if isinstance(content, str):
        return names.replaced(content)
    try:
        return renamed_json(content, names)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content  # A job that failed because it is not JSON; retention removes it.
