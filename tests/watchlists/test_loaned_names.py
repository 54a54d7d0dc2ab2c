"""Names of other languages in Hangul and Katakana are found by their sound."""

import pytest

from tests.watchlists.listed import entity
from vettance.watchlists.entity import EntityType
from vettance.watchlists.loaned_names import read_loaned
from vettance.watchlists.match import Subject, match

_BOUND = 75


def score(asked: str, listed: str) -> int:
    found = match(Subject(name=asked, type=EntityType.INDIVIDUAL), entity(listed))
    return found.score if found is not None else 0


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ("블라디미르 푸틴", "Vladimir Putin"),
        ("ウラジーミル・プーチン", "Vladimir Putin"),
        ("세르게이 라브로프", "Sergei Lavrov"),
        ("セルゲイ・ラブロフ", "Sergei Lavrov"),
        ("알렉산드르 루카셴코", "Aleksandr Lukashenko"),
        ("アレクサンドル・ルカシェンコ", "Aleksandr Lukashenko"),
        ("バッシャール・アル＝アサド", "Bashar al-Assad"),
        ("ヴィクトル・ヤヌコーヴィチ", "Viktor Yanukovich"),
        ("김정은", "Kim Jong Un"),
    ],
)
def test_a_name_of_another_language_is_found_by_its_sound(asked: str, listed: str) -> None:
    assert score(asked, listed) >= _BOUND


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ("블라디미르 푸틴", "Vladimir Pushkin"),
        ("セルゲイ・ラブロフ", "Sergei Rogov"),
        ("タナカ ヒロシ", "Tanaka Kenichi"),
        ("바이든", "Vladimir Putin"),
    ],
)
def test_another_name_is_not(asked: str, other: str) -> None:
    assert score(asked, other) < _BOUND


@pytest.mark.parametrize("korean", ["김정은", "이민호", "박 근혜", "푸틴x", "たなか", "Putin", ""])
def test_names_of_the_language_itself_are_not_read_as_foreign(korean: str) -> None:
    assert list(read_loaned(korean)) == []
