"""The history of one rule: what the versions that were in force changed of it, when and by whom."""

import collections
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.console.page import Visit
from vettance.console.rule_place import RulePlace
from vettance.console.rules_page import rules_in
from vettance.rules.difference import RuleChange, diff
from vettance.rules.ruleset import Rule, RuleSet

#: Versions that are listed and compared for one page.
_LISTED: Final = 50
_COMPARED: Final = 12
#: Documents whose rules are known by their digests: some 15 KB each.
_KNOWN_MAX: Final = 200
_DIGEST_BYTES: Final = 8


class ChangedMember(NamedTuple):
    """A member of a rule as it was and as it is."""

    name: str
    before: str
    after: str


class RuleStep(NamedTuple):
    """A version that changed a rule: how (`added`, `changed`, `removed`), and who made it."""

    version: int
    kind: str
    members: Sequence[ChangedMember]
    note: str
    author: str | None
    approved_by: str | None
    at: str


class RuleHistory(NamedTuple):
    """The steps, newest first. `last` is a rule that is gone as the newest version that has it says it.

    `cursor` leads to older versions; `since` is the oldest version that was looked at.
    """

    steps: Sequence[RuleStep]
    last: Rule | None
    cursor: str
    since: int | None


class _Documents:
    """What rules documents hold, by the digests of both: versions never change."""

    def __init__(self) -> None:
        self._known: collections.OrderedDict[str, dict[str, bytes]] = collections.OrderedDict()

    def rules_of(self, digest: str) -> dict[str, bytes] | None:
        """Return the digest of each rule of a document."""
        found = self._known.get(digest)
        if found is not None:
            self._known.move_to_end(digest)
        return found

    def note(self, digest: str, rules: Sequence[Rule]) -> dict[str, bytes]:
        """Remember the rules of a document."""
        found = {
            rule.id: hashlib.blake2b(msgspec.json.encode(rule), digest_size=_DIGEST_BYTES).digest()
            for rule in rules
        }
        self._known[digest] = found
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)
        return found


_documents: Final = _Documents()


class _VersionReader:
    """Reads the documents of a tenant's versions, each once for a page."""

    def __init__(self, visit: Visit, place: RulePlace) -> None:
        self._visit = visit
        self._place = place
        self._read: dict[int, Mapping[str, Rule]] = {}

    async def rules(self, version: int) -> Mapping[str, Rule]:
        """Return the rules of a version; none of one that cannot be read any more."""
        if version not in self._read:
            one = await self._visit.ask("GET", f"{self._place.api}/{version}")
            found = (await rules_in(one["resolved"])).rules
            _documents.note(one["digest"], found)
            self._read[version] = {rule.id: rule for rule in found}
        return self._read[version]

    async def digest(self, row: Mapping[str, Any], rule_id: str) -> bytes | None:
        """Return what stands for a rule in a version; None where it has none."""
        known = _documents.rules_of(row["digest"])
        if known is None:
            await self.rules(row["version"])
            known = _documents.rules_of(row["digest"]) or {}
        return known.get(rule_id)


async def history_of(
    visit: Visit, place: RulePlace, rule_id: str, cursor: str = "", *, is_gone: bool = False
) -> RuleHistory:
    """Return what the newest versions that were in force changed of a rule, or those behind a cursor.

    Of one that `is_gone` the newest version that has it is looked for.
    """
    page = await visit.ask("GET", place.api, {"limit": _LISTED, "cursor": cursor})
    rows = [one for one in page["data"] if one["activatedAt"] is not None]
    more = rows[_COMPARED:] or page["hasMore"]
    reader = _VersionReader(visit, place)
    digests = [await reader.digest(row, rule_id) for row in rows[: _COMPARED + 1]]
    steps: list[RuleStep] = []
    last: Rule | None = None
    for at, row in enumerate(rows[:_COMPARED]):
        if is_gone and last is None and digests[at] is not None:
            last = (await reader.rules(row["version"]))[rule_id]
        if at + 1 == len(digests):
            break  # Nothing older is there to compare with.
        if digests[at] != digests[at + 1]:
            old, new = [(await reader.rules(rows[one]["version"])).get(rule_id) for one in (at + 1, at)]
            steps += _step(row, old, new)
    following = ""
    if more and rows:
        following = str(rows[min(len(rows), _COMPARED) - 1]["version"])
    elif page["hasMore"]:
        following = page["nextCursor"]
    since = rows[min(len(rows), _COMPARED + 1) - 1]["version"] if rows else None
    return RuleHistory(steps, last, following, since)


def _step(row: Mapping[str, Any], old: Rule | None, new: Rule | None) -> list[RuleStep]:
    changes = diff(*(RuleSet(name="", rules=() if one is None else (one,)) for one in (old, new)))
    return [
        RuleStep(
            row["version"],
            change.kind,
            _members(change),
            row["note"],
            row["author"],
            row["approvedBy"],
            row["activatedAt"],
        )
        for change in changes
    ]


def _members(change: RuleChange) -> list[ChangedMember]:
    if change.kind != "changed":
        return []
    return [
        ChangedMember(name, _shown(change.before[name]), _shown(value))
        for name, value in change.after.items()
    ]


def _shown(value: Any) -> str:
    """Write a member; tests are counted, as each is a small document."""
    if isinstance(value, list | tuple):
        return f"{len(value)} of them"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return "none" if value in (None, "") else " ".join(str(value).split())
