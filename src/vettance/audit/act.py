"""The act: what a request, a page or a command is about to change, until the log has it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from vettance.audit.chain import AuditEntry, without_secrets


class Act:
    """What somebody does. Recorded once, with the first change that it makes.

    Without a `tenant`, the entry goes into the chain of the tenant whose rows it changes.
    """

    __slots__ = ("action", "actor", "after", "before", "is_recorded", "subject", "tenant")

    def __init__(
        self, actor: str, action: str, *, tenant: str = "", subject: str = "", after: Any = None
    ) -> None:
        self.actor = actor
        self.action = action
        self.tenant = tenant
        self.subject = subject
        self.before: Any = None
        self.after = without_secrets(after)
        self.is_recorded = False

    def entry(self, entry_id: str, tenant: str, at_ms: int) -> AuditEntry:
        """Return the entry of this act."""
        return AuditEntry(
            id=entry_id,
            tenant=self.tenant or tenant,
            at_ms=at_ms,
            action=self.action,
            actor=self.actor,
            subject=self.subject,
            before=self.before,
            after=self.after,
        )


_CURRENT: ContextVar[Act | None] = ContextVar("act", default=None)


def current_act() -> Act | None:
    """Return what is being done in this task, or None for the service's own work."""
    return _CURRENT.get()


@contextmanager
def acting(act: Act | None) -> Iterator[None]:
    """Have what the block changes be recorded as this act."""
    before = _CURRENT.set(act)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def describe(
    *, subject: str | None = None, before: Any = None, after: Any = None, tenant: str | None = None
) -> None:
    """Say more of what is being done, before it is written; nothing happens outside of an act."""
    act = _CURRENT.get()
    if act is None:
        return
    if subject is not None:
        act.subject = subject
    if tenant is not None:
        act.tenant = tenant
    if before is not None:
        act.before = without_secrets(before)
    if after is not None:
        act.after = without_secrets(after)


def leave_out() -> None:
    """Have nothing recorded of what is being done: it only looks."""
    act = _CURRENT.get()
    if act is not None:
        act.is_recorded = True
