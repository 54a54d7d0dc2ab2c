"""The key ring: every key that works, in memory, so that no request waits to learn who calls."""

from collections.abc import Iterable

from vettance.tenants.tenant import Key, Tenant, is_key, key_digest

_CACHE_MAX = 4096


class KeyRing:
    """Finds the tenant of an API key. Replaced whole whenever tenants or keys change."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper
        #: Whether a key was ever found: it was made with the same pepper then.
        self.is_proven = False
        self._by_digest: dict[bytes, tuple[Key, Tenant]] = {}
        self._by_id: dict[str, tuple[Key, Tenant]] = {}
        self._tenants: dict[str, Tenant] = {}
        # Hashing a key costs more than looking it up; good keys are few and come again at once.
        self._cache: dict[str, tuple[Key, Tenant]] = {}
        self._used: set[str] = set()

    def replace(self, tenants: Iterable[Tenant], keys: Iterable[Key]) -> None:
        """Take over what the store says now; keys that are revoked are left out."""
        self._tenants = {tenant.id: tenant for tenant in tenants}
        self._by_digest = {
            key.digest: (key, self._tenants[key.tenant])
            for key in keys
            if key.revoked_at_ms is None and key.tenant in self._tenants
        }
        self._by_id = {found[0].id: found for found in self._by_digest.values()}
        self._cache = {}

    def find(self, api_key: str) -> tuple[Key, Tenant] | None:
        """Return the key and its tenant, or None when it was never issued or is revoked."""
        found = self._cache.get(api_key)
        if found is not None:
            self._used.add(found[0].id)
            return found
        if not is_key(api_key):
            return None
        found = self._by_digest.get(key_digest(self._pepper, api_key))
        if found is not None:
            self.is_proven = True
            self._used.add(found[0].id)
            if len(self._cache) < _CACHE_MAX:
                self._cache[api_key] = found
        return found

    def take_used(self) -> set[str]:
        """Return the ids of the keys that were found since the last call."""
        used, self._used = self._used, set()
        return used

    def issued(self, key_id: str) -> tuple[Key, Tenant] | None:
        """Return the key of an id and its tenant, or None when it is unknown or revoked."""
        return self._by_id.get(key_id)

    def tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant by its id."""
        return self._tenants.get(tenant_id)

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """Every tenant."""
        return tuple(self._tenants.values())
