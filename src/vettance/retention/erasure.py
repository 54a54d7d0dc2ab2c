"""Replaces a customer's names by pseudonyms everywhere, and reports what is kept and why."""

import functools
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from vettance.audit.read_log import replace_names
from vettance.db.engine import Clash, Row, Statement, Store, still_asked
from vettance.history.decision_search import DecisionFinder, PageEnd
from vettance.history.result_page import Order
from vettance.history.search_criteria import criteria
from vettance.ids import IdSource
from vettance.lists.sql import AREA as LISTS_CHANGED
from vettance.people.session_sql import forget_kept_forms
from vettance.retention import sql
from vettance.retention.name_forms import Names
from vettance.retention.pseudonym import pseudonym, renamed_content, renamed_event
from vettance.retention.segment_rewrite import Renamer
from vettance.retention.stored_texts import (
    AML,
    AML_EVENTS,
    ANSWERS,
    ATTEMPTS,
    COUNTS,
    CUSTOMERS,
    DELIVERIES,
    ENTRIES,
    KEPT,
    LISTS,
    OWN_WORDS,
    REWRITTEN,
    TextColumns,
)
from vettance.reviews.sql import remove_reviews
from vettance.tenants.sql import note_change
from vettance.tenants.vault import UnsealFailure, Vault
from vettance.wire.payload import decode

_PAGE = 100
#: Statements of one commit, each of a row of its own. Everybody's writes wait for it, and on PostgreSQL each
#: is a way to the server and back: some tens of milliseconds in all, so that requests hardly notice.
_STATEMENTS_MAX: Final = 40
#: The place that the answers kept for retries are sealed for, as `replays` names it.
_ANSWER = "answer"
#: What erasures of customers and of other words are noted by, in place of a moment.
_CUSTOMER, _WORD = 0, 1


class RetainedNote(msgspec.Struct, frozen=True):
    """Something of the customer that stays, how many records of it where they can be counted, and why."""

    what: str
    count: int | None
    why: str


class ErasureResult(msgspec.Struct, frozen=True, rename="camel"):
    """What an erasure did: the pseudonym, how many events and other rows were rewritten, and what stays."""

    pseudonym: str
    events: int
    rows: int
    kept: list[RetainedNote]
    #: Whether anything of the tenant named the customer, what the law has kept included.
    known: bool


