"""Organisations by what their words mean, torn and misspelt words, places, and syllables that differ."""

from pathlib import Path

import pytest

from vettance.watchlists.entity import Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.match import Subject, match
from vettance.watchlists.transliteration import WritingSystem, romanise

PERSON, ORGANIZATION = EntityType.INDIVIDUAL, EntityType.ORGANIZATION


def entity(name: str, kind: EntityType) -> Entity:
    names = (ListedName(name, NameQuality.PRIMARY),)
    return Entity(id=f"csv:{name}", source="csv", type=kind, names=names)


def compared(asked: str, listed: str, kind: EntityType = ORGANIZATION) -> int:
    found = match(Subject(name=asked, type=kind), entity(listed, kind))
    return found.score if found is not None else 0


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ("Акционерное общество «Кварц»", "Kvarts JSC"),
        ("АО «Завод точных приборов Кварц»", "Kvarts Precision Instruments Plant JSC"),
        ("Товариство з обмеженою відповідальністю «Зоряна»", "Zoriana LLC"),
        ("Адкрытае акцыянернае таварыства «Лагойскі завод»", "Lagoiski Plant OJSC"),
        ("ООО Научно-исследовательский институт «Гранит»", "Granit Scientific Research Institute LLC"),
        ("НПЦ «Гранит»", "Scientific Production Center Granit"),
    ],
)
def test_an_organisation_in_cyrillic_is_found_by_what_it_means(own: str, listed: str) -> None:
    assert compared(own, listed) >= 75


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("Завод «Кварц»", "Granit Plant"),
        ("Акционерное общество «Кварц»", "Joint Stock Company Granit"),
        ("Научно-исследовательский институт «Гранит»", "Kvarts Scientific Research Institute"),
        ("شركة الزيتون للحماية والحراسة", "Al-Nour Protection and Guarding Company"),
    ],
)
def test_equal_usual_words_alone_hold_nobody(own: str, other: str) -> None:
    assert compared(own, other) < 75


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ("شركة الزيتون للحماية والحراسة", "Al-Zaytoun Protection and Guarding Company"),
        ("عصبة الزيتون", "Asbat al-Zaytun"),
        ("مجتمع صنعتی زیتون", "Zeytoun Industrial Complex"),
        ("شبكة الزيتون", "Zaytoun Network"),
        ("صنایع هوایی زیتون", "Zeytun Aviation Industries"),
        ("مؤسسة الزيتون (ص)", "Zaytoun Foundation"),
    ],
)
def test_an_organisation_in_arabic_letters_is_read_in_each_way(own: str, listed: str) -> None:
    assert compared(own, listed) >= 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("QUARRYVENT TRADING COMP ANY", "QUARRYVENT TRADING COMPANY"),
        ("QUARRYVENT INTERNATIO NAL TRADING", "QUARRYVENT INTERNATIONAL TRADING"),
        ("QUARRYVENT OTVET STVENNOSTYU", "QUARRYVENT OTVETSTVENNOSTYU"),
        ("QUARRYVENT SOCIEDAD POR ACCIONSE SIMPLIFICADA", "QUARRYVENT S.A.S."),
        ("QUARRYVENT FINANCE COMPANY LIMITED LIABILITY COMPANY", "QUARRYVENT FINANCE LLC"),
        ("QUARRYVENT IMPORT&EXPORT", "QUARRYVENT IMP. AND EXP."),
        ("QUARRYVENT IMPORT EXPORT", "QUARRYVENT IMPORT AND EXPORT"),
    ],
)
def test_usual_words_may_be_torn_misspelt_or_shortened(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 90


def test_a_place_in_which_two_names_differ_makes_them_two() -> None:
    listed = "Quarryvent Research and Production Works Minsk"
    assert compared("Quarryvent Research and Production Works Tehran", listed) < 75
    assert compared("Quarryvent Research and Production Works", listed) >= 75


def test_a_short_word_of_equal_sound_is_a_spelling_and_one_of_like_sound_is_not() -> None:
    assert compared("RASHEED BANK", "RASHID BANK") >= 75
    assert compared("QAVAMIN BANK", "GHAVAMIN BANK") >= 75
    assert compared("VALE BANK", "PALEA BANK") < 75


def test_a_syllable_of_pinyin_that_no_typing_error_explains_makes_two_people() -> None:
    assert compared("罗永玉", "Luo Yongguo", PERSON) < 75
    assert compared("Luo Yongyu", "Luo Yong Guo", PERSON) < 75
    assert compared("Luo Yongyu", "Luo Yong Yu", PERSON) >= 90
    assert compared("Luo Yongyu", "Luo Yongyo", PERSON) >= 75


def test_single_syllables_are_one_only_where_they_are_nearly_equal() -> None:
    assert compared("Kim Kyoung Soo", "Kim Dong Su", PERSON) < 75
    assert compared("Kim Kyoung Soo", "Kim Kyung Su", PERSON) >= 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Park Jinju", "Park Jin Ju"),
        ("Abd elNasir elHatib", "Abd al-Nasir al-Hatib"),
        ("Vitali Zaytsev", "Witali Saizew"),
        ("Alexandros Angelopoulos", "Alexandros Aggelopoylos"),
        ("דוד גולדשטיין", "Dawid Goldshtein"),
    ],
)
def test_search_finds_what_the_scorer_takes(asked: str, listed: str, tmp_path: Path) -> None:
    assert compared(asked, listed, PERSON) >= 75
    crowd = [f"{given} {family}" for given in ("Park", "Vitali", "Dawid") for family in ("Oakes", "Brandt")]
    entities = [entity(name, PERSON) for name in (listed, *crowd)]
    build_index(tmp_path / "index", entities, {"csv": "v1"})
    found = Index(tmp_path / "index").search(Subject(name=asked, type=PERSON))
    assert found
    assert found[0].listed_name.text == listed


def test_a_word_is_not_parted_into_one_usual_word_and_a_particle(tmp_path: Path) -> None:
    entities = [entity(name, ORGANIZATION) for name in ("CAPITAL S.A.L.", "Quarry and Vent")]
    build_index(tmp_path / "index", entities, {"csv": "v1"})
    index = Index(tmp_path / "index")
    assert not [one for one in index.search(Subject(name="CapitaLand", type=ORGANIZATION)) if one.score >= 75]
    assert index.search(Subject(name="Quarryandvent", type=ORGANIZATION))[0].score >= 75


def test_letters_of_another_alphabet_are_read_by_their_looks_in_a_mixed_word() -> None:
    assert romanise("СО")[0] == "so"
    assert romanise("Сompanу") == ("company", WritingSystem.LATIN)
    assert romanise("Валерiївна") == romanise("Валеріївна")
