"""Each word of an organisation in its own script is read as what the listed name has of it."""

import pytest

from tests.watchlists.listed import entity
from vettance.watchlists.entity import EntityType
from vettance.watchlists.match import Subject, match
from vettance.watchlists.name_analysis import Grammar, parse_name
from vettance.watchlists.name_readings import name_readings, towards

COMPANY = EntityType.ORGANIZATION


def compared(asked: str, listed: str) -> int:
    found = match(Subject(name=asked, type=COMPANY), entity(listed, kind=COMPANY))
    return 0 if found is None else found.score


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        # One word by its sound, another by its meaning.
        ("ОАО «Завод Алмаз»", "Almaz Works JSC"),
        ("ОАО «Завод Алмаз»", "Diamonds Plant JSC"),
        # Phrases and abbreviations, either way.
        ("Судостроительный завод «Карьер»", "Karyer Shipyard"),
        ("АО НПО «Карьер»", "JSC Research and Production Association Karyer"),
        ("Научно-производственное объединение «Карьер»", "NPO Karyer"),
        # The place of an adjective, the nominative of a name, words from Latin.
        ("Ардовский машиностроительный завод", "Ardov Machine Building Plant"),
        ("Институт имени А. Б. Воробьева", "Vorobyev Institute"),
        ("Ассоциация «Координационная станция»", "Coordination Station Association"),
        ("شركة الصخرة للتجارة والمقاولات", "Al-Sakhra Trading and Contracting Company"),
        ("조선백두무역회사", "Korea Paektu Trading Corporation"),
        ("深圳市宏达电子科技有限公司", "Shenzhen Hongda Electronic Technology Co., Ltd."),
        ("上海海鹰贸易有限公司", "Shanghai Haiying Trading Co Ltd"),
        # A single character within a name is no word: 해 the sea, 钢 steel.
        ("황해제철련합기업소", "Hwanghae Iron and Steel Complex"),
        ("马钢国际贸易有限公司", "Magang International Trading Co Ltd"),
        ("宁波不锈钢制品有限公司", "Ningbo Stainless Steel Products Co., Ltd."),
    ],
)
def test_each_word_is_read_as_what_the_listed_name_has_of_it(own: str, listed: str) -> None:
    assert compared(own, listed) >= 75
    assert compared(listed, own) >= 75


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ("АО «Завод Сокол»", "JSC Plant Almaz"),
        ("Институт прикладной физики", "Institute of Organic Chemistry"),
        ("Министерство обороны", "Ministry of Culture"),
        ("조선백두무역회사", "Korea Ryonha Machinery Corporation"),
        ("深圳市宏达电子科技有限公司", "Shenzhen Pinghai Electronic Technology Co., Ltd."),
        ("مصرف النور التجاري", "Al-Salam Commercial Bank"),
    ],
)
def test_other_names_among_the_same_usual_words_stay_two(own: str, listed: str) -> None:
    assert compared(own, listed) < 75


def test_words_that_translators_use_for_one_thing_stay_different_as_they_are_sent() -> None:
    assert compared("Karyer Missile Bureau", "Karyer Artillery Bureau") < 75
    (reading, *_) = name_readings("Ракетное управление «Карьер»", Grammar.ORGANIZATION)
    read = towards(reading, parse_name("Karyer Rocket Agency", Grammar.ORGANIZATION))
    assert {word.text for word in read.words} == {"missile", "agency", "karer"}
    assert len(read.likened) == 1


def test_an_answer_shows_the_meaning_that_was_compared() -> None:
    found = match(Subject(name="ОАО «Завод Алмаз»", type=COMPANY), entity("Almaz Works JSC", kind=COMPANY))
    assert found is not None
    assert "works" in found.components["name"].detail
    assert "алмаз" in found.components["name"].detail
