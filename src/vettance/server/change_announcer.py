"""Tells other processes, and reads of a replica, of what this process has changed."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vettance.db.engine import EVERYBODY, Statement
from vettance.lists.rule_additions import RuleAdditions
from vettance.redis_link.announcements import Announcements
from vettance.redis_link.down import StateDown
from vettance.tenants.sql import is_change

if TYPE_CHECKING:
    from vettance.db.replica_store import ReplicaStore


class ChangeAnnouncer:
    """Announces changes before their answers: a request after such an answer finds them in force.

    Where they cannot be announced, other processes find them by themselves, within a second. Of what rules
    put on lists, `additions` tell as well.
    """

    def __init__(
        self, changes: Announcements | None, replica: "ReplicaStore | None", additions: RuleAdditions
    ) -> None:
        self._changes = changes
        self._replica = replica
        additions.announce = self.announce

    async def note(self, tenant: str, written: Sequence[Statement]) -> None:
        """Tell of what somebody has written; implements `audited_store.OnChange`."""
        if self._replica is not None:
            await self._replica.note_change(tenant)
        if any(map(is_change, written)):
            await self.announce(tenant)

    async def announce(self, tenant: str) -> None:
        """Have every process look for changes of a tenant before it answers the next request of that."""
        if self._changes is not None and tenant and tenant != EVERYBODY:
            with contextlib.suppress(StateDown):
                await self._changes.announce(tenant)
