"""Retention and erasure: what goes, what stays, and that lists and statistics stay true to what is left."""

import itertools
import json
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.past import DAY_MS, MADE, SEALED, START_MS, Archive, Asked, Made, Past, wants
from tests.history.test_recount import SEALS, SEARCHES, WANTED, expected, listed
from tests.live import Caller, Service
from vettance.db.engine import Row, Statement
from vettance.db.sqlite import SqliteStore
from vettance.errors import Unavailable
from vettance.history.decision_search import ChunksChanged, DecisionFinder, retry_on_change
from vettance.history.entity_links import EntityLinker
from vettance.history.result_page import Order
from vettance.history.search_criteria import criteria
from vettance.history.statistics import DecisionCounter
from vettance.retention.erasure import Eraser
from vettance.retention.expiry import Retainer
from vettance.retention.name_forms import Names
from vettance.retention.pseudonym import pseudonym, renamed
from vettance.settings.retention_policy import Policy
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.terms.sql import search_ids
from vettance.webhooks.delivery_queue import select_feed, select_last_delivery

LIVED = st.sampled_from([1, 5, 12, 24]).flatmap(
    lambda size: st.lists(st.tuples(st.sampled_from([0, 0, 1]), MADE), min_size=size, max_size=size)
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Archive(tmp_path_factory.mktemp("archive"))
    yield made
    made.close()


@settings(max_examples=25, deadline=None)
@given(LIVED, SEALS, WANTED, SEARCHES, st.sampled_from([0, 1, 700, 61_000, DAY_MS, 3 * DAY_MS]))
def test_lists_are_true_to_what_retention_leaves(
    archive: Archive, lived, seals, wanted, search, age_ms
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    async def scene() -> None:
        for tenant in tenants:
            await archive.store.write(insert_tenant(Tenant(id=tenant, name="t"), 0))
        pasts = await archive.live(tenants, lived, seals)
        for tenant in tenants:
            # Columns read before must not be answered from afterwards.
            assert (await listed(archive, tenant, wanted, Order.SCORE, 9, descending=True))[1] >= 0
        before_ms = START_MS + age_ms
        await Retainer(archive.store, Policy(events=1), lambda: before_ms + DAY_MS).run()
        newest = (await archive.store.read(Statement("SELECT id FROM decision ORDER BY seq DESC LIMIT 1")))[
            0
        ][0]
        for tenant, past in zip(tenants, pasts, strict=True):
            left = [one for one in past if one.evaluated_at_ms >= before_ms or one.id == newest]
            for gone in {one.id for one in past} - {one.id for one in left}:
                assert await archive.store.read(search_ids(gone.removeprefix("evt_"), 2)) == []
            for order in (Order.EVALUATED, Order.SCORE):
                ids, total = await listed(archive, tenant, wanted, order, 9, descending=True)
                assert ids == expected(left, wanted, order, descending=True)
                assert total == len(ids)
            found = {"search": search}
            ids, _ = await listed(archive, tenant, found, Order.EVALUATED, 9, descending=True)
            assert ids == expected(left, found, Order.EVALUATED, descending=True)

        await archive.store.write(Statement("INSERT INTO id_search (id_search) VALUES ('integrity-check')"))

    archive.runner.run(scene())


def test_texts_of_what_is_left_stay_however_many_chunks_there_are(archive: Archive) -> None:
    tenant, count, gone = archive.tenant(), 40 * SEALED, 3 * SEALED

    async def scene() -> list[str]:
        await archive.store.write(insert_tenant(Tenant(id=tenant, name="t"), 0))
        lived = [(0, Made(customer_id=f"of {number}", waited_ms=1000)) for number in range(count)]
        (past,) = await archive.live([tenant], lived, [count - 1])
        before_ms = past[gone].evaluated_at_ms
        await Retainer(archive.store, Policy(events=1), lambda: before_ms + DAY_MS).run()
        select = Statement("SELECT value FROM term WHERE tenant = ?", (tenant,))
        return [row[0] for row in await archive.store.read(select) if row[0].startswith("of ")]

    assert sorted(archive.runner.run(scene())) == sorted(f"of {number}" for number in range(gone, count))


class Retained:
    """A store in which retention takes its turn right after a certain read."""

    reads_before = 0

    def __init__(self, archive: Archive, now_ms: int) -> None:
        self._store = archive.store
        self._now_ms = now_ms

    async def read(self, statement: Statement) -> list[Row]:
        rows = await self._store.read(statement)
        self.reads_before -= 1
        if self.reads_before == 0:
            await Retainer(self._store, Policy(events=1), lambda: self._now_ms).run()
        return rows

    async def write(self, *statements: Statement) -> list[int]:
        return await self._store.write(*statements)

    async def migrate(self) -> int:
        return await self._store.migrate()

    async def close(self) -> None:
        await self._store.close()


async def retained(archive: Archive, moment: int) -> tuple[str, list[Past], int, Retained]:
    """Fill a store in which what is older than a moment goes after some reads: (tenant, past, moment, it)."""
    tenants = [archive.tenant(), archive.tenant()]
    for tenant in tenants:
        await archive.store.write(insert_tenant(Tenant(id=tenant, name="t"), 0))
    # Two tenants in turn: no chunk is without gaps.
    made = Made(customer_id="b", ip="192.0.2.1", score=50, waited_ms=1000)
    pasts = await archive.live(tenants, [(number % 2, made) for number in range(24)], [23])
    before_ms = START_MS + 11_000
    store = Retained(archive, before_ms + DAY_MS)
    store.reads_before = moment
    return tenants[0], pasts[0], before_ms, store


@pytest.mark.parametrize(
    "wanted",
    [{"min_score": 50}, {"customer": "b"}, {"search": "b"}, {"from_ms": START_MS + 12_500}],
)
def test_a_list_is_true_when_retention_removes_its_chunks_meanwhile(archive: Archive, wanted: Asked) -> None:
    async def scene() -> None:
        moment, was_retained = 0, True
        while was_retained:
            moment += 1
            tenant, past, before_ms, store = await retained(archive, moment)
            found = await DecisionFinder(store).find(
                tenant, criteria(**wanted), Order.SCORE, 0, 20, descending=True
            )
            ids = dict(await archive.store.read(Statement("SELECT seq, id FROM decision")))
            asked = [one for one in past if wants(one, wanted)]
            left = {one.id for one in asked if one.evaluated_at_ms >= before_ms}
            told = {ids[seq] for seq in found.seqs if seq in ids}
            assert left <= told <= {one.id for one in asked}, f"retained after read {moment}"
            was_retained = store.reads_before <= 0
        assert moment > 3

    archive.runner.run(scene())


async def test_an_answer_whose_chunks_change_every_time_is_503() -> None:
    begun = 0

    @retry_on_change
    async def read() -> None:
        nonlocal begun
        begun += 1
        raise ChunksChanged

    with pytest.raises(Unavailable):
        await read()
    assert begun > 1


def test_statistics_and_links_are_told_when_retention_removes_their_chunks_meanwhile(
    archive: Archive,
) -> None:
    async def scene() -> None:
        moment, was_retained = 0, True
        span = START_MS + 1, START_MS + 27_001
        while was_retained:
            moment += 1
            was_retained = False
            for what in ("count", "both", "links"):
                tenant, past, before_ms, store = await retained(archive, moment)
                finder = DecisionFinder(store)
                if what == "links":
                    link = (await EntityLinker(store, finder).links(tenant, {"customer": "b"}))["customer"]
                    counted = link.events
                elif what == "both":
                    span_counts, _ = await DecisionCounter(store, finder).both(tenant, *span)
                    counted = span_counts.totals.evaluated
                else:
                    counted = (await DecisionCounter(store, finder).count(tenant, *span)).totals.evaluated
                left = sum(one.evaluated_at_ms >= before_ms for one in past)
                assert left <= counted <= len(past), f"{what}, retained after read {moment}"
                was_retained |= store.reads_before <= 0
        assert moment > 3

    archive.runner.run(scene())


def test_an_erased_customer_is_named_nowhere_and_counted_as_before(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Erase"))
    name, email = "Erika-Mustermann-7", "erika.mustermann@mail.example"
    ids = []
    for number in range(4):
        customer = {
            "externalId": name if number < 3 else "somebody-else",
            "email": email if number < 2 else None,
        }
        body = {
            "eventName": "user.login",
            "sessionId": f"{name}-session" if number < 3 else "s",
            "device": {"externalId": f"phone of {name}" if number < 3 else "d"},
            "customer": {**customer, "metadata": {"surname": "Mustermann"}},
            "metadata": {
                "note": f"call {email.upper()} about {name}" if number < 3 else "",
                "amount": number,
            },
        }
        ids.append(caller.post("/api/v1/events", body).json["eventId"])
    feedback = {"label": "FRAUD", "notes": f"{name} said so", "externalCaseId": f"case-{name}"}
    assert caller.post(f"/api/v1/feedback/event/{ids[0]}", feedback).status == 201
    before = caller.get("/api/v1/events/stats").json
    done = service.cli("customer", "erase", "--tenant", caller.id, "--external-id", name, "--json")
    assert done["events"] == 3
    assert done["pseudonym"].startswith("erased_")
    assert {kept["what"] for kept in done["kept"]} >= {"backups and exported files"}
    assert caller.get("/api/v1/events/stats").json == before
    for table in ("event", "decision", "term", "feedback", "job", "change"):
        mine = f"SELECT * FROM {table} WHERE tenant = '{caller.id}'"
        text = "\n".join(str(row) for row in service.rows(mine)).lower()
        assert name.lower() not in text, table
        assert email not in text, table
        assert "surname" not in text or table != "event" or text.count("surname") == 1
    assert caller.get(f"/api/v1/decisions?customer={name}").json["total"] == 0
    found = caller.get(f"/api/v1/decisions?customer={done['pseudonym']}").json
    assert [one["id"] for one in found["data"]] == ids[2::-1]
    explained = caller.get(f"/api/v1/decisions/{ids[0]}").json
    assert explained["linkedEntities"]["customer"]["id"] == done["pseudonym"]
    assert explained["linkedEntities"]["customer"]["events"] == 3
    assert "erased_" in explained["feedback"][0]["notes"]
    assert caller.get(f"/api/v1/decisions?sessionId={done['pseudonym']}-session").json["total"] == 3
    kept = caller.get(f"/api/v1/events/{ids[3]}").json["customer"]
    assert kept["externalId"] == "somebody-else"


def count_before(caller: Caller, customer: str) -> int:
    """Return how many earlier events the memory knows of the customer of a new one."""
    body = {
        "eventName": "user.login",
        "customer": {"externalId": customer},
        "device": {"fingerprint": f"device of {customer}"},
        "ip": "192.0.2.1",
        "metadata": {"outcome": "failure"},
    }
    event_id = caller.post("/api/v1/events", body).json["eventId"]
    features = caller.get(f"/api/v1/decisions/{event_id}").json["inputs"]["features"]
    count: int = features['count(event.login_failed, by=customer.key, within="15m")']
    return count


def test_the_memory_of_a_running_service_forgets_an_erased_customer(own_service: Service) -> None:
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    assert [count_before(caller, "gone-1") for _ in range(3)] == [0, 1, 2]
    assert [count_before(caller, "stays-1") for _ in range(2)] == [0, 1]
    own_service.stop()
    own_service.start()
    assert list((own_service.data / "memory").glob("*.memory"))
    done = own_service.cli("customer", "erase", "--tenant", caller.id, "--external-id", "gone-1", "--json")
    asked = itertools.count()  # Asking is an event, too.
    own_service.wait_for(lambda: count_before(caller, done["pseudonym"]) >= next(asked) + 3, 30)
    assert count_before(caller, "gone-1") == 0
    assert count_before(caller, "stays-1") == 2
    assert not list((own_service.data / "memory").glob("*.memory"))


ERASED = st.sampled_from(["a", "b", "Ab1", "x@mail.example", "4711", "b"])


@settings(max_examples=60, deadline=None)
@given(LIVED, SEALS, WANTED, SEARCHES, ERASED, st.sampled_from(Order))
def test_lists_and_links_are_true_to_what_an_erasure_leaves(
    archive: Archive, lived, seals, wanted, search, external_id, order
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    async def scene() -> None:
        pasts = await archive.live(tenants, lived, seals)
        before = [(await archive.counter.both(tenant, None, None))[1] for tenant in tenants]
        done = await Eraser(archive.store, b"s" * 32, START_MS).erase(tenants[0], external_id)
        for tenant in tenants:
            archive.finder.forget(tenant)
        left = erased(pasts[0], external_id, tenants[0])
        assert done.events == sum(one is not other for one, other in zip(pasts[0], left, strict=True))
        for tenant, past in zip(tenants, (left, pasts[1]), strict=True):
            for found in (wanted, {"search": search}, {"customer": external_id}):
                ids, total = await listed(archive, tenant, found, order, 9, descending=True)
                assert ids == expected(past, found, order, descending=True)
                assert total == len(ids)
        after = [(await archive.counter.both(tenant, None, None))[1] for tenant in tenants]
        assert after == [uniques_of(past) for past in (left, pasts[1])]
        assert before == [uniques_of(past) for past in pasts]

    archive.runner.run(scene())


def test_an_erasure_reaches_however_many_chunks_there_are(archive: Archive) -> None:
    tenant, count = archive.tenant(), 40 * SEALED
    shared = Made(customer_id="another", email="family@example.com", waited_ms=1000)
    anna = Made(customer_id="anna", email="family@example.com", waited_ms=1000)

    async def scene() -> None:
        made = {0: anna, count - 1: anna, count // 2: shared}
        lived = [(0, made.get(number, Made(customer_id="b", waited_ms=1000))) for number in range(count)]
        (past,) = await archive.live([tenant], lived, [count - 1])
        await Eraser(archive.store, b"s" * 32, START_MS).erase(tenant, "anna")
        archive.finder.forget(tenant)
        for name, places in {"anna": [], "family@example.com": [count // 2]}.items():
            ids, _ = await listed(archive, tenant, {"search": name}, Order.EVALUATED, 9, descending=True)
            assert ids == [past[place].id for place in places], name
        assert (await archive.counter.both(tenant, None, None))[1] == (3, 0)

    archive.runner.run(scene())


class Counting(Retained):
    """A store that counts the statements of its largest commit."""

    largest = 0

    async def write(self, *statements: Statement) -> list[int]:
        self.largest = max(self.largest, len(statements))
        return await super().write(*statements)


def test_an_erasure_of_much_is_of_small_commits(archive: Archive) -> None:
    # Whoever decides meanwhile waits for one of them at a time.
    tenant, count = archive.tenant(), 300

    async def scene() -> None:
        anna = Made(customer_id="anna", waited_ms=1000)
        await archive.live([tenant], [(0, anna)] * count, [count - 1])
        store = Counting(archive, START_MS)
        done = await Eraser(store, b"s" * 32, START_MS).erase(tenant, "anna")
        assert done.events == count
        assert 20 < store.largest <= 40

    archive.runner.run(scene())


def test_an_erasure_is_done_though_retention_removes_chunks_meanwhile(archive: Archive) -> None:
    async def scene() -> None:
        moment, was_retained = 0, True
        while was_retained:
            moment += 1
            tenant, _, _, store = await retained(archive, moment)
            await Eraser(store, b"s" * 32, START_MS).erase(tenant, "b")
            for statement in ("SELECT customer_id FROM decision", "SELECT value FROM term"):
                rows = await archive.store.read(Statement(f"{statement} WHERE tenant = ?", (tenant,)))
                assert "b" not in {row[0] for row in rows}, f"retained after read {moment}"
            was_retained = store.reads_before <= 0
        assert moment > 30

    archive.runner.run(scene())


def uniques_of(past: list[Past]) -> tuple[int, int]:
    customers = {one.made.customer_id or one.made.email for one in past} - {None}
    devices = {one.made.fingerprint or one.made.device_id for one in past} - {None}
    return len(customers), len(devices)


def erased(past: list[Past], external_id: str, tenant: str) -> list[Past]:
    """Rename by hand what an erasure renames: all names in the customer's events, its own in others."""

    def is_same(customer: str | None) -> bool:
        return customer is not None and customer.strip().lower() == external_id.lower()

    seen = {one.made.email for one in past if is_same(one.made.customer_id)} - {None}
    theirs = {one.made.email for one in past if one.made.customer_id and not is_same(one.made.customer_id)}
    called = {email for email in seen if any(one.made.customer_id == email for one in past)}
    own = seen - theirs - called
    pseudonyms = {text: pseudonym(b"s" * 32, tenant, text, START_MS) for text in (external_id, *seen)}
    every = Names(pseudonyms)
    others = Names({text: name for text, name in pseudonyms.items() if text == external_id or text in own})
    fields = ("customer_id", "email", "device_id", "fingerprint", "session_id", "name", "country")
    left = []
    for one in past:
        who = one.made.customer_id if one.made.customer_id is not None else one.made.email
        names = every if who is not None and others.is_name(who) else others
        texts = {name: renamed(getattr(one.made, name), names) for name in fields}
        made = one.made._replace(**texts)
        left.append(one if made == one.made else one._replace(made=made))
    return left


def test_erasing_for_an_unknown_tenant_is_refused(service: Service) -> None:
    done = service.cli("customer", "erase", "--tenant", "ten_x", "--external-id", "c", ok=False)
    assert done.returncode != 0
    assert "there is no tenant" in done.stderr


def test_nobody_is_erased_by_an_empty_id(service: Service) -> None:
    done = service.cli("customer", "erase", "--tenant", service.tenant_id, "--external-id", "", ok=False)
    assert done.returncode != 0
    assert "--external-id is empty" in done.stderr


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Anna Long", "P"),
        (" ANNA LONG ", "P"),
        ("for anna long, today", "for P, today"),
        ("seven", "seven"),
        ("7", "Q"),
        ("17", "17"),
        ({"anna long": ["x", {"y": "7"}]}, {"P": ["x", {"y": "Q"}]}),
        (7, 7),
        (None, None),
    ],
)
def test_names_are_replaced_wherever_they_stand(value: Any, wanted: Any) -> None:
    assert renamed(value, Names({"Anna Long": "P", "7": "Q"})) == wanted


@pytest.mark.parametrize(
    "name", ["straße.müller+shop@bücher.example", "İpek.Öz@mail.example", "Kunde-Ünal-7"]
)
def test_names_are_replaced_in_every_form(name: str) -> None:
    names = Names({name: "P"})
    spelled = {name, name.upper(), name.lower(), name.casefold(), name.title()}
    composed = {
        unicodedata.normalize(kind, one) for one in spelled for kind in ("NFC", "NFD", "NFKC", "NFKD")
    }
    sent = {form for one in composed for form in (quote(one), quote(one, safe=""), json.dumps(one)[1:-1])}
    for form in composed | sent:
        assert names.replaced(form) == "P", form
        assert names.replaced(f"see {form}, today") == "see P, today", form
        assert (
            names.replaced(f"https://x.example/?q={form}&n=%3D{form}#a") == "https://x.example/?q=P&n=%3DP#a"
        ), form


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.nna+news@gmail.com", "anna@gmail.com", "P"),
        ("anna+news@mail.example", "mail of anna@mail.example, her", "mail of P, her"),
        ("anna@bücher.example", "anna@xn--bcher-kva.example", "P"),
        ("c-1001", "c-10012 and abc-1001 and c-1001.", "c-10012 and abc-1001 and P."),
        (
            "anna@mail.example",
            "joanna@mail.example no.anna@mail.example",
            "joanna@mail.example no.anna@mail.example",
        ),
        ("2024", "in 2024 he paid", None),
        ("2024", " 2024 ", "P"),
    ],
)
def test_names_are_replaced_as_whole_words(name: str, text: str, wanted: str | None) -> None:
    assert Names({name: "P"}).replaced(text) == (text if wanted is None else wanted)


@pytest.mark.parametrize("name", ["nobody-x", "payment", "score"])
def test_an_erasure_of_nobody_is_refused(service: Service, name: str) -> None:
    """Words of the rules are no customers."""
    asked = ("customer", "erase", "--tenant", service.tenant_id, "--external-id", name)
    done = service.cli(*asked, ok=False)
    assert done.returncode == 1
    assert f"has a customer {name}; nothing was erased" in done.stderr
    if name == "nobody-x":
        done = service.cli(*asked, "--anywhere", ok=False)
        assert done.returncode == 1
        assert f"nothing of this tenant names {name}" in done.stderr


def test_a_word_of_everybodys_events_is_erased_only_where_that_is_asked_for(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Words"))
    body = {"eventName": "payment.attempt", "customer": {"externalId": "c-7"}}
    event = caller.post("/api/v1/decisions/evaluate", body).json["correlationIds"]["eventId"]
    asked = ("customer", "erase", "--tenant", caller.id, "--external-id", "payment")
    refused = service.cli(*asked, ok=False)
    assert refused.returncode == 1
    assert "--anywhere" in refused.stderr

    def event_name() -> str:
        [[sent]] = service.rows(f"SELECT sent FROM event WHERE id = '{event}'")
        return str(json.loads(sent)["eventName"])

    assert event_name() == "payment.attempt"
    said = service.cli(*asked, "--anywhere", "--json")
    assert event_name() == f"{said['pseudonym']}.attempt"
    event = caller.post("/api/v1/decisions/evaluate", body).json["correlationIds"]["eventId"]
    assert "--anywhere" in service.cli(*asked, ok=False).stderr, "the word is still nobody's"
    assert event_name() == "payment.attempt"


@pytest.mark.parametrize("named", ["event", "address", "AML event", "list"])
def test_a_customer_is_known_by_whatever_names_one(service: Service, named: str) -> None:
    caller = Caller(service, *service.new_tenant(f"Known by {named}"))
    service.cli("tenant", "set", caller.id, "--aml", "on")
    name = "Known@Mail.example" if named in ("address", "list") else "Known-77"
    event = {"eventName": "user.login", "externalEventId": "e-1"}
    if named == "list":
        answer = caller.post(f"/api/v1/lists/customer/{name}", {})
        assert answer.status == 201, answer.body
    elif named == "AML event":
        sent = {**event, "eventCategory": "TRANSACTION", "customer": {"externalId": name}}
        service.wait_for(lambda: caller.post("/api/v1/aml/events", sent).status == 200, 10)
    else:
        customer = {"email": name} if named == "address" else {"externalId": name}
        assert caller.post("/api/v1/decisions/evaluate", {**event, "customer": customer}).status == 200
    also = ("--also", "lists") if named == "list" else ()
    done = service.cli(
        "customer", "erase", "--tenant", caller.id, "--external-id", name.lower(), *also, ok=False
    )
    assert done.returncode == 0, done.stderr


def test_every_form_of_a_customers_names_is_gone_from_every_row(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Forms"))
    name, email = "İpek-Straße-77", "straße.müller+shop@bücher.example"
    planted = {
        name,
        email,
        email.replace("+shop", ""),
        email.upper(),
        quote(email),
        unicodedata.normalize("NFD", email),
    }
    body = {
        "eventName": "user.login",
        "customer": {"externalId": name, "email": email},
        "metadata": {f"k{number}": f"see {form}!" for number, form in enumerate(sorted(planted))},
    }
    event = caller.post("/api/v1/decisions/evaluate", body).json["correlationIds"]["eventId"]
    notes = " / ".join(sorted(planted))
    assert caller.post(f"/api/v1/feedback/event/{event}", {"label": "FRAUD", "notes": notes}).status == 201
    headers = {"X-Request-Id": "for-" + quote(email.upper(), safe="")}
    job = caller.post("/api/v1/events/async", body, headers=headers)
    assert job.status == 202
    service.wait_for(lambda: caller.get("/api/v1/events").json["total"] == 2)
    service.cli("customer", "erase", "--tenant", caller.id, "--external-id", name, "--json")
    traces = ("müller", "muller", "m%c3%bcller", "m\\u00fcller", "stra", "pek-")
    for table in ("event", "decision", "term", "feedback", "job", "change", "aml_subject"):
        for row in service.rows(f"SELECT * FROM {table} WHERE tenant = '{caller.id}'"):
            for value in row:
                text = bytes(value).decode() if isinstance(value, bytes | memoryview) else str(value)
                said = unicodedata.normalize("NFC", text).casefold()
                assert not [trace for trace in traces if trace in said], (table, text)


def test_pseudonyms_depend_on_the_secret_the_tenant_and_the_moment() -> None:
    made = {
        pseudonym(secret, tenant, "c", moment)
        for secret in (b"a" * 32, b"b" * 32)
        for tenant in ("ten_a", "ten_b")
        for moment in (1, 2)
    }
    assert len(made) == 8


async def test_retention_lets_no_number_of_a_delivery_be_given_again(tmp_path: Path) -> None:
    def delivery(number: int) -> Statement:
        return Statement(
            "INSERT INTO delivery (id, tenant, subscription, type, subject, created_at_ms, state, due_at_ms, "
            "body, settled_at_ms) VALUES (?, 't', 's', 'x', 'y', 0, 'delivered', 0, x'7b7d', 0)",
            (f"whk_{number}",),
        )

    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        await store.write(*map(delivery, range(3)))
        read_through = (await store.read(select_last_delivery()))[0][0]
        retainer = Retainer(store, Policy(), lambda: 9_999 * DAY_MS)
        assert (await retainer.run(dry_run=True))["deliveries"] == 2
        assert (await retainer.run())["deliveries"] == 2
        await store.write(delivery(3))
        assert len(await store.read(select_feed(read_through, 10))) == 1


def test_retention_runs_from_the_command_line(own_service: Service, tmp_path: Path) -> None:
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    quiet = Caller(own_service, *own_service.new_tenant("Has not come back"))
    assert quiet.post("/api/v1/events", {"eventName": "e"}).status == 201
    for _ in range(3):
        assert caller.post("/api/v1/events/async", {"eventName": "e"}).status == 202
    own_service.wait_for(lambda: caller.get("/api/v1/events").json["total"] == 3)
    own_service.rows("UPDATE job SET settled_at_ms = 1 WHERE seq < 3")
    own_service.rows("UPDATE decision SET evaluated_at_ms = 1 WHERE seq < 4")
    own_service.env["VETTANCE_KEEP_EVENTS"] = "365"
    dry = own_service.cli("retention", "run", "--dry-run", "--json")
    assert {name: count for name, count in dry["removed"].items() if count} == {"events": 3, "jobs": 2}
    assert caller.get("/api/v1/events").json["total"] == 3
    assert own_service.cli("retention", "run", "--json")["removed"] == dry["removed"]
    assert [who.get("/api/v1/events").json["total"] for who in (caller, quiet)] == [1, 0]
    assert json.loads(caller.get("/api/v1/events/stats").body)["totalEvents"] == 3