class Eraser:
    """Erases one customer of a tenant. Counts stay: the events are there, under another name."""

    def __init__(self, store: Store, secret: bytes, now_ms: int) -> None:
        self._store = store
        self._secret = secret
        self._vault = Vault(secret)
        self._now_ms = now_ms
        self._finder = DecisionFinder(store)
        self._renamer = Renamer(store, self._finder)

    async def is_customer(self, tenant: str, name: str) -> bool:
        """Tell whether anything of a tenant has a name as that of a customer: events, cases, lists, or an
        erasure of a customer before this one, which may have left some of it. Other words are everybody's.
        """
        ids = Names({name: ""})
        subject = pseudonym(self._secret, tenant, name, _CUSTOMER)
        if await self._store.read(sql.select_erasure(tenant, subject)):
            return True
        after = -1
        while rows := await self._store.read(sql.select_customers(tenant, after)):
            after = rows[-1][0]
            if ids.may_be_in(text for row in rows for text in row[1:]) and any(
                _is_either(ids, *row[1:]) for row in rows
            ):
                return True
        async for who, email in self._aml_customers(tenant, ids):
            if _is_either(ids, who, email):
                return True
        for place in CUSTOMERS:
            async for found in self._rows(tenant, place):
                if any(_is_either(ids, *columns) for _, columns in found):
                    return True
        return False

    async def erase(
        self,
        tenant: str,
        external_id: str,
        also: Collection[str] = (),
        emails: Collection[str] = (),
        *,
        is_customer: bool = True,
    ) -> ErasureResult:
        """Erase the customer known by an external id, with the e-mail addresses seen with it and those given.

        Without `is_customer` it is a word that nobody is known by. `also` names what is kept otherwise
        (`place.OPTIONS`). An erasure that was interrupted is taken up again with the same pseudonyms.
        """
        subject = pseudonym(self._secret, tenant, external_id, _CUSTOMER if is_customer else _WORD)
        at_ms = await self._begin(tenant, subject)
        seqs = await self._seqs(tenant, external_id)
        seen = await self._emails(tenant, external_id, emails)
        pseudonyms = {
            text: pseudonym(self._secret, tenant, text, at_ms)
            for text in (external_id, *sorted({*seen.own, *seen.shared}))
        }
        names = Names(pseudonyms)
        # What others share with the customer is theirs too, and stays in their events.
        own = Names({text: pseudonyms[text] for text in (external_id, *sorted(seen.own))})
        for email in sorted(seen.own):
            seqs += await self._seqs(tenant, email)
        rows = await self._others(tenant, names, own, also)
        rows += sum(await self._store.write(sql.forget_subject(tenant, external_id)))
        mine, others = await self._rewrite(tenant, names, own)
        await self._renamer.rename(tenant, sorted({*mine, *seqs}), names.replaced)
        await self._renamer.rename(tenant, others, own.replaced)
        entry_id = functools.partial(IdSource().make, "aud")
        replaced = functools.partial(renamed_content, names=names)
        rows += await replace_names(self._store, tenant, replaced, entry_id, self._now_ms)
        kept = await self._kept(tenant, names, also)
        # Running services drop the names that they remember.
        asked = ((AML, sql.DONE_AML), (LISTS, LISTS_CHANGED))
        changed = [sql.DONE, *(area for option, area in asked if option in also)]
        await self._store.write(
            forget_kept_forms(tenant),
            *(note_change(area, tenant, subject, self._now_ms) for area in changed),
        )
        # The configuration has words that are no names: a rule about payments does not know a customer.
        told = any(one.count and one.why != OWN_WORDS for one in kept)
        known = bool(mine or others or seqs or rows or told)
        events = len({*mine, *others, *seqs})
        return ErasureResult(pseudonyms[external_id], events, rows, kept, known)

    async def _begin(self, tenant: str, subject: str) -> int:
        """Return the moment of the erasure: that of an earlier one when it was interrupted."""
        found = await self._store.read(sql.select_erasure(tenant, subject))
        if found and found[0][0] == sql.BEGUN:
            return int(found[0][1])
        await self._store.write(note_change(sql.BEGUN, tenant, subject, self._now_ms))
        return self._now_ms

    async def _seqs(self, tenant: str, name: str) -> list[int]:
        """Return the places in the log of the events that name a customer, by id or e-mail address.

        As the indexes know them, which an interrupted erasure may have left behind the log.
        """
        found: list[int] = []
        after: PageEnd | None = None
        while True:
            page = await self._finder.find(
                tenant, criteria(customer=name), Order.EVALUATED, 0, _PAGE, after, descending=False
            )
            found += page.seqs
            if page.end is None:
                return found
            after = page.end

    async def _emails(self, tenant: str, external_id: str, given: Collection[str]) -> "_Emails":
        """Return the addresses seen with a customer: those of this customer alone, and the shared ones."""
        ids = Names({external_id: ""})
        found = set(given)
        after = -1
        while rows := await self._store.read(sql.select_customers(tenant, after)):
            after = rows[-1][0]
            if not ids.may_be_in(who for _, who, _ in rows):
                continue
            found.update(
                email for _, who, email in rows if email is not None and who is not None and ids.is_name(who)
            )
        async for who, email in self._aml_customers(tenant, ids):
            if who is not None and email is not None and ids.is_name(who):
                found.add(email)
        shared = set()
        addresses = {email.strip().lower(): email for email in found}
        if found:
            async for who, told in self._aml_customers(tenant, Names(dict.fromkeys(found, ""))):
                if who is not None and told in addresses and not ids.is_name(who):
                    shared.add(addresses[told])
        for email in found - shared:
            async for events in self._events(tenant, await self._seqs(tenant, email)):
                customers = (one.customer[0] for one in events)
                if any(found is not None and not ids.is_name(found) for found in customers):
                    shared.add(email)
                    break
        return _Emails(frozenset(found - shared), frozenset(shared))

    async def _aml_customers(self, tenant: str, names: Names) -> AsyncIterator[tuple[str | None, str | None]]:
        """Yield the customers, id and address, of the AML events in which one of some names may be."""
        async for rows in self._rows(tenant, AML_EVENTS):
            for _, columns in rows:
                if names.may_be_in(columns):
                    yield _aml_customer(columns)

    async def _rewrite(self, tenant: str, names: Names, own: Names) -> tuple[list[int], list[int]]:
        """Rewrite the log; returns the places of the customer's own events, and of others that named it."""
        places: tuple[list[int], list[int]] = [], []
        after = -1
        while rows := await self._store.read(sql.select_log(tenant, after)):
            after = rows[-1][0]
            changes = []
            for row in filter(names.may_be_in, rows):
                seq, one = row[0], sql.named_event_of(row)
                customer_id, email = one.customer
                is_own = own.is_name(email or "" if customer_id is None else customer_id)
                renamed = _renamed_event(one, names, is_own=True) if is_own else _renamed_event(one, own)
                change = []
                if renamed != one:
                    places[not is_own].append(seq)
                    change += sql.rewrite_event(tenant, renamed)
                if is_own:
                    change.append(remove_reviews(tenant, [one.id]))
                changes.append(change)
            await self._write(changes)
        return places

    async def _write(self, changes: Iterable[Sequence[Statement]]) -> None:
        """Write changes, several in a commit; the statements of one change are never apart."""
        commit: list[Statement] = []
        for change in changes:
            if commit and len(commit) + len(change) > _STATEMENTS_MAX:
                await self._store.write(*commit)
                commit = []
            commit += change
        if commit:
            await self._store.write(*commit)

    async def _events(self, tenant: str, seqs: Sequence[int]) -> AsyncIterator[list[sql.NamedEvent]]:
        """Yield the events at some places of the log, a piece at a time."""
        seqs = sorted(seqs)
        for start in range(0, len(seqs), _PAGE):
            asked: Sequence[int] = seqs[start : start + _PAGE]
            while asked:
                rows = await self._store.read(sql.select_events(tenant, asked))
                yield [sql.named_event_of(row) for row in rows]
                asked = still_asked(asked, rows)

    async def _others(self, tenant: str, names: Names, own: Names, also: Collection[str]) -> int:
        """Rewrite what names the customer outside of the log; returns how many rows did."""
        count = await self._answers(tenant, names)
        asked = (one.place for one in KEPT if one.option in also and one.place not in (ENTRIES, COUNTS))
        for place in (*REWRITTEN, *asked):
            async for rows in self._rows(tenant, place):
                for keys, columns in rows:
                    if place is AML_EVENTS:
                        changed = _changed_aml_event(columns, names, own)
                    else:
                        changed = _changed(place, columns, names)
                    if changed:
                        await self._rewrite_row(tenant, place, keys, changed)
                        count += 1
        if AML in also:
            await self._store.write(sql.remove_empty_counts(tenant))
        if LISTS in also:
            async for rows in self._rows(tenant, ENTRIES):
                found = [keys for keys, columns in rows if _changed(ENTRIES, columns, names)]
                await self._write([sql.remove_row(tenant, ENTRIES, keys)] for keys in found)
                count += len(found)
        return count

    async def _rewrite_row(
        self, tenant: str, place: TextColumns, keys: Sequence[Any], changed: dict[str, Any]
    ) -> None:
        try:
            await self._store.write(sql.rewrite_row(tenant, place, keys, changed))
        except Clash:
            # Two spellings of one name get the same pseudonym: the digest of the row distinguishes them.
            told = f"~{pseudonym(self._secret, tenant, repr(keys), 0)}"
            texts = {name: text + told if isinstance(text, str) else text for name, text in changed.items()}
            await self._store.write(sql.rewrite_row(tenant, place, keys, texts))

    async def _answers(self, tenant: str, names: Names) -> int:
        """Rewrite the answers kept for retries, which are sealed; returns how many named the customer."""
        count = 0
        async for rows in self._rows(tenant, ANSWERS):
            statements = []
            for keys, (sealed, headers) in rows:
                place = (_ANSWER, tenant, *keys)
                told = " ".join(keys) + headers.decode(errors="replace")
                try:
                    content = self._vault.open(sealed, *place)
                except UnsealFailure:
                    # Its path is known by a digest only: whom it names can no longer be determined.
                    statements.append(sql.remove_row(tenant, ANSWERS, keys))
                    continue
                if names.replaced(told) != told:
                    # A retry by such a key is a new request, of a customer who is new.
                    statements.append(sql.remove_row(tenant, ANSWERS, keys))
                elif (changed := renamed_content(content, names)) != content:
                    again = {"content": self._vault.seal(changed, *place)}
                    statements.append(sql.rewrite_row(tenant, ANSWERS, keys, again))
            await self._write([one] for one in statements)
            count += len(statements)
        return count

    async def _rows(self, tenant: str, place: TextColumns) -> AsyncIterator[list[tuple[Row, Row]]]:
        """Yield the rows of a place with their keys, a piece at a time."""
        if place is ATTEMPTS:
            async for deliveries in self._rows(tenant, DELIVERIES):
                numbers = [seq for _, (seq,) in deliveries]
                for start in range(0, len(numbers), _PAGE):
                    asked = sql.select_attempts(tenant, numbers[start : start + _PAGE])
                    yield [(row[:2], row[2:]) for row in await self._store.read(asked)]
            return
        after: Sequence[Any] = place.start
        width = len(place.keys)
        while rows := await self._store.read(sql.select_place(tenant, place, after)):
            after = rows[-1][:width]
            yield [(row[:width], row[width:]) for row in rows]

    async def _kept(self, tenant: str, names: Names, also: Collection[str]) -> list[RetainedNote]:
        kept = [
            RetainedNote(
                "decisions, scores and counts", None, "they name nobody now and keep statistics true"
            ),
            RetainedNote(
                "IP addresses, devices and payment fingerprints of the events",
                None,
                "they recognise fraud by others; nothing leads from them to the erased names",
            ),
            RetainedNote("backups and exported files", None, "they are outside of the store"),
        ]
        for one in KEPT:
            count = 0
            if one.option not in also:
                async for rows in self._rows(tenant, one.place):
                    count += sum(bool(_changed(one.place, columns, names)) for _, columns in rows)
            if count:
                kept.append(RetainedNote(one.what, count, one.why))
        return kept


