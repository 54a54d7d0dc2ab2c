"""Each publisher's format is read with its names, dates and documents; what is broken is refused."""

from pathlib import Path

import pytest

from tests.watchlists import publishers
from tests.watchlists.publishers import read, write
from vettance.watchlists.entity import BirthDate, Document, DocumentKind, EntityType, ListedName, NameQuality
from vettance.watchlists.sources.formats import SourceFault
from vettance.watchlists.sources.publication_date import data_as_of_ms
from vettance.watchlists.sources.source_table import SOURCES
from vettance.wire.payload import timestamp

PRIMARY, STRONG, WEAK = NameQuality.PRIMARY, NameQuality.STRONG, NameQuality.WEAK


def test_an_ofac_set_is_read_whatever_its_files_are_called(tmp_path: Path) -> None:
    found = read("us_ofac_sdn", *publishers.ofac_csv(tmp_path))
    assert set(found) == {f"us_ofac_sdn:{number}" for number in (101, 102, 103, 104)}
    man = found["us_ofac_sdn:101"]
    assert man.type is EntityType.INDIVIDUAL
    assert man.names == (
        ListedName("Mikkel Anders TORVALDSEN", PRIMARY),
        ListedName("Michael TORVALDSSON", STRONG),
        ListedName("THE FERRYMAN", WEAK),
    )
    assert man.births == (BirthDate("1957-03-12"), BirthDate("1960", "", approximate=True))
    assert man.countries == ("NO", "DK")
    assert Document(DocumentKind.PASSPORT, "N1234567", "NO") in man.documents
    assert Document(DocumentKind.NATIONAL_ID, "12035712345", "NO") in man.documents
    assert man.cities == ("Bergen",)
    assert man.programmes == ("EXAMPLE1", "EXAMPLE2")
    assert man.gender == "m"


def test_ofac_names_of_organisations_keep_their_comma(tmp_path: Path) -> None:
    found = read("us_ofac_sdn", *publishers.ofac_csv(tmp_path))
    assert found["us_ofac_sdn:102"].name == "NORDWIND SHIPPING, LTD."
    assert found["us_ofac_sdn:102"].documents == (Document(DocumentKind.TAX, "998877665", "NO"),)


def test_ofac_vessels_and_aircraft_have_their_identifiers(tmp_path: Path) -> None:
    found = read("us_ofac_sdn", *publishers.ofac_csv(tmp_path))
    ship, plane = found["us_ofac_sdn:103"], found["us_ofac_sdn:104"]
    assert ship.type is EntityType.VESSEL
    assert Document(DocumentKind.IMO, "9074729") in ship.documents
    assert Document(DocumentKind.MMSI, "257123456") in ship.documents
    assert ship.countries == ("NO",)
    assert plane.documents == (Document(DocumentKind.TAIL, "LN-XYZ"), Document(DocumentKind.SERIAL, "5501"))


def test_an_ofac_set_without_its_primary_file_is_refused(tmp_path: Path) -> None:
    alias = write(tmp_path, "alt.csv", publishers.ALIASES)
    with pytest.raises(SourceFault, match="primary file"):
        read("us_ofac_sdn", alias)


def test_ofac_xml_says_which_aliases_are_weak(tmp_path: Path) -> None:
    man = read("us_ofac_sdn", write(tmp_path, "sdn.xml", publishers.OFAC_XML))["us_ofac_sdn:101"]
    assert man.names == (
        ListedName("Mikkel TORVALDSEN", PRIMARY),
        ListedName("Michael TORVALDSSON", STRONG),
        ListedName("THE FERRYMAN", WEAK),
    )
    assert man.documents == (Document(DocumentKind.PASSPORT, "N1234567", "NO"),)
    assert man.births == (BirthDate("1957-03-12"),)


