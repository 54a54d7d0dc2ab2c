"""What rules put on lists: planned from an event, and left alone where there is nothing to add."""

import pytest

from vettance.events.event import Event, read_event
from vettance.ids import IdSource
from vettance.lists.entry import EntryType, ListBook, ListEntry, ListType
from vettance.lists.rule_additions import ListAdditions, RuleAdditions
from vettance.rules.list_effect import effects_of
from vettance.rules.rule import LISTED_TYPES, LISTS, ListEffect, Rule
from vettance.rules.ruleset import RuleSetRefused, read_ruleset, write_ruleset
from vettance.tenants.tenant import Tenant
from vettance.wire.payload import encode

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
DOCUMENT = """name: adding
rules:
  - id: bots
    name: Bots
    when: metadata.amount > 10
    score: 90
    reason: BOTS
    explanation: It is a bot.
    adds: {list: block, type: DEVICE, for: 7d}
"""


def rule(list_type: str = "block", kind: str = "DEVICE", lasts: str = "7d", mode: str = "active") -> Rule:
    adds = ListEffect(list=list_type, type=kind, lasts=lasts)
    return Rule(
        id="bots",
        name="R",
        when="true",
        score=1,
        reason="R",
        explanation="It is a bot.",
        mode=mode,  # type: ignore[arg-type]
        adds=adds,
    )


def event(**members: object) -> Event:
    body = {"eventName": "a", **(members or {"device": {"fingerprint": "fp-1", "externalId": "d-1"}})}
    return read_event(body, encode(body), NOW_MS)


def planned(
    book: ListBook,
    *rules: Rule,
    happened: Event | None = None,
    now_ms: int = NOW_MS + 5,
    entries_max: int = 3,
    overruled: ListType | None = None,
) -> ListAdditions:
    tenant = Tenant(id="ten_1", name="T", list_entries=entries_max)
    additions = RuleAdditions({"ten_1": book}, IdSource(), lambda _: tenant)
    return additions.plan(
        "ten_1",
        rules,
        effects_of(rules),
        range(len(rules)),
        happened or event(),
        "evt_1",
        now_ms,
        overruled,
    )


def listed(value: str, ends_ms: int | None, kind: EntryType = EntryType.DEVICE) -> ListEntry:
    return ListEntry(
        id=f"lst_{value}",
        tenant="ten_1",
        type=kind,
        value=value,
        list_type=ListType.BLOCK,
        reason="by hand",
        expires_at_ms=ends_ms,
        created_at_ms=1,
        updated_at_ms=1,
    )


def test_a_rule_may_name_every_list_and_types_of_value_that_there_are() -> None:
    assert set(LISTS) == {one.value for one in ListType}
    assert set(LISTED_TYPES) <= {one.value for one in EntryType}


def test_the_member_is_read_and_written() -> None:
    ruleset = read_ruleset(DOCUMENT)
    assert ruleset.rules[0].adds == ListEffect(list="block", type="DEVICE", lasts="7d")
    assert ruleset.rules[0].adds.lasts_ms == 7 * DAY_MS
    assert "adds: {list: block, type: DEVICE, for: 7d}" in write_ruleset(ruleset)
    assert read_ruleset(write_ruleset(ruleset)) == ruleset


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("block", "", "must be a mapping of list, type and for", "write it like {list: block"),
        ("{list: blok, type: IP, for: 1d}", ".list", "must be one of block, allow", "did you mean block?"),
        ("{list: block, type: ip, for: 1d}", ".type", "must be one of IP, DEVICE, EMAIL", "did you mean IP?"),
        ("{list: block, type: IP}", ".for", "is required", "a rule adds for a time only"),
        ("{type: IP, for: 1d}", ".list", "is required", "write it like {list: block"),
        ("{list: block, type: IP, for: a week}", ".for", "must be a time like 7d", "30m, 12h or 7d"),
        ("{list: block, type: IP, for: -7d}", ".for", "must be a time like 7d", "30m, 12h or 7d"),
        ("{list: block, type: IP, for: 0d}", ".for", "must be a time like 7d", "30m, 12h or 7d"),
        ("{list: block, type: IP, for: 401d}", ".for", "at most 400 days", "30m, 12h or 7d"),
        ("{list: block, type: IP, for: 7}", ".for", "must be a time like 7d", "30m, 12h or 7d"),
        ("{list: block, type: IP, for: 7d, fro: 2d}", "", "there is no member fro here", "did you mean for?"),
    ],
)
def test_what_is_wrong_with_it_is_said_with_its_place(text: str, where: str, message: str, hint: str) -> None:
    with pytest.raises(RuleSetRefused) as refused:
        read_ruleset(DOCUMENT.replace("{list: block, type: DEVICE, for: 7d}", text))
    (fault,) = refused.value.faults
    assert fault.where == f"rule bots: adds{where}"
    assert fault.line == 9
    assert fault.column is not None
    assert message in fault.message
    assert fault.hint is not None
    assert hint in fault.hint


