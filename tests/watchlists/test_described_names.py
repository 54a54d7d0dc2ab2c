"""Organisations whose names agree although words around them differ, are translated, said again or torn."""

import pytest

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
