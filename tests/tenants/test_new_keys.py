"""A key that was made a moment ago works at once; strangers who guess cannot make the store busy."""

import asyncio
from pathlib import Path

from tests.live import Service, run_cli
from vettance.db.sqlite import SqliteStore
from vettance.tenants import sql
from vettance.tenants.key_use import record_use
from vettance.tenants.keyring import KeyRing
from vettance.tenants.new_keys import LOOKS_PER_S, WAITING_MAX, NewKeys, load_keys
from vettance.tenants.tenant import Key, Tenant, key_digest, key_hint, make_key

PEPPER = b"p" * 32


async def _store_with_key(tmp_path: Path, text: str) -> SqliteStore:
    store = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await store.migrate()
    made = Key(
        id="key_1", tenant="ten_1", digest=key_digest(PEPPER, text), hint=key_hint(text), created_at_ms=1
    )
    await store.write(sql.insert_tenant(Tenant(id="ten_1", name="Shop"), 1), sql.insert_key(made))
    return store


def test_a_key_works_in_the_moment_it_was_made(service: Service) -> None:
    for _ in range(3):
        tenant = run_cli(service.data, "tenant", "create", "New", "--json")["tenantId"]
        key = run_cli(service.data, "key", "create", "--tenant", tenant, "--json")["apiKey"]
        answer = service.call("POST", "/api/v1/decisions/evaluate", {"eventName": "user.login"}, key=key)
        assert answer.status == 200, answer.body


async def test_a_key_in_the_store_is_learned_and_others_are_not(tmp_path: Path) -> None:
    text = make_key(live=False)
    learned: list[str] = []

    async def learn(tenant: str) -> None:
        learned.append(tenant)

    async with await _store_with_key(tmp_path, text) as store:
        keys = NewKeys(store, PEPPER, KeyRing(PEPPER), learn)
        assert await keys.find(text)
        assert not await keys.find(make_key(live=False))
        assert not await keys.find("vtc_test_nonsense")
        await store.write(sql.revoke_key("key_1", 2))
        assert not await keys.find(text)
    assert learned == ["ten_1"]


async def test_guesses_cost_the_store_no_more_than_so_many_questions_a_second(tmp_path: Path) -> None:
    text = make_key(live=False)
    now_s = [100.0]

    async def learn(_tenant: str) -> None:
        pass

    async with await _store_with_key(tmp_path, text) as store:
        keys = NewKeys(store, PEPPER, KeyRing(PEPPER), learn, lambda: now_s[0])
        found = [await keys.find(text) for _ in range(LOOKS_PER_S + 5)]
        assert found == [True] * LOOKS_PER_S + [False] * 5
        now_s[0] += 1
        assert sum(await asyncio.gather(*(keys.find(text) for _ in range(LOOKS_PER_S)))) == WAITING_MAX


async def test_the_last_use_of_a_key_is_written_down(tmp_path: Path) -> None:
    text = make_key(live=False)
    async with await _store_with_key(tmp_path, text) as store:
        ring = KeyRing(PEPPER)
        await load_keys(store, ring)
        assert ring.find(text) is not None
        await record_use(store, ring)
        (row,) = await store.read(sql.select_keys_of("ten_1"))
        assert sql.key_of(row).last_used_at_ms is not None
        assert ring.take_used() == set()