def test_ofac_advanced_xml_is_told_by_its_content(tmp_path: Path) -> None:
    found = read("us_ofac_sdn", write(tmp_path, "sdn.xml", publishers.OFAC_ADVANCED))
    man, ship = found["us_ofac_sdn:101"], found["us_ofac_sdn:103"]
    assert (man.type, ship.type) == (EntityType.INDIVIDUAL, EntityType.VESSEL)
    assert man.names == (
        ListedName("Mikkel TORVALDSEN", PRIMARY),
        ListedName("Миккель Торвальдсен", STRONG),
        ListedName("THE FERRYMAN", WEAK),
    )
    assert man.births == (BirthDate("1957-03-12"), BirthDate("1960", "", approximate=True))
    assert man.documents == (Document(DocumentKind.PASSPORT, "N1234567", "NO"),)
    assert (man.countries, man.address_countries, man.cities) == (("DK",), ("NO",), ("Bergen",))
    assert (man.gender, man.programmes, man.listed_on) == ("m", ("EXAMPLE1",), "2020-02-03")
    assert man.birth_places == ("Bergen, Norway",)
    assert (ship.name, ship.documents) == ("GREY HERON", (Document(DocumentKind.IMO, "9074729"),))


def test_the_un_list_is_read_with_scripts_ranges_and_references(tmp_path: Path) -> None:
    found = read("un_sc", write(tmp_path, "un.xml", publishers.UN))
    man = found["un_sc:EXi.001"]
    assert man.names == (
        ListedName("OLEKSIY BEREZKO", PRIMARY),
        ListedName("Олексій Березко", STRONG),
        ListedName("Alexei Berezko", STRONG),
        ListedName("Lyosha", WEAK),
    )
    assert man.births == (
        BirthDate("1971-05-06"),
        BirthDate("1970", "1972", approximate=True),
        BirthDate("1969", "", approximate=True),
    )
    assert (man.reference, man.listed_on, man.reason) == ("EXi.001", "2020-02-03", "Treasurer")
    assert found["un_sc:EXe.001"].type is EntityType.ORGANIZATION


@pytest.mark.parametrize(
    ("name", "text"),
    [("eu.xml", publishers.EU_XML), ("eu.csv", publishers.EU_CSV), ("eu.json", publishers.EU_JSON)],
)
def test_the_eu_list_is_read_from_each_of_its_formats(tmp_path: Path, name: str, text: str) -> None:
    woman = read("eu_fsf", write(tmp_path, name, text))["eu_fsf:EU-13"]
    assert woman.name == "Zdenka Havlova"
    assert woman.type is EntityType.INDIVIDUAL
    assert woman.births[0] == BirthDate("1980-07-09")
    assert woman.countries == ("CZ",)


def test_the_eu_xml_tells_weak_aliases_and_documents(tmp_path: Path) -> None:
    woman = read("eu_fsf", write(tmp_path, "eu.xml", publishers.EU_XML))["eu_fsf:EU-13"]
    assert ListedName("Zdena", WEAK) in woman.names
    assert woman.documents == (Document(DocumentKind.PASSPORT, "CZ998877", "CZ"),)
    assert (woman.gender, woman.reason, woman.listed_on) == ("f", "Director", "2021-03-04")


def test_the_lines_of_ofsi_are_gathered_by_group(tmp_path: Path) -> None:
    found = read("uk_ofsi", write(tmp_path, "ConList.csv", publishers.OFSI))
    man = found["uk_ofsi:4711"]
    assert man.names == (ListedName("Arthur James PEMBERLEY", PRIMARY), ListedName("Art PEMBERLY", STRONG))
    assert man.births == (BirthDate("1961"), BirthDate("1962-08-01"))
    assert man.countries == ("GB", "IE")
    assert man.documents == (Document(DocumentKind.PASSPORT, "502883110"),)
    assert man.reference == "EXi.009"
    assert found["uk_ofsi:4712"].type is EntityType.ORGANIZATION


def test_the_newer_uk_list_is_read_too(tmp_path: Path) -> None:
    found = read("uk_ofsi", write(tmp_path, "uk.csv", publishers.UKSL))
    assert found["uk_ofsi:EXA0001"].names == (
        ListedName("Arthur James PEMBERLEY", PRIMARY),
        ListedName("Art PEMBERLY", WEAK),
    )
    assert found["uk_ofsi:EXA0001"].births == (BirthDate("1961"),)
    assert found["uk_ofsi:EXA0002"].documents == (Document(DocumentKind.IMO, "9074729"),)


