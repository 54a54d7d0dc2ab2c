"""Names of every script become words that can be compared, by the rules of what they name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.watchlists.name_alignment import align
from vettance.watchlists.name_analysis import WORDS_MAX, Grammar, compact, parse_name
from vettance.watchlists.name_token import TokenKind, make_word, word_similarity
from vettance.watchlists.stated_names import otherwise
from vettance.watchlists.transliteration import WritingSystem, romanise


def texts(name: str, grammar: Grammar = Grammar.PERSON) -> list[str]:
    return [word.text for word in parse_name(name, grammar).words]


@pytest.mark.parametrize(
    ("word", "latin", "script"),
    [
        ("Müller", "muller", WritingSystem.LATIN),
        ("Łukasz", "lukasz", WritingSystem.LATIN),
        ("Щербаков", "shcherbakov", WritingSystem.ALPHABET),
        ("Йосип", "yosip", WritingSystem.ALPHABET),
        ("Παύλος", "paylos", WritingSystem.ALPHABET),
        ("كريم", "krym", WritingSystem.CONSONANTAL),
        ("יעקב", "yakb", WritingSystem.CONSONANTAL),
        ("김정", "kim jong", WritingSystem.SYLLABIC),
        ("李明", "li ming", WritingSystem.SYLLABIC),
        ("नरेन", "naren", WritingSystem.CONSONANTAL),
    ],
)
def test_a_word_of_any_script_is_written_in_latin_letters(
    word: str, latin: str, script: WritingSystem
) -> None:
    spelt, found = romanise(word)
    assert found is script
    assert spelt.replace("a", "") == latin.replace("a", "")


def test_presentation_forms_and_invisible_characters_change_nothing() -> None:
    assert texts("ﻛﺮﻳﻢ") == texts("كريم")
    assert texts("Ka\u200brim Ali") == texts("Karim Ali")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Abd al-Rahman Karimi", "Abdurrahman Karimi"),
        ("Abdul Karim Haddad", "Abdelkarim Haddad"),
        ("Salah al-Din Mansur", "Salahuddin Mansur"),
        ("Dr. Ivan PETROV", "Petrov, Ivan"),
        ("Mohd Faisal", "Muhammad Faisal"),
        ("Jürgen Groß", "Juergen Gross"),
        ("Sergej Jurjevitj", "Sergey Yurievich"),
        ("Юрий Щербаков", "Yuri Shcherbakov"),
        ("Kowalczyk-Nowak Anna", "Anna Kowalczyk Nowak"),
        ("AnnaKowalczyk", "Anna Kowalczyk"),
        ("Anna Kowal czyk", "Anna Kowalczyk"),
        ("محمد كريم الحداد", "Mohammed Karim al-Haddad"),
        ("Pepe Martinez", "Jose Martinez"),
        ("Choi Min Ho", "CHOE Min Ho"),
        ("Lee Sun Ok", "RI Sun-ok"),
        ("J. Martinez Lopez", "Jose Martinez Lopez"),
        ("Dmytro Oleksiyovych Hlushko", "Dmitri Alekseevich Hlushko"),
        ("Olena Volodymyrivna Hlushko", "Elena Vladimirovna Hlushko"),
        ("رحمت الله نوري", "Rahmatullah Nuri"),
        ("Rahmat Ullah Nuri", "Rahmatullah Nuri"),
        ("عبدالحي نوري", "Abdulhai Nuri"),
        ("رشيد بوشناق", "Rachid Bouchnak"),
        ("اسحاق نوري", "Eshaq Nuri"),
        ("Wadim Schurawljow", "Vadim Zhuravlyov"),
        ("Jakow Chusnutdinow", "Yakov Khusnutdinov"),
        ("Milan Čižov", "Milan Chizhov"),
        ("Witalij Cygankow", "Vitaliy Tsygankov"),
        ("Hryhorii Hlushko", "Григорій Глушко"),
        ("جمال نوري", "Gamal Nuri"),
        ("وليد بشير", "Valid Bashir"),
        ("خالد نوري", "Chalid Nuri"),
        ("Hesham Nuri", "Hisham Nuri"),
        ("Salah ol Din Mansur", "Salah al-Din Mansur"),
        ("Salah Eddeen Mansur", "Salahuddin Mansur"),
        ("Edgar Eden Martinez", "Edgar Martinez"),
        ("Warsan Aden Nuri", "Aden Nuri Warsan"),
        ("Abd elRahman Karimi", "Abdurrahman Karimi"),
        ("Abdul Talibani", "Talibani Abdul"),
        ("Abdul Khalifah Nuri", "Abdulkhalifah Nuri"),
        ("Said Karimi", "Saeed Karimi"),
        ("Hyeok Yeong Ryu", "Hyok Yong Ryu"),
        ("sarnir Karimi", "Samir Karimi"),
        ("a8dullah Karimi", "Abdullah Karimi"),
        ("לוי מזרחי", "Levi Mizrachi"),
    ],
)
def test_two_spellings_of_one_person_are_alike(one: str, other: str) -> None:
    score = align(parse_name(one, Grammar.PERSON), parse_name(other, Grammar.PERSON)).score
    assert score >= 0.8, score


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ivan Petrovich Sidorov", "Ivan Borisovich Sidorov"),
        ("Anna Kowalczyk", "Maria Kowalczyk"),
        ("Hasan Karimi", "Hussein Karimi"),
        ("Ivan Ivanovich Petrov", "Irina Ivanovna Petrova"),
        ("Ali", "Ali Reza Karimi"),
        ("John Smithers", "John Smolinski"),
        ("Dmytro Oleksiyovych Hlushko", "Dmitri Aleksandrovich Orlov"),
        ("Pedro Sancho", "Pedro Sanchez Quiroga"),
        ("Kim Dong", "Kim Daedong"),
        ("Said Yusuf Karimi", "Nur Yusuf Karimi"),
        ("Vyacheslav Shishkin", "Vyacheslav Shoigin"),
    ],
)
def test_two_people_who_share_a_part_of_their_names_are_not_alike(one: str, other: str) -> None:
    score = align(parse_name(one, Grammar.PERSON), parse_name(other, Grammar.PERSON)).score
    assert score < 0.75, score


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Severnaya Zvezda LLC", "OOO Severnaya Zvezda", True),
        ("Tidewater Widgets Limited Liability Company", "Tidewater Widgets", True),
        ("Tidewater Widgets LMITED COMAPNY", "Tidewater Widgets Ltd.", True),
        ("Widgets Tidewater Intl", "Tidewater Widgets International", True),
        ("Tidewater Widgets (TW)", "Tidewater Widgets", True),
        ("A.B.C. Trading", "ABC Trading", True),
        ("Quarrycorporation", "Quarry Corporation", True),
        ("JOIT SOTCK COMPANY Quarry", "Quarry JSC", True),
        ("Quarry Capital Closed", "Quarry Capital Closed Joint Stock Company", True),
        ("Quarry Machinery J/V", "Quarry Machinery Joint Venture", True),
        ("Tae-Sung Credit Bank", "TAESUNG CREDIT BANK (TCB)", True),
        ("Quarry Inv. Bank", "Quarry Investment Bank", True),
        ("Seven Quarries Ltd", "7 Quarries Ltd", True),
        ("Quarry 21st Regiment", "Quarry 21 Regiment", True),
        ("T0RDAN Quarry", "Tordan Quarry", True),
        ("PrAT Quarry", "Quarry Anpartsselskab", True),
        ("Tidewater Widgets Ltd, Dubai Branch", "Tidewater Widgets Ltd", True),
        ("Tidewater Widgets Sucursal Colombia", "Tidewater Widgets", True),
        ("Tidewater Widgets Inc. Head Office", "Tidewater Widgets", True),
        ("Quarry Branch Tidewater", "Quarry Beach Tidewater", False),
        ("Point Quarry Ltd", "Pound Quarry Ltd", False),
        ("Open Quarry Ltd", "Shut Quarry Ltd", False),
        ("Quarry Fund VIII L.P.", "Quarry Fund IX L.P.", False),
        ("Tidewater Widgets", "Tidewater Gadgets", False),
        ("Pinecrest Systems Ltd", "Pinecrest Ltd", False),
        (
            "Quarry Tidewater Pinecrest Rosewood Lakeside Unit First",
            "Quarry Tidewater Pinecrest Rosewood Lakeside Unit 2",
            False,
        ),
    ],
)
def test_company_forms_say_nothing_and_words_and_numbers_much(one: str, other: str, alike: bool) -> None:
    grammar = Grammar.ORGANIZATION
    score = align(parse_name(one, grammar), parse_name(other, grammar)).score
    assert (score >= 0.75) is alike, score


def test_a_telling_name_is_not_hidden_by_adding_words() -> None:
    listed = parse_name("Torvald Mikkelsen", Grammar.PERSON)
    padded = parse_name("Torvald Mikkelsen " + "Quentin Barnaby Osric Lupin " * 2, Grammar.PERSON)
    assert align(padded, listed).score >= 0.75


def test_ships_of_one_series_are_told_apart_by_their_number() -> None:
    grammar = Grammar.CRAFT
    same = align(parse_name("M/V SEA LARK 12", grammar), parse_name("SEA LARK 12", grammar)).score
    other = align(parse_name("SEA LARK 12", grammar), parse_name("SEA LARK 7", grammar)).score
    assert same > 0.9 > 0.75 > other


@pytest.mark.parametrize(
    ("one", "other"),
    [("SEALARK12", "SEALARK 12"), ("SEA LARK Two", "SEA LARK II"), ("SEA LARK No. 7", "SEA LARK 7")],
)
def test_a_ships_number_is_the_same_however_it_is_written(one: str, other: str) -> None:
    assert align(parse_name(one, Grammar.CRAFT), parse_name(other, Grammar.CRAFT)).score > 0.9


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Olsen Trading", ()),
        ("Sea Lark (ex Grey Heron)", ("Sea Lark", "Grey Heron")),
        ("Anders Olsen t/a Olsen Trading", ("Anders Olsen", "Olsen Trading")),
        ("Olsen Trading d/b/a Quarry", ("Olsen Trading", "Quarry")),
        ("Quarry Ltd (formerly Olsen Ltd)", ("Quarry Ltd", "Olsen Ltd")),
        ("Quarry f/k/a Olsen", ("Quarry", "Olsen")),
        ("Alias Olsen", ()),
    ],
)
def test_a_text_that_gives_two_names_is_read_as_both(text: str, names: tuple[str, ...]) -> None:
    assert otherwise(text) == (text, *names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("P U T I N", ("PUTIN", "P. UTIN")),
        ("V. P-U-T-I-N", ("V. PUTIN", "V. P. UTIN")),
        ("V P U T I N", ("VPUTIN", "V. PUTIN")),
        ("J R R Tolkien", ()),
        ("J. R. R. T. Smith", ()),
    ],
)
def test_letters_that_are_apart_are_a_word_from_four_on(text: str, names: tuple[str, ...]) -> None:
    assert otherwise(text) == (text, *names)


def test_titles_and_particles_alone_are_still_a_name() -> None:
    assert [word.kind for word in parse_name("Al Haj", Grammar.PERSON).words] == [
        TokenKind.NAME,
        TokenKind.NAME,
    ]
    assert parse_name("The Company Ltd", Grammar.ORGANIZATION).words


def test_identifiers_are_compared_by_their_letters_and_digits() -> None:
    assert compact(" ep-itd ") == compact("EP ITD") == "EPITD"


@given(st.text(max_size=200), st.sampled_from(list(Grammar)))
def test_any_text_can_be_read_and_stays_small(text: str, grammar: Grammar) -> None:
    name = parse_name(text, grammar)
    assert len(name.words) <= WORDS_MAX
    assert all(word.text.isascii() and word.text == word.text.lower() for word in name.words)


LETTERS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=14)


@given(LETTERS, LETTERS)
def test_words_are_as_alike_one_way_as_the_other(one: str, other: str) -> None:
    left, right = (make_word(text, TokenKind.NAME, False) for text in (one, other))  # noqa: FBT003
    assert word_similarity(left, right) == word_similarity(right, left)
    assert 0.0 <= word_similarity(left, right) <= 1.0
    assert word_similarity(left, left) == 1.0


@given(st.lists(LETTERS, min_size=1, max_size=6), st.randoms())
def test_the_order_of_a_persons_words_does_not_matter(parts: list[str], chance: object) -> None:
    shuffled = list(parts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one = parse_name(" ".join(parts), Grammar.PERSON)
    other = parse_name(" ".join(shuffled), Grammar.PERSON)
    kinds = [word.kind for word in one.words]
    if any(kind in (TokenKind.NAME, TokenKind.PATRONYMIC) for kind in kinds) and not _ordered(parts):
        assert align(one, other).score >= 0.999


_ARTICLE = re.compile("[aeuo](?:[lrsnzt]|sh|th|ch)")


def _ordered(parts: list[str]) -> bool:
    """Whether words would be run together, or one read as the article of the next: by their order."""
    return any(part.startswith(("abd", "ebd")) or "d" in part or _ARTICLE.fullmatch(part) for part in parts)