@pytest.mark.parametrize(
    ("kind", "members", "value"),
    [
        ("DEVICE", {"device": {"fingerprint": "fp-1", "externalId": "d-1"}}, "fp-1"),
        ("DEVICE", {"device": {"externalId": "d-1"}}, "d-1"),
        ("EMAIL", {"customer": {"email": " Anna@Shop.example "}}, "anna@shop.example"),
        ("IP", {"ip": "::ffff:203.0.113.9"}, "203.0.113.9"),
        ("EMAIL", {"customer": {"email": "no address"}}, None),
        ("IP", {"customer": {"email": "a@b.example"}}, None),
        ("DEVICE", {"ip": "203.0.113.9"}, None),
    ],
)
def test_the_value_of_the_event_is_added(kind: str, members: dict[str, object], value: str | None) -> None:
    plan = planned(ListBook(), rule(kind=kind), happened=event(**members))
    assert [one.value for one in plan.entries] == ([value] if value is not None else [])
    assert plan.recorded[0][3] == ("added" if value is not None else "absent")
    assert bool(plan.statements) is (value is not None)


def test_an_entry_ends_by_the_time_of_receipt_and_names_the_rule() -> None:
    plan = planned(ListBook(), rule(lasts="12h"), now_ms=NOW_MS + 3_600_000)
    (entry,) = plan.entries
    assert entry.expires_at_ms == NOW_MS + 12 * 3_600_000
    assert entry.created_at_ms == NOW_MS + 3_600_000
    assert entry.reason == "Rule bots: It is a bot."
    assert plan.recorded == [(0, "block", "DEVICE", "added", entry.id)]


def test_what_would_be_over_by_the_decision_is_not_added() -> None:
    plan = planned(ListBook(), rule(lasts="1h"), now_ms=NOW_MS + 3_600_000)
    assert (plan.recorded[0][3], plan.statements) == ("over", [])


def test_a_shadow_rule_adds_nothing() -> None:
    assert planned(ListBook(), rule(mode="shadow")) == ([], [], [], [])


@pytest.mark.parametrize(
    ("ends_ms", "became"),
    [
        (None, "present"),
        (NOW_MS + 30 * DAY_MS, "present"),
        (NOW_MS + 7 * DAY_MS, "present"),
        (NOW_MS + 7 * DAY_MS - 7 * DAY_MS // 10, "present"),
        (NOW_MS + 7 * DAY_MS - 7 * DAY_MS // 10 - 1, "extended"),
        (NOW_MS + 6, "extended"),
        (NOW_MS + 5, "added"),
    ],
)
def test_an_entry_that_is_there_is_left_or_extended(ends_ms: int | None, became: str) -> None:
    plan = planned(ListBook([listed("fp-1", ends_ms)]), rule())
    assert plan.recorded[0][3] == became
    if became == "present":
        assert plan.statements == []
    else:
        (entry,) = plan.entries
        assert entry.expires_at_ms == NOW_MS + 7 * DAY_MS
        assert (entry.id == "lst_fp-1", entry.reason == "by hand") == ((became == "extended",) * 2)


def test_an_entry_of_the_other_list_or_of_a_range_is_another_one() -> None:
    book = ListBook([listed("203.0.113.0/24", None, EntryType.IP)])
    happened = event(ip="203.0.113.9")
    assert planned(book, rule(kind="IP"), happened=happened).recorded[0][3] == "added"
    assert planned(ListBook([listed("fp-1", None)]), rule("allow")).recorded[0][3] == "added"


def test_two_rules_make_one_entry_that_ends_last() -> None:
    plan = planned(ListBook(), rule(), rule(lasts="9d"), rule(lasts="2h"))
    assert [became for _, _, _, became, _ in plan.recorded] == ["added", "extended", "present"]
    assert len({entry_id for *_, entry_id in plan.recorded}) == 1
    assert plan.entries[-1].expires_at_ms == NOW_MS + 9 * DAY_MS


def test_full_lists_take_nothing_unless_an_entry_has_ended() -> None:
    full = [listed("a", None), listed("b", None), listed("c", None)]
    assert planned(ListBook(full), rule()).recorded == [(0, "block", "DEVICE", "full", "")]
    ended = [*full[:2], listed("c", NOW_MS)]
    assert planned(ListBook(ended), rule()).recorded[0][3] == "added"


def test_what_a_list_overruled_adds_nothing_to_the_other() -> None:
    both = rule(), rule("allow", lasts="1d")
    assert [row[1] for row in planned(ListBook(), *both, overruled=ListType.BLOCK).recorded] == ["allow"]
    assert [row[1] for row in planned(ListBook(), *both, overruled=ListType.ALLOW).recorded] == ["block"]


def test_simultaneous_events_make_one_entry_and_it_counts_once_it_is_kept() -> None:
    books: dict[str, ListBook] = {}
    additions = RuleAdditions(books, IdSource(), lambda _: None)
    rules = (rule(),)

    def plan() -> ListAdditions:
        return additions.plan("ten_1", rules, effects_of(rules), [0], event(), "evt_1", NOW_MS)

    with pytest.raises(OSError, match="down"), additions.under_way(plan()):
        raise OSError("down")
    assert not books
    first = plan()
    with additions.under_way(first):
        second = plan()
        assert second.recorded[0][3:] == ("present", first.entries[0].id)
        # Its own commit demands that the entry is there, in case that of the first one fails.
        assert second.statements
        assert second.keys == first.keys
        assert second.entries == []
    assert books["ten_1"].match(event(), NOW_MS) == (first.entries[0],)
