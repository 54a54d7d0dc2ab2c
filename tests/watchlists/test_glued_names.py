"""Names that are written together, letters with points, regions, and names that find themselves."""

from pathlib import Path

import pytest

import vettance.watchlists
from vettance.watchlists.entity import Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.glued_names import parted, with_parted_words
from vettance.watchlists.index import COMPARED_MAX, Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.match import Subject, match
from vettance.watchlists.name_analysis import Grammar, parse_name
from vettance.watchlists.name_readings import name_readings
from vettance.watchlists.self_check import check_names
from vettance.watchlists.sources import own

PERSON, ORGANIZATION = EntityType.INDIVIDUAL, EntityType.ORGANIZATION


def entity(name: str, kind: EntityType, number: int = 0) -> Entity:
    names = (ListedName(name, NameQuality.PRIMARY),)
    return Entity(id=f"csv:{number}:{name}", source="csv", type=kind, names=names)


def index_of(folder: Path, *entities: Entity) -> Index:
    build_index(folder / "index", entities, {"csv": "v1"})
    return Index(folder / "index")


def score(asked: str, listed: str, kind: EntityType) -> int:
    found = match(Subject(name=asked, type=kind), entity(listed, kind))
    return found.score if found is not None else 0


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("alaeddinachterberg", PERSON),
        ("ACHTERBERGALAEDDIN", PERSON),
        ("AchterbergAlaeddin", PERSON),
        ("QUARRYVENTENTERPRISES LTD", ORGANIZATION),
        ("enterprisesquarryvent", ORGANIZATION),
    ],
)
def test_a_name_written_together_is_found_in_any_order_and_case(
    asked: str, kind: EntityType, tmp_path: Path
) -> None:
    index = index_of(
        tmp_path, entity("Alaeddin ACHTERBERG", PERSON), entity("QUARRYVENT ENTERPRISES LTD", ORGANIZATION)
    )
    found = index.search(Subject(name=asked, type=kind))
    assert found
    assert found[0].score >= 85


def test_a_word_is_parted_into_the_fewest_listed_words() -> None:
    from vettance.watchlists.blocking_keys import text_key

    listed = {text_key(word): word for word in ("rose", "rosalind", "lind", "achter", "achterberg", "berg")}

    def known(keys: object) -> set[int]:
        return set(listed)

    assert parted("rosalindachterberg", known) == ("rosalind", "achterberg")
    assert parted("rosalindachterberk", known) == ()
    assert parted("rosalind", known) == ()


def test_a_translated_name_with_two_words_written_together_is_searched(tmp_path: Path) -> None:
    listed = "Romashkin Shuan Works of Achterberg"
    index = index_of(tmp_path, entity(listed, ORGANIZATION), entity("Quarryvent Zavod", ORGANIZATION))
    found = index.search(Subject(name="Северный Ромашкиншуан завод", type=ORGANIZATION))
    assert [one.listed_name.text for one in found][:1] == [listed]


def test_what_words_may_stand_for_stays_with_them_where_another_is_parted() -> None:
    name = name_readings("Северный Ромашкиншуан завод", Grammar.ORGANIZATION)[0]
    assert any(name.others)
    apart = with_parted_words(
        name,
        lambda word: parse_name("romashkin shuan", Grammar.ORGANIZATION).words if len(word.text) > 12 else (),
    )
    assert apart is not None
    assert [word.text for word in apart.words][1:3] == ["romashkin", "shuan"]
    assert (*apart.others[:1], *apart.others[3:]) == (*name.others[:1], *name.others[2:])
    assert apart.others[1:3] == ((), ())


def test_a_name_whose_rare_word_is_right_is_found_with_two_errors_in_the_other(tmp_path: Path) -> None:
    index = index_of(tmp_path, entity("Hristoforos Achterberg", PERSON))
    found = index.search(Subject(name="Hristovoross Achterberg", type=PERSON))
    assert found
    assert found[0].score >= 75


def test_every_listed_name_of_the_sample_finds_itself(tmp_path: Path) -> None:
    sample = Path(vettance.watchlists.__file__).parent / "sample" / "sample.csv"
    index = index_of(tmp_path, *own.read("sample", [sample]))
    check = check_names(index, 10_000)
    assert check.searched == index.names or check.searched > 50
    assert (check.missed, check.names) == (0, ())


def test_of_many_namesakes_the_one_with_the_birth_date_is_found(tmp_path: Path) -> None:
    from vettance.watchlists.entity import BirthDate

    names = (ListedName("Rosalind Achterberg", NameQuality.PRIMARY),)
    namesakes = [
        Entity(
            id=f"csv:{n:03}", source="csv", type=PERSON, names=names, births=(BirthDate(f"{1930 + n}-05-06"),)
        )
        for n in range(COMPARED_MAX + 20)
    ]
    last = namesakes[-1]
    index = index_of(tmp_path, *namesakes)
    found = index.search(Subject(name="Rosalind Achterberg", type=PERSON, birth=last.births[0]))
    assert found[0].entity.id == last.id


def test_letters_with_and_without_points_are_one() -> None:
    assert score("JP Achterberg", "J. P. ACHTERBERG", PERSON) >= 95
    assert score("JP Quarryvent Trading", "J.P. Quarryvent Trading", ORGANIZATION) >= 95
    assert score("JP Quarryvent", "J. K. Quarryvent", ORGANIZATION) < 95


def test_regions_of_one_country_are_not_one_place() -> None:
    assert score("Luhansk Quarry Bank", "Donetsk Quarry Bank", ORGANIZATION) < 75
    assert score("Luhansk Quarry Bank", "Lugansk Quarry Bank", ORGANIZATION) >= 85


@pytest.mark.parametrize("asked", ["علی خامنه‌ای", "علي خامنئي"])
def test_persian_spellings_of_a_mute_h_are_read(asked: str) -> None:
    assert score(asked, "Ali Husseini KHAMENEI", PERSON) >= 75


def test_an_organisation_is_read_without_what_arabic_writes_on_to_its_words() -> None:
    assert score("جماعة نصرة الإسلام والمسلمين", "JAMA'A NUSRAT UL-ISLAM WA AL-MUSLIMIN", ORGANIZATION) >= 75


@pytest.mark.parametrize(
    ("asked", "listed", "kind"),
    [
        ("AlaeddinAchterberg TAHINI", "Alaeddin Achterberg TAHINI", PERSON),
        ("VladimirAbdualiyevichACHTERBERG", "Vladimir Abdualiyevich ACHTERBERG", PERSON),
        ("AlaeddinAbdullahAL-ACHTERBERGI", "Alaeddin Abdullah AL-ACHTERBERGI", PERSON),
        ("QUARRY GRANITINC.", "QUARRY GRANIT INC.", ORGANIZATION),
        ("GRANITVENT INVESTORSCORP", "GRANITVENT INVESTORS CORP", ORGANIZATION),
        ("QUARRY VENTPRIVATE LIMITED COMPANY", "QUARRY VENT PRIVATE LIMITED COMPANY", ORGANIZATION),
        (
            "PUBLICHNOE AKTSIONERNOE OBSCHESTVOGRANIT",
            "PUBLICHNOE AKTSIONERNOE OBSCHESTVO GRANIT",
            ORGANIZATION,
        ),
    ],
)
def test_words_written_on_to_names_and_forms_are_parted(asked: str, listed: str, kind: EntityType) -> None:
    assert score(asked, listed, kind) >= 85