def test_the_newer_uk_list_is_read_as_xml_too(tmp_path: Path) -> None:
    found = read("uk_ofsi", write(tmp_path, "uk.xml", publishers.UKSL_XML))
    man = found["uk_ofsi:EXA0001"]
    assert man.names == (
        ListedName("Arthur James PEMBERLEY", PRIMARY),
        ListedName("Артур Пемберли", STRONG),
        ListedName("Art PEMBERLY", WEAK),
    )
    assert man.births == (BirthDate("1961"), BirthDate("1962-08-01"))
    assert (man.countries, man.cities, man.gender) == (("GB",), ("London",), "m")
    assert man.documents == (Document(DocumentKind.PASSPORT, "502883110"),)
    assert (man.reason, man.reference, man.listed_on) == ("Because.", "EXi.009", "2019-03-02")
    assert found["uk_ofsi:EXA0002"].documents == (Document(DocumentKind.IMO, "9074729"),)


def test_the_consolidated_screening_list_names_the_list_inside(tmp_path: Path) -> None:
    found = read("us_csl", write(tmp_path, "csl.csv", publishers.CSL))
    woman = found["us_csl:a1"]
    assert woman.names == (ListedName("Lucia QUIROGA", PRIMARY), ListedName("Lucy QUIROZ", STRONG))
    assert woman.documents == (Document(DocumentKind.PASSPORT, "A99887766", "EC"),)
    assert woman.list_name == "Specially Designated Nationals (SDN)"
    assert woman.gender == "f"
    assert found["us_csl:b2"].type is EntityType.UNKNOWN


def test_denied_persons_get_ids_that_stay_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, "dpl.txt", publishers.BIS)
    found = read("us_bis_dpl", path)
    assert list(found) == list(read("us_bis_dpl", path))
    (man,) = found.values()
    assert (man.name, man.listed_on, len(man.addresses)) == ("WENDELL OAKES", "2003-06-19", 2)


def test_the_australian_workbook_is_read_with_its_day_numbers(tmp_path: Path) -> None:
    found = read("au_dfat", publishers.sheet(tmp_path / "list.xlsx", publishers.DFAT_ROWS))
    man = found["au_dfat:7"]
    assert man.names == (
        ListedName("Bolat TASKYNBAI", PRIMARY),
        ListedName("Болат Таскынбай", STRONG),
        ListedName("Bolya", WEAK),
    )
    assert man.births[0] == BirthDate("1964-03-20")
    assert BirthDate("1966") in man.births
    assert (man.reference, man.countries) == ("EXi.044", ("KZ",))
    assert Document(DocumentKind.PASSPORT, "N07766554") in man.documents
    assert found["au_dfat:8"].documents == (Document(DocumentKind.IMO, "9074731"),)


def test_opensanctions_targets_without_a_name_of_their_own_are_left_out(tmp_path: Path) -> None:
    found = read("opensanctions", write(tmp_path, "targets.simple.csv", publishers.SIMPLE))
    assert set(found) == {"opensanctions:NK-1", "opensanctions:NK-2"}
    assert found["opensanctions:NK-1"].births == (BirthDate("1975-03"),)
    assert found["opensanctions:NK-2"].documents == (Document(DocumentKind.IMO, "9074743"),)


def test_follow_the_money_is_read_line_by_line(tmp_path: Path) -> None:
    found = read("ftm", write(tmp_path, "entities.ftm.json", publishers.FTM))
    assert set(found) == {"ftm:Q1", "ftm:Q3"}
    woman = found["ftm:Q1"]
    assert woman.names == (ListedName("Ines Marchetti", PRIMARY), ListedName("Nessie", WEAK))
    assert woman.documents == (Document(DocumentKind.PASSPORT, "YA1234567"),)
    assert (woman.gender, woman.reason, woman.programmes) == ("f", "Mayor", ("role.pep",))
    assert found["ftm:Q3"].documents == (Document(DocumentKind.TAIL, "I-ABCD"),)


def test_a_list_of_ones_own_needs_names_only(tmp_path: Path) -> None:
    found = list(read("csv", write(tmp_path, "own.csv", publishers.OWN)).values())
    assert found[0].id == "csv:1"
    assert found[0].births == (BirthDate("1969-10-11"), BirthDate("1970"))
    assert found[0].documents == (Document(DocumentKind.PASSPORT, "NX1234567", "NL"),)
    assert found[2].type is EntityType.UNKNOWN
    assert found[2].id.startswith("csv:")


