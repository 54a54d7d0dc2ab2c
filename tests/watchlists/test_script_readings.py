"""A name in its own script is read in every way in which lists write it, and no short word holds anybody."""

from pathlib import Path

import pytest

from tests.watchlists.listed import entity
from vettance.watchlists.entity import EntityType
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.match import Subject, match
from vettance.watchlists.name_alignment import align
from vettance.watchlists.name_analysis import Grammar, parse_name

COMPANY = EntityType.ORGANIZATION


def compared(asked: str, listed: str, kind: EntityType = COMPANY) -> int:
    found = match(Subject(name=asked, type=kind), entity(listed, kind=kind))
    return 0 if found is None else found.score


@pytest.mark.parametrize(
    ("han", "listed"),
    [
        ("金秀賢", "Kim Su Hyon"),
        ("朴東哲", "PAK Tong-chol"),
        ("李家明", "LEE Ka-ming"),
        ("梁國強", "Leung Kwok-keung"),
        ("陳美玲", "CHAN Mei Ling"),
        ("陳美玲", "Chen Meiling"),
    ],
)
def test_han_is_read_in_mandarin_korean_and_cantonese(han: str, listed: str) -> None:
    assert compared(han, listed, EntityType.INDIVIDUAL) >= 75


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ("مصرف النور التجاري", "Al-Nour Commercial Bank"),
        ("شركة الزيتون للتجارة العامة", "Al-Zaytoun General Trading Company"),
        ("شرکت ملی صنایع پتروشیمی ایران", "National Iranian Petrochemical Industries Company"),
        ("جمعية الإغاثة الخيرية", "Charitable Relief Association"),
        ("لشکر الزيتون", "Lashkar al-Zaytun"),
    ],
)
def test_an_organisation_in_arabic_script_is_found_by_sound_and_by_meaning(own: str, listed: str) -> None:
    assert compared(own, listed) >= 75
    assert compared(listed, own) >= 75


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Groupe Islamique Tunisien", "Tunisian Islamic Group"),
        ("Quarry Metallurgical Plant", "Quarry Metallurgy Plant"),
        ("J.P. Quarry Ltd", "JP Quarry Ltd"),
        ("PJSCQUARRYNSKY", "PJSC Quarrynsky"),
        ("Al Qaeda", "AL-QAIDA"),
    ],
)
def test_words_of_organisations_are_one_in_other_forms_and_languages(one: str, other: str) -> None:
    assert compared(one, other) >= 75


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Talse", "TALE"),
        ("Hawuei", "HUJI"),
        ("Tasco", "TAJCO"),
        ("Peacock Holdings", "LLC PEACOCK"),
    ],
)
def test_nobody_is_held_by_one_short_word_or_a_usual_one(one: str, other: str) -> None:
    assert compared(one, other) < 75


def test_a_title_is_a_surname_where_the_name_has_no_other() -> None:
    person = EntityType.INDIVIDUAL
    assert compared("John King", "John King", person) == 100
    assert compared("John King", "John", person) < 75
    assert compared("Mary Major", "Mary Prince", person) < 75
    assert (
        align(
            parse_name("Anna KOWALCZYK Jr", Grammar.PERSON), parse_name("Anna Kowalczyk", Grammar.PERSON)
        ).score
        >= 0.95
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mary Jane Bishop", "Mary Jane Baker"),
        ("BISHOP, Mary Jane", "Mary Jane Baker"),
        ("Md Fazle Rabbi", "Md Fazle Karim"),
        ("Ana Pastor Garcia", "Ana Moreno Garcia"),
        ("Dr Mary Jane King", "Mary Jane Baker"),
        ("John Paul Prince", "John Paul Baker"),
    ],
)
def test_a_title_that_is_a_name_too_is_one_behind_other_names(one: str, other: str) -> None:
    person = EntityType.INDIVIDUAL
    assert compared(one, other, person) < 75
    assert compared(one, one, person) == 100


@pytest.mark.parametrize(
    "named",
    [
        "Bishop John Smith",
        "SMITH, Pastor John",
        "Dr. Rabbi John Smith",
        "Major General John Smith",
        "Smith, Major General John",
    ],
)
def test_a_title_that_is_a_name_too_is_a_title_before_names(named: str) -> None:
    assert compared(named, "John Smith", EntityType.INDIVIDUAL) >= 95


@pytest.mark.parametrize("din", ["Din", "Diin", "Ddiin", "Uddiin", "Dyin", "Dyn", "Deen", "al Den"])
def test_every_spelling_of_al_din_is_one_name(din: str) -> None:
    assert compared(f"Nur {din}", "Nur al-Din", EntityType.INDIVIDUAL) == 100


@pytest.mark.parametrize("name", ["Van den Berg Jan", "Abdi Aden", "Edgar Eden Gonzalez"])
def test_den_without_an_article_is_no_al_din(name: str) -> None:
    assert not any(word.text.endswith("udin") for word in parse_name(name, Grammar.PERSON).words)


NAMES = ("T-Quarry JSC", "K LAKESIDE JOINT STOCK COMPANY", "B-FINANCE LTD", "Q S COMPANY", "N-Systems Zrt.")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder: Path = tmp_path_factory.mktemp("short")
    others = [
        entity(f"{letter}-Bank Finance {letter * 3}", 100 + place, COMPANY)
        for place, letter in enumerate("ABCDEFGHIJ")
    ]
    people = [entity("Alaeddin SENGULERI", 50), entity("William Pemberley", 51)]
    named = [entity(name, place, COMPANY) for place, name in enumerate(NAMES)]
    build_index(folder / "index", [*named, *people, *others], {"csv": "1"})
    return Index(folder / "index")


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_name_finds_itself_however_short(index: Index, name: str) -> None:
    found = index.search(Subject(name=name, type=COMPANY))
    assert found[0].entity.name == name
    assert found[0].score >= 98


@pytest.mark.parametrize(
    ("asked", "listed"),
    [("AlaeddinSENGULERI", "Alaeddin SENGULERI"), ("Bill Pemberly", "William Pemberley")],
)
def test_a_glued_surname_and_a_nickname_are_found(index: Index, asked: str, listed: str) -> None:
    found = index.search(Subject(name=asked, type=EntityType.INDIVIDUAL))
    assert found[0].entity.name == listed
    assert found[0].score >= 75
