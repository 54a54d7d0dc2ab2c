"""A whole service in this process, on a store with a history, and requests that go through every hot path."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import vettance.watchlists
from bench.store.grown_rows import BUSY, Setting
from tests.webhooks.sink import Sink, sinking
from vettance.aml.screening.sql import select_recent
from vettance.db.engine import Store
from vettance.decisions.sql import select_newest_sent
from vettance.deployment.connect import connect_store
from vettance.history.compaction import Compactor
from vettance.history.entity_graph import EntityNode
from vettance.history.entity_neighbours import EntityNeighbours
from vettance.learning import alert_sql
from vettance.lists import sql as lists_sql
from vettance.lists.entry import EntryType
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, save_setting
from vettance.outbox import MessageType
from vettance.reviews.review import ReviewOutcome, Settlement
from vettance.rules.packs import load_pack_text
from vettance.rules.sql import DECIDING
from vettance.server.application import Service
from vettance.server.indexer import Indexer
from vettance.settings.settings import ProcessRole, Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.key_use import record_use
from vettance.tenants.tenant import Key, Tenant, key_digest, key_hint, make_key
from vettance.tenants.vault import Vault
from vettance.watchlists.refresh import IndexKeeper, import_list
from vettance.watchlists.tenant_index import list_set_id
from vettance.webhooks import delivery_queue
from vettance.webhooks import sql as webhooks_sql
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.webhook import Subscription, make_secret
from vettance.websdk.sql import select_batches_of

#: Tenants of a store. The first is asked; the others have as much, which nobody must read.
TENANTS: Final = 3
#: How often everything is asked. PostgreSQL plans a prepared statement anew for each of its first five runs.
ROUNDS: Final = 7
SECRET: Final = b"s" * 32
SAMPLE: Final = Path(vettance.watchlists.__file__).parent / "sample" / "sample.csv"
LISTED: Final = "Sergei Viktorovich Lavrov"
#: Decisions in a chunk of the history: all of them stand in one before anything is measured.
CHUNK: Final = 1_000
#: Longer than the history.
KEEP_MS: Final = 1_000 * 86_400_000
_API: Final = "/api/v1"

Fill = Callable[[list[Setting]], Awaitable[None]]


class Grown:
    """A running service, and its first tenant's key."""

    def __init__(self, service: Service, key: str, sink: Sink, deliverer: Deliverer) -> None:
        self.service = service
        self.deliverer = deliverer
        self.key = key
        self.sink = sink

    async def call(
        self, method: str, path: str, body: Any = None, *, expect: int = 200, **headers: str
    ) -> Any:
        """Send a request into the service and return the JSON of its answer."""
        path, _, query = path.partition("?")
        names = headers or {"x-api-key": self.key, "content-type": "application/json"}
        sent = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in names.items()]
        content = json.dumps(body).encode() if body is not None else b""
        if body is not None:
            sent.append((b"content-length", b"%d" % len(content)))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": sent,
            "client": ("127.0.0.1", 1),
        }
        answers: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            answers.append(message)

        await self.service.edge(scope, receive, send)
        text = b"".join(one.get("body", b"") for one in answers[1:])
        assert answers[0]["status"] == expect, f"{method} {path}: {answers[0]['status']} {text!r}"
        return json.loads(text) if text else None

    async def post(self, path: str, body: Any, expect: int = 200, **headers: str) -> Any:
        keyed = {"x_api_key": self.key, "content_type": "application/json", **headers} if headers else {}
        return await self.call("POST", path, body, expect=expect, **keyed)

    async def get(self, path: str) -> Any:
        return await self.call("GET", path)


#: A rule of the tenants' own, which puts the device of each round on a list.
_LISTING = """
  - id: listed-by-rule
    name: Listed by rule
    when: event.name == 'user.login'
    score: 1
    reason: LISTED_BY_RULE
    explanation: The rounds of this test are listed.
    adds: {list: block, type: DEVICE, for: 1d}
"""


