"""The rules in force for a tenant, compiled once for each document however many tenants share it."""

from collections.abc import Callable

import msgspec

from vettance.decisions.decision import Decision, decide
from vettance.rules.compiler import Compiled
from vettance.rules.ruleset import RuleSet
from vettance.rules.sql import document_digest


class ActiveRules(msgspec.Struct, frozen=True):
    """One version of a tenant's rule set, ready to run."""

    version: int
    digest: str
    ruleset: RuleSet
    compiled: Compiled
    quiet: Decision  # What is decided when no rule fires and no list entry matches: most of all decisions.


class RuleCache:
    """Compiles documents, and keeps what it compiled last: most tenants share a few rule sets."""

    def __init__(self, compile_document: Callable[[str], tuple[RuleSet, Compiled]], size: int = 256) -> None:
        self._compile = compile_document
        self._size = size
        self._ready: dict[str, tuple[RuleSet, Compiled]] = {}

    def active(self, version: int, document: str) -> ActiveRules:
        """Return a version ready to run. Raises `RuleSetRefused` when this code no longer accepts it."""
        digest = document_digest(document)
        ready = self._ready.pop(digest, None) or self._compile(document)
        self._ready[digest] = ready
        while len(self._ready) > self._size:
            del self._ready[next(iter(self._ready))]
        return ActiveRules(version, digest, *ready, decide(ready[0], version, (), ()))
