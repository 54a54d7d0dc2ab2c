"""What rules mean: types, unknown values, canonical texts."""

import pytest

from tests.rules.words import FIELDS, SCHEMA, compile_texts, fires
from vettance.rules.language import RuleFault, check
from vettance.rules.schema import Field, Namespace, Schema, Type
from vettance.rules.windows import read_window, window_text


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("metadata.amount > 5", {"metadata.amount": 6}, True),
        ("metadata.amount > 5", {"metadata.amount": 5}, False),
        ("metadata.amount > 5", {}, False),
        ("not metadata.amount > 5", {}, False),
        ("not (metadata.amount > 5)", {"metadata.amount": 5}, True),
        ("metadata.amount > 5 or country == 'GB'", {"country": "GB"}, True),
        ("metadata.amount > 5 and missing(country)", {"metadata.amount": 6}, True),
        ("1 < metadata.amount < 5", {"metadata.amount": 3}, True),
        ("1 < metadata.amount < 5", {"metadata.amount": 5}, False),
        ("metadata.amount / metadata.limit > 1", {"metadata.amount": 5, "metadata.limit": 0}, False),
        ("not (metadata.amount / metadata.limit > 1)", {"metadata.amount": 5, "metadata.limit": 0}, False),
        ("metadata.amount % 100 == 0", {"metadata.amount": 500}, True),
        ("-metadata.amount < 0", {"metadata.amount": 1}, True),
        ("metadata.amount == 10_000", {"metadata.amount": 10_000.0}, True),
        ("country in ['GB', 'FR']", {"country": "FR"}, True),
        ("country not in ['GB', 'FR']", {"country": "DE"}, True),
        ("country not in ['GB', 'FR']", {}, False),
        ("'vpn' in ip.tags", {"ip.tags": ["vpn"]}, True),
        ("1 in ip.tags", {"ip.tags": [True]}, False),
        ("'vpn' not in ip.tags", {"ip.tags": []}, True),
        ("'vpn' not in ip.tags", {}, False),
        ("customer.is_new", {"customer.is_new": True}, True),
        ("not customer.is_new", {"customer.is_new": False}, True),
        ("not customer.is_new", {}, False),
        ("customer.is_new == false", {"customer.is_new": False}, True),
        ("customer.is_new != true", {}, False),
        ("default(customer.is_new, false) == False", {}, True),
        ("default(metadata.amount, 0) == 0", {}, True),
        (
            "(5 if customer.is_new else 50) < metadata.amount",
            {"customer.is_new": True, "metadata.amount": 6},
            True,
        ),
        ("(5 if customer.is_new else 50) < metadata.amount", {"metadata.amount": 600}, False),
        ("present(metadata.amount) and missing(country)", {"metadata.amount": 0}, True),
        ("missing(metadata.amount > 5)", {}, True),
        ("true", {}, True),
        ("not true", {}, False),
        ("1 + 1 == 2", {}, True),
        ("2 > 1 or missing(ip)", {}, True),
    ],
)
def test_a_rule_fires_only_when_it_is_definitely_true(
    text: str, event: dict[str, object], expected: bool
) -> None:
    assert fires(text, event) is expected


@pytest.mark.parametrize(
    ("text", "metadata", "expected"),
    [
        ("metadata.x > 5", {"x": 6}, True),
        ("metadata.x > 5", {"x": "6"}, False),
        ("not (metadata.x > 5)", {"x": "6"}, False),
        ("metadata.x > 0", {"x": True}, False),
        ("metadata.x == 1", {"x": True}, False),
        ("metadata.x != 'a'", {"x": 5}, False),
        ("metadata.x == true", {"x": True}, True),
        ("metadata.x", {"x": True}, True),
        ("metadata.x", {"x": 1}, False),
        ("not metadata.x", {"x": False}, True),
        ("metadata.a == metadata.b", {"a": 1, "b": 1.0}, True),
        ("metadata.a == metadata.b", {"a": 1, "b": True}, False),
        ("metadata.a != metadata.b", {"a": 1, "b": "1"}, False),
        ("metadata.a < metadata.b", {"a": "a", "b": "b"}, True),
        ("metadata.a >= metadata.b", {"a": 2, "b": 1}, True),
        ("metadata.a < metadata.b", {"a": False, "b": True}, False),
        ("metadata.deep.er.still == 'x'", {"deep": {"er": {"still": "x"}}}, True),
        ("metadata.deep.er.still == 'x'", {"deep": "x"}, False),
        ("missing(metadata.deep.er)", {"deep": [1]}, True),
        ("present(metadata.deep)", {"deep": {}}, True),
        ("'a' in metadata.list", {"list": ["a"]}, True),
        ("'a' in metadata.list", {"list": "a"}, False),
        ("contains(metadata.list, 'a')", {"list": "cat"}, True),
        ("length(metadata.list) == 2", {"list": [1, 2]}, True),
        ("default(metadata.x, 0) == 0", {"x": "text"}, True),
        ("default(metadata.x, 'none') == 'none'", {"x": 5}, True),
        ("metadata.x in ['a', 'b']", {"x": "b"}, True),
        ("metadata.x in [1, 2]", {"x": True}, False),
        ("number(metadata.x) > 5", {"x": "12.50"}, True),
        ("lower(metadata.x) == 'a'", {"x": "A"}, True),
        ("lower(metadata.x) == 'a'", {"x": 5}, False),
    ],
)
def test_a_member_of_the_wrong_type_is_unknown(
    text: str, metadata: dict[str, object], expected: bool
) -> None:
    assert fires(text, {"metadata": metadata}) is expected


