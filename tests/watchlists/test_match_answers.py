"""What an answer says besides its matches: groups, caps, traces, contributions, and the fact that decides."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.watchlists.entity import (
    BirthDate,
    Document,
    DocumentKind,
    Entity,
    EntityType,
    ListedName,
    NameQuality,
)
from vettance.watchlists.listing_reason import listing_reason
from vettance.watchlists.match import COMPARISONS, EntityMatch, Subject, match, weigh
from vettance.watchlists.match_explanation import as_written
from vettance.watchlists.match_groups import group_numbers
from vettance.watchlists.name_analysis import Grammar, parse_name
from vettance.watchlists.subject_screening import Profile, screen, screening_record

PERSON = EntityType.INDIVIDUAL


def listed(source: str, name: str, *births: str, **more: Any) -> Entity:
    return Entity(
        id=f"{source}:{name}",
        source=source,
        type=more.pop("type", PERSON),
        names=(ListedName(name, NameQuality.PRIMARY),),
        births=tuple(map(BirthDate, births)),
        **more,
    )


class Compared:
    """A few entities, compared one by one."""

    def __init__(self, *entities: Entity) -> None:
        self._entities = entities
        self.versions: Mapping[str, str] = {"csv": "v1"}

    def search(self, subject: Subject) -> list[EntityMatch]:
        found = [one for entity in self._entities if (one := match(subject, entity)) is not None]
        return sorted(found, key=lambda one: -one.score)


def answer(subject: Subject, *entities: Entity, profile: Profile = Profile.BALANCED) -> dict[str, Any]:
    return screening_record(screen(Compared(*entities), subject, profile), "scr_1", "one", 1.0)


def test_one_person_on_five_lists_is_one_group() -> None:
    entries = [
        listed(source, "Rosalind Maria ACHTERBERG", "1969-10-11")
        for source in ("us_ofac_sdn", "un_sc", "eu_fsf", "uk_ofsi", "au_dfat")
    ]
    found = answer(Subject(name="Rosalind Maria Achterberg", type=PERSON), *entries)
    assert len(found["matches"]) == 5
    assert {one["group"] for one in found["matches"]} == {1}
    assert [group["group"] for group in found["groups"]] == [1]
    assert len(found["groups"][0]["sources"]) == len(found["groups"][0]["watchlistEntityIds"]) == 5


def test_namesakes_and_entries_of_one_list_are_apart() -> None:
    one = listed("un_sc", "Rosalind Achterberg", "1969-10-11")
    namesake = listed("eu_fsf", "Rosalind Achterberg", "1984-02-03")
    assert sorted(group_numbers([one, namesake]).values()) == [1, 2]
    twice = [Entity(id=f"un_sc:{n}", source="un_sc", type=PERSON, names=one.names) for n in range(3)]
    assert sorted(group_numbers(twice).values()) == [1, 2, 3]


def test_a_reference_or_an_identifier_makes_entries_of_other_spellings_one() -> None:
    first = listed("un_sc", "Rosalind Achterberg", reference="QDi.406")
    cited = listed("au_dfat", "Rozalinda Ahterberga", reference="QDi.406")
    passport = (Document(DocumentKind.PASSPORT, "NX1234567"),)
    numbered = [
        listed("eu_fsf", "R. Achterbergova", documents=passport),
        listed("uk_ofsi", "Roos A.", documents=passport),
    ]
    assert list(group_numbers([first, cited, *numbered]).values()) == [1, 1, 2, 2]


def test_a_cap_is_said() -> None:
    many = [
        Entity(id=f"csv:{n}", source="csv", type=PERSON, names=(ListedName("Rosalind Achterberg"),))
        for n in range(23)
    ]
    found = answer(Subject(name="Rosalind Achterberg"), *many)
    assert (len(found["matches"]), found["matchesFound"], found["matchesCut"]) == (20, 23, True)
    few = answer(Subject(name="Rosalind Achterberg"), *many[:3])
    assert (few["matchesFound"], few["matchesCut"]) == (3, False)


def test_an_exact_name_that_its_birth_date_clears_leaves_a_trace() -> None:
    subject = Subject(name="Rosalind Achterberg", type=PERSON, birth=BirthDate("1990-01-17"))
    found = answer(subject, listed("un_sc", "Rosalind Achterberg", "1969-10-11"))
    assert found["decision"] == "AUTO_CLEAR"
    assert found["matches"] == []
    (trace,) = found["clearedByFacts"]
    assert trace["watchlistEntityId"] == "un_sc:Rosalind Achterberg"
    assert trace["score"] < found["reviewBound"]
    assert "21 years apart" in trace["explanation"]
    assert (
        answer(Subject(name="Someone Else", type=PERSON), listed("un_sc", "Rosalind Achterberg"))[
            "clearedByFacts"
        ]
        == []
    )


def test_contributions_add_up_to_the_score() -> None:
    subject = Subject(
        name="Rosalind Achterburg", type=PERSON, birth=BirthDate("1969-10-11"), countries=("NL",)
    )
    (one,) = answer(subject, listed("un_sc", "Rosalind Achterberg", "1969-10-11", countries=("DE",)))[
        "matches"
    ]
    assert sum(one["contribution"].values()) == pytest.approx(one["score"], abs=0.7)
    assert one["contribution"]["dob"] > 0 > one["contribution"]["nationality"]
    assert set(one["contribution"]) == set(one["scoreBreakdown"])


def test_what_was_not_compared_says_which_side_did_not_say_it() -> None:
    subject = Subject(name="Rosalind Achterberg", type=PERSON, countries=("NL",))
    (one,) = answer(subject, listed("un_sc", "Rosalind Achterberg", "1969-10-11"))["matches"]
    assert one["notCompared"] == {
        "dob": "Not sent; the list has 1969-10-11.",
        "nationality": "Sent; the list does not say.",
        "idDocument": "Not sent; nor is it listed.",
    }


def test_the_fact_that_would_decide_is_named_with_what_it_would_do() -> None:
    subject = Subject(name="Rosalind Achterberg", type=PERSON)
    entity = listed("un_sc", "Rosalind Achterberg", "1969-10-11", countries=("NL",))
    found = answer(subject, entity)
    (one,) = found["matches"]
    fact = one["decidingFact"]
    assert (fact["component"], fact["member"], fact["listed"]) == ("dob", "inputDob", "1969-10-11")
    other = Subject(name=subject.name, type=PERSON, birth=BirthDate("1990-01-17"))
    again = match(other, entity)
    assert again is not None
    assert fact["scoreIfContradicts"] == again.score < found["reviewBound"]
    assert (found["decidingFact"]["component"], found["decidingFact"]["clearsGroups"]) == ("dob", 1)
    known = Subject(name=subject.name, type=PERSON, birth=BirthDate("1969-10-11"), countries=("NL",))
    assert answer(known, entity)["matches"][0]["decidingFact"] is None


def test_no_fact_is_asked_for_that_changes_nothing() -> None:
    # Another passport clears nobody: people have several.
    passport = Document(DocumentKind.PASSPORT, "NX1234567")
    subject = Subject(name="Rosalind Achterberg", type=PERSON)
    found = answer(subject, listed("un_sc", "Rosalind Achterberg", documents=(passport,)))
    assert found["decision"] == "REVIEW"
    assert found["decidingFact"] is None
    # A name and a date of birth that are equal confirm a match whatever else would be sent.
    subject = Subject(name="Rosalind Achterberg", birth=BirthDate("1969-10-11"))
    found = answer(subject, listed("un_sc", "Rosalind Achterberg", "1969-10-11"))
    assert (found["decision"], found["decidingFact"]) == ("CONFIRMED", None)
    assert found["matches"][0]["decidingFact"] is None


@given(
    st.floats(0, 1),
    st.dictionaries(st.sampled_from([row.component for row in COMPARISONS]), st.floats(0, 1)),
    st.booleans(),
)
def test_a_score_is_within_bounds_and_its_points_add_up(
    name: float, values: dict[str, float], weak: bool
) -> None:
    score, points = weigh(name, values, weak=weak)
    assert 0.0 <= score <= 1.0
    assert max(0.0, min(1.0, sum(points.values()))) == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "grammar", "written"),
    [
        ("Abd al-Aziz Rahimov", Grammar.PERSON, "Rahimov"),
        ("Salah al-Din Achterberg", Grammar.PERSON, "Achterberg"),
        ("Quarry Limited Liability Company", Grammar.ORGANIZATION, "Quarry"),
        ("Владимир Сидоров", Grammar.PERSON, "Сидоров"),
    ],
)
def test_words_are_shown_as_they_were_written(text: str, grammar: Grammar, written: str) -> None:
    words = as_written(text, parse_name(text, grammar).words)
    assert written in words
    assert all(letter in text for word in words for letter in word.split()), words


def test_no_inner_spelling_is_in_an_explanation() -> None:
    subject = Subject(name="Abdul Aziz Achterberg", type=PERSON)
    found = match(subject, listed("un_sc", "'Abd al-Azeez Akhterberg"))
    assert found is not None
    assert "abdziz" not in found.components["name"].detail
    assert "Achterberg ~ Akhterberg" in found.components["name"].detail


@pytest.mark.parametrize(
    ("source", "reason", "remarks", "programmes", "said"),
    [
        ("us_ofac_sdn", "", "DOB 1957; POB Oslo; Linked To: QUARRY.", ("X",), "Linked To: QUARRY."),
        ("us_ofac_sdn", "", "DOB 12 Mar 1957; Passport A1234 (Norway).", ("SDGT",), "SDGT"),
        (
            "un_sc",
            "Head of the quarry",
            "Runs the quarry near Oslo. Review pursuant to Security Council resolution 1822 (2008) was "
            "concluded. INTERPOL-UN Security Council Special Notice web link: https://example.org/x",
            (),
            "Head of the quarry; Runs the quarry near Oslo.",
        ),
        ("au_dfat", "Listed on 1 May 2020", "Director of a quarry", (), "Director of a quarry"),
        ("au_dfat", "Listed on 1 May 2020", "", (), "Listed on 1 May 2020"),
        ("csv", "DOB unknown; ask Jan", "", (), "DOB unknown; ask Jan"),
        ("eu_fsf", "", "", (), None),
    ],
)  # fmt: skip
def test_a_reason_is_what_somebody_is_listed_for(
    source: str, reason: str, remarks: str, programmes: tuple[str, ...], said: str | None
) -> None:
    entity = listed(source, "Rosalind", reason=reason, remarks=remarks, programmes=programmes)
    assert listing_reason(entity) == said
