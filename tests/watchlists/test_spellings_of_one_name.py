"""Names that languages and presses write otherwise, damaged texts, and other characters of one sound."""

import pytest

from tests.watchlists.test_meanings import PERSON, compared
from vettance.watchlists.belarusian_spellings import belarusian_twins
from vettance.watchlists.east_asian_meanings import other_characters
from vettance.watchlists.forms import form_at
from vettance.watchlists.name_analysis import Grammar, parse_name
from vettance.watchlists.name_token import TokenKind
from vettance.watchlists.organization_words import are_related


@pytest.mark.parametrize(
    ("belarusian", "russian"),
    [
        ("halavanau", "golovanov"),
        ("shautsou", "shevtsov"),
        ("dziamidava", "demidova"),
        ("asipenka", "osipenko"),
        ("rakhmanava", "rakhmanova"),
        ("benedzisiuk", "benedisyuk"),
    ],
)
def test_belarusian_and_russian_spellings_are_one_name(belarusian: str, russian: str) -> None:
    assert belarusian_twins(belarusian, russian)
    assert belarusian_twins(russian, belarusian)


@pytest.mark.parametrize(("one", "other"), [("mahmoud", "muhammad"), ("radkov", "rodkin"), ("hara", "gora")])
def test_other_names_are_no_spellings_of_each_other(one: str, other: str) -> None:
    assert not belarusian_twins(one, other)


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Dzmitry Halavanau", "Dmitrij Golovanov"),
        ("Lidziya Uladzimirauna Shautsova", "Lydia Vladimirovna Shevtsova"),
        ("Vera Wladimirowna Kern", "Vera Vladimirovna Kern"),
        ("Marina Achterbergová", "Marina Achterberg"),
        ("Abdyl Achterbergi", "Abdul Achterbergi"),
    ],
)
def test_a_person_is_found_in_the_spelling_of_another_language(asked: str, listed: str) -> None:
    assert compared(asked, listed, PERSON) >= 80


@pytest.mark.parametrize(
    "form",
    [
        "Obshchestvo s ogranichennoj otvetstvennostyu",
        "OBSHESTVO S OGRANICHENNOY OTVETSTVENNOSTIU",
        "obschestvo s kgranichennoj otvetstvennostju",
        "sociedad limittada",
        "Nepublichnoje akcionernoje obshchestvo",
    ],
)
def test_a_company_form_is_recognised_in_every_romanisation(form: str) -> None:
    words = parse_name(f"{form} Granit", Grammar.ORGANIZATION).words
    assert [word.kind for word in words] == [TokenKind.FORM, TokenKind.NAME]


def test_a_form_of_one_word_is_no_form_within_a_name() -> None:
    assert form_at(["granit"], ["granit"], 0) == (0, "")


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Granit Brevnov Optical Works", "Granit Brevnov Optical Plant"),
        ("Brevnov Precision Instrumentation", "Brevnov Precision Instruments"),
        ("Brevnov Scientific Company", "Brevnov Research Company"),
    ],
)
def test_usual_words_of_one_meaning_agree_where_a_name_does(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 85


def test_usual_words_of_one_meaning_stay_two_where_a_town_is_all_that_agrees() -> None:
    assert compared("Voronezh Steel Company", "Voronezh Metallurgy Industries") < 75
    assert compared("State Optical Works", "State Optical Instruments") < 75


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        ("plant", "works", True),
        ("instrumentation", "instruments", True),
        ("technology", "technopark", False),
        ("industrial", "industar", False),
        ("construction", "constructor", False),
    ],
)
def test_words_of_one_stem_are_related(one: str, other: str, related: bool) -> None:
    assert are_related(one, other) is related


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("شركة الصناع ات المتقدمة قرانيت", "Granit Advanced Industries Company"),
        ("شركة التكنولجيا قرانيت", "Granit Technology Company"),
        ("Бревновский горнообогатительный комбинат", "Brevnov Mining Enrichment Combine"),
        ("НТЦ Бревнов", "NTC Brevnov"),
        ("شرکت نفت برونوف", "Brevnov Oil Company"),
    ],
)
def test_a_damaged_or_compound_word_is_read_by_what_it_means(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 75


def test_other_characters_of_one_sound_are_another_name() -> None:
    assert other_characters("高石早苗", "高市早苗")
    assert not other_characters("马英九", "馬英九")
    assert compared("高石早苗", "高市早苗", PERSON) < 75
    assert compared("马英九", "馬英九", PERSON) >= 95


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("OOO Torgovyy Dom Brevnov", "OOO TD Brevnov"),
        ("NIP Brevnov", "Научно-инженерное предприятие Бревнов"),
        ("АО Бревнов завод мощных транзисторов Гранит", "AO BZMT Granit"),
    ],
)
def test_initials_stand_for_words_where_a_name_agrees(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 85


def test_initials_stand_for_no_other_words_and_alone_for_nobody() -> None:
    assert compared("OOO Stroitelnyy Dom Brevnov", "OOO TD Brevnov") < 75
    assert compared("Torgovyy Dom Optika", "TDO") < 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        (
            "Brevnov Exchange and International Transfer Company",
            "Brevnov Exchange and Money Transfer Company",
        ),
        (
            "Granit Brevnov Kamnev Quarry Inspection Measuring",
            "Tremol Granit Brevnov Kamnev Quarry Inspection",
        ),
        ("Liga para un Granito Seguro", "Liga pentru un Granito Seguro"),
    ],
)
def test_a_word_that_lists_write_otherwise_leaves_a_long_name_one(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Brevnov Exchange and Transfer Company", "Kamnev Exchange and Transfer Company"),
        ("Quarry Front of Granite and Basalt Libya", "Quarry Front of Granite and Basalt Khorasan"),
        ("Brevnov Shipping Company", "Brevnov Insurance Company"),
    ],
)
def test_another_name_town_or_business_makes_two_organisations(asked: str, listed: str) -> None:
    assert compared(asked, listed) < 75


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Бревновский завод прокатных валков", "Brevnov Mill Rolls Plant"),
        ("كتيبة قرانيت", "Granit Battalion"),
        ("مصرف نينوى", "Nineveh Bank"),
        ("國家超級計算 超算中心", "Supercomputing Center"),
    ],
)
def test_words_of_trades_and_forces_are_read_by_what_they_mean(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 75


@pytest.mark.parametrize("spelt", ["Abdull", "Abdlu", "Adbul", "Abduul", "Bdul"])
def test_the_servant_is_read_in_a_misspelt_compound(spelt: str) -> None:
    assert compared(f"{spelt} Tremol", "Abdul Tremol", PERSON) >= 85
