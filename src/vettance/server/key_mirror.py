"""Mirror: read the keys of tenants and those that sign tokens, at the start and whenever they change."""

from vettance.db.engine import Store
from vettance.fairness.skipped_rows import Skipped
from vettance.telemetry.meter_table import Rows
from vettance.tenants.browser_token import TokenIssuer
from vettance.tenants.keyring import KeyRing
from vettance.tenants.new_keys import load_keys
from vettance.websdk import sql as websdk_sql


class KeyMirror:
    """Fills the key ring and the token desk. A row that cannot be read shuts out nobody."""

    def __init__(self, store: Store, keys: KeyRing, tokens: TokenIssuer, skipped: Skipped) -> None:
        self._store = store
        self._keys = keys
        self._tokens = tokens
        self._skipped = skipped

    async def reload_keys(self, _tenant: str, _subject: str) -> None:
        """Read every tenant and key again."""
        await load_keys(self._store, self._keys, self._skipped)

    async def reload_tokens(self, _tenant: str, _subject: str) -> None:
        """Read every key that signs tokens again."""
        rows = await self._store.read(websdk_sql.select_token_keys())
        self._tokens.replace([*self._skipped.each(Rows.SIGNING_KEY, rows, websdk_sql.signing_key_of)])