class _Emails(msgspec.Struct, frozen=True):
    own: frozenset[str]
    shared: frozenset[str]


def _is_either(ids: Names, *texts: str | None) -> bool:
    return any(text is not None and ids.is_name(text) for text in texts)


def _renamed_event(one: sql.NamedEvent, names: Names, *, is_own: bool = False) -> sql.NamedEvent:
    return one._replace(
        texts=tuple(text if text is None else names.replaced(text) for text in one.texts),
        sent=renamed_event(one.sent, names) if is_own else renamed_content(one.sent, names),
        record=renamed_content(one.record, names),
        signals=renamed_content(one.signals, names),
    )


def _changed(place: TextColumns, columns: Row, names: Names) -> dict[str, Any]:
    """Return the columns of a row that name the customer, with their new values."""
    if not names.may_be_in(columns):
        return {}
    pairs = (
        (name, content, renamed_content(content, names))
        for name, content in zip(place.columns, columns, strict=True)
    )
    return {name: changed for name, content, changed in pairs if changed != content}


def _aml_customer(columns: Row) -> tuple[str | None, str | None]:
    """Return the id and the e-mail address of the customer of an AML event, of its row."""
    said = decode(dict(zip(AML_EVENTS.columns, columns, strict=True))["sent"]).get("customer") or {}
    email = said.get("email")
    return said.get("externalId") or None, email.strip().lower() if email else None


def _changed_aml_event(columns: Row, names: Names, own: Names) -> dict[str, Any]:
    """Return the columns of an AML event that name the customer, with their new values.

    As in the log, what was said of the customer as such goes, and an address of others too stays in theirs.
    """
    if not names.may_be_in(columns):
        return {}
    who, email = _aml_customer(columns)
    if not own.is_name(email or "" if who is None else who):
        return _changed(AML_EVENTS, columns, own)
    sent = dict(zip(AML_EVENTS.columns, columns, strict=True))["sent"]
    return _changed(AML_EVENTS, columns, names) | {"sent": renamed_event(sent, names)}
