"""A store knows its secret: whoever comes with another one is refused before anything is made of it."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.databases import absence, database
from tests.forked_commands import run_command
from tests.live import run_cli
from vettance.db.engine import Store
from vettance.deployment.connect import connect_store
from vettance.settings.settings import Settings, SettingsError
from vettance.tenants import sql
from vettance.tenants.keyring import KeyRing
from vettance.tenants.tenant import Key, Tenant, key_digest, make_key
from vettance.tenants.vault import Vault, secret_digest
from vettance.webhooks import sql as webhooks_sql
from vettance.webhooks.secret_check import prove_secret, record_when_proven
from vettance.webhooks.webhook import MessageType, Subscription, make_secret

RIGHT, WRONG = b"r" * 32, b"w" * 32
TENANT = Tenant(id="ten_" + "1" * 32, name="Shop")
NO_POSTGRES = pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=NO_POSTGRES)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    if request.param == "sqlite":
        yield Settings(data=tmp_path)
    else:
        with database() as url:
            yield Settings(data=tmp_path, database_url=url)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    store = await connect_store(settings, writer="thread")
    try:
        await store.migrate()
        yield store
    finally:
        await store.close()


def with_secret(settings: Settings, secret: bytes) -> Settings:
    return Settings(data=settings.data, database_url=settings.database_url, secret=secret)


async def make(store: Store, secret: bytes) -> tuple[Key, str]:
    """Make a tenant with a key as earlier versions did, which noted no digest of the secret."""
    text = make_key(live=False)
    key = Key(id="key_1", tenant=TENANT.id, digest=key_digest(secret, text), hint="…", created_at_ms=1)
    await store.write(sql.insert_tenant(TENANT, 1), sql.insert_key(key))
    return key, text


async def known(store: Store) -> list[str]:
    return [row[0] for row in await store.read(sql.select_secret_digest())]


async def test_the_first_secret_is_known_from_then_on_and_another_is_refused(settings: Settings) -> None:
    async with opened(settings) as store:
        assert await prove_secret(store, with_secret(settings, RIGHT)) == RIGHT
        assert await known(store) == [secret_digest(RIGHT)]
        assert await prove_secret(store, with_secret(settings, RIGHT)) == RIGHT
        with pytest.raises(SettingsError, match="VETTANCE_SECRET is not the secret that this store"):
            await prove_secret(store, with_secret(settings, WRONG))
        assert await known(store) == [secret_digest(RIGHT)]


async def test_no_secret_is_made_where_one_is_gone(settings: Settings) -> None:
    async with opened(settings) as store:
        await prove_secret(store, settings)
        file = settings.data / "secret.key"
        kept = file.read_text()
        file.unlink()
        with pytest.raises(SettingsError, match=r"secret\.key is gone"):
            await prove_secret(store, settings)
        assert not file.exists()
        file.write_text(kept)
        await prove_secret(store, settings)


async def test_a_wrong_secret_that_comes_first_to_an_upgraded_store_is_refused(settings: Settings) -> None:
    made = Subscription(
        id="whs_1",
        tenant=TENANT.id,
        slot="0001",
        url="https://shop.example/hook",
        event_types=tuple(MessageType),
        created_at_ms=1,
        updated_at_ms=1,
    )
    async with opened(settings) as store:
        await make(store, RIGHT)
        sealed = webhooks_sql.seal(Vault(RIGHT), make_secret(), TENANT.id, made.id)
        await store.write(*webhooks_sql.insert_subscription(made, sealed))
        with pytest.raises(SettingsError, match="is not the secret"):
            await prove_secret(store, with_secret(settings, WRONG))
        assert await known(store) == []
        await prove_secret(store, with_secret(settings, RIGHT))
        assert await known(store) == [secret_digest(RIGHT)]


async def test_a_store_with_keys_alone_knows_its_secret_once_a_key_was_used(settings: Settings) -> None:
    async with opened(settings) as store:
        key, text = await make(store, RIGHT)
        with pytest.raises(SettingsError, match=r"secret\.key is gone"):
            await prove_secret(store, settings)
        for secret in (WRONG, RIGHT):
            assert await prove_secret(store, with_secret(settings, secret)) == secret
            assert await known(store) == []
        wrong, right = KeyRing(WRONG), KeyRing(RIGHT)
        for ring in (wrong, right):
            ring.replace([TENANT], [key])
        assert wrong.find(text) is None
        assert right.find(text) is not None
        in_vain = asyncio.create_task(record_when_proven(store, WRONG, wrong))
        async with asyncio.timeout(10):
            await record_when_proven(store, RIGHT, right)
            await in_vain
        assert await known(store) == [secret_digest(RIGHT)]


def env_of(settings: Settings, secret: bytes | None) -> dict[str, str]:
    env = {} if settings.database_url is None else {"VETTANCE_DATABASE_URL": settings.database_url}
    return env if secret is None else {**env, "VETTANCE_SECRET": secret.hex()}


def test_serve_and_commands_refuse_another_secret_in_one_line_until_it_is_taken(settings: Settings) -> None:
    data, right, wrong = settings.data, env_of(settings, RIGHT), env_of(settings, WRONG)
    tenant = run_cli(data, "tenant", "create", "Shop", "--json", env=right)["tenantId"]
    key = run_cli(data, "key", "create", "--tenant", tenant, "--json", env=right)["keyId"]
    for arguments in (
        ("serve", "--port", "0"),
        ("key", "create", "--tenant", tenant),
        ("key", "rotate", key),
        ("customer", "erase", "--tenant", tenant, "--external-id", "c-1"),
    ):
        assert refusal(data, wrong, *arguments).startswith("Error: VETTANCE_SECRET is not the secret that")
    assert "secret.key is gone" in refusal(data, env_of(settings, None), "serve", "--port", "0")
    assert not (data / "secret.key").exists()
    run_cli(data, "key", "create", "--tenant", tenant, "--other-secret", "--json", env=wrong)
    run_cli(data, "key", "create", "--tenant", tenant, "--json", env=wrong)
    assert "is not the secret" in refusal(data, right, "serve", "--port", "0")


def refusal(data: Path, env: dict[str, str], *arguments: str) -> str:
    done = run_command((*arguments, "--data", str(data)), {**os.environ, **env}, timeout_s=60)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line