def test_a_declared_field_wins_over_the_namespace_that_holds_it() -> None:
    assert check("metadata.amount > 5", SCHEMA).names == ("metadata.amount",)
    assert fires("metadata.amount == 1", {"metadata.amount": 1, "metadata": {"amount": 2}})


def test_the_longest_namespace_wins() -> None:
    schema = Schema(
        [], [Namespace("a", lambda event: {}, "Outer."), Namespace("a.b", lambda event: {}, "Inner.")]
    )
    found = schema.namespace_of("a.b.c")
    assert found is not None
    assert (found[0].name, found[1]) == ("a.b", ("c",))


@pytest.mark.parametrize("name", ["a-b", "1a", "a..b", "class", "a.import", "", "é"])
def test_a_schema_takes_dotted_names_only(name: str) -> None:
    with pytest.raises(ValueError):
        Schema([Field(name, Type.TEXT, str, "")])


def test_a_schema_refuses_a_name_declared_twice() -> None:
    with pytest.raises(ValueError):
        Schema([Field("a", Type.TEXT, str, ""), Field("a", Type.NUMBER, str, "")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ip=='a'", 'ip   ==  "a"'),
        ("(((ip == 'a')))", "ip == 'a'"),
        ('count(by=ip,within="60m")>5', 'count(by=(ip), within="1h") > 5'),
        ("ip == 'a'\n  and country == 'b'  # why", "ip == 'a' and country == 'b'"),
        ("not not customer.is_new", "customer.is_new"),
        ("metadata.amount > 2 * 50", "metadata.amount > 100"),
        (r'matches(ip, r"\d")', r'matches(ip, "\\d")'),
    ],
)
def test_the_same_rule_written_differently_has_one_canonical_text(one: str, other: str) -> None:
    assert check(one, SCHEMA).expression.text == check(other, SCHEMA).expression.text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("metadata.amount - (5 - metadata.limit) > 0", "metadata.amount - 5 - metadata.limit > 0"),
        ("(ip == 'a' or ip == 'b') and customer.is_new", "ip == 'a' or ip == 'b' and customer.is_new"),
        ("not (customer.is_new and ip == 'a')", "not customer.is_new and ip == 'a'"),
        ("ip == 'a'", "ip == '\"a\"'"),
        ("metadata.x == 1", "metadata.x == '1'"),
    ],
)
def test_different_rules_have_different_canonical_texts(one: str, other: str) -> None:
    assert check(one, SCHEMA).expression.text != check(other, SCHEMA).expression.text


@pytest.mark.parametrize("name", FIELDS)
def test_the_canonical_text_of_a_rule_is_a_rule_with_the_same_text(name: str) -> None:
    text = f'present({name}) and not (missing({name}) or count({name} == {name}, by=ip, within="90m") > 1)'
    if FIELDS[name] is Type.LIST:
        text = f"present({name}) and 'a' in {name}"
    canonical = check(text, SCHEMA).expression.text
    assert check(canonical, SCHEMA).expression.text == canonical


def test_a_rule_knows_its_names_and_aggregates() -> None:
    checked = check('sum(metadata.amount, by=(ip, country), within="2d", where=customer.is_new) > 5', SCHEMA)
    assert set(checked.names) == {"metadata.amount", "ip", "country", "customer.is_new"}
    assert [found.text for found in checked.aggregates] == [
        'sum(metadata.amount, by=(ip, country), within="2d", where=customer.is_new)'
    ]


def test_an_aggregate_costs_more_than_a_comparison() -> None:
    assert (
        check('count(by=ip, within="1h") > 5', SCHEMA).cost > 50 * check("metadata.amount > 5", SCHEMA).cost
    )


def test_a_rule_of_many_costly_words_is_refused() -> None:
    many = " or ".join(f"similarity(ip, country) > 0.{number}" for number in range(60))
    with pytest.raises(RuleFault, match="costs too much"):
        check(many, SCHEMA)


@pytest.mark.parametrize(
    ("text", "window_ms"),
    [
        ("1s", 1_000),
        ("10m", 600_000),
        ("24h", 86_400_000),
        ("90d", 7_776_000_000),
        ("7776000s", 7_776_000_000),
    ],
)
def test_windows_go_from_a_second_to_ninety_days(text: str, window_ms: int) -> None:
    assert read_window(text) == window_ms
    assert read_window(window_text(window_ms)) == window_ms


@pytest.mark.parametrize("text", ["", "0s", "91d", "1w", "1.5h", "-1h", "1h30m", " 1h", "٣h", "7776001s"])
def test_anything_else_is_no_window(text: str) -> None:
    assert read_window(text) is None


def test_five_hundred_rules_can_share_a_list_and_a_pattern() -> None:
    compiled = compile_texts(*(f"ip in ['a', 'b'] and metadata.amount > {number}" for number in range(500)))
    event = {"ip": "a", "metadata.amount": 10.5}
    assert compiled.run(compiled.facts(event), ())[0] == list(range(11))