@pytest.mark.parametrize("sign", [",", "\t"])
def test_many_values_in_a_cell_are_not_taken_for_cells(tmp_path: Path, sign: str) -> None:
    text = f"name{sign}aliases\nIvan Petrov{sign}Vanya Petrov;Iwan Petrow;Petrov Ivan;I Petrov\n"
    (found,) = read("own", write(tmp_path, "own.csv", text)).values()
    assert len(found.names) == 5


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFault, match="two columns name; rename"):
        read("own", write(tmp_path, "own.csv", "id,Name,name\n1,Ivan Petrov,Olga Petrova\n"))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("1,,INDIVIDUAL", "no name"),
        ("1,A B,PERSON", "type"),
        ("1,…,INDIVIDUAL", "letters"),
        (f"{'1' * 256},A B,", "longer"),
    ],
)
def test_a_faulty_row_of_ones_own_list_is_named(tmp_path: Path, row: str, fault: str) -> None:
    with pytest.raises(SourceFault, match=f"row 2.*{fault}"):
        read("csv", write(tmp_path, "own.csv", f"id,name,type\n{row}\n"))


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize("text", ["", "<html><body>Not here</body></html>", "\x00\x01garbage", "a,b\n1,2\n"])
def test_what_is_no_list_is_refused_or_holds_nothing(tmp_path: Path, source: str, text: str) -> None:
    try:
        found = read(source, write(tmp_path, "broken", text))
    except SourceFault:
        return
    assert not found


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    half = publishers.UN[: len(publishers.UN) * 2 // 3]
    with pytest.raises(SourceFault, match="not well-formed"):
        read("un_sc", write(tmp_path, "un.xml", half))


def test_xml_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "boom">]><CONSOLIDATED_LIST/>'
    with pytest.raises(SourceFault, match="document type"):
        read("un_sc", write(tmp_path, "un.xml", bomb))


def test_a_workbook_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFault, match="XLSX"):
        read("au_dfat", write(tmp_path, "list.xlsx", "PK nothing"))


PUBLISH_DATE = (
    '<sdnList xmlns="x"><publshInformation><Publish_Date>02/13/2026</Publish_Date>'
    "</publshInformation></sdnList>"
)
DATE_OF_ISSUE = (
    '<Sanctions xmlns="x"><DateOfIssue CalendarTypeID="1"><Year>2026</Year><Month>2</Month><Day>13</Day>'
    "</DateOfIssue></Sanctions>"
)


@pytest.mark.parametrize(
    ("source", "text", "as_of"),
    [
        ("un_sc", publishers.UN, "2026-01-01T00:00:00.000Z"),
        ("eu_fsf", publishers.EU_XML, "2025-12-31T23:00:00.000Z"),
        ("eu_fsf", publishers.EU_CSV, "2026-01-01T00:00:00.000Z"),
        ("eu_fsf", publishers.EU_JSON, None),
        ("uk_ofsi", publishers.OFSI, "2026-01-01T00:00:00.000Z"),
        ("uk_ofsi", publishers.OFSI.replace("01/01/2026", "13/02/2026"), "2026-02-13T00:00:00.000Z"),
        ("uk_ofsi", publishers.UKSL, "2026-01-01T00:00:00.000Z"),
        ("uk_ofsi", publishers.UKSL_XML, "2026-01-01T00:00:00.000Z"),
        ("us_ofac_sdn", PUBLISH_DATE, "2026-02-13T00:00:00.000Z"),
        ("us_ofac_cons", DATE_OF_ISSUE, "2026-02-13T00:00:00.000Z"),
        ("us_ofac_sdn", publishers.OFAC_ADVANCED, None),
        ("un_sc", publishers.UN.replace("2026-01-01T", "2026-13-01T"), None),
        ("csv", publishers.OWN, None),
    ],
)
def test_the_day_of_the_data_is_what_the_publisher_states(
    tmp_path: Path, source: str, text: str, as_of: str | None
) -> None:
    found = data_as_of_ms(source, [write(tmp_path, "list", text)])
    assert (timestamp(found) if found is not None else None) == as_of


def test_of_several_files_the_oldest_counts(tmp_path: Path) -> None:
    newer = write(tmp_path, "newer.xml", publishers.UN.replace("2026-01-01T", "2026-03-01T"))
    older = write(tmp_path, "older.xml", publishers.UN)
    found = data_as_of_ms("un_sc", [newer, older])
    assert found is not None
    assert timestamp(found).startswith("2026-01-01")
