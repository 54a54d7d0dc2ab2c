"""Prove: see that the secret that is here is the one of this store, before anything is made of it."""

import asyncio
from typing import Final

from vettance.db.engine import Store, StoreDown
from vettance.settings.secret_key import SECRET_FILE, known_secret, load_secret
from vettance.settings.settings import Environment, Settings, SettingsError
from vettance.telemetry.logs import logger
from vettance.tenants import sql
from vettance.tenants.keyring import KeyRing
from vettance.tenants.vault import UnsealFailure, Vault, secret_digest
from vettance.webhooks.sql import select_newest_sealed, unseal

#: How many signing secrets are tried at most; some may have been sealed with a secret that was lost since.
_TRIED_MAX: Final = 1_000
_LOOK_S: Final = 1.0
_LOST: Final = "; if it is lost, `vettance key create --tenant ID --other-secret` goes on with another"

_log = logger()


async def prove_secret(store: Store, settings: Settings) -> bytes:
    """Return the secret of this deployment, which the store knows by a digest from now on if it did not.

    It is made where there is none and nothing hangs on one. A store of an earlier version knows none: a
    secret is taken for its own when it opens a signing secret. Where there are keys only, nobody can tell
    until one of them is used (`record_when_proven`). Raises `SettingsError` for one that is missing or wrong.
    """
    digest = await _digest(store)
    has_keys = bool(await store.read(sql.select_any_key()))
    is_missing = known_secret(settings) is None and settings.environment is not Environment.PRODUCTION
    if is_missing and (digest is not None or has_keys):
        raise SettingsError(_missing_message(settings))
    secret = load_secret(settings)
    if digest is None:
        sealed = await store.read(select_newest_sealed(_TRIED_MAX))
        vault = Vault(secret)
        if sealed and not any(_opens(vault, *row) for row in sealed):
            raise SettingsError(_wrong_message(settings))
        if has_keys and not sealed:
            return secret
        await store.write(sql.keep_secret_digest(secret_digest(secret)))
        digest = await _digest(store)  # Another process may have been first, with another secret.
    if digest != secret_digest(secret):
        raise SettingsError(_wrong_message(settings))
    return secret


async def record_when_proven(store: Store, secret: bytes, keys: KeyRing) -> None:
    """Have a store that knows no secret know this one, once a key has been found with it."""
    while True:
        try:
            if await _digest(store) is not None:
                return
            if keys.is_proven:
                await store.write(sql.keep_secret_digest(secret_digest(secret)))
                _log.info("secret_recorded")
                return
        except StoreDown as error:
            _log.warning("secret_not_recorded", reason=str(error))
        await asyncio.sleep(_LOOK_S)


async def _digest(store: Store) -> str | None:
    rows = await store.read(sql.select_secret_digest())
    return rows[0][0] if rows else None


def _opens(vault: Vault, tenant: str, subscription: str, sealed: bytes) -> bool:
    try:
        unseal(vault, sealed, tenant, subscription)
    except UnsealFailure:
        return False
    return True


def _missing_message(settings: Settings) -> str:
    return (
        f"{settings.data / SECRET_FILE} is gone, and the store was made with it: put the file back, "
        f"or set VETTANCE_SECRET to what stood in it{_LOST}"
    )


def _wrong_message(settings: Settings) -> str:
    where = "VETTANCE_SECRET" if settings.secret is not None else str(settings.data / SECRET_FILE)
    return (
        f"{where} is not the secret that this store was made with, and no API key would work: put the former "
        f"one back (VETTANCE_SECRET, or the file secret.key){_LOST}"
    )
