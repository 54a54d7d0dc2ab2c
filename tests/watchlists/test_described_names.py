"""Organisations whose names agree although words around them differ, are translated, said again or torn."""

import pytest

from vettance.watchlists.cyrillic_meanings import names_in_quotes
from vettance.watchlists.entity import Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.match import Subject, match


def compared(asked: str, listed: str) -> int:
    names = (ListedName(listed, NameQuality.PRIMARY),)
    entity = Entity(id="csv:1", source="csv", type=EntityType.ORGANIZATION, names=names)
    found = match(Subject(name=asked, type=EntityType.ORGANIZATION), entity)
    return found.score if found is not None else 0


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("JSC Lagodensky Tractor Plant", "Lagoda Tractor Plant JSC"),
        ("Joint Stock Company Noviy Kvartal", "Joint Stock Company New Kvartal"),
        ("Verkhnegorskiy Mashinostroitelny Zavod", "Verkhnegorsk Machinebuilding Plant"),
    ],
)
def test_russian_in_latin_letters_is_read_by_what_it_means(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("ОАО «Зорянка» (ОАО «Зорянка»", "Zoryanka OJSC"),
        ("Northern Harbour Dredging Group", "Northern Harbour Dredging (NHD) Group"),
    ],
)
def test_what_a_name_says_again_is_not_missing(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 90


def test_a_torn_word_is_whole_again() -> None:
    assert compared("OOO Vostokpromin ing Invest", "OOO Vostokpromining Invest") >= 90


@pytest.mark.parametrize(
    ("asked", "listed", "alike"),
    [
        ("Sevkavtransmontazh Consulting", "Sevkavtransmontazh", True),
        ("VO Sevkavtransmontazh", "Sevkavtransmontazh", True),
        ("Pinecrest Systems Ltd", "Pinecrest Ltd", False),
        ("Sevkavtransmontazh Lagoda", "Sevkavtransmontazh", False),
    ],
)
def test_a_long_name_tells_who_is_meant_whatever_describes_it(asked: str, listed: str, alike: bool) -> None:
    assert (compared(asked, listed) >= 75) is alike


def test_of_three_letters_every_one_counts() -> None:
    assert compared("YPK S.A.", "IPK AO") < 75
    assert compared("AXO SA", "Aqso SA") < 75


@pytest.mark.parametrize(
    ("own", "listed", "alike"),
    [
        ("ООО Завод абразивов «Лагода»", "Lagoda Abrasive Materials Group LLC", True),
        ("ООО Завод абразивов «Зорянка»", "Lagoda Abrasive Materials Group LLC", False),
        ("Лагодский военизированный отряд", "Zoryanka Paramilitary Detachment", False),
    ],
)
def test_usual_words_contradict_less_where_a_translated_name_agrees(
    own: str, listed: str, alike: bool
) -> None:
    assert (compared(own, listed) >= 75) is alike


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Приборная корпорация «Северный Кварталмаш»", "Severny Kvartalmash"),
        # The mark that ends a quotation elsewhere begins one in English.
        ("АО “Промышленный дом ‘Объединение Кварталмаш’”", "Obyedineniye Kvartalmash"),
        ("Учебный центр «Кварталпатриотцентр»", "Kvartalpatriottsentr"),
    ],
)
def test_a_name_in_quotation_marks_says_who_is_meant_by_itself(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 90
    assert compared(listed, asked) >= 90


def test_a_territory_in_quotation_marks_and_a_short_word_say_nobody() -> None:
    assert names_in_quotes("Единое предприятие «Республика Крым» «Завод игристых вин»") == [
        "Завод игристых вин"
    ]
    assert names_in_quotes("Кафе «Ромашка»") == []
    assert names_in_quotes("ООО «Северный ветер»") == []


@pytest.mark.parametrize(
    ("asked", "listed", "alike"),
    [
        ("Lagoda Verkhneborsk Insurance", "Lagoda Verkhneborsk Trading Company", True),
        ("Lagoda Insurance", "Lagoda Trading Company", False),
        ("Lagoda Verkhneborsk Granit", "Lagoda Verkhneborsk Almaz", False),
    ],
)
def test_usual_words_count_less_than_names_where_two_names_agree(
    asked: str, listed: str, alike: bool
) -> None:
    assert (compared(asked, listed) >= 75) is alike


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Тульский оружейный завод", "Tula Cartridge Plant"),
        ("Челябинский тракторный завод", "Chelyabinsk Pipe Plant"),
        ("Азовский ликероводочный завод", "Azov Optomechanical Plant"),
    ],
)
def test_works_of_one_town_are_as_many_as_their_trades(asked: str, listed: str) -> None:
    assert compared(asked, listed) < 75


def test_short_names_of_countries_keep_two_companies_apart() -> None:
    asked, listed = (
        "Verkhneborsk Global Solutions II (U.K.) Limited",
        "Verkhneborsk Global Solutions II Canada, Inc.",
    )
    assert compared(asked, listed) < 75


def test_russian_numbers_in_latin_letters_are_numbers() -> None:
    assert compared("OOO Pervaya Stroitelnaya Kompaniya", "First Construction Company LLC") >= 85
    assert compared("OOO Vtoraya Stroitelnaya Kompaniya", "First Construction Company LLC") < 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Pro Tech Trading", "Pre Tech Trading"),
        ("Carros Trading Madrid", "Tank Trading Madrid"),
        ("Asociación de Fiscales de Lima", "Tax Association of Lima"),
    ],
)
def test_a_word_of_several_meanings_is_not_read_as_one_of_them(asked: str, listed: str) -> None:
    assert compared(asked, listed) < 75


def test_a_company_form_is_not_read_by_its_sound() -> None:
    assert compared("ООО «Торговый дом Весна»", "UE Belarusian Oil Trade House") < 75
