"""Roll-outs, dates and hold-outs: who is in a share stays in it, and a rule acts in its time only."""

from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.features import fraud_schema
from vettance.rules.rollout import acting, is_let_through, is_within, stages_of, withhold
from vettance.rules.rule import Explore, Rule
from vettance.rules.ruleset import RuleSetRefused, read_ruleset, write_ruleset

SUBJECTS = st.text(min_size=1)
DOCUMENT = """name: staged
explore: {percent: 2.5, below: 100}
rules:
  - id: new-rule
    name: New
    when: metadata.amount > 10
    score: 90
    reason: NEW
    explanation: It is new.
    rollout: 25
    from: 2026-11-01
    until: 2026-12-01T06:00:00Z
"""
DAY_MS = 86_400_000
NOVEMBER_MS = 1_793_491_200_000  # 2026-11-01


def rule(**members: object) -> Rule:
    return Rule(id="r", name="R", when="true", score=1, reason="R", explanation="R", **members)  # type: ignore[arg-type]


@given(SUBJECTS, st.integers(1, 100), st.integers(1, 100))
def test_who_is_in_a_small_share_is_in_a_larger_one(subject: str, one: int, other: int) -> None:
    small, large = sorted((one, other))
    if is_within(small, "r", subject):
        assert is_within(large, "r", subject)
    assert is_within(100, "r", subject)


def test_a_share_holds_that_part_of_customers_and_another_for_each_rule() -> None:
    customers = [f"c-{number}" for number in range(20_000)]
    found = {name: {one for one in customers if is_within(25, name, one)} for name in ("one", "two")}
    for inside in found.values():
        assert 4_700 < len(inside) < 5_300
    assert 1_000 < len(found["one"] & found["two"]) < 1_500
    assert not is_within(99, "one", None)


@given(st.integers(NOVEMBER_MS - 5 * DAY_MS, NOVEMBER_MS + 40 * DAY_MS))
def test_a_rule_acts_from_its_first_moment_and_not_in_its_last(at_ms: int) -> None:
    stages = stages_of((rule(), rule(active_from="2026-11-01", active_until="2026-12-01T06:00:00Z")))
    assert stages.keys() == {1}
    found = withhold(stages, [0, 1], "c-1", at_ms)
    acts = NOVEMBER_MS <= at_ms < NOVEMBER_MS + 30 * DAY_MS + 6 * 3_600_000
    assert found == ([] if acts else [(1, "dates")])
    assert list(acting([0, 1], found)) == ([0, 1] if acts else [0])


def test_a_hold_out_stops_above_its_amount() -> None:
    explore = Explore(percent=50, below=100)
    inside = next(name for name in map(str, range(100)) if is_within(50, "explore", name))
    assert is_let_through(explore, inside, None)
    assert is_let_through(explore, inside, 100)
    assert not is_let_through(explore, inside, 100.01)
    assert not is_let_through(explore, None, 1)


def test_the_members_are_read_written_and_shown_by_their_names() -> None:
    found = read_ruleset(DOCUMENT)
    assert found.explore == Explore(percent=2.5, below=100)
    assert (found.rules[0].rollout, found.rules[0].active_from) == (25, "2026-11-01")
    written = write_ruleset(found)
    assert read_ruleset(written) == found
    plain = DOCUMENT.partition("    rollout")[0].replace("explore: {percent: 2.5, below: 100}\n", "")
    assert not {"rollout", "from", "until", "explore"} & set(write_ruleset(read_ruleset(plain)).split())
    assert fraud_schema()  # The words above are the document's, and no names of rules.


def test_everybody_can_be_held_out() -> None:
    found = read_ruleset(DOCUMENT.replace("percent: 2.5", "percent: 100"))
    assert found.explore == Explore(percent=100, below=100)
    assert all(is_let_through(found.explore, str(number), 1) for number in range(1_000))


def test_what_makes_no_sense_is_refused_at_its_place() -> None:
    wrong = DOCUMENT.replace("rollout: 25", "rollout: 0").replace(
        "until: 2026-12-01T06:00:00Z", "until: 2026-10-01"
    )
    wrong = wrong.replace("percent: 2.5, below: 100", "percent: 100.5")
    try:
        read_ruleset(wrong)
    except RuleSetRefused as refused:
        faults = {fault.where: (fault.line, fault.message) for fault in refused.faults}
    assert faults["rule new-rule: rollout"] == (10, "must be a whole number from 1 to 100")
    assert faults["rule new-rule: until"] == (12, "must be later than from")
    assert faults["explore.percent"] == (2, "must be a number above 0, up to 100")
    assert faults["explore.below"][1] == "is required"
