"""A subject and an entity are scored by what agrees and what contradicts, and the reasons are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watchlists.listed import document, entity
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.compare import compare_births
from vettance.watchlists.entity import DocumentKind, EntityType
from vettance.watchlists.match import Classification, EntityMatch, Subject, classify, confirms, match

LISTED = entity("Torvald Mikkelsen", births=("1957-03-12",), countries=("NO",))


def found(subject: Subject, listed: object = LISTED) -> EntityMatch:
    result = match(subject, listed)  # type: ignore[arg-type]
    assert result is not None
    return result


def person(name: str = "Torvald Mikkelsen", born: str = "", country: str = "") -> Subject:
    return Subject(
        name=name,
        type=EntityType.INDIVIDUAL,
        birth=read_birth(born) if born else None,
        countries=(country,) if country else (),
    )


@pytest.mark.parametrize(
    ("asked", "listed", "value"),
    [
        ("1957-03-12", "1957-03-12", 1.0),
        ("1957-12-03", "1957-03-12", 0.95),
        ("1957-03-13", "1957-03-12", 0.85),
        ("1957", "1957-03-12", 0.8),
        ("1957-03-12", "1957", 0.8),
        ("1958", "1957-1960", 0.8),
        ("1957-08-30", "1957-03-12", 0.55),
        ("1957-08-30", "1957-01-01", 0.75),
        ("1957-01-01", "1957-01-01", 0.75),
        ("1957-03-12", "1967-03-12", 0.0),
        ("1958-08-30", "1957", 0.5),
        ("1959", "circa 1957", 0.65),
        ("1960-08-30", "1957", 0.25),
        ("1985-08-30", "1957-03-12", 0.0),
    ],
)
def test_dates_of_birth_agree_by_their_parts(asked: str, listed: str, value: float) -> None:
    finding = compare_births(read_birth(asked), entity("A B", births=(listed,)))
    assert finding is not None
    assert finding.value == value


def test_of_several_listed_dates_the_one_that_fits_counts() -> None:
    listed = entity("A B", births=("1931", "1957-03-12", "1980"))
    finding = compare_births(read_birth("1957-03-12"), listed)
    assert finding is not None
    assert finding.value == 1.0


def test_a_birth_date_that_agrees_lifts_and_one_that_contradicts_lowers() -> None:
    bare = found(person("Thorvald Mikkelson")).score
    agreeing = found(person("Thorvald Mikkelson", "1957-03-12")).score
    other = found(person("Thorvald Mikkelson", "1984-03-12")).score
    assert other < bare < agreeing


def test_a_namesake_born_elsewhen_is_held_by_the_conservative_profile_only() -> None:
    assert 65 <= found(person(born="1990-01-30")).score < 75


def test_the_name_alone_never_confirms() -> None:
    assert not confirms(found(person()))
    assert confirms(found(person(born="1957-03-12")))
    assert not confirms(found(person(born="1957")))
    assert not confirms(found(person(born="1957-03-12", country="FR")))


def test_an_equal_identifier_decides_over_the_name() -> None:
    ship = entity("GREY HERON", 2, EntityType.VESSEL, documents=((DocumentKind.IMO, "IMO 9074729", ""),))
    asked = Subject(
        name="Happy Star", type=EntityType.VESSEL, documents=(document(DocumentKind.IMO, "9074729"),)
    )
    result = found(asked, ship)
    assert result.score >= 95
    assert confirms(result)
    assert classify(result, 75) is Classification.EXACT


def test_another_identifier_of_a_kind_of_which_there_is_one_contradicts() -> None:
    ship = entity("GREY HERON", 2, EntityType.VESSEL, documents=((DocumentKind.IMO, "9074729", ""),))
    asked = Subject(
        name="Grey Heron", type=EntityType.VESSEL, documents=(document(DocumentKind.IMO, "9074731"),)
    )
    assert found(asked, ship).score < 75


def test_a_second_passport_is_no_contradiction() -> None:
    listed = entity("Torvald Mikkelsen", documents=((DocumentKind.PASSPORT, "N1234567", "NO"),))
    asked = Subject(name="Torvald Mikkelsen", documents=(document(DocumentKind.PASSPORT, "N7654321", "NO"),))
    assert found(asked, listed).score == 100


def test_the_same_number_from_another_country_is_another_document() -> None:
    listed = entity("Torvald Mikkelsen", documents=((DocumentKind.PASSPORT, "1234567", "NO"),))
    asked = Subject(name="Quite Different", documents=(document(DocumentKind.PASSPORT, "1234567", "SE"),))
    result = match(asked, listed)
    assert result is None or not result.identifier_equal


def test_a_registration_mark_is_equal_or_another_aircraft() -> None:
    plane = entity("LN-XYZ", 3, EntityType.AIRCRAFT, documents=((DocumentKind.TAIL, "LN-XYZ", ""),))
    assert found(Subject(name="LNXYZ", type=EntityType.AIRCRAFT), plane).score >= 95
    near = match(Subject(name="LN-XYA", type=EntityType.AIRCRAFT), plane)
    assert near is None or near.score < 50


def test_a_weak_alias_does_not_alert_alone() -> None:
    listed = entity("Torvald Mikkelsen", weak=("The Ferryman of Oslo",), births=("1957-03-12",))
    alone = found(person("The Ferryman of Oslo"), listed)
    supported = found(person("The Ferryman of Oslo", "1957-03-12"), listed)
    assert alone.score < 75 <= supported.score


def test_a_name_that_is_better_vouched_for_stands_before_an_equal_weak_one() -> None:
    listed = entity("Torvald Anders Mikkelsen", weak=("Torvald Mikkelsen",))
    assert found(person("Torvald Mikkelsen"), listed).score >= 75


def test_an_alias_of_the_tenant_is_compared_too() -> None:
    asked = Subject(name="Somebody Else", aliases=("Torvald Mikkelsen",))
    result = found(asked)
    assert result.components["alias"].value == 1.0
    assert result.score >= 95


def test_another_kind_of_entity_lowers_the_score() -> None:
    company = entity("Torvald Mikkelsen", 2, EntityType.ORGANIZATION)
    assert found(person(), company).score < 75


def test_every_component_says_why_in_a_sentence() -> None:
    result = found(person("Thorvald Mikkelson", "1957-12-03", "SE"))
    assert set(result.components) == {"name", "dob", "nationality", "entityType"}
    assert "Thorvald ~ Torvald" in result.components["name"].detail
    assert "swapped" in result.components["dob"].detail
    assert "Sweden" in result.components["nationality"].detail
    assert all(part.detail.endswith(".") for part in result.components.values())


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (person(), Classification.EXACT),
        (person(born="1957-03-12"), Classification.EXACT),
        (person("Thorvald Mikkelson", "1957-03-12"), Classification.STRONG),
        (person(born="1958-08-12"), Classification.MODERATE),
        (person(born="1990-08-12"), Classification.WEAK),
    ],
)
def test_matches_are_classified_by_what_speaks_for_them(asked: Subject, expected: Classification) -> None:
    assert classify(found(asked), 75) is expected


NAMES = st.sampled_from(
    ["Torvald Mikkelsen", "Torvald", "Thorvald A. Mikkelson", "Mikkel Torvaldsen", "Ann Lee"]
)
DATES = st.sampled_from(["", "1957", "1957-03-12", "1957-12-03", "1984-01-01", "1958"])
COUNTRIES = st.sampled_from(["", "NO", "SE"])


@given(NAMES, DATES, COUNTRIES)
def test_scores_stay_between_0_and_100_and_components_between_0_and_1(
    name: str, born: str, country: str
) -> None:
    result = match(person(name, born, country), LISTED)
    if result is not None:
        assert 0 <= result.score <= 100
        assert all(0.0 <= part.value <= 1.0 for part in result.components.values())


@given(NAMES, COUNTRIES)
def test_agreeing_never_lowers_and_contradicting_never_lifts(name: str, country: str) -> None:
    bare = match(person(name, "", country), LISTED)
    agreeing = match(person(name, "1957-03-12", country), LISTED)
    other = match(person(name, "1984-01-01", country), LISTED)
    scores = [one.score if one is not None else 0 for one in (other, bare, agreeing)]
    assert scores == sorted(scores)


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_any_two_texts_can_be_compared(asked: str, listed: str) -> None:
    if any(letter.isalnum() for letter in listed):
        match(Subject(name=asked), entity(listed, kind=EntityType.UNKNOWN))
