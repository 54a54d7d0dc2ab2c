"""Documents with changed rules: what is written there stays what it was."""

from vettance.rules.changed_document import with_changes
from vettance.rules.document import plain, read_document
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import read_ruleset

SHORT = "extends: default\nrules:\n  - {id: webdriver, mode: off}\n  - {id: vpn, from: 2026-01-01}\n"


def test_a_rule_that_is_there_gets_the_members_and_another_one_is_added() -> None:
    changed = plain(
        read_document(with_changes(SHORT, [{"id": "vpn", "score": 5}, {"id": "tor", "score": 9}]))
    )
    assert changed["extends"] == "default"
    assert changed["rules"] == [
        {"id": "webdriver", "mode": "off"},
        {"id": "vpn", "from": "2026-01-01", "score": 5},
        {"id": "tor", "score": 9},
    ]


def test_a_document_without_rules_gets_some() -> None:
    assert plain(read_document(with_changes("extends: default\n", [{"id": "a"}])))["rules"] == [{"id": "a"}]


def test_a_pack_keeps_every_other_rule_as_it_is() -> None:
    for pack in ("fraud", "aml"):
        before = read_ruleset(load_pack_text(pack))
        first, *others = before.rules
        after = read_ruleset(with_changes(load_pack_text(pack), [{"id": first.id, "score": first.score - 1}]))
        assert after.rules[0].score == first.score - 1
        assert list(after.rules[1:]) == others
        assert (after.levels, after.thresholds, after.actions) == (
            before.levels,
            before.thresholds,
            before.actions,
        )
