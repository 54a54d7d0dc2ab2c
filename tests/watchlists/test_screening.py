"""A screening decides by its profile, says which lists were hit, and remembers who was somebody else."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watchlists.listed import entity
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import BirthDate, Entity, EntityType
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.match import ALGORITHM, Subject
from vettance.watchlists.subject_screening import (
    MATCHES_MAX,
    Profile,
    ScreeningOutcome,
    birth_texts,
    entity_digest,
    match_record,
    screen,
    screening_record,
)

MAN = entity("Torvald Mikkelsen", 1, births=("1957-03-12",), countries=("NO",), source="un_sc")
SAME_MAN = entity("Thorvald Mikkelsen", 2, births=("1957",), source="eu_fsf")
OTHERS = [entity(f"Ann Lee {letter * 5}", 10 + number) for number, letter in enumerate("bcdfg")]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("screening") / "index"
    build_index(folder, [MAN, SAME_MAN, *OTHERS], {"un_sc": "v1", "eu_fsf": "v2"})
    return Index(folder)


def person(name: str = "Torvald Mikkelsen", born: str = "") -> Subject:
    return Subject(name=name, type=EntityType.INDIVIDUAL, birth=read_birth(born) if born else None)


def test_nobody_listed_is_cleared(index: Index) -> None:
    screening = screen(index, person("Wilhelmina Oakes"))
    assert screening.decision is ScreeningOutcome.AUTO_CLEAR
    assert (screening.matches, screening.lists_hit) == ((), ())


def test_a_name_alone_is_reviewed_and_a_birth_date_confirms(index: Index) -> None:
    assert screen(index, person()).decision is ScreeningOutcome.REVIEW
    assert screen(index, person(born="1957-03-12")).decision is ScreeningOutcome.CONFIRMED


def test_one_person_on_two_lists_is_one_screening_with_both(index: Index) -> None:
    screening = screen(index, person(born="1957-03-12"))
    assert screening.lists_hit == ("UN SC", "EU FSF")
    assert [one.match.entity.id for one in screening.matches] == ["un_sc:1", "eu_fsf:2"]


def test_the_versions_and_the_algorithm_are_part_of_the_outcome(index: Index) -> None:
    screening = screen(index, person())
    assert screening.versions == {"un_sc": "v1", "eu_fsf": "v2"}
    assert screening.algorithm == ALGORITHM
    assert screening.review_bound == 75


def test_a_namesake_is_held_by_the_conservative_profile_only(index: Index) -> None:
    asked = person(born="1990-01-30")
    assert screen(index, asked, Profile.CONSERVATIVE).decision is ScreeningOutcome.REVIEW
    assert screen(index, asked, Profile.BALANCED).decision is ScreeningOutcome.AUTO_CLEAR
    assert screen(index, asked, Profile.LIBERAL).decision is ScreeningOutcome.AUTO_CLEAR


def test_matches_below_the_bound_are_shown_by_the_conservative_profile_only(index: Index) -> None:
    asked = person("Torvald Mikkelborg", "1990-01-30")
    shown = screen(index, asked, Profile.CONSERVATIVE)
    assert all(not one.held for one in shown.matches if one.match.score < 65)
    assert screen(index, asked, Profile.BALANCED).matches == ()


@given(
    st.sampled_from(
        ["Torvald Mikkelsen", "Thorvald Mikkelson", "Torvald", "Mikkelsen T.", "Ann Lee", "Ann Leeb"]
    ),
    st.sampled_from(["", "1957", "1957-03-12", "1990-01-30", "1958"]),
)
def test_a_more_sensitive_profile_never_clears_what_a_less_sensitive_one_holds(
    index: Index, name: str, born: str
) -> None:
    held = [
        screen(index, person(name, born), profile).decision is not ScreeningOutcome.AUTO_CLEAR
        for profile in (Profile.LIBERAL, Profile.BALANCED, Profile.CONSERVATIVE)
    ]
    assert held == sorted(held)


def test_a_remembered_false_positive_is_shown_but_holds_nothing(index: Index) -> None:
    cleared = {one.id: entity_digest(one) for one in (MAN, SAME_MAN)}
    screening = screen(index, person(), cleared=cleared)
    assert screening.decision is ScreeningOutcome.AUTO_CLEAR
    assert all(one.cleared for one in screening.matches)


def test_a_false_positive_counts_again_when_the_listed_entity_changes(index: Index) -> None:
    before = msgspec.structs.replace(MAN, remarks="Something else was known then.")
    cleared = {MAN.id: entity_digest(before), SAME_MAN.id: entity_digest(SAME_MAN)}
    assert screen(index, person(), cleared=cleared).decision is ScreeningOutcome.REVIEW


def test_bounds_of_a_tenant_take_the_place_of_the_usual_ones(index: Index) -> None:
    bounds = {Profile.CONSERVATIVE: 60, Profile.BALANCED: 70, Profile.LIBERAL: 80}
    asked = person(born="1990-01-30")
    score = screen(index, asked, Profile.CONSERVATIVE).matches[0].match.score
    assert score < 70 or screen(index, asked, bounds=bounds).decision is ScreeningOutcome.REVIEW
    assert screen(index, person(), bounds=bounds).review_bound == 70


def test_a_match_is_shown_with_every_specified_member(index: Index) -> None:
    record = match_record(screen(index, person(born="1957-03-12")).matches[0])
    assert record["watchlistEntityId"] == "un_sc:1"
    assert record["classification"] == "EXACT"
    assert (record["matchedName"], record["entityName"]) == ("Torvald Mikkelsen", "Torvald Mikkelsen")
    assert record["source"] == "UN SC"
    assert record["datesOfBirth"] == ["1957-03-12"]
    assert record["scoreBreakdown"]["name"] == 1.0
    assert set(record["scoreBreakdown"]) == set(record["explanation"])
    assert record["sanctionReason"] is None
    assert record["matchCity"] is None


def test_a_screening_is_shown_with_what_it_was_made_with(index: Index) -> None:
    record = screening_record(screen(index, person(born="1957-03-12")), "scr_1", "customer-7", 1.25)
    assert (record["id"], record["externalId"], record["processingMs"]) == ("scr_1", "customer-7", 1.25)
    assert (record["decision"], record["listsHit"]) == ("CONFIRMED", ["UN SC", "EU FSF"])
    assert [match["source"] for match in record["matches"]] == ["UN SC", "EU FSF"]
    assert record["listVersions"] == {"un_sc": "v1", "eu_fsf": "v2"}
    assert msgspec.json.decode(msgspec.json.encode(record)) == record


@pytest.mark.parametrize(
    ("birth", "texts"),
    [
        (BirthDate("1957-03-12"), ["1957-03-12"]),
        (BirthDate("1957-03"), ["1957"]),
        (BirthDate("1957"), ["1957"]),
        (BirthDate("1957", "1960", approximate=True), ["1957", "1960"]),
    ],
)
def test_dates_of_birth_are_shown_as_full_dates_or_years(birth: BirthDate, texts: list[str]) -> None:
    assert birth_texts(birth) == texts


def test_no_more_matches_are_shown_than_anybody_reads(tmp_path: Path) -> None:
    many: list[Entity] = [entity("Torvald Mikkelsen", number) for number in range(MATCHES_MAX + 9)]
    build_index(tmp_path / "index", many, {"csv": "1"})
    assert len(screen(Index(tmp_path / "index"), person()).matches) == MATCHES_MAX
