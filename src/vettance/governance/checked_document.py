"""A document of rules after the gate: what is wrong with it, how its tests ended, and what would be saved."""

from typing import Any

import msgspec

from vettance.rules.gate import DOCUMENT_BYTES_MAX, Context, examine
from vettance.rules.rule import Fault
from vettance.rules.versioning import NewRules, resolved


class RuleTestEnd(msgspec.Struct, frozen=True):
    """How a test of a rule ended: `miss` says how it failed, and `saw` what the rule saw then."""

    rule: str
    test: str
    miss: str | None
    saw: dict[str, Any]


class CheckedDocument(msgspec.Struct, frozen=True):
    """What the gate found, as it goes from one process to another. `cost` is None where nothing can run."""

    document: str
    pushed: str | None
    extends: str | None
    faults: list[Fault]
    tests: list[RuleTestEnd]
    rules: int
    running: int
    cost: int | None

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong but what is only doubtful."""
        return all(fault.warning for fault in self.faults)

    @property
    def broken(self) -> list[Fault]:
        """What keeps the rules from being tried: every error but those of their tests."""
        return [fault for fault in self.faults if not fault.warning and fault.test is None]

    @property
    def missed(self) -> list[Fault]:
        """The errors of tests, which keep rules from being saved and not from being tried."""
        return [fault for fault in self.faults if not fault.warning and fault.test is not None]

    @property
    def new_rules(self) -> NewRules:
        """What is saved of it."""
        return NewRules(self.document, self.pushed)


def check_document(text: str, context: Context) -> CheckedDocument:
    """Pass a document through the gate, which takes up to some seconds of processor."""
    found = examine(text, context)
    rules, faults = resolved(text, found), list(found.faults)
    if len(rules.document.encode()) > DOCUMENT_BYTES_MAX and not found.broken:
        size = f"with its pack it is larger than {DOCUMENT_BYTES_MAX // 1024} KiB"
        rules, faults = NewRules(text, None), [*faults, Fault("document", size)]
    return CheckedDocument(
        document=rules.document,
        pushed=rules.pushed,
        extends=found.extends,
        faults=faults,
        tests=[
            RuleTestEnd(
                one.rule,
                one.test,
                one.miss.message if one.miss is not None else None,
                dict(one.miss.saw) if one.miss is not None else {},
            )
            for one in found.results
        ],
        rules=len(found.ruleset.rules),
        running=len(found.ruleset.running),
        cost=found.compiled.cost if found.compiled is not None else None,
    )