async def _found_tenants(store: Store) -> tuple[list[str], str]:
    """Make the tenants, with the AML product, and a key of the first."""
    now_ms = time.time_ns() // 1_000_000
    names = [f"ten_{number:032x}" for number in range(1, TENANTS + 1)]
    for name in names:
        tenant = Tenant(
            id=name,
            name=name,
            aml=True,
            review_denied=True,
            review_checks=100,
            throttle=1_000_000,
            quota=100_000_000,
        )
        rules = DECIDING.insert(name, 1, load_pack_text("fraud") + _LISTING, "A pack.", now_ms)
        # With the first label a service begins to record features, once, and makes the memory anew for that.
        model = save_setting(ModelSetting(name, ModelMode.OFF))
        await store.write(tenants_sql.insert_tenant(tenant, now_ms), rules, model)
    text = make_key(live=False)
    digest = key_digest(SECRET, text)
    key = Key(id="key_" + "1" * 32, tenant=names[0], digest=digest, hint=key_hint(text), created_at_ms=1)
    await store.write(tenants_sql.insert_key(key))
    return names, text


async def _subscribe(store: Store, tenant: str, url: str) -> str:
    """Subscribe a tenant to everything."""
    made = Subscription(
        id=f"whs_{tenant[4:]}",
        tenant=tenant,
        slot="0000",
        url=url,
        event_types=tuple(MessageType),
        created_at_ms=1,
        updated_at_ms=1,
    )
    sealed = webhooks_sql.seal(Vault(SECRET), make_secret(), tenant, made.id)
    await store.write(*webhooks_sql.insert_subscription(made, sealed))
    return made.id


