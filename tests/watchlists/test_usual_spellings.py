"""Usual words of organisations that are misspelt, torn or joined, and words that only look like them."""

import pytest

from tests.watchlists.test_meanings import ORGANIZATION, PERSON, compared
from vettance.watchlists.forms import correct_form
from vettance.watchlists.usual_spellings import misspelt, spellings, usual_words


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Bank of Kndustry and Granite", "Bank of Industry and Granite"),
        ("Goodvent Charitatble Organization", "Goodvent Charitable Organization"),
        ("Quarry Yechnologies S.A.", "Quarry Technologies S.A."),
        ("National Kranian Quarry Company", "National Iranian Quarry Company"),
        ("Rourteenth Quarry GmbH", "Fourteenth Quarry GmbH"),
        ("Quarry Plnats PJSC", "Quarry Plants PJSC"),
        ("Irqai Granit Bank", "Iraqi Granit Bank"),
        ("sociedad de resposabilidad limitada Granito", "sociedad de responsabilidad limitada Granito"),
        ("Quarry Joint Venturd", "Quarry Joint Venture"),
        ("Publichneo Aktsionernoe Obschestvo Granit", "Publichnoe Aktsionernoe Obshchestvo Granit"),
    ],
)
def test_a_typing_error_in_a_usual_word_is_no_other_name(asked: str, listed: str) -> None:
    assert compared(asked, listed) >= 85


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("Granit Leb anese Bank", "Granit Lebanese Bank"),
        ("Tremiranian Bank", "Trem Iranian Bank"),
        ("Basam ent Quarry", "Basament Quarry"),
        ("Tremah Charitableorganization", "Tremah Charitable Organization"),
        ("Estetic Tremde Granito S.A. de C.V.", "Estetic Trem de Granito, S.A. de C.V."),
    ],
)
def test_words_that_are_read_as_others_are_joined_and_torn_as_they_were_written(
    asked: str, listed: str
) -> None:
    assert compared(asked, listed) >= 90


@pytest.mark.parametrize(
    "word", ["expert", "command", "cooperation", "plane", "powder", "soviet", "unity", "spare"]
)
def test_a_word_of_its_own_is_not_taken_for_a_misspelt_one(word: str) -> None:
    assert correct_form(word) == word


def test_a_misspelt_usual_word_is_still_mended() -> None:
    assert correct_form("compnay") == "company"
    assert correct_form("kndustry") == "industry"
    assert misspelt("belrausian", "belarus")
    assert not misspelt("belarusian", "iran")
    assert spellings("quarry") == ()
    assert usual_words("kranian") == ["iran"]
    assert usual_words("achterberg") == []


def test_what_is_in_quotation_marks_is_a_name_whatever_else_it_means() -> None:
    assert compared("АО «Завод «Плазма»", "Plazma Plant JSC") >= 85
    assert compared("АО «Завод приборов «Плазма»", "Instruments Plant Agat JSC") < 75


def test_works_of_one_town_are_not_those_of_another() -> None:
    assert compared("Брянский тракторный завод", "Bryansk Tractor Plant") >= 85
    assert compared("Брянский тракторный завод", "Samara Tractor Plant") < 75


def test_english_words_in_russian_letters_are_english() -> None:
    assert compared("ООО «Гранит Шиппинг Солюшнс»", "Granit Shipping Solutions LLC") >= 85


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ("سيد عبدالرحيم موسوی", "Sayyed Abdolrahim MOUSAVI"),
        ("موسوی سید عبدالرحیم", "Abdolrahim MOUSAVI"),
    ],
)
def test_one_of_two_letters_waw_may_be_a_vowel(own: str, listed: str) -> None:
    assert compared(own, listed, PERSON) >= 80


def test_names_of_countries_in_other_languages_keep_two_organisations_apart() -> None:
    assert compared("Groupe des mineurs tunisien", "Groupe des mineurs libyen", ORGANIZATION) < 75
