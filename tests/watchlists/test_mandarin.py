"""A name in pinyin and in Wade-Giles is one name; names not all of Mandarin syllables are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.watchlists.mandarin import GILES, syllables_of
from vettance.watchlists.name_alignment import align
from vettance.watchlists.name_analysis import Grammar, parse_name
from vettance.watchlists.name_token import TokenKind


def score(one: str, other: str) -> float:
    return align(parse_name(one, Grammar.PERSON), parse_name(other, Grammar.PERSON)).score


@pytest.mark.parametrize(
    ("pinyin", "giles"),
    [
        ("zhi", "chih"), ("chi", "chih"), ("ji", "chi"), ("qi", "chi"), ("xi", "hsi"), ("zi", "tzu"),
        ("si", "ssu"), ("ri", "jih"), ("er", "erh"), ("you", "yu"), ("yan", "yen"), ("ye", "yeh"),
        ("ge", "ko"), ("he", "ho"), ("duo", "to"), ("zuo", "tso"), ("ruo", "jo"), ("shuo", "shuo"),
        ("guo", "kuo"), ("gui", "kuei"), ("hui", "hui"), ("xiong", "hsiung"), ("zhong", "chung"),
        ("jue", "chueh"), ("lve", "lueh"), ("lyu", "lu"), ("dian", "tien"),
    ],
)  # fmt: skip
def test_a_syllable_of_pinyin_is_one_of_wade_giles(pinyin: str, giles: str) -> None:
    assert GILES[pinyin] == giles


@pytest.mark.parametrize(
    ("pinyin", "giles"),
    [
        ("Xiong Chongzhi", "Hsiung Ch'ung-chih"),
        ("Cen Ruilan", "Ts'en Jui-lan"),
        ("Qiu Zixian", "Chiu Tzu-hsien"),
        ("Ren Yu Zhen", "JEN Yü-chên"),
        ("Tao Si-yuan", "T’ao Szuyüan"),
        ("Yiran Feng", "Feng I-jan"),
        ("Sima Zhongrui", "Ssu-ma Chung-jui"),
        ("Luo Qiuci", "Lo Ch'iu-tz'u"),
        ("Dr. He Jiuyue", "Ho Chiu-yüeh"),
        ("Bai Banyue", "Pai Pan-yüeh"),
        ("Bai Banyue", "Pai Pa-nüeh"),
        ("齐若云", "Chi Jo-yun"),
        ("白德瑞", "Pai Te-jui"),
    ],
)
def test_pinyin_and_wade_giles_are_one_name(pinyin: str, giles: str) -> None:
    assert score(pinyin, giles) >= 0.89
    assert score(giles, pinyin) == pytest.approx(score(pinyin, giles))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Wade-Giles writes both alike, but both are pinyin.
        ("Duan Jue", "Duan Que"),
        ("Gan Ruilan", "Kan Ruixian"),
        # One is pinyin and the other Wade-Giles, of somebody else.
        ("Duan Dongjie", "Tuan Tung-hsieh"),
        ("Ren Yuzhen", "Jen Jui-chen"),
        # He and Lo are family names here, and say who is meant.
        ("He Ruilan", "Cen Ruilan"),
        ("Lo Jui-hsien", "Hsu Jui-hsien"),
        # The other words are of no Mandarin, so nothing says that these are.
        ("Dan Miller", "Tan Miller"),
        ("Xie Kowalczyk", "Hsieh Kowalczyk"),
    ],
)
def test_other_names_are_no_more_alike_than_before(one: str, other: str) -> None:
    assert score(one, other) < 0.75


@pytest.mark.parametrize(
    "name", ["Hasan bin Ali", "Dan Miller", "Kim Il Sung", "Xi", "Ana Da Luca Di Lima", ""]
)
def test_a_name_that_is_not_all_syllables_has_none(name: str) -> None:
    words = parse_name(name, Grammar.PERSON).words
    assert all(word.syllables is None for word in words)


def test_a_name_is_read_by_each_system_that_can_write_all_of_it() -> None:
    found = syllables_of(["chen", "lin"])
    assert found is not None
    assert [(one.pinyin, one.giles) for one in found] == [(("chen",), "chen"), (("lin",), "lin")]
    found = syllables_of(["chen", "tung"])
    assert found is not None
    assert [(one.pinyin, one.giles) for one in found] == [((), "chen"), ((), "tung")]


def test_the_son_of_an_arab_name_stays_a_particle() -> None:
    assert [word.kind for word in parse_name("Bin Ali", Grammar.PERSON).words] == [
        TokenKind.PARTICLE,
        TokenKind.NAME,
    ]
    assert [word.kind for word in parse_name("Li Bin", Grammar.PERSON).words] == [
        TokenKind.NAME,
        TokenKind.NAME,
    ]


SYLLABLES = sorted(one for one in GILES if one[0] not in "aeiou" and "v" not in one)


@given(st.lists(st.sampled_from(SYLLABLES), min_size=3, max_size=3, unique_by=GILES.__getitem__))
def test_any_name_is_found_by_its_other_spelling(parts: list[str]) -> None:
    family, *given_name = parts
    chinese = f"{GILES[family]} {'-'.join(GILES[one] for one in given_name)}"
    for joint in ("", " ", "-"):
        assert score(f"{family} {joint.join(given_name)}", chinese) >= 0.75, chinese
