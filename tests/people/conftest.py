"""A store of each engine, with two tenants and a door to sign in by, whose clock the test moves."""

import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from tests.databases import absence, database, run_beside
from vettance.db import postgres_schema
from vettance.db.engine import Statement, Store
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path
from vettance.ids import IdSource
from vettance.people import password, sql
from vettance.people.credentials import Credentials
from vettance.people.password import hash_password
from vettance.people.role import Role
from vettance.people.session import SessionLife
from vettance.people.sign_in import SignInPaused, SignInRefused, SignIns
from vettance.people.user import LINK_LIFE_MS, UserAccount, new_token, token_digest
from vettance.tenants.sql import insert_tenant, select_tenant
from vettance.tenants.tenant import Tenant

PASSWORD = "correct horse battery"
HOME, AWAY, AGENT = "192.0.2.1", "198.51.100.7", "Test/1"
FIRST, SECOND = "ten_1", "ten_2"


@functools.cache
def hashed() -> str:
    return hash_password(PASSWORD)


class Door:
    """Sign-in on a store, at the moment that `now_ms` says."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_ms = 1_800_000_000_000
        self._ids = IdSource()
        secret = b"s" * 32
        self.sign_ins = SignIns(store, secret, self._ids, SessionLife(), lambda: self.now_ms)
        self.credentials = Credentials(store, secret, self.sign_ins, lambda: self.now_ms)

    async def user(self, email: str, *roles: Role, tenant: str = FIRST, password: bool = True) -> str:
        """Make a user, by default with the password of all tests; returns the id."""
        made = UserAccount(
            id=self._ids.make("usr", self.now_ms),
            email=email,
            name="",
            password=hashed() if password else None,
            created_at_ms=self.now_ms,
            updated_at_ms=self.now_ms,
        )
        given = roles or (Role.VIEWER,)
        await self.store.write(sql.insert_user(made), sql.put_membership(tenant, made.id, given, self.now_ms))
        return made.id

    async def link(self, user_id: str) -> str:
        token = new_token()
        ends_ms = self.now_ms + LINK_LIFE_MS
        await self.store.write(sql.insert_link(token_digest(token), user_id, self.now_ms, ends_ms))
        return token

    async def write(self, *changes: Statement) -> None:
        await self.store.write(*changes)

    async def enters(self, email: str, password: str = PASSWORD, address: str = HOME) -> str:
        """Sign in; returns the cookie."""
        return (await self.sign_ins.sign_in(email, password, address, AGENT)).token

    async def status(self, email: str, password: str = PASSWORD, address: str = HOME) -> int:
        """Try to sign in; returns what it is answered with."""
        try:
            await self.enters(email, password, address)
        except (SignInRefused, SignInPaused) as refusal:
            return refusal.status
        return 200

    async def tries(self, email: str, count: int, address: str = HOME) -> list[int]:
        return [await self.status(email, "wrong password", address) for _ in range(count)]


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as made:
        run_beside(lambda: postgres_schema.migrate(made))
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "postgres":
        async with await PostgresStore.open(request.getfixturevalue("url")) as opened:
            yield opened
        return
    migrate(store_path(tmp_path))
    async with await SqliteStore.open(store_path(tmp_path), writer="thread") as embedded:
        yield embedded


@pytest.fixture
async def door(store: Store, monkeypatch: pytest.MonkeyPatch) -> Door:
    # A sign-in is tried hundreds of times here, and what a try costs is tested where passwords are.
    monkeypatch.setattr(password, "_hasher", lambda: PasswordHasher(1, 64, 1))
    door = Door(store)
    for tenant in (FIRST, SECOND):
        if not await store.read(select_tenant(tenant)):
            await store.write(insert_tenant(Tenant(id=tenant, name=f"Tenant {tenant}"), door.now_ms))
    return door
