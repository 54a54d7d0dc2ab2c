"""The index finds what comparing with every entity would find."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.watchlists.listed import document, entity
from vettance.watchlists.entity import DocumentKind, Entity, EntityType
from vettance.watchlists.index import Index, IndexFault
from vettance.watchlists.index_build import META_FILE, build_index
from vettance.watchlists.match import Subject, match

GIVEN = ("Torvald", "Mikkel", "Ingrid", "Олексій", "محمد", "Kwang", "Jose", "Abdul", "Svetlana", "Reza")
FAMILY = ("Mikkelsen", "Berezko", "Haddad", "Березко", "الحداد", "Karimi", "Quiroga", "Pemberley", "Sok")


def make(folder: Path, entities: list[Entity]) -> Index:
    build_index(folder / "index", entities, {"csv": "1"})
    return Index(folder / "index")


PEOPLE = [
    entity(f"{one} {other}", number * 100 + place)
    for number, one in enumerate(GIVEN)
    for place, other in enumerate(FAMILY)
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return make(tmp_path_factory.mktemp("people"), PEOPLE)


def changed(name: str, place: int, letter: str) -> str:
    place %= len(name)
    # Words of mixed scripts are another matter; here a word is misspelt in its own script or left alone.
    return name[:place] + letter + name[place + 1 :] if name.isascii() and name[place] != " " else name


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(GIVEN),
    st.sampled_from(FAMILY),
    st.integers(0, 30),
    st.sampled_from("aeiknrst"),
    st.booleans(),
)
def test_the_index_finds_what_comparing_with_everybody_finds(
    index: Index, given_name: str, family: str, place: int, letter: str, turned: bool
) -> None:
    name = changed(f"{given_name} {family}", place, letter)
    subject = Subject(name=" ".join(reversed(name.split())) if turned else name, type=EntityType.INDIVIDUAL)
    compared = {
        one.id: result.score
        for one in PEOPLE
        if (result := match(subject, one, index.rarity)) is not None and result.score >= 80
    }
    searched = {result.entity.id: result.score for result in index.search(subject)}
    assert {key: searched.get(key) for key in compared} == compared


def test_words_run_together_and_apart_are_found(index: Index) -> None:
    for name in ("TorvaldMikkelsen", "Torvald Mikkel sen", "Tor vald Mikkelsen"):
        best = index.search(Subject(name=name, type=EntityType.INDIVIDUAL))[0]
        assert best.entity.name == "Torvald Mikkelsen"
        assert best.score >= 75


CHINESE = [
    entity("Xiong Chongzhi", 1),
    entity("TS'EN, Jui-lan", 2),
    entity("Qiu Zi Xian", 3),
    entity("Tsou Aili", 4),
]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("Hsiung Ch'ung-chih", 1), ("Hsiung Chungchih", 1), ("Cen Ruilan", 2), ("Cen Rui-lan", 2),
        ("岑瑞兰", 2), ("Ch'iu Tzuhsien", 3), ("Tzu-hsien Chiu", 3), ("Zou Aili", 4),
    ],
)  # fmt: skip
def test_a_chinese_name_is_found_by_its_other_spelling(tmp_path: Path, name: str, number: int) -> None:
    index = make(tmp_path, [*CHINESE, *PEOPLE])
    subject = Subject(name=name, type=EntityType.INDIVIDUAL)
    found = index.search(subject)[0]
    assert found.entity.id == f"csv:{number}"
    assert found.score >= 85
    compared = match(subject, CHINESE[number - 1], index.rarity)
    assert compared is not None
    assert found.score == compared.score


def test_an_initial_finds_one_among_many_namesakes(tmp_path: Path) -> None:
    # More namesakes than are ever compared in full: the initial alone tells which are worth it.
    others = [
        entity(f"{first}{second}{third}o Haddad", 100 + 100 * ord(first) + 10 * ord(second) + ord(third))
        for first in "bdghjk"
        for second in "aeiou"
        for third in "lmnprstvz"
    ]
    index = make(tmp_path, [*others, entity("Wolfgang Haddad", 1)])
    for name in ("W. Haddad", "Haddad, W."):
        found = index.search(Subject(name=name, type=EntityType.INDIVIDUAL))
        assert found[0].entity.name == "Wolfgang Haddad"
        assert found[0].score >= 75


@pytest.mark.parametrize("name", ["علي عبدالله أيوب", "أيوب علي عبدالله"])
def test_a_name_with_the_words_of_a_listed_one_finds_it_among_all_that_share_one(
    tmp_path: Path, name: str
) -> None:
    # Two of the three words have a single consonant, which cannot be looked up; the third is in all names.
    letters = "بتجدرزسشطفقكلمن"
    others = [
        entity(f"عبدالله {first}ا{second}", 100 + 100 * ord(first) + ord(second))
        for first in letters
        for second in letters
    ]
    index = make(tmp_path, [*others, entity("علي عبدالله أيوب", 1)])
    best = index.search(Subject(name=name, type=EntityType.INDIVIDUAL))[0]
    assert (best.entity.id, best.score) == ("csv:1", 100)


def test_an_identifier_finds_an_entity_whatever_the_name(tmp_path: Path) -> None:
    ship = entity("GREY HERON", 1, EntityType.VESSEL, documents=((DocumentKind.IMO, "9074729", ""),))
    found = make(tmp_path, [ship, entity("Ann Lee", 2)]).search(
        Subject(name="Happy Star", documents=(document(DocumentKind.IMO, "IMO 9074729"),))
    )
    assert [one.entity.name for one in found] == ["GREY HERON"]
    assert found[0].identifier_equal


def test_without_a_type_every_kind_is_searched(tmp_path: Path) -> None:
    entities = [
        entity("Tern Grey", 1),
        entity("Grey Tern Ltd", 2, EntityType.ORGANIZATION),
        entity("GREY TERN", 3, EntityType.VESSEL),
        entity("Grey Tern", 4, EntityType.UNKNOWN),
    ]
    index = make(tmp_path, entities)
    assert {one.entity.id for one in index.search(Subject(name="Grey Tern"))} == {one.id for one in entities}
    only = index.search(Subject(name="Grey Tern", type=EntityType.VESSEL))
    assert [one.entity.id for one in only if one.score >= 75] == ["csv:3"]


def test_an_empty_index_and_an_empty_name_find_nothing(tmp_path: Path, index: Index) -> None:
    assert make(tmp_path, []).search(Subject(name="Torvald Mikkelsen")) == []
    for name in ("", "…", "123"):
        assert index.search(Subject(name=name)) == []


def test_the_same_entities_make_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_index(tmp_path / name, PEOPLE, {"csv": "1"})
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_a_build_that_fails_leaves_the_old_index(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_index(folder, [entity("Torvald Mikkelsen")], {"csv": "1"})

    def broken() -> object:
        yield entity("Ann Lee")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        build_index(folder, broken(), {"csv": "2"})  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert Index(folder).versions == {"csv": "1"}


def test_an_open_index_works_on_while_its_files_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_index(folder, [entity("Torvald Mikkelsen")], {"csv": "1"})
    old = Index(folder)
    build_index(folder, [entity("Ann Lee")], {"csv": "2"})
    assert old.search(Subject(name="Torvald Mikkelsen"))[0].score == 100
    assert Index(folder).search(Subject(name="Torvald Mikkelsen")) == []


@pytest.mark.parametrize("damage", ["missing", "format", "garbage"])
def test_a_damaged_index_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "index"
    build_index(folder, [entity("Torvald Mikkelsen")], {"csv": "1"})
    meta = folder / META_FILE
    if damage == "missing":
        meta.unlink()
    else:
        meta.write_text('{"format": 0}' if damage == "format" else "{")
    with pytest.raises(IndexFault):
        Index(folder)