async def _list_of(store: Store, data: Path) -> tuple[str, str]:
    """Import the sample list; returns the set of versions that subjects stand under, and an entity of it."""
    await import_list(store, data, "sample", [SAMPLE], time.time_ns() // 1_000_000)
    keeper = IndexKeeper(store, data)
    await keeper.reload()
    reach = await keeper.reach("*")
    assert reach is not None
    from vettance.watchlists.match import Subject

    return list_set_id(reach.versions), reach.search(Subject(name=LISTED))[0].entity.id


@contextlib.asynccontextmanager
async def grown_service(
    data: Path, database_url: str | None, fill: Fill, count: Callable[[], Awaitable[None]]
) -> AsyncIterator[Grown]:
    """Make a store, fill it, have it counted, and run a service with all its background work on it."""
    settings = Settings(
        data=data,
        database_url=database_url,
        secret=SECRET,
        role=ProcessRole.WEB,
        unsafe_webhooks=True,
        searchers=0,
    )
    store = await connect_store(settings, writer="thread")
    with sinking() as sink:
        await store.migrate()
        names, key = await _found_tenants(store)
        list_set, entity = await _list_of(store, data)
        now_ms = time.time_ns() // 1_000_000
        await fill(
            [
                Setting(name, place, await _subscribe(store, name, sink.url), list_set, entity, now_ms)
                for place, name in enumerate(names)
            ]
        )
        await store.close()
        store = await connect_store(settings, writer="thread")
        compactor = Compactor(store)
        for name in names:
            while await compactor.compact(name, CHUNK):
                pass
        await count()
        service = Service(settings, store)
        await service.start()
        postman = WebhookClient(unsafe=True)
        deliverer = Deliverer(store, postman, Vault(SECRET), alone=database_url is None, keep_ms=KEEP_MS)
        tasks = [asyncio.create_task(service._do_duties()), asyncio.create_task(deliverer.run())]
        # In this process, so that its statements are seen.
        tasks.append(asyncio.create_task(Indexer(settings, store, service.meters).run()))
        try:
            yield Grown(service, key, sink, deliverer)
            deliverer.stop()
            await asyncio.wait_for(tasks[1], 20)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await postman.close()
            await service.stop()


async def look_around(one: Grown) -> None:
    """Do once what the background does by the clock."""
    service = one.service
    tenant = f"ten_{1:032x}"
    await service.rescreener.catch_up()
    compactor = Compactor(service.store)
    await compactor._look()
    assert await compactor._count_open(tenant)
    assert await compactor._look() == []
    await compactor.compact(tenant, CHUNK)
    await one.deliverer._sweep()
    await record_use(service.store, service.keys)
    # What several deliverers look for, and what statistics ask once a minute.
    await service.store.read(delivery_queue.select_lease_owners())
    await service.store.write(delivery_queue.release_of(1))
    await service.store.read(select_newest_sent(tenant, 50, 10_000))
    await one.call("GET", f"{_API}/lists", expect=401, x_api_key=make_key(live=False))
    await service.tally.save()
    await service.measurer(service.settings.data).text()


async def go_through(one: Grown, number: int) -> None:
    """Ask for everything once; `number` sets the names of this round apart from those of others."""
    event = {
        "eventName": "user.login",
        "customer": {"externalId": f"customer-{number}", "email": f"c{number}@mail.example"},
        "device": {"fingerprint": f"fp-{number}"},
        "ip": "198.51.100.7",
        "sessionId": f"session-{number}",
    }
    await _decide(one, event, number)
    await _look(one, number)
    await _listen(one, number)
    await _list(one, event, number)
    await _quality(one)
    await _watch(one, number)
    await _screen(one, number)
    await _work_on_cases(one, number)


async def _decide(one: Grown, event: dict[str, Any], number: int) -> None:
    decided = await one.post(f"{_API}/decisions/evaluate", event)
    event_id = decided["correlationIds"]["eventId"]
    await one.post(f"{_API}/events", event, 201)
    again = {"idempotency_key": f"round-{number}"}
    await one.post(f"{_API}/events", event, 201, **again)
    await one.post(f"{_API}/events", event, 201, **again)
    job = (await one.post(f"{_API}/events/async", event, 202))["jobId"]
    for _ in range(500):
        if (await one.get(f"{_API}/events/jobs/{job}"))["status"] == "completed":
            break
        await asyncio.sleep(0.01)
    await one.post(f"{_API}/feedback/decision/{event_id}", {"label": "FRAUD"}, 201)
    await one.post(
        f"{_API}/feedback/event/{event_id}", {"label": "FRAUD"}, 201, idempotency_key=f"f-{number}"
    )
    await one.get(f"{_API}/decisions/{event_id}")
    await one.get(f"{_API}/events/{event_id}")
    token = await one.post(f"{_API}/websdk/tokens", {"sdkSessionId": f"s-{number}"}, 201)
    bearer = {"authorization": f"Bearer {token['token']}", "content_type": "application/json"}
    batch = {
        "schemaVersion": "websdk.v1",
        "batchId": "b",
        "sentAt": time.time_ns() // 1_000_000,
        "sdkSessionId": f"s-{number}",
        "signals": {"mouseMoves": 3},
    }
    await one.call("POST", f"{_API}/websdk/signals", batch, expect=202, **bearer)
    await one.call("POST", f"{_API}/websdk/signals", batch, expect=202, **bearer)
    await one.call("POST", f"{_API}/websdk/signals", batch | {"sentAt": 1}, expect=202, **bearer)
    await one.call("POST", f"{_API}/collect", {"sessionId": f"s-{number}", "category": "OTHER"}, **bearer)


async def _look(one: Grown, number: int) -> None:
    """Read what pages of the console read beside the endpoints."""
    tenant, store, now_ms = f"ten_{1:032x}", one.service.store, time.time_ns() // 1_000_000
    neighbours = EntityNeighbours(store, one.service.finder)
    await neighbours.around(tenant, EntityNode("customer", f"customer-{number}"))
    await store.read(select_batches_of(tenant, f"s-{number}"))
    await store.read(select_recent(tenant, 20))
    await store.read(alert_sql.select_unordered(tenant, 20))
    await store.read(alert_sql.select_customer_past(tenant, BUSY, "alr_g", 20))
    await store.read(alert_sql.select_ends(tenant))
    await store.write(alert_sql.set_priority(tenant, "alr_1", 500))
    await store.read(webhooks_sql.select_deliveries_about(tenant, "evt_1", now_ms - 60_000, now_ms))


async def _listen(one: Grown, number: int) -> None:
    root = f"{_API}/webhooks/subscriptions"
    made = await one.post(root, {"url": one.sink.url, "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}, 201)
    mine = next(found["id"] for found in (await one.get(root))["subscriptions"] if found["id"] != made["id"])
    await one.get(f"{root}/{mine}")
    page = await one.get(f"{root}/{mine}/deliveries?limit=2")
    await one.post(f"{_API}/webhooks/deliveries/{page['data'][0]['id']}/replay", {})
    await one.post(f"{root}/{made['id']}/test", {})
    for phase in ("prepare", "promote"):
        await one.post(f"{root}/{made['id']}/rotate-secret", {"phase": phase})
    await one.call("DELETE", f"{root}/{made['id']}")


async def _list(one: Grown, event: dict[str, Any], number: int) -> None:
    entry = {"type": "EMAIL", "value": f"listed-{number}@mail.example", "listType": "block"}
    made = await one.post(f"{_API}/lists", entry, 201)
    await one.post(f"{_API}/lists", entry, 409)
    await one.get(f"{_API}/lists?limit=2")
    [row] = await one.service.store.read(
        lists_sql.select_by_value(
            f"ten_{1:032x}", EntryType.EMAIL, entry["value"], time.time_ns() // 1_000_000
        )
    )
    await one.service.store.write(lists_sql.extend_entry(lists_sql.entry_of(row)))
    blocked = await one.post(f"{_API}/decisions/evaluate", event | {"customer": {"email": entry["value"]}})
    await _review(one, blocked["correlationIds"]["eventId"])
    await one.call("DELETE", f"{_API}/lists/{made['id']}")
    await one.post(f"{_API}/lists/ip", {"ip": f"192.0.2.{number}"}, 201)
    await one.call("DELETE", f"{_API}/lists/ip/192.0.2.{number}")


async def _review(one: Grown, decision: str) -> None:
    """Go through a review: taken, settled, taken back, settled again, made final, looked at once more."""
    tenant, desk, service = one.service.keys.tenant(f"ten_{1:032x}"), one.service.reviews.desk, one.service
    assert tenant is not None
    await one.get(f"{_API}/reviews?limit=2")
    await one.get(f"{_API}/reviews?limit=2&state=open&sortBy=age")
    await one.get(f"{_API}/reviews/{decision}")
    await service.explainer.find_by_ids(tenant.id, [decision])
    await desk.find_several(tenant.id, [decision])
    await desk.states(tenant.id)
    await desk.ages(tenant.id)
    assert await desk.take_next(tenant.id, "usr_1") is not None
    assert await desk.take_next("ten_without_reviews", "usr_1") is None
    await desk.release(tenant.id, "usr_1")
    await desk.assign(tenant.id, decision, "usr_1")
    await desk.held(tenant.id, "usr_1")
    said = Settlement(outcome=ReviewOutcome.DENY)
    await desk.settle(tenant, decision, said, "usr_1", held=True)
    await desk.undo(tenant.id, decision, "usr_1")
    settled = await desk.settle(tenant, decision, said, "usr_1")
    await desk.finish(settled, 100)
    await service.reviews.keeper.look(expiring=True)
    assert await desk.checks(tenant.id, "usr_2", 2)
    await desk.check(tenant.id, decision, ReviewOutcome.DENY, "usr_2")
    assert (await desk.find(tenant.id, decision)).checked_by == "usr_2"


async def _quality(one: Grown) -> None:
    """Count what is new, and ask what the rules are worth."""
    tenant = f"ten_{1:032x}"
    for quality in one.service.measures.quality:
        await quality.counter.catch_up(tenant)
        await quality.desk.report(tenant, None, None)
        await quality.desk.report_rule(tenant, "new-device")
        await quality.desk.outline(tenant)
        await quality.desk.days(tenant, ("hits", "shadow"), 0, 86_400_000)


async def _watch(one: Grown, number: int) -> None:
    def sent(name: str, customer: str, **metadata: Any) -> dict[str, Any]:
        return {
            "eventName": "transfer.sent",
            "externalEventId": f"{name}-{number}",
            "customer": {"externalId": customer},
            "metadata": {"amount": 12, "direction": "out", **metadata},
        }

    path = f"{_API}/aml/events"
    await one.post(path, sent("plain", f"customer-{number}"))
    await one.post(path, sent("plain", f"customer-{number}"))
    await one.post(path, sent("plain", f"customer-{number}", amount=13), 409)
    risky = {"amount": 12_000, "counterpartyCountry": "KP"}
    await one.post(path, sent("risky", f"new-{number}", **risky))
    await one.post(path, sent("again", f"new-{number}", **risky))
    await one.post(path, sent("mixed", f"mixed-{number}", **risky))
    await one.post(path, sent("busy", BUSY, **risky))
    await one.get(f"{path}/plain-{number}")
    young = {"accountOpenedAt": time.time() - 432_000}
    for giver, amount in (("x", 400), ("z", 300), ("y", 800)):
        begun = sent(
            f"begun-{giver}", f"young-{number}", **young, amount=amount, counterpartyId=f"{giver}-{number}"
        )
        begun["metadata"]["direction"] = "in"
        low = await one.post(path, begun)
    raised = await one.post(path, sent("raised", f"young-{number}", **young, amount=1400, channel="atm"))
    assert [alert["severity"] for alert in low["alerts"]] == ["LOW"], low
    assert [alert["id"] for alert in low["alerts"]] == [alert["id"] for alert in raised["alerts"]], raised


async def _screen(one: Grown, number: int) -> None:
    path = f"{_API}/aml/screen"
    await one.post(path, {"inputName": "Wilhelmina Oakes", "externalId": f"clear-{number}"})
    found = await one.post(path, {"inputName": LISTED, "externalId": f"found-{number}"})
    assert found["decision"] != "AUTO_CLEAR", found
    await one.post(path, {"inputName": LISTED, "externalId": f"found-{number}"})
    await one.post(path, {"inputName": LISTED, "externalId": BUSY})
    await one.get(f"{_API}/aml/screenings/{found['id']}")
    other = await one.post(path, {"inputName": LISTED, "externalId": f"mixed-{number}"})
    match = other["matches"][0]["watchlistEntityId"]
    dismissal = {"watchlistEntityId": match, "notes": "Another person."}
    await one.post(f"{_API}/aml/screenings/{other['id']}/dismiss", dismissal)


async def _work_on_cases(one: Grown, number: int) -> None:
    for query in ("", "state=OPEN", "severity=LOW", "customer=new-1", "ruleId=none", "typology=NONE"):
        await one.get(f"{_API}/aml/alerts?limit=2&{query}")
        await one.get(f"{_API}/aml/alerts?limit=2&sortBy=priority&{query}")
    for query in ("", "state=PENDING", "severity=LOW", "customer=new-1", "assignee=bo"):
        await one.get(f"{_API}/aml/cases?limit=2&{query}")
    if number > 1:  # Its answer is kept for some seconds: not from before anything is counted.
        await one.get(f"{_API}/aml/coverage")
    case = (await one.get(f"{_API}/aml/cases?customer=new-{number}"))["data"][0]
    path = f"{_API}/aml/cases/{case['id']}"
    await one.post(f"{path}/assign", {"assignee": "ann"})
    await one.post(f"{path}/notes", {"notes": "Looked at."})
    await one.get(path)
    await one.post(f"{path}/reject", {"notes": "No."}, 409)
    await one.post(f"{path}/resolve", {"resolution": "FALSE_POSITIVE"})
    screened = (await one.get(f"{_API}/aml/cases?customer=found-{number}"))["data"][0]["id"]
    await one.post(f"{_API}/aml/cases/{screened}/resolve", {"resolution": "FALSE_POSITIVE"})
    await one.post(f"{_API}/aml/screen", {"inputName": LISTED, "externalId": f"found-{number}"})
