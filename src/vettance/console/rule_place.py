"""Where the pages and the endpoints of each kind of rules are, and what they are called."""

from typing import Final, NamedTuple

from vettance.aml.quality.answers import AML_QUALITY
from vettance.console.page import segment
from vettance.console.words import Words
from vettance.people.role import Role
from vettance.quality.quality_kind import FRAUD_QUALITY, QualityKind

#: Who reads rules: everybody who works with what they say.
RULE_READERS: Final = frozenset(Role) - {Role.VIEWER}
#: Who writes them.
EDITORS: Final = frozenset({Role.EDITOR, Role.ADMIN})
#: Who puts them in force and takes them back.
APPROVERS: Final = frozenset({Role.ADMIN})

#: What follows the path of a kind of rules and is no rule.
_OTHER_PAGES: Final = frozenset(
    {
        *("aml", "backtests", "changes", "check", "edit", "rollback", "save", "snoozes", "suggestions"),
        "versions",
    }
)


class RulePlace(NamedTuple):
    """One kind of rules: its pages, and the endpoints of its rule sets, of its rules and of its backtests."""

    kind: str
    path: str
    api: str
    rules: str
    backtests: str
    noun: str
    quality: QualityKind

    @property
    def is_fraud(self) -> bool:
        """Whether these rules decide; those of AML watch."""
        return self.kind == "fraud"

    def url_of(self, rule_id: str) -> str:
        """Return the page of a rule. An escape keeps a rule from being taken for one of our pages."""
        if rule_id in _OTHER_PAGES:
            return f"{self.path}/%{ord(rule_id[0]):02X}{rule_id[1:]}"
        return f"{self.path}/{segment(rule_id)}"


FRAUD: Final = RulePlace(
    "fraud",
    "/console/rules",
    "/api/v1/rulesets",
    "/api/v1/rules",
    "/api/v1/backtests",
    Words("Rules"),
    FRAUD_QUALITY,
)
AML: Final = RulePlace(
    "aml",
    "/console/rules/aml",
    "/api/v1/aml/rulesets",
    "/api/v1/aml/rules",
    "/api/v1/aml/backtests",
    "AML rules",
    AML_QUALITY,
)
